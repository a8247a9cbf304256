//! UDP flows.
//!
//! A flow is a pair of connected sockets. The one in the jail speaks for the destination
//! to one client; the one outside is connected to the destination, so that only its answers
//! come in, and has the client's own source port where that is free (some protocols write
//! the port into their messages). The first datagram of a flow arrives at a socket that
//! takes any; the kernel gives the following ones to the flow's own.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io, iter,
    net::SocketAddr,
    rc::Rc,
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags},
};
use stockade_jail::Speakers;
use stockade_policy::Flow;
use stockade_sys::{
    batch::{BATCH, Batch, Run},
    packet::Injector,
    socket::take_error,
    transparent::{AnyAddressUdp, Family},
};
use stockade_wire::packet::{Unreachable, udp_unreachable};
use tokio::{
    io::{Interest, unix::AsyncFd},
    net::UdpSocket,
    sync::Notify,
    task::{spawn_local, yield_now},
    time::{Instant, sleep, timeout},
};

use crate::{
    awake,
    ends::Ends,
    events::Entry,
    judge::{Admission, Judge},
    pins::Use,
    ports::{Claim, Ports},
    told::{unreachable, unreachable_code},
    turns::Turns,
};

const FLOW_LIMIT: usize = 4096;
/// How many flows are looked at to find one that makes room for another.
const EVICTION_SAMPLE: usize = 16;
const IDLE_UNANSWERED: Duration = Duration::from_secs(30);
const IDLE_ANSWERED: Duration = Duration::from_secs(180);
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
const ORDER_LIMIT: Duration = Duration::from_millis(20);
/// So few at a time are an exchange, not a stream.
const FEW: usize = 4;
const LARGEST: usize = 65_535;
/// An ICMP error shows as an error only, without anything to read.
pub(crate) const INPUT: Interest = Interest::READABLE.add(Interest::ERROR);

thread_local! {
    /// Datagrams stay here only between a receive and the send that follows.
    static BATCHES: RefCell<Batch> = RefCell::default();
}

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

/// The two sockets of a flow.
#[derive(Debug)]
struct Pair {
    near: UdpSocket,
    far: UdpSocket,
    /// Keeps the port for the client, if the outer socket has the client's.
    _port: Option<Rc<Claim>>,
    /// Keeps the names that the flow was admitted for.
    _pins: Option<Use>,
    entry: Option<Entry>,
    used: Cell<Instant>,
    answered: Cell<bool>,
    evicted: Notify,
}

struct NoRoom;

