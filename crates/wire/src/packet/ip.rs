//! IP headers: finding the payload of a packet, and building new packets.
//!
//! Reading is strict where the kernel that made the packet, or will get it
//! back, is strict too: a fragment, a source route or a damaged header is
//! refused, because then the addresses in the header are not the whole truth
//! about where the packet goes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Malformed;
use super::checksum::{Sum, with_checksum};
use crate::cursor::Cursor;

const IPV6_HOP_BY_HOP: u8 = 0;
const IPV6_ROUTING: u8 = 43;
const IPV6_DESTINATION_OPTIONS: u8 = 60;

const HOP_LIMIT: u8 = 64;
/// The fixed part of a header.
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;

/// What the packets that are read or built here carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
    /// `ICMPv6` on a path between IPv6 addresses.
    Icmp,
}

/// Where a packet comes from and goes to: both of one family, by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    V4 { from: Ipv4Addr, to: Ipv4Addr },
    V6 { from: Ipv6Addr, to: Ipv6Addr },
}

impl Path {
    pub(super) fn from(&self) -> IpAddr {
        match *self {
            Path::V4 { from, .. } => from.into(),
            Path::V6 { from, .. } => from.into(),
        }
    }

    pub(super) fn to(&self) -> IpAddr {
        match *self {
            Path::V4 { to, .. } => to.into(),
            Path::V6 { to, .. } => to.into(),
        }
    }

    pub(super) fn reversed(self) -> Self {
        match self {
            Path::V4 { from, to } => Path::V4 { from: to, to: from },
            Path::V6 { from, to } => Path::V6 { from: to, to: from },
        }
    }

    /// The number by which an IP header names the protocol.
    pub(super) fn number(&self, transport: Transport) -> u8 {
        match (transport, self) {
            (Transport::Tcp, _) => 6,
            (Transport::Udp, _) => 17,
            (Transport::Icmp, Path::V4 { .. }) => 1,
            (Transport::Icmp, Path::V6 { .. }) => 58,
        }
    }

    /// The sum that the checksum of `message` is made from, its checksum field
    /// as it stands. All but ICMP over IPv4 count a pseudo-header in. The two
    /// families write length and protocol there in fields of different widths,
    /// which makes no difference to the sum.
    pub(super) fn sum(&self, transport: Transport, message: &[u8]) -> Sum {
        let addresses = match (self, transport) {
            (Path::V4 { .. }, Transport::Icmp) => return Sum::default().add(message),
            (Path::V4 { from, to }, _) => Sum::default().add(&from.octets()).add(&to.octets()),
            (Path::V6 { from, to }, _) => Sum::default().add(&from.octets()).add(&to.octets()),
        };
        addresses
            .add(&(message.len() as u64).to_be_bytes())
            .add(&[0, self.number(transport)])
            .add(message)
    }

    /// `message` with the checksum that it needs on this path.
    pub(super) fn sealed(&self, transport: Transport, message: Vec<u8>) -> Vec<u8> {
        let field = match transport {
            Transport::Tcp => 16,
            Transport::Udp => 6,
            Transport::Icmp => 2,
        };
        with_checksum(message, field, |zeroed| self.sum(transport, zeroed))
    }

    /// The longest message that one packet can carry.
    pub(super) fn room(&self) -> usize {
        let longest = usize::from(u16::MAX);
        match self {
            Path::V4 { .. } => longest.saturating_sub(V4_HEADER),
            Path::V6 { .. } => longest, // here the field does not count the header
        }
    }

    /// A header for `length` bytes after it, at most [`Path::room`].
    pub(super) fn header(&self, protocol: u8, length: usize) -> Vec<u8> {
        let mut header = Vec::with_capacity(V6_HEADER.saturating_add(length));
        match self {
            Path::V4 { from, to } => {
                header.extend([0x45, 0]);
                header.extend(field(length.saturating_add(V4_HEADER)));
                header.extend([0, 0, 0x40, 0]); // identification 0, don't fragment
                header.extend([HOP_LIMIT, protocol]);
                let sum = Sum::default()
                    .add(&header)
                    .add(&from.octets())
                    .add(&to.octets());
                header.extend(sum.finish());
                header.extend(from.octets());
                header.extend(to.octets());
            }
            Path::V6 { from, to } => {
                header.extend([0x60, 0, 0, 0]);
                header.extend(field(length));
                header.extend([protocol, HOP_LIMIT]);
                header.extend(from.octets());
                header.extend(to.octets());
            }
        }
        header
    }

    /// A whole packet along this path, its checksums filled in. `message` must
    /// fit [`Path::room`].
    pub(super) fn packet(&self, transport: Transport, message: Vec<u8>) -> Vec<u8> {
        let mut packet = self.header(self.number(transport), message.len());
        packet.extend(self.sealed(transport, message));
        packet
    }
}

