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
//! The host's table of sockets tells who listens; nothing is ever sent to find out.

use std::{
    cell::RefCell,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    rc::Rc,
};

use stockade_sys::{diag::SocketTable, packet::Tap};
use stockade_wire::packet::Refused;

use crate::{
    audit::denials::{Ruling, Subject},
    audit::hints::Hints,
    judge::Judge,
};

/// To be called before the gate's thread is confined. At the `published` ports the gate itself
/// listens for what is inside: they are no service of the host's.
pub(crate) fn hints(judge: Rc<Judge>, taps: [Tap; 2], published: Vec<u16>) -> io::Result<Hints> {
    let refusals = Refusals {
        judge,
        table: RefCell::new(SocketTable::open()?),
        published,
    };
    Hints::new(taps, move |packet| refusals.arrived(packet))
}

/// Knows which of the refused would be taken outside.
#[derive(Debug)]
struct Refusals {
    judge: Rc<Judge>,
    table: RefCell<SocketTable>,
    published: Vec<u16>,
}

impl Refusals {
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
