//! Everything that is shown beyond the system: the home's tables, the agent, the paths of the
//! configuration, and the workspace.
//!
//! They are placed by depth: what encloses a place is there before it, whoever asked for either.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    Fallback, Guard, Operation, Step, caches,
    environment::CERTIFICATES,
    home::{self, hidden, read_only},
    indexes,
    layout::Layout,
    workspace::{self, PathRefusal},
};
use crate::{
    config::{Config, MovedState, PathRequest},
    error::Error,
    facts::{Facts, Found, Kind, Place, ScriptsForm, ScriptsInState, is_in, own_directories},
    launch::agent_state::Form,
    tables::{credentials, home::PROGRAMS_IN_STATE},
};

const READ_ONLY: Operation = Operation::Guard(Guard::ReadOnly);
const OTHER_STATE: &str = "login and conversations of another agent";
const OWN: &str = "Stockade's own: decides what the next session may";

pub(super) fn place(config: &Config, facts: &Facts, layout: &mut Layout) -> Result<(), Error> {
    check(config, facts)?;
    let empty = Operation::Empty { mode: 0o755 };
    let above = above(facts).into_iter();
    let mut places: Vec<Step> = above
        .map(|at| Step::new(at, empty.clone(), ABOVE))
        .collect();
    places.extend(home::places(config, facts));
    places.extend(certificates(facts));
    places.extend(agent(config, facts));
    places.extend(toolchains(facts));
    places.extend(caches::places(config, facts));
    let asked = |requests: &[PathRequest], what: &str, operation: fn(&Found) -> Operation| {
        let place = |request: &PathRequest| {
            let found = facts.found.get(&request.path)?;
            let reason = format!("to be {what}: {}", request.by);
            Some(Step::new(&found.at, operation(found), reason))
        };
        requests.iter().filter_map(place).collect::<Vec<Step>>()
    };
    places.extend(asked(&config.read, "read", read_only));
    places.extend(asked(&config.write, "written", writable));
    if let Some(repository) = &facts.git.outside {
        let reason = "the repository that the workspace is a part of";
        places.push(writable_at(repository, reason));
    }
    places.push(writable_at(&facts.workspace, "the workspace"));
    // Outer places first: a step covers the ones before it.
    places.sort_by_cached_key(|step| step.at.components().count());
    for step in places {
        layout.place(where_links_lead(step, layout));
    }
    let find = |request: &PathRequest| facts.found.get(&request.path);
    let given = config.read.iter().chain(&config.write).filter_map(find);
    let given: Vec<_> = given.map(|found| found.real.as_path()).collect();
    home::mask(facts, &given, layout);
    for path in &facts.toolchains.settings {
        if !given.contains(&path.as_path()) {
            let reason = "settings of a package manager, which may hold logins";
            layout.mask(path, &Operation::Text(String::new()), reason);
        }
    }
    other_state(config, facts, &given, layout);
    indexes::place(config, facts, layout);

    let to_write = config.write.iter().filter_map(find);
    let lifted: Vec<_> = to_write.map(|found| found.real.as_path()).collect();
    guards(facts, &lifted, layout);
    dependencies(facts, &lifted, layout);
    programs_in_state(config, facts, &lifted, layout);
    scripts_in_state(facts, layout)?;
    own(config, facts, layout);
    for request in &config.hide {
        if let Some(found) = find(request) {
            layout.hide(found, &format!("to be hidden: {}", request.by).into());
        }
    }
    Ok(())
}

const ABOVE: &str = "what is written beside the workspace would be lost";

/// The directories right below the home that hold the workspace, or its repository. Not those where
/// programs keep their settings.
fn above(facts: &Facts) -> Vec<PathBuf> {
    let home = &facts.home.real;
    let places = [Some(&facts.workspace), facts.git.outside.as_ref()];
    let mut above: Vec<PathBuf> = Vec::new();
    for place in places.into_iter().flatten() {
        let mut names = place.strip_prefix(home).into_iter().flatten();
        if let (Some(first), Some(_)) = (names.next(), names.next())
            && !first.as_encoded_bytes().starts_with(b".")
            && !above.contains(&home.join(first))
        {
            above.push(home.join(first));
        }
    }
    above
}

