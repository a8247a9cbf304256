//! Why a flow is allowed or denied.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use super::Restriction;
use crate::flow::Flow;
use crate::name::Hostname;
use crate::registry::{INSTEAD_OF_ALL, Special};
use crate::rule::Rule;

/// Why a flow is allowed or denied. `Display` is a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Allowed: a user's rule for addresses covers it.
    Rule {
        destination: IpAddr,
        index: usize,
        rule: Rule,
    },
    /// Allowed: it is on the internet, which is open.
    Internet { destination: IpAddr },
    /// Allowed: it is on the internet, and a user's rule covers a name of it.
    Name {
        destination: IpAddr,
        name: Hostname,
        index: usize,
        rule: Rule,
    },
    /// Denied: out of reach from any jail.
    NeverReachable {
        destination: IpAddr,
        special: Special,
    },
    /// Denied: the broadcast address of a subnet of the host's.
    Broadcast {
        destination: IpAddr,
        /// A rule that holds the address, in vain.
        idle: Option<Rule>,
    },
    /// Denied: only a rule that means this destination would allow it.
    Restricted {
        destination: IpAddr,
        restriction: Restriction,
        /// A rule that holds the address, but does not mean it.
        too_wide: Option<Rule>,
    },
    /// Denied: the internet is closed and no rule covers the flow.
    NotListed {
        flow: Flow,
        /// One that the destination has.
        name: Option<Hostname>,
    },
    Near { destination: IpAddr, near: Near },
    /// Denied: not on the internet, to which a rule that covers its name is limited.
    Inward {
        destination: IpAddr,
        near: Near,
        name: Hostname,
        index: usize,
        rule: Rule,
    },
    /// Denied: of rules for names, none can admit what does not show its name.
    Quic { destination: IpAddr, name: Hostname },
    /// Denied: the program says a name under which it was not given the destination.
    OtherName {
        destination: IpAddr,
        claimed: Hostname,
    },
    /// Denied: a global address that the host cannot reach either.
    NoRoute { destination: IpAddr },
}

impl Reason {
    /// A short name that stays the same over versions, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::Rule { .. } => "rule",
            Reason::Internet { .. } => "internet",
            Reason::Name { .. } => "name",
            Reason::NeverReachable { .. } => "never-reachable",
            Reason::Broadcast { .. } => "broadcast-address",
            Reason::Restricted { restriction, .. } => restriction.name(),
            Reason::NotListed { .. } => "internet-off",
            Reason::Near { near, .. } => near.name(),
            Reason::Inward { .. } => "name-points-inward",
            Reason::Quic { .. } => "quic",
            Reason::OtherName { .. } => "other-name",
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
            Reason::Name {
                destination,
                name,
                rule,
                ..
            } => write!(f, "rule `{rule}` covers {name}, which is at {destination}"),
            Reason::NeverReachable {
                destination,
                special,
            } => {
                write!(f, "{destination} {special}, which nothing inside can reach")?;
                f.write_str(special.instead())
            }
            Reason::Broadcast { destination, idle } => {
                write!(
                    f,
                    "{destination} is a broadcast address; broadcasts do not leave the jail{INSTEAD_OF_ALL}"
                )?;
                match idle {
                    Some(rule) => write!(f, "; rule `{rule}` does not change that"),
                    None => Ok(()),
                }
            }
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
            Reason::NotListed { flow, name } => {
                write!(f, "the internet is closed, and no rule covers {flow}")?;
                match name {
                    Some(name) => write!(f, " ({name})"),
                    None => Ok(()),
                }
            }
            Reason::Near { destination, near } => write!(f, "{destination} {near}"),
            Reason::Inward {
                destination,
                near,
                name,
                rule,
                ..
            } => write!(
                f,
                "{name} points inward: {destination} {near}; \
                 rule `{rule}` covers the name, but rules for names open the internet only: it takes \
                 one for the address in addition"
            ),
            Reason::Quic { destination, name } => write!(
                f,
                "QUIC to {destination} hides whether it is for {name}, so no rule for a name admits \
                 it; programs fall back to TCP"
            ),
            Reason::OtherName {
                destination,
                claimed,
            } => write!(
                f,
                "the program asks for {claimed} at {destination}, which it was given under other names"
            ),
            Reason::NoRoute { destination } => {
                write!(f, "the host has no route to {destination}")
            }
        }
    }
}

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
