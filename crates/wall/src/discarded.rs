//! What a session wrote to the private home: gone with it, so its end says so.
//!
//! The home is a directory in memory. The warden keeps a handle on it, by which it is there until
//! the warden ends. Listed are files that look like somebody's work; caches, agents' settings and
//! histories are not. A session may have written any number of them: the search is bounded.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStringExt as _,
    },
    path::{Component, Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

use crate::{
    plan::Plan,
    tables::{caches::CACHES, toolchains::TOOLCHAINS},
};

/// Places where programs keep what nobody misses, below the home.
const OF_NO_INTEREST: &[&str] = &[
    ".cache",
    ".config/configstore",
    ".java",
    ".lesshst",
    ".local/share",
    ".local/state",
    ".npmrc",
    ".viminfo",
    ".wget-hsts",
];

/// The end of a session waits no longer.
const PATIENCE: Duration = Duration::from_millis(100);
const MOST_ENTRIES: usize = 50_000;
const DEEPEST: usize = 32;

/// What is needed to look at the home after the end.
#[derive(Debug, Clone)]
pub(crate) struct HomePlan {
    home: PathBuf,
    /// What the plan has put there, below the home.
    planned: Vec<PathBuf>,
}

/// A home in memory, and what else the end takes away.
#[derive(Debug)]
pub struct PrivateHome {
    plan: HomePlan,
    handle: OwnedFd,
    dependencies: Vec<Changes>,
}

/// Changes to dependencies that other projects share.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) path: PathBuf,
    /// The directory in memory that holds them.
    pub(crate) upper: OwnedFd,
}

/// Files that are gone, by the directory or file of the home that they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discarded {
    pub places: Vec<DiscardedPlace>,
    pub files: u64,
    /// There may be more.
    pub is_at_least: bool,
    /// Directories of dependencies whose changes are gone.
    pub dependencies: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscardedPlace {
    /// Below the home.
    pub path: PathBuf,
    pub is_directory: bool,
    pub files: u64,
    pub bytes: u64,
}

impl HomePlan {
    pub(crate) fn of(plan: &Plan) -> Self {
        let below = |path: &Path| path.strip_prefix(&plan.home).ok().map(Path::to_owned);
        let planned = plan.files.iter().map(|step| step.at.as_path());
        Self {
            home: plan.home.clone(),
            planned: planned.filter_map(below).collect(),
        }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn with(self, handle: OwnedFd, dependencies: Vec<Changes>) -> PrivateHome {
        PrivateHome {
            plan: self,
            handle,
            dependencies,
        }
    }
}

impl PrivateHome {
    /// The files that are gone. To be called when nothing runs inside any more.
    #[must_use]
    pub fn discarded(&self) -> Discarded {
        let mut search = Search {
            planned: &self.plan.planned,
            late: Instant::now() + PATIENCE,
            entries: 0,
            found: BTreeMap::new(),
            is_partial: false,
        };
        search.directory(&self.handle, Path::new(""), 0);
        let places: Vec<_> = search.found.into_values().collect();
        Discarded {
            files: places.iter().map(|place| place.files).sum(),
            places,
            is_at_least: search.is_partial,
            dependencies: (self.dependencies.iter())
                .filter(|changes| !is_empty(&changes.upper))
                .map(|changes| changes.path.clone())
                .collect(),
        }
    }
}

fn is_empty(directory: &OwnedFd) -> bool {
    let is_name = |name: &[u8]| name != b"." && name != b"..";
    let entries = list(directory, ".").into_iter().flatten().flatten();
    !entries
        .into_iter()
        .any(|entry| is_name(entry.file_name().to_bytes()))
}

struct Search<'a> {
    planned: &'a [PathBuf],
    late: Instant,
    entries: usize,
    found: BTreeMap<PathBuf, DiscardedPlace>,
    is_partial: bool,
}

