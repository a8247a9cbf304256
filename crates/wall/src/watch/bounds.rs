//! How long and how far a session's traces are looked for. What they are looked for in may have
//! been made to take forever.

use std::{
    cell::Cell,
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The time and the number of files that a look may take, and who may end it before.
pub(super) struct Bounds<'a> {
    until: Instant,
    files: Cell<usize>,
    is_interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Bounds<'a> {
    pub(super) fn new(time: Duration, files: usize, is_interrupted: &'a dyn Fn() -> bool) -> Self {
        Self {
            until: Instant::now() + time,
            files: files.into(),
            is_interrupted,
        }
    }

    /// Takes one more file into account. Whether that was one too many.
    pub(super) fn are_reached(&self) -> bool {
        let left = self.files.get();
        // The clock and signals are looked at now and then.
        if left > 0 && !left.is_multiple_of(64) {
            self.files.set(left - 1);
            return false;
        }
        if left == 0 || Instant::now() >= self.until || (self.is_interrupted)() {
            self.files.set(0);
            return true;
        }
        self.files.set(left - 1);
        false
    }
}

/// What was not looked at, and why.
#[derive(Debug, Default, Clone)]
pub(super) struct Unseen(pub(super) BTreeSet<(PathBuf, &'static str)>);

impl Unseen {
    pub(super) fn add(&mut self, path: &Path, why: &'static str) {
        const MOST: usize = 64;
        if self.0.len() < MOST {
            self.0.insert((path.to_owned(), why));
        }
    }
}
