//! All rules of a policy, and the one among them that covers a flow.
//!
//! If several rules cover a flow, the one that is reported is the most specific
//! in its hosts: the longest prefix, a single name before a wildcard, the longer
//! wildcard. Of those with the same hosts it is the first given. Protocol and ports
//! do not count. For the decision itself it does not matter, as rules only allow.
//!
//! Networks are tried one after the other, in that order. People write some ten
//! rules; a thousand take about a microsecond (`cargo bench -p stockade-policy`).
//! Names form a tree of domains.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;

use crate::flow::Flow;
use crate::name::Hostname;
use crate::rule::{Ports, Rule, Scope};

/// The user's rules. None allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// In the order in which they were given, which numbers them.
    rules: Vec<Rule>,
    /// The rules for addresses of each family, the most specific first.
    v4: Vec<(Network, Candidate)>,
    v6: Vec<(Network, Candidate)>,
    /// The rules for names, below the root of all domains.
    names: Domain,
    /// The rules of each device, and the device at an address.
    devices: BTreeMap<Hostname, Vec<usize>>,
    device_addresses: BTreeMap<IpAddr, Hostname>,
}

type Network = (u128, u128);

/// A rule that covers certain hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    index: usize,
    /// Its lowest and its highest port: most rules are passed over by these alone, which
    /// is faster than to look at the rule itself.
    ports: (u16, u16),
}

/// The rules for a name and for the names below it, each in the order of giving.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Domain {
    exact: Vec<Candidate>,
    wildcard: Vec<Candidate>,
    subdomains: BTreeMap<String, Domain>,
}

impl RuleSet {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Rule> {
        self.rules.iter()
    }

    pub fn len(&self) -> usize {
        self.rules.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule of this number, counted from zero in the order of giving.
    pub fn get(&self, index: usize) -> Option<&Rule> {
        self.rules.get(index)
    }

    /// The most specific rule for addresses that covers the flow.
    pub(crate) fn for_address(&self, flow: &Flow) -> Option<(usize, &Rule)> {
        let destination = flow.destination();
        let networks = if destination.is_ipv4() {
            &self.v4
        } else {
            &self.v6
        };
        let address = bits(destination);
        networks
            .iter()
            .filter(|((first, last), _)| *first <= address && address <= *last)
            .find_map(|(_, candidate)| self.rule_for(flow, candidate))
    }

    /// The most specific rule for names that covers the flow, were it to `name`.
    pub(crate) fn for_name(&self, name: &Hostname, flow: &Flow) -> Option<(usize, &Rule)> {
        self.names.find_map(&mut name.labels().rev(), &|candidate| {
            self.rule_for(flow, candidate)
                .filter(|(_, rule)| rule.name().is_some())
        })
    }

    /// The devices with their rules, in the order of their names.
    pub fn devices(&self) -> impl Iterator<Item = (&Hostname, Vec<&Rule>)> {
        let rules = |numbers: &[usize]| {
            numbers
                .iter()
                .filter_map(|index| self.get(*index))
                .collect()
        };
        self.devices
            .iter()
            .map(move |(name, numbers)| (name, rules(numbers)))
    }

    /// The rules of a device.
    pub fn device(&self, name: &Hostname) -> Option<Vec<&Rule>> {
        let numbers = self.devices.get(name)?;
        Some(
            numbers
                .iter()
                .filter_map(|index| self.get(*index))
                .collect(),
        )
    }

    /// The device that has this address.
    pub fn device_at(&self, address: IpAddr) -> Option<&Hostname> {
        self.device_addresses.get(&address)
    }

    /// The most specific rule of `near` that covers the flow, were it to `name`.
    pub(crate) fn for_near_name(&self, name: &Hostname, flow: &Flow) -> Option<(usize, &Rule)> {
        self.names.find_map(&mut name.labels().rev(), &|candidate| {
            self.rule_for(flow, candidate)
                .filter(|(_, rule)| rule.is_near())
        })
    }

    /// Whether a rule of `near` covers the name, for some protocol and port.
    pub(crate) fn has_near(&self, name: &Hostname) -> bool {
        let near = self.names.find_map(&mut name.labels().rev(), &|candidate| {
            self.numbered(candidate).filter(|(_, rule)| rule.is_near())
        });
        near.is_some()
    }

    /// The most specific rule for the name, whatever its protocol and ports.
    pub(crate) fn any_for_name(&self, name: &Hostname) -> Option<(usize, &Rule)> {
        self.names.find_map(&mut name.labels().rev(), &|candidate| {
            self.numbered(candidate)
        })
    }

    fn rule_for(&self, flow: &Flow, candidate: &Candidate) -> Option<(usize, &Rule)> {
        // A rule with ports has none below 1.
        let port = flow.port().map_or(0, NonZeroU16::get);
        let (lowest, highest) = candidate.ports;
        if port < lowest || highest < port {
            return None;
        }
        self.numbered(candidate)
            .filter(|(_, rule)| rule.serves(flow))
    }

    fn numbered(&self, candidate: &Candidate) -> Option<(usize, &Rule)> {
        Some((candidate.index, self.rules.get(candidate.index)?))
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Domain {
    /// The domain of this name, which may be a new one.
    fn below(&mut self, name: &Hostname) -> &mut Domain {
        let mut domain = self;
        for label in name.labels().rev() {
            domain = domain.subdomains.entry(label.to_owned()).or_default();
        }
        domain
    }

    /// The first that `accept` takes of the candidates for a name, the most specific first.
    /// `labels` are those of the name, from the right, that are not in the domain's name.
    fn find_map<'a, T>(
        &self,
        labels: &mut impl Iterator<Item = &'a str>,
        accept: &impl Fn(&Candidate) -> Option<T>,
    ) -> Option<T> {
        let Some(label) = labels.next() else {
            return self.exact.iter().find_map(accept);
        };
        let subdomain = self.subdomains.get(label);
        subdomain
            .and_then(|subdomain| subdomain.find_map(labels, accept))
            .or_else(|| self.wildcard.iter().find_map(accept))
    }
}

impl FromIterator<Rule> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let mut set = Self::default();
        for (index, rule) in rules.into_iter().enumerate() {
            let ports = rule.ports().map_or((0, u16::MAX), Ports::bounds);
            let candidate = Candidate { index, ports };
            match rule.scope() {
                Scope::Network(network) => {
                    let is_v4 = network.addr().is_ipv4();
                    let networks = if is_v4 { &mut set.v4 } else { &mut set.v6 };
                    let ends = (bits(network.network()), bits(network.broadcast()));
                    networks.push((ends, candidate));
                    if let Some(device) = rule.device() {
                        let known = set.device_addresses.entry(network.addr());
                        known.or_insert_with(|| device.clone());
                    }
                }
                Scope::Name(pattern) | Scope::Near(pattern) => {
                    let domain = set.names.below(pattern.name());
                    if pattern.is_wildcard() {
                        domain.wildcard.push(candidate);
                    } else {
                        domain.exact.push(candidate);
                    }
                }
            }
            // By its name a device may be asked for.
            if let Some(device) = rule.device() {
                set.names.below(device).exact.push(candidate);
                let numbers = set.devices.entry(device.clone()).or_default();
                numbers.push(index);
            }
            set.rules.push(rule);
        }
        // Equal ones stay in the order of giving.
        let size = |((first, last), _): &(Network, Candidate)| first.abs_diff(*last);
        set.v4.sort_by_key(size);
        set.v6.sort_by_key(size);
        set
    }
}
