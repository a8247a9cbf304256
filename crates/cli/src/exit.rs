//! The exit codes that are Stockade's own, and how its failures are said.

use std::{io, process::ExitCode};

use stockade_config::{Diagnostic, Diagnostics, Place};
use stockade_sys::{message, shortage};
use stockade_wall::{FAILED, NOT_FOUND};

use crate::terminal;

/// An error with the smallest change that would help.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Refused {
    pub(crate) what: String,
    pub(crate) fix: String,
}

pub(crate) fn refused(what: impl Into<String>, fix: impl Into<String>) -> anyhow::Error {
    let (what, fix) = (what.into(), fix.into());
    Refused { what, fix }.into()
}

pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    if let Some(problems) = error.downcast_ref::<Diagnostics>() {
        message::tell(&problems.render(colours()));
        // What is wrong with flags is said in one line each, and needs no summary.
        let in_files = |problem: &&Diagnostic| problem.place().is_none_or(Place::is_in_file);
        match problems.iter().filter(in_files).count() {
            0 => {}
            1 => tell!("stockade: the configuration cannot be used, so nothing was done"),
            count => {
                tell!("stockade: the configuration has {count} errors, so nothing was done");
            }
        }
        return FAILED.into();
    }
    if let Some(wall) = error.downcast_ref::<stockade_wall::Error>() {
        // Its messages have their causes in them.
        tell!("stockade: {wall}");
        let missing = matches!(
            wall,
            stockade_wall::Error::AgentMissing(_) | stockade_wall::Error::AgentDoubtful { .. }
        );
        return if missing { NOT_FOUND } else { FAILED }.into();
    }
    tell!("stockade: {error:#}");
    let causes = error.chain().filter_map(|cause| cause.downcast_ref());
    if let Some(refused) = error.downcast_ref::<Refused>() {
        tell!("stockade: fix: {}", refused.fix);
    } else if let Some(fix) = causes.filter_map(shortage::advice).next() {
        tell!("stockade: fix: {fix}");
    }
    FAILED.into()
}

pub(crate) fn colours() -> bool {
    terminal::shows_colours(&io::stderr())
}

/// Help and version are answers, not failures, and go to stdout.
pub(crate) fn usage(message: &clap::Error) -> ExitCode {
    // If nobody listens there is nobody to tell.
    let _ = message.print();
    if message.use_stderr() {
        FAILED.into()
    } else {
        ExitCode::SUCCESS
    }
}
