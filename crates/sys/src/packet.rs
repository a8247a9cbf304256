//! The two ends of the held SYN: a tap that copies connection attempts off `lo`, and
//! a raw socket that puts packets back.
//!
//! Both must be made by a thread that is inside the jail's network namespace.

use std::{
    io::{self, Read},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
};

use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use crate::rtnl::LOOPBACK;

/// The mark that lets a packet pass the jail's filter. Setting it takes CAP_NET_ADMIN
/// or CAP_NET_RAW over the jail, which nothing inside has.
pub const PASS_MARK: u32 = 0x5354_4b44;

const ETH_P_IP: u16 = 0x0800;

/// Copies of the unmarked IPv4 TCP SYNs on `lo` whose destination is not the jail's
/// own.
#[derive(Debug)]
pub struct SynTap(Socket);

impl SynTap {
    /// `own` is the jail's address besides 127.0.0.0/8.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open(own: Ipv4Addr) -> io::Result<Self> {
        // Protocol 0: the socket hears nothing until the filter is in place and it is
        // bound to `lo`.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), None)?;
        crate::socket::set_int(
            socket.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            1,
        )?;
        socket.attach_filter(&foreign_syn_filter(own))?;
        bind_to_interface(&socket, ETH_P_IP, LOOPBACK)?;
        Ok(Self(socket))
    }

    /// The next copy, from its IP header on; `WouldBlock` if there is none.
    ///
    /// # Errors
    /// Those of recv(2).
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}

impl AsRawFd for SynTap {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for SynTap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sends whole IPv4 packets into the jail, marked so that its filter lets them pass.
#[derive(Debug)]
pub struct Injector(Socket);

impl Injector {
    /// # Errors
    /// If the kernel refuses.
    pub fn open() -> io::Result<Self> {
        const IPPROTO_RAW: i32 = 255;
        let socket = Socket::new(
            Domain::IPV4,
            Type::RAW.nonblocking(),
            Some(Protocol::from(IPPROTO_RAW)),
        )?;
        socket.set_header_included_v4(true)?;
        socket.set_mark(PASS_MARK)?;
        Ok(Self(socket))
    }

    /// # Errors
    /// Those of send(2). Nothing is sent in part.
    pub fn send(&self, packet: &[u8], to: IpAddr) -> io::Result<()> {
        self.0.send_to(packet, &SocketAddr::new(to, 0).into())?;
        Ok(())
    }
}

/// Classic BPF over a packet that starts at its IP header: what passes is a first
/// fragment of an unmarked IPv4 TCP packet with SYN set and ACK, RST, FIN clear, whose
/// destination is neither in 127.0.0.0/8 nor `own`.
fn foreign_syn_filter(own: Ipv4Addr) -> Vec<SockFilter> {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_BYTE_INDEXED: u16 = 0x50;
    const LOAD_X_HEADER_LENGTH: u16 = 0xb1;
    const AND: u16 = 0x54;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const MARK: u32 = 0xffff_f000 + 20;
    const TAKE: u32 = 0xffff;

    // (code, operand, jump to "ignore" if the comparison is false / true)
    enum Next {
        Go,
        IgnoreUnless,
        IgnoreIf,
    }
    use Next::{Go, IgnoreIf, IgnoreUnless};
    let steps = [
        (LOAD_WORD, MARK, Go),
        (JUMP_EQUAL, PASS_MARK, IgnoreIf),
        (LOAD_BYTE, 0, Go),
        (AND, 0xf0, Go),
        (JUMP_EQUAL, 0x40, IgnoreUnless),
        (LOAD_BYTE, 9, Go),
        (JUMP_EQUAL, 6, IgnoreUnless),
        (LOAD_HALF, 6, Go),
        (AND, 0x1fff, Go),
        (JUMP_EQUAL, 0, IgnoreUnless),
        (LOAD_X_HEADER_LENGTH, 0, Go),
        (LOAD_BYTE_INDEXED, 13, Go),
        (AND, 0b1_0111, Go),
        (JUMP_EQUAL, 0b0_0010, IgnoreUnless),
        (LOAD_WORD, 16, Go),
        (JUMP_EQUAL, u32::from(own), IgnoreIf),
        (AND, 0xff00_0000, Go),
        (JUMP_EQUAL, 0x7f00_0000, IgnoreIf),
        (RETURN, TAKE, Go),
        (RETURN, 0, Go),
    ];
    let last = steps.len() - 1;
    steps
        .into_iter()
        .enumerate()
        .map(|(at, (code, operand, next))| {
            let ignore = u8::try_from(last - at).map_or(0, |distance| distance.saturating_sub(1));
            let (if_true, if_false) = match next {
                Go => (0, 0),
                IgnoreUnless => (0, ignore),
                IgnoreIf => (ignore, 0),
            };
            SockFilter::new(code, if_true, if_false, operand)
        })
        .collect()
}

/// Binds a packet socket to one interface and one protocol.
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
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
