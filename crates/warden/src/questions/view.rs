//! What a session answers, and from what.

use std::{
    net::IpAddr,
    sync::PoisonError,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use stockade_config::{Effective, Mode, shown};
use stockade_gate::GateHandle;
use stockade_policy::{Host, InsideExplanation, Protocol, Target};

use super::{Inside, LONGEST_ANSWER, Question, SharedDenials, not_understood, question, reply};
use crate::journal::InForce;

/// Explanations in each second. Each costs the gate as much as a connection, or some.
const RATE: u32 = 20;
/// How long the gate may take, which does nothing else for longer than a moment.
const PATIENCE: Duration = Duration::from_millis(500);
/// Addresses of one name.
const ADDRESSES: usize = 16;
/// Decisions and denials in one answer.
const ANSWERS: usize = 64;

/// What the policy says about a target. `text` is there where no policy is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    #[serde(flatten)]
    pub explanation: InsideExplanation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A port of the user's machine that a setting could give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_port: Option<u16>,
}

/// A session, as programs inside may know it.
#[derive(Debug)]
pub(crate) struct SessionView {
    id: String,
    in_force: InForce,
    /// None if there is no jail.
    gate: Option<GateHandle>,
    denials: SharedDenials,
    since: Instant,
    explained: u32,
}

impl SessionView {
    pub(crate) fn new(
        id: String,
        in_force: InForce,
        gate: Option<GateHandle>,
        denials: SharedDenials,
    ) -> Self {
        Self {
            id,
            in_force,
            gate,
            denials,
            since: Instant::now(),
            explained: 0,
        }
    }

    /// One of which only the name is known.
    #[cfg(test)]
    pub(super) fn bare(id: &str) -> Self {
        let denials = SharedDenials::default();
        Self::new(id.to_owned(), InForce::default(), None, denials)
    }

    /// The answer to a line of hostile bytes.
    pub(super) fn answer(&mut self, line: &[u8]) -> String {
        match question(line) {
            Some(Question::Inside {}) => reply(Inside {
                session: self.id.clone(),
            }),
            Some(Question::Denials {}) => self.denials(),
            Some(Question::Explain { target, addresses }) => self.explain(&target, addresses),
            None => not_understood("unknown question"),
        }
    }

    /// As many as an answer has room for.
    fn denials(&self) -> String {
        let mut most = ANSWERS;
        loop {
            let answer = reply(self.denials.latest(most));
            if answer.len() <= LONGEST_ANSWER || most == 0 {
                return answer;
            }
            most /= 2;
        }
    }

    fn explain(&mut self, target: &str, mut addresses: Vec<IpAddr>) -> String {
        let target: Target = match target.parse() {
            Ok(target) => target,
            Err(error) => return not_understood(&shown(&error.to_string())),
        };
        if self.since.elapsed() > Duration::from_secs(1) {
            (self.since, self.explained) = (Instant::now(), 0);
        }
        if self.explained == RATE {
            return not_understood(super::BUSY);
        }
        self.explained += 1;
        let effective = {
            let in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
            in_force.clone()
        };
        let mut explained = match (effective.network.mode.value, &self.gate) {
            (Mode::Host, _) => unjudged(&target, "allowed", "this session has no jail"),
            (Mode::Jail, _) if target.is_loopback() => loopback(&target, &effective),
            (Mode::Jail, Some(gate)) => {
                match target.host() {
                    Host::Address(address) => addresses = vec![*address],
                    Host::Name(_) => addresses.truncate(ADDRESSES),
                }
                let Some(explanation) = gate.explain(target, addresses, PATIENCE) else {
                    return not_understood(super::BUSY);
                };
                Explained {
                    explanation,
                    text: None,
                    host_port: None,
                }
            }
            (Mode::None, _) | (Mode::Jail, None) => {
                unjudged(&target, "denied", "this session has no network")
            }
        };
        let InsideExplanation {
            answers,
            incomplete,
            ..
        } = &mut explained.explanation;
        *incomplete |= answers.len() > ANSWERS;
        answers.truncate(ANSWERS);
        reply(explained)
    }
}

fn unjudged(target: &Target, outcome: &str, why: &str) -> Explained {
    Explained {
        explanation: InsideExplanation {
            target: target.to_string(),
            outcome: outcome.to_owned(),
            name: None,
            answers: Vec::new(),
            incomplete: false,
        },
        text: Some(why.to_owned()),
        host_port: None,
    }
}

/// The loopback inside is the command's own, but for the ports that stand for the host's. Whether
/// anything listens there outside is not told.
fn loopback(target: &Target, effective: &Effective) -> Explained {
    let is_tcp = target.protocol().is_none_or(|one| one == Protocol::Tcp);
    let port = target.port().filter(|_| is_tcp);
    let given = effective.host_ports();
    let own = "localhost is the sandbox's own, apart from the user's machine";
    match port {
        Some(port) if given.contains(&port.get()) => {
            let why = "this port leads to the user's machine";
            unjudged(target, "allowed", why)
        }
        Some(port) => Explained {
            host_port: Some(port.get()),
            ..unjudged(target, "denied", own)
        },
        None if is_tcp => unjudged(target, "unclear", own),
        None => unjudged(target, "denied", own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(view: &mut SessionView, line: &str) -> serde_json::Value {
        serde_json::from_str(&view.answer(line.as_bytes())).expect("JSON")
    }

    #[test]
    fn questions_that_cost_something_are_few_in_each_second() {
        let mut view = SessionView::bare("s");
        let explain = r#"{"ask":"explain","target":"localhost:5432"}"#;
        let said: Vec<_> = (0..=RATE).map(|_| ask(&mut view, explain)).collect();
        assert_eq!(said[0]["outcome"], "denied");
        assert_eq!(said[0]["host_port"], 5432);
        let last = said.last().expect("an answer");
        assert_eq!(last["error"], super::super::BUSY);
        // Others are answered meanwhile.
        assert_eq!(ask(&mut view, r#"{"ask":"inside"}"#)["session"], "s");
        assert_eq!(ask(&mut view, r#"{"ask":"denials"}"#)["noted"], false);
        view.since -= Duration::from_secs(2);
        assert_eq!(ask(&mut view, explain)["outcome"], "denied");
    }

    #[test]
    fn a_target_that_is_none_is_said_to_be_none() {
        let mut view = SessionView::bare("s");
        for target in ["", "10.0.0.0/8", "a\u{202e}b", "\u{1b}[2J", "x:y:z"] {
            let question = serde_json::json!({ "ask": "explain", "target": target });
            let said = ask(&mut view, &question.to_string());
            let error = said["error"].as_str().expect("an error");
            let acted_on = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!error.is_empty() && !error.contains(acted_on), "{error}");
        }
    }
}
