//! Sockets that answer for addresses which are not theirs (IP_TRANSPARENT).
//!
//! They must be made by a thread that is inside the jail's network namespace.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
};

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt,
    sockopt::Ipv4OrigDstAddr,
};
use socket2::{Domain, Protocol, Socket, Type};

/// A listener at `port` to which the packet filter may hand connections to any IPv4
/// address: `local_addr()` of an accepted one is where its client wanted to go.
///
/// # Errors
/// If the kernel refuses.
pub fn listen_ipv4(port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::IPV4,
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    socket.set_ip_transparent_v4(true)?;
    socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into())?;
    // The kernel cuts it to net.core.somaxconn.
    socket.listen(4096)?;
    Ok(socket.into())
}

/// A UDP socket at `port` to which the packet filter may hand datagrams to any IPv4
/// address, and which answers from the address that the client wrote to.
#[derive(Debug)]
pub struct AnyAddressUdp(Socket);

/// A datagram that arrived at an [`AnyAddressUdp`].
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub length: usize,
    pub client: SocketAddrV4,
    /// Where the client sent it.
    pub destination: SocketAddrV4,
}

impl AnyAddressUdp {
    /// # Errors
    /// If the kernel refuses.
    pub fn bind_ipv4(port: u16) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        socket.set_ip_transparent_v4(true)?;
        setsockopt(&socket, Ipv4OrigDstAddr, &true)?;
        socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into())?;
        Ok(Self(socket))
    }

    /// The next datagram; none if it came without a destination, so that nobody could
    /// be answered.
    ///
    /// # Errors
    /// Those of recvmsg(2), `WouldBlock` included.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        let mut control = nix::cmsg_space!(libc::sockaddr_in);
        let mut slices = [IoSliceMut::new(buffer)];
        let message = recvmsg::<SockaddrIn>(
            self.0.as_raw_fd(),
            &mut slices,
            Some(&mut control),
            MsgFlags::empty(),
        )?;
        let destination = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4OrigDstAddr(address) => Some(SockaddrIn::from(address)),
            _ => None,
        });
        let (Some(client), Some(destination)) = (message.address, destination) else {
            return Ok(None);
        };
        Ok(Some(Arrival {
            length: message.bytes,
            client: client.into(),
            destination: destination.into(),
        }))
    }

    /// Sends `datagram` to `client` from the address `from`, with this socket's port.
    ///
    /// # Errors
    /// Those of sendmsg(2), `WouldBlock` included.
    pub fn send(&self, datagram: &[u8], client: SocketAddrV4, from: Ipv4Addr) -> io::Result<()> {
        let source = libc::in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: libc::in_addr {
                s_addr: u32::from(from).to_be(),
            },
            ipi_addr: libc::in_addr { s_addr: 0 },
        };
        sendmsg(
            self.0.as_raw_fd(),
            &[IoSlice::new(datagram)],
            &[ControlMessage::Ipv4PacketInfo(&source)],
            MsgFlags::empty(),
            Some(&SockaddrIn::from(client)),
        )?;
        Ok(())
    }
}

impl AsRawFd for AnyAddressUdp {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for AnyAddressUdp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
