//! Notes for the user about a plan.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    environment, indexes, logins, process::no_nested, requests::is_lifted, words::word_of_shell,
    workspace,
};
use crate::{
    config::{Asked, Config, Hardening, Nested, PathRequest},
    facts::Facts,
    launch::agent_state::Form,
};

pub(super) fn notes(config: &Config, facts: &Facts) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((path, why)) = &facts.git.refused {
        // No proposal: a session may have written the path that stands in `.git`.
        notes.push(format!(
            "suspicious: git will not work inside: {path:?} is not shown, because {why}. Look at \
             .git: if you did not make it, a command did. If you moved the worktree, run \
             `git worktree repair` in it"
        ));
    }
    if let Some(repository) = &facts.git.above {
        let fix = match workspace::refusal(repository, &facts.home) {
            None => {
                let now = word_of_shell(repository)
                    .map(|word| format!("stockade -C {word} …, or "))
                    .unwrap_or_default();
                format!(
                    ". To show all of it: {now}for every session workspace = \"repository\" in \
                     ~/.config/stockade/config.toml"
                )
            }
            Some(_) => String::new(),
        };
        notes.push(format!(
            "git will not work inside: the repository is {repository:?}, of which only this \
             directory is shown{fix}"
        ));
    }
    match (&config.nested, no_nested(config, facts)) {
        (Nested::IfPossible(_), Some(why)) => notes.push(format!(
            "the agent's own sandbox will not work in this one, because {why}. Turn it off in \
             the agent's settings if commands fail"
        )),
        _ => notes.extend(nested_by_file(config, facts)),
    }
    notes.extend(tracked(config, facts));
    for path in &facts.guards.links {
        notes.push(format!(
            "{path:?} is executed outside and cannot be protected, because it is a link: \
             look at what it leads to after the session"
        ));
    }
    notes.extend(shared(config, facts));
    for (name, path, place) in &facts.no_certificates {
        notes.push(format!(
            "{name} names {path:?}, which is not shown, because it is {place}: name a file of \
             certificates, or unset {name}"
        ));
    }
    let caches = facts.caches.refused.iter();
    let twice = |it: &&(_, _, _)| !facts.toolchains.refused.contains(it);
    let tools = facts.toolchains.refused.iter();
    for (name, path, why) in tools.chain(caches.filter(twice)) {
        notes.push(format!(
            "{name} names {path:?}, which is not shown, because {why}: unset {name}, or name the \
             directory of your tools"
        ));
    }
    if let Some(name) = environment::without_discovery(config, facts).next() {
        notes.push(format!(
            "{name} is not passed on, because searches for devices do not leave the jail. To pass \
             on EPICS variables and searches: --discovery epics"
        ));
    }
    let stripped: Vec<_> = environment::without_logins(config, facts).collect();
    if !stripped.is_empty() {
        let names = stripped.join(" and ");
        let fix = match environment::is_about_proxy(stripped[0].as_ref()) {
            true => {
                "To have Stockade use the proxy for the command: --proxy environment".to_owned()
            }
            false => format!("To pass a variable whole: --pass-env {}", stripped[0]),
        };
        notes.push(format!(
            "removed user and password from {names}: the command could send them anywhere. {fix}"
        ));
    }
    let of_proxy = |asked: &&Asked<OsString>| environment::is_about_proxy(&asked.value);
    for Asked { value, by } in config.pass.iter().filter(of_proxy) {
        if config.has_proxy {
            notes.push(format!(
                "{} is not passed on ({by}): Stockade uses the proxy for the command",
                value.to_string_lossy()
            ));
        }
    }
    notes.extend(indexes::notes(config, facts));
    for path in &facts.astray {
        notes.push(format!(
            "{path:?} is not shown: a link leads it to credentials, or to where the command \
             could have led it. That is suspicious unless you made the link"
        ));
    }
    for PathRequest { path, by, .. } in &config.read {
        if facts
            .found
            .get(path)
            .is_some_and(|found| found.real == facts.workspace)
        {
            notes.push(format!(
                "{path:?} is the workspace, which can be written: that it can be read ({by}) \
                 changes nothing. A part of it that is named so is read-only"
            ));
        }
    }
    let forge = &config.forge;
    if let Some(host) = forge.hosts.first()
        && !forge.github
        && !forge.gitlab
    {
        notes.push(format!(
            "{host:?} is named as the host of a forge, but neither github nor gitlab is on"
        ));
    }
    notes.extend(logins::notes(forge, facts));
    let made: Vec<_> = config.agent.missing_state(facts).collect();
    for PathRequest { path, .. } in &config.agent.state {
        // Of a form that is not known are files that people write, and agents only read.
        if facts.found.contains_key(path) || Form::of(path).is_none() {
            continue;
        }
        notes.push(if made.contains(&path.as_path()) {
            format!(
                "{path:?} does not exist: it is made, empty, when the agent is run, so that \
                 what the agent writes there is kept"
            )
        } else {
            format!("{path:?} does not exist: what the agent writes there is gone at the end")
        });
    }
    notes
}

