//! Shims: the agent's own name starts it in the sandbox.
//!
//! # Theory of operation
//! A shim is a link of an agent's name to this program, in a directory that comes first in `PATH`.
//! Started by that name, this program is `stockade NAME` ([`run`]). The wall then looks for the
//! agent's program as always, and passes every file over that is Stockade. Inside, a shim becomes
//! the agent's program at once.
//!
//! [`links`] makes and removes the links, [`shells`] sees to `PATH`, [`lines`] edits the user's files.
//! `doctor` asks each shell what it would run.

mod lines;
mod links;
pub(crate) mod shells;

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{self, ExitCode},
};

use anyhow::{Context as _, Result};
use serde_json::json;
use stockade_config::{GENERIC, agents, shown, shown_path};
use stockade_wall::{Environments, Error, NOT_FOUND, PathRefusal, behind_shim};

use crate::{
    args::{self, ShimCommand},
    context,
    exit::refused,
    inside, run, terminal,
};
use links::Shims;
pub(crate) use links::{Shim, all, starters};

/// The code of a command that is there and cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// The agent whose shim this program was started as.
pub(crate) fn invoked_as() -> Option<String> {
    let word = env::args_os().next()?;
    let name = Path::new(&word).file_name()?.to_str()?;
    let is_agent = || agents().any(|agent| agent == name);
    // Of other names, only a shim says that they are meant for an agent.
    let is_shim = || links::leads_here(name);
    (name != links::PROGRAM && (is_agent() || is_shim())).then(|| name.to_owned())
}

/// Runs the agent with all arguments: none of them is Stockade's own.
pub(crate) fn run(name: &str) -> Result<ExitCode> {
    let mut words = env::args_os();
    let called = words.next().unwrap_or_else(|| name.into());
    let arguments: Vec<OsString> = words.collect();
    if inside::proven() {
        return Ok(become_real(name, &called, &arguments));
    }
    tell_update(name, &arguments);
    let command = [OsString::from(name)].into_iter().chain(arguments);
    let arguments = args::Run {
        profile: Some(name.to_owned()),
        command: command.collect(),
        ..args::Run::default()
    };
    run::run(&arguments).or_else(|error| explain(name, error))
}

/// In the sandbox already: the agent's program takes this one's place.
fn become_real(name: &str, called: &OsStr, arguments: &[OsString]) -> ExitCode {
    let home = context::home().unwrap_or_default();
    let Some(real) = behind_shim(name.as_ref(), &home, None, None) else {
        tell!(
            "stockade: this session has no `{name}`: end it, and start one with `stockade {name}`"
        );
        return NOT_FOUND.into();
    };
    let error = process::Command::new(&real)
        .arg0(called)
        .args(arguments)
        .exec();
    tell!("stockade: cannot run {}: {error}", shown_path(&real));
    NOT_EXECUTABLE.into()
}

/// Commands by which agents change their own program, which is read-only inside.
const UPDATES: &[(&str, &[&str])] = &[
    ("claude", &["update", "upgrade", "install"]),
    ("codex", &["update"]),
    ("aider", &["--upgrade", "--update"]),
];

fn tell_update(name: &str, arguments: &[OsString]) {
    let words = UPDATES.iter().find(|(agent, _)| *agent == name);
    let first = arguments.first().and_then(|word| word.to_str());
    if let (Some((_, words)), Some(first)) = (words, first)
        && words.contains(&first)
        && let Some(real) = real_program(name)
    {
        let real = shown_path(&real);
        tell!(
            "stockade: `{name} {first}` cannot change its program in the sandbox. Run it outside: \
             {real} {first}"
        );
    }
}

