//! `/etc`: the machine's, with files of the world laid over.
//!
//! An overlay rather than bind mounts over single files, because some of these
//! files are symbolic links on some machines (`resolv.conf` of systemd), some
//! do not exist, and tests add their own (`/etc/stockade`). The overlay's top
//! directory belongs to the laptop's user, as everything in the world does; it
//! is mounted read-only so that this user finds `/etc` as closed as usual.

use std::fs;
use std::path::Path;

use rustix::mount::{MountFlags, mount};

use super::mounts::{MountPoint, set_read_only};
use crate::error::{Doing, Result};

const UPPER: &str = "/run/world/etc";

/// Lays the overlay and writes the given files: (path below `/etc`, contents).
pub(crate) fn make_etc(files: &[(&str, String)]) -> Result<()> {
    for part in ["upper", "work"] {
        fs::create_dir_all(format!("{UPPER}/{part}")).doing("make the overlay of /etc")?;
    }
    mount(
        "world",
        "/etc",
        "overlay",
        MountFlags::NOSUID | MountFlags::NODEV,
        c"lowerdir=/etc,upperdir=/run/world/etc/upper,workdir=/run/world/etc/work,userxattr",
    )
    .doing("lay an overlay on /etc (needs Linux 5.11 with overlayfs)")?;
    for (path, contents) in files {
        replace(path, contents)?;
    }
    writable(false)
}

/// Writes a file below `/etc` of the running world.
pub(crate) fn write_etc(path: &str, contents: &str) -> Result<()> {
    writable(true)?;
    let outcome = replace(path, contents);
    writable(false)?;
    outcome
}

fn replace(path: &str, contents: &str) -> Result<()> {
    let target = Path::new("/etc").join(path);
    let write = || {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        // By rename: what is there may be a link, or not ours to write to.
        let fresh = Path::new("/etc/.fresh");
        fs::write(fresh, contents)?;
        fs::rename(fresh, &target)
    };
    write().doing(format_args!("write {}", target.display()))
}

fn writable(writable: bool) -> Result<()> {
    let etc = MountPoint {
        path: "/etc".into(),
        flags: MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RELATIME,
    };
    set_read_only(&etc, !writable).doing("change the mount of /etc")
}
