//! Connection attempts, held at their SYN.
//!
//! An attempt is *held* from the arrival of its SYN until its fate is known. The agent's
//! kernel sends the SYN again and again meanwhile; the copies of a held attempt change
//! nothing. Nothing inside the jail is answered before the policy has spoken and the
//! connection outside is open.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
    time::{Duration, Instant},
};

use stockade_jail::is_inside;
use stockade_policy::Flow;
use stockade_sys::packet::{Injector, Tap};
use stockade_wire::packet::{Syn, Unreachable};
use tokio::{io::unix::AsyncFd, sync::Notify, task::spawn_local, time::sleep};

use crate::{
    dns,
    event_loop::{busy_poll, for_each_packet_after},
    flows::FlowKey,
    judge::{FlowRefusal, Judge, Judgement},
    tcp::{Tcp, connection::Connection},
};

/// Attempts that may be held at a time. Beyond it, the one that has waited longest, whatever for, gives its
/// place up: a program that makes very many must not keep others out. It gets another place when the
/// agent's kernel sends its SYN again.
const HELD_LIMIT: usize = 4096;
/// How long an attempt has its place at least. If all are younger, SYNs are left unanswered.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// An ICMP error that reaches a socket just while its owner is inside `connect()` is not
/// noticed by the kernel, so a refusal is said again after these delays. A repetition that
/// is not needed hits no open attempt and is ignored.
const REFUSAL_ECHOES: [Duration; 2] = [Duration::from_millis(3), Duration::from_millis(30)];

#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) judge: Rc<Judge>,
    pub(crate) resolution: Rc<dns::Resolution>,
    pub(crate) tcp: Rc<Tcp>,
    pub(crate) attempts: Rc<RefCell<Attempts>>,
}

#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// The numbers of those that are held.
    held: HashMap<FlowKey, u64>,
    /// The same ones by their number, which is the order of their arrival.
    order: BTreeMap<u64, Waiter>,
    last: u64,
    /// The sequence numbers of those that were let through: a copy of such a SYN may still wait at
    /// the tap, and is no new attempt.
    opened: HashMap<FlowKey, u32>,
}

/// Who has a place.
#[derive(Debug)]
struct Waiter {
    key: FlowKey,
    since: Instant,
    give_way: Rc<Notify>,
}

/// How an attempt fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Reset,
    Unreachable(Unreachable),
    /// Nobody answered outside. The agent's own SYNs have gone unanswered as long, so
    /// its kernel gives up by itself.
    Silence,
}

/// A SYN that may be answered.
#[derive(Debug)]
struct Arrival {
    key: FlowKey,
    syn: Syn,
    injector: Rc<Injector>,
}

/// The SYN of a held attempt, to be answered. As long as it lives, its copies change nothing, unless it
/// was told to give way.
#[derive(Debug)]
pub(crate) struct HeldSyn {
    arrival: Arrival,
    place: Place,
}

/// A place among those that are held. Whoever was told to give way has it no more.
#[derive(Debug)]
struct Place {
    attempts: Rc<RefCell<Attempts>>,
    number: u64,
    give_way: Rc<Notify>,
}

impl Attempts {
    /// Takes a place for an attempt, if there is one. The bound holds whether or not the one that gives
    /// way notices.
    fn hold(&mut self, key: FlowKey, now: Instant) -> Option<(u64, Rc<Notify>)> {
        if self.order.len() >= HELD_LIMIT {
            let oldest = self.order.first_entry()?;
            if now.duration_since(oldest.get().since) < LEAST_WAIT {
                return None;
            }
            let number = *oldest.key();
            self.take_back(number);
        }
        self.last += 1;
        let give_way = Rc::new(Notify::new());
        let waiter = Waiter {
            key,
            since: now,
            give_way: Rc::clone(&give_way),
        };
        self.held.insert(key, self.last);
        self.order.insert(self.last, waiter);
        Some((self.last, give_way))
    }

    fn take_back(&mut self, number: u64) {
        if let Some(waiter) = self.order.get(&number) {
            waiter.give_way.notify_one();
        }
        self.release(number);
    }

    /// A later attempt of the same key keeps its place.
    fn release(&mut self, number: u64) {
        if let Some(waiter) = self.order.remove(&number) {
            self.held.remove(&waiter.key);
        }
    }
}

