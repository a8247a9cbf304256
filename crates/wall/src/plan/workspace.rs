//! Which directories cannot be a workspace.
//!
//! The workspace is shown writable and whole, on top of everything that hides the rest
//! of the disk. So a workspace that *is* such a hidden place, or holds one, would undo
//! the hiding; and one inside the system would make a part of it writable. All paths
//! here have their links resolved: a link to a refused place is that place.

use std::path::Path;

use crate::{facts::Place, tables::credentials};

/// What is wrong with a directory as a workspace, or with a path that is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    #[error("is the whole disk")]
    Root,
    #[error("is your home directory, with every credential in it")]
    Home,
    #[error("holds your home directory")]
    HoldsHome,
    #[error("is a whole home directory")]
    OtherHome,
    /// It holds this place of the system or of other programs.
    #[error("would expose {0}")]
    Holds(&'static str),
    #[error("is where the system or other programs keep their files")]
    Shared,
    #[error("lies in {0}, which is not for projects")]
    Inside(&'static str),
    /// It is, or is inside, this place in the home directory.
    #[error("lies in your ~/{0}, which holds credentials or settings")]
    Credentials(&'static str),
    #[error("is a part of /proc, which shows other processes")]
    Processes,
    #[error("is a device, and those are only to be had with `write`")]
    Device,
    /// It holds, or is, Stockade's own configuration or log.
    #[error("would let the command write its own permissions")]
    Own,
    #[error("is Stockade's own, which no command is shown")]
    Private,
    #[error("holds the workspace or the system")]
    HidesAll,
    #[error("does not exist")]
    Missing,
    #[error("is not a directory")]
    NoDirectory,
    #[error("holds the workspace, and perhaps other projects")]
    HoldsWorkspace,
}

/// Places that a workspace must neither be nor hold.
const NOT_TO_HOLD: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/gnu",
    "/home",
    "/lib",
    "/media",
    "/mnt",
    "/nix",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
    "/dev/shm",
    "/run/user",
    "/usr/local",
    "/usr/src",
    "/var/cache",
    "/var/home",
    "/var/lib",
    "/var/tmp",
];

/// Places that a workspace must not be inside either.
const NOT_TO_BE_INSIDE: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/gnu",
    "/nix",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var/log",
    "/var/spool",
];

/// Exceptions to [`NOT_TO_BE_INSIDE`]: people do work below these.
const FINE_BELOW: &[&str] = &["/dev/shm", "/usr/src", "/usr/local/src", "/usr/home"];

/// Directories whose children are home directories.
const HOMES: &[&str] = &["/home", "/var/home", "/usr/home"];

/// Places in a home directory that a workspace must not be: below them, each program has
/// its own directory, and working on one of those is nobody else's business.
const SETTINGS: &[&str] = &[
    ".config",
    ".local",
    ".local/share",
    ".local/state",
    ".cache",
];

impl PathRefusal {
    /// Why a directory cannot be a workspace, if it cannot. Links are resolved.
    #[must_use]
    pub fn of_workspace(workspace: &Path, home: &Path) -> Option<Self> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let home = Place {
            named: home.to_owned(),
            real: real(home),
        };
        refusal(&real(workspace), &home)
    }
}

/// Why `workspace` cannot be one, if it cannot.
pub(crate) fn refusal(workspace: &Path, home: &Place) -> Option<PathRefusal> {
    if workspace == Path::new("/") {
        return Some(PathRefusal::Root);
    }
    if workspace == home.real {
        return Some(PathRefusal::Home);
    }
    if home.real.starts_with(workspace) {
        return Some(PathRefusal::HoldsHome);
    }
    let holds = |place: &&&str| Path::new(place).starts_with(workspace);
    let is_one = |place: &&str| workspace == Path::new(place);
    if NOT_TO_HOLD.iter().any(is_one) {
        return Some(PathRefusal::Shared);
    }
    if let Some(place) = NOT_TO_HOLD.iter().find(holds) {
        return Some(PathRefusal::Holds(place));
    }
    let is_child_of = |parent: &&&str| workspace.parent() == Some(Path::new(parent));
    if HOMES.iter().any(|parent| is_child_of(&parent)) {
        return Some(PathRefusal::OtherHome);
    }
    let is_inside = |place: &&&str| workspace.starts_with(place);
    if !FINE_BELOW.iter().any(|place| is_inside(&place))
        && let Some(place) = NOT_TO_BE_INSIDE.iter().find(is_inside)
    {
        return Some(PathRefusal::Inside(place));
    }
    let in_home = workspace.strip_prefix(&home.real).ok()?;
    if let Some(place) = credentials::holding(in_home) {
        return Some(PathRefusal::Credentials(place));
    }
    SETTINGS
        .iter()
        .find(|place| in_home == Path::new(place))
        .map(|place| PathRefusal::Credentials(place))
}

