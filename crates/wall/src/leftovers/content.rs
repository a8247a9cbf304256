//! The content of a file at one moment: enough to see that it changed, and to restore it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use super::bounds::Bounds;
use crate::nofollow;

/// How deep a directory is looked into.
const DEEPEST: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Compared by its bytes: git writes files anew that have not changed.
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    /// The files in it, at any depth.
    Directory(BTreeMap<PathBuf, Fingerprint>),
    /// A long file, or anything else.
    Other(Fingerprint),
}

/// The time of the last change cannot be set, so who changes a file changes this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Writing these down and reading them again, for sessions that share a baseline and for what is
/// kept: numbers and byte strings, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Encoder(pub(super) Vec<u8>);

impl Encoder {
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(crate) fn path(&mut self, path: &Path) {
        self.bytes(path.as_os_str().as_bytes());
    }

    fn fingerprint(&mut self, fingerprint: &Fingerprint) {
        let Fingerprint {
            inode,
            size,
            changed,
        } = fingerprint;
        let (seconds, nanoseconds) = changed;
        for number in [
            *inode,
            *size,
            seconds.cast_unsigned(),
            nanoseconds.cast_unsigned(),
        ] {
            self.number(number);
        }
    }

    pub(crate) fn content(&mut self, content: Option<&Content>) {
        match content {
            None => self.number(0),
            Some(Content::File { bytes, mode }) => {
                self.number(1);
                self.number(u64::from(*mode));
                self.bytes(bytes);
            }
            Some(Content::Link(to)) => {
                self.number(2);
                self.path(to);
            }
            Some(Content::Directory(files)) => {
                self.number(3);
                self.number(files.len() as u64);
                for (name, fingerprint) in files {
                    self.path(name);
                    self.fingerprint(fingerprint);
                }
            }
            Some(Content::Other(fingerprint)) => {
                self.number(4);
                self.fingerprint(fingerprint);
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Decoder<'a>(pub(super) &'a [u8]);

impl Decoder<'_> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    pub(crate) fn path(&mut self) -> Option<PathBuf> {
        Some(OsString::from_vec(self.bytes()?).into())
    }

    fn fingerprint(&mut self) -> Option<Fingerprint> {
        Some(Fingerprint {
            inode: self.number()?,
            size: self.number()?,
            changed: (self.number()?.cast_signed(), self.number()?.cast_signed()),
        })
    }

    /// The inner nothing is that of a file that is not there.
    #[expect(
        clippy::option_option,
        reason = "a file that is not there is a content, too"
    )]
    pub(crate) fn content(&mut self) -> Option<Option<Content>> {
        Some(Some(match self.number()? {
            0 => return Some(None),
            1 => Content::File {
                mode: u32::try_from(self.number()?).ok()?,
                bytes: self.bytes()?,
            },
            2 => Content::Link(self.path()?),
            3 => {
                let count = self.number()?;
                let files = (0..count).map(|_| Some((self.path()?, self.fingerprint()?)));
                Content::Directory(files.collect::<Option<_>>()?)
            }
            4 => Content::Other(self.fingerprint()?),
            _ => return None,
        }))
    }
}
