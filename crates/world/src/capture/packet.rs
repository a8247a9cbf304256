//! Just enough of a packet to count it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Udp,
    /// ICMP or ICMPv6.
    Icmp,
    Other(u8),
}

/// An IP packet. ARP and the like are not captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub protocol: Protocol,
    pub source: IpAddr,
    pub destination: IpAddr,
    /// TCP and UDP.
    pub source_port: Option<u16>,
    pub destination_port: Option<u16>,
    /// The whole packet, from the IP header on.
    pub bytes: Vec<u8>,
    transport: usize,
}

impl Packet {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (source, destination, next, transport) = match bytes.first()? >> 4 {
            4 => parse_v4(bytes)?,
            6 => parse_v6(bytes)?,
            _ => return None,
        };
        let protocol = match next {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            1 | 58 => Protocol::Icmp,
            other => Protocol::Other(other),
        };
        let has_ports = matches!(protocol, Protocol::Tcp | Protocol::Udp);
        let port = |offset| u16_at(bytes, transport + offset).filter(|_| has_ports);
        Some(Self {
            protocol,
            source,
            destination,
            source_port: port(0),
            destination_port: port(2),
            bytes: bytes.to_vec(),
            transport,
        })
    }

    /// A TCP packet that opens a connection.
    pub fn is_syn(&self) -> bool {
        self.tcp_flags().is_some_and(|flags| flags & 0x12 == 0x02)
    }

    pub fn is_reset(&self) -> bool {
        self.tcp_flags().is_some_and(|flags| flags & 0x04 != 0)
    }

    fn tcp_flags(&self) -> Option<u8> {
        let flags = self.bytes.get(self.transport + 13).copied();
        flags.filter(|_| self.protocol == Protocol::Tcp)
    }

    /// Type and code of an ICMP message.
    pub fn icmp(&self) -> Option<(u8, u8)> {
        let kind = self.bytes.get(self.transport)?;
        let code = self.bytes.get(self.transport + 1)?;
        (self.protocol == Protocol::Icmp).then_some((*kind, *code))
    }
}

type Headers = (IpAddr, IpAddr, u8, usize);

fn parse_v4(bytes: &[u8]) -> Option<Headers> {
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets).into())
    };
    let header = usize::from(bytes.first()? & 0x0f) * 4;
    Some((address(12)?, address(16)?, *bytes.get(9)?, header))
}

fn parse_v6(bytes: &[u8]) -> Option<Headers> {
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(octets).into())
    };
    let mut next = *bytes.get(6)?;
    let mut offset = 40;
    // Hop-by-hop, routing, fragment, destination options.
    while matches!(next, 0 | 43 | 44 | 60) {
        let units = match next {
            44 => 0,
            _ => usize::from(*bytes.get(offset + 1)?),
        };
        next = *bytes.get(offset)?;
        offset += (units + 1) * 8;
    }
    Some((address(8)?, address(24)?, next, offset))
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let pair: [u8; 2] = bytes.get(offset..offset + 2)?.try_into().ok()?;
    Some(u16::from_be_bytes(pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn_v4() -> Vec<u8> {
        let mut bytes = vec![0; 40];
        bytes[0] = 0x45;
        bytes[9] = 6;
        bytes[12..16].copy_from_slice(&[10, 0, 0, 1]);
        bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
        bytes[20..24].copy_from_slice(&[0x10, 0x00, 0x00, 0x50]);
        bytes[33] = 0x02;
        bytes
    }

    #[test]
    fn a_syn_is_understood() {
        let packet = Packet::parse(&syn_v4()).unwrap();
        assert_eq!(packet.protocol, Protocol::Tcp);
        assert_eq!(packet.destination.to_string(), "10.0.0.2");
        assert_eq!(packet.destination_port, Some(80));
        assert!(packet.is_syn() && !packet.is_reset());
    }

    #[test]
    fn extension_headers_are_skipped() {
        let mut bytes = vec![0; 40 + 8 + 8];
        bytes[0] = 0x60;
        bytes[6] = 0;
        bytes[40] = 17;
        bytes[50..52].copy_from_slice(&53_u16.to_be_bytes());
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(packet.protocol, Protocol::Udp);
        assert_eq!(packet.destination_port, Some(53));
    }

    #[test]
    fn no_prefix_of_a_packet_does_harm() {
        let whole = syn_v4();
        for length in 0..whole.len() {
            let _ = Packet::parse(&whole[..length]);
        }
    }
}
