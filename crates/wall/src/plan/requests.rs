//! Everything that is shown beyond the system: the home's tables, the agent, the paths of the
//! configuration, and the workspace.
//!
//! They are placed by depth: what encloses a place is there before it, whoever asked for either.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    Guard, Operation,
    environment::CERTIFICATES,
    home::{self, Placed, hidden, read_only},
    layout::Layout,
    workspace::{self, PathRefusal},
};
use crate::{
    config::{Config, PathRequest},
    error::Error,
    facts::{Facts, Found, Kind},
    tables::{
        credentials,
        home::{OWN_DIRECTORIES, PROGRAMS_IN_STATE},
    },
};

const OWN: &str = "Stockade's own: decides what the next session may";

pub(super) fn place(config: &Config, facts: &Facts, layout: &mut Layout) -> Result<(), Error> {
    check(config, facts)?;
    let mut places = home::places(config, facts);
    places.extend(certificates(facts));
    places.extend(agent(config, facts));
    let asked = |requests: &[PathRequest], what: &str, operation: fn(&Found) -> Operation| {
        let place = |request: &PathRequest| {
            let found = facts.found.get(&request.path)?;
            let reason = format!("to be {what}: {}", request.by);
            Some((operation(found), reason.into()))
        };
        requests.iter().filter_map(place).collect::<Vec<Placed>>()
    };
    places.extend(asked(&config.read, "read", read_only));
    places.extend(asked(&config.write, "written", writable));
    if let Some(repository) = &facts.git.outside {
        places.push((
            writable_at(repository),
            "the repository that the workspace is a part of".into(),
        ));
    }
    places.push((writable_at(&facts.workspace), "the workspace".into()));
    sort(&mut places);
    for (operation, reason) in places {
        let operation = where_links_lead(operation, layout);
        layout.place(operation, reason);
    }
    let find = |request: &PathRequest| facts.found.get(&request.path);
    let given = config.read.iter().chain(&config.write).filter_map(find);
    let given: Vec<_> = given.map(|found| found.real.as_path()).collect();
    home::mask(facts, &given, layout);

    let to_write = config.write.iter().filter_map(find);
    let lifted: Vec<_> = to_write.map(|found| found.real.as_path()).collect();
    guards(facts, &lifted, layout);
    programs_in_state(facts, &lifted, layout);
    own(config, facts, layout);
    for request in &config.hide {
        if let Some(found) = find(request) {
            layout.hide(found, &format!("to be hidden: {}", request.by).into());
        }
    }
    Ok(())
}

/// Outer places first: a step covers the ones before it.
fn sort(places: &mut [Placed]) {
    places.sort_by_cached_key(|(operation, _)| operation.at().components().count());
}

/// Refuses what would undo the wall, and what does not exist.
fn check(config: &Config, facts: &Facts) -> Result<(), Error> {
    let missing: BTreeSet<_> = config
        .requests()
        .filter(|request| request.required && !facts.found.contains_key(&request.path))
        .map(|request| (request.path.clone(), request.by.clone()))
        .collect();
    if !missing.is_empty() {
        return Err(Error::MissingPaths(missing.into_iter().collect()));
    }
    if let Some(path) = facts.led_from_inside.first() {
        return Err(Error::PathRefused {
            path: path.clone(),
            refusal: PathRefusal::Led,
        });
    }
    let found = |requests: &[PathRequest]| -> Vec<&Found> {
        let find = |request: &PathRequest| facts.found.get(&request.path);
        requests.iter().filter_map(find).collect()
    };
    let refused = |found: &Found, refusal| {
        let path = found.at.clone();
        Err(Error::PathRefused { path, refusal })
    };
    let (read, write) = (found(&config.read), found(&config.write));
    let state = found(&config.agent.state);
    for found in read.iter().chain(&write).chain(&state) {
        if let Some(refusal) = workspace::undoes_the_wall(&found.real, &facts.home) {
            return refused(found, refusal);
        }
    }
    // A profile of ours names no credentials: a link leads there.
    for PathRequest { path, .. } in &config.agent.state {
        if let Some(found) = facts.found.get(path)
            && let Some(place) = credentials::behind(path, found, &facts.home.real)
        {
            return refused(found, PathRefusal::Credentials(place));
        }
    }
    for found in &read {
        if found.real.starts_with("/dev") {
            return refused(found, PathRefusal::Device);
        }
    }
    let own = own_paths(config, facts);
    for found in &read {
        if own.iter().any(|own| found.real.starts_with(own)) {
            return refused(found, PathRefusal::Private);
        }
    }
    for found in &write {
        if own
            .iter()
            .any(|own| own.starts_with(&found.real) || found.real.starts_with(own))
        {
            return refused(found, PathRefusal::Own);
        }
    }
    for found in found(&config.hide) {
        if facts.workspace.starts_with(&found.real) || Path::new("/usr").starts_with(&found.real) {
            return refused(found, PathRefusal::HidesAll);
        }
    }
    for hidden in &config.hide {
        let real = |request: &PathRequest| facts.found.get(&request.path).map(|it| &it.real);
        let mut given = config.read.iter().chain(&config.write);
        let same = given.find(|given| real(given).is_some() && real(given) == real(hidden));
        if let Some(given) = same {
            return Err(Error::HiddenAndGiven {
                path: hidden.path.clone(),
                hidden_by: hidden.by.clone(),
                given_by: given.by.clone(),
            });
        }
    }
    Ok(())
}

