//! Why a flow is allowed or denied.

use std::fmt;

use ipnet::IpNet;

use super::Restriction;
use crate::flow::Flow;
use crate::name::Hostname;
use crate::registry::Special;
use crate::rule::Rule;

/// Why a flow is allowed or denied. `Display` of the [`Verdict`](super::Verdict) is a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Allowed: a user's rule for addresses covers it.
    Rule { index: usize, rule: Rule },
    /// Allowed: it is on the internet, which is open.
    Internet,
    /// Allowed: it is on the internet, and a user's rule covers a name of it.
    Name {
        name: Hostname,
        index: usize,
        rule: Rule,
    },
    /// Denied: out of reach from any jail.
    NeverReachable(Special),
    /// Denied: the broadcast address of a subnet of the host's. A rule may hold it, in vain.
    Broadcast { idle: Option<Rule> },
    /// Denied: only a rule that means this destination would allow it.
    Restricted {
        restriction: Restriction,
        /// A rule that holds the address, but does not mean it.
        too_wide: Option<Rule>,
    },
    /// Denied: the internet is closed and no rule covers the flow, nor a name of its destination.
    NotListed { name: Option<Hostname> },
    /// Denied: not on the internet.
    Near(Near),
    /// Denied: not on the internet, to which a rule that covers its name is limited.
    Inward {
        near: Near,
        name: Hostname,
        index: usize,
        rule: Rule,
    },
    /// Denied: of rules for names, none can admit what does not show its name.
    Quic { name: Hostname },
    /// Denied: the program says a name under which it was not given the destination.
    OtherName { claimed: Hostname },
    /// Denied: a global address that the host cannot reach either.
    NoRoute,
}

impl Reason {
    /// A short name that stays the same over versions, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::Rule { .. } => "rule",
            Reason::Internet => "internet",
            Reason::Name { .. } => "name",
            Reason::NeverReachable(_) => "never-reachable",
            Reason::Broadcast { .. } => "broadcast-address",
            Reason::Restricted { restriction, .. } => restriction.name(),
            Reason::NotListed { .. } => "internet-off",
            Reason::Near(near) => near.name(),
            Reason::Inward { .. } => "name-points-inward",
            Reason::Quic { .. } => "quic",
            Reason::OtherName { .. } => "other-name",
            Reason::NoRoute => "no-route",
        }
    }

    /// The reason why this flow is allowed or denied, as a sentence.
    pub(super) fn say(&self, flow: &Flow, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let destination = flow.destination();
        match self {
            Reason::Rule { rule, .. } => write!(f, "rule `{rule}` covers {destination}"),
            Reason::Internet => write!(
                f,
                "{destination} is a global address, which the host reaches through its default route"
            ),
            Reason::Name { name, rule, .. } => {
                write!(f, "rule `{rule}` covers {name}, which is at {destination}")
            }
            Reason::NeverReachable(special) => {
                write!(f, "{destination} {special}, which nothing inside can reach")?;
                f.write_str(special.instead())
            }
            Reason::Broadcast { idle } => {
                write!(f, "{destination} {BROADCAST}")?;
                match idle {
                    Some(rule) => write!(f, "; rule `{rule}` does not change that"),
                    None => Ok(()),
                }
            }
            Reason::Restricted {
                restriction,
                too_wide,
            } => {
                write!(f, "{destination} {restriction}")?;
                match too_wide {
                    Some(rule) => write!(f, "; rule `{rule}` is too wide to cover that"),
                    None => Ok(()),
                }
            }
            Reason::NotListed { name } => {
                write!(f, "the internet is closed, and no rule covers {flow}")?;
                match name {
                    Some(name) => write!(f, " ({name})"),
                    None => Ok(()),
                }
            }
            Reason::Near(near) => write!(f, "{destination} {near}"),
            Reason::Inward {
                near, name, rule, ..
            } => write!(
                f,
                "{name} points inward: {destination} {near}; \
                 rule `{rule}` covers the name, but rules for names open the internet only: it takes \
                 one for the address in addition"
            ),
            Reason::Quic { name } => write!(
                f,
                "QUIC to {destination} hides whether it is for {name}, so no rule for a name admits \
                 it; programs fall back to TCP"
            ),
            Reason::OtherName { claimed } => write!(
                f,
                "the program asks for {claimed} at {destination}, which it was given under other names"
            ),
            Reason::NoRoute => write!(f, "the host has no route to {destination}"),
        }
    }
}

/// What an address is that stands for a whole subnet. To be read after it.
pub const BROADCAST: &str =
    "is a broadcast address; broadcasts do not leave the jail: name the device's own address";

/// What keeps a destination from being on the internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near {
    /// It is no global address.
    Special(Special),
    /// It is of a network that the host knows.
    Known(IpNet),
}

impl Near {
    fn name(self) -> &'static str {
        match self {
            Near::Special(_) => "special-address",
            Near::Known(_) => "known-network",
        }
    }
}

/// To be read after the destination.
impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Near::Special(special) => write!(f, "{special}"),
            Near::Known(network) => write!(
                f,
                "is reached through {network}, not through the host's default route"
            ),
        }
    }
}
