//! What was found, for people and for programs.

use serde::Serialize;
use serde_json::{Value, json};
use stockade_config::{Effective, shown};

use crate::terminal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Pass,
    Fail,
    /// It could not be found out, because something is missing that would have shown it.
    Inconclusive,
}

impl Outcome {
    fn word_and_colour(self) -> (&'static str, &'static str) {
        match self {
            Self::Pass => ("PASS", "\x1b[32m"),
            Self::Fail => ("FAIL", "\x1b[31m"),
            Self::Inconclusive => ("INCONCLUSIVE", "\x1b[33m"),
        }
    }
}

/// A property of a session, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// For programs; it stays the same.
    pub(super) check: String,
    pub(super) promise: &'static str,
    pub(super) outcome: Outcome,
    pub(super) reason: String,
    /// It holds but for what the configuration opens, which people are told, too.
    #[serde(skip)]
    pub(super) has_exceptions: bool,
}

impl Finding {
    pub(super) fn but_for<T>(mut self, exceptions: &[T]) -> Self {
        self.has_exceptions = !exceptions.is_empty();
        self
    }
}

/// A property, before it is looked at.
#[derive(Debug, Clone)]
pub(super) struct Check(pub(super) String, pub(super) &'static str);

impl Check {
    pub(super) fn new(name: &str, promise: &'static str) -> Self {
        Self(name.to_owned(), promise)
    }

    pub(super) fn pass(self, reason: impl Into<String>) -> Finding {
        self.finding(Outcome::Pass, reason)
    }

    pub(super) fn fail(self, reason: impl Into<String>) -> Finding {
        self.finding(Outcome::Fail, reason)
    }

    pub(super) fn inconclusive(self, reason: impl Into<String>) -> Finding {
        self.finding(Outcome::Inconclusive, reason)
    }

    /// Fails with the first of the faults, if there is one.
    pub(super) fn unless(self, faults: &[String], otherwise: impl Into<String>) -> Finding {
        match faults {
            [] => self.pass(otherwise),
            [one] => self.fail(one.as_str()),
            [first, rest @ ..] => {
                let more = rest.len();
                self.fail(format!("{first}; and {more} more like this"))
            }
        }
    }

    fn finding(self, outcome: Outcome, reason: impl Into<String>) -> Finding {
        let Self(check, promise) = self;
        Finding {
            check,
            promise,
            outcome,
            // What files are called may be hostile.
            reason: shown(&reason.into()),
            has_exceptions: false,
        }
    }
}

pub(super) fn count(findings: &[Finding], outcome: Outcome) -> usize {
    let same = findings.iter().filter(|finding| finding.outcome == outcome);
    same.count()
}

pub(super) fn as_json(findings: &[Finding], effective: &Effective) -> Value {
    let outcome = match count(findings, Outcome::Fail) {
        0 => Outcome::Pass,
        _ => Outcome::Fail,
    };
    json!({
        "version": 1,
        "stockade": env!("CARGO_PKG_VERSION"),
        "policy": effective.hash(),
        "profile": effective.profile,
        "mode": effective.network.mode.value.to_string(),
        "outcome": outcome,
        "passed": count(findings, Outcome::Pass),
        "failed": count(findings, Outcome::Fail),
        "inconclusive": count(findings, Outcome::Inconclusive),
        "checks": findings,
    })
}

pub(super) fn as_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = finding.outcome.word_and_colour();
        let word = terminal::coloured(colour, word, 12);
        text += &format!("{word}  {:27}  {}\n", finding.check, finding.promise);
        if finding.outcome != Outcome::Pass || finding.has_exceptions {
            text += &format!("{:43}{}\n", "", finding.reason);
        }
    }
    let [passed, failed, inconclusive] = [Outcome::Pass, Outcome::Fail, Outcome::Inconclusive]
        .map(|outcome| count(findings, outcome));
    text + &format!("{passed} passed, {failed} failed, {inconclusive} inconclusive\n")
}
