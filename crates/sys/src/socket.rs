//! Socket options that neither `rustix` nor `socket2` knows.

use std::{
    io::{self, IoSliceMut},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

use nix::{
    errno::Errno,
    sys::socket::{ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sockopt::PeerCredentials},
};

use crate::transparent::Family;

/// Who is at the other end of a Unix socket, by the kernel's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The process that connected, or that listens. None if it is in no process namespace of the
    /// caller's: not in its own, nor in one below.
    pub process: Option<u32>,
    /// Its user then.
    pub user: u32,
}

/// # Errors
/// If it is no connected Unix socket.
pub fn peer(socket: &impl AsFd) -> io::Result<Peer> {
    // Not rustix's, which takes 0 for a process.
    let peer = getsockopt(socket, PeerCredentials)?;
    Ok(Peer {
        process: u32::try_from(peer.pid())
            .ok()
            .filter(|process| *process != 0),
        user: peer.uid(),
    })
}

/// Makes a datagram socket tell all ICMP errors, not only those that the kernel holds for
/// final. They are queued beside the data and have to be fetched from there, too.
pub fn report_errors(socket: impl AsFd, family: Family) -> io::Result<()> {
    let (level, name) = match family {
        Family::V4 => (libc::SOL_IP, libc::IP_RECVERR),
        Family::V6 => (libc::SOL_IPV6, libc::IPV6_RECVERR),
    };
    set_int(socket.as_fd(), level, name, 1)
}

/// What an ICMP error said: its code within "destination unreachable" of the family. Other
/// types, and errors of this host itself, have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedError {
    pub unreachable_code: Option<u8>,
    /// The start of what had been sent, as the error quotes it.
    pub quoted: Vec<u8>,
}

/// The next error that [`report_errors`] queued, if there is one.
///
/// # Errors
/// Those of recvmsg(2); `WouldBlock` if there is none.
pub fn take_error(socket: impl AsFd) -> io::Result<QueuedError> {
    const ICMP_UNREACHABLE: u8 = 3;
    const ICMPV6_UNREACHABLE: u8 = 1;
    let mut quoted = [0; 64];
    let mut slices = [IoSliceMut::new(&mut quoted)];
    let mut control = nix::cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let fd = socket.as_fd().as_raw_fd();
    let message = recvmsg::<()>(fd, &mut slices, Some(&mut control), flags)?;
    let code = message.cmsgs()?.find_map(|control| {
        let (error, unreachable) = match control {
            ControlMessageOwned::Ipv4RecvErr(error, _) => (error, ICMP_UNREACHABLE),
            ControlMessageOwned::Ipv6RecvErr(error, _) => (error, ICMPV6_UNREACHABLE),
            _ => return None,
        };
        let from_network = matches!(
            error.ee_origin,
            libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6
        );
        (from_network && error.ee_type == unreachable).then_some(error.ee_code)
    });
    let length = message.bytes;
    Ok(QueuedError {
        unreachable_code: code,
        quoted: quoted.get(..length).unwrap_or_default().to_vec(),
    })
}

/// How many packets have found the socket's queue full so far, or were not taken for another
/// reason of the kernel's. It starts again after 2³².
pub fn dropped(socket: impl AsFd) -> io::Result<u32> {
    // Of the kernel's list, which grows at its end, the ninth counts the drops.
    let mut values = [0_u32; 9];
    let mut length = libc::socklen_t::try_from(size_of_val(&values)).expect("few bytes");
    // SAFETY: the kernel writes at most `length` bytes to the pointer during the call, and how
    // many to `length`; they point at `values`, a live local of just that size, for which any
    // bytes are valid, and at `length`. The descriptor is borrowed, so it is open.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            (&raw mut values).cast(),
            &raw mut length,
        )
    };
    Errno::result(result)?;
    let [.., drops] = values;
    Ok(drops)
}

pub(crate) fn set_int(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of_val(&value)).expect("four bytes");
    // SAFETY: the kernel reads `length` bytes from the pointer during the call; it
    // points at `value`, a live local of just that size. The descriptor is borrowed,
    // so it is open.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            length,
        )
    };
    Errno::result(result)?;
    Ok(())
}
