//! The caller's home, workspace and configuration.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{Mode, OFlags};
use stockade_config::{
    BUILT_IN, CLAUDE_SANDBOX, Choice, Effective, Loaded, Loader, Place, Places, Source, SourceKind,
    moved_state,
};
use stockade_policy::{BROADCAST, Policy, Route, Rule};

use crate::settings::Settings;

/// A loader for the caller: this environment, this home, this workspace.
pub(crate) fn loader(home: &Path, workspace: &Path) -> Loader {
    let places = Places::new(home, workspace, |name| env::var_os(name));
    let mut loader = Loader::new(places);
    loader.environment = env::vars_os().collect();
    loader.built_in = BUILT_IN.to_vec();
    if claude_has_a_sandbox(&loader) {
        loader.built_in.push(CLAUDE_SANDBOX);
    }
    loader
}

/// Whether the settings of Claude Code turn its own sandbox on: `sandbox.enabled`, where the later
/// file overrules the earlier.
fn claude_has_a_sandbox(loader: &Loader) -> bool {
    let Places {
        home, workspace, ..
    } = &loader.places;
    let moved = moved_state(&loader.environment).find(|(it, _)| it.profile == CLAUDE_SANDBOX.0);
    let state = moved.map_or_else(|| home.join(".claude"), |(_, directory)| directory);
    let files = [
        state.join("settings.json"),
        workspace.join(".claude/settings.json"),
        workspace.join(".claude/settings.local.json"),
        PathBuf::from("/etc/claude-code/managed-settings.json"),
    ];
    let enabled = |file: &PathBuf| -> Option<bool> {
        const LONGEST: u64 = 1 << 20;
        // A command inside may have put anything there, such as a pipe that nobody writes to.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(file, flags, Mode::empty()).ok()?);
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text).ok()?;
        let settings: serde_json::Value = serde_json::from_slice(&text).ok()?;
        settings.get("sandbox")?.get("enabled")?.as_bool()
    };
    files
        .iter()
        .filter_map(enabled)
        .next_back()
        .unwrap_or(false)
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

/// A loader for commands that run nothing.
pub(crate) fn loader_here() -> Result<Loader> {
    let home = home()?;
    let workspace = fs::canonicalize(".")
        .context("the current directory is gone: change to one that exists")?;
    Ok(loader(&home, &workspace))
}

/// A loader for what was typed: the settings, and the named profile or that of the command.
pub(crate) fn loader_for(
    settings: &Settings,
    profile: Option<&str>,
    command: Option<&OsStr>,
) -> Result<Loader> {
    let mut loader = loader_here()?;
    loader.flags = settings.flags();
    loader.choice = choice(profile, command);
    Ok(loader)
}

/// Loads, and says if the workspace's own file is ignored.
pub(crate) fn load(loader: &Loader) -> Result<Loaded> {
    let loaded = loader.load()?;
    if let Some(notice) = loaded.workspace_file.notice() {
        eprintln!("stockade: {notice}");
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
    by_itself.chain(to_broadcasts(&policy)).map(said).collect()
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
