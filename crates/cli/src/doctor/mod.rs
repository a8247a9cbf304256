//! `stockade doctor`: what this machine lacks, what that costs, and the smallest fix.
//!
//! # Theory of operation
//! A [`Check`] is data: a name, a state, what was found, what it costs, what would mend it.
//! Most are made from files below `/proc` ([`Machine`]), so that tests can show them any
//! machine. Those say *why* something does not work. Whether it does work is never concluded
//! from them: [`session`] tries it, by starting a session of the real thing in a process of
//! its own.

mod apparmor;
mod bubblewrap;
mod container;
mod kernel;
mod machine;
mod namespaces;
mod nft;
mod session;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use crate::{args, terminal};
use machine::Machine;

pub(crate) fn doctor(arguments: &args::Doctor) -> Result<ExitCode> {
    if arguments.write_apparmor {
        return apparmor::write();
    }
    let machine = Machine::this();
    let bubblewrap = bubblewrap::check();
    let (trial, session) = match bubblewrap.state {
        // What that takes, and why, is said once.
        CheckState::Failure => (Trial::Failed, vec![session::not_tried(bubblewrap.name)]),
        CheckState::Ok | CheckState::Warning => session::checks(&machine),
    };
    let mut checks = vec![kernel::version(&machine), kernel::seccomp(&machine)];
    checks.extend(container::engine(&machine, trial));
    checks.extend(namespaces::limits(&machine));
    checks.extend(namespaces::apparmor(&machine));
    checks.extend(namespaces::capabilities(&machine));
    checks.push(nft::check(&machine, trial == Trial::Started));
    checks.push(bubblewrap);
    checks.extend(session);
    checks.push(kernel::ping(&machine));
    checks.extend(kernel::ipv6(&machine));
    checks.extend(workspace::checks());

    if arguments.json {
        terminal::print(format_args!("{:#}\n", as_json(&checks)))?;
    } else {
        terminal::write(as_text(&checks).as_bytes())?;
    }
    Ok(match worst(&checks) {
        CheckState::Failure => ExitCode::FAILURE,
        CheckState::Ok | CheckState::Warning => ExitCode::SUCCESS,
    })
}

/// How bad something is, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    Ok,
    /// Sessions start, but something is weaker or does not work in them.
    Warning,
    Failure,
}

impl CheckState {
    fn word_and_colour(self) -> (&'static str, &'static str) {
        match self {
            Self::Ok => ("ok", "\x1b[32m"),
            Self::Warning => ("warning", "\x1b[33m"),
            Self::Failure => ("failure", "\x1b[31m"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    Started,
    /// The kernel or who runs it gave no namespaces.
    Forbidden,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    state: CheckState,
    found: String,
    /// What does not work, or is not protected, because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            state: CheckState::Ok,
            found: found.into(),
            cost: None,
            fix: None,
        }
    }

    fn warning(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            state: CheckState::Warning,
            ..Self::ok(name, found)
        }
    }

    fn failure(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            state: CheckState::Failure,
            cost: Some("no session can be started".to_owned()),
            ..Self::ok(name, found)
        }
    }

    fn cost(self, cost: impl Into<String>) -> Self {
        Self {
            cost: Some(cost.into()),
            ..self
        }
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }
}

fn worst(checks: &[Check]) -> CheckState {
    let states = checks.iter().map(|check| check.state);
    states.max().unwrap_or(CheckState::Ok)
}

fn as_json(checks: &[Check]) -> serde_json::Value {
    json!({
        "version": 1,
        "stockade": env!("CARGO_PKG_VERSION"),
        "state": worst(checks),
        "checks": checks,
    })
}

fn as_text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let (word, colour) = check.state.word_and_colour();
        let word = terminal::coloured(colour, word, 7);
        text += &format!("{word}  {:18}  {}\n", check.name, below(&check.found));
        for (word, what) in [("costs", &check.cost), ("fix", &check.fix)] {
            if let Some(what) = what {
                text += &format!("{:29}{word}: {}\n", "", below(what));
            }
        }
    }
    text.push_str(match worst(checks) {
        CheckState::Ok => "All is well.\n",
        CheckState::Warning => "Sessions can be started; the warnings say what they lack.\n",
        CheckState::Failure => "No session can be started until the failures are mended.\n",
    });
    text
}

/// Further lines of a text stand below its first.
fn below(text: &str) -> String {
    text.trim_end().replace('\n', &format!("\n{:29}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_is_that_of_the_whole() {
        let [ok, warning, failure] = [
            Check::ok("a", "1"),
            Check::warning("b", "2"),
            Check::failure("c", "3"),
        ];
        assert_eq!(worst(&[]), CheckState::Ok);
        assert_eq!(worst(&[warning.clone(), ok.clone()]), CheckState::Warning);
        assert_eq!(worst(&[ok, failure, warning]), CheckState::Failure);
    }

    #[test]
    fn what_is_not_said_is_not_there_for_programs_either() {
        let checks = [
            Check::ok("a", "1"),
            Check::warning("b", "2").cost("c").fix("f"),
        ];
        let json = as_json(&checks);
        assert_eq!(json["state"], "warning");
        assert_eq!(
            json["checks"],
            json!([
                { "name": "a", "state": "ok", "found": "1" },
                { "name": "b", "state": "warning", "found": "2", "cost": "c", "fix": "f" },
            ])
        );
    }
}
