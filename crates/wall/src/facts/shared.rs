//! Files of the workspace that other directories have, too, by hard links: uv, pnpm and bun link what
//! they install to their caches, and so to every other project; `git clone` links objects. Who writes
//! to such a file writes to all of them.
//!
//! A short look is enough for what package managers made alone. A session that could write the
//! directory before may have filled it, so that the look ends among other files. So where the user
//! has a store that files can be linked to, all is looked at, and what cannot be counts as shared.

use std::{
    ffi::OsString,
    fs::{self, DirEntry},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::variable;

/// What is shared by hard links, as far as a look shows.
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
/// The same, if there is a store.
const MOST_WITH_STORE: usize = 4096;

/// How much of a directory is looked at.
#[derive(Clone, Copy)]
struct Look {
    entries: usize,
    /// In one directory.
    files: usize,
}

/// Those beside a file that is linked mostly are, too.
const SHORT: Look = Look {
    entries: 200,
    files: 8,
};
/// Takes about a second, if the disk is fast.
const WHOLE: Look = Look {
    entries: 250_000,
    files: usize::MAX,
};

/// Stores that package managers link from: the directories that they link to, a variable, a place in
/// the home, and a part of what either names.
const STORES: &[(&str, &str, &str, &str)] = &[
    ("venv", "UV_CACHE_DIR", ".cache/uv", ""),
    ("venv", "XDG_CACHE_HOME", ".cache", "uv"),
    ("node_modules", "PNPM_HOME", ".local/share/pnpm", "store"),
    (
        "node_modules",
        "XDG_DATA_HOME",
        ".local/share",
        "pnpm/store",
    ),
    ("node_modules", "BUN_INSTALL", ".bun", "install/cache"),
    (
        "node_modules",
        "BUN_INSTALL_CACHE_DIR",
        ".bun/install/cache",
        "",
    ),
];

/// pnpm's store where the home is on another file system.
const STORE_ABOVE: &str = ".pnpm-store";

/// Whether the user has a store on the file system of a directory of dependencies, or any for another
/// directory. No session can change that.
pub(super) fn has_store(place: &Path, home: &Path, environment: &[(OsString, OsString)]) -> bool {
    let Ok(device) = fs::metadata(place).map(|it| it.dev()) else {
        return true;
    };
    let name = place.file_name().unwrap_or_default();
    let is_dependencies = DEPENDENCIES.iter().any(|it| name == *it);
    let is_meant = |of: &str| !is_dependencies || name.to_string_lossy().ends_with(of);
    let stores = STORES.iter().filter(|(of, ..)| is_meant(of));
    let stores = stores.flat_map(|(_, name, usual, part)| {
        let named = variable(environment, name).map(PathBuf::from);
        let roots = [named, Some(home.join(usual))].into_iter().flatten();
        roots.map(move |root| root.join(part))
    });
    let above = place.ancestors().map(|it| it.join(STORE_ABOVE));
    stores
        .chain(above.filter(|_| is_meant("node_modules")))
        .any(|store| fs::metadata(store).is_ok_and(|it| it.is_dir() && it.dev() == device))
}

impl SharedFiles {
    /// Those of directories that the command can write.
    pub(super) fn find<'a>(
        directories: impl Iterator<Item = &'a PathBuf>,
        has_store: &dyn Fn(&Path) -> bool,
    ) -> Self {
        let has_link = |place: &Path| holds_link(place, SHORT, &mut 0) == Some(true);
        let is_shared = |place: &Path| {
            has_link(place) || (has_store(place) && holds_link(place, WHOLE, &mut 0) != Some(false))
        };
        let mut all = Self::default();
        for directory in directories {
            let most = match has_store(directory) {
                true => MOST_WITH_STORE,
                false => MOST_DIRECTORIES,
            };
            let found = dependencies(directory, most).into_iter();
            let found = found.filter(|place| !all.dependencies.contains(place) && is_shared(place));
            let found: Vec<_> = found.collect();
            all.dependencies.extend(found);
            let objects = directory.join(".git/objects");
            if is_directory(&objects) && has_link(&objects) {
                all.objects.push(objects);
            }
        }
        all
    }
}

/// The directories of dependencies of the projects in a workspace.
fn dependencies(workspace: &Path, most: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![workspace.to_owned()];
    let mut seen = 0;
    for _ in 0..=DEEPEST {
        let mut next = Vec::new();
        for directory in level {
            seen += 1;
            if seen > most {
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

/// Goes down at once, since the files lie deep. None if it cannot look at as much as there is.
fn holds_link(directory: &Path, look: Look, seen: &mut usize) -> Option<bool> {
    let mut files = 0;
    for entry in fs::read_dir(directory).ok()? {
        let entry = entry.ok()?;
        *seen += 1;
        if *seen > look.entries {
            return None;
        }
        let kind = entry.file_type().ok()?;
        if kind.is_file() && files < look.files {
            files += 1;
            if entry.metadata().ok()?.nlink() > 1 {
                return Some(true);
            }
        } else if kind.is_dir() && holds_link(&entry.path(), look, seen)? {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(workspace: &Path) -> SharedFiles {
        SharedFiles::find([workspace.to_owned()].iter(), &|_| false)
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

    /// As a session can prepare it before the user installs.
    #[test]
    fn what_a_session_fills_a_directory_with_hides_no_link_if_there_is_a_store() {
        let place = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(place.path()).unwrap();
        let (workspace, store) = (home.join("project"), home.join(".cache/uv"));
        let packages = workspace.join(".venv/lib/python3.12/site-packages");
        let web = workspace.join("web/.venv");
        for directory in [&packages, &web] {
            fs::create_dir_all(directory).unwrap();
        }
        for directory in packages.ancestors().take(4) {
            for number in 0..4 {
                let padding = directory.join(format!("padding{number}"));
                fs::create_dir(&padding).unwrap();
                for file in 0..=SHORT.entries {
                    fs::write(padding.join(file.to_string()), "").unwrap();
                }
            }
        }
        for number in 0..2 * MOST_DIRECTORIES {
            fs::create_dir_all(workspace.join(format!("padding{number}"))).unwrap();
        }
        let look = |environment: &[(OsString, OsString)]| {
            let has_store = |place: &Path| has_store(place, &home, environment);
            let mut found = SharedFiles::find([workspace.clone()].iter(), &has_store).dependencies;
            found.sort();
            found
        };
        fs::create_dir_all(&store).unwrap();
        // Positive control: without a link nothing is shared.
        assert_eq!(look(&[]), [""; 0].map(PathBuf::from));
        for at in [packages.join("linked"), web.join("linked")] {
            fs::write(store.join("file"), "").unwrap();
            fs::hard_link(store.join("file"), at).unwrap();
        }
        assert_eq!(look(&[]), [workspace.join(".venv"), web.clone()]);
        // Another place of the store.
        fs::rename(&store, home.join("elsewhere")).unwrap();
        let named = ("UV_CACHE_DIR".into(), home.join("elsewhere").into());
        assert_eq!(look(&[named]), [workspace.join(".venv"), web]);
    }
}
