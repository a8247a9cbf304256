//! `stockade reload`: running sessions take up the configuration as it is now.

use std::{process::ExitCode, sync::PoisonError};

use anyhow::{Result, bail};

use stockade_config::{Effective, Key, Loader, shown};
use stockade_gate::Policies;

use crate::{
    args,
    control::{Reply, Request, ask},
    journal::InForce,
    screen, session,
};

pub(crate) fn reload(arguments: &args::Reload) -> Result<ExitCode> {
    let sessions = match &arguments.session {
        Some(id) => vec![id.clone()],
        None => session::all()?,
    };
    let mut refused = false;
    let mut asked = 0;
    for id in sessions {
        let Some(stream) = session::connect(&id)? else {
            continue;
        };
        asked += 1;
        let reply = ask(stream, Request::Reload).unwrap_or_else(|error| Err(format!("{error:#}")));
        let id = id.escape_debug();
        match reply {
            Ok(said) => screen::print(format_args!("{id}: {}\n", lines(&said)))?,
            Err(why) => {
                eprintln!("stockade: {id}: not reloaded: {}", lines(&why));
                refused = true;
            }
        }
    }
    if asked == 0 {
        match &arguments.session {
            Some(id) => bail!("there is no session {}", id.escape_debug()),
            None => screen::write(b"no session is running\n")?,
        }
    }
    Ok(if refused {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// What another process said, for a terminal.
fn lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(shown).collect();
    lines.join("\n")
}

/// What a running session does about it.
#[derive(Debug, Clone)]
pub(crate) struct Reload {
    pub(crate) loader: Loader,
    /// What the session was started with.
    pub(crate) launched: Effective,
    pub(crate) in_force: InForce,
    pub(crate) policies: Policies,
}

/// What a running session can change.
const LIVE: [Key; 3] = [Key::Internet, Key::Allow, Key::LogDenials];

impl Reload {
    /// A configuration that is not right changes nothing.
    pub(crate) fn reload(&self) -> Reply {
        let loaded = self
            .loader
            .load()
            .map_err(|problems| problems.render(false))?;
        let new = loaded.effective;
        let policy = new.policy();
        let (rules, internet) = (policy.rules.len(), policy.internet);
        *self.in_force.lock().unwrap_or_else(PoisonError::into_inner) = new.clone();
        self.policies
            .change(policy)
            .map_err(|error| error.to_string())?;
        let internet = if internet { "open" } else { "closed" };
        let plural = if rules == 1 { "" } else { "s" };
        let mut said = format!("reloaded: the internet is {internet}, {rules} rule{plural}");
        let later: Vec<_> = Key::ALL
            .iter()
            .filter(|key| !LIVE.contains(key) && self.differs(**key, &new))
            .map(ToString::to_string)
            .collect();
        if !later.is_empty() {
            said.push_str(&format!("; at the next launch only: {}", later.join(", ")));
        }
        if let Some(notice) = loaded.workspace_file.notice() {
            said.push_str(&format!("; {notice}"));
        }
        Ok(said)
    }

    fn differs(&self, key: Key, new: &Effective) -> bool {
        let values = |effective: &Effective| {
            let shown = effective.shown(key);
            let value = |shown: &stockade_config::Shown| (shown.name.clone(), shown.literal());
            shown.iter().map(value).collect::<Vec<_>>()
        };
        values(&self.launched) != values(new)
    }
}
