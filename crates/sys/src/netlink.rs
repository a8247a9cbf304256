//! Netlink: a message builder, a blocking socket, and a reader of attributes.
//!
//! Routing messages (`rtnl`) and nftables messages (`nft`) have the same envelope:
//! a 16-byte header, a fixed part, then nested type-length-value attributes padded to
//! four bytes. Stockade sends some twenty messages at start and one per flow, so the
//! envelope is built here by hand instead of through a message library.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType,
    netlink::SocketAddrNetlink, recv, send, socket_with,
};

pub(crate) const REQUEST: u16 = 0x1;
pub(crate) const ACK: u16 = 0x4;
pub(crate) const DUMP: u16 = 0x300;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const APPEND: u16 = 0x800;

const HEADER: usize = 16;
const NESTED: u16 = 0x8000;
const TYPE_MASK: u16 = 0x3fff;
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// One netlink message under construction; its length and sequence number are filled
/// in when it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        let mut message = Self { bytes };
        message.pad();
        message
    }

    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len() + 4).expect("attributes here are short");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.pad();
        self
    }

    pub(crate) fn attribute_u32(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// nftables numbers are big-endian, routing ones are not.
    pub(crate) fn attribute_be32(self, kind: u16, value: std::ffi::c_int) -> Self {
        self.attribute(kind, &value.to_be_bytes())
    }

    pub(crate) fn attribute_str(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    pub(crate) fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self = self.attribute(kind | NESTED, &[]);
        self = fill(self);
        let length = u16::try_from(self.bytes.len() - start).expect("attributes here are short");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Appends a fixed part, which some nested attributes begin with.
    pub(crate) fn fixed(mut self, fixed: &[u8]) -> Self {
        self.bytes.extend_from_slice(fixed);
        self.pad();
        self
    }

    /// Appends the attributes of a message that has no fixed part.
    pub(crate) fn append(mut self, other: &Self) -> Self {
        self.bytes.extend_from_slice(other.attributes(0).0);
        self
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(&mut self, sequence: u32) -> &[u8] {
        let length = u32::try_from(self.bytes.len()).expect("messages here are short");
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        &self.bytes
    }

    fn wants_ack(&self) -> bool {
        u16::from_ne_bytes([self.bytes[6], self.bytes[7]]) & ACK != 0
    }

    /// The attributes behind a fixed part of `fixed` bytes.
    pub(crate) fn attributes(&self, fixed: usize) -> Attributes<'_> {
        Attributes(self.bytes.get(HEADER + fixed..).unwrap_or_default())
    }
}

/// A message that the kernel answered a request with: its type and what is behind the
/// header.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) kind: u16,
    pub(crate) payload: Vec<u8>,
}

/// A blocking netlink socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: u32,
    /// Where answers are read to: kept, because the gate asks about every flow.
    buffer: Vec<u8>,
}

