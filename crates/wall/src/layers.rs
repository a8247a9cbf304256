//! Protections that depend on the kernel and its surroundings, and whether they are there.

use std::fmt;

/// A protection, and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub name: &'static str,
    pub state: State,
}

/// Whether a protection is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Active,
    /// It was not asked for.
    Off(&'static str),
    /// This machine does not have it, or only a weaker one; the reason.
    Absent(&'static str),
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("active"),
            Self::Off(reason) => write!(f, "off: {reason}"),
            Self::Absent(reason) => write!(f, "absent: {reason}"),
        }
    }
}

/// Scoping of signals and abstract sockets came with this version of Landlock.
pub(crate) const LANDLOCK_SCOPES: u32 = 6;
