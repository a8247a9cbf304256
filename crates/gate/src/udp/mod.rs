//! UDP flows.
//!
//! A flow is a pair of connected sockets. The one in the gatehouse speaks for the destination
//! to one client; the one outside is connected to the destination, so that only its answers
//! come in. To a near destination it has the client's own source port where that is free, because
//! some protocols write the port into their messages; to the internet it has one that the
//! kernel chooses. What clients send, to whatever destination, arrives at one tap of each family.

mod discovery;
mod kept;
mod named_devices;
mod pair;
mod ports;
mod sockets;

use std::{cell::RefCell, collections::HashMap, io, rc::Rc, sync::Arc, time::Duration};

use stockade_jail::SocketFactory;
use stockade_policy::Flow;
use stockade_sys::{
    batch::Run,
    packet::{Injector, Tap},
    transparent::Family,
};
use stockade_wire::{
    packet::{Fragments, Udp, Unreachable, udp_unreachable},
    quic::has_long_header,
};
use tokio::{
    io::unix::AsyncFd,
    net::UdpSocket,
    task::spawn_local,
    time::{Instant, sleep},
};

use crate::{
    dns,
    event_loop::{busy_poll, for_each_packet},
    flows::{ActiveFlow, FlowKey},
    icmp::icmp_error::unreachable,
    judge::{Judge, Judgement},
    questions::Decision,
};
use discovery::Searches;
use kept::Kept;
use named_devices::NamedDevices;
use pair::{BATCHES, FEW, Pair, carry};
use ports::Ports;
use sockets::icmp_error;
pub(crate) use sockets::{INPUT, receive_now, send_now};

const FLOW_LIMIT: usize = 4096;
/// How many flows are looked at to find one that makes room for another.
const EVICTION_SAMPLE: usize = 16;
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Datagrams {
    judge: Rc<Judge>,
    resolution: Rc<dns::Resolution>,
    injector: Rc<Injector>,
    socket_factory: Rc<RefCell<SocketFactory>>,
    ports: Ports,
    pairs: RefCell<HashMap<FlowKey, Rc<Pair>>>,
    kept: RefCell<Kept>,
    searches: Searches,
    named_devices: NamedDevices,
}

impl Datagrams {
    pub(crate) fn new(
        judge: Rc<Judge>,
        resolution: Rc<dns::Resolution>,
        injector: Rc<Injector>,
        socket_factory: Rc<RefCell<SocketFactory>>,
    ) -> Self {
        Self {
            judge,
            resolution,
            injector,
            socket_factory,
            ports: Ports::default(),
            pairs: RefCell::default(),
            kept: RefCell::default(),
            searches: Searches::default(),
            named_devices: NamedDevices::default(),
        }
    }

    fn run_arrived(self: &Rc<Self>, run: Run<'_>) {
        let Some((client, destination)) = run.ends() else {
            return;
        };
        let key = FlowKey {
            client,
            destination,
        };
        match self.known(key) {
            Some(pair) if !pair.flow.admission.by_name => {
                pair.touch();
                pair.flow.sent(run.bytes());
                self.run_outward(key, &pair.far, run);
            }
            _ => run.datagrams().for_each(|it| self.arrived(key, it)),
        }
    }

    fn known(&self, key: FlowKey) -> Option<Rc<Pair>> {
        let known = self.pairs.borrow().get(&key).cloned();
        known.filter(|pair| !pair.flow.has_ended())
    }

    fn arrived(self: &Rc<Self>, key: FlowKey, datagram: &[u8]) {
        // A search goes to a broadcast address of one of the host's subnets.
        if self.known(key).is_some() || !self.search(key, datagram) {
            self.carry_out(key, datagram, None);
        }
    }

    /// `search`: what the client sent to many, of which this is a copy.
    fn carry_out(self: &Rc<Self>, key: FlowKey, datagram: &[u8], search: Option<Flow>) {
        let pair = match self.known(key) {
            Some(pair) => pair,
            None => match self.open(key, datagram, search) {
                Ok(Some(pair)) => pair,
                Ok(None) => return,
                Err(why) => return self.refuse(key, datagram.len(), why),
            },
        };
        self.pass(key, &pair, datagram);
    }

    /// A datagram of a flow that stands.
    fn pass(&self, key: FlowKey, pair: &Pair, datagram: &[u8]) {
        if self.denies(key, pair, datagram) {
            return self.refuse(key, datagram.len(), Unreachable::AdminProhibited);
        }
        pair.touch();
        pair.flow.sent(datagram.len());
        self.send_outward(key, &pair.far, datagram);
    }

    /// Whether a datagram may not leave in a flow that stands: what was admitted by name alone is
    /// no QUIC, with whatever it began.
    fn denies(&self, key: FlowKey, pair: &Pair, datagram: &[u8]) -> bool {
        pair.flow.admission.by_name
            && has_long_header(datagram)
            && Flow::udp(key.destination).is_some_and(|flow| {
                let once = pair.flow.admission.once.as_ref();
                self.judge.denies_quic(key.client, flow, once)
            })
    }

    /// Sends a datagram on. A full buffer loses datagrams, as on any network.
    fn send_outward(&self, key: FlowKey, far: &UdpSocket, datagram: &[u8]) {
        for _ in 0..2 {
            match send_now(far, datagram) {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Most likely of an earlier datagram: the kernel tells it at the next call,
                // instead of sending. So it is passed on, and this datagram gets its turn.
                Err(error) => {
                    self.refuse(key, datagram.len(), icmp_error(far, key, &error));
                }
            }
        }
    }

