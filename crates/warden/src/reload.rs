//! What a running session does when it is to take up the configuration as it is now.

use std::sync::PoisonError;

use serde::{Deserialize, Serialize};
use stockade_config::{Effective, Key, Loader, Shown};
use stockade_gate::Policies;

use crate::{control::Reply, journal::InForce};

/// What a running session can change.
const LIVE: [Key; 3] = [Key::Internet, Key::Allow, Key::LogDenials];

/// Reads the configuration, and puts it in force.
#[derive(Debug, Clone)]
pub(crate) struct Reloader {
    pub(crate) loader: Loader,
    /// What the session was started with.
    pub(crate) launched: Effective,
    pub(crate) in_force: InForce,
    pub(crate) policies: Policies,
}

/// What is in force now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    pub internet: bool,
    pub rules: usize,
    /// Settings that were changed and need a new launch.
    pub later: Vec<String>,
    /// What became of the workspace's own file.
    pub notice: Option<String>,
}

impl Reloader {
    /// A configuration that is not right changes nothing.
    pub(crate) fn reload(&self) -> Reply {
        let loaded = self
            .loader
            .load()
            .map_err(|problems| problems.render(false))?;
        let new = loaded.effective;
        let policy = new.policy();
        let reloaded = Reloaded {
            internet: policy.internet,
            rules: policy.rules.len(),
            later: Key::ALL
                .iter()
                .filter(|key| !LIVE.contains(key) && self.differs(**key, &new))
                .map(ToString::to_string)
                .collect(),
            notice: loaded.workspace_file.notice(),
        };
        // First: the writer of the log looks at it when it hears that the policy has changed.
        *self.in_force.lock().unwrap_or_else(PoisonError::into_inner) = new;
        self.policies
            .change(policy)
            .map_err(|error| error.to_string())?;
        Ok(reloaded)
    }

    fn differs(&self, key: Key, new: &Effective) -> bool {
        let values = |effective: &Effective| {
            let value = |shown: &Shown| (shown.name.clone(), shown.literal());
            effective.shown(key).iter().map(value).collect::<Vec<_>>()
        };
        values(&self.launched) != values(new)
    }
}
