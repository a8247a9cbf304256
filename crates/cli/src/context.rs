//! The caller's home, workspace and configuration.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::Read as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{Mode, OFlags};
use stockade_config::{
    BUILT_IN, CLAUDE_SANDBOX, Choice, Effective, Loaded, Loader, Place, Places, Source, SourceKind,
    moved_state, shown_path,
};
use stockade_policy::{BROADCAST, Policy, Route, Rule};
use stockade_sys::transparent::Family;
use stockade_wall::{EarlierSessions, Environments, PathRefusal, repository_around, way};

use crate::{exit::refused, settings::Settings};

/// A loader for the caller: this environment, this home, this workspace.
pub(crate) fn loader(home: &Path, workspace: &Path) -> Loader {
    let mut places = Places::new(home, workspace, |name| env::var_os(name));
    places.workspace_elsewhere = stockade_wall::mounted_elsewhere(workspace);
    let mut loader = Loader::new(places);
    loader.environment = env::vars_os().collect();
    loader.built_in = BUILT_IN.to_vec();
    if let Some((_, ClaudeSandbox::Counts)) = claude_sandbox(&loader) {
        loader.built_in.push(CLAUDE_SANDBOX);
    }
    loader
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaudeSandbox {
    Counts,
    /// Any session in the workspace could have written the file.
    IsIgnored,
}

/// The file of Claude Code's settings that turns its own sandbox on, if one does: `sandbox.enabled`,
/// where the later file overrules the earlier. The workspace's `settings.local.json`, which git
/// does not track, turns it off only.
pub(crate) fn claude_sandbox(loader: &Loader) -> Option<(PathBuf, ClaudeSandbox)> {
    let Places {
        home, workspace, ..
    } = &loader.places;
    let moved = moved_state(&loader.environment).find(|(it, _)| it.profile == CLAUDE_SANDBOX.0);
    let state = moved.map_or_else(|| home.join(".claude"), |(_, directory)| directory);
    let local = workspace.join(".claude/settings.local.json");
    let files = [
        state.join("settings.json"),
        workspace.join(".claude/settings.json"),
        local.clone(),
        PathBuf::from("/etc/claude-code/managed-settings.json"),
    ];
    let enabled = |file: &PathBuf| -> Option<bool> {
        const LONGEST: u64 = 1 << 20;
        // A command inside may have put anything there, such as a pipe that nobody writes to.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(file, flags, Mode::empty()).ok()?);
        // A link may lead to the caller's input, which is not ours to read.
        file.metadata().ok().filter(Metadata::is_file)?;
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text).ok()?;
        let settings: serde_json::Value = serde_json::from_slice(&text).ok()?;
        settings.get("sandbox")?.get("enabled")?.as_bool()
    };
    let said = files.iter().filter_map(|file| Some((file, enabled(file)?)));
    let said: Vec<_> = said.collect();
    let is_counted = |(file, is_on): &&(&PathBuf, bool)| **file != local || !*is_on;
    let last = |it: Option<&(&PathBuf, bool)>| {
        let (file, is_on) = it?;
        is_on.then(|| (*file).clone())
    };
    let counted = last(said.iter().rfind(is_counted));
    let counted = counted.map(|file| (file, ClaudeSandbox::Counts));
    counted.or_else(|| Some((last(said.last())?, ClaudeSandbox::IsIgnored)))
}

/// Says that a session may have turned on what is not in force.
pub(crate) fn ignored_sandbox(loader: &Loader, effective: &Effective) -> Option<String> {
    if effective.profile.as_deref() != Some(CLAUDE_SANDBOX.0) || effective.agent.nested.value {
        return None;
    }
    match claude_sandbox(loader)? {
        (_, ClaudeSandbox::Counts) => None,
        (file, ClaudeSandbox::IsIgnored) => Some(format!(
            "Claude Code's own sandbox will not work in this one: {} turns it on, and any session \
             could have written that file. If you want it, add --nested",
            shown_path(&file)
        )),
    }
}

pub(crate) fn home() -> Result<PathBuf> {
    let home = env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
        .context("HOME is not set: set it to your home directory")?;
    if !home.is_absolute() {
        bail!("HOME is {home:?}, which is not an absolute path: set it to your home directory");
    }
    Ok(home)
}

/// Stockade's own directory for data.
pub(crate) fn data() -> Result<PathBuf> {
    let home = home()?;
    Ok(Places::new(&home, &home, |name| env::var_os(name)).data)
}

