//! How long and how far the search for leftovers goes. A hostile tree may be made to take
//! forever.

use std::{
    cell::Cell,
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::nofollow;

/// The bytes of indexes that one look reads. A file may be long and take no space.
const MOST_BYTES: u64 = 512 << 20;

/// The time and the number of files that a look may take, and who may end it before.
pub(crate) struct Bounds<'a> {
    until: Instant,
    files: Cell<usize>,
    bytes: Cell<u64>,
    is_interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Bounds<'a> {
    pub(crate) fn new(time: Duration, files: usize, is_interrupted: &'a dyn Fn() -> bool) -> Self {
        Self {
            until: Instant::now() + time,
            files: files.into(),
            bytes: MOST_BYTES.into(),
            is_interrupted,
        }
    }

    /// Half of what is left, for one who must not use up all of it.
    pub(crate) fn half(&self) -> Self {
        let left = self.until.saturating_duration_since(Instant::now());
        Self {
            until: Instant::now() + left / 2,
            files: (self.files.get() / 2).into(),
            bytes: (self.bytes.get() / 2).into(),
            is_interrupted: self.is_interrupted,
        }
    }

    /// Takes one more file into account. Whether that was one too many.
    pub(crate) fn are_reached(&self) -> bool {
        let left = self.files.get();
        // Signals are looked at now and then. The clock is each time: what comes after may be long.
        let is_interrupted = || left.is_multiple_of(64) && (self.is_interrupted)();
        if left == 0 || Instant::now() >= self.until || is_interrupted() {
            self.files.set(0);
            return true;
        }
        self.files.set(left - 1);
        false
    }

    /// Takes so many bytes of memory into account. Whether there are as many left.
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        let left = self.bytes.get().checked_sub(bytes as u64);
        self.bytes.set(left.unwrap_or_default());
        left.is_some()
    }

    /// The contents of a file that may be long, if there is time for it.
    pub(crate) fn read(&self, path: &Path, longest: u64) -> io::Result<Vec<u8>> {
        if self.are_reached() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let contents = nofollow::read_at_most(path, longest.min(self.bytes.get()));
        let read = match &contents {
            Ok(contents) => contents.len() as u64,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            // As much as was read before it turned out to be too long.
            Err(_) => longest,
        };
        self.bytes.set(self.bytes.get().saturating_sub(read));
        contents
    }
}

/// What was not looked at, and why.
#[derive(Debug, Default, Clone)]
pub(crate) struct Unseen(pub(super) BTreeSet<(PathBuf, &'static str)>);

impl Unseen {
    pub(crate) fn add(&mut self, path: &Path, why: &'static str) {
        const MOST: usize = 64;
        if self.0.len() < MOST {
            self.0.insert((path.to_owned(), why));
        }
    }
}
