//! Listening, and stopping to listen.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{Doing, Result};
use crate::net::Host;

/// Where a server listens: a port on all addresses of its host, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Port(u16),
    Address(SocketAddr),
}

impl From<u16> for Endpoint {
    fn from(port: u16) -> Self {
        Self::Port(port)
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl From<(IpAddr, u16)> for Endpoint {
    fn from(address: (IpAddr, u16)) -> Self {
        Self::Address(address.into())
    }
}

/// `"127.0.0.1:5432"`. Panics if it is no socket address.
impl From<&str> for Endpoint {
    fn from(address: &str) -> Self {
        match address.parse() {
            Ok(address) => Self::Address(address),
            Err(_) => panic!("`{address}` is not an address with a port"),
        }
    }
}

impl Endpoint {
    /// What to bind. Port: both families through one socket.
    fn socket_address(self) -> SocketAddr {
        match self {
            Self::Port(port) => (Ipv6Addr::UNSPECIFIED, port).into(),
            Self::Address(address) => address,
        }
    }

    /// The address at which clients find the server.
    pub(super) fn public(self, host: &Host, bound: SocketAddr) -> SocketAddr {
        match self {
            Self::Port(_) => (host.address(), bound.port()).into(),
            Self::Address(_) => bound,
        }
    }
}

pub(super) fn tcp(host: &Host, endpoint: Endpoint) -> Result<TcpListener> {
    let bind = || {
        let socket = bound(endpoint, Type::STREAM, Protocol::TCP)?;
        socket.listen(1024)?;
        // Polled together with the stop signal, and a connection that is gone
        // before it is accepted must not block the thread.
        socket.set_nonblocking(true)?;
        Ok::<_, io::Error>(TcpListener::from(socket))
    };
    host.enter(bind)
        .doing(format_args!("listen on {}, {endpoint:?}, TCP", host.name()))
}

/// One socket for each address: a socket for all of them would answer from
/// whichever address routing prefers, not from the one that was asked.
pub(super) fn udp(host: &Host, endpoint: Endpoint) -> Result<Vec<UdpSocket>> {
    let loopback = [
        IpAddr::from(Ipv4Addr::LOCALHOST),
        Ipv6Addr::LOCALHOST.into(),
    ];
    let bind = || {
        let mut port = match endpoint {
            Endpoint::Port(port) => port,
            Endpoint::Address(_) => return Ok(vec![bound_udp(endpoint)?]),
        };
        let mut sockets = Vec::new();
        for address in host.addresses().iter().chain(&loopback) {
            let socket = bound_udp(Endpoint::Address((*address, port).into()))?;
            port = socket.local_addr()?.port();
            sockets.push(socket);
        }
        Ok::<_, io::Error>(sockets)
    };
    host.enter(bind)
        .doing(format_args!("listen on {}, {endpoint:?}, UDP", host.name()))
}

/// The address at which clients find these sockets.
pub(super) fn public_udp(sockets: &[UdpSocket], host: &Host, endpoint: Endpoint) -> SocketAddr {
    match sockets.first().map(UdpSocket::local_addr) {
        Some(Ok(bound)) => endpoint.public(host, bound),
        other => panic!("a bound socket has an address, not {other:?}"),
    }
}

fn bound_udp(endpoint: Endpoint) -> io::Result<UdpSocket> {
    bound(endpoint, Type::DGRAM, Protocol::UDP).map(UdpSocket::from)
}

fn bound(endpoint: Endpoint, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let address = endpoint.socket_address();
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(matches!(endpoint, Endpoint::Address(_)))?;
    }
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// An IPv4 peer of a socket for both families, written as what it is.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Ends a server's threads.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<OwnedFd>);

impl Stop {
    pub(crate) fn new() -> Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .doing("make an event descriptor")?;
        Ok(Self(Arc::new(event)))
    }

    pub(crate) fn stop(&self) {
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Blocks until `source` is readable; `false` means stop.
    pub(crate) fn wait_readable(&self, source: &impl AsFd) -> bool {
        let mut ready = [
            PollFd::new(source, PollFlags::IN),
            PollFd::new(&*self.0, PollFlags::IN),
        ];
        loop {
            match poll(&mut ready, None) {
                Ok(_) => return ready[1].revents().is_empty(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// Accepts until stopped, then closes the listener: connections are refused.
pub(super) fn accept_loop(
    listener: &TcpListener,
    stop: &Stop,
    mut serve: impl FnMut(TcpStream, SocketAddr),
) {
    while stop.wait_readable(listener) {
        if let Ok((stream, peer)) = listener.accept()
            && stream.set_nonblocking(false).is_ok()
        {
            serve(stream, plain(peer));
        }
    }
}
