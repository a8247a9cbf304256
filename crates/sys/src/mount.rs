//! Mounts by descriptor.
//!
//! A mount that is asked for by path is made wherever the path leads at that moment, and
//! who can write on the way decides where that is. Here both ends are descriptors: what is
//! shown is what was opened, and it is shown at what was opened. Needs Linux 5.12.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use nix::errno::Errno;
use rustix::{
    fs::CWD,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
    },
};

/// Of a file system whose programs and devices have no power.
const INERT: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Mounts that are attached nowhere yet, or, after [`Tree::attach`], where that put them.
/// They vanish with the descriptor unless they are attached.
#[derive(Debug)]
pub struct Tree(OwnedFd);

impl Tree {
    /// A second view of a file or directory, with everything that is mounted below it.
    ///
    /// # Errors
    /// If this thread has no authority over its mount namespace.
    pub fn view(place: impl AsFd) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE;
        Ok(Self(open_tree(place, c"", flags)?))
    }

    /// An empty file system in memory, of at most so many bytes; by default the kernel's
    /// limit, which is half of the memory.
    ///
    /// # Errors
    /// If this thread has no authority over its mount namespace.
    pub fn memory(bytes: Option<u64>) -> io::Result<Self> {
        let settings = bytes.map(|bytes| ("size", bytes.to_string()));
        Self::file_system("tmpfs", settings, &[], INERT)
    }

    /// A directory that shows what `lower` holds, the first layer in front, and keeps changes
    /// to it in `upper`. `work` is an empty directory beside `upper`, for the kernel. If it is
    /// `volatile`, changes reach the disk when the kernel likes: a crash of the machine may spoil
    /// them, and the end of the mount does not wait for the disk.
    ///
    /// # Errors
    /// If the file system below cannot be laid under another one, or the kernel permits it
    /// to privileged users only (before Linux 5.11).
    pub fn overlay(
        lower: &[BorrowedFd<'_>],
        upper: BorrowedFd<'_>,
        work: BorrowedFd<'_>,
        volatile: bool,
    ) -> io::Result<Self> {
        let path = |fd: BorrowedFd<'_>| format!("/proc/thread-self/fd/{}", fd.as_raw_fd());
        let lower: Vec<_> = lower.iter().copied().map(path).collect();
        let settings = [
            ("lowerdir", lower.join(":")),
            ("upperdir", path(upper)),
            ("workdir", path(work)),
        ];
        // Without privilege over the whole system, the notes that the kernel keeps on files have
        // to be of the users' kind.
        let flags = if volatile {
            &["userxattr", "volatile"][..]
        } else {
            &["userxattr"]
        };
        Self::file_system("overlay", settings, flags, INERT)
    }

    /// The control groups (of version 2) from that down which is the root of this thread's
    /// cgroup namespace.
    ///
    /// # Errors
    /// If this thread has no authority over its mount or cgroup namespace.
    pub fn control_groups() -> io::Result<Self> {
        Self::file_system("cgroup2", [], &[], INERT)
    }

    /// Pseudo-terminals of their own.
    ///
    /// # Errors
    /// If this thread has no authority over its mount namespace.
    pub fn terminals() -> io::Result<Self> {
        let settings = [("ptmxmode", "0666"), ("mode", "620")];
        let settings = settings.map(|(key, value)| (key, value.to_owned()));
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        Self::file_system("devpts", settings, &[], attributes)
    }

    fn file_system(
        kind: &str,
        settings: impl IntoIterator<Item = (&'static str, String)>,
        flags: &[&str],
        attributes: MountAttrFlags,
    ) -> io::Result<Self> {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in settings {
            fsconfig_set_string(context.as_fd(), key, value)?;
        }
        for flag in flags {
            fsconfig_set_flag(context.as_fd(), *flag)?;
        }
        fsconfig_create(context.as_fd())?;
        Ok(Self(fsmount(
            context.as_fd(),
            FsMountFlags::FSMOUNT_CLOEXEC,
            attributes,
        )?))
    }

    /// Makes all of it unchangeable through this view.
    ///
    /// # Errors
    /// If the kernel is older than Linux 5.12.
    pub fn make_read_only(&self) -> io::Result<()> {
        self.set(libc::MOUNT_ATTR_RDONLY)
    }

    /// Takes all power from programs and devices in this view.
    ///
    /// # Errors
    /// If the kernel is older than Linux 5.12.
    pub fn restrict(&self, is_read_only: bool) -> io::Result<()> {
        let powerless = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        self.set(match is_read_only {
            true => powerless | libc::MOUNT_ATTR_RDONLY,
            false => powerless,
        })
    }

    fn set(&self, attributes: u64) -> io::Result<()> {
        set_attributes(self, attributes, libc::AT_RECURSIVE)
    }

    /// Lays it over what was opened as `place`, a directory or a file like the tree itself.
    ///
    /// # Errors
    /// If `place` is not in the mount namespace of this thread.
    pub fn attach(&self, place: impl AsFd) -> io::Result<()> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&self.0, c"", place, c"", flags)?;
        Ok(())
    }

    /// Lays it over whatever the path leads to.
    pub fn attach_at(&self, path: &str) -> io::Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&self.0, c"", CWD, path, flags)?;
        Ok(())
    }
}

impl AsFd for Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes a mount unchangeable, which `place` is the root of, but not what is mounted on it.
///
/// # Errors
/// If it is no root of a mount in this thread's namespace, or the kernel is older than Linux 5.12.
pub fn freeze(place: impl AsFd) -> io::Result<()> {
    set_attributes(place, libc::MOUNT_ATTR_RDONLY, 0)
}

fn set_attributes(place: impl AsFd, attributes: u64, flags: libc::c_int) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path is empty and ends in NUL; the attributes outlive the call, and the size that
    // is given is theirs. The call keeps none of the pointers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            place.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    Errno::result(result)?;
    Ok(())
}
