//! A datagram of UDP on its way, of which only the ends matter.

use std::net::SocketAddr;

use super::Malformed;
use super::ip::{Datagram, Transport};
use crate::cursor::Cursor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub client: SocketAddr,
    pub destination: SocketAddr,
}

impl Sent {
    /// Reads a packet that starts at its IP header.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let Datagram { path, message, .. } = Datagram::parse(bytes, Transport::Udp)?;
        let mut fields = Cursor::new(message);
        let source_port = fields.u16()?;
        let destination_port = fields.u16()?;
        if destination_port == 0 {
            return Err(Malformed::PortZero);
        }
        Ok(Self {
            client: SocketAddr::new(path.from(), source_port),
            destination: SocketAddr::new(path.to(), destination_port),
        })
    }
}