    /// The same for several that go together.
    fn run_outward(&self, key: FlowKey, far: &UdpSocket, run: Run<'_>) {
        // One by one it is clear which of them the host's network does not take.
        if run
            .send(far)
            .is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
        {
            run.datagrams()
                .for_each(|it| self.send_outward(key, far, it));
        }
    }

    /// `first` is the datagram that it begins with. It is kept if the flow has to wait for an answer,
    /// and there is no pair yet. A copy of a search never waits.
    fn open(
        self: &Rc<Self>,
        key: FlowKey,
        first: &[u8],
        search: Option<Flow>,
    ) -> Result<Option<Rc<Pair>>, Unreachable> {
        if self.kept.borrow_mut().add(key, first) {
            return Ok(None);
        }
        let flow = Flow::udp(key.destination).ok_or(Unreachable::AdminProhibited)?;
        if has_long_header(first) && self.judge.denies_quic(key.client, flow, None) {
            return Err(Unreachable::AdminProhibited);
        }
        let judgement = match search {
            Some(search) => match self.judge.judge_search(key.client, flow, search) {
                Ok(admitted) => Judgement::Admitted(admitted),
                Err(refusal) => Judgement::Refused(refusal),
            },
            None => self.judge.judge(key.client, flow),
        };
        match judgement {
            Judgement::Admitted(flow) => self.establish(key, flow).map(Some),
            Judgement::Refused(refusal) => Err(refusal.why),
            Judgement::Held(waiting) => {
                self.kept.borrow_mut().begin(key, first);
                let this = Rc::clone(self);
                spawn_local(async move {
                    let decision = waiting.decision().await;
                    this.answered(key, flow, decision);
                });
                Ok(None)
            }
        }
    }

    /// Sends on what was kept, or refuses it.
    fn answered(self: &Rc<Self>, key: FlowKey, flow: Flow, decision: Decision) {
        let kept = self.kept.borrow_mut().take(key);
        let flow = self.judge.judge_answered(key.client, flow, decision);
        let flow = flow.map_err(|refusal| refusal.why);
        match flow.and_then(|flow| self.establish(key, flow)) {
            Ok(pair) => kept.iter().for_each(|it| self.pass(key, &pair, it)),
            Err(why) => kept.iter().for_each(|it| self.refuse(key, it.len(), why)),
        }
    }

    fn establish(
        self: &Rc<Self>,
        key: FlowKey,
        flow: Arc<ActiveFlow>,
    ) -> Result<Rc<Pair>, Unreachable> {
        self.admit(key, flow).map_err(|error| unreachable(&error))
    }

    fn admit(self: &Rc<Self>, key: FlowKey, flow: Arc<ActiveFlow>) -> io::Result<Rc<Pair>> {
        self.make_room();
        let pair = Rc::new(self.pair(key, flow)?);
        self.pairs.borrow_mut().insert(key, Rc::clone(&pair));
        spawn_local(carry(Rc::clone(self), key, Rc::clone(&pair)));
        Ok(pair)
    }

    fn pair(&self, key: FlowKey, flow: Arc<ActiveFlow>) -> io::Result<Pair> {
        let (far, claim) = self.ports.connect(key, flow.admission.near)?;
        let unbound = self
            .socket_factory
            .borrow_mut()
            .take(Family::of(key.destination.ip()))?;
        let near = unbound.impersonate(key.destination, key.client)?;
        let (near, far) = (UdpSocket::from_std(near)?, UdpSocket::from_std(far.into())?);
        Ok(Pair::new([near, far], claim, flow))
    }

    /// When there are too many flows, one of those that nobody answered goes, else the one
    /// that has been idle longest: of a sample, so that a flood costs the same per datagram
    /// however many flows there are.
    fn make_room(&self) {
        let mut pairs = self.pairs.borrow_mut();
        if pairs.len() < FLOW_LIMIT {
            return;
        }
        let sample = pairs.iter().take(EVICTION_SAMPLE);
        let victim = sample.min_by_key(|(_, pair)| pair.worth());
        if let Some((&key, pair)) = victim {
            pair.flow.end();
            pairs.remove(&key);
        }
    }

    fn refuse(&self, key: FlowKey, length: usize, why: Unreachable) {
        if let Some(packet) = udp_unreachable(key.client, key.destination, length, why) {
            self.injector.send(&packet, key.client.ip());
        }
    }
}

pub(crate) async fn watch(datagrams: Rc<Datagrams>, tap: Rc<AsyncFd<Tap>>) {
    let mut fragments = Fragments::default();
    let mut read = |room: &mut [u8], length: usize| {
        let packet = room.get(..length)?;
        let udp = match Udp::parse(packet) {
            Ok(udp) => udp,
            Err(_) => {
                let (message, udp) = fragments.add(packet)?;
                room.get_mut(..message.len())?.copy_from_slice(&message);
                udp
            }
        };
        // Queries arrive elsewhere. Of one in fragments the tap could not tell.
        let is_query = udp.destination.port() == dns::PORT;
        (!is_query).then_some((udp.client, udp.destination, udp.payload))
    };
    for_each_packet(&tap, |tap| {
        BATCHES.with_borrow_mut(|batch| {
            let count = tap.receive_batch(batch, &mut read)?;
            if count < FEW {
                busy_poll::extend();
            }
            batch.runs().for_each(|run| datagrams.run_arrived(run));
            Ok(count)
        })
    })
    .await;
}

/// Ends flows that have been idle for too long.
pub(crate) async fn sweep(datagrams: Rc<Datagrams>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        let now = Instant::now();
        datagrams.pairs.borrow_mut().retain(|_, pair| {
            let over = pair.is_over(now);
            if over {
                pair.flow.end();
            }
            !over
        });
    }
}
