//! What a running session does when it is to take up the configuration as it is now.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use stockade_config::{Effective, Key, Loaded, Loader, Shown, Unknown, answered};
use stockade_gate::{Answer, AnsweredBy, Error, GateHandle};
use stockade_policy::Rule;

use crate::{control::Reply, journal::InForce};

/// What a running session can change.
const LIVE: [Key; 7] = [
    Key::Internet,
    Key::Allow,
    Key::Near,
    Key::Devices,
    Key::Unknown,
    Key::Notify,
    Key::LogDenials,
];

/// Reads the configuration, and puts it in force.
#[derive(Debug, Clone)]
pub(crate) struct Reloader {
    pub(crate) loader: Loader,
    /// What the session was started with.
    pub(crate) launched: Effective,
    pub(crate) in_force: InForce,
    pub(crate) gate: GateHandle,
    /// Rules that the user allowed for this session.
    pub(crate) answered: Arc<Mutex<Vec<Rule>>>,
    /// One thing at a time changes the rules.
    pub(crate) changing: Arc<Mutex<()>>,
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
        let _one = self.changing();
        self.reload_with(None).map(|(_, reloaded)| reloaded)
    }

    /// Answers a question by one rule more for this session. Whether it still waited.
    pub(crate) fn answer_with(&self, id: u64, by: AnsweredBy, rule: Rule) -> Result<bool, Error> {
        let before = self.in_force();
        let mut new = before.clone();
        new.network.allow.push(answered(rule.clone()));
        let policy = new.policy();
        self.put_in_force(new);
        let was_asked = self
            .gate
            .answer(id, Answer::Session, by, Some((policy, true)));
        match was_asked {
            Ok(true) => self.answered().push(rule),
            _ => self.put_in_force(before),
        }
        was_asked
    }

    /// To be held by whoever changes the rules.
    pub(crate) fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_force(&self) -> Effective {
        let in_force = self.in_force.lock();
        in_force.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put_in_force(&self, new: Effective) {
        *self.in_force.lock().unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// The configuration of this moment, with the user's answers.
    fn load(&self) -> Result<Loaded, String> {
        let mut loader = self.loader.clone();
        for rule in &*self.answered() {
            loader.flags.answered(rule);
        }
        loader.load().map_err(|problems| problems.render(false))
    }

    /// The same as an answer to a question, which a rule in the configuration covers now. Whether it
    /// still waited.
    pub(crate) fn reload_with(
        &self,
        question: Option<(u64, AnsweredBy)>,
    ) -> Result<(bool, Reloaded), String> {
        let loaded = self.load()?;
        let new = loaded.effective;
        let (policy, asks) = (new.policy(), new.network.unknown.value == Unknown::Ask);
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
        self.put_in_force(new);
        let was_asked = match question {
            None => self.gate.change(policy, asks).map(|()| true),
            Some((id, by)) => {
                let answer = self
                    .gate
                    .answer(id, Answer::Always, by, Some((policy.clone(), asks)));
                // Too late for the question. But the rule is in the configuration.
                if let Ok(false) = answer {
                    self.gate.change(policy, asks).map(|()| false)
                } else {
                    answer
                }
            }
        };
        let was_asked = was_asked.map_err(|error| error.to_string())?;
        Ok((was_asked, reloaded))
    }

    fn differs(&self, key: Key, new: &Effective) -> bool {
        let values = |effective: &Effective| {
            let value = |shown: &Shown| (shown.name.clone(), shown.literal());
            effective.shown(key).iter().map(value).collect::<Vec<_>>()
        };
        values(&self.launched) != values(new)
    }
}
