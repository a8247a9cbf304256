//! Files of the workspace that other directories have, too, by hard links: uv, pnpm and bun link what
//! they install to their caches, and so to every other project; `git clone` links objects. Who writes
//! to such a file writes to all of them.
//!
//! A short look is enough for what package managers made alone. A session that could write the
//! directory before may have filled it, so that the look ends among other files. So where the user
//! has a store that files can be linked to, all is looked at, and what cannot be counts as shared. So
//! are directories that links lead to, which a session may have made, too.

mod search;

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use self::search::Search;
use super::{is_in, variable};
use crate::nofollow;

/// What is shared by hard links, as far as a look shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedFiles {
    /// Directories of installed dependencies, and what links in them lead to. None lies in another.
    pub dependencies: Vec<PathBuf>,
    /// Directories of git's objects, and others in which files are shared that the command may change.
    pub objects: Vec<PathBuf>,
    /// Directories that there was too much in to look at all links.
    pub unseen: Vec<PathBuf>,
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
    let is_any = !is_dependencies(Some(name));
    let is_meant = |of: &str| is_any || name.to_string_lossy().ends_with(of);
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
        writable: &[PathBuf],
        has_store: &dyn Fn(&Path) -> bool,
    ) -> Self {
        let mut search = Search::new(writable, has_store);
        let mut objects = Vec::new();
        for directory in directories {
            let most = match has_store(directory) {
                true => MOST_WITH_STORE,
                false => MOST_DIRECTORIES,
            };
            for place in dependencies(directory, most, writable) {
                search.look_at(place);
            }
            let own = directory.join(".git/objects");
            if is_directory(&own) && holds_link(&own, SHORT, &mut 0) == Some(true) {
                objects.push(own);
            }
        }
        let mut all = search.end();
        all.objects.extend(objects);
        all
    }
}

fn is_dependencies(name: Option<&OsStr>) -> bool {
    name.is_some_and(|name| DEPENDENCIES.iter().any(|it| name == *it))
}