impl Socket {
    /// Without a protocol it is a route socket (`NETLINK_ROUTE` is 0).
    pub(crate) fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let fd = open(protocol, 0)?;
        // The kernel then says in words what it disliked. Only a nicety: an old kernel
        // without it still reports the error number.
        let _ = crate::socket::set_int(fd.as_fd(), libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, 1);
        Ok(Self {
            fd,
            sequence: 0,
            buffer: vec![0; 64 * 1024],
        })
    }

    /// Sends the messages in one datagram and waits until the kernel acknowledged
    /// every message that asks for it. The first refusal is the error.
    pub(crate) fn transact(&mut self, messages: &mut [Message]) -> io::Result<()> {
        let mut awaited: Vec<u32> = Vec::new();
        let mut datagram = Vec::new();
        for message in messages {
            self.sequence = self.sequence.wrapping_add(1);
            if message.wants_ack() {
                awaited.push(self.sequence);
            }
            datagram.extend_from_slice(message.finish(self.sequence));
        }
        self.send(&datagram)?;
        while !awaited.is_empty() {
            self.receive(|sequence, kind, payload| {
                if kind == ERROR {
                    check(payload)?;
                    awaited.retain(|&other| other != sequence);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    pub(crate) fn request(&mut self, mut message: Message) -> io::Result<Vec<Reply>> {
        self.sequence = self.sequence.wrapping_add(1);
        let expected = self.sequence;
        self.send(message.finish(expected))?;
        let dump = u16::from_ne_bytes([message.bytes[6], message.bytes[7]]) & DUMP == DUMP;
        let mut replies = Vec::new();
        let mut done = false;
        while !done {
            self.receive(|sequence, kind, payload| {
                if sequence != expected {
                    return Ok(());
                }
                match kind {
                    ERROR => {
                        done = true;
                        return check(payload);
                    }
                    DONE => done = true,
                    _ => {
                        replies.push(Reply {
                            kind,
                            payload: payload.to_vec(),
                        });
                        done = !dump;
                    }
                }
                Ok(())
            })?;
        }
        Ok(replies)
    }

    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        let sent = send(&self.fd, datagram, SendFlags::empty())?;
        if sent != datagram.len() {
            return Err(io::Error::other(
                "the kernel took only part of a netlink message",
            ));
        }
        Ok(())
    }

    /// Reads one datagram and hands its messages over as (sequence, type, payload).
    fn receive(
        &mut self,
        mut each: impl FnMut(u32, u16, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (length, _) = recv(&self.fd, &mut self.buffer[..], RecvFlags::empty())?;
        let mut rest = self.buffer.get(..length).unwrap_or_default();
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let [l0, l1, l2, l3, k0, k1, _, _, s0, s1, s2, s3, ..] = *header;
            let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
            let payload = rest.get(HEADER..length).ok_or_else(malformed)?;
            each(
                u32::from_ne_bytes([s0, s1, s2, s3]),
                u16::from_ne_bytes([k0, k1]),
                payload,
            )?;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(())
    }
}

/// A socket that hears what the kernel tells the given groups, one bit for each.
pub(crate) fn open(protocol: Option<Protocol>, groups: u32) -> io::Result<OwnedFd> {
    let fd = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?;
    rustix::net::bind(&fd, &SocketAddrNetlink::new(0, groups))?;
    Ok(fd)
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.as_raw_fd()
    }
}

/// Reads type-length-value attributes; stops at the first that does not fit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a>(pub(crate) &'a [u8]);

impl<'a> Attributes<'a> {
    pub(crate) fn find(self, wanted: u16) -> Option<&'a [u8]> {
        self.iter()
            .find_map(|(kind, _, value)| (kind == wanted).then_some(value))
    }

    /// Type without its flags, whether it is marked as nested, value.
    pub(crate) fn iter(mut self) -> impl Iterator<Item = (u16, bool, &'a [u8])> {
        std::iter::from_fn(move || {
            let [l0, l1, k0, k1] = *self.0.first_chunk::<4>()?;
            let length = usize::from(u16::from_ne_bytes([l0, l1]));
            let kind = u16::from_ne_bytes([k0, k1]);
            let value = self.0.get(4..length)?;
            self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
            Some((kind & TYPE_MASK, kind & NESTED != 0, value))
        })
    }
}

/// Turns an error message into a result: zero is an acknowledgement.
fn check(payload: &[u8]) -> io::Result<()> {
    const CAPPED_REQUEST: usize = HEADER;
    const MESSAGE_TEXT: u16 = 1;
    let code = i32::from_ne_bytes(*payload.first_chunk().ok_or_else(malformed)?);
    if code == 0 {
        return Ok(());
    }
    let error = io::Error::from_raw_os_error(-code);
    // Behind the code stands the refused request, whole, then the attributes of the
    // extended acknowledgement.
    let request = payload.get(4..).unwrap_or_default();
    let length = request
        .first_chunk()
        .map_or(CAPPED_REQUEST, |bytes| u32::from_ne_bytes(*bytes) as usize);
    let text = request
        .get(length.next_multiple_of(4)..)
        .and_then(|bytes| Attributes(bytes).find(MESSAGE_TEXT));
    match text {
        Some(text) => {
            let text = String::from_utf8_lossy(text);
            let text = text.trim_end_matches('\0');
            Err(io::Error::new(error.kind(), format!("{error}: {text}")))
        }
        None => Err(error),
    }
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "malformed netlink message from the kernel",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_builder_writes_the_reader_reads() {
        let message = Message::new(7, REQUEST, &[1, 2])
            .attribute(1, b"abc")
            .nested(2, |m| m.attribute_u32(3, 0xdead_beef));
        let attributes = message.attributes(4);
        assert_eq!(attributes.find(1), Some(&b"abc"[..]));
        let (_, nested, inner) = attributes.iter().nth(1).expect("two attributes");
        assert!(nested);
        assert_eq!(
            Attributes(inner).find(3),
            Some(&0xdead_beef_u32.to_ne_bytes()[..])
        );
        assert_eq!(attributes.find(9), None);
    }

    #[test]
    fn a_cut_attribute_ends_the_reading() {
        let message = Message::new(7, REQUEST, &[])
            .attribute(1, b"abcd")
            .attribute(2, b"efgh");
        let bytes = message.attributes(0).0;
        assert_eq!(Attributes(&bytes[..bytes.len() - 1]).iter().count(), 1);
    }
}
