//! IP headers: finding the payload of a packet, and building new packets.
//!
//! Reading is strict where the kernel that made the packet, or will get it
//! back, is strict too: a fragment, a source route or a damaged header is
//! refused, because then the addresses in the header are not the whole truth
//! about where the packet goes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Malformed;
use super::checksum::{Sum, with_checksum, write_at};
use crate::cursor::Cursor;

pub(super) const HOP_BY_HOP: u8 = 0;
pub(super) const ROUTING: u8 = 43;
pub(super) const FRAGMENT: u8 = 44;
pub(super) const DESTINATION_OPTIONS: u8 = 60;

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

    /// `header`, which takes this path, for `length` bytes after it.
    pub(super) fn header_before(&self, header: &[u8], length: usize) -> Vec<u8> {
        let total = header.len().saturating_add(length);
        let mut header = header.to_vec();
        match self {
            Path::V4 { .. } => {
                write_at(&mut header, 2, field(total));
                with_checksum(header, 10, |zeroed| Sum::default().add(zeroed))
            }
            Path::V6 { .. } => {
                write_at(&mut header, 4, field(total.saturating_sub(V6_HEADER)));
                header
            }
        }
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

/// A packet cut behind its IP header, of which only the lengths were checked.
pub(super) struct Packet<'a> {
    pub(super) path: Path,
    /// Of the message, or of IPv6's first extension header.
    pub(super) protocol: u8,
    /// IPv4's flags and offset. IPv6 has an extension header for them.
    pub(super) fragment: u16,
    /// With IPv4's options, without IPv6's extension headers.
    header: &'a [u8],
    /// Without padding of the link.
    pub(super) body: &'a [u8],
}

impl<'a> Packet<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(bytes);
        let [first, _] = fields.array()?; // and type of service or traffic class
        let (path, protocol, fragment, start, total) = match first >> 4 {
            4 => {
                let total = usize::from(fields.u16()?);
                fields.take(2)?; // identification
                let fragment = fields.u16()?;
                let [_, protocol, _, _] = fields.array()?; // time to live, checksum
                let from = fields.array::<4>()?.into();
                let to = fields.array::<4>()?.into();
                let start = usize::from(first & 0x0f).saturating_mul(4);
                (Path::V4 { from, to }, protocol, fragment, start, total)
            }
            6 => {
                fields.take(2)?; // flow label
                let total = usize::from(fields.u16()?).saturating_add(V6_HEADER);
                let [protocol, _] = fields.array()?; // hop limit
                let from = fields.array::<16>()?.into();
                let to = fields.array::<16>()?.into();
                (Path::V6 { from, to }, protocol, 0, V6_HEADER, total)
            }
            other => return Err(Malformed::Version(other)),
        };
        if start < fields.position() {
            return Err(Malformed::Length);
        }
        Ok(Self {
            path,
            protocol,
            fragment,
            header: bytes.get(..start).ok_or(Malformed::Short)?,
            body: bytes.get(start..total).ok_or(Malformed::Length)?,
        })
    }
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
        let packet = Packet::read(bytes)?;
        let mut protocol = packet.protocol;
        let mut body = Cursor::new(packet.body);
        if let Path::V4 { .. } = packet.path {
            // More-fragments flag and offset; not the reserved and don't-fragment bits.
            if packet.fragment & 0x3fff != 0 {
                return Err(Malformed::Fragment);
            }
            refuse_source_route(Cursor::new(packet.header).jump(V4_HEADER)?)?;
            // The kernel always fills this one in, also where it leaves TCP's to the
            // device; it would drop a packet that has it wrong, so we do not mend it.
            if !Sum::default().add(packet.header).holds() {
                return Err(Malformed::Checksum);
            }
        } else {
            // RFC 8200 §4.1: hop-by-hop options only straight after the fixed header.
            if protocol == HOP_BY_HOP {
                protocol = skip_extension(&mut body, protocol)?;
            }
            while matches!(protocol, ROUTING | DESTINATION_OPTIONS) {
                protocol = skip_extension(&mut body, protocol)?;
            }
        }
        if protocol != packet.path.number(wanted) {
            return Err(Malformed::Protocol(protocol));
        }
        let start = packet.header.len().saturating_add(body.position());
        Ok(Self {
            path: packet.path,
            header: bytes.get(..start).unwrap_or_default(),
            message: body.rest(),
        })
    }
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

/// Steps over an extension header that leads nowhere else, and says what follows it.
fn skip_extension(cursor: &mut Cursor<'_>, kind: u8) -> Result<u8, Malformed> {
    let ([next, _, segments_left], _) = extension(cursor)?;
    if kind == ROUTING && segments_left != 0 {
        return Err(Malformed::SourceRoute);
    }
    Ok(next)
}

/// An extension header: what follows it, its type and segments left if it is one for routing,
/// and the rest.
pub(super) fn extension<'a>(cursor: &mut Cursor<'a>) -> Result<([u8; 3], &'a [u8]), Malformed> {
    let [next, units, kind, segments_left] = cursor.array()?;
    // Counted in units of 8 bytes without the first; 4 of those are read.
    let rest = cursor.take(usize::from(units).saturating_mul(8).saturating_add(4))?;
    Ok(([next, kind, segments_left], rest))
}
