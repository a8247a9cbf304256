//! Connections to the loopback inside that nobody took, where somebody outside would have.
//!
//! The loopback inside is the agent's own, and its connections never come to the gate. A
//! program that looks for the database of the host there is refused by the kernel, as it
//! should be, and nobody would learn that a port of the host was meant. So the gate hears of
//! such refusals: it has copies of the resets that answer a SYN, and of nothing else that passes
//! there. If the host listens at that port, that is told like any denial, to the user only. The
//! program inside has its answer from the kernel before the gate even looks, the same answer
//! in the same time whether anybody listens outside or not.
//!
//! The host's table of sockets tells who listens; nothing is ever sent to find out. A program
//! inside can be refused as often as it likes, so only so many refusals are looked at in a
//! while. The rest are lost in a short queue, which costs the gate nothing.

use std::{
    cell::RefCell,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    rc::Rc,
    time::Duration,
};

use stockade_sys::{diag::SocketTable, packet::RefusalTap, watch};
use stockade_wire::packet::Refused;
use tokio::{io::unix::AsyncFd, task::LocalSet, time::sleep};

use crate::{
    denials::{Ruling, Subject},
    judge::Judge,
};

/// As many refusals of a family are looked at before there is a pause.
const AT_A_TIME: u32 = 32;
const PAUSE: Duration = Duration::from_millis(200);
/// More than the headers that are read.
const LONGEST: usize = 256;

/// Knows which of the refused would be taken outside.
#[derive(Debug)]
pub(crate) struct Refusals {
    judge: Rc<Judge>,
    taps: Vec<Rc<AsyncFd<RefusalTap>>>,
    table: RefCell<SocketTable>,
    /// Ports that are no service of the host's: the gate itself listens there for what is
    /// inside.
    published: Vec<u16>,
}

impl Refusals {
    /// To be called before the gate's thread is confined.
    pub(crate) fn new(
        judge: Rc<Judge>,
        taps: [RefusalTap; 2],
        published: Vec<u16>,
    ) -> io::Result<Self> {
        let taps = taps.into_iter().map(|tap| watch::watch(tap).map(Rc::new));
        Ok(Self {
            judge,
            taps: taps.collect::<io::Result<_>>()?,
            table: RefCell::new(SocketTable::open()?),
            published,
        })
    }

    /// Looks at what has come and was not looked at yet. A command that is refused and ends at
    /// once may end the session before the gate had its turn.
    pub(crate) fn catch_up(&self) {
        let mut buffer = [0; LONGEST];
        for tap in &self.taps {
            for _ in 0..AT_A_TIME {
                let Ok(length) = tap.get_ref().receive(&mut buffer) else {
                    break;
                };
                self.arrived(buffer.get(..length).unwrap_or_default());
            }
        }
    }

    fn arrived(&self, packet: &[u8]) {
        let Ok(refused) = Refused::parse(packet) else {
            return;
        };
        if self.would_be_taken(refused.destination) {
            let port = refused.destination.port();
            // Without the client: its socket is closed by now, and nobody finds whose it was.
            self.judge
                .denied(Subject::HostPort(port), Ruling::HostPort(port), None);
        }
    }

    /// Whether `host_ports` would have led somewhere: it stands for these two addresses.
    fn would_be_taken(&self, at: SocketAddr) -> bool {
        let port = at.port();
        let is_localhost = at.ip() == Ipv4Addr::LOCALHOST || at.ip() == Ipv6Addr::LOCALHOST;
        is_localhost
            && !self.published.contains(&port)
            && !self.judge.has_host_port(port)
            // If the kernel does not tell, there is no hint.
            && self.table.borrow_mut().listens(at).unwrap_or(false)
    }
}

pub(crate) fn watch_all(refusals: &Rc<Refusals>, tasks: &LocalSet) {
    for tap in &refusals.taps {
        tasks.spawn_local(watch(Rc::clone(refusals), Rc::clone(tap)));
    }
}

async fn watch(refusals: Rc<Refusals>, tap: Rc<AsyncFd<RefusalTap>>) {
    let mut buffer = [0; LONGEST];
    loop {
        for _ in 0..AT_A_TIME {
            let Ok(mut ready) = tap.readable().await else {
                return;
            };
            if let Ok(Ok(length)) = ready.try_io(|tap| tap.get_ref().receive(&mut buffer)) {
                refusals.arrived(buffer.get(..length).unwrap_or_default());
            }
        }
        sleep(PAUSE).await;
    }
}
