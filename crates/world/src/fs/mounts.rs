//! Mount operations of the world, each with the reason in its error.

use std::ffi::{CString, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, mount, mount_remount, move_mount, open_tree,
};

use crate::error::{Doing, Result};

/// A mount that hangs in the air until it is attached.
pub(crate) struct Detached(OwnedFd);

impl Detached {
    /// A bind mount of `path`, which may be covered afterwards.
    pub(crate) fn from(path: &Path) -> Result<Self> {
        Self::open(path, OpenTreeFlags::empty())
    }

    /// The same, with all that is mounted below it.
    pub(crate) fn tree(path: &Path) -> Result<Self> {
        Self::open(path, OpenTreeFlags::AT_RECURSIVE)
    }

    fn open(path: &Path, flags: OpenTreeFlags) -> Result<Self> {
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        open_tree(CWD, path, clone | flags)
            .map(Self)
            .doing(format_args!("hold {}", path.display()))
    }
}

pub(crate) fn attach(mount: &Detached, target: &Path) -> Result<()> {
    move_mount(
        &mount.0,
        "",
        CWD,
        target,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .doing(format_args!("attach {}", target.display()))
}

pub(crate) fn tmpfs(path: &str, mode: u16) -> Result<()> {
    let options = CString::new(format!("mode={mode:o}")).unwrap_or_default();
    mount(
        "world",
        path,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        options.as_c_str(),
    )
    .doing(format_args!("mount a tmpfs on {path}"))
}

/// Makes the top mount at `path` read-only or writable, keeping its other
/// flags: inside a user namespace those are locked, and leaving one out is
/// refused.
pub(crate) fn set_read_only(mount: &MountPoint, read_only: bool) -> rustix::io::Result<()> {
    let mut flags = mount.flags | MountFlags::BIND;
    flags.set(MountFlags::RDONLY, read_only);
    mount_remount(&mount.path, flags, "")
}

/// Makes every mount read-only except those that are `emptied` anyway, and the
/// pseudo filesystems that the world replaces or needs.
pub(super) fn make_disk_read_only(emptied: &[&str]) -> Result<()> {
    for mount in mount_points()? {
        let replaced = ["/proc", "/dev"]
            .iter()
            .chain(emptied)
            .any(|prefix| mount.path.starts_with(prefix));
        if replaced {
            continue;
        }
        match set_read_only(&mount, true) {
            // Whoever cannot reach the mount point cannot write below it.
            Ok(()) | Err(Errno::ACCESS | Errno::NOENT) => {}
            Err(errno) => {
                return Err(errno).doing(format_args!("make {} read-only", mount.path.display()));
            }
        }
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountPoint {
    pub(crate) path: PathBuf,
    pub(crate) flags: MountFlags,
}

/// The mounts of the world, parents before children.
pub(crate) fn mount_points() -> Result<Vec<MountPoint>> {
    let text = fs::read("/proc/self/mountinfo").doing("read the mount table")?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect())
}

/// One line of mountinfo: `27 1 254:0 / /mnt\040x rw,nosuid shared:1 - ext4 …`.
fn parse(line: &[u8]) -> Option<MountPoint> {
    let mut fields = line.split(|byte| *byte == b' ').skip(4);
    let path = PathBuf::from(OsString::from_vec(unescape(fields.next()?)));
    let options = std::str::from_utf8(fields.next()?).ok()?;
    let flags = options
        .split(',')
        .fold(MountFlags::empty(), |flags, option| {
            flags
                | match option {
                    "ro" => MountFlags::RDONLY,
                    "nosuid" => MountFlags::NOSUID,
                    "nodev" => MountFlags::NODEV,
                    "noexec" => MountFlags::NOEXEC,
                    "noatime" => MountFlags::NOATIME,
                    "nodiratime" => MountFlags::NODIRATIME,
                    "relatime" => MountFlags::RELATIME,
                    _ => MountFlags::empty(),
                }
        });
    Some(MountPoint { path, flags })
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let code = tail
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_with_spaces_and_flags_is_understood() {
        let line = br"36 35 98:0 / /mnt/two\040words ro,nosuid,relatime shared:1 - ext4 /dev/x rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.path, Path::new("/mnt/two words"));
        assert_eq!(
            mount.flags,
            MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::RELATIME
        );
    }

    #[test]
    fn a_backslash_without_digits_stays() {
        assert_eq!(unescape(br"a\b\134c"), br"a\b\c");
    }
}
