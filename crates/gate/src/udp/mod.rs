//! UDP flows.
//!
//! A flow is a pair of connected sockets. The one in the jail speaks for the destination
//! to one client; the one outside is connected to the destination, so that only its answers
//! come in. To a near destination it has the client's own source port where that is free, because
//! some protocols write the port into their messages; to the internet it has one that the
//! kernel chooses. The first datagram of a flow arrives at a socket that
//! takes any; the kernel gives the following ones to the flow's own.

mod order;
mod pair;
mod ports;
mod sockets;

use std::{cell::RefCell, collections::HashMap, io, rc::Rc, time::Duration};

use stockade_jail::Speakers;
use stockade_policy::Flow;
use stockade_sys::{
    batch::Run,
    packet::Injector,
    transparent::{AnyAddressUdp, Family},
};
use stockade_wire::{
    packet::{Unreachable, udp_unreachable},
    quic::has_long_header,
};
use tokio::{
    io::unix::AsyncFd,
    net::UdpSocket,
    task::spawn_local,
    time::{Instant, sleep},
};

use crate::{
    ends::Ends,
    event_loop::Turns,
    icmp::icmp_error::unreachable,
    judge::{Admission, Judge},
    names::pins::Use,
};
use order::{ORDER_LIMIT, Queue};
use pair::{Pair, carry};
use ports::Ports;
pub(crate) use sockets::{INPUT, receive_now, send_now};
use sockets::{strangers, told};

const FLOW_LIMIT: usize = 4096;
/// How many flows are looked at to find one that makes room for another.
const EVICTION_SAMPLE: usize = 16;
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
const LARGEST: usize = 65_535;

#[derive(Debug)]
pub(crate) struct Datagrams {
    judge: Rc<Judge>,
    injector: Rc<Injector>,
    speakers: Rc<RefCell<Speakers>>,
    ports: Ports,
    first_v4: Queue,
    first_v6: Queue,
    flows: RefCell<HashMap<Ends, Rc<Pair>>>,
}

struct NoRoom;

impl Datagrams {
    pub(crate) fn new(
        judge: Rc<Judge>,
        injector: Rc<Injector>,
        speakers: Rc<RefCell<Speakers>>,
    ) -> Self {
        Self {
            judge,
            injector,
            speakers,
            ports: Ports::default(),
            first_v4: Queue::default(),
            first_v6: Queue::default(),
            flows: RefCell::default(),
        }
    }

    fn queue(&self, family: Family) -> &Queue {
        match family {
            Family::V4 => &self.first_v4,
            Family::V6 => &self.first_v6,
        }
    }

    /// A datagram has come that the kernel knew no flow for.
    fn arrived(self: &Rc<Self>, ends: Ends, datagram: &[u8]) {
        // Several may be sent before the flow's own socket stands.
        let known = self.flows.borrow().get(&ends).cloned();
        let pair = match known {
            Some(pair) => pair,
            None => match self.open(ends, datagram) {
                Ok(pair) => pair,
                Err(why) => return self.refuse(ends, datagram.len(), why),
            },
        };
        if self.denies(ends, &pair, datagram) {
            return self.refuse(ends, datagram.len(), Unreachable::AdminProhibited);
        }
        pair.sent(datagram.len());
        // A full buffer loses datagrams, as on any network.
        let _ = self.send_outward(ends, pair.far(), datagram);
    }

    /// Whether a datagram may not leave in a flow that stands: what was admitted by name alone is
    /// no QUIC, with whatever it began.
    fn denies(&self, ends: Ends, pair: &Pair, datagram: &[u8]) -> bool {
        pair.by_name
            && has_long_header(datagram)
            && Flow::udp(ends.destination)
                .is_some_and(|flow| self.judge.denies_quic(ends.client, flow))
    }

    /// Sends a datagram on. The only error is that the host's network has no room now.
    fn send_outward(&self, ends: Ends, far: &UdpSocket, datagram: &[u8]) -> Result<(), NoRoom> {
        for _ in 0..2 {
            match send_now(far, datagram) {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(NoRoom),
                // Most likely of an earlier datagram: the kernel tells it at the next call,
                // instead of sending. So it is passed on, and this datagram gets its turn.
                Err(error) => {
                    self.refuse(ends, datagram.len(), told(far, ends, &error));
                }
            }
        }
        Ok(())
    }

