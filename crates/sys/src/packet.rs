//! The two ends of what is held: taps that copy connection attempts, datagrams and echo
//! requests off a device, and raw sockets that put packets back. Further taps hear what is only told.
//!
//! Both must be made by a thread that is in the network namespace which they are for.

use std::{
    io::{self, Read},
    net::{IpAddr, SocketAddr},
    ops::Range,
    os::fd::{AsFd, AsRawFd, RawFd},
};

use nix::errno::Errno;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

mod filter;

use crate::{
    batch::Batch,
    closing::SlowToClose,
    rtnl::LOOPBACK,
    transparent::{Family, is_missing_family},
};

/// The mark that lets a packet pass the filter. Setting it takes CAP_NET_ADMIN
/// or CAP_NET_RAW over the jail, which nothing inside has.
pub const PASS_MARK: u32 = 0x5354_4b44;

/// For bursts; the kernel cuts it to net.core.rmem_max.
const BURST: usize = 4 << 20;
const FEW: usize = 32 << 10;

/// A packet socket that hears what passes a device, given by its index, and a filter.
///
/// Those with a short queue give no more than hints, and a program inside can cause any number of
/// them: what finds the queue full is lost.
#[derive(Debug)]
pub struct Tap(SlowToClose<Socket>);

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Has a socket hear nothing that is sent to many.
///
/// # Errors
/// If the kernel does not take the filter.
pub fn hear_unicast_only(socket: &Socket) -> io::Result<()> {
    socket.attach_filter(&filter::to_one())
}

impl Tap {
    /// Copies of the unmarked TCP SYNs that come in whose destination is not the jail's own. `own` is
    /// the jail's address besides the loopback ones; its family is the one that is tapped.
    /// Attempts at `ports` of loopback are copied, too.
    ///
    /// # Errors
    /// If there are more than 64 ports, or the kernel refuses.
    pub fn syns(device: u32, own: IpAddr, ports: &[u16]) -> io::Result<Self> {
        if ports.len() > filter::MOST_PORTS {
            return Err(io::Error::other("more than 64 ports of the host"));
        }
        let filter = filter::foreign_syn(own, ports, PASS_MARK);
        Self::at(device, Family::of(own), &filter, BURST)
    }

    /// Copies of the ICMP echo requests that come in whose destination is not the jail's own.
    pub fn echoes(device: u32, own: IpAddr) -> io::Result<Self> {
        Self::at(device, Family::of(own), &filter::foreign_echo(own), BURST)
    }

    /// Copies of the UDP datagrams that come in from `own`, but for those to many and to `except`.
    pub fn datagrams(device: u32, own: IpAddr, except: u16) -> io::Result<Self> {
        let filter = filter::datagram(own, except);
        Self::at(device, Family::of(own), &filter, BURST)
    }

    /// Copies of the kernel's refusals of connections to 127.0.0.1 or ::1 of the jail.
    pub fn refusals(family: Family) -> io::Result<Self> {
        let filter = match family {
            Family::V4 => filter::refusal_v4(),
            Family::V6 => filter::refusal_v6(),
        };
        Self::at(LOOPBACK, family, &filter, FEW)
    }

    /// Copies of datagrams of UDP that are for many and come in.
    pub fn groups(device: u32, family: Family) -> io::Result<Self> {
        Self::at(device, family, &filter::to_many(), BURST)
    }

    /// Copies of packets of other protocols than TCP, UDP and ICMP, and of those with extension
    /// headers, whose destination is not the jail's own.
    pub fn foreign(device: u32, own: IpAddr) -> io::Result<Self> {
        Self::at(device, Family::of(own), &filter::foreign_protocol(own), FEW)
    }

    fn at(interface: u32, family: Family, filter: &[SockFilter], queue: usize) -> io::Result<Self> {
        const ETH_P_IP: u16 = 0x0800;
        const ETH_P_IPV6: u16 = 0x86dd;
        // Protocol 0: the socket hears nothing until the filter is in place and it is
        // bound.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), None)?;
        let ignore = libc::PACKET_IGNORE_OUTGOING;
        crate::socket::set_int(socket.as_fd(), libc::SOL_PACKET, ignore, 1)?;
        socket.attach_filter(filter)?;
        socket.set_recv_buffer_size(queue)?;
        let protocol = match family {
            Family::V4 => ETH_P_IP,
            Family::V6 => ETH_P_IPV6,
        };
        bind_to_interface(&socket, protocol, interface)?;
        SlowToClose::new(socket).map(Self)
    }

    /// Takes the datagrams that are queued, in place of what was in the batch. `read` finds one in
    /// the room of a packet, whose length it gets. Tells how many packets there were.
    ///
    /// # Errors
    /// Those of recvmmsg(2); `WouldBlock` if there is nothing.
    pub fn receive_batch(
        &self,
        batch: &mut Batch,
        read: impl FnMut(&mut [u8], usize) -> Option<(SocketAddr, SocketAddr, Range<usize>)>,
    ) -> io::Result<usize> {
        batch.receive_packets(self.0.as_fd(), read)
    }

    /// The next copy, from its IP header on; `WouldBlock` if there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

/// Sends whole packets into the jail, marked so that its filter lets them pass.
#[derive(Debug)]
pub struct Injector {
    v4: Socket,
    /// None if the kernel has no IPv6.
    v6: Option<Socket>,
}

impl Injector {
    pub fn open() -> io::Result<Self> {
        // This protocol means that the sender writes the IP header.
        const IPPROTO_RAW: i32 = 255;
        let open = |domain| {
            let kind = Type::RAW.nonblocking();
            let socket = Socket::new(domain, kind, Some(Protocol::from(IPPROTO_RAW)))?;
            socket.set_mark(PASS_MARK)?;
            Ok::<_, io::Error>(socket)
        };
        let v6 = match open(Domain::IPV6) {
            Err(error) if is_missing_family(&error) => None,
            opened => Some(opened?),
        };
        Ok(Self {
            v4: open(Domain::IPV4)?,
            v6,
        })
    }

    /// A packet that the jail's kernel does not take now is lost, as on any network: who waits for
    /// it tries again.
    pub fn send(&self, packet: &[u8], to: IpAddr) {
        let v4 = Some(&self.v4);
        let socket = if to.is_ipv4() { v4 } else { self.v6.as_ref() };
        let to = SocketAddr::new(to, 0).into();
        let _ = socket.map(|socket| socket.send_to(packet, &to));
    }
}

fn bind_to_interface(socket: &Socket, protocol: u16, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).expect("a small constant"),
        sll_protocol: protocol.to_be(),
        sll_ifindex: i32::try_from(index).expect("interface indices are small"),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = libc::socklen_t::try_from(size_of_val(&address)).expect("small");
    // SAFETY: the kernel reads `length` bytes from the pointer during the call; it
    // points at `address`, a live local of just that size.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    Errno::result(result)?;
    Ok(())
}
