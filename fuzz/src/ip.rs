//! A second reader of packets, for those that the crate under test has built or
//! accepted. It assumes that they are well formed, and checks their sums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMPV6: u8 = 58;

#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub from: IpAddr,
    pub to: IpAddr,
    pub protocol: u8,
    /// The IP header, with options and extension headers.
    pub header: &'a [u8],
    /// What the header says is there, or as much of it as there is.
    pub message: &'a [u8],
}

impl<'a> Packet<'a> {
    pub fn read(bytes: &'a [u8]) -> Self {
        if bytes[0] >> 4 == 4 {
            Self::read_v4(bytes)
        } else {
            Self::read_v6(bytes)
        }
    }

    fn read_v4(bytes: &'a [u8]) -> Self {
        let start = usize::from(bytes[0] & 15) * 4;
        let end = usize::from(word(bytes, 2)).min(bytes.len());
        assert_eq!(add(0, &bytes[..start]), 0xffff, "header checksum");
        assert_eq!(word(bytes, 6) & 0x3fff, 0, "a fragment");
        let mut options = &bytes[20..start];
        while options.first().is_some_and(|kind| *kind != 0) {
            assert!(![131, 137].contains(&options[0]), "a source route");
            let length = if options[0] == 1 { 1 } else { options[1] };
            options = &options[usize::from(length)..];
        }
        Self {
            from: Ipv4Addr::from_octets(bytes[12..16].try_into().unwrap()).into(),
            to: Ipv4Addr::from_octets(bytes[16..20].try_into().unwrap()).into(),
            protocol: bytes[9],
            header: &bytes[..start],
            message: &bytes[start..end],
        }
    }

    fn read_v6(bytes: &'a [u8]) -> Self {
        let end = (40 + usize::from(word(bytes, 4))).min(bytes.len());
        let mut protocol = bytes[6];
        let mut start = 40;
        while [0, 43, 60].contains(&protocol) {
            assert!(protocol != 43 || bytes[start + 3] == 0, "a source route");
            protocol = bytes[start];
            start += (usize::from(bytes[start + 1]) + 1) * 8;
        }
        Self {
            from: Ipv6Addr::from_octets(bytes[8..24].try_into().unwrap()).into(),
            to: Ipv6Addr::from_octets(bytes[24..40].try_into().unwrap()).into(),
            protocol,
            header: &bytes[..start],
            message: &bytes[start..end],
        }
    }

    /// That the packet can be sent: its checksum is right, and its length is
    /// that of `bytes`, from which it was read.
    pub fn assert_complete(&self, bytes: &[u8]) {
        let stated = match self.from {
            IpAddr::V4(_) => usize::from(word(bytes, 2)),
            IpAddr::V6(_) => usize::from(word(bytes, 4)) + 40,
        };
        assert_eq!(stated, bytes.len(), "length");
        let length = u32::try_from(self.message.len()).unwrap().to_be_bytes();
        let pseudo = match (self.from, self.to) {
            (IpAddr::V4(_), IpAddr::V4(_)) if self.protocol == ICMP => Vec::new(),
            (IpAddr::V4(from), IpAddr::V4(to)) => [
                &from.octets()[..],
                &to.octets(),
                &[0, self.protocol],
                &length[2..],
            ]
            .concat(),
            (IpAddr::V6(from), IpAddr::V6(to)) => [
                &from.octets()[..],
                &to.octets(),
                &length,
                &[0, 0, 0, self.protocol],
            ]
            .concat(),
            _ => unreachable!("two families"),
        };
        assert_eq!(add(add(0, &pseudo), self.message), 0xffff, "checksum");
    }
}

/// Reads and checks an unreachable message about `about`, which was read from
/// `packet`: it goes back, is as long as may be, and quotes the packet.
pub fn assert_unreachable(answer: &[u8], about: &Packet<'_>, packet: &[u8]) {
    let (protocol, kind, limit) = match about.from {
        IpAddr::V4(_) => (ICMP, 3, 576),
        IpAddr::V6(_) => (ICMPV6, 1, 1280),
    };
    let read = Packet::read(answer);
    read.assert_complete(answer);
    assert_eq!((read.from, read.to), (about.to, about.from));
    assert_eq!((read.protocol, read.message[0]), (protocol, kind));
    let whole = about.header.len() + about.message.len();
    let quote = &read.message[8..];
    assert_eq!(quote, &packet[..quote.len()]);
    assert!(answer.len() == limit || (answer.len() < limit && quote.len() == whole));
}

/// The packet with its IPv4 header checksum made right: no fuzzer guesses that.
pub fn mended(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let length = usize::from(packet.first().map_or(0, |first| first & 15)) * 4;
    if packet.first().is_some_and(|first| first >> 4 == 4) && (20..=packet.len()).contains(&length)
    {
        packet[10..12].fill(0);
        let sum = !add(0, &packet[..length]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

pub fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Adds words one by one in ones' complement arithmetic.
fn add(mut sum: u16, bytes: &[u8]) -> u16 {
    for pair in bytes.chunks(2) {
        let word = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
        let (value, carry) = sum.overflowing_add(word);
        sum = value + u16::from(carry);
    }
    sum
}
