//! May the program inside ask for a name at all?
//!
//! With the internet closed, a name that no rule covers is not even looked up:
//! the question itself could carry something out. A name that a rule covers for
//! some port is, as DNS does not tell which is meant.

use std::fmt;

use crate::name::Hostname;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::verdict::Decider;

pub fn decide_name(policy: &Policy, name: &Hostname) -> NameVerdict {
    let reason = if let Some((index, rule)) = policy.rules.any_for_name(name) {
        NameReason::Rule {
            index,
            rule: rule.clone(),
        }
    } else if policy.internet {
        NameReason::Internet
    } else {
        NameReason::NotListed
    };
    NameVerdict {
        name: name.clone(),
        reason,
    }
}

/// A decision on a name. `Display` is a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameVerdict {
    name: Hostname,
    reason: NameReason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameReason {
    /// Allowed: a user's rule covers it, for some protocol and port.
    Rule {
        index: usize,
        rule: Rule,
    },
    Internet,
    /// Denied: the internet is closed and no rule covers the name.
    NotListed,
}

impl NameReason {
    /// A short name that stays the same over versions, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            NameReason::Rule { .. } => "rule",
            NameReason::Internet => "internet",
            NameReason::NotListed => "internet-off",
        }
    }
}

impl NameVerdict {
    pub fn is_allowed(&self) -> bool {
        self.reason != NameReason::NotListed
    }

    pub fn name(&self) -> &Hostname {
        &self.name
    }

    pub fn reason(&self) -> &NameReason {
        &self.reason
    }

    pub fn decided_by(&self) -> Decider<'_> {
        match &self.reason {
            NameReason::Rule { index, rule } => Decider::Rule {
                index: *index,
                rule,
            },
            other => Decider::BuiltIn(other.name()),
        }
    }

    /// The narrowest rule that would allow the name, if it is denied and one would.
    pub fn fix(&self) -> Option<Rule> {
        match self.reason {
            NameReason::NotListed => Rule::of_name(&self.name, None, None),
            _ => None,
        }
    }

    /// One line of at most [`LONGEST_NOTE`] bytes for the answer to the program
    /// inside, as an Extended DNS Error. Nothing for a name that is allowed.
    pub fn note(&self) -> Option<String> {
        let NameReason::NotListed = self.reason else {
            return None;
        };
        let name = self.name.as_str();
        let short = format!("Stockade: no rule allows {name}");
        let advice = self.fix().map(|fix| format!("; to allow: \"{fix}\""));
        let long = [short.as_str(), advice.as_deref().unwrap_or_default()].concat();
        Some(if long.len() <= LONGEST_NOTE {
            long
        } else if short.len() <= LONGEST_NOTE {
            short
        } else {
            // The end of a name says whose it is.
            const SHOWN: usize = 100;
            let hidden = name.len().saturating_sub(SHOWN);
            let end = name.get(hidden..).unwrap_or_default();
            format!("Stockade: no rule allows ...{end}")
        })
    }
}

/// So that the note does not crowd out the rest of an answer of 512 bytes.
pub const LONGEST_NOTE: usize = 200;

impl fmt::Display for NameVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.reason {
            NameReason::Rule { rule, .. } => write!(f, "{} covers {name}", rule.described()),
            NameReason::Internet => write!(f, "the internet is open"),
            NameReason::NotListed => write!(f, "the internet is closed, and no rule covers {name}"),
        }
    }
}
