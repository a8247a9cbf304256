//! The directory that nobody passes by its path.
//!
//! A session writes what it likes into its caches, also a repository whose settings run programs. A link
//! in the workspace must not lead git there, outside. So the directory above all caches has no mode: a
//! path through it ends there. Who has a handle on what lies below needs no path, and mounts stay.
//! Root passes it all the same.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::Path,
    thread,
};

use rustix::{
    fs::{AtFlags, CWD, FlockOperation, Mode, chmodat, flock, fstat},
    io::Errno,
};

use super::{PAUSE, make_directory, open_file};
use crate::nofollow::pin_below;

const CLOSED: &str = "caches";
const ALL: &str = "all";
/// Held as long as the directory is open.
const LOCK: &str = "caches.lock";

/// A handle on the directory of all caches, which is made, if there is none. `state` is Stockade's own.
pub(super) fn make(state: &OwnedFd) -> io::Result<OwnedFd> {
    let _lock = lock(state)?;
    let closed = make_directory(state, CLOSED.as_ref())?;
    let all = make_directory(&closed, ALL.as_ref());
    close(&closed)?;
    all
}

/// The same, if there is one.
pub(super) fn pass(state: &OwnedFd) -> io::Result<OwnedFd> {
    let closed = pin_below(state, Path::new(CLOSED))?;
    let _lock = lock(state)?;
    set_mode(&closed, Mode::RWXU)?;
    let all = pin_below(&closed, Path::new(ALL));
    close(&closed)?;
    all
}

/// Others hold it for a moment only, unless the machine is very busy.
fn lock(state: &OwnedFd) -> io::Result<File> {
    let file = open_file(state, LOCK)?;
    const ATTEMPTS: u32 = 400;
    for _ in 0..ATTEMPTS {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(file);
        }
        thread::sleep(PAUSE);
    }
    Err(Errno::AGAIN.into())
}

fn close(directory: &OwnedFd) -> io::Result<()> {
    set_mode(directory, Mode::empty())?;
    // Not every file system has modes.
    match Mode::from_raw_mode(fstat(directory)?.st_mode).is_empty() {
        true => Ok(()),
        false => Err(Errno::NOTSUP.into()),
    }
}

/// A handle that is only a place cannot be changed by itself, but under its name.
fn set_mode(directory: &OwnedFd, mode: Mode) -> io::Result<()> {
    let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
    Ok(chmodat(CWD, name, mode, AtFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::nofollow::pin;

    #[test]
    fn nobody_passes_but_by_a_handle() {
        let directory = tempfile::tempdir().unwrap();
        let state = pin(&fs::canonicalize(directory.path()).unwrap()).unwrap();
        assert_eq!(
            pass(&state).unwrap_err().kind(),
            io::ErrorKind::NotFound,
            "none is made"
        );
        let closed = directory.path().join(CLOSED);
        let mode = || fs::metadata(&closed).unwrap().permissions().mode() & 0o777;
        for all in [make(&state).unwrap(), pass(&state).unwrap()] {
            assert_eq!(mode(), 0);
            let made = make_directory(&all, "key".as_ref());
            made.expect("what has a handle needs no path");
            // To root, modes are nothing.
            let is_root = rustix::process::geteuid().is_root();
            assert_eq!(closed.join(ALL).exists(), is_root);
        }
        // After a process that died in between.
        fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
        assert!(closed.join(ALL).exists(), "positive control");
        pass(&state).unwrap();
        assert_eq!(mode(), 0);
        fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    }
}
