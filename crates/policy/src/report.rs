//! Explanations as text for a terminal, and as JSON for programs. Names of fields and values stay
//! the same over versions.
//!
//! The policy knows rules by their number only. Whoever read them knows where each stands, as
//! `file:line`, and says so when a report is made (`origin`).

use std::fmt;

use serde_json::{Value, json};

use crate::evidence::Route;
use crate::explain::{Answer, Explanation, HostAnswers, Outcome};
use crate::names::NameVerdict;
use crate::registry::{self, Class};
use crate::rule::Rule;
use crate::verdict::{Decider, Verdict};

type Origin<'a> = &'a dyn Fn(usize) -> Option<String>;

/// What a verdict on a name and one on a flow have in common.
struct Decision<'a> {
    allowed: bool,
    reason: &'static str,
    text: String,
    by: Decider<'a>,
    fix: Option<Rule>,
}

impl<'a> From<&'a Verdict> for Decision<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        Self {
            allowed: verdict.is_allowed(),
            reason: verdict.reason().name(),
            text: verdict.to_string(),
            by: verdict.decided_by(),
            fix: verdict.fix().cloned(),
        }
    }
}

impl<'a> From<&'a NameVerdict> for Decision<'a> {
    fn from(verdict: &'a NameVerdict) -> Self {
        Self {
            allowed: verdict.is_allowed(),
            reason: verdict.reason().name(),
            text: verdict.to_string(),
            by: verdict.decided_by(),
            fix: verdict.fix(),
        }
    }
}

impl Decision<'_> {
    fn text(&self, origin: Origin<'_>) -> String {
        let word = if self.allowed { "allowed" } else { "denied" };
        let at = match self.by {
            Decider::Rule { index, .. } => origin(index).map(|at| format!(" ({at})")),
            Decider::BuiltIn(_) => None,
        };
        format!("{word}: {}{}", self.text, at.unwrap_or_default())
    }

    fn fields(&self, origin: Origin<'_>) -> [(&'static str, Option<Value>); 6] {
        let rule = match self.by {
            Decider::Rule { index, rule } => Some(object([
                ("rule", Some(rule.to_string().into())),
                ("index", Some(index.into())),
                ("origin", origin(index).map(Into::into)),
            ])),
            Decider::BuiltIn(_) => None,
        };
        [
            ("allowed", Some(self.allowed.into())),
            ("reason", Some(self.reason.into())),
            ("text", Some(self.text.as_str().into())),
            ("rule", rule),
            ("fix", self.fix_of(false)),
            ("near", self.fix_of(true)),
        ]
    }
}

impl Decision<'_> {
    /// The rule to add to `near`, or to `allow`, if it is one of that list.
    fn fix_of(&self, near: bool) -> Option<Value> {
        let fix = self.fix.as_ref().filter(|fix| fix.is_near() == near);
        fix.map(|fix| fix.to_string().into())
    }
}

/// An object without the fields that have no value.
fn object(fields: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    let fields = fields.into_iter();
    let named = fields.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(named.collect())
}

impl Explanation {
    /// For a terminal.
    pub fn text(&self, origin: Origin<'_>) -> String {
        let mut text = format!("{}: {}\n", self.target, self.outcome);
        if let Some(name) = &self.name {
            text += &format!("  name: {}\n", Decision::from(name).text(origin));
            if name.is_allowed() && self.hosts.is_empty() {
                text += "    no address is known for it, so its connections are not judged\n";
            }
        }
        text.extend(self.hosts.iter().map(|host| host.text(origin)));
        let line = |fix: &Rule| match fix.is_near() {
            true => format!("  to allow it: near = [\"{fix}\"]\n"),
            false => format!("  to allow it: \"{fix}\"\n"),
        };
        text.extend(self.fixes.iter().map(line));
        text
    }

    /// For programs.
    pub fn json(&self, origin: Origin<'_>) -> Value {
        let name = self.name.as_ref().map(Decision::from);
        let fixes = |near: bool| {
            let fixes = self.fixes.iter().filter(|fix| fix.is_near() == near);
            let texts: Vec<Value> = fixes.map(|fix| fix.to_string().into()).collect();
            texts
        };
        let near = fixes(true);
        object([
            ("target", Some(self.target.to_string().into())),
            ("outcome", Some(self.outcome.to_string().into())),
            ("name", name.map(|name| object(name.fields(origin)))),
            (
                "hosts",
                Some(self.hosts.iter().map(|host| host.json(origin)).collect()),
            ),
            ("fixes", Some(fixes(false).into())),
            ("near", (!near.is_empty()).then(|| near.into())),
        ])
    }
}

impl HostAnswers {
    fn registry(&self) -> String {
        match registry::classify(self.address) {
            Class::Global => "is a global address".to_owned(),
            Class::Special(special) => special.to_string(),
        }
    }

    fn names(&self) -> Vec<String> {
        self.names.iter().map(ToString::to_string).collect()
    }

    fn text(&self, origin: Origin<'_>) -> String {
        let mut text = format!("  {} {}\n", self.address, self.registry());
        text += &format!("    the host reaches it {}\n", self.route);
        if self.own {
            text += "    it is an address of the host itself\n";
        }
        if !self.names.is_empty() {
            text += &format!("    names: {}\n", self.names().join(", "));
        }
        for answer in &self.answers {
            let ports = answer
                .ports()
                .map_or_else(String::new, |ports| format!(" {ports}"));
            let decision = Decision::from(&answer.verdict).text(origin);
            text += &format!("    {}{ports}: {decision}\n", answer.protocol);
        }
        text
    }

    fn json(&self, origin: Origin<'_>) -> Value {
        let answer = |answer: &Answer| {
            let fields = Decision::from(&answer.verdict).fields(origin);
            object(fields.into_iter().chain([
                ("protocol", Some(answer.protocol.to_string().into())),
                ("ports", answer.ports().map(Into::into)),
            ]))
        };
        json!({
            "address": self.address.to_string(),
            "facts": {
                "registry": self.registry(),
                "route": self.route.to_string(),
                "own": self.own,
                "names": self.names(),
            },
            "answers": self.answers.iter().map(answer).collect::<Vec<_>>(),
        })
    }
}

impl Answer {
    /// `443` or `1-65535`.
    fn ports(&self) -> Option<String> {
        let ports = self.ports.as_ref()?;
        Some(if ports.start() == ports.end() {
            ports.start().to_string()
        } else {
            format!("{}-{}", ports.start(), ports.end())
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Allowed => "allowed",
            Outcome::Denied => "denied",
            Outcome::Unclear => "unclear",
        })
    }
}

/// To be read after "the host reaches it".
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Default => f.write_str("through its default route"),
            Route::Specific(network) => write!(f, "through {network}"),
            Route::Local => f.write_str("as an address of its own"),
            Route::Broadcast => f.write_str("as a broadcast address"),
            Route::None => f.write_str("not at all"),
            Route::Proxied => f.write_str("through its proxy"),
            Route::ToProxy => f.write_str("as its proxy"),
        }
    }
}
