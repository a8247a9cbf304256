//! Which names an address was given out under.
//!
//! A rule may name a host, but a connection goes to an address. What ties the two together is
//! the answer that the gate itself gave: an address is *pinned* to the name that was asked for
//! before the answer leaves, for as long as the answer holds and a little longer, because
//! programs are slow, and for as long as a flow uses it. An address that was never given out
//! has no name, so no rule for a name lets anybody reach it.

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::HashMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use stockade_policy::Hostname;

/// How much longer than the answer a pin holds: a program may take its time between asking
/// and connecting, and may try again.
const GRACE: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
const ADDRESSES: usize = 8192;
const NAMES_EACH: usize = 32;
/// How many addresses are looked at to find one that makes room for another.
const EVICTION_SAMPLE: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Pins {
    entries: RefCell<HashMap<IpAddr, Entry>>,
}

#[derive(Debug, Default)]
struct Entry {
    /// The latest last.
    names: Vec<Pin>,
    /// Shared with the flows that use the address.
    used: Arc<()>,
}

#[derive(Debug)]
struct Pin {
    name: Hostname,
    until: Instant,
    standing: Standing,
}

/// How much the rules mean a name. A program may ask for any number of names that point to an
/// address, so one that they mean less never displaces one that they mean more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No rule covers it.
    Uncovered,
    /// The wildcard rule with this number does.
    Wildcard(usize),
    /// A rule says it.
    Named,
}

impl Standing {
    /// All wildcard rules are alike.
    fn rank(self) -> u8 {
        match self {
            Self::Uncovered => 0,
            Self::Wildcard(_) => 1,
            Self::Named => 2,
        }
    }
}

/// Keeps the names of an address as long as it lives.
#[derive(Debug)]
pub(crate) struct Use(#[expect(dead_code, reason = "only counted")] Arc<()>);

impl Use {
    pub(crate) fn new(used: &Arc<()>) -> Self {
        Self(Arc::clone(used))
    }
}

impl Entry {
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.used) > 1
    }

    /// The highest of its names.
    fn rank(&self) -> u8 {
        let ranks = self.names.iter().map(|pin| pin.standing.rank());
        ranks.max().unwrap_or_default()
    }

    /// Has room for one more name, if that may be had.
    fn make_room(&mut self, standing: Standing) -> bool {
        if self.names.len() < NAMES_EACH {
            return true;
        }
        let count = |of: Standing| {
            let alike = self.names.iter().filter(|pin| pin.standing == of).count();
            alike + usize::from(of == standing)
        };
        // Of two wildcard rules, the one with more names gives way.
        let worth = |of: Standing| (of.rank(), Reverse(count(of)));
        let names = self.names.iter().enumerate();
        // The oldest of the least.
        let least = names.min_by_key(|(_, pin)| worth(pin.standing));
        let victim = least.filter(|(_, pin)| worth(pin.standing) <= worth(standing));
        let victim = victim.map(|(index, _)| index);
        victim.is_some_and(|index| {
            self.names.remove(index);
            true
        })
    }

    fn until(&self) -> Option<Instant> {
        self.names.iter().map(|pin| pin.until).max()
    }
}

impl Pins {
    /// Notes that `address` is about to be given out for `name`, unless there is no room.
    pub(crate) fn pin(
        &self,
        address: IpAddr,
        (name, standing): (&Hostname, Standing),
        ttl: u32,
        now: Instant,
    ) {
        let lifetime = Duration::from_secs(ttl.into()).min(LONGEST);
        let until = now + lifetime + GRACE;
        let mut entries = self.entries.borrow_mut();
        if !make_room(&mut entries, address, standing, now) {
            return;
        }
        let entry = entries.entry(address).or_default();
        let used = entry.is_used();
        let known = entry.names.iter().position(|pin| pin.name == *name);
        let until = known
            .map(|known| entry.names.remove(known).until)
            .map_or(until, |before| before.max(until));
        entry.names.retain(|pin| used || pin.until > now);
        if entry.make_room(standing) {
            entry.names.push(Pin {
                name: name.clone(),
                until,
                standing,
            });
        }
    }

