//! Files of the workspace that other directories have, too, by hard links: uv, pnpm and bun link what
//! they install to their caches, and so to every other project; `git clone` links objects. Who writes
//! to such a file writes to all of them.

use std::{
    fs::{self, DirEntry},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// What is shared by hard links, as far as a short look shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedFiles {
    /// Directories of installed dependencies. None lies in another.
    pub dependencies: Vec<PathBuf>,
    /// Directories of git's objects.
    pub objects: Vec<PathBuf>,
}

/// Where package managers install dependencies.
const DEPENDENCIES: &[&str] = &[".venv", "venv", "node_modules"];
/// Projects in a workspace are so deep in it at most.
const DEEPEST: usize = 2;
const MOST_DIRECTORIES: usize = 64;
/// The most entries of a directory of dependencies that are looked at.
const MOST_ENTRIES: usize = 200;
/// The most of them in one directory: those beside a file that is linked mostly are, too.
const MOST_FILES: usize = 8;

impl SharedFiles {
    /// Those of directories that the command can write.
    pub(super) fn find<'a>(directories: impl Iterator<Item = &'a PathBuf>) -> Self {
        let mut all = Self::default();
        for directory in directories {
            let found = dependencies(directory).into_iter();
            let found = found.filter(|place| !all.dependencies.contains(place) && has_links(place));
            let found: Vec<_> = found.collect();
            all.dependencies.extend(found);
            let objects = directory.join(".git/objects");
            if is_directory(&objects) && has_links(&objects) {
                all.objects.push(objects);
            }
        }
        all
    }
}

/// The directories of dependencies of the projects in a workspace.
fn dependencies(workspace: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![workspace.to_owned()];
    let mut seen = 0;
    for _ in 0..=DEEPEST {
        let mut next = Vec::new();
        for directory in level {
            seen += 1;
            if seen > MOST_DIRECTORIES {
                return found;
            }
            for entry in directories(&directory) {
                let name = entry.file_name();
                if DEPENDENCIES.iter().any(|it| name == *it) {
                    found.push(entry.path());
                } else if !name.as_encoded_bytes().starts_with(b".") {
                    next.push(entry.path());
                }
            }
        }
        level = next;
    }
    found
}

/// The directories in a directory. What is a link lies elsewhere.
fn directories(directory: &Path) -> impl Iterator<Item = DirEntry> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir()))
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
}

fn has_links(place: &Path) -> bool {
    let mut seen = 0;
    holds_link(place, &mut seen)
}

/// Goes down at once, since the files lie deep.
fn holds_link(directory: &Path, seen: &mut usize) -> bool {
    let mut files = 0;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        *seen += 1;
        if *seen > MOST_ENTRIES {
            return false;
        }
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_file() && files < MOST_FILES {
            files += 1;
            if entry.metadata().is_ok_and(|it| it.nlink() > 1) {
                return true;
            }
        } else if kind.is_dir() && holds_link(&entry.path(), seen) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(workspace: &Path) -> SharedFiles {
        SharedFiles::find([workspace.to_owned()].iter())
    }

    #[test]
    fn links_are_found_where_tools_make_them() {
        let place = tempfile::tempdir().unwrap();
        let cache = tempfile::tempdir().unwrap();
        let original = place.path().join("original");
        fs::write(&original, "").unwrap();
        for name in [
            ".venv/lib/x",
            "node_modules/a",
            "packages/web/node_modules/b",
            "packages/web/.venv",
            "a/b/c/node_modules",
            "src",
            ".git/objects/aa",
        ] {
            fs::create_dir_all(place.path().join(name)).unwrap();
        }
        fs::write(place.path().join(".venv/lib/x/own"), "").unwrap();
        std::os::unix::fs::symlink(cache.path(), place.path().join("venv")).unwrap();
        fs::write(cache.path().join("file"), "").unwrap();
        fs::hard_link(cache.path().join("file"), cache.path().join("linked")).unwrap();
        assert_eq!(find(place.path()), SharedFiles::default());
        for name in [
            "src/linked",
            "node_modules/a/linked",
            "packages/web/node_modules/b/linked",
            "a/b/c/node_modules/too-deep",
            ".git/objects/aa/linked",
        ] {
            fs::hard_link(&original, place.path().join(name)).unwrap();
        }
        let mut found = find(place.path());
        found.dependencies.sort();
        let expected = SharedFiles {
            dependencies: vec![
                place.path().join("node_modules"),
                place.path().join("packages/web/node_modules"),
            ],
            objects: vec![place.path().join(".git/objects")],
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn links_are_found_among_many_packages() {
        let place = tempfile::tempdir().unwrap();
        let packages = place.path().join(".venv/lib/python3.12/site-packages");
        for number in 0..300 {
            let package = packages.join(format!("package{number}"));
            fs::create_dir_all(&package).unwrap();
            fs::write(package.join("one"), "").unwrap();
            fs::hard_link(package.join("one"), package.join("two")).unwrap();
        }
        let found = find(place.path()).dependencies;
        assert_eq!(found, [place.path().join(".venv")]);
    }
}
