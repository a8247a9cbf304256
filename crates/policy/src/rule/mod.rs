//! Rules, as users write them: `[proto://]target[:ports]`.
//!
//! A rule only ever allows. It names addresses, and may narrow to a protocol
//! and to ports:
//!
//! | rule | allows |
//! |---|---|
//! | `192.168.10.21` | TCP, UDP and ping to one address |
//! | `tcp://10.20.0.0/16:443` | TCP to one port of a network |
//! | `udp://172.23.1.3:5064-5065` | UDP to a range of ports |
//! | `[fd00::5]:80,443` | TCP and UDP, not ping, to two ports |
//!
//! There is one way to write each thing, because rules are read by people who
//! audit them: what other programs would read otherwise, or guess at, is an
//! error with the correction. `Display` gives the canonical form, which parses
//! to the same rule.

mod address;
mod error;
mod parse;
mod ports;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

pub use error::{Problem, RuleError};
pub use ports::Ports;

use crate::flow::{Flow, Protocol};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// None: all of them.
    protocol: Option<Protocol>,
    /// Without host bits; not IPv4-mapped; at least partly within reach.
    network: IpNet,
    /// None: all ports, and what has no ports. Never with ICMP.
    ports: Option<Ports>,
}

impl Rule {
    /// The narrowest rule that allows this flow, whose destination is one that
    /// a rule may name.
    pub(crate) fn exactly(flow: &Flow) -> Rule {
        Rule {
            protocol: Some(flow.protocol()),
            network: IpNet::from(flow.destination()),
            ports: flow.port().map(Ports::from),
        }
    }

    pub(crate) fn covers(&self, flow: &Flow) -> bool {
        self.protocol
            .is_none_or(|protocol| protocol == flow.protocol())
            && self.network.contains(&flow.destination())
            && self
                .ports
                .as_ref()
                .is_none_or(|ports| flow.port().is_some_and(|port| ports.contains(port)))
    }

    /// The addresses that the rule is about.
    pub fn network(&self) -> IpNet {
        self.network
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
        parse::rule(text).map_err(|fault| fault.explain(text))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(protocol) = self.protocol {
            write!(f, "{protocol}://")?;
        }
        let target = Target(self.network);
        match (&self.ports, self.network) {
            (None, _) => write!(f, "{target}"),
            (Some(ports), IpNet::V4(_)) => write!(f, "{target}:{ports}"),
            (Some(ports), IpNet::V6(_)) => write!(f, "[{target}]:{ports}"),
        }
    }
}

/// A network; a single address without its prefix length.
struct Target(IpNet);

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target(network) = self;
        if network.prefix_len() != network.max_prefix_len() {
            return write!(f, "{network}");
        }
        match network.addr() {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(address) => write!(f, "{address}"),
        }
    }
}
