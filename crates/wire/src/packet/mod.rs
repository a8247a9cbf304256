//! Packets of the network layer: the held SYN and the answers to it.
//!
//! # Theory of operation
//!
//! The gate holds the first packet of each TCP connection: it sees a copy of the
//! SYN that a packet socket caught on the jail's loopback device, and nothing
//! else has answered yet. From that copy come all of the gate's possible moves:
//!
//! | the dial outside | the gate injects |
//! |---|---|
//! | succeeded | the same SYN, [`Syn::complete`], now marked to pass |
//! | was refused | [`Syn::reset`] |
//! | found no way, or the policy denies it | [`Syn::unreachable`] |
//!
//! Two facts about loopback shape the code. Its device claims to compute TCP
//! checksums, so the kernel leaves a partial one in the packet: it is neither
//! checked here nor trusted, but made anew. And a captured packet may be longer
//! than the IP header says: what follows is padding, and is cut.
//!
//! The TCP options are never parsed. They are between the kernel inside, which
//! wrote them, and the same kernel, which gets them back.

mod answer;
mod checksum;
mod ip;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

pub use answer::Unreachable;

use crate::cursor::{Cursor, Short};
use ip::{Datagram, Path};

/// Why bytes are not a SYN that the gate can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the packet ends inside a header")]
    Short,
    #[error("IP version {0}")]
    Version(u8),
    #[error("a length field contradicts the packet")]
    Length,
    #[error("the IP header checksum is wrong")]
    Checksum,
    #[error("the packet is a fragment")]
    Fragment,
    #[error("the packet asks for a source route")]
    SourceRoute,
    #[error("protocol or extension header {0}, not TCP")]
    Protocol(u8),
    #[error("a port is zero")]
    PortZero,
    #[error("TCP flags {0:#04x}, not those of a SYN")]
    NotSyn(u8),
}

impl From<Short> for Malformed {
    fn from(Short: Short) -> Self {
        Malformed::Short
    }
}

/// The first packet of a TCP connection.
#[derive(Debug, Clone, Copy)]
pub struct Syn<'a> {
    path: Path,
    /// The IP header with its options or extension headers.
    header: &'a [u8],
    /// The TCP header with its options, and the data (TCP fast open has some).
    segment: &'a [u8],
    source_port: u16,
    destination_port: u16,
    sequence: u32,
    /// How many bytes of data the segment carries.
    data: usize,
}

impl<'a> Syn<'a> {
    /// Reads a packet that starts at its IP header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let Datagram {
            path,
            header,
            segment,
        } = Datagram::parse(bytes)?;

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
        Ok(Self {
            path,
            header,
            segment,
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
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
