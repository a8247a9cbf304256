//! The answering side: what a session shows, and does when it is answered.

use std::{
    path::Path,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::SystemTime,
};

use stockade_config::{NetworkEdit, Unknown};
use stockade_gate::{AnsweredBy, Attention};
use stockade_wall::CommandLine;

use super::{
    Answer, LiveSnapshot, Means,
    state::{SharedLive, numbers},
};
use crate::{
    control::{Controlled, Reply},
    reload::Reloader,
};

/// A running session, for other commands of the user.
#[derive(Debug)]
pub(crate) struct LiveSession {
    pub(crate) id: String,
    workspace: String,
    command: Vec<String>,
    started: SystemTime,
    reloader: Reloader,
    live: SharedLive,
}

impl LiveSession {
    pub(crate) fn new(
        id: &str,
        workspace: &Path,
        command: &CommandLine,
        reloader: Reloader,
        live: SharedLive,
    ) -> Self {
        let words = std::iter::once(&command.program).chain(&command.arguments);
        let words = words.map(|word| word.to_string_lossy().into_owned());
        Self {
            id: id.to_owned(),
            workspace: workspace.to_string_lossy().into_owned(),
            command: words.collect(),
            started: SystemTime::now(),
            reloader,
            live,
        }
    }

    pub(crate) fn attention(&self) -> &Arc<Attention> {
        &self.reloader.gate.attention
    }

    pub(crate) fn live(&self) -> &SharedLive {
        &self.live
    }

    /// What the user says, or what becomes of a question that nobody answers.
    pub(crate) fn settle(&self, id: u64, answer: Answer, by: AnsweredBy) -> Result<(), String> {
        const TOO_LATE: &str = "the question was answered already, or its time was over";
        let _one = self.reloader.changing();
        let question = self.live.lock();
        let rule = question.questions.get(&id).map(|it| it.rule.clone());
        drop(question);
        let rule = rule.ok_or(TOO_LATE)?;
        let was_asked = match answer {
            Answer::Once | Answer::Deny => self.reloader.gate.answer(id, answer, by, None),
            Answer::Session => self.reloader.answer_with(id, by, rule),
            Answer::Always => {
                let edit = NetworkEdit {
                    rules: vec![rule.into()],
                    ..NetworkEdit::default()
                };
                let edited = self.reloader.loader.edit_project_file(&edit);
                edited.map_err(|problems| problems.render(false))?;
                let (answered, _) = self.reloader.reload_with(Some((id, by)))?;
                Ok(answered)
            }
        };
        match was_asked.map_err(|error| error.to_string())? {
            true => Ok(()),
            false => Err(TOO_LATE.to_owned()),
        }
    }
}

/// Somebody who watches.
#[derive(Debug)]
pub(crate) struct Watcher(Arc<Attention>);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Controlled for LiveSession {
    type Attendance = Watcher;

    fn reload(&self) -> Reply {
        self.reloader.reload()
    }

    fn live(&self) -> LiveSnapshot {
        let in_force = self.reloader.in_force.lock();
        let network = in_force
            .unwrap_or_else(PoisonError::into_inner)
            .network
            .clone();
        let started = jiff::Timestamp::try_from(self.started);
        let live = self.live.lock();
        let (counts, questions, paused) = (live.counts(), live.questions(), live.paused);
        let mut flows = live.flows();
        drop(live);
        let traffic = self.reloader.gate.traffic(numbers(&flows));
        for flow in &mut flows {
            if let Some(traffic) = traffic.get(&flow.id) {
                (flow.sent, flow.received) = (traffic.sent, traffic.received);
            }
        }
        let paused = paused.and_then(|until| until.duration_since(SystemTime::now()).ok());
        LiveSnapshot {
            session: self.id.clone(),
            workspace: self.workspace.clone(),
            command: self.command.clone(),
            mode: network.mode.value.to_string(),
            internet: network.internet.value,
            ask: network.unknown.value == Unknown::Ask,
            started: started.map_or_else(|_| String::new(), |time| format!("{time:.3}")),
            counts,
            flows_left_out: counts.open - flows.len(),
            flows,
            questions,
            paused: paused.map(|left| left.as_secs()),
        }
    }

    fn attend(&self) -> Watcher {
        let attention = self.attention();
        attention.watchers.fetch_add(1, Ordering::Relaxed);
        Watcher(Arc::clone(attention))
    }

    fn answer(&self, question: u64, answer: Answer, by: Means) -> Result<(), String> {
        self.settle(question, answer, by.into())
    }
}
