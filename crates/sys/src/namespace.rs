//! User, network and mount namespaces.
//!
//! The functions move the caller for good: an unprivileged process that left a
//! namespace has no authority to come back.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::fs::MetadataExt as _,
    },
};

use rustix::{
    io::Errno,
    mount::MountPropagationFlags,
    thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags},
};

/// Who the process is on the host, read before it enters any namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub uid: u32,
    pub gid: u32,
}

impl Identity {
    pub fn current() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }
}

/// Which step of entering a user namespace the kernel refused.
#[derive(Debug, thiserror::Error)]
pub enum UserNamespaceError {
    #[error("the process already has other threads")]
    Threads,
    #[error("unshare(CLONE_NEWUSER): {0}")]
    Create(io::Error),
    #[error("writing {file}: {error}")]
    Map {
        file: &'static str,
        error: io::Error,
    },
}

/// There are as many namespaces of a kind as the kernel's setting allows. The kernel's own error is
/// that of a full disk.
#[derive(Debug, thiserror::Error)]
#[error("the limit user.{setting} is reached or zero")]
pub struct LimitReached {
    pub setting: &'static str,
}

/// Puts the whole process into a new user namespace in which its user and group
/// keep their numbers, and in which it holds every capability.
///
/// # Errors
/// If the process has more than one thread, or the kernel refuses.
pub fn enter_user_namespace(identity: Identity) -> Result<(), UserNamespaceError> {
    // The kernel answers a threaded caller with a bare EINVAL: say it better.
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads != 1 {
        return Err(UserNamespaceError::Threads);
    }
    unshare(UnshareFlags::NEWUSER).map_err(UserNamespaceError::Create)?;

    let Identity { uid, gid } = identity;
    // Without CAP_SETGID outside, the kernel wants setgroups(2) gone before it takes
    // a group map: otherwise a user could drop a group that denies him a file.
    write_map("/proc/self/setgroups", "deny".to_owned())?;
    write_map("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write_map("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Moves the calling thread, and it alone, into a new network namespace. Sockets it
/// makes from now on, and processes it starts, belong there.
///
/// # Errors
/// If the kernel refuses, e.g. because the limit of network namespaces is reached.
pub fn enter_network_namespace() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

/// A network namespace, for another thread to enter.
#[derive(Debug)]
pub struct Network(File);

impl Network {
    /// That of the calling thread.
    ///
    /// # Errors
    /// If there are no descriptors left, or `/proc` is not there.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// What messages to the kernel name it by.
    pub(crate) fn descriptor(&self) -> u32 {
        self.0.as_raw_fd().cast_unsigned()
    }

    /// Moves the calling thread, and it alone, there, if it is elsewhere.
    ///
    /// # Errors
    /// If the thread has no authority over it.
    pub fn enter(&self) -> io::Result<()> {
        let [here, there] = [Self::current()?.0.metadata()?, self.0.metadata()?];
        if (here.dev(), here.ino()) != (there.dev(), there.ino()) {
            let kind = Some(LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(self.0.as_fd(), kind)?;
        }
        Ok(())
    }
}

/// Moves the calling thread, and it alone, into a copy of its mount namespace. What is
/// mounted from now on is seen by this thread and by what it starts.
///
/// # Errors
/// If the thread has no authority over the namespaces that it leaves.
pub fn enter_mount_namespace() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    // What is mounted in the original from now on would appear in the copy, writable also in what
    // is read-only there. And a copy that root makes would show its mounts to the original.
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", flags)?;
    Ok(())
}

/// Whether the calling thread may mount, and make namespaces other than user namespaces.
pub fn has_authority() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Moves the calling thread, and it alone, into a cgroup namespace, whose root is the control
/// group that it is in.
///
/// # Errors
/// If the thread has no authority over the namespace that it leaves.
pub fn enter_cgroup_namespace() -> io::Result<()> {
    unshare(UnshareFlags::NEWCGROUP)
}

/// Makes the process unreadable through `/proc` and ptrace for others of its user,
/// and keeps it from dumping core.
pub fn become_undumpable() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

fn write_map(file: &'static str, content: String) -> Result<(), UserNamespaceError> {
    fs::write(file, content).map_err(|error| UserNamespaceError::Map { file, error })
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: unshare is unsafe only for CLONE_FILES, which would give this thread a
    // descriptor table of its own under the OwnedFds of other threads. Every caller
    // is in this module, and none passes it.
    let unshared = unsafe { rustix::thread::unshare_unsafe(flags) };
    unshared.map_err(|error| match error {
        Errno::NOSPC | Errno::USERS => io::Error::other(LimitReached {
            setting: limit_of(flags),
        }),
        error => error.into(),
    })
}

/// The setting that limits namespaces of a kind.
fn limit_of(flags: UnshareFlags) -> &'static str {
    match flags {
        UnshareFlags::NEWUSER => "max_user_namespaces",
        UnshareFlags::NEWNET => "max_net_namespaces",
        UnshareFlags::NEWNS => "max_mnt_namespaces",
        _ => "max_cgroup_namespaces",
    }
}
