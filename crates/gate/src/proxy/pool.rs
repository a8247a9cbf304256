//! Addresses of the gate's own, for names that only the proxy knows.
//!
//! A program resolves a name and connects to an address. Where the resolvers know no name of the
//! internet, it would get none, and never connect. So such a name gets an address that nobody has,
//! and a connection to it is asked of the proxy by the name.
//!
//! The addresses are a part of the range for benchmarks ([`POOL`]). They are taken in turn: one is
//! given to another name only when its own was not asked for in an hour and no flow uses it.

use std::{
    cell::RefCell,
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use ipnet::Ipv4Net;
use stockade_policy::{Hostname, POOL};

use crate::names::pins::Use;

/// How long an answer holds, and how long the resolvers are not asked again.
pub(crate) const TTL: Duration = Duration::from_secs(60);
/// How long a name keeps its address. Programs keep answers longer than they may.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// Parts of the range: of 16 networks with 254 addresses each, as some programs take no others.
const PART: u8 = 20;
const EACH: u32 = 254;
const SLOTS: u32 = 16 * EACH;
/// How many addresses are looked at to find one that is free.
const LOOKS: u32 = 64;

#[derive(Debug)]
pub(crate) struct Pool {
    /// The first address of the part. None if all parts are somebody's.
    first: Option<Ipv4Addr>,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<u32, Slot>,
    by_name: HashMap<Hostname, u32>,
    next: u32,
}

#[derive(Debug)]
struct Slot {
    name: Hostname,
    /// When it was last asked for, and when the resolvers last did not know it.
    given: Instant,
    unknown: Instant,
    /// Shared with the flows that use the address.
    used: Arc<()>,
}

impl Slot {
    fn is_held(&self, now: Instant) -> bool {
        Arc::strong_count(&self.used) > 1 || now.duration_since(self.given) < KEPT
    }
}

impl Pool {
    /// Takes the first part of the range that nobody has: no route of the host's leads to it, and no
    /// rule is about it.
    pub(crate) fn new(is_taken: impl FnMut(Ipv4Net) -> bool) -> Self {
        let mut is_taken = is_taken;
        let parts = POOL.subnets(PART).into_iter().flatten();
        // Not from the start of the range, where labs that have it begin.
        let free = parts.skip(16).find(|part| !is_taken(*part));
        Self {
            first: free.map(|part| part.network()),
            state: RefCell::default(),
        }
    }

    fn address(&self, slot: u32) -> Option<Ipv4Addr> {
        let offset = slot / EACH * 256 + slot % EACH + 1;
        Some(Ipv4Addr::from_bits(self.first?.to_bits() + offset))
    }

    fn slot(&self, address: IpAddr) -> Option<u32> {
        let IpAddr::V4(address) = address else {
            return None;
        };
        let offset = address.to_bits().checked_sub(self.first?.to_bits())?;
        let host = (offset % 256).checked_sub(1)?;
        let slot = offset / 256 * EACH + host;
        (host < EACH && slot < SLOTS).then_some(slot)
    }

    /// The address of a name that the resolvers did not know just now.
    pub(crate) fn fresh(&self, name: &Hostname, now: Instant) -> Option<Ipv4Addr> {
        let mut state = self.state.borrow_mut();
        let slot = *state.by_name.get(name)?;
        let known = state.slots.get_mut(&slot)?;
        if now.duration_since(known.unknown) >= TTL {
            return None;
        }
        known.given = now;
        self.address(slot)
    }

    /// Gives a name that the resolvers do not know an address. None if all are in use.
    pub(crate) fn give(&self, name: &Hostname, now: Instant) -> Option<Ipv4Addr> {
        self.first?;
        let mut state = self.state.borrow_mut();
        if let Some(slot) = state.by_name.get(name).copied()
            && let Some(known) = state.slots.get_mut(&slot)
        {
            (known.given, known.unknown) = (now, now);
            return self.address(slot);
        }
        for _ in 0..LOOKS {
            let slot = state.next;
            state.next = (slot + 1) % SLOTS;
            if state.slots.get(&slot).is_some_and(|slot| slot.is_held(now)) {
                continue;
            }
            let fresh = Slot {
                name: name.clone(),
                given: now,
                unknown: now,
                used: Arc::default(),
            };
            if let Some(old) = state.slots.insert(slot, fresh) {
                state.by_name.remove(&old.name);
            }
            state.by_name.insert(name.clone(), slot);
            return self.address(slot);
        }
        None
    }

    /// The name that an address stands for.
    pub(crate) fn name(&self, address: IpAddr) -> Option<Hostname> {
        let state = self.state.borrow();
        Some(state.slots.get(&self.slot(address)?)?.name.clone())
    }

    /// Takes the addresses of names away, even if flows use them: who means them has to ask again.
    pub(crate) fn forget(&self, is_meant: impl Fn(&Hostname) -> bool) {
        let mut state = self.state.borrow_mut();
        state.slots.retain(|_, slot| !is_meant(&slot.name));
        state.by_name.retain(|name, _| !is_meant(name));
    }

    /// Keeps the name of an address while a flow uses it.
    pub(crate) fn hold(&self, address: IpAddr) -> Option<Use> {
        let state = self.state.borrow();
        let slot = state.slots.get(&self.slot(address)?)?;
        Some(Use::new(&slot.used))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn name(number: u32) -> Hostname {
        format!("n{number}.example").parse().expect("a name")
    }

    #[test]
    fn each_name_has_an_address_of_its_own_and_keeps_it() {
        let (pool, now) = (Pool::new(|_| false), Instant::now());
        let mut seen = HashSet::new();
        for number in 0..SLOTS {
            let address = pool.give(&name(number), now).expect("an address");
            assert!(POOL.contains(&address) && seen.insert(address), "{address}");
            assert!(![0, 255].contains(&address.octets()[3]), "{address}");
            assert_eq!(pool.name(address.into()), Some(name(number)));
            assert_eq!(pool.give(&name(number), now), Some(address));
            assert_eq!(pool.fresh(&name(number), now), Some(address));
        }
        assert_eq!(pool.fresh(&name(0), now + TTL), None);
        assert_eq!(pool.name(Ipv4Addr::new(198, 18, 0, 1).into()), None);
        assert_eq!(pool.name(Ipv4Addr::new(10, 0, 0, 1).into()), None);
        // All are given out, and asked for lately.
        assert_eq!(pool.give(&name(SLOTS), now), None);
    }

    #[test]
    fn an_address_goes_to_another_name_only_when_nobody_uses_it() {
        let (pool, now) = (Pool::new(|_| false), Instant::now());
        let first = pool.give(&name(0), now).expect("an address");
        let flow = pool.hold(first.into()).expect("known");
        for number in 1..SLOTS {
            pool.give(&name(number), now).expect("an address");
        }
        let late = now + KEPT;
        let second = pool.give(&name(SLOTS), late).expect("an address");
        assert_ne!(second, first);
        assert_eq!(pool.name(second.into()), Some(name(SLOTS)));
        assert_eq!(pool.fresh(&name(1), now), None);
        assert_eq!(pool.name(first.into()), Some(name(0)));
        drop(flow);
        for number in 1..SLOTS {
            pool.give(&name(SLOTS + 1 + number), late)
                .expect("an address");
        }
        assert_ne!(pool.name(first.into()), Some(name(0)));
        assert!(pool.state.borrow().by_name.len() <= SLOTS as usize);
    }

    #[test]
    fn a_name_that_is_forgotten_takes_no_other_with_it() {
        let (pool, now) = (Pool::new(|_| false), Instant::now());
        let addresses = [0, 1].map(|number| pool.give(&name(number), now).expect("an address"));
        let _flow = pool.hold(addresses[0].into()).expect("known");
        pool.forget(|other| *other == name(0));
        assert_eq!(pool.name(addresses[0].into()), None);
        assert_eq!(pool.fresh(&name(0), now), None);
        assert_eq!(pool.name(addresses[1].into()), Some(name(1)));
    }

    #[test]
    fn a_part_that_somebody_has_is_left_alone() {
        let whole = Pool::new(|_| false).first.expect("a part");
        let other = Pool::new(|part| part.contains(&whole));
        assert_ne!(other.first, Some(whole));
        let none = Pool::new(|_| true);
        assert_eq!(none.give(&name(0), Instant::now()), None);
    }
}
