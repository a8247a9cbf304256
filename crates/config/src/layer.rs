//! A layer: what one file, the environment or the command line says.

use std::path::PathBuf;

use crate::{
    keys::{Change, Key},
    source::Place,
};

/// The origin of a layer. A later one overrules an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayerKind {
    /// Profiles that come with the program.
    BuiltIn,
    /// The administrator: `/etc/stockade/config.toml`.
    System,
    /// The user: `~/.config/stockade/config.toml`.
    User,
    /// The project, once the user trusts it: `.stockade.toml`.
    Workspace,
    /// The user about the project: `~/.config/stockade/projects/`.
    Project,
    /// Variables that other sandboxes' users have set.
    Environment,
    Flags,
}

impl LayerKind {
    /// It is about one workspace, where relative paths start.
    pub fn has_workspace(self) -> bool {
        matches!(self, Self::Workspace | Self::Project | Self::Flags)
    }

    /// It can have profiles.
    pub(crate) fn is_file(self) -> bool {
        !matches!(self, Self::Environment | Self::Flags)
    }
}

#[derive(Debug, Clone)]
pub struct Layer {
    pub(crate) kind: LayerKind,
    pub(crate) changes: Vec<Written>,
    pub(crate) profiles: Vec<Profile>,
    /// Only the administrator's has any.
    pub(crate) locks: Vec<Lock>,
    /// Only the user's about a project has one.
    pub(crate) workspace: Option<PathBuf>,
}

impl Layer {
    pub(crate) fn new(kind: LayerKind) -> Self {
        Self {
            kind,
            changes: Vec::new(),
            profiles: Vec::new(),
            locks: Vec::new(),
            workspace: None,
        }
    }

    pub fn kind(&self) -> LayerKind {
        self.kind
    }

    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().map(|profile| profile.name.as_str())
    }

    pub fn workspace(&self) -> Option<&PathBuf> {
        self.workspace.as_ref()
    }

    /// All its changes, for any command.
    pub(crate) fn all_changes(&self) -> impl Iterator<Item = &Written> {
        let of_profiles = self.profiles.iter().flat_map(|profile| &profile.changes);
        self.changes.iter().chain(of_profiles)
    }
}

/// A change, and where it is written.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) change: Change,
    pub(crate) place: Place,
}

#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) changes: Vec<Written>,
}

/// What the administrator keeps for the administrator's own file.
#[derive(Debug, Clone)]
pub(crate) struct Lock {
    pub(crate) section: &'static str,
    /// `None`: the whole section.
    pub(crate) key: Option<Key>,
    pub(crate) place: Place,
}

impl Lock {
    pub(crate) fn covers(&self, key: Key) -> bool {
        // These lists open private addresses as `allow` does: its lock would mean nothing without them.
        let with: &[Key] = match key {
            Key::Near => &[Key::Near, Key::Allow],
            Key::Devices => &[Key::Devices, Key::Near, Key::Allow],
            _ => &[key],
        };
        with.iter().any(|key| {
            self.section == key.section() && self.key.is_none_or(|locked| locked == *key)
        })
    }
}
