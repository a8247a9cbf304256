//! Echo requests, and the replies to them (RFC 792, RFC 4443 §4).

use std::net::IpAddr;

use super::checksum::write_at;
use super::ip::{Datagram, Path, Transport};
use super::{Malformed, Unreachable, unreachable};
use crate::cursor::Cursor;

/// Type, code, checksum, identifier, sequence number.
const HEADER: usize = 8;
const IDENTIFIER: usize = 4;

/// A request to answer, of the kind that `ping` sends.
#[derive(Debug, Clone, Copy)]
pub struct Echo<'a> {
    path: Path,
    /// The IP header with its options or extension headers.
    header: &'a [u8],
    /// The ICMP message, at least [`HEADER`] long.
    message: &'a [u8],
    identifier: u16,
}

impl<'a> Echo<'a> {
    /// Reads a packet that starts at its IP header. The checksum of the message
    /// is not looked at: it may be left to the device.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let Datagram {
            path,
            header,
            message,
        } = Datagram::parse(bytes, Transport::Icmp)?;

        let mut fields = Cursor::new(message);
        let kind = fields.u8()?;
        let code = fields.u8()?;
        if (kind, code) != (request_type(path), 0) {
            return Err(Malformed::NotEchoRequest(kind, code));
        }
        fields.take(2)?; // checksum
        let identifier = fields.u16()?;
        fields.take(2)?; // sequence number
        Ok(Self {
            path,
            header,
            message,
            identifier,
        })
    }

    pub fn source(&self) -> IpAddr {
        self.path.from()
    }

    pub fn destination(&self) -> IpAddr {
        self.path.to()
    }

    /// What the client knows its replies by.
    pub fn identifier(&self) -> u16 {
        self.identifier
    }

    /// The ICMP message from its type on, as a ping socket takes it.
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// The packet that carries an echo reply to the client, under the client's
    /// own identifier. `message` is the ICMP message as a ping socket gives it;
    /// `None` if that is no echo reply, or longer than one packet carries.
    pub fn reply(&self, message: &[u8]) -> Option<Vec<u8>> {
        let back = self.path.reversed();
        if message.first() != Some(&reply_type(back))
            || !(HEADER..=back.room()).contains(&message.len())
        {
            return None;
        }
        let mut message = message.to_vec();
        write_at(&mut message, IDENTIFIER, self.identifier.to_be_bytes());
        Some(back.packet(Transport::Icmp, message))
    }

    /// "No way there", said in the destination's name.
    pub fn unreachable(&self, why: Unreachable) -> Vec<u8> {
        unreachable::about(self.path, self.header, self.message, why)
    }
}

fn request_type(path: Path) -> u8 {
    match path {
        Path::V4 { .. } => 8,
        Path::V6 { .. } => 128,
    }
}

fn reply_type(path: Path) -> u8 {
    match path {
        Path::V4 { .. } => 0,
        Path::V6 { .. } => 129,
    }
}
