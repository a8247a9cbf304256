//! `stockade import`: what other sandboxes' files say, as a configuration of Stockade.
//!
//! ```text
//! tree, claude_sandbox       a text         → values with their places
//! one file for each format   values         → a Draft: what is allowed, denied, cannot be said
//! draft                      the Draft      → settings and notes; never wider than the sources
//! render                     settings       → TOML, which the loader of `run` checks before it is used
//! ```
//!
//! The files may be hostile. All that comes from them is a quoted string or a comment whose control
//! characters are escaped, so it can never become a line of its own.

mod claude_code;
mod claude_sandbox;
mod codex;
mod domains;
mod draft;
mod find;
mod paths;
mod pwrap;
mod render;
mod srt;
mod tree;

use std::{
    fmt,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context as _, Result};
use serde_json::Value;
use stockade_config::{
    BUILT_IN, Choice, Diagnostic, Diagnostics, LayerKind, Loader, Mode, Places, Source, SourceKind,
    foreign_file, literal, merge, moved_state, parse, resolved, shown_path,
};
use stockade_policy::Rule;
use stockade_wall::{EarlierSessions, Environments, is_led_from_inside, known_places};

use crate::{args, context, exit, init, terminal};
use domains::reaches_private;
use draft::{Draft, Note, READ_ONLY, Setting, Settled};
use paths::Surroundings;
use render::{as_json, as_toml, tell};

/// A person wrote it. More takes too long to compare.
const LONGEST: usize = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    ClaudeSandbox,
    Pwrap,
    ClaudeCode,
    Srt,
    Codex,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClaudeSandbox => "claude-sandbox",
            Self::Pwrap => "pwrap",
            Self::ClaudeCode => "Claude Code",
            Self::Srt => "srt",
            Self::Codex => "Codex",
        })
    }
}

struct Imported {
    source: Arc<Source>,
    format: Format,
    /// Why somebody else could have written it.
    writable: Option<String>,
}

pub(crate) fn import(arguments: &args::Import) -> Result<ExitCode> {
    let mut loader = context::loader_here()?;
    if arguments.find {
        return find::find(&loader, arguments.json);
    }
    init::check_workspace(&loader.places)?;
    let (files, settled) = match settled(&arguments.files, &loader) {
        Ok(found) => found,
        Err(problems) => {
            stockade_sys::message::tell(&problems.render(exit::colours()));
            tell!("stockade: nothing was imported");
            return Ok(stockade_wall::FAILED.into());
        }
    };
    // What counts without the files; broken settings are told below.
    loader.choice = Choice::Other;
    let before = loader.load().ok().map(|loaded| loaded.effective.network);
    let before = before.map(|network| (network.mode.value, network.internet.value));
    let workspace = init::name_of_workspace(&loader.places)?;
    let text = as_toml(&files, &settled, workspace);
    loader.draft = Some(Source::file("the imported configuration", text.as_str()));
    loader
        .load()
        .context("Stockade does not accept the imported configuration")?;

    let wider = settled.notes.iter().filter(|note| note.wider).count();
    let unreviewed = unreviewed(&files, &settled, &loader.places.workspace, before);
    let is_refused = arguments.write && !arguments.yes && !unreviewed.is_empty();
    let mut written = None;
    if arguments.write && wider == 0 && !is_refused && !settled.settings.is_empty() {
        loader.draft = None;
        written = Some(init::create_project_file(&loader, &text)?);
    }
    if arguments.json {
        let report = as_json(&files, &settled, &unreviewed, &text, written.as_deref());
        terminal::print(format_args!("{report:#}\n"))?;
    } else {
        let is_terminal = io::stdout().is_terminal();
        match &written {
            Some(path) => tell_written(&shown_path(path), is_terminal)?,
            None if arguments.write => {}
            None => terminal::write(text.as_bytes())?,
        }
        tell(&files, &settled, is_terminal && !arguments.write);
    }
    if arguments.write && written.is_none() && !arguments.json {
        let (why, fix) = match wider {
            0 if is_refused => {
                tell_unreviewed(&unreviewed);
                (
                    "a session may have asked for these, so nothing was written",
                    "if you want later sessions to have them, run this command again with --yes; \
                     if not, remove these lines from the file first",
                )
            }
            0 => (
                "the files have nothing that becomes a setting, so nothing was written",
                "see `stockade init` for a file to start from",
            ),
            _ => (
                "the result would be wider than the files, so nothing was written",
                "change these lines and import again; or review the output without --write and \
                 save it yourself",
            ),
        };
        tell!("stockade: {why}\nstockade: fix: {fix}");
    }
    Ok(ExitCode::from(u8::from(wider > 0 || is_refused)))
}

