//! The answer: yes or no, by what, why, and what would change it.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::flow::Flow;
use crate::registry::{Embedding, Metadata, Special};
use crate::rule::Rule;

/// A decision that explains itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    reason: Reason,
    fix: Option<Rule>,
}

impl Verdict {
    pub(crate) fn new(reason: Reason) -> Self {
        Self { reason, fix: None }
    }

    pub(crate) fn with_fix(reason: Reason, fix: Rule) -> Self {
        Self {
            reason,
            fix: Some(fix),
        }
    }

    pub fn is_allowed(&self) -> bool {
        matches!(self.reason, Reason::Rule { .. } | Reason::Internet { .. })
    }

    /// The rule that decided: the user's, or one that is built in.
    pub fn decided_by(&self) -> Decider<'_> {
        match &self.reason {
            Reason::Rule { index, rule, .. } => Decider::Rule {
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
    /// and a rule would help.
    pub fn fix(&self) -> Option<&Rule> {
        self.fix.as_ref()
    }
}

/// Who decided.
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

/// Why a flow is allowed or denied. `Display` is a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Allowed: a user's rule covers it.
    Rule {
        destination: IpAddr,
        index: usize,
        rule: Rule,
    },
    /// Allowed: it is on the internet, which is open.
    Internet { destination: IpAddr },
    /// Denied: out of reach from any jail.
    NeverReachable {
        destination: IpAddr,
        special: Special,
    },
    /// Denied: only a rule that means this destination would allow it.
    Restricted {
        destination: IpAddr,
        restriction: Restriction,
        /// A rule that holds the address, but does not mean it.
        too_wide: Option<Rule>,
    },
    /// Denied: the internet is off and no rule covers the flow.
    NotListed { flow: Flow },
    /// Denied: not a global address.
    Special {
        destination: IpAddr,
        special: Special,
    },
    /// Denied: a global address, but of a network that the host knows.
    Routed { destination: IpAddr, network: IpNet },
    /// Denied: a global address that the host cannot reach either.
    NoRoute { destination: IpAddr },
}

impl Reason {
    /// A short name that stays the same over versions, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::Rule { .. } => "rule",
            Reason::Internet { .. } => "internet",
            Reason::NeverReachable { .. } => "never-reachable",
            Reason::Restricted { restriction, .. } => restriction.name(),
            Reason::NotListed { .. } => "internet-off",
            Reason::Special { .. } => "special-address",
            Reason::Routed { .. } => "known-network",
            Reason::NoRoute { .. } => "no-route",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Rule {
                destination, rule, ..
            } => write!(f, "rule `{rule}` covers {destination}"),
            Reason::Internet { destination } => write!(
                f,
                "{destination} is a global address, which the host reaches through its default route"
            ),
            Reason::NeverReachable {
                destination,
                special,
            } => write!(f, "{destination} {special}, which nothing inside can reach"),
            Reason::Restricted {
                destination,
                restriction,
                too_wide,
            } => {
                write!(f, "{destination} {restriction}")?;
                match too_wide {
                    Some(rule) => write!(f, "; rule `{rule}` is too wide to cover that"),
                    None => Ok(()),
                }
            }
            Reason::NotListed { flow } => {
                write!(f, "the internet is off, and no rule covers {flow}")
            }
            Reason::Special {
                destination,
                special,
            } => write!(f, "{destination} {special}"),
            Reason::Routed {
                destination,
                network,
            } => write!(
                f,
                "the host reaches {destination} through {network}, not through its default route"
            ),
            Reason::NoRoute { destination } => {
                write!(f, "the host has no route to {destination}")
            }
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
    /// An address of the host itself.
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
