//! Messages to the user, on standard error.
//!
//! The command may have the same pipe or terminal, and may have filled it, or changed it so that it
//! refuses what it cannot take at once. `eprintln!` then panics, and with it goes what else was to be
//! said, and the exit code.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{event::PollFlags, io::Errno, net::SendFlags, stdio::stderr};

use crate::deadline::poll_until;

/// How long a stream that refuses may take nothing. One that waits is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Nobody reads any more: later messages wait no more.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// The reader of a socket has taken nothing for long.
static IS_IMPATIENT: AtomicBool = AtomicBool::new(false);

/// From now on, a socket that takes nothing is not waited for longer than a stream that refuses.
pub fn wait_no_longer() {
    IS_IMPATIENT.store(true, Ordering::Relaxed);
}

/// Writes a text. If nobody can be told, nobody is.
pub fn tell(text: &str) {
    let mut rest = text.as_bytes();
    let mut deadline = Instant::now() + PATIENCE;
    while !rest.is_empty() {
        match write(stderr(), rest) {
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

fn write(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    if IS_IMPATIENT.load(Ordering::Relaxed) {
        let sent = rustix::net::send(to, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        if sent != Err(Errno::NOTSOCK) {
            return sent;
        }
    }
    rustix::io::write(to, bytes)
}

fn takes_more(deadline: Instant) -> bool {
    let ready = !IS_STUCK.load(Ordering::Relaxed)
        && Instant::now() < deadline
        && poll_until(stderr(), PollFlags::OUT, deadline).is_ok_and(|it| !it.is_empty());
    IS_STUCK.store(!ready, Ordering::Relaxed);
    ready
}