impl Hold {
    /// `injector` is the way back to where `tap` is.
    pub(crate) async fn watch(self: Rc<Self>, tap: Rc<AsyncFd<Tap>>, injector: Rc<Injector>) {
        let mut buffer = vec![0; 64 * 1024];
        // If very many come at once, they wait for the log instead of failing.
        let pause = async || self.judge.events.caught_up().await;
        for_each_packet_after(&tap, pause, |tap| {
            let length = tap.receive(&mut buffer)?;
            busy_poll::extend();
            self.arrived(buffer.get(..length).unwrap_or_default(), &injector);
            Ok(1)
        })
        .await;
    }

    /// One copy of a SYN has come.
    fn arrived(&self, packet: &[u8], injector: &Rc<Injector>) {
        // What is not a proper SYN was dropped by the filter and stays unanswered.
        let Ok(syn) = Syn::parse(packet) else { return };
        let key = FlowKey {
            client: syn.source(),
            destination: syn.destination(),
        };
        // The copy was taken before the filter, which drops forged sources.
        if !is_inside(key.client.ip()) {
            return;
        }
        let mut attempts = self.attempts.borrow_mut();
        match attempts.held.get(&key) {
            // It was signed since.
            Some(&number) if syn.is_signed() => attempts.take_back(number),
            _ => {}
        }
        if attempts.held.contains_key(&key) {
            // The first marked SYN may have met a full queue of the listener.
            if self.tcp.acceptor.expects(key) {
                injector.send(&syn.complete(), key.destination.ip());
            }
            return;
        }
        if attempts.opened.get(&key) == Some(&syn.sequence()) {
            return;
        }
        drop(attempts);
        let arrival = Arrival {
            key,
            syn,
            injector: Rc::clone(injector),
        };
        let Some(flow) = Flow::tcp(key.destination) else {
            return arrival.fail(Failure::Unreachable(Unreachable::AdminProhibited));
        };
        // Its connection could not stand, and would take a place until it is given up.
        let is_signed = arrival.syn.is_signed();
        let tcp = Rc::clone(&self.tcp);
        // The gate itself answers DNS, whatever server it was meant for.
        if key.destination.port() == dns::PORT && !is_signed {
            let Some(place) = self.take_place(key) else {
                return self.judge.events.overlook();
            };
            let held = HeldSyn { arrival, place };
            let resolution = Rc::clone(&self.resolution);
            spawn_local(async move {
                if let Some(near) = tcp.acceptor.let_through(held).await {
                    dns::serve_stream(near, key, &resolution).await;
                }
            });
            return;
        }
        let judgement = match is_signed {
            true => Judgement::Refused(self.judge.refuse_signed(key.client, flow)),
            false => self.judge.judge(key.client, flow),
        };
        // What is denied at once takes no place from anybody.
        match judgement {
            Judgement::Admitted(flow) => {
                let Some(place) = self.take_place(key) else {
                    return self.judge.events.overlook();
                };
                let held = HeldSyn { arrival, place };
                spawn_local(Connection::hold(flow, held).carry(tcp));
            }
            Judgement::Refused(FlowRefusal { why, held: None }) => {
                arrival.fail(Failure::Unreachable(why));
            }
            Judgement::Refused(refusal) => {
                let Some(place) = self.take_place(key) else {
                    return arrival.fail(Failure::Unreachable(refusal.why));
                };
                spawn_local(refuse(HeldSyn { arrival, place }, refusal));
            }
            Judgement::Held(waiting) => {
                let Some(place) = self.take_place(key) else {
                    return self.judge.events.overlook();
                };
                let held = HeldSyn { arrival, place };
                let judge = Rc::clone(&self.judge);
                spawn_local(async move {
                    let decision = tokio::select! {
                        decision = waiting.decision() => decision,
                        () = held.gives_way() => return,
                    };
                    match judge.judge_answered(key.client, flow, decision) {
                        Ok(flow) => Connection::hold(flow, held).carry(tcp).await,
                        Err(refusal) => refuse(held, refusal).await,
                    }
                });
            }
        }
    }

    fn take_place(&self, key: FlowKey) -> Option<Place> {
        let (number, give_way) = self.attempts.borrow_mut().hold(key, Instant::now())?;
        let attempts = Rc::clone(&self.attempts);
        Some(Place {
            attempts,
            number,
            give_way,
        })
    }
}

/// Fails an attempt once it is known whose it was, or when it must give way.
async fn refuse(held: HeldSyn, refusal: FlowRefusal) {
    if let Some(client) = refusal.held {
        tokio::select! {
            () = client.release() => {}
            () = held.gives_way() => {}
        }
    }
    held.fail(Failure::Unreachable(refusal.why));
}

