//! A UDP datagram, as the agent's kernel hands it to the device.

use std::{net::SocketAddr, ops::Range};

use super::{
    Malformed,
    ip::{Datagram, Transport},
};
use crate::cursor::Cursor;

/// Whose it is, where it goes, and where in the packet its payload stands.
///
/// The checksum is not looked at: nothing but the memory of this machine carried the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Udp {
    pub client: SocketAddr,
    pub destination: SocketAddr,
    pub payload: Range<usize>,
}

impl Udp {
    /// # Errors
    /// If it is no whole datagram, or nobody could be answered.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let datagram = Datagram::parse(packet, Transport::Udp)?;
        let mut header = Cursor::new(datagram.message);
        let (from, to, length) = (header.u16()?, header.u16()?, header.u16()?);
        header.u16()?; // checksum
        if from == 0 || to == 0 {
            return Err(Malformed::PortZero);
        }
        // Neither more nor less than the packet has.
        if usize::from(length) != datagram.message.len() {
            return Err(Malformed::Length);
        }
        let start = datagram.header.len().saturating_add(header.position());
        let end = datagram.header.len().saturating_add(datagram.message.len());
        Ok(Self {
            client: SocketAddr::new(datagram.path.from(), from),
            destination: SocketAddr::new(datagram.path.to(), to),
            payload: start..end,
        })
    }
}
