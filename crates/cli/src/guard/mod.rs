//! `stockade guard`: an agent's own hooks, which keep it from working outside of a session.
//!
//! # Theory of operation
//! The hooks ask `stockade inside` before a prompt goes to the model and before a tool runs, and
//! refuse by their exit code if the answer is not yes (docs/decisions/0029-the-session-socket-and-the-guard.md).
//! ```text
//! agents     which hooks an agent has, and in which file
//! json       a text that is changed in one place
//! settings   the settings with and without a guard: pure
//! file       the file on disk
//! ```
//! A guard is against mistakes. An agent outside that wants to go around it, can.

mod agents;
mod file;
mod json;
mod settings;

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use rustix::process::geteuid;
use serde::Serialize;
use serde_json::{Value, json};
use stockade_config::{Loader, moved_state, shown_path};
use stockade_wall::Starter;

use self::{
    agents::{GUARDED, Guarded, refusal},
    file::SettingsFile,
    settings::{Found, NotEditable},
};
use crate::{args, context, exit::refused, inside, terminal};

pub(crate) fn guard(command: &args::Guard) -> Result<ExitCode> {
    match command {
        args::Guard::Add { system, agents } => {
            outside_only()?;
            each(agents, Scope::of(*system)?, add)
        }
        args::Guard::Remove { system, agents } => {
            outside_only()?;
            each(agents, Scope::of(*system)?, remove)
        }
        args::Guard::List { json } => list(*json),
    }
}

/// Whose settings have the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Scope {
    User,
    System,
}

impl Scope {
    fn of(system: bool) -> Result<Self> {
        match system {
            true if !geteuid().is_root() => Err(refused(
                "only root can change the settings of all users",
                "run it with sudo, or leave out --system",
            )),
            true => Ok(Self::System),
            false => Ok(Self::User),
        }
    }

    fn mode(self) -> u32 {
        match self {
            Self::User => 0o600,
            Self::System => 0o644,
        }
    }
}

fn outside_only() -> Result<()> {
    match inside::proven() {
        true => Err(refused(
            "this is inside a session, where a guard has nothing to do",
            "run it outside",
        )),
        false => Ok(()),
    }
}

