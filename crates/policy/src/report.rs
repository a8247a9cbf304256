//! Decisions as plain data, for `--json`, logs and terminals.
//!
//! The policy knows rules by their number only. Whoever read them knows where
//! each stands, and says so when a report is made (`origin`).

use std::fmt;

use serde::Serialize;

use crate::evidence::Route;
use crate::explain::{Answer, Explanation, HostAnswers, Outcome};
use crate::registry::{self, Class};
use crate::rule::Rule;
use crate::verdict::{Decider, Verdict};

/// One decision. Names of fields and values stay the same over versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerdictReport {
    pub allowed: bool,
    /// The name of the reason.
    pub reason: &'static str,
    /// The reason as a sentence.
    pub text: String,
    /// The user's rule that decided, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleReport>,
    /// The narrowest rule that would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    pub rule: String,
    /// Counted from zero in the order of the policy.
    pub index: usize,
    /// Where it stands, as `file:line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

impl Verdict {
    pub fn report(&self, origin: &dyn Fn(usize) -> Option<String>) -> VerdictReport {
        VerdictReport {
            allowed: self.is_allowed(),
            reason: self.reason().name(),
            text: self.reason().to_string(),
            rule: rule(self.decided_by(), origin),
            fix: self.fix().map(Rule::to_string),
        }
    }
}

fn rule(decider: Decider<'_>, origin: &dyn Fn(usize) -> Option<String>) -> Option<RuleReport> {
    match decider {
        Decider::BuiltIn(_) => None,
        Decider::Rule { index, rule } => Some(RuleReport {
            rule: rule.to_string(),
            index,
            origin: origin(index),
        }),
    }
}

/// An explanation. `Display` is a text for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplanationReport {
    pub target: String,
    /// `allowed`, `denied` or `unclear`.
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<VerdictReport>,
    pub hosts: Vec<HostReport>,
    /// The narrowest rules that would allow all that was asked about.
    pub fixes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostReport {
    pub address: String,
    pub facts: Facts,
    pub answers: Vec<AnswerReport>,
}

/// What the decision is made of, but for the rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// What the registries say.
    pub registry: String,
    /// What the host's routing table says.
    pub route: String,
    /// Whether it is an address of the host itself.
    pub own: bool,
    /// The names that it has for the program inside.
    pub names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerReport {
    pub protocol: String,
    /// `443` or `1-65535`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<String>,
    #[serde(flatten)]
    pub verdict: VerdictReport,
}

impl Explanation {
    pub fn report(&self, origin: &dyn Fn(usize) -> Option<String>) -> ExplanationReport {
        ExplanationReport {
            target: self.target.to_string(),
            outcome: match self.outcome {
                Outcome::Allowed => "allowed",
                Outcome::Denied => "denied",
                Outcome::Unclear => "unclear",
            },
            name: self.name.as_ref().map(|verdict| VerdictReport {
                allowed: verdict.is_allowed(),
                reason: verdict.reason().name(),
                text: verdict.to_string(),
                rule: rule(verdict.decided_by(), origin),
                fix: verdict.fix().map(|fix| fix.to_string()),
            }),
            hosts: self.hosts.iter().map(|host| host.report(origin)).collect(),
            fixes: self.fixes.iter().map(Rule::to_string).collect(),
        }
    }
}

impl HostAnswers {
    fn report(&self, origin: &dyn Fn(usize) -> Option<String>) -> HostReport {
        HostReport {
            address: self.address.to_string(),
            facts: Facts {
                registry: match registry::classify(self.address) {
                    Class::Global => "is a global address".to_owned(),
                    Class::Special(special) => special.to_string(),
                },
                route: self.route.to_string(),
                own: self.own,
                names: self.names.iter().map(ToString::to_string).collect(),
            },
            answers: self
                .answers
                .iter()
                .map(|answer| answer.report(origin))
                .collect(),
        }
    }
}

impl Answer {
    fn report(&self, origin: &dyn Fn(usize) -> Option<String>) -> AnswerReport {
        AnswerReport {
            protocol: self.protocol.to_string(),
            ports: self.ports.as_ref().map(|ports| {
                if ports.start() == ports.end() {
                    ports.start().to_string()
                } else {
                    format!("{}-{}", ports.start(), ports.end())
                }
            }),
            verdict: self.verdict.report(origin),
        }
    }
}

/// To be read after "the host reaches it".
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Default => f.write_str("through its default route"),
            Route::Specific(network) => write!(f, "through {network}"),
            Route::Local => f.write_str("in itself"),
            Route::Broadcast => f.write_str("by a broadcast, with all others of a subnet"),
            Route::None => f.write_str("not at all"),
        }
    }
}

impl fmt::Display for ExplanationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.target, self.outcome)?;
        if let Some(name) = &self.name {
            writeln!(f, "  name: {name}")?;
            if name.allowed && self.hosts.is_empty() {
                writeln!(
                    f,
                    "    no address is known for it, so its connections are not judged"
                )?;
            }
        }
        for host in &self.hosts {
            write!(f, "{host}")?;
        }
        for fix in &self.fixes {
            writeln!(f, "  to allow it: \"{fix}\"")?;
        }
        Ok(())
    }
}

impl fmt::Display for HostReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = &self.facts;
        let address = &self.address;
        writeln!(f, "  {address} {}", facts.registry)?;
        writeln!(f, "    the host reaches it {}", facts.route)?;
        if facts.own {
            writeln!(f, "    it is an address of the host itself")?;
        }
        if !facts.names.is_empty() {
            writeln!(f, "    names: {}", facts.names.join(", "))?;
        }
        for answer in &self.answers {
            write!(f, "    {}", answer.protocol)?;
            if let Some(ports) = &answer.ports {
                write!(f, " {ports}")?;
            }
            writeln!(f, ": {}", answer.verdict)?;
        }
        Ok(())
    }
}

impl fmt::Display for VerdictReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.allowed { "allowed" } else { "denied" };
        write!(f, "{word}: {}", self.text)?;
        match self.rule.as_ref().and_then(|rule| rule.origin.as_ref()) {
            Some(origin) => write!(f, " ({origin})"),
            None => Ok(()),
        }
    }
}
