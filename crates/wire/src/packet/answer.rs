//! What the gate puts on the wire for a SYN it held. Every packet has its
//! checksums complete, as a raw socket needs it.

use super::checksum::Sum;
use super::ip::{ICMP, ICMPV6, Path, TCP};
use super::{ACK, RST, Syn};

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

impl Syn<'_> {
    /// The packet itself, to be sent on its way.
    #[must_use]
    pub fn complete(&self) -> Vec<u8> {
        let mut packet = self.header.to_vec();
        packet.extend(with_checksum(self.segment, 16, |zeroed| {
            self.path.pseudo_header(TCP, zeroed.len()).add(zeroed)
        }));
        packet
    }

    /// "Connection refused", said by the destination.
    #[must_use]
    pub fn reset(&self) -> Vec<u8> {
        // The SYN takes one number of the sequence; the data one per byte. No
        // packet has more data than fits 16 bits.
        let length = u32::try_from(self.data).unwrap_or(u32::MAX).wrapping_add(1);
        let mut segment = Vec::with_capacity(20);
        segment.extend(self.destination_port.to_be_bytes());
        segment.extend(self.source_port.to_be_bytes());
        segment.extend(0_u32.to_be_bytes());
        segment.extend(self.sequence.wrapping_add(length).to_be_bytes());
        segment.extend([0x50, RST | ACK]);
        segment.extend([0; 6]); // window, checksum, urgent pointer

        let back = self.path.reversed();
        let segment = with_checksum(&segment, 16, |zeroed| {
            back.pseudo_header(TCP, zeroed.len()).add(zeroed)
        });
        back.packet(TCP, &segment)
    }

    /// "No way there", said in the destination's name. It quotes as much of the
    /// packet as the standards allow.
    #[must_use]
    pub fn unreachable(&self, why: Unreachable) -> Vec<u8> {
        let back = self.path.reversed();
        let (kind, code, room, protocol) = match back {
            Path::V4 { .. } => (3, why.icmp_code(), ICMP_LIMIT.saturating_sub(28), ICMP),
            Path::V6 { .. } => (
                1,
                why.icmpv6_code(),
                ICMPV6_LIMIT.saturating_sub(48),
                ICMPV6,
            ),
        };
        let mut message = vec![kind, code, 0, 0, 0, 0, 0, 0];
        message.extend(self.header.iter().chain(self.segment).take(room));

        let message = with_checksum(&message, 2, |zeroed| match back {
            Path::V4 { .. } => Sum::default().add(zeroed),
            Path::V6 { .. } => back.pseudo_header(ICMPV6, zeroed.len()).add(zeroed),
        });
        back.packet(protocol, &message)
    }
}

/// A copy of `message` whose checksum, at `offset`, is what `sum` makes of the
/// message with that field zeroed.
fn with_checksum(message: &[u8], offset: usize, sum: impl Fn(&[u8]) -> Sum) -> Vec<u8> {
    let mut message = message.to_vec();
    write_at(&mut message, offset, [0, 0]);
    let value = sum(&message).finish();
    write_at(&mut message, offset, value);
    message
}

fn write_at(message: &mut [u8], offset: usize, value: [u8; 2]) {
    let field = message.get_mut(offset..).and_then(<[u8]>::first_chunk_mut);
    if let Some(field) = field {
        *field = value;
    }
}
