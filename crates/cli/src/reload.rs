//! `stockade reload`: running sessions take up the configuration as it is now.

use std::process::ExitCode;

use anyhow::Result;
use stockade_config::shown;
use stockade_warden::{self as warden, LogDirectory, Reloaded};

use crate::{
    args, context,
    exit::refused,
    session_id,
    terminal::{self, counted, shown_lines},
};

const LIST: &str = "`stockade ps` lists those that run";

pub(crate) fn reload(arguments: &args::Reload) -> Result<ExitCode> {
    let all = warden::all()?;
    let sessions = match &arguments.session {
        Some(wanted) => Vec::from_iter(session_id::meant(&all, wanted, LIST)?),
        None => all,
    };
    let mut failed = false;
    let mut asked = 0;
    for id in sessions {
        if let Some(reloaded) = one(&id)? {
            asked += 1;
            failed |= !reloaded;
        }
    }
    if asked == 0 {
        match &arguments.session {
            Some(id) => return Err(refused(format!("there is no session {}", shown(id)), LIST)),
            None => terminal::write(none_to_reload().as_bytes())?,
        }
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Whether a session took up the configuration, which is said; none if it is gone.
pub(crate) fn one(id: &str) -> Result<Option<bool>> {
    let Some(stream) = warden::connect(id)? else {
        return Ok(None);
    };
    let reply = warden::ask_to_reload(stream).unwrap_or_else(|error| {
        let error = anyhow::Error::from(error);
        Err(format!("{error:#}"))
    });
    let id = shown(id);
    match reply {
        Ok(reloaded) => {
            let said = shown_lines(&said(&reloaded));
            terminal::print(format_args!("{id}: {said}\n"))?;
            Ok(Some(true))
        }
        Err(why) => {
            tell!("stockade: {id}: not reloaded: {}", shown_lines(&why));
            Ok(Some(false))
        }
    }
}

/// Sessions without a network of their own cannot be asked.
fn none_to_reload() -> &'static str {
    let running = context::home().map(|home| {
        let directory = LogDirectory::of(&home);
        directory
            .sessions()
            .iter()
            .any(|id| directory.is_running(id))
    });
    match running {
        Ok(true) => {
            "no session that runs has a network with rules, so there is nothing to reload\n"
        }
        _ => "no session is running\n",
    }
}

fn said(reloaded: &Reloaded) -> String {
    let internet = if reloaded.internet { "open" } else { "closed" };
    let rules = counted(reloaded.rules as u64, "rule");
    let mut said = format!("reloaded: the internet is {internet}, {rules}");
    if !reloaded.later.is_empty() {
        let later = reloaded.later.join(", ");
        said.push_str(&format!("; at the next launch only: {later}"));
    }
    if let Some(notice) = &reloaded.notice {
        said.push_str(&format!("; {notice}"));
    }
    said
}
