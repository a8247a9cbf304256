//! ICMP destination-unreachable messages: how a program inside learns why its
//! packet got nowhere.
//!
//! The kernel finds the socket to tell by what the message quotes, so the quote
//! starts with the IP header of the packet in question.

use std::net::{IpAddr, SocketAddr};

use super::ip::{Path, Transport};

/// RFC 1812 §4.3.2.3: an ICMP error is at most this long, its IP header included.
const ICMP_LIMIT: usize = 576;
/// RFC 4443 §3.1: an `ICMPv6` error fits the minimum MTU.
const ICMPV6_LIMIT: usize = 1280;

/// The reason that an ICMP destination-unreachable message gives.
///
/// What `connect` inside then fails with, on Linux:
///
/// | | IPv4 | IPv6 |
/// |---|---|---|
/// | `Network` | `ENETUNREACH` | `ENETUNREACH` |
/// | `Host` | `EHOSTUNREACH` | `EHOSTUNREACH` |
/// | `Port` | `ECONNREFUSED` | `ECONNREFUSED` |
/// | `AdminProhibited` | `EHOSTUNREACH` | `EACCES` |
///
/// A connected UDP socket gets the same from its next call; but of `Network` and
/// `Host` it hears only if it asked for errors (`IP_RECVERR`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    Network,
    Host,
    Port,
    AdminProhibited,
}

impl Unreachable {
    /// RFC 792 and RFC 1812 §5.2.7.1.
    fn icmp_code(self) -> u8 {
        match self {
            Unreachable::Network => 0,
            Unreachable::Host => 1,
            Unreachable::Port => 3,
            Unreachable::AdminProhibited => 13,
        }
    }

    /// RFC 4443 §3.1.
    fn icmpv6_code(self) -> u8 {
        match self {
            Unreachable::Network => 0,
            Unreachable::AdminProhibited => 1,
            Unreachable::Host => 3,
            Unreachable::Port => 4,
        }
    }
}

/// The answer to a UDP datagram of `length` bytes of payload that `client` sent
/// to `destination`, said in the destination's name. `None` if there is no such
/// datagram: the addresses are of two families, or it would be too long.
///
/// A socket hands out payloads only, so the quoted headers are made up. They
/// end with UDP's, whose checksum is left open: the kernel asks for no more.
pub fn udp_unreachable(
    client: SocketAddr,
    destination: SocketAddr,
    length: usize,
    why: Unreachable,
) -> Option<Vec<u8>> {
    let path = match (client.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => Path::V4 { from, to },
        (IpAddr::V6(from), IpAddr::V6(to)) => Path::V6 { from, to },
        _ => return None,
    };
    let length = length.checked_add(8).filter(|&all| all <= path.room())?;
    let mut udp = Vec::with_capacity(8);
    udp.extend(client.port().to_be_bytes());
    udp.extend(destination.port().to_be_bytes());
    udp.extend(u16::try_from(length).ok()?.to_be_bytes());
    udp.extend([0, 0]);
    let header = path.header(path.number(Transport::Udp), length);
    Some(about(path, &header, &udp, why))
}

/// The answer to the packet of `header` and `message` that took this path, with
/// as much of it quoted as the standards allow.
pub(super) fn about(path: Path, header: &[u8], message: &[u8], why: Unreachable) -> Vec<u8> {
    // Both kinds of message have 8 bytes before the quote.
    let (kind, code, room) = match path {
        Path::V4 { .. } => (3, why.icmp_code(), ICMP_LIMIT.saturating_sub(20 + 8)),
        Path::V6 { .. } => (1, why.icmpv6_code(), ICMPV6_LIMIT.saturating_sub(40 + 8)),
    };
    let mut answer = vec![kind, code, 0, 0, 0, 0, 0, 0];
    answer.extend(header.iter().chain(message).take(room));
    path.reversed().packet(Transport::Icmp, answer)
}