/// Why a path cannot be shown, writable or not, if it cannot: with it, nothing would be
/// hidden.
pub(crate) fn undoes_the_wall(path: &Path, home: &Place) -> Option<PathRefusal> {
    if path == Path::new("/") {
        Some(PathRefusal::Root)
    } else if path == home.real {
        Some(PathRefusal::Home)
    } else if home.real.starts_with(path) {
        Some(PathRefusal::HoldsHome)
    } else if path.starts_with("/proc") {
        Some(PathRefusal::Processes)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(workspace: &str) -> Option<PathRefusal> {
        let home = Place {
            named: "/home/ada".into(),
            real: "/home/ada".into(),
        };
        refusal(Path::new(workspace), &home)
    }

    #[test]
    fn whole_disks_and_homes_are_refused() {
        assert_eq!(refused("/"), Some(PathRefusal::Root));
        assert_eq!(refused("/home/ada"), Some(PathRefusal::Home));
        assert_eq!(refused("/home"), Some(PathRefusal::HoldsHome));
        assert_eq!(refused("/home/bob"), Some(PathRefusal::OtherHome));
        assert_eq!(refused("/root"), Some(PathRefusal::Shared));
    }

    #[test]
    fn a_place_that_is_not_called_home_but_holds_it_is_refused() {
        let home = Place {
            named: "/home/ada".into(),
            real: "/data/people/ada".into(),
        };
        let refused = |path| refusal(Path::new(path), &home);
        assert_eq!(refused("/data"), Some(PathRefusal::HoldsHome));
        assert_eq!(refused("/data/people"), Some(PathRefusal::HoldsHome));
        assert_eq!(refused("/data/people/ada"), Some(PathRefusal::Home));
        assert_eq!(refused("/data/project"), None);
    }

    #[test]
    fn system_and_shared_places_are_refused() {
        for place in [
            "/usr", "/etc", "/tmp", "/var", "/run", "/dev", "/proc", "/sys", "/mnt",
        ] {
            assert_eq!(refused(place), Some(PathRefusal::Shared), "{place}");
        }
        for (path, place) in [
            ("/etc/nginx", "/etc"),
            ("/usr/share/project", "/usr"),
            ("/run/user/1000/project", "/run"),
            ("/proc/self/cwd", "/proc"),
            ("/dev/pts", "/dev"),
        ] {
            assert_eq!(refused(path), Some(PathRefusal::Inside(place)), "{path}");
        }
    }

    #[test]
    fn credentials_and_settings_in_the_home_are_refused() {
        for (path, place) in [
            ("/home/ada/.ssh", ".ssh"),
            ("/home/ada/.ssh/keys", ".ssh"),
            ("/home/ada/.config", ".config"),
            ("/home/ada/.config/gh", ".config/gh"),
            ("/home/ada/.local/share", ".local/share"),
        ] {
            assert_eq!(
                refused(path),
                Some(PathRefusal::Credentials(place)),
                "{path}"
            );
        }
    }

    #[test]
    fn projects_are_fine_wherever_people_keep_them() {
        for path in [
            "/home/ada/project",
            "/home/ada/.config/nvim",
            "/home/ada/.sshd-experiments",
            "/home/bob/shared/project",
            "/tmp/project",
            "/var/tmp/project",
            "/var/www/site",
            "/var/lib/jenkins/workspace/job",
            "/dev/shm/project",
            "/opt/project",
            "/srv/project",
            "/mnt/disk/project",
            "/work",
            "/workspaces/project",
            "/usr/src/linux",
        ] {
            assert_eq!(refused(path), None, "{path}");
        }
    }
}
