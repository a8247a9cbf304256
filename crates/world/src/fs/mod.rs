//! The world's filesystem: the machine's programs, and nobody's files.
//!
//! All hosts share one mount namespace. In it, the machine's disk is
//! read-only, every place where people or services keep things is an empty
//! tmpfs, `/dev` holds a handful of harmless nodes and a terminal multiplexer
//! of its own, and `/etc` is an overlay in which the world writes its own user
//! database and resolver configuration. The world's root has a root directory
//! of its own, too.
//!
//! So no test can damage the machine it runs on, whoever starts it, and none
//! depends on what the machine's home directories happen to contain.

mod dev;
mod etc;
mod mounts;
mod over;
mod root;

pub(crate) use etc::{make_etc, write_etc};
pub(crate) use mounts::{Detached, attach, mount_points, tmpfs};
pub(crate) use over::{bind_over, replace_program};

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::builder::Builder;
use crate::entry::Login;
use crate::error::{Doing, Result};
use crate::shape::Shape;

use mounts::set_read_only;

/// Where the programs named by the builder appear.
pub(crate) const BIN: &str = "/run/world/bin";

/// Places that start out empty, with the mode of the directory.
const EMPTIED: [(&str, u16); 8] = [
    ("/run", 0o755),
    ("/tmp", 0o1777),
    ("/var/tmp", 0o1777),
    ("/home", 0o755),
    ("/root", 0o700),
    ("/mnt", 0o755),
    ("/media", 0o755),
    ("/srv", 0o755),
];

/// Where the directories named by the builder wait for the laptop to be furnished.
pub(crate) const SHARE: &str = "/run/world/share";

/// `staged`: where the programs are, if not where the builder says; the directories are
/// in [`SHARE`] then.
pub(crate) fn build(builder: &Builder, staged: Option<&OsStr>) -> Result<()> {
    // Held before anything is covered: a program may lie in any of the places
    // that are about to be emptied.
    let mut programs = Vec::new();
    for (name, path) in &builder.programs {
        let path = match staged {
            Some(directory) => Path::new(directory).join(name),
            None => path.clone(),
        };
        programs.push((name, Detached::from(&path)?));
    }

    let mut directories = Vec::new();
    for (number, (_, source)) in builder.directories.iter().enumerate() {
        let source = match staged {
            Some(_) => shared(number),
            None => source.clone(),
        };
        directories.push(Detached::from(&source)?);
    }

    if builder.login == Login::Root {
        root::build()?;
    }
    mounts::make_disk_read_only(&EMPTIED.map(|(path, _)| path))?;
    for (path, mode) in EMPTIED {
        if Path::new(path).is_dir() {
            tmpfs(path, mode)?;
        }
    }
    dev::build(builder.shape == Shape::Desktop)?;

    fs::create_dir_all(BIN).doing(format_args!("make {BIN}"))?;
    for (name, program) in programs {
        let target = Path::new(BIN).join(name);
        fs::write(&target, "").doing(format_args!("make {}", target.display()))?;
        attach(&program, &target)?;
    }
    for (number, directory) in directories.iter().enumerate() {
        let target = shared(number);
        fs::create_dir_all(&target).doing(format_args!("make {}", target.display()))?;
        attach(directory, &target)?;
    }
    // The directory that the test was started in is still open, and is none of
    // the world's business.
    env::set_current_dir("/").doing("go to the root directory")
}

/// Where the directory of this number waits.
pub(crate) fn shared(number: usize) -> PathBuf {
    Path::new(SHARE).join(number.to_string())
}

/// Puts the builder's directories where the laptop has them.
pub(crate) fn show_directories(builder: &Builder) -> Result<()> {
    for (number, (at, _)) in builder.directories.iter().enumerate() {
        fs::create_dir_all(at).doing(format_args!("make {}", at.display()))?;
        attach(&Detached::from(&shared(number))?, at)?;
        for mount in mount_points()? {
            if mount.path == *at {
                set_read_only(&mount, true)
                    .doing(format_args!("make {} read-only", at.display()))?;
            }
        }
    }
    Ok(())
}
