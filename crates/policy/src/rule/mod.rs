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
//!
//! The list `near` has rules for names that may also lead to private addresses
//! ([`Scope::Near`]). They are written alike; only the list tells them apart.

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
    /// The device that it is a rule of, if it is one: a single address or name.
    device: Option<Hostname>,
}

/// The hosts that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Without host bits; not IPv4-mapped; at least partly within reach.
    Network(IpNet),
    /// Hosts on the internet by the names that the program asked for.
    Name(NamePattern),
    /// Hosts by the names that the program asked for, at private addresses too. Never the machine
    /// itself, a metadata service or a link-local address.
    Near(NamePattern),
}

impl Rule {
    /// The narrowest rule that allows this flow, whose destination is one that
    /// a rule may name.
    pub(crate) fn exactly(flow: &Flow) -> Rule {
        Rule {
            protocol: Some(flow.protocol()),
            scope: Scope::Network(IpNet::from(flow.destination())),
            ports: flow.port().map(Ports::from),
            device: None,
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
            device: None,
        })
    }

    /// Reads a rule of the list `near`: one for names whose addresses may be private.
    ///
    /// # Errors
    /// As for other rules, and for a rule for addresses.
    pub fn parse_near(text: &str) -> Result<Rule, RuleError> {
        parse::near(text).map_err(|fault| fault.explain(text, parse::near))
    }

    /// Reads a rule of a device: for one address, or for one name, which may lead to private ones.
    ///
    /// # Errors
    /// As for other rules, and for a rule for several hosts.
    pub fn parse_device(device: &Hostname, text: &str) -> Result<Rule, RuleError> {
        let rule = parse::device(text).map_err(|fault| fault.explain(text, parse::device))?;
        Ok(Rule {
            device: Some(device.clone()),
            ..rule
        })
    }

    /// What allows flows to one host, in as few rules as can be: the ports that any of them is to,
    /// of TCP alone if all are of TCP, and else of both TCP and UDP; and ping.
    ///
    /// The flows are to one destination.
    pub fn for_flows(flows: &[Flow]) -> Vec<Rule> {
        let Some(destination) = flows.first().map(Flow::destination) else {
            return Vec::new();
        };
        let rule = |protocol, ports| Rule {
            protocol,
            scope: Scope::Network(IpNet::from(destination)),
            ports,
            device: None,
        };
        let is_tcp = flows.iter().all(|flow| flow.protocol() != Protocol::Udp);
        let ports: Vec<NonZeroU16> = flows.iter().filter_map(Flow::port).collect();
        let served = Ports::of(ports).map(|ports| {
            let protocol = is_tcp.then_some(Protocol::Tcp);
            rule(protocol, Some(ports))
        });
        let mut echo = flows
            .iter()
            .filter(|flow| flow.protocol() == Protocol::Icmp);
        let echo = echo.next().map(|_| rule(Some(Protocol::Icmp), None));
        served.into_iter().chain(echo).collect()
    }

    /// The same for names that may lead to private addresses. A rule for addresses stays as it is.
    pub(crate) fn into_near(self) -> Rule {
        match self.scope {
            Scope::Name(pattern) => Rule {
                scope: Scope::Near(pattern),
                ..self
            },
            _ => self,
        }
    }

    /// Whether it is for names that may lead to private addresses: a rule of the list `near`.
    pub fn is_near(&self) -> bool {
        matches!(self.scope, Scope::Near(_))
    }

    /// Whether it opens private addresses by a name that anybody on the internet could own.
    pub fn is_of_strangers(&self) -> bool {
        self.is_near() && self.name().is_some_and(NamePattern::is_public)
    }

    /// The device that it is a rule of.
    pub fn device(&self) -> Option<&Hostname> {
        self.device.as_ref()
    }

    /// The rule as a part of a sentence: its text, and where it belongs.
    pub(crate) fn described(&self) -> String {
        match &self.device {
            Some(device) => format!("rule `{self}` of device {device}"),
            None if self.is_near() => format!("near rule `{self}`"),
            None => format!("rule `{self}`"),
        }
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
            device: None,
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
            Scope::Name(_) | Scope::Near(_) => None,
        }
    }

    /// The names that the rule is about, if it is about names.
    pub fn name(&self) -> Option<&NamePattern> {
        match &self.scope {
            Scope::Network(_) => None,
            Scope::Name(pattern) | Scope::Near(pattern) => Some(pattern),
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
            Scope::Name(pattern) | Scope::Near(pattern) => write!(f, "{pattern}"),
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