/// All names first: a wrong one changes nothing.
fn each(
    names: &[String],
    scope: Scope,
    change: fn(&Guarded, Scope, PathBuf) -> Result<String>,
) -> Result<ExitCode> {
    let agents: Vec<_> = names.iter().map(|name| find(name)).collect::<Result<_>>()?;
    let loader = context::loader_here()?;
    let paths: Vec<_> = agents
        .iter()
        .map(|agent| {
            path(agent, scope, &loader).map_err(|why| {
                let name = agent.name;
                refused(
                    format!("{name} cannot be guarded by your own settings: {why}"),
                    format!(
                        "`sudo stockade guard add --system {name}`, or `stockade shim add {name}`, \
                         which makes `{name}` itself start in the sandbox"
                    ),
                )
            })
        })
        .collect::<Result<_>>()?;
    for (agent, path) in agents.into_iter().zip(paths) {
        let said = change(agent, scope, path)?;
        terminal::print(format_args!("{said}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> Result<&'static Guarded> {
    if let Some(agent) = Guarded::find(name) {
        return Ok(agent);
    }
    match refusal(name) {
        Some(why) => Err(refused(
            format!("{name} cannot be guarded: {why}"),
            format!("`stockade shim add {name}` makes `{name}` itself start in the sandbox"),
        )),
        None => {
            let known: Vec<_> = GUARDED.iter().map(|agent| agent.name).collect();
            let what = format!(
                "unknown agent `{}`: expected {}",
                stockade_config::shown(name),
                known.join(", ")
            );
            Err(refused(what, "name one of these"))
        }
    }
}

fn path(agent: &Guarded, scope: Scope, loader: &Loader) -> Result<PathBuf, &'static str> {
    match scope {
        Scope::System => Ok(PathBuf::from(agent.system)),
        Scope::User => {
            let mut moved = moved_state(&loader.environment);
            let moved = moved.find(|(it, _)| it.profile == agent.name);
            let usual = || loader.places.home.join(format!(".{}", agent.name));
            agent.user_file(&moved.map_or_else(usual, |(_, directory)| directory))
        }
    }
}

fn add(agent: &Guarded, scope: Scope, path: PathBuf) -> Result<String> {
    let program = own_program(scope)?;
    context::expect_installed(Path::new(&program), &context::loader_here()?)?;
    let file = SettingsFile::open(path)?;
    let name = shown_path(&file.path);
    let text = match file.text() {
        None => settings::new(agent, &program).map_err(|error| not_editable(&file, &error))?,
        Some(text) => {
            let editable = |error: NotEditable| not_editable(&file, &error);
            let is_whole = settings::find(text, agent).map_err(editable)?
                == (Found::Whole {
                    program: program.clone(),
                });
            let mut all = settings::programs(text, agent).into_iter();
            if is_whole && all.all(|it| it == program) {
                return Ok(format!("{} is guarded already, by {name}", agent.name));
            }
            // One that is damaged, or asks another program, is replaced.
            let without = settings::remove(text, agent).map_err(editable)?;
            settings::add(&without, agent, &program).map_err(editable)?
        }
    };
    file.replace(&text, scope.mode())?;
    let undo = match scope {
        Scope::User => "stockade guard remove",
        Scope::System => "sudo stockade guard remove --system",
    };
    Ok(format!(
        "{0} is guarded by {name}: outside of the sandbox it refuses to work; start it with \
         `stockade {0}`\nUndo: {undo} {0}",
        agent.name
    ))
}

fn remove(agent: &Guarded, _: Scope, path: PathBuf) -> Result<String> {
    let file = SettingsFile::open(path)?;
    let name = shown_path(&file.path);
    let Some(text) = file.text() else {
        return Ok(format!("{} is not guarded by {name}", agent.name));
    };
    let without = settings::remove(text, agent).map_err(|error| not_editable(&file, &error))?;
    if without == text {
        return Ok(format!("{} is not guarded by {name}", agent.name));
    }
    match settings::is_new(&without) && !file.is_link() {
        true => file.delete()?,
        false => file.replace(&without, 0o600)?,
    }
    Ok(format!("{} is no longer guarded by {name}", agent.name))
}

fn not_editable(file: &SettingsFile, error: &NotEditable) -> anyhow::Error {
    refused(
        format!("{} is left as it is: {error}", shown_path(&file.path)),
        "correct the file, then try again",
    )
}

/// The path by which hooks find this program, outside and inside.
fn own_program(scope: Scope) -> Result<String> {
    let program = fs::canonicalize("/proc/self/exe").context("this program's file is gone")?;
    let text = program
        .to_str()
        .context("the path of this program is no text")?
        .to_owned();
    if scope == Scope::System {
        let others = |path: &Path| {
            fs::metadata(path).is_ok_and(|it| it.uid() != 0 || it.mode() & 0o022 != 0)
        };
        if program.ancestors().any(others) {
            return Err(refused(
                format!(
                    "{} can be changed by others than root",
                    shown_path(&program)
                ),
                "install Stockade for all users (./install.sh as root, or a package), and use that one",
            ));
        }
    }
    Ok(text)
}

/// Whether an agent's guard does its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum State {
    InForce {
        program: String,
    },
    /// The agent works outside, or may.
    NotInForce {
        reason: String,
        fix: String,
    },
}

/// A guard that is there.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Guard {
    pub(crate) agent: &'static str,
    scope: Scope,
    file: PathBuf,
    #[serde(flatten)]
    state: State,
}

impl Guard {
    /// What is wrong with it.
    pub(crate) fn fault(&self) -> Option<&str> {
        match &self.state {
            State::InForce { .. } => None,
            State::NotInForce { reason, .. } => Some(reason),
        }
    }

    pub(crate) fn file(&self) -> String {
        shown_path(&self.file)
    }

    /// The command that mends it.
    pub(crate) fn fix(&self) -> Option<&str> {
        match &self.state {
            State::InForce { .. } => None,
            State::NotInForce { fix, .. } => Some(fix),
        }
    }
}

