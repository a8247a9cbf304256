//! ICMP echo: `ping` from inside.
//!
//! A request that may pass is sent by a ping socket of the host, where the host lets its
//! users have one (`net.ipv4.ping_group_range`); the answer goes back as a packet in the
//! destination's name. A flow is one identifier of one client to one destination.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    io,
    net::{IpAddr, SocketAddr, UdpSocket as StdUdpSocket},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use socket2::{Domain, Protocol, Socket, Type};
use stockade_jail::is_inside;
use stockade_policy::Flow;
use stockade_sys::{
    packet::{Injector, Tap},
    socket::{QueuedError, report_errors, take_error},
    transparent::Family,
};
use stockade_wire::packet::{Echo, Unreachable};
use tokio::{
    io::unix::AsyncFd,
    net::UdpSocket,
    task::{spawn_local, yield_now},
    time::timeout,
};

use crate::{
    descriptors::spare,
    event_loop::for_each_packet,
    flows::{ActiveFlow, FlowKey, forget},
    icmp::icmp_error::{queued_error, unreachable},
    judge::{Judge, Judgement},
    udp::{INPUT, receive_now, send_now},
};

const FLOW_LIMIT: usize = 256;
const IDLE_LIMIT: Duration = Duration::from_secs(30);
const LARGEST: usize = 65_535;
/// Where an echo message has its number.
const SEQUENCE: std::ops::Range<usize> = 6..8;

#[derive(Debug)]
pub(crate) struct Echoes {
    pub(crate) judge: Rc<Judge>,
    pub(crate) injector: Rc<Injector>,
    pub(crate) pings: RefCell<HashMap<FlowKey, Rc<Ping>>>,
    /// Those whose first request waits for the user's answer. Later ones are lost meanwhile.
    pub(crate) held: RefCell<HashSet<FlowKey>>,
}

/// The host's socket of one flow.
#[derive(Debug)]
pub(crate) struct Ping {
    socket: UdpSocket,
    flow: Arc<ActiveFlow>,
    used: Cell<Instant>,
}

impl Echoes {
    fn arrived(self: &Rc<Self>, packet: &[u8]) {
        let Ok(echo) = Echo::parse(packet) else {
            return;
        };
        let key = FlowKey {
            client: SocketAddr::new(echo.source(), echo.identifier()),
            destination: SocketAddr::new(echo.destination(), 0),
        };
        // The copy was taken before the filter, which drops forged sources.
        if !is_inside(echo.source()) {
            return;
        }
        match self.ping(key, packet) {
            Ok(Some(ping)) => self.send(key, &ping, &echo),
            Ok(None) => {}
            Err(why) => self.injector.send(&echo.unreachable(why), key.client.ip()),
        }
    }

    fn send(&self, key: FlowKey, ping: &Ping, echo: &Echo<'_>) {
        ping.used.set(Instant::now());
        let send = || send_now(&ping.socket, echo.message());
        // The first error may be that of an earlier request, which `carry` takes from its queue.
        let sent = send().or_else(|_| send());
        match sent {
            Ok(()) => ping.flow.sent(echo.message().len()),
            Err(error) => {
                let answer = echo.unreachable(unreachable(&error));
                self.injector.send(&answer, key.client.ip());
            }
        }
    }

    /// The flow that a request belongs to; a new one is judged first. Nothing if it has to wait.
    fn ping(self: &Rc<Self>, key: FlowKey, packet: &[u8]) -> Result<Option<Rc<Ping>>, Unreachable> {
        let known = self.pings.borrow().get(&key).cloned();
        if let Some(known) = known.filter(|ping| !ping.flow.has_ended()) {
            return Ok(Some(known));
        }
        if self.held.borrow().contains(&key) {
            return Ok(None);
        }
        let flow = Flow::echo(key.destination.ip());
        // The log knows no identifiers.
        let client = SocketAddr::new(key.client.ip(), 0);
        match self.judge.judge(client, flow) {
            Judgement::Admitted(flow) => self.open(key, flow, packet).map(Some),
            Judgement::Refused(refusal) => Err(refusal.why),
            Judgement::Held(waiting) => {
                self.held.borrow_mut().insert(key);
                let (this, packet) = (Rc::clone(self), packet.to_vec());
                spawn_local(async move {
                    let decision = waiting.decision().await;
                    this.held.borrow_mut().remove(&key);
                    let flow = this.judge.judge_answered(client, flow, decision);
                    let flow = flow.map_err(|refusal| refusal.why);
                    let ping = flow.and_then(|flow| this.open(key, flow, &packet));
                    let Ok(echo) = Echo::parse(&packet) else {
                        return;
                    };
                    match ping {
                        Ok(ping) => this.send(key, &ping, &echo),
                        Err(why) => this.injector.send(&echo.unreachable(why), key.client.ip()),
                    }
                });
                Ok(None)
            }
        }
    }