    /// The same for several that go together.
    fn run_outward(&self, ends: Ends, far: &UdpSocket, run: Run<'_>) -> Result<(), NoRoom> {
        match run.send(far) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(NoRoom),
            // One by one it is clear which of them the host's network does not take.
            Err(_) => {
                let mut datagrams = run.datagrams();
                datagrams.try_for_each(|datagram| self.send_outward(ends, far, datagram))
            }
        }
    }

    /// `first` is the datagram that it begins with.
    fn open(self: &Rc<Self>, ends: Ends, first: &[u8]) -> Result<Rc<Pair>, Unreachable> {
        let flow = Flow::udp(ends.destination).ok_or(Unreachable::AdminProhibited)?;
        if has_long_header(first) && self.judge.denies_quic(ends.client, flow) {
            return Err(Unreachable::AdminProhibited);
        }
        let admission = self.judge.judge(ends.client, flow);
        let admission = admission.map_err(|refusal| refusal.why)?;
        self.make_room();
        let family = Family::of(ends.destination.ip());
        let since = self.queue(family).times_empty();
        let pair = self.pair(ends, admission);
        let pair = Rc::new(pair.map_err(|error| unreachable(&error))?);
        self.flows.borrow_mut().insert(ends, Rc::clone(&pair));
        spawn_local(carry(Rc::clone(self), ends, Rc::clone(&pair), since));
        for (client, datagram) in strangers(pair.near(), ends.client) {
            self.arrived(Ends { client, ..ends }, &datagram);
        }
        Ok(pair)
    }

    fn pair(&self, ends: Ends, admission: Admission) -> io::Result<Pair> {
        let (far, claim) = self.ports.connect(ends, admission.near)?;
        let speaker = self
            .speakers
            .borrow_mut()
            .take(Family::of(ends.destination.ip()))?;
        let near = speaker.impersonate(ends.destination, ends.client)?;
        let (near, far) = (UdpSocket::from_std(near)?, UdpSocket::from_std(far.into())?);
        let pins = admission.by_name.then(|| self.hold(ends)).flatten();
        Ok(Pair::new([near, far], claim, pins, admission))
    }

    fn hold(&self, ends: Ends) -> Option<Use> {
        let now = std::time::Instant::now();
        self.judge.pins.hold(ends.destination.ip(), now)
    }

    /// When there are too many flows, one of those that nobody answered goes, else the one
    /// that has been idle longest: of a sample, so that a flood costs the same per datagram
    /// however many flows there are.
    fn make_room(&self) {
        let mut flows = self.flows.borrow_mut();
        if flows.len() < FLOW_LIMIT {
            return;
        }
        let sample = flows.iter().take(EVICTION_SAMPLE);
        let victim = sample.min_by_key(|(_, pair)| pair.worth());
        if let Some((&ends, pair)) = victim {
            pair.end();
            flows.remove(&ends);
        }
    }

    /// Ends what the policy does not allow any more.
    pub(crate) fn review(&self) {
        self.flows.borrow_mut().retain(|ends, pair| {
            let flow = Flow::udp(ends.destination);
            let stays = flow.is_some_and(|flow| self.judge.may_stay(&flow, true, None));
            if !stays {
                pair.end();
            }
            stays
        });
    }

    /// A flow is over, unless it made way for another with the same ends already.
    fn forget(&self, ends: Ends, pair: &Rc<Pair>) {
        let mut flows = self.flows.borrow_mut();
        let known = flows.get(&ends);
        if known.is_some_and(|known| Rc::ptr_eq(known, pair)) {
            flows.remove(&ends);
        }
    }

    fn refuse(&self, ends: Ends, length: usize, why: Unreachable) {
        if let Some(packet) = udp_unreachable(ends.client, ends.destination, length, why) {
            // Lost if the jail's kernel does not take it now.
            let _ = self.injector.send(&packet, ends.client.ip());
        }
    }
}

pub(crate) async fn watch(
    datagrams: Rc<Datagrams>,
    socket: Rc<AsyncFd<AnyAddressUdp>>,
    family: Family,
) {
    let mut buffer = vec![0; LARGEST];
    let mut turns = Turns::default();
    loop {
        turns.next().await;
        let Ok(mut ready) = socket.readable().await else {
            return;
        };
        match ready.try_io(|socket| socket.get_ref().receive(&mut buffer)) {
            Ok(Ok(Some(arrival))) => {
                let ends = Ends {
                    client: arrival.client,
                    destination: arrival.destination,
                };
                datagrams.arrived(ends, buffer.get(..arrival.length).unwrap_or_default());
            }
            // A datagram that cannot be received or answered is lost.
            Ok(_) => {}
            Err(_nothing_left) => datagrams.queue(family).emptied(),
        }
    }
}

/// Waits until what was sent inside has been sent on. For when the agent has ended.
pub(crate) async fn delivered(datagrams: &Datagrams) {
    // A flow that just began waits as long for its turn.
    if !datagrams.flows.borrow().is_empty() {
        sleep(ORDER_LIMIT * 2).await;
    }
}

/// Ends flows that have been idle for too long.
pub(crate) async fn sweep(datagrams: Rc<Datagrams>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        let now = Instant::now();
        datagrams.flows.borrow_mut().retain(|_, pair| {
            let over = pair.is_over(now);
            if over {
                pair.end();
            }
            !over
        });
    }
}