fn field(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}

/// A packet cut at the seam between network and transport layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram<'a> {
    pub(super) path: Path,
    /// The IP header with its options or extension headers.
    pub(super) header: &'a [u8],
    /// The message of the layer above, without padding of the link.
    pub(super) message: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a packet that carries the `wanted` protocol; any other is refused.
    pub(super) fn parse(bytes: &'a [u8], wanted: Transport) -> Result<Self, Malformed> {
        match bytes.first().ok_or(Malformed::Short)? >> 4 {
            4 => parse_v4(bytes, wanted),
            6 => parse_v6(bytes, wanted),
            other => Err(Malformed::Version(other)),
        }
    }
}

fn parse_v4(bytes: &[u8], wanted: Transport) -> Result<Datagram<'_>, Malformed> {
    let header_length =
        usize::from(bytes.first().ok_or(Malformed::Short)? & 0x0f).saturating_mul(4);
    if header_length < V4_HEADER {
        return Err(Malformed::Length);
    }
    let (header, _) = bytes
        .split_at_checked(header_length)
        .ok_or(Malformed::Short)?;

    let mut fields = Cursor::new(header);
    fields.take(2)?; // version, header length, type of service
    let total = usize::from(fields.u16()?);
    fields.take(2)?; // identification
    // More-fragments flag and offset; not the reserved and don't-fragment bits.
    if fields.u16()? & 0x3fff != 0 {
        return Err(Malformed::Fragment);
    }
    fields.take(1)?; // time to live
    let protocol = fields.u8()?;
    fields.take(2)?; // checksum
    let path = Path::V4 {
        from: fields.array::<4>()?.into(),
        to: fields.array::<4>()?.into(),
    };
    refuse_source_route(fields)?;

    // The kernel always fills this one in, also where it leaves TCP's to the
    // device; it would drop a packet that has it wrong, so we do not mend it.
    if !Sum::default().add(header).holds() {
        return Err(Malformed::Checksum);
    }
    if protocol != path.number(wanted) {
        return Err(Malformed::Protocol(protocol));
    }
    let message = bytes.get(header_length..total).ok_or(Malformed::Length)?;
    Ok(Datagram {
        path,
        header,
        message,
    })
}

/// With a source route the header names the next hop, and the option the
/// destination: what the gate would judge is not where the packet goes.
fn refuse_source_route(mut options: Cursor<'_>) -> Result<(), Malformed> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const LOOSE_SOURCE_ROUTE: u8 = 131;
    const STRICT_SOURCE_ROUTE: u8 = 137;
    while !options.is_at_end() {
        match options.u8()? {
            END => break,
            NO_OPERATION => {}
            LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE => return Err(Malformed::SourceRoute),
            _ => {
                let body = options.u8()?.checked_sub(2).ok_or(Malformed::Length)?;
                options.take(usize::from(body))?;
            }
        }
    }
    Ok(())
}

fn parse_v6(bytes: &[u8], wanted: Transport) -> Result<Datagram<'_>, Malformed> {
    let mut fields = Cursor::new(bytes);
    fields.take(4)?; // version, traffic class, flow label
    let payload_length = usize::from(fields.u16()?);
    let mut next = fields.u8()?;
    fields.take(1)?; // hop limit
    let path = Path::V6 {
        from: fields.array::<16>()?.into(),
        to: fields.array::<16>()?.into(),
    };

    let total = fields.position().saturating_add(payload_length);
    let packet = bytes.get(..total).ok_or(Malformed::Length)?;
    let mut extensions = Cursor::new(packet).jump(fields.position())?;
    // RFC 8200 §4.1: hop-by-hop options only straight after the fixed header.
    if next == IPV6_HOP_BY_HOP {
        next = skip_extension(&mut extensions, next)?;
    }
    while matches!(next, IPV6_ROUTING | IPV6_DESTINATION_OPTIONS) {
        next = skip_extension(&mut extensions, next)?;
    }
    if next != path.number(wanted) {
        return Err(Malformed::Protocol(next));
    }
    Ok(Datagram {
        path,
        header: extensions.since(0),
        message: extensions.rest(),
    })
}

/// Steps over one extension header and says what follows it.
fn skip_extension(cursor: &mut Cursor<'_>, kind: u8) -> Result<u8, Malformed> {
    let [next, units, _type, segments_left] = cursor.array()?;
    if kind == IPV6_ROUTING && segments_left != 0 {
        return Err(Malformed::SourceRoute);
    }
    // Counted in units of 8 bytes without the first; 4 of those are read.
    cursor.take(usize::from(units).saturating_mul(8).saturating_add(4))?;
    Ok(next)
}
