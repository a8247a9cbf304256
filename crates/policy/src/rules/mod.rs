//! All rules of a policy, arranged so that a decision does not depend on their
//! number.
//!
//! # Theory of operation
//!
//! Rules differ in three ways: where they apply, for which protocol and ports,
//! and when they were given. An *area* is a network, a name, or all names below
//! one. Any two areas are apart or one lies within the other, so the smallest area
//! around a host is found by one search ([`nest`]) in sorted bounds of addresses,
//! or of names written backwards; single names have a hash table instead. Each area
//! has a table of its protocols and ports ([`services`]), which knows what the
//! areas around it would answer.
//!
//! If several rules cover a flow, the one that is reported is the most specific
//! in its hosts: the longest prefix, a single name before a wildcard, the longer
//! wildcard. Of those with the same hosts it is the first given. Protocol and ports
//! do not count. For the decision itself it does not matter, as rules only allow.

mod nest;
mod services;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::flow::Flow;
use crate::name::{Hostname, LONGEST, NamePattern};
use crate::rule::{Rule, Scope};
use nest::{Area, Nest};
use services::{Service, Tables};

/// The user's rules. None allows nothing.
#[derive(Clone, Default)]
pub struct RuleSet {
    /// In the order in which they were given, which numbers them.
    rules: Vec<Rule>,
    v4: Nest<u32>,
    v6: Nest<u128>,
    /// By the reversed domain and a dot, as a prefix of the reversed names below it.
    wildcards: Nest<Box<[u8]>>,
    /// The table of each single name.
    names: HashMap<Hostname, usize>,
    tables: Tables,
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
        let table = match flow.destination() {
            IpAddr::V4(address) => self.v4.find(&address.to_bits()),
            IpAddr::V6(address) => self.v6.find(&address.to_bits()),
        };
        self.numbered(self.tables.find(table?, Service::of(flow)))
    }

    /// The most specific rule for names that covers the flow, were it to `name`.
    pub(crate) fn for_name(&self, name: &Hostname, flow: &Flow) -> Option<(usize, &Rule)> {
        let table = self.table_of(name)?;
        self.numbered(self.tables.find(table, Service::of(flow)))
    }

    /// The most specific rule for the name, whatever its protocol and ports.
    pub(crate) fn any_for_name(&self, name: &Hostname) -> Option<(usize, &Rule)> {
        let table = self.table_of(name)?;
        self.numbered(self.tables.first_rule(table))
    }

    fn table_of(&self, name: &Hostname) -> Option<usize> {
        match self.names.get(name) {
            Some(table) => Some(*table),
            None => Reversed::of(name).find_in(&self.wildcards),
        }
    }

    fn numbered(&self, index: Option<usize>) -> Option<(usize, &Rule)> {
        let index = index?;
        Some((index, self.rules.get(index)?))
    }
}

impl FromIterator<Rule> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let rules: Vec<Rule> = rules.into_iter().collect();
        let (mut v4, mut v6, mut wildcards) = (Vec::new(), Vec::new(), Vec::new());
        let mut names = BTreeMap::<&Hostname, Vec<usize>>::new();
        for (index, rule) in rules.iter().enumerate() {
            match rule.scope() {
                Scope::Network(IpNet::V4(network)) => {
                    let (first, last) = (network.network(), network.broadcast());
                    v4.push(Area {
                        start: first.to_bits(),
                        end: last.to_bits().checked_add(1),
                        rule: index,
                    });
                }
                Scope::Network(IpNet::V6(network)) => {
                    let (first, last) = (network.network(), network.broadcast());
                    v6.push(Area {
                        start: first.to_bits(),
                        end: last.to_bits().checked_add(1),
                        rule: index,
                    });
                }
                Scope::Name(pattern) if pattern.is_wildcard() => {
                    wildcards.push(below(pattern, index));
                }
                Scope::Name(pattern) => names.entry(pattern.name()).or_default().push(index),
            }
        }

        let mut tables = Tables::default();
        let mut add = |around, of: &[usize]| tables.add(around, of, &rules);
        let v4 = Nest::new(v4, &mut add);
        let v6 = Nest::new(v6, &mut add);
        let wildcards = Nest::new(wildcards, &mut add);
        let names = names.into_iter().map(|(name, of)| {
            let around = Reversed::of(name).find_in(&wildcards);
            (name.clone(), add(around, &of))
        });
        let names = names.collect();
        Self {
            rules,
            v4,
            v6,
            wildcards,
            names,
            tables,
        }
    }
}

/// The area of a wildcard: from the prefix of the reversed names to the first
/// text beyond all that begin so.
fn below(pattern: &NamePattern, rule: usize) -> Area<Box<[u8]>> {
    const DOT: u8 = b'.';
    const NEXT: u8 = b'/';
    let reversed = Reversed::of(pattern.name());
    let bound = |last: u8| [reversed.bytes(), &[last]].concat().into_boxed_slice();
    Area {
        start: bound(DOT),
        end: Some(bound(NEXT)),
        rule,
    }
}

/// A name backwards: what is below a domain begins with the domain.
struct Reversed {
    buffer: [u8; LONGEST],
    length: usize,
}

impl Reversed {
    fn of(name: &Hostname) -> Self {
        let mut buffer = [0; LONGEST];
        let bytes = name.as_str().bytes();
        let length = bytes.len();
        for (slot, byte) in buffer.iter_mut().zip(bytes.rev()) {
            *slot = byte;
        }
        Self { buffer, length }
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    fn find_in(&self, nest: &Nest<Box<[u8]>>) -> Option<usize> {
        nest.find(self.bytes())
    }
}

/// All else follows from the rules.
impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

impl Eq for RuleSet {}

impl fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(ToString::to_string))
            .finish()
    }
}
