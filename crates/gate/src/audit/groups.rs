//! Datagrams to many: groups of multicast, and everybody.
//!
//! The jail's kernel sends them nowhere, and gives the gate none of them. A program that looks for
//! a device that way (mDNS, EPICS) hears nothing, and nobody would learn why. So the gate has
//! copies, and tells of them like of any denial; the program itself is not answered, as nobody
//! answers such datagrams anywhere.

use std::{io, rc::Rc};

use stockade_jail::is_inside;
use stockade_policy::Flow;
use stockade_sys::packet::Tap;
use stockade_wire::packet::Sent;

use crate::{audit::hints::Hints, judge::Judge};

pub(crate) fn hints(judge: Rc<Judge>, taps: Vec<Tap>) -> io::Result<Hints> {
    Hints::new(taps, move |packet| arrived(&judge, packet))
}

fn arrived(judge: &Judge, packet: &[u8]) {
    let Ok(Sent {
        client,
        destination,
    }) = Sent::parse(packet)
    else {
        return;
    };
    if let Some(flow) = Flow::udp(destination)
        && is_inside(client.ip())
    {
        // No rule allows it; that it is told is all that comes of this.
        drop(judge.judge(client, flow));
    }
}
