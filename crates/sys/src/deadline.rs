//! Waiting for a descriptor, but not for longer than is reasonable.

use std::{io, os::fd::AsFd, time::Instant};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

/// Waits until something can be read, or the other end is gone.
///
/// # Errors
/// [`TimedOut`](io::ErrorKind::TimedOut) if neither happens before the deadline.
pub fn wait_readable(fd: impl AsFd, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
