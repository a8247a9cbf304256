//! `stockade reload`: running sessions take up the configuration as it is now.

use std::{process::ExitCode, sync::PoisonError};

use anyhow::Result;
use stockade_config::{Effective, Key, Loader, shown};
use stockade_gate::Policies;

use crate::{
    args,
    control::{Reply, Request, ask},
    exit::Refused,
    journal::InForce,
    session,
    terminal::{self, counted, shown_lines},
};

const LIST: &str = "`stockade ps` lists those that run";

pub(crate) fn reload(arguments: &args::Reload) -> Result<ExitCode> {
    let all = session::all()?;
    let sessions = match &arguments.session {
        Some(wanted) => Vec::from_iter(session::meant(&all, wanted, LIST)?),
        None => all,
    };
    let mut refused = false;
    let mut asked = 0;
    for id in sessions {
        let Some(stream) = session::connect(&id)? else {
            continue;
        };
        asked += 1;
        let reply = ask(stream, Request::Reload).unwrap_or_else(|error| Err(format!("{error:#}")));
        let id = shown(&id);
        match reply {
            Ok(said) => terminal::print(format_args!("{id}: {}\n", shown_lines(&said)))?,
            Err(why) => {
                eprintln!("stockade: {id}: not reloaded: {}", shown_lines(&why));
                refused = true;
            }
        }
    }
    if asked == 0 {
        match &arguments.session {
            Some(id) => {
                return Err(Refused {
                    what: format!("there is no session {}", shown(id)),
                    fix: LIST.to_owned(),
                }
                .into());
            }
            None => terminal::write(b"no session is running\n")?,
        }
    }
    Ok(if refused {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
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
        let rules = counted(rules as u64, "rule");
        let mut said = format!("reloaded: the internet is {internet}, {rules}");
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
