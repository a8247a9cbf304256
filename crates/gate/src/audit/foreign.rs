//! Packets that the jail's filter refuses because no flow can be made of them.
//!
//! The filter answers them by itself where the kernel lets it; of some protocols it does not, and
//! of none the user would learn. So the gate has copies: it tells of them like of any denial, and
//! says to the program at once that they got nowhere.

use std::{io, rc::Rc};

use stockade_jail::is_inside;
use stockade_sys::packet::{Injector, Tap};
use stockade_wire::packet::{Foreign, Unreachable};

use crate::{
    audit::denials::{Ruling, Subject},
    audit::hints::Hints,
    judge::Judge,
};

pub(crate) fn hints(judge: Rc<Judge>, injector: Rc<Injector>, taps: Vec<Tap>) -> io::Result<Hints> {
    Hints::new(taps, move |packet| arrived(&judge, &injector, packet))
}

fn arrived(judge: &Judge, injector: &Injector, packet: &[u8]) {
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
    // Lost if the jail's kernel does not take it now, as on any network.
    let _ = injector.send(&answer, foreign.client());
}

/// Like a flow: `udp-lite://192.0.2.7:7`.
fn shown(foreign: &Foreign<'_>) -> String {
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
        other => return format!("protocol {other} to {}", foreign.destination()),
    };
    let destination = foreign.destination();
    match foreign.port() {
        Some(port) => format!(
            "{protocol}://{}",
            std::net::SocketAddr::new(destination, port)
        ),
        None => format!("{protocol}://{destination}"),
    }
}
