//! A root directory that belongs to the world's root.
//!
//! When an ordinary user starts the tests, the machine's `/` belongs to a user
//! whom the world's user namespace does not know. No real root lives like
//! that: in a container, `/` is root's own. So the world's root gets a small
//! file system as its root directory, on which all directories of the machine
//! are bound where they were.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::pivot_root;

use super::mounts::{Detached, attach, tmpfs};
use crate::error::{Doing, Result};

/// A directory that every machine has, and that the world empties anyway.
const NEW: &str = "/tmp";

pub(super) fn build() -> Result<()> {
    let mut links = Vec::new();
    let mut trees = Vec::new();
    for entry in fs::read_dir("/").doing("list /")? {
        let path = entry.doing("list /")?.path();
        let target = Path::new(NEW).join(path.strip_prefix("/").unwrap_or(&path));
        if let Ok(link) = fs::read_link(&path) {
            links.push((link, target));
        } else if path.is_dir() {
            trees.push((Detached::tree(&path)?, target));
        }
    }
    // `ip -netns` takes /sys away and mounts one of its own, which the kernel permits only where
    // another one is left.
    let below = Detached::tree(Path::new("/sys"))?;

    tmpfs(NEW, 0o755)?;
    for (link, target) in links {
        symlink(link, &target).doing(format_args!("link {}", target.display()))?;
    }
    for (tree, target) in trees {
        fs::create_dir(&target).doing(format_args!("make {}", target.display()))?;
        attach(&tree, &target)?;
    }
    attach(&below, &Path::new(NEW).join("sys"))?;
    // The new root goes where it is already, so that the old one ends up on top
    // of it, to be taken off: no directory has to be there for the old one.
    env::set_current_dir(NEW).doing("go to the new root")?;
    pivot_root(".", ".").doing("change the root directory")?;
    unmount(".", UnmountFlags::DETACH).doing("leave the old root directory")?;
    env::set_current_dir("/").doing("go to the root directory")
}
