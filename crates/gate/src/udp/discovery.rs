//! Searches for devices.
//!
//! A program that searches sends a datagram to everybody, or to a group. If its port is one that the
//! user listed, it goes to each device that a rule names for it, as if the program had sent it to
//! this device alone: by a flow like any other, judged and logged like any other. Nobody else
//! hears of it.
//!
//! A device may answer from another of its addresses or ports. The socket of its flow does not hear
//! that. So for a while after a search the client's port has a socket outside that hears everybody.
//! What comes from where no rule covers it goes no further; the rest becomes a flow, too.
//!
//! A datagram becomes several here, so there is a limit to how many that may be in a second.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    io,
    net::SocketAddr,
    rc::Rc,
    time::Duration,
};

use stockade_policy::Flow;
use stockade_wire::packet::Unreachable;
use tokio::{
    net::UdpSocket,
    task::{spawn_local, yield_now},
    time::{Instant, sleep_until},
};

use super::{
    Datagrams,
    ports::Share,
    sockets::{INPUT, receive_now},
};
use crate::{flows::FlowKey, questions::Decision};

/// Copies of searches that leave in a second, and at once. A client of EPICS that looks for thousands
/// of channels asks for some tens of them in each datagram. More would keep the gate from its other
/// work: from a new port, each copy is a new flow.
const RATE: f64 = 1000.0;
/// Clients whose port has a socket that hears everybody.
const MOST_LISTENERS: usize = 64;
/// Flows that such a socket may open.
const MOST_ANSWERS: u32 = 64;
/// Senders that no rule covers and that have their lines in the log. Any host of the network can send
/// from any number of addresses and ports.
const MOST_STRANGERS: usize = 16;
/// How long answers are waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// As large as a datagram can be.
const LARGEST: usize = 65_535;

#[derive(Debug, Default)]
pub(super) struct Searches {
    rate: RateLimit,
    listeners: RefCell<HashMap<SocketAddr, Rc<Listener>>>,
    strangers: RefCell<HashSet<SocketAddr>>,
}

impl Searches {
    /// Whether the log has a line for a sender that no rule covers.
    fn may_tell_of(&self, stranger: SocketAddr) -> bool {
        let mut strangers = self.strangers.borrow_mut();
        if strangers.len() < MOST_STRANGERS {
            strangers.insert(stranger);
        }
        strangers.contains(&stranger)
    }
}

/// A socket at a client's port that hears everybody.
#[derive(Debug)]
struct Listener {
    socket: UdpSocket,
    _port: Share,
    /// When the last search began.
    since: Cell<Instant>,
    /// Flows that it may still open.
    room: Cell<u32>,
}

impl Datagrams {
    /// Passes a datagram to a group or to everybody on, or logs why not.
    pub(crate) fn to_many(self: &Rc<Self>, key: FlowKey, datagram: &[u8]) {
        if !self.search(key, datagram)
            && let Some(flow) = Flow::udp(key.destination)
        {
            // No rule allows it. To judge it logs the denial.
            let judged = self.judge.judge_answered(key.client, flow, Decision::Deny);
            drop(judged);
        }
    }

    /// Passes a search for devices on. Returns false if it is something else.
    pub(super) fn search(self: &Rc<Self>, key: FlowKey, datagram: &[u8]) -> bool {
        let flow = Flow::udp(key.destination);
        let devices = flow.and_then(|flow| self.judge.search(key.client, &flow));
        let Some((devices, named)) = devices else {
            return false;
        };
        if devices.is_empty() && named.is_empty() {
            self.refuse(key, datagram.len(), Unreachable::AdminProhibited);
        }
        self.copy_to(key, datagram, &devices);
        if !named.is_empty() {
            self.search_named(key, datagram, &named, devices);
        }
        true
    }

    /// Passes a search on to each of these.
    pub(super) fn copy_to(self: &Rc<Self>, key: FlowKey, datagram: &[u8], devices: &[SocketAddr]) {
        if !self.searches.rate.admits(Instant::now(), devices.len()) {
            return self.judge.events.overlook();
        }
        if !devices.is_empty() {
            self.listen(key.client);
        }
        let search = Flow::udp(key.destination);
        for &destination in devices {
            self.carry_out(FlowKey { destination, ..key }, datagram, search);
        }
    }