/// What became of the next datagrams from inside.
struct Step {
    /// Whether there may be more.
    more: bool,
    /// For these there was no room.
    left: Vec<Vec<u8>>,
}

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
            None => match self.open(ends) {
                Ok(pair) => pair,
                Err(why) => return self.refuse(ends, datagram.len(), why),
            },
        };
        pair.sent(datagram.len());
        // A full buffer loses datagrams, as on any network.
        let _ = self.send_outward(ends, &pair.far, datagram);
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

    fn open(self: &Rc<Self>, ends: Ends) -> Result<Rc<Pair>, Unreachable> {
        let flow = Flow::udp(ends.destination).ok_or(Unreachable::AdminProhibited)?;
        let admission = self.judge.judge(ends.client, flow);
        let admission = admission.map_err(|refusal| refusal.why)?;
        self.make_room();
        let family = Family::of(ends.destination.ip());
        let since = self.queue(family).times_empty.get();
        let pair = self.pair(ends, admission);
        let pair = Rc::new(pair.map_err(|error| unreachable(&error))?);
        self.flows.borrow_mut().insert(ends, Rc::clone(&pair));
        spawn_local(carry(Rc::clone(self), ends, Rc::clone(&pair), since));
        for (client, datagram) in strangers(&pair.near, ends.client) {
            self.arrived(Ends { client, ..ends }, &datagram);
        }
        Ok(pair)
    }

    fn pair(&self, ends: Ends, admission: Admission) -> io::Result<Pair> {
        let (far, claim) = self.ports.connect(ends)?;
        let speaker = self
            .speakers
            .borrow_mut()
            .take(Family::of(ends.destination.ip()))?;
        let near = speaker.impersonate(ends.destination, ends.client)?;
        Ok(Pair {
            near: UdpSocket::from_std(near)?,
            far: UdpSocket::from_std(far.into())?,
            _port: claim,
            _pins: admission.by_name.then(|| self.hold(ends)).flatten(),
            entry: admission.entry,
            used: Cell::new(Instant::now()),
            answered: Cell::new(false),
            evicted: Notify::new(),
        })
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
        let victim = sample.min_by_key(|(_, pair)| (pair.answered.get(), pair.used.get()));
        if let Some((&ends, pair)) = victim {
            pair.evicted.notify_one();
            flows.remove(&ends);
        }
    }

    /// Ends what the policy does not allow any more.
    pub(crate) fn review(&self) {
        self.flows.borrow_mut().retain(|ends, pair| {
            let flow = Flow::udp(ends.destination);
            let stays = flow.is_some_and(|flow| self.judge.may_stay(&flow, true, None));
            if !stays {
                pair.evicted.notify_one();
            }
            stays
        });
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
    socket: AsyncFd<AnyAddressUdp>,
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

/// The queue of first datagrams of a family. When a flow begins, more of its datagrams may
/// be in it; they are older than those at the flow's own socket, and have to go first.
#[derive(Debug, Default)]
struct Queue {
    times_empty: Cell<u64>,
    news: Notify,
}

impl Queue {
    fn emptied(&self) {
        self.times_empty.set(self.times_empty.get() + 1);
        self.news.notify_waiters();
    }

    /// Waits until all that was in the queue at a time has been taken out; not for long,
    /// though, since a flood would fill it again and again.
    async fn empty_since(&self, times: u64) {
        let emptied = async {
            while self.times_empty.get() == times {
                self.news.notified().await;
            }
        };
        // Then the order of a few datagrams may be another.
        let _ = timeout(ORDER_LIMIT, emptied).await;
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
            let idle = now.duration_since(pair.used.get());
            let limit = if pair.answered.get() {
                IDLE_ANSWERED
            } else {
                IDLE_UNANSWERED
            };
            if idle >= limit {
                pair.evicted.notify_one();
            }
            idle < limit
        });
    }
}

/// The life of a flow.
async fn carry(datagrams: Rc<Datagrams>, ends: Ends, pair: Rc<Pair>, since: u64) {
    datagrams
        .queue(Family::of(ends.destination.ip()))
        .empty_since(since)
        .await;
    loop {
        let more = tokio::select! {
            _ = pair.near.ready(INPUT) => pair.outward(&datagrams, ends).await,
            _ = pair.far.ready(INPUT) => Ok(pair.inward(&datagrams, ends)),
            () = pair.evicted.notified() => return,
        };
        match more {
            // A fast sender must not keep the others waiting.
            Ok(true) => yield_now().await,
            Ok(false) => {}
            // An error of the inner socket: the client is gone.
            Err(_) => break,
        }
    }
    // Unless it made way for another with the same ends already.
    let mut flows = datagrams.flows.borrow_mut();
    if flows
        .get(&ends)
        .is_some_and(|known| Rc::ptr_eq(known, &pair))
    {
        flows.remove(&ends);
    }
}

impl Pair {
    fn sent(&self, bytes: usize) {
        if let Some(entry) = &self.entry {
            entry.sent(bytes);
        }
    }

    /// Moves a batch out, and tells whether there may be more.
    async fn outward(&self, datagrams: &Datagrams, ends: Ends) -> io::Result<bool> {
        self.used.set(Instant::now());
        let Step { more, left } = self.batch_outward(datagrams, ends)?;
        // The host's network is slower than the agent: wait, as the agent's own call would
        // have done. What it sends meanwhile queues up before us.
        for datagram in left {
            // An error is told at the next datagram.
            let _ = self.far.send(&datagram).await;
        }
        Ok(more)
    }