/// The settings that give a session more than it has, out of files that an earlier session may have
/// written. `before`: the network without them, and whether the internet is open.
fn unreviewed<'a>(
    files: &[Imported],
    settled: &'a Settled,
    workspace: &Path,
    before: Option<(Mode, bool)>,
) -> Vec<&'a Setting> {
    let workspace = resolved(workspace);
    let was_open = before.is_some_and(|(_, internet)| internet);
    let is_in_workspace = |value: &Value| {
        let path = value.as_str().map(Path::new);
        path.is_some_and(|path| path.starts_with(&workspace))
    };
    let gives_address = |value: &Value| {
        let rule = value.as_str().and_then(|rule| rule.parse::<Rule>().ok());
        rule.is_none_or(|rule| reaches_private(&rule))
    };
    let gives = |it: &Setting| match (it.section, it.key) {
        ("files", "hide") => false,
        // Of the workspace, which can be written anyway.
        ("files", "read") => it.why != READ_ONLY || !is_in_workspace(&it.value),
        ("forge", "github" | "gitlab") | ("network", "internet") => it.value == true,
        ("network", "log_denials") => it.value == false,
        ("network", "mode") if it.value == "none" => false,
        ("network", "mode") if it.value == "jail" => {
            before.is_none_or(|(mode, _)| mode == Mode::None)
        }
        ("network", "allow") => !was_open || gives_address(&it.value),
        _ => true,
    };
    let is_foreign = |it: &Setting| {
        let mut writable = files.iter().filter(|file| file.writable.is_some());
        writable.any(|file| std::ptr::eq(&raw const *file.source, it.place.source()))
    };
    let settings = settled.settings.iter();
    settings.filter(|it| gives(it) && is_foreign(it)).collect()
}

fn tell_unreviewed(unreviewed: &[&Setting]) {
    for it in unreviewed {
        let value = literal(&it.value);
        tell!("stockade: {}: {}.{}: {value}", it.place, it.section, it.key);
    }
}

/// A program that reads stdout gets the path alone.
fn tell_written(path: &str, is_terminal: bool) -> Result<()> {
    let sentence = format!("Wrote {path}. `stockade plan` shows what a session gets.");
    if is_terminal {
        return terminal::print(format_args!("{sentence}\n"));
    }
    terminal::print(format_args!("{path}\n"))?;
    tell!("stockade: {sentence}");
    Ok(())
}

fn settled(paths: &[PathBuf], loader: &Loader) -> Result<(Vec<Imported>, Settled), Diagnostics> {
    let exists = |path: &Path| path.exists();
    let around = surroundings(loader, &exists)?;
    let inside = [
        &around.state[..],
        std::slice::from_ref(&loader.places.workspace),
        &loader.places.workspace_elsewhere,
    ]
    .concat();
    let earlier = context::earlier_sessions(&loader.places.home, Environments::None);
    let mut draft = Draft::new(&around);
    let mut files = Vec::new();
    for path in paths {
        // Where it is says what its paths start from.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        if let Err(error) = path.symlink_metadata()
            && error.kind() == io::ErrorKind::NotFound
        {
            let title = format!("{} does not exist", shown_path(&path));
            let help = "`stockade import --find` lists the files of other sandboxes";
            return Err(Diagnostic::new(title).help(help).into());
        }
        let (source, writable) = foreign_file(&path, &loader.places)?;
        let writable = writable.or_else(|| sessions_can_write(&path, &inside, &earlier));
        let format = translate(&source, &mut draft)?;
        files.push(Imported {
            source,
            format,
            writable,
        });
    }
    let mut settled = draft.settle();
    keep_accepted(&mut settled, &loader.places);
    Ok((files, settled))
}

fn surroundings<'a>(
    loader: &'a Loader,
    exists: &'a dyn Fn(&Path) -> bool,
) -> Result<Surroundings<'a>, Diagnostics> {
    let places = &loader.places;
    Ok(Surroundings {
        home: &places.home,
        workspace: &places.workspace,
        exists,
        real: &resolved,
        state: state(loader)?,
        own: vec![
            places.user.clone(),
            places.state.clone(),
            places.data.clone(),
        ],
        secret: known_places()
            .map(|(place, _)| places.home.join(place))
            .collect(),
    })
}

/// What the built-in profiles let agents write.
fn state(loader: &Loader) -> Result<Vec<PathBuf>, Diagnostics> {
    let moved = moved_state(&loader.environment);
    let mut state: Vec<_> = moved.map(|(_, directory)| directory).collect();
    for (name, text) in BUILT_IN {
        let source = Source::new(SourceKind::BuiltIn(name), *text);
        let layer = parse(LayerKind::BuiltIn, &source, &loader.places.roots())?;
        let profile = merge(&[layer], &Choice::Command((*name).to_owned()))?;
        state.extend(profile.files.write.into_iter().map(|path| path.value));
    }
    Ok(state)
}

