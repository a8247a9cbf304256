//! Whether the kernel will let a new user namespace mount a fresh `/proc`.
//!
//! It refuses where that would reveal what an existing `/proc` hides: there has to be
//! one in view that is writable, has the default access-time setting, and has no mount
//! over anything but directories that are always empty (Linux, `mnt_already_visible`).
//! Containers that mask `/proc/kcore` or make `/proc/sys` read-only do not have one.

use std::fs;

use crate::error::Error;

pub(super) const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Directories that the kernel itself keeps empty, as places to mount on.
const ALWAYS_EMPTY: &[&str] = &["/sys/fs/binfmt_misc", "/fs/nfsd", "/openprom"];

/// The kind of `/proc` that the sandbox can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Procfs {
    /// Its own, which shows its own processes.
    Fresh,
    /// Only the one outside, because a part of that is masked.
    Outer,
}

impl Procfs {
    pub(super) fn detect() -> Result<Self, Error> {
        let mounts = fs::read(MOUNTINFO).map_err(|error| Error::Read {
            path: MOUNTINFO,
            error,
        })?;
        Ok(Self::from_mountinfo(&String::from_utf8_lossy(&mounts)))
    }

    fn from_mountinfo(text: &str) -> Self {
        let mounts: Vec<_> = text.lines().filter_map(Mount::parse).collect();
        let fully_visible = |mount: &&Mount<'_>| {
            let has = |wanted| mount.options.split(',').any(|option| option == wanted);
            mount.filesystem == "proc"
                && mount.root == "/"
                && has("rw")
                && has("relatime")
                && mounts
                    .iter()
                    .filter(|child| child.parent == mount.id)
                    .all(|child| {
                        let inside = child.point.strip_prefix(mount.point);
                        inside.is_some_and(|path| ALWAYS_EMPTY.contains(&path))
                    })
        };
        match mounts.iter().find(fully_visible) {
            Some(_) => Self::Fresh,
            None => Self::Outer,
        }
    }
}

/// A line of `/proc/self/mountinfo`, as far as it matters here.
struct Mount<'a> {
    id: &'a str,
    parent: &'a str,
    root: &'a str,
    point: &'a str,
    options: &'a str,
    filesystem: &'a str,
}

impl<'a> Mount<'a> {
    /// `id parent major:minor root point options [optional…] - filesystem source …`
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let id = fields.next()?;
        let parent = fields.next()?;
        let _device = fields.next()?;
        Some(Self {
            id,
            parent,
            root: fields.next()?,
            point: fields.next()?,
            options: fields.next()?,
            filesystem: filesystem.split(' ').next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n";

    fn with(lines: &str) -> Procfs {
        Procfs::from_mountinfo(&format!("{ROOT}{lines}"))
    }

    #[test]
    fn a_plain_proc_allows_a_fresh_one() {
        let proc = "22 1 0:21 / /proc rw,nosuid,relatime shared:5 - proc proc rw\n";
        assert_eq!(with(proc), Procfs::Fresh);
    }

    #[test]
    fn a_mount_on_an_always_empty_directory_hides_nothing() {
        let desktop = "22 1 0:21 / /proc rw,nosuid,relatime - proc proc rw\n\
             30 22 0:30 / /proc/sys/fs/binfmt_misc rw,relatime - autofs systemd-1 rw\n\
             31 30 0:31 / /proc/sys/fs/binfmt_misc rw,relatime - binfmt_misc none rw\n";
        assert_eq!(with(desktop), Procfs::Fresh);
    }

    #[test]
    fn a_masked_file_read_only_part_or_whole_forbids_it() {
        let masked = "22 1 0:21 / /proc rw,relatime - proc proc rw\n\
             40 22 0:40 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw\n";
        let partly = "22 1 0:21 / /proc rw,relatime - proc proc rw\n\
             41 22 0:21 /sys /proc/sys ro,relatime - proc proc rw\n";
        let whole = "22 1 0:21 / /proc ro,relatime - proc proc rw\n";
        let without_access_times = "22 1 0:21 / /proc rw,noatime - proc proc rw\n";
        for container in [masked, partly, whole, without_access_times] {
            assert_eq!(with(container), Procfs::Outer, "{container}");
        }
    }

    #[test]
    fn another_proc_in_full_view_is_enough() {
        let both = "22 1 0:21 / /proc rw,relatime - proc proc rw\n\
             40 22 0:40 /null /proc/kcore rw - tmpfs tmpfs rw\n\
             50 1 0:21 / /mnt/proc rw,relatime - proc proc rw\n";
        assert_eq!(with(both), Procfs::Fresh);
    }

    #[test]
    fn part_of_a_proc_or_nothing_is_not_enough() {
        assert_eq!(with(""), Procfs::Outer);
        let part = "41 1 0:21 /sys /mnt/sys rw,relatime - proc proc rw\n";
        assert_eq!(with(part), Procfs::Outer);
        assert_eq!(with("garbage\n1 2 3 - proc\n"), Procfs::Outer);
    }
}
