//! How many descriptors flows may have.
//!
//! The warden has one table of descriptors. A program inside that opens connections until it is full
//! would keep the other threads from theirs: the watch could no longer read and put back what the
//! session plants, the log not go on in a new file. So the flows leave some free.

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _},
    sync::atomic::{AtomicI32, Ordering},
};

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// Descriptors that flows leave to the others, and the part of all that these are at most.
const KEPT: u64 = 512;
const PART: u64 = 4;

/// The first one that is not for flows.
static END: AtomicI32 = AtomicI32::new(i32::MAX);

/// Raises the limit of open files to what the machine permits: a flow needs two or three. Call it
/// when the agent has been started with the limits that the user had.
///
/// If it cannot be raised, fewer flows are served at a time.
pub fn claim_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
    if let Some(most) = getrlimit(Resource::Nofile).current {
        let end = most - KEPT.min(most / PART);
        END.store(i32::try_from(end).unwrap_or(i32::MAX), Ordering::Relaxed);
    }
}

/// A descriptor that was just made, if it is one that flows may have. The kernel gives the lowest
/// that is free, so all below this one are taken.
pub(crate) fn spare<T: AsFd>(made: T) -> io::Result<T> {
    if made.as_fd().as_raw_fd() < END.load(Ordering::Relaxed) {
        Ok(made)
    } else {
        Err(Errno::MFILE.into())
    }
}
