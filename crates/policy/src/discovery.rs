//! Searches for devices.
//!
//! A program that looks for devices sends a datagram to everybody, or to a group. Nobody but the
//! devices that the rules name may hear it, so it is passed on to each of these alone, if its port
//! is one that the user listed. The answer of a device may come from another of its addresses or
//! ports; it takes a rule for that one, too.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::str::FromStr;

use crate::decide::decide;
use crate::evidence::{Evidence, Route};
use crate::flow::{Flow, Protocol};
use crate::name::Hostname;
use crate::policy::Policy;
use crate::registry::{self, Class};
use crate::rule::Rule;
use crate::verdict::{Reason, Verdict};

/// Searches of Channel Access, beacons of its servers, and searches of pvAccess.
const EPICS: &[u16] = &[5064, 5065, 5076];
const WS_DISCOVERY: u16 = 3702;

/// A search goes to so many devices at most, each by a datagram of its own.
pub const MOST_DEVICES: usize = 64;

/// Searches that the user lets pass: an entry of `discovery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Discovery {
    /// Those of EPICS, by Channel Access and by pvAccess.
    Epics,
    /// Those to this port of UDP.
    Port(NonZeroU16),
}

impl Discovery {
    /// The ports of UDP that it is about.
    pub(crate) fn ports(self) -> impl Iterator<Item = u16> {
        let (epics, one) = match self {
            Self::Epics => (EPICS, None),
            Self::Port(port) => (&[][..], Some(port.get())),
        };
        epics.iter().copied().chain(one)
    }

    fn covers(self, port: NonZeroU16) -> bool {
        self.ports().any(|one| one == port.get())
    }

    /// The entry for a port at which programs look for devices. Others are at ports where an entry
    /// would not help: answers of mDNS go to a group, too.
    fn known(port: NonZeroU16) -> Option<Self> {
        match port.get() {
            WS_DISCOVERY => Some(Self::Port(port)),
            _ => Some(Self::Epics).filter(|epics| epics.covers(port)),
        }
    }
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epics => f.write_str("epics"),
            Self::Port(port) => write!(f, "udp://{port}"),
        }
    }
}

/// It is no entry of `discovery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscoveryError;

impl FromStr for Discovery {
    type Err = DiscoveryError;

    fn from_str(text: &str) -> Result<Self, DiscoveryError> {
        if text == "epics" {
            return Ok(Self::Epics);
        }
        let port = text.strip_prefix("udp://").ok_or(DiscoveryError)?;
        let decimal = !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| decimal);
        port.map(Self::Port).ok_or(DiscoveryError)
    }
}

impl Policy {
    /// The ports of searches that pass, and of those that are denied as what they are.
    pub(crate) fn ports_of_searches(&self) -> impl Iterator<Item = u16> {
        let listed = self.discovery.iter().copied().flat_map(Discovery::ports);
        listed.chain(EPICS.iter().copied()).chain([WS_DISCOVERY])
    }

    /// Whether searches at this port pass.
    pub fn discovers(&self, port: NonZeroU16) -> bool {
        self.discovery.iter().any(|entry| entry.covers(port))
    }

    /// The devices that a search may go to, each once: the single addresses that rules name, of the
    /// family of the search. A rule for a network is none: to ask everybody in it would be a scan.
    fn devices(&self, search: &Flow) -> impl Iterator<Item = SocketAddr> {
        let mut seen = HashSet::new();
        let rules = self.rules.iter().filter(|rule| rule.serves(search));
        let networks = rules.filter_map(Rule::network);
        let single = networks.filter(|it| it.prefix_len() == it.max_prefix_len());
        let family = single.filter(|it| it.addr().is_ipv4() == search.destination().is_ipv4());
        let port = search.port().map_or(0, NonZeroU16::get);
        family
            .map(move |network| SocketAddr::new(network.addr(), port))
            .filter(move |device| seen.insert(*device))
    }

    /// The devices that a search may go to whose rules are for a host name, each once and by the name
    /// that the user gave it. Where they are, the host's resolvers know. Other rules for names have
    /// none: the user said of no single host that it is a device.
    fn named_devices(&self, search: &Flow) -> impl Iterator<Item = &Hostname> {
        let devices = self.rules.devices().filter(|(_, rules)| {
            let mut rules = rules.iter();
            rules.any(|rule| rule.name().is_some() && rule.serves(search))
        });
        devices.map(|(device, _)| device)
    }