impl Search<'_> {
    fn directory(&mut self, above: &OwnedFd, path: &Path, depth: usize) {
        let Some(list) = list(above, ".") else {
            self.is_partial = true;
            return;
        };
        for entry in list.flatten() {
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MOST_ENTRIES || Instant::now() > self.late {
                self.is_partial = true;
                return;
            }
            let path = path.join(&name);
            if is_of_no_interest(&path) {
                continue;
            }
            let Ok(stat) = statat(above, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if depth == DEEPEST => self.is_partial = true,
                FileType::Directory => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
                    let flags = flags | OFlags::CLOEXEC;
                    match openat(above, entry.file_name(), flags, Mode::empty()) {
                        Ok(below) => self.directory(&below, &path, depth + 1),
                        Err(_) => self.is_partial = true,
                    }
                }
                // What a file of the host's is mounted on is an empty file.
                FileType::RegularFile if !self.planned.contains(&path) => {
                    self.add(&path, u64::try_from(stat.st_size).unwrap_or_default());
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, path: &Path, bytes: u64) {
        // Many programs share these.
        let shared = path.starts_with(".config") || path.starts_with(".local");
        let group: PathBuf = path.components().take(if shared { 2 } else { 1 }).collect();
        let place = self.found.entry(group.clone());
        let place = place.or_insert_with(|| DiscardedPlace {
            is_directory: group != path,
            path: group,
            files: 0,
            bytes: 0,
        });
        place.files += 1;
        place.bytes += bytes;
    }
}

fn is_of_no_interest(path: &Path) -> bool {
    let tools = TOOLCHAINS.iter().map(|it| it.place);
    let caches = CACHES.iter().map(|it| it.place);
    let mut known = OF_NO_INTEREST.iter().copied().chain(tools).chain(caches);
    let is_history = || match path.components().next_back() {
        Some(Component::Normal(name)) => name.to_string_lossy().ends_with("_history"),
        _ => false,
    };
    known.any(|place| !place.is_empty() && path == Path::new(place)) || is_history()
}

fn list(above: impl AsFd, name: &str) -> Option<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Dir::new(openat(above, name, flags, Mode::empty()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::nofollow::pin;

    #[test]
    fn work_is_listed_and_what_programs_keep_is_not() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        for (path, bytes) in [
            ("notes.txt", 10),
            ("x/a/b", 20),
            ("x/c", 1),
            (".config/mine/file", 3),
            (".bash_history", 5),
            (".cache/pip/x", 5),
            (".cargo/.package-cache", 5),
            (".local/bin/uv", 0),
        ] {
            let path = home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes]).unwrap();
        }
        std::os::unix::fs::symlink("/etc", home.join("link")).unwrap();
        let plan = HomePlan {
            home: home.clone(),
            planned: vec![".local/bin/uv".into()],
        };
        let changes = |name: &str| Changes {
            path: name.into(),
            upper: pin(&home.join(name)).unwrap(),
        };
        fs::create_dir_all(home.join(".cache/untouched")).unwrap();
        let dependencies = vec![changes("x"), changes(".cache/untouched")];
        let found = plan.with(pin(&home).unwrap(), dependencies).discarded();
        let place = |path: &str, is_directory, files, bytes| DiscardedPlace {
            path: path.into(),
            is_directory,
            files,
            bytes,
        };
        assert_eq!(
            found,
            Discarded {
                places: vec![
                    place(".config/mine", true, 1, 3),
                    place("notes.txt", false, 1, 10),
                    place("x", true, 2, 21),
                ],
                files: 4,
                is_at_least: false,
                dependencies: vec!["x".into()],
            }
        );
        // In bounds, and past no directory that cannot be listed.
        fs::create_dir_all(home.join("d/".repeat(100))).unwrap();
        let plan = HomePlan {
            home: home.clone(),
            planned: Vec::new(),
        };
        let found = plan.with(pin(&home).unwrap(), Vec::new()).discarded();
        assert!(found.is_at_least);
    }
}
