//! Sockets that answer for addresses which are not theirs (IP_TRANSPARENT).
//!
//! They must be made by a thread that is in the network namespace which they are for.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
};

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, RecvMsg, SockaddrIn, SockaddrIn6,
    SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt::{Ipv4OrigDstAddr, Ipv6OrigDstAddr},
};
use socket2::{Domain, Protocol, Socket, Type};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    pub fn unspecified(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Self::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// Whether the kernel has sockets of this family. One that was started with `ipv6.disable=1`
    /// has none of IPv6.
    pub fn exists(self) -> bool {
        let socket = Socket::new(self.domain(), Type::DGRAM, None);
        !socket.is_err_and(|error| is_missing_family(&error))
    }

    fn domain(self) -> Domain {
        match self {
            Self::V4 => Domain::IPV4,
            Self::V6 => Domain::IPV6,
        }
    }
}

/// Whether a socket cannot be made because the kernel does not have its family.
pub fn is_missing_family(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}

/// A listener that connections to other addresses of the family may arrive at, too: `local_addr()`
/// of an accepted one is where its client wanted to go.
pub fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = transparent(Family::of(at.ip()), Type::STREAM, Protocol::TCP)?;
    // Connections of an earlier listener at the same port may still be open.
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())?;
    // Accepted connections inherit it. Their bytes have been gathered once already.
    socket.set_tcp_nodelay(true)?;
    // The kernel cuts it to net.core.somaxconn.
    socket.listen(4096)?;
    Ok(socket.into())
}

/// An unbound UDP socket that may be bound to any address of the family.
pub fn unbound_udp(family: Family) -> io::Result<Unbound> {
    let socket = transparent(family, Type::DGRAM, Protocol::UDP)?;
    // Several clients may talk to one destination, each through a socket of its own.
    socket.set_reuse_address(true)?;
    Ok(Unbound { family, socket })
}

/// A TCP socket of the jail that can be connected there.
pub fn unconnected_tcp(family: Family) -> io::Result<TcpStream> {
    let kind = Type::STREAM.nonblocking();
    let socket = Socket::new(family.domain(), kind, Some(Protocol::TCP))?;
    Ok(socket.into())
}

/// See [`unbound_udp`].
#[derive(Debug)]
pub struct Unbound {
    family: Family,
    socket: Socket,
}

impl Unbound {
    pub fn family(&self) -> Family {
        self.family
    }

    /// Makes the socket speak for `destination` to `client`, and to no other.
    pub fn impersonate(self, destination: SocketAddr, client: SocketAddr) -> io::Result<UdpSocket> {
        self.socket.bind(&destination.into())?;
        self.socket.connect(&client.into())?;
        Ok(self.socket.into())
    }
}

/// A UDP socket at which datagrams to any address of its family arrive, and which answers from the
/// address that the client wrote to.
#[derive(Debug)]
pub struct AnyAddressUdp {
    socket: Socket,
}

#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub length: usize,
    pub client: SocketAddr,
    /// Where the client sent it.
    pub destination: SocketAddr,
}

impl AnyAddressUdp {
    pub fn bind(family: Family, port: u16) -> io::Result<Self> {
        let socket = transparent(family, Type::DGRAM, Protocol::UDP)?;
        match family {
            Family::V4 => setsockopt(&socket, Ipv4OrigDstAddr, &true)?,
            Family::V6 => setsockopt(&socket, Ipv6OrigDstAddr, &true)?,
        }
        // For bursts; the kernel cuts it to net.core.rmem_max.
        socket.set_recv_buffer_size(4 << 20)?;
        socket.bind(&SocketAddr::new(family.unspecified(), port).into())?;
        Ok(Self { socket })
    }

    /// The next datagram; none if it came without a destination, so that nobody could
    /// be answered.
    ///
    /// # Errors
    /// Those of recvmsg(2), `WouldBlock` included.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        let mut control = control_space();
        let mut slices = [IoSliceMut::new(buffer)];
        let message = recvmsg::<SockaddrStorage>(
            self.as_raw_fd(),
            &mut slices,
            Some(&mut control),
            MsgFlags::empty(),
        )?;
        let client = message.address.as_ref().and_then(socket_address);
        let (Some(client), Some(destination)) = (client, destination(&message)) else {
            return Ok(None);
        };
        Ok(Some(Arrival {
            length: message.bytes,
            client,
            destination,
        }))
    }

    /// Sends `datagram` to `client` from the address `from`, with this socket's port.
    ///
    /// # Errors
    /// Those of sendmsg(2), `WouldBlock` included.
    pub fn send(&self, datagram: &[u8], client: SocketAddr, from: IpAddr) -> io::Result<()> {
        let (source4, source6);
        let source = match from {
            IpAddr::V4(from) => {
                source4 = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from(from).to_be(),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                ControlMessage::Ipv4PacketInfo(&source4)
            }
            IpAddr::V6(from) => {
                source6 = libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr {
                        s6_addr: from.octets(),
                    },
                    ipi6_ifindex: 0,
                };
                ControlMessage::Ipv6PacketInfo(&source6)
            }
        };
        sendmsg(
            self.socket.as_raw_fd(),
            &[IoSlice::new(datagram)],
            &[source],
            MsgFlags::empty(),
            Some(&SockaddrStorage::from(client)),
        )?;
        Ok(())
    }
}

impl AsRawFd for AnyAddressUdp {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for AnyAddressUdp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn destination(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<SocketAddr> {
    message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4OrigDstAddr(address) => {
            Some(SocketAddr::V4(SockaddrIn::from(address).into()))
        }
        ControlMessageOwned::Ipv6OrigDstAddr(address) => {
            Some(SocketAddr::V6(SockaddrIn6::from(address).into()))
        }
        _ => None,
    })
}

fn control_space() -> Vec<u8> {
    nix::cmsg_space!(libc::sockaddr_in6)
}

fn transparent(family: Family, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(family.domain(), kind.nonblocking(), Some(protocol))?;
    match family {
        Family::V4 => socket.set_ip_transparent_v4(true)?,
        Family::V6 => {
            // Each family has a socket of its own.
            socket.set_only_v6(true)?;
            socket.set_ip_transparent_v6(true)?;
        }
    }
    Ok(socket)
}

pub(crate) fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(address) = address.as_sockaddr_in() {
        return Some(SocketAddr::V4((*address).into()));
    }
    Some(SocketAddr::V6((*address.as_sockaddr_in6()?).into()))
}
