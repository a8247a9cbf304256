//! Protections that depend on the kernel, and whether this machine has them.

use std::fmt;

use stockade_sys::confine::Landlock;

/// A protection, and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub protection: Protection,
    pub state: LayerState,
}

/// What protects. The machine, the configuration or both decide whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    SystemCalls,
    Scopes,
    NoUserNamespaces,
    NoMountNamespaces,
    Files,
    OwnProcesses,
    ProcessLimit,
    Scratch,
    Caches,
    Group,
    Memory,
}

impl Protection {
    pub const ALL: [Self; 11] = [
        Self::SystemCalls,
        Self::Scopes,
        Self::NoUserNamespaces,
        Self::NoMountNamespaces,
        Self::Files,
        Self::OwnProcesses,
        Self::ProcessLimit,
        Self::Scratch,
        Self::Caches,
        Self::Group,
        Self::Memory,
    ];

    /// Its name in plans and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemCalls => "system call filter",
            Self::Scopes => "signals and abstract sockets stay inside (Landlock)",
            Self::NoUserNamespaces => "no user namespaces inside",
            Self::NoMountNamespaces => "no mount namespaces inside",
            Self::Files => "files (Landlock)",
            Self::OwnProcesses => "a view of the own processes only",
            Self::ProcessLimit => "limit of processes",
            Self::Scratch => "changes to ~/.local/share stay inside",
            Self::Caches => "changes to package caches are kept for the workspace",
            Self::Group => "the caller's control group is out of reach",
            Self::Memory => "memory of all processes together",
        }
    }
}

/// Whether a protection is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerState {
    Active,
    /// It was not asked for.
    Off(&'static str),
    /// This machine does not have it, or only a weaker one; the reason.
    Absent(&'static str),
}

impl fmt::Display for LayerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("active"),
            Self::Off(reason) => write!(f, "off: {reason}"),
            Self::Absent(reason) => write!(f, "absent: {reason}"),
        }
    }
}

/// Scoping of signals and abstract sockets came with this version of Landlock.
pub(crate) const LANDLOCK_SCOPES: Landlock = Landlock::Version(6);
