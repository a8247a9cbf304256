//! Giving up what a thread no longer needs.
//!
//! All three stages bind the calling thread only, and cannot be taken back. The order is
//! that of the functions here: capabilities, files, system calls.

use std::{
    error::Error,
    io, iter,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use nix::errno::Errno;
use rustix::{
    fs::{Mode, OFlags},
    thread::{self, CapabilitySet, CapabilitySets, remove_capability_from_bounding_set},
};

/// Drops every capability but those named, also from what could be regained.
pub fn keep_capabilities(kept: CapabilitySet) -> io::Result<()> {
    thread::set_no_new_privs(true)?;
    thread::clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().difference(kept).iter() {
        match remove_capability_from_bounding_set(capability) {
            // One that this kernel does not know yet is not there to be regained.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    thread::set_capabilities(None, sets)?;
    Ok(())
}

pub fn drop_capabilities() -> io::Result<()> {
    thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    thread::set_capabilities(None, sets)?;
    Ok(())
}

/// Landlock of this kernel, from nothing to the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Landlock {
    Missing,
    /// The kernel has it, but was started without it.
    Off,
    /// The version of its interface.
    Version(u32),
}

impl Landlock {
    pub fn of_this_kernel() -> Self {
        const VERSION: libc::c_long = 1;
        // SAFETY: with this flag the call takes no attributes, reads no memory and makes nothing:
        // it answers with a number, or -1.
        let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, VERSION) };
        match u32::try_from(version) {
            Ok(version) => Self::Version(version),
            Err(_) => match Errno::last() {
                Errno::EOPNOTSUPP => Self::Off,
                _ => Self::Missing,
            },
        }
    }

    /// Why something of it is not there: since it is off, or for another reason.
    pub fn absent(self, otherwise: &'static str) -> &'static str {
        match self {
            Self::Off => "the kernel was started without Landlock (boot parameter lsm=)",
            Self::Missing | Self::Version(_) => otherwise,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// None can be opened any more but those named.
    Hidden,
    NotSupported,
}

/// Hides all files but those at or below `readable`, which can be read. A path that does
/// not exist is passed over.
///
/// # Errors
/// If a kernel that has Landlock refuses.
pub fn hide_files<'a>(readable: impl IntoIterator<Item = &'a Path>) -> io::Result<Files> {
    let read = AccessFs::ReadFile;
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(Ruleset::create)
        .map_err(of_kernel)?;
    for path in readable {
        if let Ok(place) = handle(path) {
            ruleset = ruleset
                .add_rule(PathBeneath::new(place, read))
                .map_err(of_kernel)?;
        }
    }
    let achieved = ruleset.restrict_self().map_err(of_kernel)?;
    Ok(match achieved.ruleset {
        RulesetStatus::NotEnforced => Files::NotSupported,
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Files::Hidden,
    })
}

/// A handle on a place, without opening what is there. (`PathFd` of landlock does open it in a program
/// with musl, where the standard library takes `O_PATH` for an access mode and drops it.)
fn handle(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Confines what the calling thread will become, for good: with `scopes`, signals and abstract
/// sockets reach nobody outside of it and its descendants; with `writable`, files can be
/// written at or below those paths only, and nothing can be mounted.
///
/// # Errors
/// If the kernel refuses, or has no Landlock of that version.
pub fn command(scopes: bool, writable: Option<&[PathBuf]>) -> io::Result<()> {
    if !scopes && (writable.is_none() || Landlock::of_this_kernel() <= Landlock::Off) {
        return Ok(());
    }
    let mut ruleset = Ruleset::default();
    if scopes {
        ruleset = ruleset
            .set_compatibility(CompatLevel::HardRequirement)
            .scope(Scope::from_all(ABI::V6))
            .map_err(of_kernel)?
            .set_compatibility(CompatLevel::BestEffort);
    }
    if writable.is_some() {
        ruleset = ruleset
            .handle_access(AccessFs::from_all(FILES))
            .map_err(of_kernel)?;
    }
    let mut ruleset = ruleset.create().map_err(of_kernel)?;
    if let Some(writable) = writable {
        let everywhere = AccessFs::from_read(FILES);
        let to_devices = everywhere | AccessFs::WriteFile | AccessFs::IoctlDev;
        let fixed = [
            (Path::new("/"), everywhere),
            (Path::new("/dev"), to_devices),
            // A process writes to its own files there.
            (Path::new("/proc"), everywhere | AccessFs::WriteFile),
        ];
        let given = writable
            .iter()
            .map(|path| (path.as_path(), AccessFs::from_all(FILES)));
        for (path, access) in fixed.into_iter().chain(given) {
            let place = handle(path)?;
            // What is no directory cannot be granted what is for directories.
            let access = if path.is_dir() {
                access
            } else {
                access & AccessFs::from_file(FILES)
            };
            ruleset = ruleset
                .add_rule(PathBeneath::new(place, access))
                .map_err(of_kernel)?;
        }
    }
    ruleset.restrict_self().map_err(of_kernel)?;
    Ok(())
}

/// The version of Landlock whose rights for files are handled, as far as the kernel has them.
const FILES: ABI = ABI::V5;

/// The kernel's error, if there is one: its number can be told to another process.
fn of_kernel(error: impl Error + Send + Sync + 'static) -> io::Error {
    let first: &(dyn Error + 'static) = &error;
    let causes = iter::successors(Some(first), |&one| one.source());
    let number = |one: &(dyn Error + 'static)| one.downcast_ref::<io::Error>()?.raw_os_error();
    match causes.filter_map(number).next() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// Each in a thread of its own, which is all that is bound.
    fn in_thread<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
        thread::spawn(body).join().expect("no panic")
    }

    #[test]
    fn hidden_files_cannot_be_read_and_named_ones_can() {
        assert!(fs::read("/etc/passwd").is_ok() && fs::read("/etc/hostname").is_ok());
        let (achieved, named, other) = in_thread(|| {
            let achieved = hide_files([Path::new("/etc/passwd")]).expect("Landlock");
            (
                achieved,
                fs::read("/etc/passwd").is_ok(),
                fs::read("/etc/hostname").is_ok(),
            )
        });
        assert!(named);
        assert_eq!(other, achieved == Files::NotSupported);
        assert!(
            fs::read("/etc/hostname").is_ok(),
            "another thread was bound"
        );
    }

    #[test]
    fn dropped_capabilities_are_gone_for_good() {
        let after = in_thread(|| {
            keep_capabilities(CapabilitySet::empty()).map(|()| {
                let status = fs::read_to_string("/proc/thread-self/status").expect("status");
                status
                    .lines()
                    .filter(|line| line.starts_with("Cap"))
                    .all(|line| line.trim_end().ends_with("0000000000000000"))
            })
        });
        // Who has no capability cannot shrink the bounding set, and needs not.
        match after {
            Ok(all_empty) => assert!(all_empty),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }
}