    /// The names of an address, the latest first.
    pub(crate) fn names(&self, address: IpAddr, now: Instant) -> Vec<Hostname> {
        let entries = self.entries.borrow();
        let Some(entry) = entries.get(&address) else {
            return Vec::new();
        };
        let used = entry.is_used();
        let holding = entry.names.iter().filter(|pin| used || pin.until > now);
        holding.rev().map(|pin| pin.name.clone()).collect()
    }

    /// Drops names: who means them has to ask again.
    pub(crate) fn forget(&self, is_meant: impl Fn(&Hostname) -> bool) {
        for entry in self.entries.borrow_mut().values_mut() {
            entry.names.retain(|pin| !is_meant(&pin.name));
        }
    }

    pub(crate) fn is_pinned(&self, address: IpAddr, name: &Hostname, now: Instant) -> bool {
        self.names(address, now).contains(name)
    }

    /// Keeps the address's names while a flow uses them: those that hold now.
    pub(crate) fn hold(&self, address: IpAddr, now: Instant) -> Option<Use> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(&address)?;
        if !entry.is_used() {
            entry.names.retain(|pin| pin.until > now);
        }
        Some(Use::new(&entry.used))
    }
}

/// A program may ask for very many names. Then those go first that end first, of a sample, so
/// that a flood costs the same per name however many there are; one that is in use never does, nor
/// one with a name that the rules mean more.
fn make_room(
    entries: &mut HashMap<IpAddr, Entry>,
    address: IpAddr,
    standing: Standing,
    now: Instant,
) -> bool {
    if entries.len() < ADDRESSES || entries.contains_key(&address) {
        return true;
    }
    let idle = entries.iter().filter(|(_, entry)| !entry.is_used());
    // What has ended means nothing any more.
    let rank = |entry: &Entry| (entry.until() > Some(now)).then(|| entry.rank());
    let victim = idle
        .take(EVICTION_SAMPLE)
        .min_by_key(|(_, entry)| (rank(entry), entry.until()))
        .filter(|(_, entry)| rank(entry) <= Some(standing.rank()))
        .map(|(&address, _)| address);
    victim.is_some_and(|victim| entries.remove(&victim).is_some())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn name(text: &str) -> Hostname {
        text.parse().expect("a host name")
    }

    fn pin(pins: &Pins, address: IpAddr, text: &str, ttl: u32, now: Instant) {
        pins.pin(address, (&name(text), Standing::Named), ttl, now);
    }

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

    #[test]
    fn a_pin_holds_for_the_answers_time_and_a_grace() {
        let (pins, start) = (Pins::default(), Instant::now());
        pin(&pins, ADDRESS, "a.example", 10, start);
        let at = |seconds| pins.names(ADDRESS, start + Duration::from_secs(seconds));
        assert_eq!(at(69), [name("a.example")]);
        assert_eq!(at(71), []);
        assert_eq!(pins.names(Ipv4Addr::LOCALHOST.into(), start), []);
    }

    #[test]
    fn a_name_that_is_forgotten_takes_no_other_with_it() {
        let (pins, start) = (Pins::default(), Instant::now());
        for text in ["a.example", "b.example"] {
            pin(&pins, ADDRESS, text, 10, start);
        }
        // A flow that uses the address does not keep it either.
        let _flow = pins.hold(ADDRESS, start).expect("pinned");
        pins.forget(|other| other.as_str() == "a.example");
        assert_eq!(pins.names(ADDRESS, start), [name("b.example")]);
    }

    #[test]
    fn a_pin_holds_while_a_flow_uses_it() {
        let (pins, start) = (Pins::default(), Instant::now());
        pin(&pins, ADDRESS, "a.example", 10, start);
        let flow = pins.hold(ADDRESS, start).expect("pinned");
        let late = start + Duration::from_secs(1000);
        assert!(pins.is_pinned(ADDRESS, &name("a.example"), late));
        drop(flow);
        assert!(!pins.is_pinned(ADDRESS, &name("a.example"), late));
    }

    #[test]
    fn a_flow_that_comes_too_late_does_not_bring_a_name_back() {
        let (pins, start) = (Pins::default(), Instant::now());
        pin(&pins, ADDRESS, "a.example", 10, start);
        let late = start + Duration::from_secs(1000);
        let _flow = pins.hold(ADDRESS, late);
        assert_eq!(pins.names(ADDRESS, late), []);
    }

    #[test]
    fn a_shorter_answer_does_not_shorten_a_pin_and_the_latest_name_comes_first() {
        let (pins, start) = (Pins::default(), Instant::now());
        pin(&pins, ADDRESS, "a.example", 1000, start);
        pin(&pins, ADDRESS, "b.example", 1000, start);
        pin(&pins, ADDRESS, "a.example", 0, start);
        let late = start + Duration::from_secs(1000);
        let names = pins.names(ADDRESS, late);
        assert_eq!(names, [name("a.example"), name("b.example")]);
    }

    #[test]
    fn very_many_addresses_and_names_are_bounded_and_those_in_use_stay() {
        let (pins, now) = (Pins::default(), Instant::now());
        pin(&pins, ADDRESS, "mine.example", 0, now);
        let _flow = pins.hold(ADDRESS, now).expect("pinned");
        for number in 0..2 * u32::try_from(ADDRESSES).expect("small") {
            let other = Ipv4Addr::from_bits(0x0a00_0000 + number);
            pin(&pins, other.into(), "other.example", 1000, now);
        }
        assert!(pins.entries.borrow().len() <= ADDRESSES);
        assert!(pins.is_pinned(ADDRESS, &name("mine.example"), now));
        for number in 0..2 * NAMES_EACH {
            pin(&pins, ADDRESS, &format!("n{number}.example"), 0, now);
        }
        assert!(pins.names(ADDRESS, now).len() <= NAMES_EACH);
    }

    #[test]
    fn a_name_that_the_rules_mean_less_displaces_none_that_they_mean_more() {
        use Standing::{Named, Uncovered, Wildcard};
        let (pins, now) = (Pins::default(), Instant::now());
        let add = |text: &str, standing| pins.pin(ADDRESS, (&name(text), standing), 10, now);
        let has = |text: &str| pins.is_pinned(ADDRESS, &name(text), now);
        let flood = |below: &str, standing| {
            for number in 0..2 * NAMES_EACH {
                add(&format!("n{number}.{below}"), standing);
            }
        };
        add("named.example", Named);
        add("one.few.example", Wildcard(1));
        add("two.few.example", Wildcard(1));
        flood("many.example", Wildcard(2));
        let last = format!("n{}.many.example", 2 * NAMES_EACH - 1);
        let all = ["named.example", "one.few.example", "two.few.example", &last];
        assert!(all.iter().all(|text| has(text)));
        flood("nobody.example", Uncovered);
        assert!(all.iter().all(|text| has(text)) && !has("n0.nobody.example"));
        // They make way for any other.
        flood("named.example", Named);
        assert!(!has(&last) && !has("one.few.example"));
        assert_eq!(pins.names(ADDRESS, now).len(), NAMES_EACH);
    }

    #[test]
    fn addresses_of_names_that_no_rule_covers_displace_none_of_a_rules() {
        let (pins, now) = (Pins::default(), Instant::now());
        pin(&pins, ADDRESS, "mine.example", 0, now);
        let other = name("other.example");
        for number in 0..2 * u32::try_from(ADDRESSES).expect("small") {
            let at = Ipv4Addr::from_bits(0x0a00_0000 + number);
            pins.pin(at.into(), (&other, Standing::Uncovered), 1000, now);
        }
        assert!(pins.entries.borrow().len() <= ADDRESSES);
        assert!(pins.is_pinned(ADDRESS, &name("mine.example"), now));
    }

    #[test]
    fn a_name_that_has_ended_keeps_no_other_out() {
        let (pins, now) = (Pins::default(), Instant::now());
        for number in 0..u32::try_from(ADDRESSES).unwrap() {
            let address = Ipv4Addr::from_bits(0x0a00_0000 + number).into();
            pin(&pins, address, "named.example", 1, now);
        }
        let below = name("a.wild.example");
        let below = (&below, Standing::Wildcard(0));
        pins.pin(ADDRESS, below, 60, now);
        assert!(!pins.is_pinned(ADDRESS, below.0, now), "control");
        let later = now + Duration::from_secs(3600);
        pins.pin(ADDRESS, below, 60, later);
        assert!(pins.is_pinned(ADDRESS, below.0, later));
    }
}
