//! Files of the workspace that other directories have, too, by hard links: uv, pnpm and bun link what
//! they install to their caches, and so to every other project; `git clone` links objects. Who writes
//! to such a file writes to all of them, and no mount can part them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Where tools make such links.
const PLACES: &[&str] = &[".venv", "venv", "node_modules", ".git/objects"];

/// Those of the places in which there are some, as far as a short look shows.
pub(super) fn find(workspace: &Path) -> Vec<PathBuf> {
    let places = PLACES.iter().map(|name| workspace.join(name));
    places.filter(|place| has_links(place)).collect()
}

fn has_links(place: &Path) -> bool {
    const MOST: usize = 200;
    let mut left = vec![place.to_owned()];
    let mut seen = 0;
    while let Some(directory) = left.pop() {
        // What is a link itself lies elsewhere.
        if !fs::symlink_metadata(&directory).is_ok_and(|it| it.is_dir()) {
            continue;
        }
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for entry in entries {
            seen += 1;
            if seen > MOST {
                return false;
            }
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => left.push(entry.path()),
                Ok(metadata) if metadata.is_file() && metadata.nlink() > 1 => return true,
                _ => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_where_tools_make_them() {
        let place = tempfile::tempdir().unwrap();
        let cache = tempfile::tempdir_in(place.path()).unwrap();
        fs::write(cache.path().join("file"), "").unwrap();
        for name in [".venv/lib/x", "node_modules/a", "src"] {
            fs::create_dir_all(place.path().join(name)).unwrap();
        }
        fs::write(place.path().join(".venv/lib/x/own"), "").unwrap();
        std::os::unix::fs::symlink(cache.path(), place.path().join("venv")).unwrap();
        assert!(find(place.path()).is_empty());
        for name in ["src/linked", "node_modules/a/linked"] {
            fs::hard_link(cache.path().join("file"), place.path().join(name)).unwrap();
        }
        assert_eq!(find(place.path()), [place.path().join("node_modules")]);
    }
}
