//! Giving up what a thread no longer needs.
//!
//! All three stages bind the calling thread only, and cannot be taken back. The order is
//! that of the functions here: capabilities, files, system calls.

use std::{io, path::Path};

use landlock::{
    ABI, Access as _, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus,
};
use rustix::thread::{self, CapabilitySet, CapabilitySets, remove_capability_from_bounding_set};

/// Drops every capability but those named, also from what could be regained.
///
/// # Errors
/// If the kernel refuses.
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

/// What the kernel could do about files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// None can be opened any more but those named.
    Hidden,
    /// This kernel has no Landlock.
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
        .map_err(io::Error::other)?;
    for path in readable {
        if let Ok(place) = PathFd::new(path) {
            ruleset = ruleset
                .add_rule(PathBeneath::new(place, read))
                .map_err(io::Error::other)?;
        }
    }
    let achieved = ruleset.restrict_self().map_err(io::Error::other)?;
    Ok(match achieved.ruleset {
        RulesetStatus::NotEnforced => Files::NotSupported,
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Files::Hidden,
    })
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
