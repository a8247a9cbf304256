//! Package caches in the plan: kept for the workspace, in memory, or empty.

use std::path::Path;

use super::{
    Fallback, Operation, Step,
    home::{reserved, scratch},
};
use crate::{
    config::{CacheMode, Config},
    facts::{CachePlace, Facts, Found, Kind},
    tables::{caches::BULK, home::CACHE},
};

const REASON: &str = "a package cache";

/// Everything that package managers write to.
pub(super) fn places(config: &Config, facts: &Facts) -> Vec<Step> {
    let mut places = Vec::new();
    for root in &facts.caches.roots {
        let reason = "a package manager's directory, without the settings and logins in it";
        places.push(Step::new(root, Operation::Empty { mode: 0o700 }, reason));
    }
    for place in &facts.caches.places {
        places.extend(cache(config, facts, place).map(|it| Step::new(&place.at, it, REASON)));
    }
    places
}

fn cache(config: &Config, facts: &Facts, place: &CachePlace) -> Option<Operation> {
    let CachePlace { name, at, host } = place;
    let found = host.as_ref().map(|real| Found {
        at: at.clone(),
        real: real.clone(),
        kind: Kind::Directory,
    });
    match (&config.caches, found) {
        (CacheMode::Keep(_), Some(found)) => {
            Some(scratch(&found, Vec::new(), Fallback::Kept(name)))
        }
        (CacheMode::Keep(_), None) => Some(Operation::Kept(name)),
        (CacheMode::Scratch, Some(found)) => Some(scratch(&found, Vec::new(), Fallback::Empty)),
        (CacheMode::Scratch | CacheMode::Empty, _) => empty(facts, at),
    }
}

/// `~/.cache`, if there is one.
pub(super) fn bulk(config: &Config, facts: &Facts, found: &Found) -> Option<Operation> {
    let fallback = match config.caches {
        CacheMode::Keep(_) => Fallback::Kept(BULK),
        CacheMode::Scratch => Fallback::Empty,
        CacheMode::Empty => return None,
    };
    Some(scratch(found, reserved(found, facts), fallback))
}

/// `~/.cache`, if there is none.
pub(super) fn missing_bulk(config: &Config, facts: &Facts, reason: &'static str) -> Option<Step> {
    let at = facts.home.real.join(CACHE);
    match config.caches {
        CacheMode::Keep(_) => Some(Step::new(at, Operation::Kept(BULK), reason)),
        CacheMode::Scratch | CacheMode::Empty => None,
    }
}

/// An empty directory where there would be none: in the home, whoever needs one can make it.
fn empty(facts: &Facts, at: &Path) -> Option<Operation> {
    let is_in_home = at.starts_with(&facts.home.real);
    (!is_in_home).then_some(Operation::Empty { mode: 0o700 })
}