impl HeldSyn {
    pub(crate) fn key(&self) -> FlowKey {
        self.arrival.key
    }

    /// Sends it on its way, marked.
    pub(crate) fn send_on(&self) {
        let to = self.key().destination.ip();
        self.arrival.injector.send(&self.arrival.syn.complete(), to);
    }

    /// Returns when another attempt needs its place. Whatever it waits for, it must wait for this, too.
    pub(crate) async fn gives_way(&self) {
        self.place.give_way.notified().await;
    }

    /// It has become a connection.
    pub(crate) fn open(self) {
        let mut attempts = self.place.attempts.borrow_mut();
        let opened = &mut attempts.opened;
        if opened.len() >= HELD_LIMIT {
            opened.clear();
        }
        opened.insert(self.key(), self.arrival.syn.sequence());
    }

    /// Makes the agent's `connect()` fail.
    pub(crate) fn fail(self, failure: Failure) {
        self.arrival.fail(failure);
    }
}

impl Arrival {
    fn fail(self, failure: Failure) {
        let client = self.key.client.ip();
        match failure {
            Failure::Reset => self.injector.send(&self.syn.reset(), client),
            Failure::Unreachable(why) => {
                let answer = self.syn.unreachable(why);
                self.injector.send(&answer, client);
                let injector = self.injector;
                spawn_local(async move {
                    for delay in REFUSAL_ECHOES {
                        sleep(delay).await;
                        injector.send(&answer, client);
                    }
                });
            }
            Failure::Silence => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.attempts.borrow_mut().release(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    fn key(number: usize) -> FlowKey {
        let number = u32::try_from(number).expect("a small number");
        FlowKey {
            client: SocketAddr::from((Ipv4Addr::from(number), 1)),
            destination: SocketAddr::from((Ipv4Addr::LOCALHOST, 53)),
        }
    }

    #[track_caller]
    fn is_whole(attempts: &Attempts) {
        assert!(attempts.order.len() <= HELD_LIMIT);
        assert_eq!(attempts.held.len(), attempts.order.len());
        for (number, waiter) in &attempts.order {
            assert_eq!(attempts.held.get(&waiter.key), Some(number));
        }
    }

    /// Nobody of them notices that it must give way, and there is a place all the same.
    #[test]
    fn places_are_bounded_whatever_those_do_that_give_way() {
        let mut attempts = Attempts::default();
        let start = Instant::now();
        for number in 0..HELD_LIMIT {
            assert!(attempts.hold(key(number), start).is_some());
        }
        // All are younger.
        assert!(attempts.hold(key(HELD_LIMIT), start).is_none());
        is_whole(&attempts);
        let later = start + LEAST_WAIT;
        for number in 0..2 * HELD_LIMIT {
            let now = later + LEAST_WAIT * u32::from(number >= HELD_LIMIT);
            let place = attempts.hold(key(HELD_LIMIT + number), now);
            assert!(place.is_some(), "{number}");
        }
        is_whole(&attempts);
    }

    #[test]
    fn the_one_that_gave_way_is_told_and_takes_nothing_from_its_successor() {
        let attempts = Rc::<RefCell<Attempts>>::default();
        let start = Instant::now();
        let hold = |number: usize, now: Instant| {
            let (number, give_way) = attempts.borrow_mut().hold(key(number), now)?;
            let attempts = Rc::clone(&attempts);
            Some(Place {
                attempts,
                number,
                give_way,
            })
        };
        let mut places: Vec<_> = (0..HELD_LIMIT).map(|number| hold(number, start)).collect();
        let first = places.remove(0).expect("a place");
        let later = start + LEAST_WAIT;
        let _other = hold(HELD_LIMIT, later).expect("a place");
        // A copy of its SYN has come, before it has run.
        let again = hold(0, later).expect("a place");
        drop(first);
        assert_eq!(attempts.borrow().held.get(&key(0)), Some(&again.number));
        // The second one gave way for it. The others are not told.
        let told = |place: &Option<Place>| {
            let mut notified = std::pin::pin!(place.as_ref().expect("a place").give_way.notified());
            notified.as_mut().enable()
        };
        assert!(told(&places[0]) && !told(&places[1]));
        drop(again);
        drop(places);
        is_whole(&attempts.borrow());
        assert_eq!(attempts.borrow().held.len(), 1);
    }
}
