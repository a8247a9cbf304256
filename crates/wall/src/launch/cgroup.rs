//! A control group for the sandbox.
//!
//! A program inside can create user and cgroup namespaces, mount the control groups, and do to its
//! own group what the user may do. Where the groups of a login session belong to the user, it could
//! kill or freeze the terminal that it was started from. So the sandbox gets a group below that
//! one, and cannot reach any group above its own.
//!
//! The warden creates the group in the same way that a program inside would use. Where the warden
//! is not allowed to, such a program is not either.

use std::{io, os::fd::OwnedFd, thread, time::Duration};

use rustix::{
    fs::{AtFlags, FlockOperation, Mode, OFlags, RawDir, flock, fstat, mkdirat, openat, unlinkat},
    io::Errno,
};
use stockade_sys::{closing::SlowToClose, mount::Tree, namespace::enter_cgroup_namespace};

/// How the group's name begins; then comes the warden's process number.
const PREFIX: &str = "stockade-";

/// By whoever it may be.
const WRITABLE: Mode = Mode::WUSR.union(Mode::WGRP).union(Mode::WOTH);

/// The group. Dropping it removes it, once it is empty.
#[derive(Debug)]
pub(crate) struct Cgroup {
    /// The groups, from the caller's own down.
    groups: SlowToClose<Tree>,
    name: String,
    /// The group itself. Its lock says that it is in use also while nobody is in it.
    directory: OwnedFd,
}

impl Cgroup {
    /// Makes the group, if this user may. The calling thread moves into a cgroup namespace.
    pub(crate) fn make() -> io::Result<Option<Self>> {
        enter_cgroup_namespace()?;
        // Another warden that cleans up may take ours for left over before it is locked.
        for _ in 0..8 {
            match Self::attempt() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
        Self::attempt()
    }

    fn attempt() -> io::Result<Option<Self>> {
        let groups = SlowToClose::new(Tree::control_groups()?)?;
        remove_stale(&groups);
        // The root of all groups. Who is root could make one, but not remove it in the end,
        // having given up the power to.
        if Mode::from_raw_mode(fstat(&groups)?.st_mode) & WRITABLE == Mode::empty() {
            return Ok(None);
        }
        let name = format!("{PREFIX}{}", std::process::id());
        match mkdirat(&groups, name.as_str(), Mode::RWXU) {
            // One of a warden that was killed, in another namespace of processes.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::ACCESS | Errno::PERM) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let directory = open(&groups, &name)?;
        flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        // Locked, but is it still there?
        open(&groups, &name)?;
        Ok(Some(Self {
            groups,
            name,
            directory,
        }))
    }

    /// The list of its processes, to be joined by writing to it.
    pub(crate) fn processes(&self) -> io::Result<OwnedFd> {
        self.open("cgroup.procs")
    }

    /// Limits the memory of all processes together. Says whether the group has such a limit.
    pub(crate) fn limit_memory(&self, bytes: u64) -> bool {
        let limit = |file: &str, text: &str| {
            let file = self.open(file)?;
            rustix::io::write(file, text.as_bytes())?;
            io::Result::Ok(())
        };
        let is_limited = limit("memory.max", &bytes.to_string()).is_ok();
        // Without swap accounting the file is not there, and nothing is lost.
        let _ = limit("memory.swap.max", "0");
        is_limited
    }

    fn open(&self, file: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(openat(&self.directory, file, flags, Mode::empty())?)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The last process may still be on its way out of the kernel: a moment, or a tenth of
        // a second under load.
        for doubled in 0..11 {
            match unlinkat(&self.groups, self.name.as_str(), AtFlags::REMOVEDIR) {
                Err(Errno::BUSY) => thread::sleep(Duration::from_micros(50 << doubled)),
                _ => return,
            }
        }
    }
}

/// Removes groups of wardens that were killed.
fn remove_stale(groups: &Tree) {
    let Ok(directory) = open(groups, ".") else {
        return;
    };
    let mut buffer = Vec::with_capacity(4096);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        if name.to_bytes().starts_with(PREFIX.as_bytes())
            && let Ok(group) = openat(groups, name, DIRECTORY, Mode::empty())
            && flock(&group, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = unlinkat(groups, name, AtFlags::REMOVEDIR);
        }
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

fn open(groups: &Tree, name: &str) -> io::Result<OwnedFd> {
    Ok(openat(groups, name, DIRECTORY, Mode::empty())?)
}