/// That a file turns on less protection. A session may have written it.
pub(super) fn nested_by_file(config: &Config, facts: &Facts) -> Option<String> {
    let Nested::IfPossible(Some(file)) = &config.nested else {
        return None;
    };
    no_nested(config, facts).is_none().then(|| {
        format!(
            "nested is on, because {file:?} says so (sandbox.enabled); --nested=false turns it off"
        )
    })
}

/// What becomes of files that other directories have, too.
fn shared(config: &Config, facts: &Facts) -> Vec<String> {
    let mut notes = Vec::new();
    let found = config
        .write
        .iter()
        .filter_map(|it| facts.found.get(&it.path));
    let lifted: Vec<_> = found.map(|found| found.real.as_path()).collect();
    let lifted = |path: &&PathBuf| is_lifted(path, facts, &lifted);
    let dependencies = &facts.shared.dependencies;
    let apart: Vec<_> = dependencies.iter().filter(|it| !lifted(it)).collect();
    if let Some(first) = apart.first() {
        let names: Vec<_> = apart.iter().map(|path| format!("{path:?}")).collect();
        notes.push(format!(
            "{} shares files with other projects by hard links, so changes to it are discarded at \
             the end. After the session, run your package manager outside. To keep changes, install \
             copies (UV_LINK_MODE=copy, package-import-method=copy of pnpm, --backend=copyfile of \
             bun, always_copy of conda){}",
            names.join(", "),
            word_of_shell(first)
                .map(|word| format!("; to change all projects at once: --write {word}"))
                .unwrap_or_default()
        ));
    }
    let written = dependencies.iter().filter(lifted);
    for path in written.chain(&facts.shared.objects) {
        notes.push(format!(
            "{path:?} shares files with other directories by hard links: what the command changes \
             in them changes there, too. For git objects, clone with --no-hardlinks"
        ));
    }
    for path in &facts.shared.unseen {
        notes.push(format!(
            "{path:?} could not be checked completely: it is too large, or cannot be read. If other \
             projects share files of the workspace by hard links, the command may be able to change them"
        ));
    }
    notes
}

/// Which files git cannot update inside, although it tracks them, and why.
fn tracked(config: &Config, facts: &Facts) -> Vec<String> {
    let lifted = |path: &&PathBuf| {
        let mut writes = config.write.iter();
        !writes.any(|request| path.starts_with(&request.path))
    };
    let names = |paths: &[PathBuf]| {
        const SHOWN: usize = 4;
        let paths: Vec<_> = paths.iter().filter(lifted).collect();
        let name = |path: &&PathBuf| {
            let name = path.strip_prefix(&facts.workspace).unwrap_or(path);
            format!("{name:?}")
        };
        let mut names: Vec<_> = paths.iter().take(SHOWN).map(name).collect();
        if let Some(more) = paths.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            names.push(format!("{more} more"));
        }
        (!names.is_empty()).then(|| names.join(", "))
    };
    let guards = &facts.guards;
    let frozen = names(&guards.frozen).map(|names| {
        let why = match config.hardening {
            Hardening::Strict => "hardening is \"strict\"",
            Hardening::Default => "they cannot be told from untracked files, or are git's hooks",
        };
        format!(
            "git tracks {names} and cannot update them inside: programs outside run them, and \
             they are read-only, because {why}. Switch branches that differ in them outside"
        )
    });
    let first = guards.held.iter().find(lifted);
    let held = first.zip(names(&guards.held)).map(|(first, names)| {
        let first: &Path = first.strip_prefix(&facts.workspace).unwrap_or(first);
        // A session may have chosen the name.
        let fix = match word_of_shell(first) {
            Some(word) => format!("stockade accept --file {word}"),
            None => "see `stockade accept --help`".to_owned(),
        };
        format!(
            "git tracks {names}, but did not when an earlier session began, so they stay \
             read-only. If you added them to git, and not a session: {fix}"
        )
    });
    frozen.into_iter().chain(held).collect()
}
