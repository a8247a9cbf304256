//! Rules, as users write them: `[proto://]target[:ports]`.
//!
//! A rule only ever allows. It names addresses or host names, and may narrow to
//! a protocol and to ports:
//!
//! | rule | allows |
//! |---|---|
//! | `192.168.10.21` | TCP, UDP and ping to one address |
//! | `tcp://10.20.0.0/16:443` | TCP to one port of a network |
//! | `udp://172.23.1.3:5064-5065` | UDP to a range of ports |
//! | `[fd00::5]:80,443` | TCP and UDP, not ping, to two ports |
//! | `api.example.org` | everything but QUIC to a host on the internet |
//! | `*.example.org:443` | the same for all hosts below a domain, one port |
//!
//! There is one way to write each thing, because rules are read by people who
//! audit them: what other programs would read otherwise, or guess at, is an
//! error with the correction. `Display` gives the canonical form, which parses
//! to the same rule.

mod address;
pub(crate) mod parse;
mod ports;
pub(crate) mod scheme;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::str::FromStr;

use ipnet::IpNet;

pub(crate) use address::{ends_in_number, is_address};
pub use ports::Ports;

use crate::flow::{Flow, Protocol, QUIC};
use crate::name::{Hostname, NamePattern};
use crate::syntax::RuleError;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// None: all of them.
    protocol: Option<Protocol>,
    scope: Scope,
    /// None: all ports, and what has no ports. Never with ICMP, and never only
    /// that of QUIC for a name and UDP.
    ports: Option<Ports>,
}

/// The hosts that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Without host bits; not IPv4-mapped; at least partly within reach.
    Network(IpNet),
    /// Hosts on the internet by the names that the program asked for.
    Name(NamePattern),
}

impl Rule {
    /// The narrowest rule that allows this flow, whose destination is one that
    /// a rule may name.
    pub(crate) fn exactly(flow: &Flow) -> Rule {
        Rule {
            protocol: Some(flow.protocol()),
            scope: Scope::Network(IpNet::from(flow.destination())),
            ports: flow.port().map(Ports::from),
        }
    }

    /// The narrowest rule for a service of a host by its name; none if a rule
    /// could not have an effect.
    pub(crate) fn of_name(
        name: &Hostname,
        protocol: Option<Protocol>,
        port: Option<NonZeroU16>,
    ) -> Option<Rule> {
        if protocol == Some(Protocol::Udp) && port.is_some_and(|port| port == QUIC) {
            return None;
        }
        Some(Rule {
            protocol,
            scope: Scope::Name(NamePattern::exactly(name)?),
            ports: port.map(Ports::from),
        })
    }

    /// The same hosts, with another protocol and port.
    pub(crate) fn with_services(
        &self,
        protocol: Option<Protocol>,
        port: Option<NonZeroU16>,
    ) -> Rule {
        Rule {
            protocol,
            scope: self.scope.clone(),
            ports: port.map(Ports::from),
        }
    }

    /// Whether the flow is of the rule's protocol, and to one of its ports.
    pub(crate) fn serves(&self, flow: &Flow) -> bool {
        self.protocol
            .is_none_or(|protocol| protocol == flow.protocol())
            && self
                .ports
                .as_ref()
                .is_none_or(|ports| flow.port().is_some_and(|port| ports.contains(port)))
    }

    /// Whether the rule is about this one address.
    pub(crate) fn is_for(&self, address: IpAddr) -> bool {
        let one = self
            .network()
            .filter(|it| it.prefix_len() == it.max_prefix_len());
        one.is_some_and(|network| network.addr() == address)
    }

    /// The hosts that the rule is about.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The addresses that the rule is about, if it is about addresses.
    pub fn network(&self) -> Option<IpNet> {
        match self.scope {
            Scope::Network(network) => Some(network),
            Scope::Name(_) => None,
        }
    }

    /// The names that the rule is about, if it is about names.
    pub fn name(&self) -> Option<&NamePattern> {
        match &self.scope {
            Scope::Network(_) => None,
            Scope::Name(pattern) => Some(pattern),
        }
    }

    /// None: all protocols.
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// None: all ports, and ping where the protocol admits it.
    pub fn ports(&self) -> Option<&Ports> {
        self.ports.as_ref()
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        parse::rule(text).map_err(|fault| fault.explain(text, parse::rule))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(protocol) = self.protocol {
            write!(f, "{protocol}://")?;
        }
        match (&self.scope, &self.ports) {
            (scope, None) => write!(f, "{scope}"),
            (Scope::Network(IpNet::V6(_)), Some(ports)) => write!(f, "[{}]:{ports}", self.scope),
            (scope, Some(ports)) => write!(f, "{scope}:{ports}"),
        }
    }
}

/// A single address without its prefix length.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Name(pattern) => write!(f, "{pattern}"),
            Scope::Network(network) if network.prefix_len() != network.max_prefix_len() => {
                write!(f, "{network}")
            }
            Scope::Network(network) => match network.addr() {
                IpAddr::V4(address) => write!(f, "{address}"),
                IpAddr::V6(address) => write!(f, "{address}"),
            },
        }
    }
}