/// What the guards of this user's agents run outside, in whatever state they are.
pub(crate) fn starters(loader: &Loader) -> impl Iterator<Item = Starter> {
    let scopes = [
        (Scope::User, ["", ""]),
        (Scope::System, ["sudo ", "--system "]),
    ];
    let each = GUARDED
        .iter()
        .flat_map(move |agent| scopes.map(|scope| (agent, scope)));
    each.flat_map(move |(agent, (scope, [sudo, option]))| {
        let file = path(agent, scope, loader).ok();
        let text = file.as_deref().and_then(file::text).unwrap_or_default();
        let programs = settings::programs(&text, agent).into_iter();
        programs.map(move |program| Starter {
            path: program.into(),
            name: format!(
                "the guard in {}",
                shown_path(file.as_deref().unwrap_or(Path::new("")))
            ),
            renewal: format!("{sudo}stockade guard add {option}{}", agent.name),
        })
    })
}

/// All guards that this user meets here.
pub(crate) fn all(loader: &Loader) -> Vec<Guard> {
    let scopes = [Scope::User, Scope::System];
    let each = GUARDED
        .iter()
        .flat_map(|agent| scopes.map(|scope| (agent, scope)));
    each.filter_map(|(agent, scope)| look(agent, scope, loader))
        .collect()
}

fn look(agent: &'static Guarded, scope: Scope, loader: &Loader) -> Option<Guard> {
    let file = path(agent, scope, loader).ok()?;
    // Root's may be read, too.
    let text = file::text(&file)?;
    let name = agent.name;
    let for_all = format!("sudo stockade guard add --system {name}");
    let reason = |reason: String| State::NotInForce {
        reason,
        fix: match scope {
            Scope::User => format!("stockade guard add {name}"),
            Scope::System => for_all.clone(),
        },
    };
    let state = match settings::find(&text, agent) {
        Ok(Found::Nothing) => return None,
        Ok(Found::Damaged { why }) => reason(why),
        // It may be somebody's who has no guard.
        Err(_) if !text.contains(" inside --quiet || {") => return None,
        Err(error) => reason(format!("the agent cannot read it: {error}")),
        Ok(Found::Whole { program }) if !settings::is_there(&program) => reason(format!(
            "it asks {}, which is gone, or is not Stockade",
            stockade_config::shown(&program)
        )),
        Ok(Found::Whole { program }) => match turned_off(agent, scope, loader) {
            Some(by) => State::NotInForce {
                reason: format!("{} turns all hooks off here", shown_path(&by)),
                fix: for_all.clone(),
            },
            None => State::InForce { program },
        },
    };
    Some(Guard {
        agent: agent.name,
        scope,
        file,
        state,
    })
}

/// A file of the workspace that turns hooks off. The administrator's hooks run all the same.
fn turned_off(agent: &Guarded, scope: Scope, loader: &Loader) -> Option<PathBuf> {
    let mut files = agent.workspace_files(&loader.places.workspace);
    files.find(|file| {
        let text = file::text(file).unwrap_or_default();
        let settings: Option<Value> = serde_json::from_str(&text).ok();
        scope == Scope::User && settings.is_some_and(|it| agent.turns_off(&it))
    })
}

fn list(is_json: bool) -> Result<ExitCode> {
    let guards = all(&context::loader_here()?);
    let code = match guards.iter().all(|guard| guard.fault().is_none()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    };
    if is_json {
        terminal::print(format_args!("{:#}\n", json!(guards)))?;
        return Ok(code);
    }
    if guards.is_empty() {
        terminal::write(b"No agent is guarded.\n")?;
        return Ok(code);
    }
    let row = |guard: &Guard| {
        let state = match guard.fault() {
            None => "in force".to_owned(),
            Some(fault) => format!("NOT in force: {fault}"),
        };
        [guard.agent.to_owned(), guard.file(), state]
    };
    let rows: Vec<_> = guards.iter().map(row).collect();
    terminal::write(terminal::table(["agent", "settings", "guard"], &rows).as_bytes())?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_agent_is_refused_with_those_that_can_be_guarded() {
        for agent in stockade_config::agents() {
            let is_guarded = GUARDED.iter().any(|it| it.name == agent);
            assert_eq!(find(agent).is_ok(), is_guarded, "{agent}");
        }
        assert!(find("nobody").is_err());
    }
}
