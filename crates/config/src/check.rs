//! `config check FILE`: one file, wherever it is.
//!
//! A file's place says whose it is, and so what it may set. A file elsewhere, for another machine
//! or in a repository, is read by its contents instead. The result also says whether a launch
//! would refuse the file at its place.

use std::{path::Path, sync::Arc};

use crate::{
    diagnostic::Diagnostics,
    files::{Guard, Places, any_file, own_file, workspace_file},
    layer::LayerKind,
    merge::{Choice, merge},
    parse::{has_key, parse},
    source::Source,
};

#[derive(Debug)]
pub struct Checked {
    /// As whose file it was read.
    pub role: LayerKind,
    /// Whether Stockade reads files at its place.
    pub counts: bool,
    /// Why a launch would refuse it at its place, if it would.
    pub refused: Option<String>,
    pub outcome: Result<(), Diagnostics>,
}

/// Checks one file.
///
/// # Errors
/// If it cannot be read, or would be refused at its place.
pub fn check_file(path: &Path, places: &Places) -> Result<Checked, Diagnostics> {
    let (role, source, refused) = match places.kind_of(path) {
        Some(role) => (role, at_its_place(role, path, places)?, None),
        None => {
            let source = any_file(path)?;
            let refused = own_file(path, &Guard::new(places)).err();
            (seeming_role(&source), source, refused)
        }
    };
    // Alone: what it asks for must be possible.
    let layer = parse(role, &source, &places.roots());
    let outcome = layer.and_then(|layer| merge(&[layer], &Choice::None).map(|_| ()));
    Ok(Checked {
        role,
        counts: places.kind_of(path).is_some(),
        refused: refused.map(|problem| problem.title),
        outcome,
    })
}

/// The text of another program's file, and why somebody else could have written it, if so.
///
/// # Errors
/// If it cannot be read.
pub fn foreign_file(
    path: &Path,
    places: &Places,
) -> Result<(Arc<Source>, Option<String>), Diagnostics> {
    match own_file(path, &Guard::new(places)) {
        Ok(Some(source)) => Ok((source, None)),
        // Says that it is not there.
        Ok(None) => Ok((any_file(path)?, None)),
        Err(problem) => Ok((any_file(path)?, Some(problem.title))),
    }
}

/// Why somebody else could have written the file, if so. Such a file is not read.
pub fn others_can_write(path: &Path, places: &Places) -> Option<String> {
    let problem = own_file(path, &Guard::new(places)).err()?;
    Some(problem.title)
}

fn at_its_place(role: LayerKind, path: &Path, places: &Places) -> Result<Arc<Source>, Diagnostics> {
    let source = match role {
        LayerKind::Workspace => match workspace_file(path)? {
            Some(text) => Some(text.source(path)?),
            None => None,
        },
        _ => own_file(path, &Guard::new(places))?,
    };
    match source {
        Some(source) => Ok(source),
        // Says that it is not there.
        None => Ok(any_file(path)?),
    }
}

/// Whose file it is by what only such a file can say.
fn seeming_role(source: &Arc<Source>) -> LayerKind {
    if has_key(source, "lock") {
        LayerKind::System
    } else if has_key(source, "workspace") {
        LayerKind::Project
    } else {
        LayerKind::User
    }
}
