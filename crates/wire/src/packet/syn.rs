//! The held SYN, and what the gate puts on the wire for it.

use std::net::SocketAddr;

use super::ip::{Datagram, Path, Transport};
use super::{Malformed, Unreachable, unreachable};
use crate::cursor::{Cursor, Short};

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const ACK: u8 = 0x10;

/// The first packet of a TCP connection, parsed once and kept as long as it is held.
#[derive(Debug, Clone)]
pub struct Syn {
    path: Path,
    /// The IP header with its options or extension headers.
    header: Vec<u8>,
    /// The TCP header with its options. The data of TCP fast open, which can be tens of thousands of
    /// bytes, is not kept: nobody inside takes it, and the kernel that sent it sends it again.
    segment: Vec<u8>,
    source_port: u16,
    destination_port: u16,
    sequence: u32,
    /// How long the data was.
    data: usize,
}

impl Syn {
    /// Reads a packet that starts at its IP header.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let Datagram {
            path,
            header,
            message: segment,
        } = Datagram::parse(bytes, Transport::Tcp)?;

        let mut fields = Cursor::new(segment);
        let source_port = fields.u16()?;
        let destination_port = fields.u16()?;
        let sequence = fields.u32()?;
        fields.take(4)?; // acknowledgement number: means nothing without ACK
        let offset = usize::from(fields.u8()? >> 4).saturating_mul(4);
        let flags = fields.u8()?;
        fields.take(6)?; // window, checksum, urgent pointer

        // Also refuses an offset inside the fixed header.
        let options = offset
            .checked_sub(fields.position())
            .ok_or(Malformed::Length)?;
        fields.take(options).map_err(|Short| Malformed::Length)?;
        if source_port == 0 || destination_port == 0 {
            return Err(Malformed::PortZero);
        }
        if flags & (FIN | SYN | RST | ACK) != SYN {
            return Err(Malformed::NotSyn(flags));
        }
        let segment = segment.get(..offset).ok_or(Malformed::Length)?;
        Ok(Self {
            path,
            header: path.header_before(header, segment.len()),
            segment: segment.to_vec(),
            source_port,
            destination_port,
            sequence,
            data: fields.rest().len(),
        })
    }

    pub fn source(&self) -> SocketAddr {
        SocketAddr::new(self.path.from(), self.source_port)
    }

    pub fn destination(&self) -> SocketAddr {
        SocketAddr::new(self.path.to(), self.destination_port)
    }

    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Whether it is signed with a key (TCP MD5, TCP-AO). A kernel without the key takes no such packet.
    pub fn is_signed(&self) -> bool {
        const END: u8 = 0;
        const PADDING: u8 = 1;
        const SIGNATURES: [u8; 2] = [19, 29];
        let mut options = self.segment.get(20..).unwrap_or_default();
        while let [kind, rest @ ..] = options {
            if SIGNATURES.contains(kind) {
                return true;
            }
            options = match (*kind, rest) {
                (END, _) | (_, []) => return false,
                (PADDING, rest) => rest,
                // Its length counts the kind as well.
                (_, [length, ..]) => options
                    .get(usize::from(*length).max(2)..)
                    .unwrap_or_default(),
            };
        }
        false
    }

    /// The packet itself without data, to be sent on its way.
    pub fn complete(&self) -> Vec<u8> {
        let mut packet = self.header.clone();
        packet.extend(self.path.sealed(Transport::Tcp, self.segment.clone()));
        packet
    }

    /// "Connection refused", said by the destination.
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

        self.path.reversed().packet(Transport::Tcp, segment)
    }

    /// "No way there", said in the destination's name.
    pub fn unreachable(&self, why: Unreachable) -> Vec<u8> {
        unreachable::about(self.path, &self.header, &self.segment, why)
    }
}