    /// Begins to hear answers from elsewhere, if the client's port is free outside.
    fn listen(self: &Rc<Self>, client: SocketAddr) {
        let mut listeners = self.searches.listeners.borrow_mut();
        if let Some(listener) = listeners.get(&client) {
            listener.since.set(Instant::now());
            return;
        }
        if listeners.len() >= MOST_LISTENERS {
            return;
        }
        if let Ok(Some(listener)) = self.listener(client) {
            let listener = Rc::new(listener);
            listeners.insert(client, Rc::clone(&listener));
            spawn_local(hear(Rc::clone(self), client, listener));
        }
    }

    fn listener(&self, client: SocketAddr) -> io::Result<Option<Listener>> {
        let Some((socket, port)) = self.ports.listen(client)? else {
            return Ok(None);
        };
        Ok(Some(Listener {
            socket: UdpSocket::from_std(socket.into())?,
            _port: port,
            since: Cell::new(Instant::now()),
            room: Cell::new(MOST_ANSWERS),
        }))
    }

    /// A datagram came to the client's port from where no flow of the client's leads to.
    fn device_answered(self: &Rc<Self>, key: FlowKey, listener: &Listener, datagram: &[u8]) {
        let pair = self.known(key).or_else(|| {
            let room = listener.room.get().checked_sub(1)?;
            let (from, may_be_told) = (Flow::udp(key.destination)?, || {
                self.searches.may_tell_of(key.destination)
            });
            let flow = self.judge.judge_answer(key.client, from, may_be_told)?;
            listener.room.set(room);
            self.admit(key, flow).ok()
        });
        if let Some(pair) = pair {
            pair.answer(datagram);
        }
    }
}

/// Hears answers for as long as the client's last search is not too old.
async fn hear(datagrams: Rc<Datagrams>, client: SocketAddr, listener: Rc<Listener>) {
    let mut buffer = vec![0; LARGEST];
    loop {
        let until = listener.since.get() + PATIENCE;
        tokio::select! {
            () = sleep_until(until) => if listener.since.get() + PATIENCE <= Instant::now() {
                break;
            },
            _ = listener.socket.ready(INPUT) => {
                // A reload may have ended it.
                if datagrams.judge.policy().discovery.is_empty() {
                    break;
                }
                let received = receive_now(&listener.socket, &mut buffer);
                if let Ok((length, Some(from))) = received
                    && let Some(datagram) = buffer.get(..length)
                {
                    let key = FlowKey { client, destination: from };
                    datagrams.device_answered(key, &listener, datagram);
                    // A fast sender must not keep the others waiting.
                    yield_now().await;
                }
            },
        }
    }
    datagrams.searches.listeners.borrow_mut().remove(&client);
}

/// So many in a second, and as many at once.
#[derive(Debug)]
struct RateLimit {
    left: Cell<f64>,
    at: Cell<Option<Instant>>,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            left: Cell::new(RATE),
            at: Cell::new(None),
        }
    }
}

impl RateLimit {
    fn admits(&self, now: Instant, count: usize) -> bool {
        let count = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let before = self.at.replace(Some(now)).unwrap_or(now);
        let more = now.duration_since(before).as_secs_f64() * RATE;
        let left = (self.left.get() + more).min(RATE);
        let admits = left >= count;
        self.left.set(if admits { left - count } else { left });
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_searches_is_cut_to_the_rate() {
        let (limit, start) = (RateLimit::default(), Instant::now());
        let admitted = |millis: std::ops::Range<u64>| {
            millis
                .filter(|at| limit.admits(start + Duration::from_millis(*at), 10))
                .count()
        };
        // All at once; then a thousand in each second.
        assert_eq!((0..1000).filter(|_| limit.admits(start, 10)).count(), 100);
        let in_a_second = admitted(1..1001);
        assert!((99..=101).contains(&in_a_second), "{in_a_second}");
    }
}
