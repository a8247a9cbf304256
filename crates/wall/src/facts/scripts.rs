//! Directories among agents' settings with scripts that agents outside run as they go.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{config::Config, tables::home::SCRATCH_IN_STATE};

/// Such a directory, or where it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptsInState {
    /// Links on the way are resolved; one at its end is not.
    pub(crate) at: PathBuf,
    pub(crate) form: ScriptsForm,
    pub(crate) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScriptsForm {
    Missing,
    Directory,
    /// A link to this, if it leads anywhere. Agents make directories only, but a session could
    /// have made a link.
    Link(Option<PathBuf>),
    Other,
}

/// One for each name of the table whose state exists.
pub(super) fn find(config: &Config, home: &Path) -> Vec<ScriptsInState> {
    let mut all: Vec<ScriptsInState> = Vec::new();
    for (name, reason) in SCRATCH_IN_STATE {
        for place in config.places_in_state(home, name) {
            let (Some(state), Some(name)) = (place.parent(), place.file_name()) else {
                continue;
            };
            let Ok(state) = super::directory(state) else {
                continue;
            };
            let at = state.join(name);
            if !all.iter().any(|known| known.at == at) {
                let form = form(&at);
                all.push(ScriptsInState { at, form, reason });
            }
        }
    }
    all
}

fn form(at: &Path) -> ScriptsForm {
    match fs::symlink_metadata(at) {
        Ok(found) if found.is_symlink() => ScriptsForm::Link(fs::canonicalize(at).ok()),
        Ok(found) if found.is_dir() => ScriptsForm::Directory,
        Err(error) if error.kind() == io::ErrorKind::NotFound => ScriptsForm::Missing,
        _ => ScriptsForm::Other,
    }
}
