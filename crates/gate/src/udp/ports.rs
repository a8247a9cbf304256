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
//! *and* destination the kernel lets one have all the answers. So a port is first taken alone,
//! which fails if anybody else has it, this program in another session included. It is shared only
//! when the same client has a second flow. A port that the client chose nobody else may share then
//! either, or the client would get what a program of the host is sent: the sockets agree to share
//! only for the moment in which one more is added.

use std::{
    cell::RefCell,
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    rc::{Rc, Weak},
};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stockade_sys::{packet::hear_unicast_only, socket::report_errors, transparent::Family};

use crate::{descriptors::spare, flows::FlowKey};

/// So many sockets have a port together that the client chose. Each of them has to agree to each.
const MOST_SHARED: usize = 128;

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
struct Claim {
    client: IpAddr,
    /// The port of the host.
    port: u16,
    /// Whether the client chose it.
    is_chosen: bool,
    /// Those that are bound to it and have to agree when one more is: all of them if the client
    /// chose the port, else the first. Some have ended.
    sockets: RefCell<Vec<Weak<Socket>>>,
}

/// One socket's part in a claim. It is kept as long as the socket.
#[derive(Debug)]
pub(crate) struct Share {
    _claim: Rc<Claim>,
    /// The same socket once more, if it has to agree.
    _socket: Option<Rc<Socket>>,
}

impl Claim {
    /// Binds one more socket to the port.
    fn add(&self, socket: &Socket, at: &SockAddr) -> io::Result<()> {
        let mut sockets = self.sockets.borrow_mut();
        sockets.retain(|socket| socket.strong_count() > 0);
        if sockets.len() >= MOST_SHARED {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let bound: Vec<_> = sockets.iter().filter_map(Weak::upgrade).collect();
        let all = || bound.iter().map(Rc::as_ref).chain([socket]);
        let agree = |yes| all().try_for_each(|socket| socket.set_reuse_address(yes));
        let added = agree(true).and_then(|()| socket.bind(at));
        if self.is_chosen {
            agree(false)?;
        }
        added
    }

    /// A socket that is bound to the port joins those that are.
    fn join(self: Rc<Self>, socket: Socket) -> io::Result<(Socket, Share)> {
        let has_to_agree = self.is_chosen || self.sockets.borrow().is_empty();
        let again = has_to_agree.then(|| socket.try_clone().map(Rc::new));
        let again = again.transpose()?;
        let mut sockets = self.sockets.borrow_mut();
        sockets.extend(again.as_ref().map(Rc::downgrade));
        drop(sockets);
        let share = Share {
            _claim: self,
            _socket: again,
        };
        Ok((socket, share))
    }
}

impl Ports {
    /// A socket of the host that is connected to the flow's destination, and the claim on
    /// its port, if it has one.
    pub(crate) fn connect(&self, flow: FlowKey, near: bool) -> io::Result<(Socket, Option<Share>)> {
        let family = Family::of(flow.destination.ip());
        let (socket, share) = match self.share(open(family)?, family, flow, near)? {
            Some((socket, share)) => (socket, Some(share)),
            None => (open(family)?, None),
        };
        report_errors(&socket, family)?;
        socket.connect(&flow.destination.into())?;
        Ok((socket, share))
    }

    /// A socket of the host at the client's own port that hears everybody who sends to this host
    /// alone, if the port can be had.
    pub(crate) fn listen(&self, client: SocketAddr) -> io::Result<Option<(Socket, Share)>> {
        let nobody = FlowKey {
            client,
            destination: client,
        };
        let family = Family::of(client.ip());
        let socket = open(family)?;
        hear_unicast_only(&socket)?;
        self.share(socket, family, nobody, true)
    }

    fn share(
        &self,
        socket: Socket,
        family: Family,
        flow: FlowKey,
        near: bool,
    ) -> io::Result<Option<(Socket, Share)>> {
        let (key, wanted) = if near {
            let port = flow.client.port();
            (PortKey::Own(family, port), port)
        } else {
            (PortKey::Any(family, flow.client), 0)
        };
        let at = |port: u16| SockAddr::from(SocketAddr::new(family.unspecified(), port));
        let mut claims = self.claims.borrow_mut();
        if let Some(claim) = claims.get(&key).and_then(Weak::upgrade) {
            if claim.client != flow.client.ip() {
                return Ok(None);
            }
            return match claim.add(&socket, &at(claim.port)) {
                Ok(()) => claim.join(socket).map(Some),
                Err(_) => Ok(None),
            };
        }
        if socket.bind(&at(wanted)).is_err() {
            return Ok(None);
        }
        let bound = socket.local_addr()?.as_socket();
        let claim = Rc::new(Claim {
            client: flow.client.ip(),
            port: bound.map_or(wanted, |bound| bound.port()),
            is_chosen: near,
            sockets: RefCell::default(),
        });
        // Now and then: claims that ended make way.
        if claims.len().is_power_of_two() {
            claims.retain(|_, claim| claim.strong_count() > 0);
        }
        claims.insert(key, Rc::downgrade(&claim));
        claim.join(socket).map(Some)
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
