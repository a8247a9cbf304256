//! Which source ports of the host the UDP flows have.
//!
//! A flow to a near destination should have its client's own port outside (EPICS needs that), one
//! to the internet must not: a program inside would choose a port of the host's, such as that of
//! a VPN, and the host's firewall and its peers may trust what comes from it. So it gets one that
//! the kernel chooses.
//!
//! One client talks to many destinations from one port, and should look like one client there,
//! too. So the sockets of a client share the port, which the kernel
//! permits to sockets that all agree (SO_REUSEADDR). But of two sockets with the same port
//! *and* destination the kernel lets one have all the answers. So a port is first taken
//! alone, which fails if anybody else has it, this program in another session included,
//! and is shared only when the same client has a second flow.

use std::{
    cell::RefCell,
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    rc::{Rc, Weak},
};

use socket2::{Domain, Protocol, Socket, Type};
use stockade_sys::{socket::report_errors, transparent::Family};

use crate::{descriptors::spare, flows::FlowKey};

#[derive(Debug, Default)]
pub(crate) struct Ports {
    claims: RefCell<HashMap<PortKey, Weak<Claim>>>,
}

/// Who shares a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PortKey {
    /// Who has this port inside, for near destinations.
    Own(Family, u16),
    /// The client, for destinations on the internet.
    Any(Family, SocketAddr),
}

/// A port that the flows of one client have. It lives as long as one of them.
#[derive(Debug)]
pub(crate) struct Claim {
    client: IpAddr,
    /// The port of the host.
    port: u16,
    /// The only socket, as long as it is the only one.
    alone: RefCell<Option<Socket>>,
}

impl Ports {
    /// A socket of the host that is connected to the flow's destination, and the claim on
    /// its port, if it has one.
    pub(crate) fn connect(
        &self,
        flow: FlowKey,
        near: bool,
    ) -> io::Result<(Socket, Option<Rc<Claim>>)> {
        let family = Family::of(flow.destination.ip());
        let (socket, claim) = match self.share(family, flow, near)? {
            Some((socket, claim)) => (socket, Some(claim)),
            None => (open(family)?, None),
        };
        report_errors(&socket, family)?;
        socket.connect(&flow.destination.into())?;
        Ok((socket, claim))
    }

    fn share(
        &self,
        family: Family,
        flow: FlowKey,
        near: bool,
    ) -> io::Result<Option<(Socket, Rc<Claim>)>> {
        let (key, wanted) = if near {
            let port = flow.client.port();
            (PortKey::Own(family, port), port)
        } else {
            (PortKey::Any(family, flow.client), 0)
        };
        let at = |port: u16| SocketAddr::new(family.unspecified(), port).into();
        let socket = open(family)?;
        let mut claims = self.claims.borrow_mut();
        if let Some(claim) = claims.get(&key).and_then(Weak::upgrade) {
            if claim.client != flow.client.ip() {
                return Ok(None);
            }
            if let Some(alone) = claim.alone.take() {
                alone.set_reuse_address(true)?;
            }
            socket.set_reuse_address(true)?;
            let shared = socket.bind(&at(claim.port)).is_ok();
            return Ok(shared.then_some((socket, claim)));
        }
        if socket.bind(&at(wanted)).is_err() {
            return Ok(None);
        }
        let bound = socket.local_addr()?.as_socket();
        let claim = Rc::new(Claim {
            client: flow.client.ip(),
            port: bound.map_or(wanted, |bound| bound.port()),
            alone: RefCell::new(Some(socket.try_clone()?)),
        });
        // Now and then: claims that ended make way.
        if claims.len().is_power_of_two() {
            claims.retain(|_, claim| claim.strong_count() > 0);
        }
        claims.insert(key, Rc::downgrade(&claim));
        Ok(Some((socket, claim)))
    }
}

fn open(family: Family) -> io::Result<Socket> {
    let domain = match family {
        Family::V4 => Domain::IPV4,
        Family::V6 => Domain::IPV6,
    };
    let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    let socket = spare(socket)?;
    if family == Family::V6 {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}
