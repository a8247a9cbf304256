//! Files of the workspace that other directories have, too, by hard links: uv, pnpm, bun and conda link
//! what they install to their caches, and so to every other project; `git clone` links objects. Who
//! writes to such a file writes to all of them.
//!
//! A short look is enough for what package managers made alone. A session that could write the
//! directory before may have filled it, so that the look ends among other files. So where the user
//! has a store that files can be linked to, all is looked at, and what cannot be counts as shared. So
//! are directories that links lead to, which a session may have made, too.

mod links;
mod places;
mod search;
mod stores;
#[cfg(test)]
mod tests;

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

pub(super) use self::stores::{By, has_store};
use self::{places::Places, search::Search};

/// What is shared by hard links, as far as a look shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedFiles {
    /// Directories of installed dependencies, and what links in them lead to. None lies in another.
    pub dependencies: Vec<PathBuf>,
    /// Directories of git's objects, and others in which files are shared that the command may change.
    pub objects: Vec<PathBuf>,
    /// Directories that could not be looked at completely.
    pub unseen: Vec<PathBuf>,
    /// Links that lead elsewhere for each process, so that nobody knows where files are installed.
    pub astray: Vec<PathBuf>,
}

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
/// Takes one to two seconds, if the disk is fast.
const WHOLE: Look = Look {
    entries: 250_000,
    files: usize::MAX,
};

/// How long the start may look altogether. 50 000 files take 0.3 s.
const LONGEST: Duration = Duration::from_secs(2);

impl SharedFiles {
    /// Those of directories that the command can write.
    pub(super) fn find<'a>(
        directories: impl Iterator<Item = &'a PathBuf>,
        writable: &[PathBuf],
        has_store: &dyn Fn(&Path, By) -> bool,
    ) -> Self {
        Self::find_until(Instant::now() + LONGEST, directories, writable, has_store)
    }

    /// What there is no time for counts as shared, and is told.
    fn find_until<'a>(
        until: Instant,
        directories: impl Iterator<Item = &'a PathBuf>,
        writable: &[PathBuf],
        has_store: &dyn Fn(&Path, By) -> bool,
    ) -> Self {
        let mut search = Search::new(writable, has_store, until);
        let mut objects = Vec::new();
        for directory in directories {
            let has_store = has_store(directory, By::Link);
            search.add(Places::find(directory, has_store, writable, until));
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
