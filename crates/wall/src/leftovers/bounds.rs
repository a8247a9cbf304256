//! How long and how far the search for leftovers goes. A hostile tree may be made to take
//! forever.

use std::{
    cell::Cell,
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use stockade_sys::process::time_waited_of_thread;

use crate::nofollow;

/// The bytes of indexes that one look reads. A file may be long and take no space.
const MOST_BYTES: u64 = 512 << 20;

/// How much longer a look takes at most on a machine whose processors others need.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The time and the number of files that a look may take, and who may end it before. It is of the thread that
/// makes it.
pub(crate) struct Bounds<'a> {
    time: TimeLimit,
    files: Cell<usize>,
    bytes: Cell<u64>,
    is_interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Bounds<'a> {
    pub(crate) fn new(time: Duration, files: usize, is_interrupted: &'a dyn Fn() -> bool) -> Self {
        Self {
            time: TimeLimit::new(time),
            files: files.into(),
            bytes: MOST_BYTES.into(),
            is_interrupted,
        }
    }

    /// Half of what is left, for one who must not use up all of it.
    pub(crate) fn half(&self) -> Self {
        Self {
            time: TimeLimit::new(self.time.left() / 2),
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
        if left == 0 || self.time.left().is_zero() || is_interrupted() {
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

/// A time limit that does not count the time in which others have the processors.
struct TimeLimit {
    until: Cell<Instant>,
    begun: Instant,
    time: Duration,
    waited: Option<Duration>,
}

impl TimeLimit {
    fn new(time: Duration) -> Self {
        let begun = Instant::now();
        Self {
            until: (begun + time).into(),
            begun,
            time,
            waited: time_waited_of_thread(),
        }
    }

    fn left(&self) -> Duration {
        let now = Instant::now();
        if now >= self.until.get() {
            let waited = self.waited.and_then(|before| {
                let waited = time_waited_of_thread()?;
                Some(waited.saturating_sub(before))
            });
            let longer = waited.unwrap_or_default().min(LONGEST_WAIT);
            self.until.set(self.begun + self.time + longer);
        }
        self.until.get().saturating_duration_since(now)
    }
}

/// What was not looked at, and why.
#[derive(Debug, Default, Clone)]
pub(crate) struct Unseen(pub(super) BTreeSet<(PathBuf, &'static str)>);

impl Unseen {
    pub(crate) fn has(&self, path: &Path, why: &'static str) -> bool {
        self.0.iter().any(|(it, said)| it == path && *said == why)
    }

    pub(crate) fn add(&mut self, path: &Path, why: &'static str) {
        const MOST: usize = 64;
        if self.0.len() < MOST {
            self.0.insert((path.to_owned(), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
        thread,
    };

    use stockade_sys::process::cpu_time_of_thread;

    use super::*;

    /// How long this thread ran until the limit was reached.
    fn ran_within(time: Duration) -> Duration {
        let begun = cpu_time_of_thread().expect("a clock");
        let limit = TimeLimit::new(time);
        while !limit.left().is_zero() {}
        cpu_time_of_thread().expect("a clock") - begun
    }

    #[test]
    fn time_in_which_others_have_the_processors_does_not_count() {
        const TIME: Duration = Duration::from_millis(100);
        let processors = thread::available_parallelism().expect("a number").get();
        let is_over = AtomicBool::new(false);
        let others = AtomicUsize::new(0);
        let (ran, waited) = thread::scope(|scope| {
            for _ in 0..4 * processors {
                scope.spawn(|| {
                    others.fetch_add(1, Ordering::Relaxed);
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            while others.load(Ordering::Relaxed) < 4 * processors {
                thread::yield_now();
            }
            let before = time_waited_of_thread().expect("the kernel counts it");
            let ran = ran_within(TIME);
            let waited = time_waited_of_thread().expect("the kernel counts it") - before;
            is_over.store(true, Ordering::Relaxed);
            (ran, waited)
        });
        // Positive control: others had the processors.
        assert!(waited > TIME, "{waited:?}");
        // By the clock alone it would have run for a fifth of it.
        assert!(
            ran > TIME / 2 || waited >= LONGEST_WAIT,
            "{ran:?} {waited:?}"
        );
        assert!(ran < TIME * 2, "{ran:?}");
    }
}
