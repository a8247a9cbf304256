//! Errors that say nothing about what was tried: something that the user or the machine has only
//! so many of has run out.

use std::io;

use crate::namespace::LimitReached;

/// What has run out, and what helps. Nothing for other errors.
pub fn advice(error: &io::Error) -> Option<String> {
    let limit = error.get_ref().and_then(|inner| inner.downcast_ref());
    if let Some(LimitReached { setting }) = limit {
        return Some(format!("raise it: sudo sysctl user.{setting}=10000"));
    }
    let advice = match error.raw_os_error()? {
        libc::EMFILE => "a process may open too few files here: raise the limit, ulimit -n 1024",
        libc::ENFILE => "the machine has too many files open: close some programs",
        // Of clone(2): what else says so is tried again, and does not come here.
        libc::EAGAIN => {
            "you have as many processes and threads as you may: end some, or raise the limit \
             (ulimit -u, or that of the container)"
        }
        libc::ENOMEM => "the machine, or the container, has no memory left: end some programs",
        _ => return None,
    };
    Some(advice.to_owned())
}
