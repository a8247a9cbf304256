//! A refused connection attempt, read off the kernel's own answer to it.

use std::net::SocketAddr;

use super::Malformed;
use super::ip::{Datagram, Transport};
use super::syn::{ACK, FIN, RST, SYN};
use crate::cursor::Cursor;

/// An attempt that met nobody: what a reset with sequence number zero answers, because a
/// segment without an acknowledgement leaves no other number to answer with (RFC 9293,
/// 3.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    pub client: SocketAddr,
    /// Where nobody listens.
    pub destination: SocketAddr,
}

impl Refused {
    /// Reads a packet that starts at its IP header.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let Datagram { path, message, .. } = Datagram::parse(bytes, Transport::Tcp)?;
        let mut fields = Cursor::new(message);
        let source_port = fields.u16()?;
        let destination_port = fields.u16()?;
        let sequence = fields.u32()?;
        fields.take(5)?; // acknowledgement number, offset
        let flags = fields.u8()?;
        if source_port == 0 || destination_port == 0 {
            return Err(Malformed::PortZero);
        }
        if flags & (FIN | SYN | RST | ACK) != RST | ACK || sequence != 0 {
            return Err(Malformed::NotRefusal(flags));
        }
        Ok(Self {
            client: SocketAddr::new(path.to(), destination_port),
            destination: SocketAddr::new(path.from(), source_port),
        })
    }
}
