//! IP headers: finding the payload of a packet, and building new packets.
//!
//! Reading is strict where the kernel that made the packet, or will get it
//! back, is strict too: a fragment, a source route or a damaged header is
//! refused, because then the addresses in the header are not the whole truth
//! about where the packet goes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Malformed;
use super::checksum::Sum;
use crate::cursor::Cursor;

pub(super) const TCP: u8 = 6;
pub(super) const ICMP: u8 = 1;
pub(super) const ICMPV6: u8 = 58;

const IPV6_HOP_BY_HOP: u8 = 0;
const IPV6_ROUTING: u8 = 43;
const IPV6_DESTINATION_OPTIONS: u8 = 60;

const HOP_LIMIT: u8 = 64;

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

    /// The pseudo-header that TCP and `ICMPv6` checksums start from. The two
    /// families write length and protocol in fields of different widths, which
    /// makes no difference to the sum.
    pub(super) fn pseudo_header(&self, protocol: u8, length: usize) -> Sum {
        let addresses = match self {
            Path::V4 { from, to } => Sum::default().add(&from.octets()).add(&to.octets()),
            Path::V6 { from, to } => Sum::default().add(&from.octets()).add(&to.octets()),
        };
        addresses
            .add(&(length as u64).to_be_bytes())
            .add(&[0, protocol])
    }

    /// A whole packet along this path. `payload` must fit one: ours are answers
    /// of at most 1280 bytes.
    pub(super) fn packet(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = match self {
            Path::V4 { from, to } => {
                let mut header = Vec::with_capacity(20_usize.saturating_add(payload.len()));
                header.extend([0x45, 0]);
                header.extend(field(payload.len().saturating_add(20)));
                header.extend([0, 0, 0x40, 0]); // identification 0, don't fragment
                header.extend([HOP_LIMIT, protocol]);
                let sum = Sum::default()
                    .add(&header)
                    .add(&from.octets())
                    .add(&to.octets());
                header.extend(sum.finish());
                header.extend(from.octets());
                header.extend(to.octets());
                header
            }
            Path::V6 { from, to } => {
                let mut header = Vec::with_capacity(40_usize.saturating_add(payload.len()));
                header.extend([0x60, 0, 0, 0]);
                header.extend(field(payload.len()));
                header.extend([protocol, HOP_LIMIT]);
                header.extend(from.octets());
                header.extend(to.octets());
                header
            }
        };
        packet.extend_from_slice(payload);
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
    /// The TCP segment, without padding of the link.
    pub(super) segment: &'a [u8],
}

impl<'a> Datagram<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match bytes.first().ok_or(Malformed::Short)? >> 4 {
            4 => parse_v4(bytes),
            6 => parse_v6(bytes),
            other => Err(Malformed::Version(other)),
        }
    }
}

fn parse_v4(bytes: &[u8]) -> Result<Datagram<'_>, Malformed> {
    let header_length =
        usize::from(bytes.first().ok_or(Malformed::Short)? & 0x0f).saturating_mul(4);
    if header_length < 20 {
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
    if protocol != TCP {
        return Err(Malformed::Protocol(protocol));
    }
    let segment = bytes.get(header_length..total).ok_or(Malformed::Length)?;
    Ok(Datagram {
        path,
        header,
        segment,
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

fn parse_v6(bytes: &[u8]) -> Result<Datagram<'_>, Malformed> {
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
    if next != TCP {
        return Err(Malformed::Protocol(next));
    }
    Ok(Datagram {
        path,
        header: extensions.since(0),
        segment: extensions.rest(),
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
