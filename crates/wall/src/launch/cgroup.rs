//! A control group for the sandbox.
//!
//! A program inside can create user and cgroup namespaces, mount the control groups, and do to its
//! own group what the user may do. Where the groups of a login session belong to the user, it could
//! kill or freeze the terminal that it was started from. So the sandbox gets a group below that
//! one, and cannot reach any group above its own.
//!
//! The warden creates the group in the same way that a program inside would use. Where the warden
//! is not allowed to, such a program is not either.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    thread,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, FlockOperation, Mode, OFlags, RawDir, flock, fstat, mkdirat, openat, unlinkat},
    io::Errno,
};
use stockade_sys::{closing::SlowToClose, mount::Tree, namespace::enter_cgroup_namespace};

use super::scope;

/// How the group's name begins; then comes the warden's process number.
const PREFIX: &str = "stockade-";

/// The warden's group in a scope.
const WARDEN: &str = "warden";

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
    pub(super) fn make() -> io::Result<Option<Self>> {
        enter_cgroup_namespace()?;
        Self::below_root()
    }

    /// Makes the group below the root of this thread's cgroup namespace.
    fn below_root() -> io::Result<Option<Self>> {
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

    /// Makes a group that limits the memory of all processes together, if there can be one: below
    /// the caller's own group, or below a scope of the caller's systemd. The group then holds the
    /// sandbox alone, and the warden has another one beside it.
    pub(super) fn with_memory_limit(bytes: u64) -> io::Result<Option<Self>> {
        let limited = |group: Option<Self>| group.filter(|group| group.limit_memory(bytes));
        if let Some(group) = limited(Self::make()?) {
            return Ok(Some(group));
        }
        scope::enter()?;
        enter_cgroup_namespace()?;
        let groups = Tree::control_groups()?;
        // A group that has controllers for those below holds no process itself.
        mkdirat(&groups, WARDEN, Mode::RWXU)?;
        write(&groups, &format!("{WARDEN}/cgroup.procs"), "0")?;
        write(&groups, "cgroup.subtree_control", "+memory")?;
        Ok(limited(Self::below_root()?))
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
        open_file(&self.directory, "cgroup.procs")
    }

    /// Limits the memory of all processes together. Says whether the group has such a limit.
    fn limit_memory(&self, bytes: u64) -> bool {
        let is_limited = write(&self.directory, "memory.max", &bytes.to_string()).is_ok();
        // Without swap accounting the file is not there, and nothing is lost.
        let _ = write(&self.directory, "memory.swap.max", "0");
        is_limited
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

fn open_file(group: impl AsFd, file: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(openat(group, file, flags, Mode::empty())?)
}

fn write(group: impl AsFd, file: &str, text: &str) -> io::Result<()> {
    rustix::io::write(open_file(group, file)?, text.as_bytes())?;
    Ok(())
}

fn open(groups: &Tree, name: &str) -> io::Result<OwnedFd> {
    Ok(openat(groups, name, DIRECTORY, Mode::empty())?)
}
