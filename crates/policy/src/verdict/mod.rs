//! The answer: yes or no, by what, why, and what would change it.

mod reason;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

pub use reason::{BROADCAST, Near, Reason};

use crate::discovery::Discovery;
use crate::flow::Flow;
use crate::name::Hostname;
use crate::policy::Policy;
use crate::registry::{Embedding, Metadata, Special};
use crate::rule::Rule;

/// What a rule gives away that opens private addresses by a name of strangers.
pub const STRANGERS: &str =
    "whoever controls the DNS of this name chooses which private address it opens";

/// A decision that explains itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    flow: Flow,
    reason: Reason,
    fix: Option<Rule>,
    /// The device at the destination, if the user gave it a name.
    device: Option<Hostname>,
    /// Of a denial, or if a name allowed it: the names under which the program was given the
    /// destination.
    names: Vec<Hostname>,
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
            device: None,
            names: Vec::new(),
        }
    }

    /// The same, with the device that is at the destination.
    pub(crate) fn at(mut self, policy: &Policy) -> Self {
        let at = policy.rules.device_at(self.flow.destination());
        let by_name = match &self.reason {
            Reason::Name { rule, .. } => rule.device(),
            _ => None,
        };
        self.device = by_name.or(at).cloned();
        self
    }

    /// The device at the destination, if the user gave it a name.
    pub fn device(&self) -> Option<&Hostname> {
        self.device.as_ref()
    }

    /// Keeps the names of the destination where a program inside may be told of them.
    pub(crate) fn known_as(mut self, names: &[Hostname]) -> Self {
        let has_names = match self.reason {
            // No name changes what nothing inside can reach.
            Reason::NeverReachable(_) => false,
            Reason::Name { .. } => true,
            _ => !self.is_allowed(),
        };
        if has_names {
            self.names = names.to_vec();
        }
        self
    }

    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    pub(crate) fn names(&self) -> &[Hostname] {
        &self.names
    }

    pub fn is_allowed(&self) -> bool {
        matches!(
            self.reason,
            Reason::Rule { .. }
                | Reason::Internet
                | Reason::InternetByProxy
                | Reason::Name { .. }
                | Reason::Search { .. }
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

    /// The entry of `discovery` that would pass it on, if it is a search for devices.
    pub fn discovery(&self) -> Option<Discovery> {
        match self.reason {
            Reason::SearchOff { discovery, .. } => Some(discovery),
            _ => None,
        }
    }

    /// The narrowest rule that would allow exactly this flow, if it is denied
    /// and a rule would help: by its name if it has one, or the program says one; the
    /// program has to ask for the name then. For a private address it is one of `near`.
    /// For QUIC it is the rule for the TCP connection that programs fall back to,
    /// or none if that is allowed already.
    pub fn fix(&self) -> Option<&Rule> {
        self.fix.as_ref()
    }

    /// What somebody gives away who adds the fix. Whoever shows a fix shows this with it.
    pub fn danger(&self) -> Option<&'static str> {
        match self.reason {
            Reason::Restricted {
                restriction: Restriction::Metadata { .. },
                ..
            } => Some("it hands out this machine's login at its cloud"),
            Reason::Restricted {
                restriction: Restriction::Own,
                ..
            } => Some("services there may take the command for the user"),
            Reason::Restricted {
                restriction: Restriction::Proxy,
                ..
            } => Some("a command that uses the proxy directly bypasses your rules"),
            Reason::OtherName { .. } => {
                Some("suspicious: the program used an address that it was given for another name")
            }
            Reason::OtherAnswer => Some("only if you know this device"),
            // The program may have asked for a name of its own.
            _ if self.fix().is_some_and(Rule::is_of_strangers) => Some(STRANGERS),
            _ => None,
        }
    }

    /// The rule that the user can be asked to add while the program waits: the
    /// fix, where it would admit this very flow and merely nobody has said so.
    ///
    /// Not for a destination that a rule has to mean (the host itself, a metadata
    /// service), which nobody should open in passing. Nor for a name that a rule
    /// covers and that points inward: the user knows the name, and its owner chose
    /// the address.
    ///
    /// For a private address it is that address, whatever name led there: who asks
    /// shows one address, and a rule of `near` would open each that the name's owner
    /// chooses, now or later.
    pub fn question(&self) -> Option<Rule> {
        match self.reason {
            Reason::NotListed { .. } | Reason::Near(_) => {
                self.fix().map(|fix| match fix.is_near() {
                    true => Rule::exactly(&self.flow),
                    false => fix.clone(),
                })
            }
            Reason::Rule { .. }
            | Reason::Internet
            | Reason::InternetByProxy
            | Reason::NotThroughProxy
            | Reason::Name { .. }
            | Reason::NeverReachable(_)
            | Reason::Broadcast { .. }
            | Reason::Search { .. }
            | Reason::SearchOff { .. }
            | Reason::NobodyToAsk { .. }
            | Reason::OtherAnswer
            | Reason::Restricted { .. }
            | Reason::Inward { .. }
            | Reason::Quic { .. }
            | Reason::OtherName { .. }
            | Reason::NoRoute => None,
        }
    }
}

/// The reason, as a sentence for people.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.say(&self.flow, self.device(), f)
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
            Decider::Rule { rule, .. } => f.write_str(&rule.described()),
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
    /// Who speaks to the proxy goes around the policy.
    Proxy,
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
            Restriction::Proxy => "proxy-address",
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
            Restriction::Proxy => f.write_str(
                "is the proxy, which Stockade itself uses; programs inside need no proxy setting",
            ),
            Restriction::Disguised(special) => write!(f, "{special}"),
        }
    }
}