/// Certificates that the caller's environment names.
fn certificates(facts: &Facts) -> impl Iterator<Item = Placed> {
    CERTIFICATES
        .iter()
        .filter(|name| !(facts.no_certificates.iter()).any(|(refused, _, _)| refused == *name))
        .filter_map(|name| facts.found.get(Path::new(facts.variable(name)?)))
        .filter(|found| found.kind == Kind::File)
        .map(|found| {
            let reason = "certificates that this network trusts";
            (read_only(found), reason.into())
        })
}

/// The agent's program and its state.
fn agent(config: &Config, facts: &Facts) -> Vec<Placed> {
    let mut places = Vec::new();
    let command = facts
        .installation
        .iter()
        .map(|it| (it, "the command's program"));
    let brought = facts.brought.iter().map(|it| (it, "the agent's program"));
    for (installation, reason) in command.chain(brought) {
        let Found { at, real, .. } = &installation.program;
        if at != real {
            let (text, at) = (real.clone(), at.clone());
            places.push((Operation::Link { text, at }, reason.into()));
        }
        for part in &installation.parts {
            places.push((read_only(part), reason.into()));
        }
    }
    let find = |request: &PathRequest| facts.found.get(&request.path);
    for request in &config.agent.state {
        let Some(found) = find(request) else {
            continue;
        };
        let reason = format!("the agent's own settings and memory: {}", request.by);
        places.push((writable(found), reason.into()));
        // A program that lies there is also to be seen under the name of the place.
        let installations = facts.installation.iter().chain(&facts.brought);
        for part in installations.flat_map(|it| &it.parts) {
            if let Ok(below) = part.real.strip_prefix(&found.real)
                && found.at != found.real
            {
                let (at, guard) = (found.at.join(below), Guard::ReadOnly);
                places.push((Operation::Guard { at, guard }, "the agent's program".into()));
            }
        }
    }
    places
}

/// What programs outside execute of the workspace and of other directories that are given to be
/// written, unless configuration names just that, or a part of the workspace that holds it.
fn guards(facts: &Facts, lifted: &[&Path], layout: &mut Layout) {
    for guarded in &facts.guards.read_only {
        let is_lifted = |path: &&Path| {
            let is_part = path.starts_with(&facts.workspace) && **path != facts.workspace;
            path.starts_with(&guarded.path) || (is_part && guarded.path.starts_with(path))
        };
        if lifted.iter().any(is_lifted) {
            continue;
        }
        for at in layout.views(&guarded.path) {
            if matches!(layout.enclosing(&at), Some(Operation::Writable { .. })) {
                let guard = Guard::ReadOnly;
                layout.place(Operation::Guard { at, guard }, guarded.reason);
            }
        }
    }
}

/// Programs of agents in what can be written, unless configuration names them, by whatever
/// name, alias or script they are started.
fn programs_in_state(facts: &Facts, lifted: &[&Path], layout: &mut Layout) {
    for (name, reason) in PROGRAMS_IN_STATE {
        let Some(found) = facts.found.get(&facts.home.real.join(name)) else {
            continue;
        };
        if lifted.iter().any(|path| path.starts_with(&found.real)) {
            continue;
        }
        for at in layout.views(&found.real) {
            if matches!(layout.enclosing(&at), Some(Operation::Writable { .. })) {
                let guard = Guard::ReadOnly;
                layout.place(Operation::Guard { at, guard }, *reason);
            }
        }
    }
}

/// Where Stockade keeps what it trusts.
pub(crate) fn own_paths(config: &Config, facts: &Facts) -> Vec<PathBuf> {
    let in_home = OWN_DIRECTORIES
        .iter()
        .map(|name| facts.home.real.join(name));
    config.own.iter().cloned().chain(in_home).collect()
}

/// Stockade's own files are hidden. Where they are a part of the workspace (of somebody
/// who keeps settings in a repository) they can be read.
fn own(config: &Config, facts: &Facts, layout: &mut Layout) {
    for path in own_paths(config, facts) {
        let Some(found) = facts.found.get(&path) else {
            continue;
        };
        for at in layout.views(&found.real) {
            let operation = match layout.enclosing(&at) {
                Some(Operation::Writable { .. }) => Operation::Guard {
                    at,
                    guard: Guard::ReadOnly,
                },
                _ => hidden(at, found.kind),
            };
            layout.place(operation, OWN);
        }
    }
}

fn writable(found: &Found) -> Operation {
    let (source, at) = (found.real.clone(), found.at.clone());
    if source.starts_with("/dev") && !source.starts_with("/dev/shm") {
        Operation::Device { source, at }
    } else {
        Operation::Writable { source, at }
    }
}

fn writable_at(path: &Path) -> Operation {
    Operation::Writable {
        source: path.to_owned(),
        at: path.to_owned(),
    }
}

/// A path that is a link appears as what the link leads to; but where the link itself is in
/// view, what it leads to has to be put there.
fn where_links_lead(operation: Operation, layout: &Layout) -> Operation {
    let in_view = layout.shows_host_around(operation.at());
    match operation {
        Operation::ReadOnly { source, at } if source != at && in_view => Operation::ReadOnly {
            at: source.clone(),
            source,
        },
        Operation::Writable { source, at } if source != at && in_view => Operation::Writable {
            at: source.clone(),
            source,
        },
        other => other,
    }
}
