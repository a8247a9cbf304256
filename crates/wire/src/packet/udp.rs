//! A UDP datagram, as the agent's kernel hands it to the device.

use std::{collections::VecDeque, net::SocketAddr, ops::Range};

use super::{
    Malformed,
    ip::{Datagram, FRAGMENT, Packet, Path, Transport},
};
use crate::cursor::Cursor;

/// Whose it is, where it goes, and where its payload stands.
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
        Self::read(datagram.path, datagram.message, datagram.header.len())
    }

    /// Reads a `message` that begins at `start`.
    fn read(path: Path, message: &[u8], start: usize) -> Result<Self, Malformed> {
        let mut header = Cursor::new(message);
        let (from, to, length) = (header.u16()?, header.u16()?, header.u16()?);
        header.u16()?; // checksum
        if from == 0 || to == 0 {
            return Err(Malformed::PortZero);
        }
        // Neither more nor less than the packet has.
        if usize::from(length) != message.len() {
            return Err(Malformed::Length);
        }
        let end = start.saturating_add(message.len());
        Ok(Self {
            client: SocketAddr::new(path.from(), from),
            destination: SocketAddr::new(path.to(), to),
            payload: start.saturating_add(header.position())..end,
        })
    }
}

/// Puts datagrams of IPv6 together that the agent's kernel cut, because they are larger than the device
/// takes. Of IPv4 there are none: the largest one fits.
///
/// The kernel hands the fragments over in their order, so another order is not put right.
#[derive(Debug, Default)]
pub struct Fragments(VecDeque<Beginning>);

#[derive(Debug)]
struct Beginning {
    path: Path,
    identification: u32,
    message: Vec<u8>,
}

impl Fragments {
    /// So many datagrams may be incomplete; one more, and the oldest is lost.
    const MOST: usize = 8;
    const LONGEST: usize = 65_535;

    /// The message that this packet completes, and the datagram in it.
    pub fn add(&mut self, packet: &[u8]) -> Option<(Vec<u8>, Udp)> {
        let packet = Packet::read(packet).ok()?;
        if packet.protocol != FRAGMENT {
            return None;
        }
        let mut body = Cursor::new(packet.body);
        let [next, _] = body.array().ok()?;
        let place = body.u16().ok()?;
        let identification = body.u32().ok()?;
        if next != packet.path.number(Transport::Udp) {
            return None;
        }
        // Counted in units of 8 bytes; the last three bits are for something else.
        let (offset, more) = (usize::from(place & !7), place & 1 == 1);
        let (path, bytes) = (packet.path, body.rest());
        let known = |it: &Beginning| (it.path, it.identification) == (path, identification);
        let known = self.0.iter().position(known);
        let mut message = known
            .and_then(|at| self.0.remove(at))
            .map_or_else(Vec::new, |it| it.message);
        if offset == 0 {
            message.clear();
        }
        let length = message.len().saturating_add(bytes.len());
        if offset != message.len() || length > Self::LONGEST {
            return None;
        }
        message.extend(bytes);
        if !more {
            let udp = Udp::read(path, &message, 0).ok()?;
            return Some((message, udp));
        }
        if self.0.len() >= Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back(Beginning {
            path,
            identification,
            message,
        });
        None
    }
}