/// The directories of dependencies of the projects in a workspace. A link leads to the directory itself,
/// if the command can write that.
fn dependencies(workspace: &Path, most: usize, writable: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![workspace.to_owned()];
    let mut seen = HashSet::new();
    for _ in 0..=DEEPEST {
        let mut next = Vec::new();
        for directory in level {
            if seen.len() >= most {
                return found;
            }
            if !seen.insert(directory.clone()) {
                continue;
            }
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = match entry.file_type() {
                    Ok(kind) if kind.is_dir() => Some(entry.path()),
                    Ok(kind) if kind.is_symlink() => nofollow::real(&entry.path())
                        .ok()
                        .filter(|real| is_in(real, writable) && real.is_dir()),
                    _ => None,
                };
                let name = entry.file_name();
                let list = match is_dependencies(Some(&name)) {
                    true => &mut found,
                    false if name.as_encoded_bytes().starts_with(b".") => continue,
                    false => &mut next,
                };
                list.extend(path);
            }
        }
        level = next;
    }
    found
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
        let all = [fs::canonicalize(workspace).unwrap()];
        SharedFiles::find(all.iter(), &all, &|_| false)
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
            unseen: Vec::new(),
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
            let all = [workspace.clone()];
            let mut found = SharedFiles::find(all.iter(), &all, &has_store).dependencies;
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

    /// A workspace, a store, and what is found in the workspace.
    struct Linked {
        _place: tempfile::TempDir,
        home: PathBuf,
    }

    impl Linked {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let home = fs::canonicalize(place.path()).unwrap();
            for name in ["project", ".cache/uv", ".local/share/pnpm/store"] {
                fs::create_dir_all(home.join(name)).unwrap();
            }
            fs::write(home.join(".cache/uv/file"), "").unwrap();
            Self {
                _place: place,
                home,
            }
        }

        fn at(&self, below: &str) -> PathBuf {
            let path = self.home.join("project").join(below);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        }

        /// As a package manager does.
        fn install(&self, below: &str) {
            fs::hard_link(self.home.join(".cache/uv/file"), self.at(below)).unwrap();
        }

        fn link(&self, to: &str, below: &str) {
            std::os::unix::fs::symlink(to, self.at(below)).unwrap();
        }

        fn find(&self) -> SharedFiles {
            let all = [self.home.join("project")];
            let has_store = |place: &Path| has_store(place, &self.home, &[]);
            SharedFiles::find(all.iter(), &all, &has_store)
        }

        /// Those that become overlays, by their names in the workspace.
        fn found(&self) -> Vec<String> {
            let found = self.find();
            assert_eq!(found.unseen, [""; 0].map(PathBuf::from));
            let names = found.dependencies.iter().map(|path| {
                let below = path.strip_prefix(self.home.join("project")).unwrap();
                below.to_str().unwrap().to_owned()
            });
            names.collect()
        }
    }

    /// As a session can prepare it before the user installs.
    #[test]
    fn links_that_a_session_made_hide_no_shared_file() {
        // Links, where files are installed through them, and what holds those.
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
        let cases: [Case<'_>; 9] = [
            (&[(".v", ".venv")], ".v/lib/a.py", ".v/lib"),
            (&[("../.v/lib", ".venv/lib")], ".v/lib/a.py", ".v/lib"),
            (&[("../../.v", ".venv/lib/x")], ".v/y/a.py", ".v/y"),
            (
                &[("../.v", ".venv/lib"), ("../.w", ".v/python")],
                ".w/a.py",
                ".w",
            ),
            (
                &[("../.v", ".venv/a"), ("a/../.w", ".venv/lib")],
                ".w/x/a.py",
                ".w/x",
            ),
            (&[("../.p", "node_modules/.pnpm")], ".p/a/a.js", ".p/a"),
            (&[(".", ".venv")], "lib/python/a.py", "lib/python"),
            (&[(".web", "web")], ".web/.venv/a.py", ".web/.venv"),
            (
                &[("../.v", ".venv/lib")],
                ".v/node_modules/a.js",
                ".v/node_modules",
            ),
        ];
        for (links, file, expected) in cases {
            let place = Linked::new();
            fs::create_dir_all(place.at(file).parent().unwrap()).unwrap();
            for (to, below) in links {
                place.link(to, below);
            }
            // Positive control: without a shared file, nothing is.
            fs::write(place.at(".v/own"), "").unwrap();
            assert_eq!(place.found(), [""; 0], "{links:?}");
            place.install(file);
            assert_eq!(place.found(), [expected], "{links:?}");
            // What is found at once does not end the look.
            if fs::symlink_metadata(place.at(".venv")).is_ok_and(|it| it.is_dir()) {
                place.install(".venv/a.py");
                let mut both = [".venv", expected];
                both.sort_unstable();
                assert_eq!(place.found(), both, "{links:?}");
            }
        }
    }

    /// Tools make links, too, and the user's own files are not to be lost.
    #[test]
    fn links_that_tools_make_share_no_more_than_there_is() {
        let place = Linked::new();
        // uv and pip.
        place.link("lib", ".venv/lib64");
        place.link("/usr/bin/python3", ".venv/bin/python3");
        place.link("python3", ".venv/bin/python");
        place.install(".venv/lib/python3/site-packages/a.py");
        // pnpm, with packages of a workspace, of which one is built with hard links.
        place.install("node_modules/.pnpm/a@1/node_modules/a/index.js");
        place.link(".pnpm/a@1/node_modules/a", "node_modules/a");
        place.link("../../packages/web", "node_modules/@own/web");
        place.link(
            "../../../packages/native",
            "packages/web/node_modules/native",
        );
        place.link("../../..", "packages/web/node_modules/all");
        place.install("packages/native/node_modules/b/index.js");
        fs::create_dir_all(place.at("packages/native/target/debug/deps")).unwrap();
        fs::write(place.at("packages/native/target/debug/x"), "").unwrap();
        fs::hard_link(
            place.at("packages/native/target/debug/x"),
            place.at("packages/native/target/debug/deps/x"),
        )
        .unwrap();
        // As it is told to.
        fs::write(place.at("packages/web/index.js"), "").unwrap();
        fs::hard_link(
            place.at("packages/web/index.js"),
            place.at("node_modules/.pnpm/web/index.js"),
        )
        .unwrap();
        let expected = [".venv", "node_modules", "packages/native/node_modules"];
        assert_eq!(place.found(), expected);
        assert_eq!(place.find().objects, [""; 0].map(PathBuf::from));
    }
}
