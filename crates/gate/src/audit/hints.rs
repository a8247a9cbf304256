//! Packets that go nowhere by themselves, and are only looked at to tell the user why.
//!
//! * A connection to the loopback inside that nobody took, where the host listens: a program
//!   looks for the database of the host there, and nobody would learn that a port of the host was
//!   meant. The host's table of sockets tells who listens; nothing is sent to find out. The
//!   program has its answer from the kernel before the gate even looks, the same answer in the
//!   same time whether anybody listens outside or not.
//! * A datagram to many: a group of multicast, or everybody. The filter drops it. If it is a
//!   search for devices that the user lets pass, it goes on to these ([`Datagrams::to_many`]).
//! * A packet of which no flow can be made. The filter drops it, and the gate says to the program
//!   that it got nowhere.
//!
//! A program inside can cause any number of them, so only so many are looked at in a while. The
//! rest are lost in a short queue, which costs the gate nothing.

use std::{
    cell::RefCell,
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    rc::Rc,
    time::Duration,
};

use stockade_jail::is_inside;
use stockade_sys::{
    diag::SocketTable,
    packet::{Injector, Tap},
    watch::watch,
};
use stockade_wire::packet::{Foreign, Refused, Udp, Unreachable};
use tokio::{io::unix::AsyncFd, task::LocalSet, time::sleep};

use super::denials::{Ruling, Subject};
use crate::{flows::FlowKey, judge::Judge, udp::Datagrams};

/// As many of a tap are looked at before there is a pause.
const AT_A_TIME: u32 = 32;
const PAUSE: Duration = Duration::from_millis(200);
/// The largest MTU that a device inside has: that of loopback.
const LARGEST: usize = 65_536;

/// Who hears a packet.
type Hear = Rc<dyn Fn(&[u8])>;

/// Taps, and who hears what each copies.
#[derive(Default)]
pub(crate) struct Hints(Vec<(Rc<AsyncFd<Tap>>, Hear)>);

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hints").finish_non_exhaustive()
    }
}

impl Hints {
    pub(crate) fn add(
        &mut self,
        taps: impl IntoIterator<Item = Tap>,
        hear: impl Fn(&[u8]) + 'static,
    ) -> io::Result<()> {
        let hear: Hear = Rc::new(hear);
        for tap in taps {
            self.0.push((Rc::new(watch(tap)?), Rc::clone(&hear)));
        }
        Ok(())
    }

    /// Looks at what comes, until the gate ends.
    pub(crate) fn watch(&self, tasks: &LocalSet) {
        for (tap, hear) in &self.0 {
            tasks.spawn_local(look(Rc::clone(tap), Rc::clone(hear)));
        }
    }

    /// Looks at what has come and was not looked at yet. A command may cause a hint and end the
    /// session with it before the gate had its turn.
    pub(crate) fn catch_up(&self) {
        let mut buffer = vec![0; LARGEST];
        for (tap, hear) in &self.0 {
            for _ in 0..AT_A_TIME {
                let Ok(length) = tap.get_ref().receive(&mut buffer) else {
                    break;
                };
                hear(buffer.get(..length).unwrap_or_default());
            }
        }
    }
}

async fn look(tap: Rc<AsyncFd<Tap>>, hear: Hear) {
    let mut buffer = vec![0; LARGEST];
    loop {
        for _ in 0..AT_A_TIME {
            let Ok(mut ready) = tap.readable().await else {
                return;
            };
            if let Ok(Ok(length)) = ready.try_io(|tap| tap.get_ref().receive(&mut buffer)) {
                hear(buffer.get(..length).unwrap_or_default());
            }
        }
        sleep(PAUSE).await;
    }
}

/// Hears of refused connections. To be called before the gate's thread is confined. At the
/// `published` ports the gate itself listens for what is inside: they are no service of the host's.
pub(crate) fn refused(judge: Rc<Judge>, published: Vec<u16>) -> io::Result<impl Fn(&[u8])> {
    let table = RefCell::new(SocketTable::open()?);
    Ok(move |packet: &[u8]| {
        let Ok(Refused {
            destination: at, ..
        }) = Refused::parse(packet)
        else {
            return;
        };
        let port = at.port();
        // `host_ports` stands for these two addresses.
        let would_be_taken = (at.ip() == Ipv4Addr::LOCALHOST || at.ip() == Ipv6Addr::LOCALHOST)
            && !published.contains(&port)
            && !judge.has_host_port(port)
            // If the kernel does not tell, there is no hint.
            && table.borrow_mut().listens(at).unwrap_or(false);
        if would_be_taken {
            // Without the client: its socket is closed by now, and nobody finds whose it was.
            judge.denied(Subject::HostPort(port), Ruling::HostPort(port), None);
        }
    })
}

/// Hears of datagrams to many.
pub(crate) fn to_many(datagrams: Rc<Datagrams>) -> impl Fn(&[u8]) {
    move |packet| {
        if let Ok(udp) = Udp::parse(packet)
            && let Some(payload) = packet.get(udp.payload)
            && is_inside(udp.client.ip())
        {
            let (client, destination) = (udp.client, udp.destination);
            datagrams.to_many(
                FlowKey {
                    client,
                    destination,
                },
                payload,
            );
        }
    }
}

/// Hears of packets of which no flow can be made.
pub(crate) fn foreign(judge: Rc<Judge>, injector: Rc<Injector>) -> impl Fn(&[u8]) {
    move |packet| {
        let Ok(foreign) = Foreign::parse(packet) else {
            return;
        };
        // What is for many comes from the kernel itself.
        if !is_inside(foreign.client()) || foreign.destination().is_multicast() {
            return;
        }
        let why = if foreign.is_routed() {
            "a packet with a routing header can lead elsewhere than its destination says"
        } else {
            "only TCP, UDP and ping leave the jail"
        };
        let subject = Subject::Packet(shown(&foreign));
        judge.denied(subject, Ruling::Malformed(why.to_owned()), None);
        let answer = foreign.unreachable(Unreachable::AdminProhibited);
        injector.send(&answer, foreign.client());
    }
}

/// Like a flow: `udp-lite://192.0.2.7:7`.
fn shown(foreign: &Foreign<'_>) -> String {
    let destination = foreign.destination();
    let protocol = match foreign.protocol() {
        6 => "tcp",
        17 => "udp",
        33 => "dccp",
        47 => "gre",
        50 => "esp",
        58 => "icmp",
        115 => "l2tp",
        132 => "sctp",
        136 => "udp-lite",
        other => return format!("protocol {other} to {destination}"),
    };
    match foreign.port() {
        Some(port) => format!("{protocol}://{}", SocketAddr::new(destination, port)),
        None => format!("{protocol}://{destination}"),
    }
}
