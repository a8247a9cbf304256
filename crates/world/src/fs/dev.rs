//! A `/dev` of the world's own: no disks, no memory, no other terminals.

use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::{MountFlags, mount};

use super::mounts::{Detached, attach, tmpfs};
use crate::error::{Doing, Result};

const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("pts/ptmx", "/dev/ptmx"),
];

/// `with_tun`: also the tunnel device, if the machine has one. Containers
/// never do.
pub(super) fn build(with_tun: bool) -> Result<()> {
    let mut nodes = Vec::new();
    for name in NODES {
        nodes.push((name, Detached::from(&Path::new("/dev").join(name))?));
    }
    if with_tun && Path::new("/dev/net/tun").exists() {
        nodes.push(("net/tun", Detached::from(Path::new("/dev/net/tun"))?));
    }

    tmpfs("/dev", 0o755)?;
    for directory in ["/dev/net", "/dev/pts", "/dev/shm"] {
        std::fs::create_dir(directory).doing(format_args!("make {directory}"))?;
    }
    for (name, node) in nodes {
        let target = Path::new("/dev").join(name);
        std::fs::write(&target, "").doing(format_args!("make {}", target.display()))?;
        attach(&node, &target)?;
    }
    mount(
        "devpts",
        "/dev/pts",
        "devpts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        c"newinstance,ptmxmode=0666,mode=0620",
    )
    .doing("mount /dev/pts")?;
    tmpfs("/dev/shm", 0o1777)?;
    for (target, link) in LINKS {
        symlink(target, link).doing(format_args!("link {link}"))?;
    }
    Ok(())
}
