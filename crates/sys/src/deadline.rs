//! Waiting for a descriptor, but not forever.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

/// Waits until `events` happen to a descriptor. Returns what happened, which is nothing if the
/// deadline came first.
///
/// # Errors
/// If the kernel cannot wait, or not for so long.
pub fn poll_until(
    fd: BorrowedFd<'_>,
    events: PollFlags,
    deadline: Instant,
) -> io::Result<PollFlags> {
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&left)) {
            Ok(_) => return Ok(fds[0].revents()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until something can be read, or the other end is gone.
///
/// # Errors
/// [`TimedOut`](io::ErrorKind::TimedOut) if neither happens before the deadline.
pub fn wait_readable(fd: impl AsFd, deadline: Instant) -> io::Result<()> {
    if poll_until(fd.as_fd(), PollFlags::IN, deadline)?.is_empty() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(())
}
