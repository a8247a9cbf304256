//! Packets that no flow can be made of: of another protocol than TCP, UDP and ICMP, or with a
//! routing header, by which they would go elsewhere than their destination says.

use std::net::IpAddr;

use super::ip::{
    DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, Packet, Path, ROUTING, Transport, extension,
};
use super::unreachable::about;
use super::{Malformed, Unreachable};
use crate::cursor::Cursor;

const SEGMENTS: u8 = 4;
/// The protocols whose messages start with two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];
/// More extension headers than any packet has.
const MOST_EXTENSIONS: usize = 8;

#[derive(Debug, Clone, Copy)]
pub struct Foreign<'a> {
    path: Path,
    protocol: u8,
    routed: bool,
    message: &'a [u8],
}

impl<'a> Foreign<'a> {
    /// Reads a packet that starts at its IP header. Others than such are refused.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let packet = Packet::read(bytes)?;
        // But for the first fragment, the message is not one.
        if packet.fragment & 0x1fff != 0 {
            return Err(Malformed::Fragment);
        }
        let (mut path, mut protocol) = (packet.path, packet.protocol);
        let mut body = Cursor::new(packet.body);
        let mut routed = false;
        if let Path::V6 { to, .. } = &mut path {
            for _ in 0..MOST_EXTENSIONS {
                if !matches!(
                    protocol,
                    HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS
                ) {
                    break;
                }
                let ([next, kind, low], rest) = extension(&mut body)?;
                // The last three bits say whether more follow.
                if protocol == FRAGMENT && (kind, low & 0xf8) != (0, 0) {
                    return Err(Malformed::Fragment);
                }
                if protocol == ROUTING {
                    routed = true;
                    // The socket's own destination is the last segment, which comes first.
                    let mut segments = Cursor::new(rest);
                    if kind == SEGMENTS && segments.take(4).is_ok() {
                        *to = segments.array::<16>().map_or(*to, Into::into);
                    }
                }
                protocol = next;
            }
        }
        let usual = [Transport::Tcp, Transport::Udp, Transport::Icmp];
        if !routed && usual.map(|usual| path.number(usual)).contains(&protocol) {
            return Err(Malformed::Protocol(protocol));
        }
        Ok(Self {
            path,
            protocol,
            routed,
            message: body.rest(),
        })
    }

    pub fn client(&self) -> IpAddr {
        self.path.from()
    }

    /// Where the program wanted it to go.
    pub fn destination(&self) -> IpAddr {
        self.path.to()
    }

    /// By the number of IANA's registry.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    pub fn is_routed(&self) -> bool {
        self.routed
    }

    /// The destination's port, if the protocol has ports.
    pub fn port(&self) -> Option<u16> {
        if !WITH_PORTS.contains(&self.protocol) {
            return None;
        }
        let mut ports = Cursor::new(self.message);
        ports.take(2).ok()?;
        ports.u16().ok()
    }

    /// The answer that it got nowhere. It quotes the packet as the program's socket knows it,
    /// without extension headers.
    pub fn unreachable(&self, why: Unreachable) -> Vec<u8> {
        let header = self.path.header(self.protocol, self.message.len());
        about(self.path, &header, self.message, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: u8 = 17;
    const UDP_LITE: u8 = 136;
    const MESSAGE: &[u8] = b"\x12\x34\0\x07\0\x08\0\0x";

    fn path_v6() -> Path {
        Path::V6 {
            from: "2001:db8::1".parse().unwrap(),
            to: "2600::1".parse().unwrap(),
        }
    }

    #[test]
    fn another_protocol_is_read_and_answered() {
        let path = Path::V4 {
            from: [192, 0, 2, 1].into(),
            to: [8, 8, 8, 8].into(),
        };
        for path in [path, path_v6()] {
            let mut packet = path.header(UDP_LITE, MESSAGE.len());
            packet.extend(MESSAGE);
            let foreign = Foreign::parse(&packet).unwrap();
            assert_eq!((foreign.protocol(), foreign.port()), (UDP_LITE, Some(7)));
            assert_eq!(
                (foreign.client(), foreign.destination()),
                (path.from(), path.to())
            );
            let answer = foreign.unreachable(Unreachable::AdminProhibited);
            assert!(answer.ends_with(MESSAGE));
            for end in 0..packet.len() {
                let _ = Foreign::parse(&packet[..end]);
            }
            for usual in [Transport::Icmp, Transport::Tcp, Transport::Udp] {
                let mut packet = path.header(path.number(usual), MESSAGE.len());
                packet.extend(MESSAGE);
                assert!(Foreign::parse(&packet).is_err());
            }
        }
    }

    #[test]
    fn a_routing_header_shows_the_destination_that_was_meant() {
        let mut packet = path_v6().header(ROUTING, 24 + MESSAGE.len());
        packet.extend([UDP, 2, SEGMENTS, 0, 0, 0, 0, 0]);
        packet.extend("fd00::5".parse::<std::net::Ipv6Addr>().unwrap().octets());
        packet.extend(MESSAGE);
        let foreign = Foreign::parse(&packet).unwrap();
        assert!(foreign.is_routed() && foreign.port() == Some(7));
        assert_eq!(foreign.destination(), "fd00::5".parse::<IpAddr>().unwrap());
        for end in 0..packet.len() {
            let _ = Foreign::parse(&packet[..end]);
        }
    }
}