/// The agent's program, to be run outside: not one that a session may have put into a workspace, nor
/// one of an environment that is active, whosever it is.
fn real_program(name: &str) -> Option<PathBuf> {
    let places = context::loader_here().ok()?.places;
    let is_workspace = PathRefusal::of_workspace(&places.workspace, &places.home).is_none();
    let workspace = Some(places.workspace.as_path()).filter(|_| is_workspace);
    let earlier = context::earlier_sessions(&places.home, Environments::All);
    behind_shim(name.as_ref(), &places.home, workspace, Some(&earlier))
}

/// The agent's program as a session finds it.
fn behind(name: &str, home: &Path) -> Option<PathBuf> {
    let earlier = context::earlier_sessions(home, Environments::OfProjects);
    behind_shim(name.as_ref(), home, None, Some(&earlier))
}

/// Whoever typed the agent's name may not know that it is a shim.
fn explain(name: &str, error: anyhow::Error) -> Result<ExitCode> {
    if let Some(Error::AgentMissing(_)) = error.downcast_ref() {
        tell!(
            "stockade: `{name}` is a shim of Stockade, and PATH leads to no other `{name}` outside of \
             the workspace"
        );
        tell!(
            "stockade: fix: install it, or add its directory to PATH; or remove the shim: stockade \
             shim remove {name}"
        );
        return Ok(NOT_FOUND.into());
    }
    let Ok(places) = context::loader_here().map(|loader| loader.places) else {
        return Err(error);
    };
    let Some(refusal) = PathRefusal::of_workspace(&places.workspace, &places.home) else {
        return Err(error);
    };
    let what = format!(
        "`{name}` runs in the sandbox, and {} cannot be its workspace, because it {refusal}",
        shown_path(&places.workspace)
    );
    let mut fix = "change to the directory of one project".to_owned();
    if let Some(real) = real_program(name) {
        fix += &format!("; to run it without a sandbox: {}", shown_path(&real));
    }
    Err(refused(what, fix))
}

pub(crate) fn shim(command: &ShimCommand) -> Result<ExitCode> {
    match command {
        ShimCommand::Add {
            system,
            write_shell,
            names,
        } => add(names, *system, *write_shell),
        ShimCommand::List { json } => list(*json),
        ShimCommand::Remove { system, all, names } => remove(names, *system, *all),
    }
}

fn shims(system: bool) -> Result<Shims> {
    if inside::proven() {
        return Err(refused(
            "shims are made and removed outside of the sandbox",
            "leave this session first",
        ));
    }
    if system {
        if !rustix::process::geteuid().is_root() {
            let what = format!("only root can change {}", links::SYSTEM);
            return Err(refused(what, "use sudo, or leave out --system"));
        }
        return Ok(Shims::of_system());
    }
    Ok(Shims::of_user(&context::data()?))
}

fn add(names: &[String], system: bool, write_shell: bool) -> Result<ExitCode> {
    let loader = context::loader_here()?;
    let shims = shims(system)?;
    for name in names {
        check(name, &loader.places.home)?;
    }
    let program = links::this_program(system)?;
    context::expect_installed(&program, &loader)?;
    // All or none: a name that is taken is told before the first is made.
    for name in names {
        shims.check_free(name)?;
    }
    let mut text = String::new();
    for name in names {
        let shim = shims.add(name, &program)?;
        text += &match behind(name, &loader.places.home) {
            Some(real) => format!(
                "{}: runs {} in the sandbox\n",
                shown_path(&shim.path),
                shown_path(&real)
            ),
            None => format!(
                "{}: runs {name} in the sandbox, once it is installed\n",
                shown_path(&shim.path)
            ),
        };
    }
    if !system {
        text += &shells::set_up(&loader.places, write_shell, names)?;
    }
    for name in names {
        text += &editors(name, &shims.path(name));
    }
    terminal::write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// A name is an agent's, or that of a profile of the user's or the machine's own files.
fn check(name: &str, home: &Path) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let is_name = !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(is_plain);
    if !is_name || name == links::PROGRAM || name == GENERIC {
        let what = format!("`{}` cannot be the name of a shim", shown(name));
        return Err(refused(what, "name an agent, such as `claude`"));
    }
    if agents().any(|agent| agent == name) {
        return Ok(());
    }
    // A project's own profile holds in that project only.
    let mut loader = context::loader(home, home);
    loader.load()?;
    loader.choice = context::choice(Some(name), None);
    loader.load().map(drop).map_err(|_| {
        let known: Vec<_> = agents().collect();
        refused(
            format!("there is no profile `{name}`"),
            format!(
                "name one of {}; or add `[profiles.{name}]` to {}",
                known.join(", "),
                shown_path(&loader.places.user_file())
            ),
        )
    })
}