/// Where an agent's program is not looked for.
pub(crate) fn earlier_sessions(home: &Path, environments: Environments) -> EarlierSessions {
    let state = Places::state_of(home, |name| env::var_os(name));
    EarlierSessions::known(&state, home, environments)
}

/// Refuses to have shims and hooks run a program that sessions may write: one that is run where it was
/// built.
pub(crate) fn expect_installed(program: &Path, loader: &Loader) -> Result<()> {
    let Places {
        home, workspace, ..
    } = &loader.places;
    let real_home = fs::canonicalize(home).unwrap_or_else(|_| home.clone());
    // People change to these directories, too.
    let is_for_programs = ["bin", ".local/bin", ".cargo/bin"]
        .iter()
        .any(|name| real_home.join(name) == *workspace);
    let here = Some(workspace).filter(|workspace| {
        !is_for_programs && PathRefusal::of_workspace(workspace, home).is_none()
    });
    let place_of = |path: &PathBuf| {
        let here = here.filter(|here| path.starts_with(here)).cloned();
        let place = here.or_else(|| repository_around(path, home))?;
        Some((path.clone(), place))
    };
    let Some((path, place)) = way(program).iter().find_map(place_of) else {
        return Ok(());
    };
    Err(refused(
        format!(
            "{} lies in {}, where sessions can write, so one could replace it",
            shown_path(&path),
            shown_path(&place)
        ),
        "install Stockade (./install.sh), and run this command with the installed program",
    ))
}

/// The workspace that was typed, for whichever command.
static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

pub(crate) fn choose_workspace(path: PathBuf) {
    // Nobody types it twice.
    let _ = CHOSEN.set(path);
}

/// A loader for commands that run nothing.
pub(crate) fn loader_here() -> Result<Loader> {
    let home = home()?;
    let here = fs::canonicalize(".")
        .context("the current directory is gone: change to one that exists")?;
    let workspace = match CHOSEN.get() {
        Some(path) => directory(path)?,
        None => {
            let places = Places::new(&home, &here, |name| env::var_os(name));
            places.default_workspace()
        }
    };
    let mut loader = loader(&home, &workspace);
    loader.places.current_directory = here;
    Ok(loader)
}

fn directory(path: &Path) -> Result<PathBuf> {
    let shown = shown_path(path);
    let fix = "name an existing directory with --workspace";
    let real = fs::canonicalize(path);
    let real = real.map_err(|error| refused(format!("cannot use {shown}: {error}"), fix))?;
    if !real.is_dir() {
        return Err(refused(format!("{shown} is not a directory"), fix));
    }
    Ok(real)
}

/// A loader for what was typed: the settings, and the named profile or that of the command.
pub(crate) fn loader_for(
    settings: &Settings,
    profile: Option<&str>,
    command: Option<&OsStr>,
) -> Result<Loader> {
    let mut loader = loader_here()?;
    expect_meant(&loader)?;
    expect_chosen(&loader)?;
    loader.flags = settings.flags();
    loader.choice = choice(profile, command);
    Ok(loader)
}

/// Refuses a repository that nobody named, and that the user may never have made a workspace of: a
/// session in a repository in it may have removed its own.
fn expect_chosen(loader: &Loader) -> Result<()> {
    let Places {
        home,
        workspace,
        current_directory,
        ..
    } = &loader.places;
    let earlier = earlier_sessions(home, Environments::None);
    let is_meant = CHOSEN.get().is_some() || earlier.is_known(workspace);
    let within = current_directory.ancestors();
    let mut within = within.take_while(|path| path.starts_with(workspace) && path != workspace);
    let Some(place) = within
        .find(|path| earlier.is_known(path))
        .filter(|_| !is_meant)
    else {
        return Ok(());
    };
    if loader.project_file()?.is_some() {
        return Ok(());
    }
    let [place, workspace] = [place, workspace].map(shown_path);
    Err(refused(
        format!(
            "the workspace would be {workspace}, and an earlier session had {place} in it, whose repository \
             it may have removed"
        ),
        format!("name the one that you mean: -C {place}, or once -C {workspace}"),
    ))
}

