//! What a file or directory is at some moment, as far as it takes to see that it changed.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::Change;
use crate::beneath;

/// How many files of a directory are looked at, and how deep.
const MOST_FILES: usize = 512;
const DEEPEST: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    /// Compared by its contents: git writes files anew that have not changed.
    File(Vec<u8>),
    Directory(BTreeMap<PathBuf, Fingerprint>),
    /// A link, a long file, or anything else.
    Special(Fingerprint),
}

/// The time of the last change cannot be set, so who changes a file changes this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Fingerprint {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl State {
    pub(super) fn of(path: &Path) -> Self {
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return Self::Absent;
        };
        if metadata.is_dir() {
            let mut files = BTreeMap::new();
            list(path, Path::new(""), 0, &mut files);
            return Self::Directory(files);
        }
        match beneath::read(path) {
            Ok(contents) => Self::File(contents),
            Err(_) => Self::Special(Fingerprint::of(&metadata)),
        }
    }

    /// What has happened if this has become `after`, if anything did that matters: what was
    /// removed does not run.
    pub(super) fn change_to(&self, after: &Self) -> Option<Change> {
        match (self, after) {
            (_, Self::Absent) => None,
            (Self::Absent, _) => Some(Change::Appeared),
            (before, after) if before == after => None,
            _ => Some(Change::Changed),
        }
    }
}

fn list(directory: &Path, below: &Path, depth: usize, files: &mut BTreeMap<PathBuf, Fingerprint>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if files.len() >= MOST_FILES {
            return;
        }
        let name = below.join(entry.file_name());
        if metadata.is_dir() && depth < DEEPEST {
            list(&entry.path(), &name, depth + 1, files);
        } else {
            files.insert(name, Fingerprint::of(&metadata));
        }
    }
}
