//! `stockade config`: shows, checks and describes the configuration.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use serde_json::{Value, json};
use stockade_config::{
    Diagnostics, Files, Key, Kind, LayerKind, Loaded, Loader, Origin, Places, SECTIONS, Shown,
    WorkspaceFile, check_file, schema, shown, shown_path,
};

use crate::{args, context, exit, terminal};

pub(crate) fn config(command: &args::Config) -> Result<ExitCode> {
    match command {
        args::Config::Show { json, profile } => {
            let mut loader = context::loader_here()?;
            loader.choice = context::choice(profile.as_deref(), None);
            let loaded = loader.load()?;
            if *json {
                terminal::print(format_args!("{:#}\n", as_json(&loader, &loaded)))?;
            } else {
                terminal::write(
                    as_text(&loaded, &loader.places.workspace, profile.is_some()).as_bytes(),
                )?;
            }
        }
        args::Config::Check { file } => {
            let loader = context::loader_here()?;
            let mut said = String::new();
            let outcome = match file {
                Some(file) => check_one(file, &loader.places, &mut said),
                None => check_all(&loader, &mut said),
            };
            terminal::write(said.as_bytes())?;
            if let Err(problems) = outcome {
                stockade_sys::message::tell(&problems.render(exit::colours()));
                return Ok(ExitCode::FAILURE);
            }
        }
        args::Config::Schema => terminal::print(format_args!("{:#}\n", schema()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that a launch here would read, and the workspace's file though it is not
/// trusted yet.
fn check_all(loader: &Loader, said: &mut String) -> Result<(), Diagnostics> {
    let loaded = loader.load()?;
    if loaded.files.is_empty() {
        said.push_str("no configuration files here; the defaults apply\n");
    }
    for (kind, path) in &loaded.files {
        let (name, (whose, _)) = (shown_path(path), role(*kind, &loader.places));
        said.push_str(&format!("{name}: valid, as {whose}\n"));
    }
    for idle in context::idle_rules(&loaded.effective) {
        tell!("stockade: {idle}");
    }
    for (_, warning) in &loaded.misspelled {
        tell!("stockade: {warning}");
    }
    let Files {
        read, write, hide, ..
    } = &loaded.effective.files;
    for path in read.iter().chain(write).chain(hide) {
        // What profiles of ours name may be there or not.
        if !path.origin.is_built_in_profile() && !path.value.exists() {
            let (name, origin) = (shown_path(&path.value), &path.origin);
            tell!("stockade: {name} ({origin}) does not exist, so `stockade run` refuses to start");
        }
    }
    match loaded.workspace_file {
        WorkspaceFile::Untrusted | WorkspaceFile::Changed => {
            check_one(&loader.places.workspace_file(), &loader.places, said)
        }
        _ => Ok(()),
    }
}

/// One file, with what it was taken for and what a launch would say of its place.
fn check_one(file: &Path, places: &Places, said: &mut String) -> Result<(), Diagnostics> {
    let checked = check_file(file, places)?;
    let name = shown_path(file);
    let (whose, place) = role(checked.role, places);
    let outcome = if checked.outcome.is_ok() {
        "valid"
    } else {
        "invalid"
    };
    said.push_str(&format!("{name}: {outcome}, as {whose}\n"));
    if !checked.counts {
        said.push_str(&format!("  it is not used there; its place is {place}\n"));
    }
    if let Some(why) = &checked.refused {
        said.push_str(&format!("  it would be refused there: {why}\n"));
    }
    checked.outcome
}

/// Whose file it is, and the place of such a file.
fn role(kind: LayerKind, places: &Places) -> (&'static str, String) {
    let path = |path: &Path| shown_path(path);
    match kind {
        LayerKind::System => ("the administrator's file", path(&places.system)),
        LayerKind::Workspace => (
            "a project's own file, which applies once you trust it",
            ".stockade.toml of a project".to_owned(),
        ),
        LayerKind::Project => (
            "a user's file about a project",
            path(&places.projects().join("NAME.toml")),
        ),
        _ => ("a user's file", path(&places.user_file())),
    }
}

/// TOML, with the origin of each value beside it.
fn as_text(loaded: &Loaded, workspace: &Path, asked_for: bool) -> String {
    let plain = |text: String| (text, String::new());
    let file = |(kind, path): &(LayerKind, PathBuf)| {
        plain(format!("# {}: {}", word(*kind), shown_path(path)))
    };
    let mut lines = vec![plain(format!("# workspace: {}", shown_path(workspace)))];
    lines.extend(loaded.files.iter().map(file));
    if let Some(notice) = loaded.workspace_file.notice() {
        lines.push(plain(format!("# {notice}")));
    }
    if let Some(profile) = &loaded.effective.profile {
        let whose = if asked_for {
            ""
        } else {
            ", for commands without one of their own (--profile NAME shows another)"
        };
        lines.push(plain(format!("# profile: {}{whose}", shown(profile))));
    }
    for section in SECTIONS {
        lines.push(plain(String::new()));
        lines.push(plain(format!("[{}]", section.name)));
        for key in Key::in_section(section.name) {
            lines.extend(of_key(key, &loaded.effective.shown(key)));
        }
    }
    let widest = lines.iter().filter(|(_, origin)| !origin.is_empty());
    let widths = widest.map(|(text, _)| text.chars().count());
    let column = widths.filter(|width| *width <= 48).max().unwrap_or(0);
    lines
        .into_iter()
        .map(|(text, origin)| match origin.as_str() {
            "" => format!("{text}\n"),
            origin => format!("{text:column$}  # {origin}\n"),
        })
        .skip_while(|line| line == "\n")
        .collect()
}

fn of_key(key: Key, values: &[Shown]) -> Vec<(String, String)> {
    let name = key.name();
    let built_in = || Origin::BuiltIn.to_string();
    let entry = |shown: &Shown| {
        let text = match &shown.name {
            Some(device) if key == Key::Devices => format!("{device} = {}", shown.literal()),
            Some(name) => format!("set.{name} = {}", shown.literal()),
            None => format!("    {},", shown.literal()),
        };
        (text, shown.origin.to_string())
    };
    match (key.spec().kind, values) {
        (Kind::List(_), []) => vec![(format!("{name} = []"), built_in())],
        (Kind::List(_), entries) => {
            let mut lines = vec![(format!("{name} = ["), String::new())];
            lines.extend(entries.iter().map(entry));
            lines.push(("]".to_owned(), String::new()));
            lines
        }
        (Kind::Variables, []) => vec![(format!("{name} = {{}}"), built_in())],
        (Kind::Devices, []) => Vec::new(),
        (Kind::Variables | Kind::Devices, entries) => entries.iter().map(entry).collect(),
        (_, []) => vec![(format!("# {name}"), unset(key).to_owned())],
        (_, [one, ..]) => vec![(
            format!("{name} = {}", one.literal()),
            one.origin.to_string(),
        )],
    }
}

/// What holds where a limit was not set.
fn unset(key: Key) -> &'static str {
    match key {
        Key::OpenFiles => "not set: the same as outside",
        Key::Tmpfs => "not set: half of this machine's memory, the kernel's default",
        Key::ProxyLogin => "not set",
        _ => "not set: no limit",
    }
}

fn as_json(loader: &Loader, loaded: &Loaded) -> Value {
    let value = |key: Key| {
        let value = key_as_json(key, &loaded.effective.shown(key));
        (key.to_string(), value)
    };
    let file = |(kind, path): &(LayerKind, PathBuf)| {
        let path = path.to_string_lossy();
        json!({ "layer": word(*kind), "path": path })
    };
    json!({
        "version": 1,
        "workspace": loader.places.workspace.to_string_lossy(),
        "profile": loaded.effective.profile,
        "files": loaded.files.iter().map(file).collect::<Vec<_>>(),
        "workspace_file": state(&loaded.workspace_file),
        "values": Key::ALL.into_iter().map(value).collect::<serde_json::Map<_, _>>(),
        "sha256": loaded.effective.hash(),
    })
}

/// A scalar is an object with its value, or null; a list and a table are arrays of such.
pub(crate) fn key_as_json(key: Key, values: &[Shown]) -> Value {
    let one = |shown: &Shown| {
        let mut object = json!({ "value": shown.value, "origin": shown.origin.to_string() });
        if let Some(name) = &shown.name {
            object["name"] = json!(name);
        }
        if let Some((path, line)) = shown.origin.file_line() {
            object["file"] = json!(path.to_string_lossy());
            object["line"] = json!(line);
        }
        object
    };
    match key.spec().kind {
        Kind::List(_) | Kind::Variables | Kind::Devices => values.iter().map(one).collect(),
        _ => values.first().map_or(Value::Null, one),
    }
}

fn word(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::BuiltIn => "built-in",
        LayerKind::System => "system",
        LayerKind::User => "user",
        LayerKind::Workspace => "workspace",
        LayerKind::Project => "project",
        LayerKind::Environment => "environment",
        LayerKind::Flags => "flags",
    }
}

fn state(file: &WorkspaceFile) -> &'static str {
    match file {
        WorkspaceFile::Absent => "absent",
        WorkspaceFile::Trusted => "trusted",
        WorkspaceFile::Untrusted => "untrusted",
        WorkspaceFile::Changed => "changed",
        WorkspaceFile::Gone => "gone",
        WorkspaceFile::Unusable(_) => "unusable",
    }
}