    fn open(
        self: &Rc<Self>,
        key: FlowKey,
        flow: Arc<ActiveFlow>,
        packet: &[u8],
    ) -> Result<Rc<Ping>, Unreachable> {
        let destination = key.destination.ip();
        let socket = ping_socket(destination).map_err(|error| unreachable(&error))?;
        let socket = UdpSocket::from_std(socket).map_err(|_| Unreachable::Host)?;
        let used = Cell::new(Instant::now());
        let ping = Rc::new(Ping { socket, flow, used });
        self.make_room();
        self.pings.borrow_mut().insert(key, Rc::clone(&ping));
        spawn_local(carry(
            Rc::clone(self),
            key,
            Rc::clone(&ping),
            packet.to_vec(),
        ));
        Ok(ping)
    }

    /// When there are too many flows, the one that has been idle longest goes, as with UDP: what was
    /// admitted is sent.
    fn make_room(&self) {
        let mut pings = self.pings.borrow_mut();
        if pings.len() < FLOW_LIMIT {
            return;
        }
        let victim = pings.iter().min_by_key(|(_, ping)| ping.used.get());
        if let Some((&key, ping)) = victim {
            ping.flow.end();
            pings.remove(&key);
        }
    }
}

pub(crate) async fn watch(echoes: Rc<Echoes>, tap: Rc<AsyncFd<Tap>>) {
    let mut buffer = vec![0; LARGEST];
    for_each_packet(&tap, |tap| {
        let length = tap.receive(&mut buffer)?;
        echoes.arrived(buffer.get(..length).unwrap_or_default());
        Ok(1)
    })
    .await;
}

/// Brings the answers of one flow home until none have come for a while.
async fn carry(echoes: Rc<Echoes>, key: FlowKey, ping: Rc<Ping>, request: Vec<u8>) {
    let Ping { socket, flow, used } = &*ping;
    let mut buffer = vec![0; LARGEST];
    loop {
        tokio::select! {
            // What has to end moves nothing more.
            biased;
            () = flow.until_ended() => break,
            ready = timeout(IDLE_LIMIT, socket.ready(INPUT)) => if !matches!(ready, Ok(Ok(_))) {
                break;
            },
        }
        let answer = match receive_now(socket, &mut buffer) {
            Ok((length, _)) => {
                flow.received(length);
                used.set(Instant::now());
                let message = buffer.get(..length).unwrap_or_default();
                Echo::parse(&request)
                    .ok()
                    .and_then(|echo| echo.reply(message))
            }
            Err(error) => match take_error(socket).ok() {
                // There is nothing. (If a request was sent meanwhile, that got the error, and the
                // queue still has it.)
                None if error.kind() == io::ErrorKind::WouldBlock => None,
                queued => refusal(queued.as_ref(), key, &request, &error),
            },
        };
        if let Some(answer) = answer {
            echoes.injector.send(&answer, key.client.ip());
        }
        // A fast sender must not keep the others waiting.
        yield_now().await;
    }
    forget(&echoes.pings, key, &ping);
}

/// What the agent is told about an error, for the request that met it.
fn refusal(
    queued: Option<&QueuedError>,
    key: FlowKey,
    request: &[u8],
    error: &io::Error,
) -> Option<Vec<u8>> {
    let why = queued_error(queued, key.destination.ip(), error);
    let mut request = request.to_vec();
    if let Some(sequence) = queued.and_then(|queued| queued.quoted.get(SEQUENCE)) {
        let message = Echo::parse(&request).ok()?.message().len();
        let at = request.len() - message;
        request
            .get_mut(at..)?
            .get_mut(SEQUENCE)?
            .copy_from_slice(sequence);
    }
    Some(Echo::parse(&request).ok()?.unreachable(why))
}

/// It is no UDP socket, but one for datagrams all the same, which is all that is asked of
/// it here.
fn ping_socket(destination: IpAddr) -> io::Result<StdUdpSocket> {
    let (domain, protocol) = match destination {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    let socket = spare(Socket::new(
        domain,
        Type::DGRAM.nonblocking(),
        Some(protocol),
    )?)?;
    report_errors(&socket, Family::of(destination))?;
    socket.connect(&SocketAddr::new(destination, 0).into())?;
    Ok(socket.into())
}