/// Why a session could have written the file, or chosen it by a link, if so. These are the places
/// that sessions can write, which are the workspace and agents' own settings; and those that earlier
/// sessions could write.
fn sessions_can_write(
    path: &Path,
    inside: &[PathBuf],
    earlier: &EarlierSessions,
) -> Option<String> {
    let real = resolved(path);
    let reason = |place: &PathBuf| {
        let (shown, place) = (shown_path(place), resolved(place));
        if real.starts_with(&place) {
            return Some(format!("it is in {shown}, where a session can change it"));
        }
        is_led_from_inside(path, &[place])
            .then(|| format!("a link in {shown} leads to it, and a session can change that link"))
    };
    inside.iter().find_map(reason).or_else(|| {
        let could = earlier.could_write(path);
        could.then(|| "an earlier session could have written it, or a link to it".to_owned())
    })
}

/// Adds what a file says to the draft. Its format shows in its content; the place of a file tells
/// where the content could be either.
fn translate(source: &Arc<Source>, draft: &mut Draft<'_>) -> Result<Format, Diagnostics> {
    let text = source.text();
    if text.len() > LONGEST {
        let title = format!("{} is larger than {} KiB", source.name(), LONGEST >> 10);
        return Err(Diagnostic::new(title).into());
    }
    let SourceKind::File(path) = source.kind() else {
        return Err(unknown(source));
    };
    draft.base = None;
    if claude_sandbox::is_likely(text) || path.ends_with("claude-sandbox.conf") {
        claude_sandbox::translate(source, draft)?;
        return Ok(Format::ClaudeSandbox);
    }
    let is_json = text.trim_start().starts_with('{');
    let (root, usual) = match is_json {
        true => (tree::json(source), "json"),
        false => (tree::toml(source), "toml"),
    };
    // What is called otherwise need not be JSON or TOML at all.
    let root = root.map_err(|problems| match path.extension() {
        Some(extension) if extension == usual => problems,
        _ => unknown(source),
    })?;
    let has = |names: &str| names.split(' ').any(|name| root.get(name).is_some());
    let is_in = |directory: &str| {
        path.parent()
            .is_some_and(|parent| parent.ends_with(directory))
    };
    let net_allow = root.get("sandbox").filter(|it| {
        let has = |name| it.get(name).is_some();
        has("unshare_net") || has("net_allow")
    });
    let format = match (is_json, net_allow) {
        (true, _) if has("sandbox permissions") || is_in(".claude") || is_in("claude-code") => {
            claude_code::translate(&root, draft)?;
            Format::ClaudeCode
        }
        (true, _) if has("network filesystem") || path.ends_with(".srt-settings.json") => {
            srt::translate(&root, draft)?;
            Format::Srt
        }
        (false, Some(sandbox)) => {
            pwrap::translate(sandbox, draft)?;
            Format::Pwrap
        }
        (false, None)
            if has("sandbox_mode sandbox_workspace_write default_permissions")
                || is_in(".codex") =>
        {
            codex::translate(&root, draft)?;
            Format::Codex
        }
        _ => return Err(unknown(source)),
    };
    Ok(format)
}

fn unknown(source: &Arc<Source>) -> Diagnostics {
    let title = format!("{} is in no format that Stockade can import", source.name());
    let known = "it can import claude-sandbox.conf, TOML with [sandbox.net_allow], settings.json of \
                 Claude Code and srt, and config.toml of Codex";
    // Without an excerpt: such a file may hold secrets.
    Diagnostic::new(title).help(known).into()
}

/// Turns a setting that Stockade would refuse into a note, so that one odd value does not spoil the rest.
fn keep_accepted(settled: &mut Settled, places: &Places) {
    let refused = |setting: &Setting| -> Option<String> {
        let value = literal(&setting.value);
        let value = if setting.is_list {
            format!("[{value}]")
        } else {
            value
        };
        let text = format!("[{}]\n{} = {value}\n", setting.section, setting.key);
        let source = Source::file("", text);
        let problems = parse(LayerKind::User, &source, &places.roots()).err()?;
        let first = problems.iter().next().map(Diagnostic::title);
        Some(first.unwrap_or_default().to_owned())
    };
    let settings = std::mem::take(&mut settled.settings);
    for setting in settings {
        match refused(&setting) {
            None => settled.settings.push(setting),
            Some(why) => settled.notes.push(Note {
                wider: setting.key == "hide" || setting.why == READ_ONLY,
                what: literal(&setting.value),
                place: setting.place,
                why,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wall asks with every start whether a link lies there, and reads no profile for it.
    #[test]
    fn the_walls_table_of_agents_state_is_what_the_profiles_say() {
        let home = Path::new("/home/dev");
        let loader = Loader::new(Places::new(home, &home.join("project"), |_| None));
        let mut state = state(&loader).expect("valid profiles");
        state.sort();
        let mut table: Vec<_> = stockade_wall::AGENTS_STATE
            .iter()
            .map(|name| home.join(name))
            .collect();
        table.sort();
        assert_eq!(state, table);
    }
}
