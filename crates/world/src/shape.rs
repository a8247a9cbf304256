//! What kind of machine the laptop pretends to be.
//!
//! `Container` takes away what container engines take away, in the way they do
//! it: by mounts over parts of `/proc` that a user namespace inside cannot
//! remove, and that make the kernel refuse a fresh `/proc` to it; by leaving
//! `/dev/net/tun` out; and by an empty capability bounding set.

use std::path::Path;

use rustix::mount::{MountFlags, mount_remount};

use crate::error::{Doing, Result};
use crate::fs::{Detached, attach, tmpfs};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// An ordinary machine with a user logged in.
    #[default]
    Desktop,
    /// A container without any capability.
    Container,
}

const MASKED: [&str; 11] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
];

const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// To be called when the network stands: the world's own sysctls are set by a
/// descriptor that was opened before.
pub(crate) fn apply(shape: Shape) -> Result<()> {
    match shape {
        Shape::Desktop => Ok(()),
        Shape::Container => mask_as_containers_do(),
    }
}

fn mask_as_containers_do() -> Result<()> {
    for path in MASKED.map(Path::new) {
        if path.is_dir() {
            tmpfs(&path.to_string_lossy(), 0o555)?;
            make_read_only(path)?;
        } else if path.exists() {
            attach(&Detached::from(Path::new("/dev/null"))?, path)?;
        }
    }
    for path in READ_ONLY
        .map(Path::new)
        .into_iter()
        .filter(|path| path.exists())
    {
        attach(&Detached::from(path)?, path)?;
        make_read_only(path)?;
    }
    Ok(())
}

fn make_read_only(path: &Path) -> Result<()> {
    let flags = MountFlags::BIND
        | MountFlags::RDONLY
        | MountFlags::NOSUID
        | MountFlags::NODEV
        | MountFlags::NOEXEC;
    mount_remount(path, flags, "").doing(format_args!("make {} read-only", path.display()))
}
