//! The home directory: empty, except for what its tables show.

use std::{
    collections::HashSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::{Fallback, Operation, Step, caches, layout::Layout, logins};
use crate::{
    config::{Config, ForgeTool, Root},
    error::Error,
    facts::{Facts, Found, Kind},
    tables::{
        credentials,
        home::{
            CACHE, EMPTY, GITHUB, GITLAB, PROGRAM_REASON, PROGRAMS, READABLE, SCRATCH,
            SECRET_REASON,
        },
    },
};

/// The empty home.
pub(super) fn empty(config: &Config, facts: &Facts, layout: &mut Layout) -> Result<(), Error> {
    let home = &facts.home;
    let holds = |path: &Path| path.starts_with(&home.real);
    let holds_system = facts.system.iter().any(|place| holds(&place.path));
    let special = ["/dev", "/proc", "/sys", "/run", "/var"];
    if holds_system || special.iter().any(|path| holds(Path::new(path))) {
        return Err(Error::HomeIsSystem(home.named.clone()));
    }
    let empty = Operation::Empty { mode: 0o700 };
    let reason = "no credentials, no other projects";
    layout.cover_elsewhere(&home.real, &empty, reason);
    if config.root == Root::All {
        layout.cover_parts(&home.real, &empty, reason);
    }
    layout.add(&home.real, empty, reason);
    let in_system = facts
        .system
        .iter()
        .any(|place| home.named.starts_with(&place.path));
    // Inside a system directory the host's own link is in view.
    if home.named != home.real && !in_system && config.root == Root::System {
        let text = home.real.clone();
        let reason = "the home directory under its other name";
        layout.add(&home.named, Operation::Link { text }, reason);
    }
    Ok(())
}

/// What is brought back.
pub(super) fn places(config: &Config, facts: &Facts) -> Vec<Step> {
    let find = |name: &str| facts.found.get(&facts.home.real.join(name));
    let mut places = Vec::new();
    // A directory that is, by a link, the home itself or more would bring back too much.
    let is_sane =
        |found: &Found| found.kind == Kind::Directory && !facts.home.real.starts_with(&found.real);
    for (name, reason) in SCRATCH {
        let step = match find(name).filter(|found| is_sane(found)) {
            Some(found) if *name == CACHE => {
                let operation = caches::bulk(config, facts, found);
                operation.map(|operation| Step::new(&found.at, operation, *reason))
            }
            Some(found) => {
                let operation = scratch(found, reserved(found, facts), Fallback::Empty);
                Some(Step::new(&found.at, operation, *reason))
            }
            // One that leads astray is not replaced by another.
            None if *name == CACHE && !is_there(facts) => {
                caches::missing_bulk(config, facts, reason)
            }
            None => None,
        };
        places.extend(step);
    }
    for (name, reason) in READABLE {
        if let Some(found) = find(name).filter(|found| is_sane(found)) {
            places.push(Step::new(&found.at, read_only(found), *reason));
        }
    }
    for name in PROGRAMS {
        if let Some(found) = find(name).filter(|found| found.kind == Kind::File) {
            places.push(Step::new(&found.at, read_only(found), PROGRAM_REASON));
        }
    }
    let forges = [
        (GITHUB, config.forge.github, ForgeTool::Gh),
        (GITLAB, config.forge.gitlab, ForgeTool::Glab),
    ];
    for (name, _, tool) in forges.iter().filter(|(_, is_on, _)| *is_on) {
        let stored = logins::for_tool(&config.forge, *tool, &facts.home.real.join(name));
        if !stored.is_empty() {
            places.extend(stored);
        } else if let Some(found) = find(name).filter(|found| is_sane(found)) {
            // Changes stay inside: its settings name programs that run outside.
            let operation = scratch(found, Vec::new(), Fallback::ReadOnly);
            let reason = "the login of a forge that is on";
            places.push(Step::new(&found.at, operation, reason));
        }
    }
    places
}

/// Whether there is something in the place of `~/.cache`, of whatever kind.
fn is_there(facts: &Facts) -> bool {
    let path = facts.home.real.join(CACHE);
    facts.found.contains_key(&path) || facts.astray.contains(&path)
}

/// What is not brought back of what is, unless it was asked for.
pub(super) fn mask(facts: &Facts, asked: &[&Path], layout: &mut Layout) {
    let find = |name: &str| facts.found.get(&facts.home.real.join(name));
    for (name, reason) in EMPTY {
        // One that does not exist is made inside, and is gone with it.
        if let Some(found) = find(name).filter(|found| found.kind == Kind::Directory) {
            layout.mask(&found.real, &Operation::Empty { mode: 0o700 }, reason);
        }
    }
    let home = &facts.home.real;
    let there = facts
        .found
        .keys()
        .filter_map(|it| it.strip_prefix(home).ok());
    let there: HashSet<_> = there.map(Path::as_os_str).collect();
    for name in credentials::in_bulk().filter(|name| there.contains(OsStr::new(name))) {
        if let Some(found) = find(name).filter(|found| !asked.contains(&found.real.as_path())) {
            layout.mask(&found.real, &hidden(found.kind), SECRET_REASON);
        }
    }
}

pub(super) fn read_only(found: &Found) -> Operation {
    let source = found.real.clone();
    Operation::ReadOnly { source }
}

pub(super) fn scratch(found: &Found, reserved: Vec<PathBuf>, fallback: Fallback) -> Operation {
    Operation::Scratch {
        source: found.real.clone(),
        reserved,
        fallback,
    }
}

/// The known places of secrets in a directory that do not exist, relative to it.
pub(super) fn reserved(directory: &Found, facts: &Facts) -> Vec<PathBuf> {
    let below = |place: &PathBuf| place.strip_prefix(&directory.real).ok().map(Path::to_owned);
    facts.reserved.iter().filter_map(below).collect()
}

pub(super) fn hidden(kind: Kind) -> Operation {
    match kind {
        Kind::Directory => Operation::HiddenDirectory,
        Kind::File | Kind::Other => Operation::HiddenFile,
    }
}
