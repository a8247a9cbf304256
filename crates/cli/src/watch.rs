//! `stockade watch`: running sessions on a screen.

use std::{
    env,
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use stockade_config::shown;
use stockade_warden::{self as warden, LogDirectory};

use crate::{args, context, exit::refused, session_id, terminal};

const LIST: &str = "`stockade ps` lists those that run";

pub(crate) fn watch(arguments: &args::Watch) -> Result<ExitCode> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(not_here("standard input and output are not a terminal"));
    }
    match env::var("TERM") {
        Ok(kind) if kind != "dumb" && !kind.is_empty() => {}
        Ok(kind) if kind == "dumb" => return Err(not_here("TERM is dumb")),
        _ => return Err(not_here("TERM does not say which terminal this is")),
    }
    let directory = LogDirectory::of(&context::home()?);
    let session = match &arguments.session {
        Some(wanted) => Some(running(&directory, wanted)?),
        None => None,
    };
    stockade_watch::watch(&directory, session.as_deref(), terminal::colours())
        .context("cannot use the terminal")?;
    Ok(ExitCode::SUCCESS)
}

fn not_here(why: &str) -> anyhow::Error {
    refused(
        format!("cannot draw a screen: {why}"),
        "run it in a terminal, or use `stockade log --follow`, which prints lines, or `stockade ps`",
    )
}

/// The running session that is meant.
fn running(directory: &LogDirectory, wanted: &str) -> Result<String> {
    let running = warden::running(directory).context("cannot look for sessions")?;
    session_id::meant(&running, wanted, LIST)?
        .ok_or_else(|| refused(format!("no session {} is running", shown(wanted)), LIST))
}
