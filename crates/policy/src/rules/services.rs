//! Which rule answers for a protocol and port, in one area.
//!
//! The ports of TCP, those of UDP, and ICMP echo lie side by side on one line of
//! numbers. A table has ranges of that line, each with the rule that answers
//! there; where it has none, the area around is asked.
//!
//! Areas may be nested a hundred deep, and asking one after the other would take
//! long. So a table takes over the ranges of those around it as long as these are
//! together at most [`SHARE`] times its own: of tables of like size only every
//! 17th is asked, and all tables together stay within a small multiple of what
//! the rules say.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::flow::{Flow, Protocol};
use crate::rule::Rule;

/// How many ranges of outer areas a table takes over for each of its own.
const SHARE: usize = 16;

/// A place on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Service(u32);

impl Service {
    const FIRST: Service = Service(0);
    const UDP: u32 = 0x1_0000;
    const ICMP: Service = Service(0x2_0000);

    pub(super) fn of(flow: &Flow) -> Self {
        match flow.port() {
            Some(port) => Self::port(flow.protocol(), port.get()),
            None => Self::ICMP,
        }
    }

    fn port(protocol: Protocol, port: u16) -> Self {
        match protocol {
            Protocol::Tcp => Service(port.into()),
            Protocol::Udp => Service(Self::UDP | u32::from(port)),
            Protocol::Icmp => Self::ICMP,
        }
    }

    fn next(self) -> Self {
        Service(self.0.saturating_add(1))
    }
}

/// A stretch of the line, both ends included, and the rule that answers there.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: Service,
    last: Service,
    rule: usize,
}

impl Range {
    fn all_of(rule: usize, of: &Rule) -> Vec<Range> {
        let range = |first, last| Range { first, last, rule };
        let protocols: &[Protocol] = match of.protocol() {
            Some(Protocol::Tcp) => &[Protocol::Tcp],
            Some(Protocol::Udp) => &[Protocol::Udp],
            Some(Protocol::Icmp) => return vec![range(Service::ICMP, Service::ICMP)],
            None if of.ports().is_none() => return vec![range(Service::FIRST, Service::ICMP)],
            None => &[Protocol::Tcp, Protocol::Udp],
        };
        let mut ranges = Vec::new();
        for protocol in protocols {
            let ports = |first, last| {
                range(
                    Service::port(*protocol, first),
                    Service::port(*protocol, last),
                )
            };
            match of.ports() {
                Some(some) => {
                    ranges.extend(some.ranges().map(|r| ports(*r.start(), *r.end())));
                }
                None => ranges.push(ports(0, u16::MAX)),
            }
        }
        ranges
    }
}

#[derive(Debug, Clone)]
struct Table {
    /// In ascending order, apart from each other.
    ranges: Box<[Range]>,
    /// The first rule of this area itself.
    first_rule: usize,
    /// To be asked where this table has no range.
    around: Option<usize>,
}

/// The tables of all areas.
#[derive(Debug, Clone, Default)]
pub(super) struct Tables(Vec<Table>);

impl Tables {
    /// Adds the table of an area that has these rules, in the order of giving,
    /// and lies within the area of `around`.
    pub(super) fn add(&mut self, around: Option<usize>, of: &[usize], rules: &[Rule]) -> usize {
        let mut own = Vec::new();
        for index in of {
            if let Some(rule) = rules.get(*index) {
                own.extend(Range::all_of(*index, rule));
            }
        }
        let mut ranges = flatten(own, Vec::new());
        let mut room = ranges.len().saturating_mul(SHARE);
        let mut around = around;
        while let Some(outer) = around.and_then(|table| self.0.get(table))
            && let Some(left) = room.checked_sub(outer.ranges.len())
        {
            ranges = flatten(ranges, outer.ranges.to_vec());
            around = outer.around;
            room = left;
        }
        self.0.push(Table {
            ranges: ranges.into(),
            first_rule: of.first().copied().unwrap_or_default(),
            around,
        });
        self.0.len().saturating_sub(1)
    }

    /// The rule that answers for the service: that of the smallest area, and of
    /// one area the first given.
    pub(super) fn find(&self, table: usize, service: Service) -> Option<usize> {
        let mut next = Some(table);
        while let Some(table) = next.and_then(|table| self.0.get(table)) {
            let after = table.ranges.partition_point(|range| range.last < service);
            if let Some(range) = table.ranges.get(after)
                && range.first <= service
            {
                return Some(range.rule);
            }
            next = table.around;
        }
        None
    }

    /// The first rule of the area, whatever it is for.
    pub(super) fn first_rule(&self, table: usize) -> Option<usize> {
        Some(self.0.get(table)?.first_rule)
    }
}

/// Makes ranges that overlap lie apart: where several are, one of `own` answers,
/// and of these the one whose rule was given first.
fn flatten(own: Vec<Range>, outer: Vec<Range>) -> Vec<Range> {
    let own = own.into_iter().map(|range| (false, range));
    let outer = outer.into_iter().map(|range| (true, range));
    let mut ranges: Vec<(bool, Range)> = own.chain(outer).collect();
    ranges.sort_unstable_by_key(|(_, range)| range.first);

    let bounds = ranges.iter().map(|(_, range)| range);
    let mut bounds: Vec<Service> = bounds
        .flat_map(|range| [range.first, range.last.next()])
        .collect();
    bounds.sort_unstable();
    bounds.dedup();

    let mut starting = ranges.into_iter().peekable();
    // Those that have started, the best first; they are taken out when seen to be over.
    let mut open = BinaryHeap::new();
    let mut flat: Vec<Range> = Vec::new();
    for (from, next) in bounds.iter().zip(bounds.iter().skip(1)) {
        while let Some((is_outer, range)) = starting.next_if(|(_, range)| range.first <= *from) {
            open.push(Reverse((is_outer, range.rule, range.last)));
        }
        while let Some(Reverse((_, _, last))) = open.peek()
            && last < from
        {
            open.pop();
        }
        let Some(Reverse((_, rule, _))) = open.peek() else {
            continue;
        };
        let last = Service(next.0.saturating_sub(1));
        match flat.last_mut() {
            Some(before) if before.rule == *rule && before.last.next() == *from => {
                before.last = last;
            }
            _ => flat.push(Range {
                first: *from,
                last,
                rule: *rule,
            }),
        }
    }
    flat
}
