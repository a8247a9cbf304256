//! Waiting for a state instead of sleeping.
//!
//! A server or capture appends what it saw to a [`Seen`] log; a test waits on
//! that log until a condition holds. Every wait has a limit, and the error of
//! an overdue wait shows what was seen instead.

use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How long a helper waits when the caller names no limit. Generous, because
/// it is only ever used up by a failing test on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// An append-only log shared between the thread that observes and the test.
pub struct Seen<T>(Arc<Log<T>>);

struct Log<T> {
    entries: Mutex<Vec<T>>,
    grew: Condvar,
}

impl<T> Clone for Seen<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(Arc::new(Log {
            entries: Mutex::new(Vec::new()),
            grew: Condvar::new(),
        }))
    }
}

impl<T: Clone + Debug> Debug for Seen<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

impl<T: Clone + Debug> Seen<T> {
    pub(crate) fn push(&self, entry: T) {
        self.lock().push(entry);
        self.0.grew.notify_all();
    }

    pub fn all(&self) -> Vec<T> {
        self.lock().clone()
    }

    pub fn count(&self) -> usize {
        self.lock().len()
    }

    pub fn count_where(&self, matches: impl Fn(&T) -> bool) -> usize {
        self.lock().iter().filter(|entry| matches(entry)).count()
    }

    /// Forgets what was seen so far, to count from here on.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Waits until the log holds at least `count` entries and returns them all.
    pub fn wait_for(&self, count: usize) -> Result<Vec<T>> {
        self.wait_until(PATIENCE, |entries| entries.len() >= count)
    }

    pub fn wait_until(&self, limit: Duration, condition: impl Fn(&[T]) -> bool) -> Result<Vec<T>> {
        let (entries, _) = self
            .0
            .grew
            .wait_timeout_while(self.lock(), limit, |entries| !condition(entries))
            .unwrap_or_else(PoisonError::into_inner);
        if condition(&entries) {
            return Ok(entries.clone());
        }
        Err(Error::Overdue {
            what: "what the test waited for".to_owned(),
            limit,
            seen: format!("seen: {entries:?}"),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        // A panicking test poisons the log of a server that is still running.
        // The log is a plain list: it is whole at every moment.
        self.0
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls a condition that nothing announces (the process table, a file) until
/// it holds.
pub fn eventually(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() >= deadline {
            return Err(Error::Overdue {
                what: what.to_owned(),
                limit,
                seen: "polled until the end".to_owned(),
            });
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_as_soon_as_the_condition_holds() {
        let seen = Seen::default();
        let writer = seen.clone();
        let thread = thread::spawn(move || (0..3).for_each(|n| writer.push(n)));
        assert_eq!(seen.wait_for(3).unwrap(), [0, 1, 2]);
        thread.join().unwrap();
    }

    #[test]
    fn an_overdue_wait_tells_what_was_seen_instead() {
        let seen = Seen::default();
        seen.push("something else");
        let error = seen
            .wait_until(Duration::from_millis(1), |entries| entries.len() == 2)
            .unwrap_err();
        assert!(error.to_string().contains("something else"), "{error}");
    }
}
