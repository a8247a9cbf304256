//! The caller's search path, as far as it leads to something inside.

use std::path::{Path, PathBuf};

use super::{Operation, Step, words::word_of_shell, workspace};
use crate::{
    config::Config,
    facts::{Facts, is_in, own_directories},
    tables::system::PRIVATE,
};

/// What becomes of a directory of the search path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Directory {
    /// It is there under its name, or is nowhere at all.
    AsNamed,
    /// It is there, but a link on its way is not.
    Elsewhere(PathBuf),
    /// It is not shown.
    Hidden,
}

pub(super) fn look(named: &Path, real: &Path, files: &[Step]) -> Directory {
    let is_real = shows(files, real).as_deref() == Some(real);
    if named == real || !is_real {
        return if is_real || shows(files, named).as_deref() == Some(real) {
            Directory::AsNamed
        } else {
            Directory::Hidden
        };
    }
    let has_link = files.iter().any(|step| {
        matches!(step.operation, Operation::Link { .. }) && named.starts_with(&step.at)
    });
    // Where the host's directory is in view, so is the link in it.
    if has_link || shows(files, named).is_some() {
        Directory::AsNamed
    } else {
        Directory::Elsewhere(real.to_owned())
    }
}

/// Whether a directory of the search path is Stockade's own: that of the shims.
pub(super) fn is_own(named: &Path, config: &Config, facts: &Facts) -> bool {
    let mut own = own_directories(config, &facts.home.real);
    let real = own.iter().filter_map(|path| facts.found.get(path));
    let real: Vec<PathBuf> = real.map(|found| found.real.clone()).collect();
    own.extend(real);
    let known = facts.search_path.iter().find(|(known, _)| known == named);
    is_in(named, &own) || known.is_some_and(|(_, real)| is_in(real, &own))
}

/// The path of the host that is shown at a path inside.
fn shows(files: &[Step], path: &Path) -> Option<PathBuf> {
    let decides = |step: &&Step| {
        let is_place = !matches!(step.operation, Operation::Freeze | Operation::Link { .. });
        is_place && path.starts_with(&step.at)
    };
    let depth = |step: &&Step| step.at.components().count();
    let step = files.iter().filter(decides).max_by_key(depth)?;
    let below = path.strip_prefix(&step.at).ok()?;
    let source = step.operation.source()?;
    Some(source.components().chain(below.components()).collect())
}

/// A sentence about directories of the search path that are not shown.
pub(super) fn note(config: &Config, facts: &Facts, files: &[Step]) -> Option<String> {
    const MOST: usize = 3;
    let home = &facts.home;
    let hidden: Vec<&PathBuf> = facts
        .search_path
        .iter()
        .filter(|(named, real)| {
            let is_private = PRIVATE.iter().any(|(place, ..)| real.starts_with(place))
                && !real.starts_with(&home.real);
            // Windows' programs, which WSL would start outside.
            let is_windows = real.starts_with("/mnt") && real.components().count() > 3;
            !real.ends_with(".local/bin")
                && !is_private
                && !is_windows
                && !is_own(named, config, facts)
                && workspace::undoes_the_wall(real, home).is_none()
                && look(named, real, files) == Directory::Hidden
        })
        .map(|(named, _)| named)
        .collect();
    if hidden.is_empty() {
        return None;
    }
    let shown = hidden.iter().take(MOST);
    let names: Vec<_> = shown.clone().map(|path| format!("{path:?}")).collect();
    let flags = shown.filter_map(|path| Some(format!("--read {}", word_of_shell(path)?)));
    let flags: Vec<_> = flags.collect();
    let more = match hidden.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let fix = match flags.is_empty() {
        true => String::new(),
        false => format!("; to show it: {}", flags.join(" ")),
    };
    let names = names.join(", ");
    Some(format!(
        "PATH names {names}{more}, which the command does not see{fix}"
    ))
}