/// Makes them unchangeable, unless configuration shows more of them.
pub(super) fn freeze_above(facts: &Facts, layout: &mut Layout) {
    for at in above(facts) {
        let is_empty = |it: &Step| it.at == at && matches!(it.operation, Operation::Empty { .. });
        if layout.enclosing(&at).is_some_and(is_empty) {
            layout.add(&at, Operation::Freeze, ABOVE);
        }
    }
}

/// Refuses what would undo the wall, and what does not exist.
fn check(config: &Config, facts: &Facts) -> Result<(), Error> {
    let mut moved = config.moved_state.iter().filter(|it| config.is_state(it));
    let refusal = |it: &MovedState| state_refusal(it, config, facts);
    if let Some((moved, refusal)) = moved.find_map(|it| Some((it, refusal(it)?))) {
        return Err(Error::StateRefused {
            variable: moved.variable,
            path: moved.at.clone(),
            refusal,
        });
    }
    let mut missing: BTreeMap<&PathBuf, Vec<&str>> = BTreeMap::new();
    for request in config.requests().filter(|request| request.required) {
        if !facts.found.contains_key(&request.path) {
            missing.entry(&request.path).or_default().push(&request.by);
        }
    }
    if !missing.is_empty() {
        let missing = missing.into_iter();
        let missing = missing.map(|(path, by)| (path.clone(), by.join(", ")));
        return Err(Error::MissingPaths(missing.collect()));
    }
    if let Some((path, real)) = facts.led_from_inside.first_key_value() {
        let (path, real) = (path.clone(), real.clone());
        return Err(Error::Led { path, real });
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
    let homes = homes(facts);
    for found in read.iter().chain(&write).chain(&state) {
        let mut refusals = homes
            .iter()
            .filter_map(|home| workspace::undoes_the_wall(&found.real, home));
        if let Some(refusal) = refusals.next() {
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
    for request in config.read.iter().chain(&config.write) {
        if let Some(place) = facts.led_to_credentials.get(&request.path) {
            return Err(Error::LedToCredentials {
                path: request.path.clone(),
                place: match place.starts_with('/') {
                    true => (*place).to_owned(),
                    false => format!("~/{place}"),
                },
            });
        }
    }
    let own = own_paths(config, facts);
    for found in &read {
        if found.real.starts_with("/dev") {
            return refused(found, PathRefusal::Device);
        }
        if is_in(&found.real, &own) {
            return refused(found, PathRefusal::Private);
        }
    }
    for found in &write {
        let holds_own = own.iter().any(|own| own.starts_with(&found.real));
        if holds_own || is_in(&found.real, &own) {
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

/// The home, by each path at which it is mounted.
pub(super) fn homes(facts: &Facts) -> Vec<Place> {
    let names = facts.mounts.other_names(&facts.home.real);
    let other = |real: PathBuf| Place {
        named: real.clone(),
        real,
    };
    let first = std::iter::once(facts.home.clone());
    first.chain(names.into_iter().map(other)).collect()
}

/// Certificates that the caller's environment names.
fn certificates(facts: &Facts) -> impl Iterator<Item = Step> {
    CERTIFICATES
        .iter()
        .filter(|name| !(facts.no_certificates.iter()).any(|(refused, _, _)| refused == *name))
        .filter_map(|name| facts.found.get(Path::new(facts.variable(name)?)))
        .filter(|found| found.kind == Kind::File)
        .map(|found| {
            let reason = "certificates that this network trusts";
            Step::new(&found.at, read_only(found), reason)
        })
}

/// The agent's program and its state.
fn agent(config: &Config, facts: &Facts) -> Vec<Step> {
    let mut places = Vec::new();
    let command = facts
        .installation
        .iter()
        .map(|it| (it, "the command's program"));
    let brought = facts.brought.iter().map(|it| (it, "the agent's program"));
    for (installation, reason) in command.chain(brought) {
        let Found { at, real, .. } = &installation.program;
        if at != real {
            let text = real.clone();
            places.push(Step::new(at, Operation::Link { text }, reason));
        }
        for part in &installation.parts {
            places.push(Step::new(&part.at, read_only(part), reason));
        }
    }
    let find = |request: &PathRequest| facts.found.get(&request.path);
    for request in &config.agent.state {
        let Some(found) = find(request) else {
            continue;
        };
        let reason = format!("the agent's own settings and memory: {}", request.by);
        places.push(Step::new(&found.at, writable(found), reason));
        // A program that lies there is also to be seen under the name of the place.
        let installations = facts.installation.iter().chain(&facts.brought);
        for part in installations.flat_map(|it| &it.parts) {
            if let Ok(below) = part.real.strip_prefix(&found.real)
                && found.at != found.real
            {
                let (at, reason) = (found.at.join(below), "the agent's program");
                places.push(Step::new(at, READ_ONLY, reason));
            }
        }
    }
    places
}

/// Toolchains, and the links to what they have installed.
fn toolchains(facts: &Facts) -> impl Iterator<Item = Step> {
    const REASON: &str = "a toolchain";
    let shown = facts.toolchains.shown.iter();
    let shown = shown.map(|found| Step::new(&found.at, read_only(found), REASON));
    // An agent that is such a tool has a link already.
    let programs = facts.installation.iter().chain(&facts.brought);
    let programs: Vec<_> = programs.map(|it| &it.program.at).collect();
    let links = facts.toolchains.links.iter();
    let links = links.filter(move |(at, _)| !programs.contains(&at));
    let link = |text: &PathBuf| Operation::Link { text: text.clone() };
    let links = links.map(move |(at, text)| Step::new(at, link(text), REASON));
    shown.chain(links)
}

/// What programs outside execute of the workspace and of other directories that are given to be
/// written, unless configuration names just that, or a part of the workspace that holds it.
fn guards(facts: &Facts, lifted: &[&Path], layout: &mut Layout) {
    for guarded in &facts.guards.read_only {
        if !is_lifted(&guarded.path, facts, lifted) {
            guard(&guarded.path, guarded.reason, layout);
        }
    }
}

/// Whether configuration names just that to be written, or a part of the workspace that holds it.
pub(super) fn is_lifted(protected: &Path, facts: &Facts, lifted: &[&Path]) -> bool {
    lifted.iter().any(|path| {
        let is_part = path.starts_with(&facts.workspace) && **path != facts.workspace;
        path.starts_with(protected) || (is_part && protected.starts_with(path))
    })
}

/// Installed dependencies that other projects have, too, by hard links: what the command writes to
/// them stays inside.
fn dependencies(facts: &Facts, lifted: &[&Path], layout: &mut Layout) {
    for real in &facts.shared.dependencies {
        if is_lifted(real, facts, lifted) {
            continue;
        }
        for at in layout.views(real) {
            if layout.is_writable(&at) {
                let operation = Operation::Scratch {
                    source: real.clone(),
                    reserved: Vec::new(),
                    fallback: Fallback::ReadOnly,
                };
                layout.add(at, operation, "shared with other projects by hard links");
            }
        }
    }
}

/// Makes something read-only wherever the command could write it.
fn guard(real: &Path, reason: &'static str, layout: &mut Layout) {
    for at in layout.views(real) {
        if layout.is_writable(&at) {
            layout.place(Step::new(at, READ_ONLY, reason));
        }
    }
}

/// Programs of agents in what can be written, unless configuration names them, by whatever
/// name, alias or script they are started.
fn programs_in_state(config: &Config, facts: &Facts, lifted: &[&Path], layout: &mut Layout) {
    for (name, reason) in PROGRAMS_IN_STATE {
        for place in config.places_in_state(&facts.home.real, name) {
            let Some(found) = facts.found.get(&place) else {
                continue;
            };
            if lifted.iter().any(|path| path.starts_with(&found.real)) {
                continue;
            }
            guard(&found.real, reason, layout);
        }
    }
}

/// What agents that run outside have their shells read: in what can be written, the sandbox has a
/// directory of its own. One that does not exist is made before the start (see `prepare`), or the
/// command would make it.
fn scripts_in_state(facts: &Facts, layout: &mut Layout) -> Result<(), Error> {
    for ScriptsInState { at, form, reason } in &facts.scripts {
        let writable = |real: &Path| -> Vec<PathBuf> {
            let views = layout.views(real).into_iter();
            views.filter(|view| layout.is_writable(view)).collect()
        };
        let views = writable(at);
        let is_refused = match form {
            ScriptsForm::Missing | ScriptsForm::Directory => false,
            ScriptsForm::Link(Some(real)) => !views.is_empty() || !writable(real).is_empty(),
            // Nobody knows who makes what it leads to.
            ScriptsForm::Link(None) => true,
            ScriptsForm::Other => !views.is_empty(),
        };
        if is_refused {
            return Err(Error::ScriptsAstray(at.clone()));
        }
        for view in views {
            layout.add(view, Operation::Empty { mode: 0o700 }, *reason);
        }
    }
    Ok(())
}

/// Why the directory that a variable names cannot be an agent's state, if it cannot. One in the
/// home may not exist yet.
fn state_refusal(moved: &MovedState, config: &Config, facts: &Facts) -> Option<PathRefusal> {
    let Place { named, real: home } = &facts.home;
    let real = match facts.found.get(&moved.at) {
        Some(found) if found.kind != Kind::Directory => return Some(PathRefusal::NoDirectory),
        Some(found) => found.real.clone(),
        None if Form::of(&moved.at) != Some(Form::Directory) => return Some(PathRefusal::Missing),
        None => match moved.at.strip_prefix(named) {
            Ok(below) => home.join(below),
            Err(_) if moved.at.starts_with(home) => moved.at.clone(),
            Err(_) => return Some(PathRefusal::Missing),
        },
    };
    let own = own_paths(config, facts);
    if let Some(refusal) = workspace::refusal(&real, &facts.home) {
        Some(refusal)
    } else if facts.workspace.starts_with(&real) && facts.workspace != real {
        Some(PathRefusal::HoldsWorkspace)
    } else {
        let is_own = own.iter().any(|own| own.starts_with(&real)) || is_in(&real, &own);
        is_own.then_some(PathRefusal::Own)
    }
}

/// The state of other agents than the one that is run, where it is in view.
fn other_state(config: &Config, facts: &Facts, given: &[&Path], layout: &mut Layout) {
    let moved = config.moved_state.iter();
    for moved in moved.filter(|moved| !config.is_state(moved)) {
        // What a variable names that is no agent's state need not be hidden like one.
        if state_refusal(moved, config, facts).is_some() {
            continue;
        }
        if let Some(found) = facts.found.get(&moved.at)
            && !given.contains(&found.real.as_path())
            && !found.real.starts_with(&facts.workspace)
            && !facts.workspace.starts_with(&found.real)
        {
            layout.mask(&found.real, &hidden(found.kind), OTHER_STATE);
        }
    }
}

fn own_paths(config: &Config, facts: &Facts) -> Vec<PathBuf> {
    own_directories(config, &facts.home.real)
}

/// Stockade's own files are hidden. Where they are a part of the workspace (of somebody
/// who keeps settings in a repository) they can be read.
fn own(config: &Config, facts: &Facts, layout: &mut Layout) {
    for path in own_paths(config, facts) {
        let Some(found) = facts.found.get(&path) else {
            continue;
        };
        for at in layout.views(&found.real) {
            let operation = match layout.is_writable(&at) {
                true => READ_ONLY,
                false => hidden(found.kind),
            };
            layout.place(Step::new(at, operation, OWN));
        }
    }
}

fn writable(found: &Found) -> Operation {
    let source = found.real.clone();
    if source.starts_with("/dev") && !source.starts_with("/dev/shm") {
        Operation::Device { source }
    } else {
        Operation::Writable { source }
    }
}

fn writable_at(path: &Path, reason: &'static str) -> Step {
    let source = path.to_owned();
    Step::new(path, Operation::Writable { source }, reason)
}

/// A path that is a link appears as what the link leads to; but where the link itself is in
/// view, what it leads to has to be put there.
fn where_links_lead(mut step: Step, layout: &Layout) -> Step {
    if let Operation::ReadOnly { source } | Operation::Writable { source } = &step.operation
        && layout.shows_host_around(&step.at)
    {
        step.at.clone_from(source);
    }
    step
}
