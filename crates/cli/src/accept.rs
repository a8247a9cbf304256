//! `stockade accept`: applies what the end of a session put back, once a person has seen it.
//! Everything that it says is hostile, and is shown escaped.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context as _, Result};
use stockade_config::{Places, shown, shown_path};
use stockade_wall::{Keeping, Kept};

use crate::{args, context, exit::refused, session_id, terminal};

/// The lines of a file that are shown. What is longer is not applied: nobody has seen all of it.
const MOST_LINES: usize = 2000;

/// Where a session's files are kept that were put back.
pub(crate) fn keeping(places: &Places, session: &str) -> Keeping {
    Keeping {
        state: places.state.clone(),
        session: session.to_owned(),
    }
}

pub(crate) fn accept(arguments: &args::Accept) -> Result<ExitCode> {
    let loader = context::loader_here()?;
    if let Some(file) = &arguments.file {
        return accept_file(&loader.places, file);
    }
    let sessions = sessions(&loader.places.state);
    let meant = match &arguments.session {
        None => sessions.last().cloned(),
        Some(wanted) => {
            session_id::meant(&sessions, wanted, "`stockade log --list` shows them all")?
        }
    };
    let Some(meant) = meant else {
        let Some(wanted) = &arguments.session else {
            terminal::write(b"There is nothing to accept.\n")?;
            return Ok(ExitCode::SUCCESS);
        };
        let what = format!("nothing was undone in a session {}", shown(wanted));
        return Err(refused(what, "`stockade log --list` shows all sessions"));
    };
    let keeping = keeping(&loader.places, &meant);
    let kept = keeping.kept().context("what was undone cannot be read")?;
    // A file that was put back several times is given back as it was left last.
    let mut latest: Vec<&Kept> = Vec::new();
    for kept in kept.iter().rev() {
        if latest.iter().all(|other| other.path != kept.path) {
            latest.push(kept);
        }
    }
    latest.reverse();
    terminal::print(format_args!("{}", described(&meant, &latest)))?;
    if arguments.show {
        return Ok(ExitCode::FAILURE);
    }
    if !arguments.yes
        && !terminal::agreed(
            "Programs that this names will run outside of the sandbox. Apply it?",
            "stockade accept",
        )?
    {
        terminal::write(b"Nothing was changed.\n")?;
        return Ok(ExitCode::FAILURE);
    }
    let mut failed = 0;
    for kept in &latest {
        let path = shown_path(&kept.path);
        if is_too_long(kept) {
            failed += 1;
            tell!(
                "stockade: {path} was not changed: it is too long to be shown whole; look at it in \
                 {}, and change by hand what you want of it",
                shown_path(kept.record())
            );
            continue;
        }
        match keeping.accept(kept) {
            Ok(()) => terminal::print(format_args!("{path} is as the session left it\n"))?,
            Err(error) => {
                failed += 1;
                tell!(
                    "stockade: {path} was not changed: {error}; the session's version is in {}",
                    shown(&kept.record().to_string_lossy())
                );
            }
        }
    }
    if failed > 0 {
        return Ok(ExitCode::FAILURE);
    }
    keeping.forget();
    Ok(ExitCode::SUCCESS)
}

/// Lets sessions change a file that git tracks.
fn accept_file(places: &Places, file: &Path) -> Result<ExitCode> {
    let path = places.workspace.join(file);
    let shown = shown_path(&path);
    let accepted = stockade_wall::accept_tracked(&places.state, &places.workspace, &path)
        .with_context(|| format!("{shown} cannot be accepted"))?;
    if !accepted {
        let fix = "sessions may change a file that git tracks; name it as the session did, in the \
                   directory where you start sessions";
        return Err(refused(
            format!("no session keeps {shown} read-only because git did not track it"),
            fix,
        ));
    }
    terminal::print(format_args!(
        "Sessions may change {shown} if git tracks it.\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The sessions of which something was put back, the oldest first.
fn sessions(state: &Path) -> Vec<String> {
    let entries = fs::read_dir(state.join("quarantine")).into_iter();
    let names = entries.flatten().flatten();
    let mut found: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    stockade_warden::sort(&mut found);
    found
}

fn is_too_long(kept: &Kept) -> bool {
    let text = kept.text().unwrap_or_default();
    kept.unsaid > 0 || text.lines().nth(MOST_LINES).is_some()
}

fn described(session: &str, kept: &[&Kept]) -> String {
    let mut text = format!("undone in session {session}:\n");
    for kept in kept {
        text.push_str(&format!("{}\n", shown_path(&kept.path)));
        for line in &kept.said {
            text.push_str(&format!("  {}\n", shown(line)));
        }
        if let Some(theirs) = kept.text() {
            for line in theirs.lines().take(MOST_LINES) {
                text.push_str(&format!("  | {}\n", shown(&line.replace('\t', "    "))));
            }
        }
        if is_too_long(kept) {
            text.push_str("  there is MORE that is not shown, so it will stay as it is\n");
        }
        if !kept.is_untouched() {
            text.push_str(&format!(
                "  it has changed since, so it will stay as it is; the session's version is in {}\n",
                shown_path(kept.record())
            ));
        }
    }
    text
}