/// What editors need that start an agent by its path.
fn editors(name: &str, shim: &Path) -> String {
    let shim = shown_path(shim);
    match name {
        "claude" => format!(
            "VS Code's Claude Code extension runs a program of its own. Set \"claudeCode.useTerminal\": true, \
             and it runs `claude`.\n\
             JetBrains: set Settings > Tools > Claude Code > Claude command to {shim}\n"
        ),
        "codex" => format!(
            "VS Code's Codex extension runs a program of its own. Set \"chatgpt.cliExecutable\": \"{shim}\".\n"
        ),
        _ => String::new(),
    }
}

fn list(is_json: bool) -> Result<ExitCode> {
    let home = context::home()?;
    let all = all();
    let seen = |shim: &Shim| {
        let real = behind(&shim.name, &home);
        let first = links::first_in_path(&shim.name);
        let in_force = first
            .as_deref()
            .is_some_and(stockade_sys::mark::is_stockade);
        (real, first, in_force)
    };
    if is_json {
        let rows: Vec<_> = all
            .iter()
            .map(|shim| {
                let (real, first, in_force) = seen(shim);
                json!({
                    "name": shim.name,
                    "shim": shim.path,
                    "real": real,
                    "in_force": in_force,
                    "runs": first,
                })
            })
            .collect();
        terminal::print(format_args!(
            "{:#}\n",
            json!({ "version": 1, "shims": rows })
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        terminal::write(b"No shims. `stockade shim add claude` makes one.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = all
        .iter()
        .map(|shim| {
            let (real, first, in_force) = seen(shim);
            let real = real.map_or_else(|| "not installed".to_owned(), |real| shown_path(&real));
            let state = match first {
                _ if !shim.leads_to_stockade() => format!(
                    "broken: it leads nowhere; renew it with `stockade shim add {}`",
                    shim.name
                ),
                _ if in_force => "in force".to_owned(),
                first => {
                    let why = first.map_or_else(
                        || "its directory is not in PATH".to_owned(),
                        |first| format!("PATH leads to {} first", shown_path(&first)),
                    );
                    format!(
                        "not in force: {why}; start a new shell, or run `stockade shim add \
                         --write-shell {}`",
                        shim.name
                    )
                }
            };
            [shown_path(&shim.path), real, state]
        })
        .collect();
    let table = terminal::table(["shim", "runs in the sandbox", "in this shell"], &rows);
    terminal::write(table.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn remove(names: &[String], system: bool, all: bool) -> Result<ExitCode> {
    let shims = shims(system)?;
    let names: Vec<String> = match all {
        true => shims.list().into_iter().map(|shim| shim.name).collect(),
        false => names.to_vec(),
    };
    for name in &names {
        if !shims.list().iter().any(|shim| shim.name == *name) {
            let what = format!(
                "there is no shim `{}` in {}",
                shown(name),
                shown_path(&shims.directory)
            );
            return Err(refused(what, "`stockade shim list` lists them"));
        }
    }
    let mut text = String::new();
    for name in &names {
        let path = shims.path(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", shown_path(&path)))?;
        text += &format!("removed {}\n", shown_path(&path));
    }
    if !system && shims.list().is_empty() {
        let places = context::loader_here()?.places;
        text += &shells::clean_up(&places)?;
    }
    terminal::write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