/// Refuses a directory to which the path that was typed, or that the shell is in, leads by a link that
/// an earlier session could have made: it would choose what this one can write.
fn expect_meant(loader: &Loader) -> Result<()> {
    let Places {
        home,
        workspace,
        current_directory,
        ..
    } = &loader.places;
    let leads = |path: &Path, real: &Path| fs::canonicalize(path).is_ok_and(|it| it == real);
    let shell = loader.environment.get(OsStr::new("PWD")).map(PathBuf::from);
    let shell = shell.filter(|path| path.is_absolute() && leads(path, current_directory));
    let shell = shell.unwrap_or_else(|| current_directory.clone());
    let (typed, real) = match CHOSEN.get() {
        Some(path) => (shell.join(path), workspace),
        None => (shell, current_directory),
    };
    let Some(link) = earlier_sessions(home, Environments::None).link_out(&typed, real) else {
        return Ok(());
    };
    let real = shown_path(real);
    Err(refused(
        format!(
            "{} leads to {real} by the link {}, which an earlier session could have made",
            shown_path(&typed),
            shown_path(&link)
        ),
        format!("if you mean that directory, change to it by its own path: {real}"),
    ))
}

/// Loads, and says if the workspace's own file is ignored.
pub(crate) fn load(loader: &Loader) -> Result<Loaded> {
    let loaded = loader.load()?;
    if let Some(notice) = loaded.workspace_file.notice() {
        tell!("stockade: {notice}");
    }
    Ok(loaded)
}

/// The named profile, or else the one of the command's name, or else the one for other commands.
pub(crate) fn choice(profile: Option<&str>, command: Option<&OsStr>) -> Choice {
    if let Some(name) = profile {
        let source = Source::new(SourceKind::Flag("--profile".to_owned()), name);
        return Choice::Named(name.to_owned(), Place::whole(&source));
    }
    let name = command.and_then(|command| Path::new(command).file_name());
    name.and_then(OsStr::to_str)
        .map_or(Choice::Other, |name| Choice::Command(name.to_owned()))
}

/// Rules that have no effect, each with the reason: their author believes otherwise.
pub(crate) fn idle_rules(effective: &Effective) -> Vec<String> {
    let policy = effective.policy();
    let said = |(index, rule, why): (usize, &Rule, String)| {
        let origin = effective.origin_of_rule(index).map(ToString::to_string);
        let origin = origin.unwrap_or_default();
        format!("rule `{rule}` ({origin}) has no effect: {why}")
    };
    let by_itself = policy
        .idle_rules()
        .map(|(index, rule, why)| (index, rule, why.to_string()));
    let rules = by_itself.chain(to_broadcasts(&policy));
    rules.chain(to_ipv6(&policy)).map(said).collect()
}

/// Rules for addresses of IPv6 on a machine whose kernel has none.
fn to_ipv6(policy: &Policy) -> impl Iterator<Item = (usize, &Rule, String)> {
    const WHY: &str = "this machine's kernel has no IPv6";
    let missing = !Family::V6.exists();
    let rules = policy.rules.iter().enumerate().filter(move |(_, rule)| {
        missing && (rule.network()).is_some_and(|network| network.addr().is_ipv6())
    });
    rules.map(|(index, rule)| (index, rule, WHY.to_owned()))
}

/// Rules that cover so much that the jail is hardly one.
pub(crate) fn wide_rules(effective: &Effective) -> Vec<String> {
    let policy = effective.policy();
    let rules = policy.rules.iter().enumerate();
    // Wider than any network of an organisation.
    let wide = rules.filter(|(_, rule)| {
        rule.network().is_some_and(|network| {
            let narrow = if network.addr().is_ipv4() { 8 } else { 7 };
            network.prefix_len() < narrow
        })
    });
    let said = |(index, rule): (usize, &Rule)| {
        let origin = effective.origin_of_rule(index).map(ToString::to_string);
        let origin = origin.unwrap_or_default();
        format!(
            "rule `{rule}` ({origin}) opens the LAN, VPNs and every other network that this machine \
             reaches: name the addresses that the command needs"
        )
    };
    wide.map(said).collect()
}

/// Rules for a broadcast address of a subnet that this machine is in now.
fn to_broadcasts(policy: &Policy) -> impl Iterator<Item = (usize, &Rule, String)> {
    policy.rules.iter().enumerate().filter_map(|(index, rule)| {
        let network = rule.network()?;
        let destination = network.addr();
        if !destination.is_ipv4() || network.prefix_len() < network.max_prefix_len() {
            return None;
        }
        let evidence = stockade_gate::host_evidence(destination).ok()?;
        let why = || format!("{destination} {BROADCAST}");
        (evidence.route == Route::Broadcast).then(|| (index, rule, why()))
    })
}
