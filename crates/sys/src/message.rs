//! Messages to the user, on standard error.
//!
//! The command may have the same pipe or terminal, and may have filled it, or changed it so that it
//! refuses what it cannot take at once. `eprintln!` then panics, and with it goes what else was to be
//! said, and the exit code.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{event::PollFlags, io::Errno, stdio::stderr};

use crate::deadline::poll_until;

/// How long a stream that refuses may take nothing. One that waits is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Nobody reads any more: later messages wait no more.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// Writes a text. If nobody can be told, nobody is.
pub fn tell(text: &str) {
    let mut rest = text.as_bytes();
    let mut deadline = Instant::now() + PATIENCE;
    while !rest.is_empty() {
        match rustix::io::write(stderr(), rest) {
            Ok(length) => {
                rest = rest.get(length..).unwrap_or_default();
                deadline = Instant::now() + PATIENCE;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if takes_more(deadline) => {}
            Err(_) => return,
        }
    }
}

fn takes_more(deadline: Instant) -> bool {
    let ready = !IS_STUCK.load(Ordering::Relaxed)
        && Instant::now() < deadline
        && poll_until(stderr(), PollFlags::OUT, deadline).is_ok_and(|it| !it.is_empty());
    IS_STUCK.store(!ready, Ordering::Relaxed);
    ready
}
