//! `stockade import --find`: which files and variables of other sandboxes there are.
//!
//! It reads none of them, and checks only whether somebody else could write them.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use serde_json::{Value, json};
use stockade_config::{Loader, moved_state, others_can_write, shown_path};
use stockade_wall::Environments;

use super::{Format, sessions_can_write, state};
use crate::{context, init, terminal};

const VARIABLES: [(&str, &str); 3] = [
    ("CLAUDE_SANDBOX_EGRESS_JAIL", "network.mode"),
    ("CLAUDE_SANDBOX_ALLOW_IP", "network.allow"),
    ("CLAUDE_SANDBOX_NO_FORGE", "forge"),
];

struct Found {
    path: PathBuf,
    format: Format,
    writable: Option<String>,
}

pub(super) fn find(loader: &Loader, as_json: bool) -> Result<ExitCode> {
    // No session can start here, so there is no import, and nothing is in the workspace.
    let is_refused = init::check_workspace(&loader.places).is_err();
    let mut places = loader.places.clone();
    if is_refused {
        places.workspace = "/dev/null".into();
    }
    // In the home directory, the user's file is the project's, too.
    let mut seen = BTreeSet::new();
    let is_new = |(_, path): &(Format, PathBuf)| {
        seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone()))
    };
    let exists = |(_, path): &(Format, PathBuf)| path.symlink_metadata().is_ok();
    let mut inside = state(loader)?;
    inside.push(places.workspace.clone());
    let earlier = context::earlier_sessions(&places.home, Environments::None);
    let writable = |path: &Path| {
        others_can_write(path, &places).or_else(|| sessions_can_write(path, &inside, &earlier))
    };
    let found = |(format, path): (Format, PathBuf)| Found {
        writable: writable(&path),
        path,
        format,
    };
    let files: Vec<_> = known(loader)
        .into_iter()
        .filter(exists)
        .filter(is_new)
        .map(found)
        .collect();
    let is_set = |(name, _): &&(&str, &str)| loader.environment.contains_key(OsStr::new(name));
    let variables: Vec<_> = VARIABLES.iter().filter(is_set).collect();
    if as_json {
        let file = |it: &Found| {
            let (path, format) = (it.path.to_string_lossy(), it.format.to_string());
            json!({ "file": path, "format": format, "warning": it.writable })
        };
        let variable = |(name, key): &&(&str, &str)| json!({ "name": name, "key": key });
        let report = json!({
            "version": 1,
            "files": files.iter().map(file).collect::<Vec<Value>>(),
            "variables": variables.iter().map(variable).collect::<Vec<Value>>(),
        });
        terminal::print(format_args!("{report:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for format in [
        Format::ClaudeSandbox,
        Format::ClaudeCode,
        Format::Srt,
        Format::Codex,
    ] {
        let files: Vec<&Found> = files.iter().filter(|it| it.format == format).collect();
        if files.is_empty() {
            continue;
        }
        text += &format!("{format}\n");
        for Found { path, writable, .. } in &files {
            let why = writable
                .as_ref()
                .map(|why| format!(" (review it first: {why})"));
            text += &format!("  {}{}\n", shown_path(path), why.unwrap_or_default());
        }
        if is_refused {
            continue;
        }
        let sound: Vec<_> = files.iter().filter(|it| it.writable.is_none()).collect();
        if !sound.is_empty() {
            text += &command("to import", sound.iter().map(|it| it.path.as_path()));
        }
        if sound.len() < files.len() {
            let title = match sound.is_empty() {
                true if files.len() == 1 => "to import, once you have read it",
                true => "to import, once you have read them",
                false => "or, once you have read all of them",
            };
            text += &command(title, files.iter().map(|it| it.path.as_path()));
        }
    }
    if is_refused && !files.is_empty() {
        text += "to import: change to a project's directory first, and run \
                 `stockade import --find` there\n";
    }
    for (name, key) in &variables {
        text += &format!("{name}\n  it is set, and `stockade run` follows it as {key}\n");
    }
    if text.is_empty() {
        text += "found no configuration of another sandbox in the usual places\n";
    }
    terminal::write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The places where these programs look, the widest first.
fn known(loader: &Loader) -> Vec<(Format, PathBuf)> {
    let places = &loader.places;
    let state = |profile: &str, usual: &str| {
        let mut moved = moved_state(&loader.environment);
        let moved = moved.find(|(variable, _)| variable.profile == profile);
        moved.map_or_else(|| places.home.join(usual), |(_, directory)| directory)
    };
    let (claude, codex) = (state("claude", ".claude"), state("codex", ".codex"));
    let project = &places.workspace;
    vec![
        (Format::ClaudeSandbox, "/etc/claude-sandbox.conf".into()),
        (
            Format::ClaudeCode,
            "/etc/claude-code/managed-settings.json".into(),
        ),
        (Format::ClaudeCode, claude.join("settings.json")),
        (Format::ClaudeCode, project.join(".claude/settings.json")),
        (
            Format::ClaudeCode,
            project.join(".claude/settings.local.json"),
        ),
        (Format::Srt, places.home.join(".srt-settings.json")),
        (Format::Codex, "/etc/codex/config.toml".into()),
        (Format::Codex, "/etc/codex/managed_config.toml".into()),
        (Format::Codex, codex.join("config.toml")),
        (Format::Codex, project.join(".codex/config.toml")),
    ]
}

fn command<'p>(title: &str, paths: impl Iterator<Item = &'p Path>) -> String {
    let word = |path: &Path| {
        let text = shown_path(path);
        let plain = |c: char| c.is_alphanumeric() || "/._-+@%".contains(c);
        match text.chars().all(plain) {
            true => text,
            false => format!("'{}'", text.replace('\'', "'\\''")),
        }
    };
    let words: Vec<_> = paths.map(word).collect();
    format!("  {title}: stockade import {}\n", words.join(" "))
}