    /// How many devices a search would go to, without a limit. A host name counts as one.
    fn every_device(&self, search: &Flow) -> usize {
        let named = self.named_devices(search).count();
        self.devices(search).count().saturating_add(named)
    }

    /// How many devices no search goes to, because there are too many.
    pub fn unasked_devices(&self) -> usize {
        let ports = self.discovery.iter().copied().flat_map(Discovery::ports);
        let to_many = [
            Ipv4Addr::BROADCAST.into(),
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(),
        ];
        let searches =
            ports.flat_map(|port| to_many.map(|many: IpAddr| SocketAddr::new(many, port)));
        let asked = searches
            .filter_map(Flow::udp)
            .map(|search| self.every_device(&search));
        asked.max().unwrap_or(0).saturating_sub(MOST_DEVICES)
    }

    /// A rule for a network, or of `near`, that would hold devices for this search.
    fn too_wide(&self, search: &Flow) -> Option<Rule> {
        let is_too_wide = |rule: &&Rule| {
            let network = rule.network();
            let is_of_family =
                network.is_some_and(|it| it.addr().is_ipv4() == search.destination().is_ipv4());
            (is_of_family || rule.is_near()) && rule.serves(search)
        };
        self.rules.iter().find(is_too_wide).cloned()
    }
}

/// What becomes of a datagram to many at a port that the user listed: whom it is for. Nothing if it
/// is no such datagram; [`decide`] says then why it is denied.
pub fn decide_search(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Option<Verdict> {
    let port = flow.port()?;
    if !policy.discovers(port) || !is_to_many(flow, evidence) {
        return None;
    }
    let devices: Vec<_> = policy.devices(flow).take(MOST_DEVICES).collect();
    let room = MOST_DEVICES.saturating_sub(devices.len());
    let named: Vec<_> = policy.named_devices(flow).take(room).cloned().collect();
    if devices.is_empty() && named.is_empty() {
        let too_wide = policy.too_wide(flow);
        return Some(Verdict::new(flow, Reason::NobodyToAsk { too_wide }));
    }
    Some(Verdict::new(flow, Reason::Search { devices, named }))
}

/// The verdict on a datagram that comes from `flow`'s destination to a program that searches, and
/// that was not asked at this address and port: a rule for addresses, or of a device that is there by
/// its name, has to cover it.
pub fn decide_answer(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    let verdict = decide(policy, flow, evidence);
    match verdict.reason() {
        Reason::Rule { .. } => verdict,
        Reason::Name { .. } if is_named_device(policy, flow, evidence.names) => verdict,
        Reason::Near(_) | Reason::NotListed { .. } => {
            Verdict::with_fix(flow, Reason::OtherAnswer, Rule::exactly(flow))
        }
        _ => Verdict::new(flow, Reason::OtherAnswer),
    }
}

/// Whether a device has one of these names, and a rule for the flow.
fn is_named_device(policy: &Policy, flow: &Flow, names: &[Hostname]) -> bool {
    policy
        .named_devices(flow)
        .any(|device| names.contains(device))
}

/// Why a search is denied that nobody lets pass, if it is known for one.
pub(crate) fn unlisted(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Option<Reason> {
    let port = flow.port().filter(|port| !policy.discovers(*port))?;
    let discovery = Discovery::known(port).filter(|_| is_to_many(flow, evidence))?;
    Some(Reason::SearchOff {
        discovery,
        has_devices: policy.every_device(flow) > 0,
    })
}

/// Whether it is a datagram for a group, or for everybody.
fn is_to_many(flow: &Flow, evidence: &Evidence<'_>) -> bool {
    let is_group = || match registry::classify(flow.destination()) {
        Class::Special(special) => special.via.is_none() && special.entry.is_for_many(),
        Class::Global => false,
    };
    flow.protocol() == Protocol::Udp && (evidence.route == Route::Broadcast || is_group())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_written_in_one_way() {
        for text in ["epics", "udp://5064", "udp://1", "udp://65535"] {
            let entry: Discovery = text.parse().expect(text);
            assert_eq!(entry.to_string(), text);
        }
        for text in [
            "",
            "EPICS",
            "5064",
            "udp://",
            "udp://0",
            "udp://065",
            "udp://+7",
            "udp://65536",
            "tcp://5064",
            "udp://5064,5065",
        ] {
            assert_eq!(text.parse::<Discovery>(), Err(DiscoveryError), "{text}");
        }
    }
}
