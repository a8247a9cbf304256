//! The content of a file at one moment: enough to see that it changed, and to restore it.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::bounds::Bounds;
use crate::{
    encoding::{bytes, map},
    nofollow,
};

/// How deep a directory is looked into.
const DEEPEST: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// Compared by its bytes: git writes files anew that have not changed.
    File {
        #[serde(with = "bytes")]
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(#[serde(with = "bytes")] PathBuf),
    /// The files in it, at any depth.
    Directory(#[serde(with = "map")] BTreeMap<PathBuf, Fingerprint>),
    /// A long file, or anything else.
    Other(Fingerprint),
}

/// The time of the last change cannot be set, so who changes a file changes this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
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

impl Content {
    /// Nothing if nothing is there.
    pub(crate) fn of(path: &Path, bounds: &Bounds<'_>) -> Option<Self> {
        let metadata = fs::symlink_metadata(path).ok()?;
        if metadata.is_symlink() {
            return fs::read_link(path).ok().map(Self::Link);
        }
        if metadata.is_dir() {
            let mut files = BTreeMap::new();
            list(path, Path::new(""), DEEPEST, bounds, &mut files);
            return Some(Self::Directory(files));
        }
        Some(match nofollow::read(path) {
            Ok(bytes) => Self::File {
                bytes,
                mode: metadata.permissions().mode() & 0o777,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => Self::Other(Fingerprint::of(&metadata)),
        })
    }

    /// That of a directory whose own time of change stands for all that is in it.
    pub(crate) fn of_unlisted(directory: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(directory).ok()?;
        let own = (PathBuf::from("."), Fingerprint::of(&metadata));
        metadata.is_dir().then(|| Self::Directory([own].into()))
    }

    /// Whether it is a directory that stands for all that is in it.
    pub(super) fn is_unlisted(&self) -> bool {
        match self {
            Self::Directory(files) => files.len() == 1 && files.contains_key(Path::new(".")),
            _ => false,
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::File { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Whether the same runs or is obeyed. The mode of a file says whether it runs at all.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        const EXECUTABLE: u32 = 0o111;
        match (self, other) {
            (
                Self::File { bytes, mode },
                Self::File {
                    bytes: others,
                    mode: other,
                },
            ) => bytes == others && (mode & EXECUTABLE != 0) == (other & EXECUTABLE != 0),
            (one, other) => one == other,
        }
    }
}

fn list(
    directory: &Path,
    below: &Path,
    depth: usize,
    bounds: &Bounds<'_>,
    files: &mut BTreeMap<PathBuf, Fingerprint>,
) {
    let Ok(entries) = fs::read_dir(directory) else {
        // Its own time of change stands for all that is in it.
        if let Ok(metadata) = fs::symlink_metadata(directory) {
            files.insert(below.join("."), Fingerprint::of(&metadata));
        }
        return;
    };
    for entry in entries.flatten() {
        if bounds.are_reached() {
            return;
        }
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let name = below.join(entry.file_name());
        if metadata.is_dir() && depth > 0 {
            list(&entry.path(), &name, depth - 1, bounds, files);
        } else {
            files.insert(name, Fingerprint::of(&metadata));
        }
    }
}
