//! The answer: yes or no, by what, why, and what would change it.

mod reason;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

pub use reason::{BROADCAST, Near, Reason};

use crate::flow::Flow;
use crate::registry::{Embedding, Metadata, Special};
use crate::rule::Rule;

/// A decision that explains itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    flow: Flow,
    reason: Reason,
    fix: Option<Rule>,
}

impl Verdict {
    pub(crate) fn new(flow: &Flow, reason: Reason) -> Self {
        Self::with_fix(flow, reason, None)
    }

    pub(crate) fn with_fix(flow: &Flow, reason: Reason, fix: impl Into<Option<Rule>>) -> Self {
        Self {
            flow: *flow,
            reason,
            fix: fix.into(),
        }
    }

    pub fn is_allowed(&self) -> bool {
        matches!(
            self.reason,
            Reason::Rule { .. } | Reason::Internet | Reason::Name { .. }
        )
    }

    /// Whether it is allowed for nothing but a name of the destination. Where the
    /// flow shows a name, that is to be judged, by
    /// [`decide_claim`](crate::decide_claim).
    pub fn rests_on_names(&self) -> bool {
        matches!(self.reason, Reason::Name { .. })
    }

    /// The rule that decided: the user's, or one that is built in.
    pub fn decided_by(&self) -> Decider<'_> {
        match &self.reason {
            Reason::Rule { index, rule, .. } | Reason::Name { index, rule, .. } => Decider::Rule {
                index: *index,
                rule,
            },
            other => Decider::BuiltIn(other.name()),
        }
    }

    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// The narrowest rule that would allow exactly this flow, if it is denied
    /// and a rule would help: by its name if it has one, or the program says one,
    /// and is on the internet; the program has to ask for the name then.
    /// For QUIC it is the rule for the TCP connection that programs fall back to,
    /// or none if that is allowed already.
    pub fn fix(&self) -> Option<&Rule> {
        self.fix.as_ref()
    }
}

/// The reason, as a sentence for people.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.say(&self.flow, f)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider<'a> {
    /// The user's rule, counted from zero in the order of the policy.
    Rule {
        index: usize,
        rule: &'a Rule,
    },
    BuiltIn(&'static str),
}

impl fmt::Display for Decider<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decider::Rule { rule, .. } => write!(f, "rule `{rule}`"),
            Decider::BuiltIn(name) => write!(f, "built-in rule {name}"),
        }
    }
}

/// Why a destination needs a rule that means it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restriction {
    /// A service that gives out credentials.
    Metadata {
        service: &'static Metadata,
        via: Option<Embedding>,
    },
    Own,
    /// An IPv6 address that carries a special IPv4 address inside.
    Disguised(Special),
}

impl Restriction {
    /// The shortest prefix of a rule that means the destination: the whole
    /// address, or for a disguised one the prefix of the disguise.
    pub(crate) fn floor(self, destination: IpAddr) -> u8 {
        match self {
            Restriction::Disguised(Special {
                via: Some(embedding),
                ..
            }) => embedding.format.prefix_len(),
            _ => IpNet::from(destination).max_prefix_len(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Restriction::Metadata { .. } => "metadata-service",
            Restriction::Own => "own-address",
            Restriction::Disguised(_) => "special-address",
        }
    }
}

/// To be read after the destination.
impl fmt::Display for Restriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Restriction::Metadata { service, via } => {
                if let Some(embedding) = via {
                    write!(f, "{embedding}, which ")?;
                }
                write!(f, "is a cloud metadata service ({})", service.name)
            }
            Restriction::Own => f.write_str("is an address of the host itself"),
            Restriction::Disguised(special) => write!(f, "{special}"),
        }
    }
}