    fn batch_outward(&self, datagrams: &Datagrams, ends: Ends) -> io::Result<Step> {
        BATCHES.with_borrow_mut(|batch| {
            let count = match receive_batch(&self.near, batch) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                received => received?,
            };
            if (1..FEW).contains(&count) {
                awake::stir();
            }
            self.sent(batch.bytes());
            let mut left = Vec::new();
            for run in batch.runs() {
                let room = left.is_empty();
                if !room || datagrams.run_outward(ends, &self.far, run).is_err() {
                    left.extend(run.datagrams().map(<[u8]>::to_vec));
                }
            }
            Ok(Step {
                more: count == BATCH,
                left,
            })
        })
    }

    /// Moves a batch in, and tells whether there may be more. What cannot be delivered is
    /// lost; the client's end shows when it is gone.
    fn inward(&self, datagrams: &Datagrams, ends: Ends) -> bool {
        BATCHES.with_borrow_mut(|batch| {
            let count = match receive_batch(&self.far, batch) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => {
                    datagrams.refuse(ends, 0, told(&self.far, ends, &error));
                    return true;
                }
            };
            if count < FEW {
                awake::stir();
            }
            // Before it was connected the socket heard anybody.
            batch.keep_from(ends.destination);
            if let Some(entry) = &self.entry {
                entry.received(batch.bytes());
            }
            for run in batch.runs() {
                self.used.set(Instant::now());
                self.answered.set(true);
                if run.send(&self.near).is_err() {
                    for datagram in run.datagrams() {
                        let _ = send_now(&self.near, datagram);
                    }
                }
            }
            count == BATCH
        })
    }
}

/// Takes out what other clients of the destination sent to the flow's inner socket before it
/// was connected: at once, so that their datagrams stay in order.
fn strangers(near: &UdpSocket, client: SocketAddr) -> Vec<(SocketAddr, Vec<u8>)> {
    let receive = |buffer: &mut [u8], flags| {
        let (length, _, from) = rustix::net::recvfrom(near, buffer, flags | RecvFlags::DONTWAIT)?;
        Ok::<_, Errno>((
            length,
            from.and_then(|from| SocketAddr::try_from(from).ok()),
        ))
    };
    let mut found = Vec::new();
    while let Ok((_, Some(from))) = receive(&mut [0; 1], RecvFlags::PEEK)
        && from != client
        && found.len() < BATCH
    {
        let mut datagram = vec![0; LARGEST];
        if let Ok((length, _)) = receive(&mut datagram, RecvFlags::empty()) {
            datagram.truncate(length);
            found.push((from, datagram));
        }
    }
    found
}

/// Sends without asking the event loop first, which knows nothing yet of a new socket.
pub(crate) fn send_now(socket: &UdpSocket, datagram: &[u8]) -> io::Result<()> {
    rustix::net::send(socket, datagram, SendFlags::empty())?;
    Ok(())
}

/// What is queued at a socket, or an error that an ICMP message brought.
fn receive_batch(socket: &UdpSocket, batch: &mut Batch) -> io::Result<usize> {
    let mut got = Err(io::ErrorKind::WouldBlock.into());
    // One kind of readiness at a time: asked for both, tokio finds neither.
    for interest in [Interest::READABLE, Interest::ERROR] {
        let _ = socket.try_io(interest, || {
            got = batch.receive(socket);
            // Less than a batch was all there was: the next wait is for the next datagram,
            // without another look to find that out.
            match got {
                Ok(BATCH) => Ok(()),
                _ => Err(io::ErrorKind::WouldBlock.into()),
            }
        });
        if !matches!(&got, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            break;
        }
    }
    got
}

/// A datagram, or an error that an ICMP message brought, if one is there.
pub(crate) fn receive_now(
    socket: &UdpSocket,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<SocketAddr>)> {
    let mut receive = || {
        let (length, _, from) = rustix::net::recvfrom(socket, &mut *buffer, RecvFlags::empty())?;
        Ok((length, from.and_then(|from| from.try_into().ok())))
    };
    // One kind of readiness at a time: asked for both, tokio finds neither.
    match socket.try_io(Interest::READABLE, &mut receive) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            socket.try_io(Interest::ERROR, receive)
        }
        received => received,
    }
}

/// What the agent is told about an error of the outer socket. The error itself is coarse;
/// beside it the kernel keeps the ICMP message that caused it.
fn told(far: &UdpSocket, ends: Ends, error: &io::Error) -> Unreachable {
    let queued = iter::from_fn(|| take_error(far).ok()).take(BATCH).last();
    match queued.and_then(|queued| queued.unreachable_code) {
        Some(code) => unreachable_code(ends.destination.ip(), code),
        None => unreachable(error),
    }
}
