//! A packet that may be an echo request or a datagram, a message that may be the reply to it,
//! and a datagram between the same addresses that got nowhere.

#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use stockade_fuzz::ip::{self, Packet, word};
use stockade_fuzz::two_parts;
use stockade_wire::packet::{Echo, Fragments, Syn, Udp, Unreachable, udp_unreachable};

const REASONS: [Unreachable; 4] = [
    Unreachable::Network,
    Unreachable::Host,
    Unreachable::Port,
    Unreachable::AdminProhibited,
];

fuzz_target!(|input: &[u8]| {
    let (packet, received) = two_parts(input);
    check(packet, received);
    check(&ip::mended(packet), received);
});

fn check(packet: &[u8], received: &[u8]) {
    if let Ok(udp) = Udp::parse(packet) {
        assert!(Echo::parse(packet).is_err());
        read_datagram(&udp, packet);
    }
    let mut fragments = Fragments::default();
    for packet in [packet, received] {
        if let Some((message, udp)) = fragments.add(packet) {
            assert_eq!(udp.payload, 8..message.len());
        }
    }
    let Ok(echo) = Echo::parse(packet) else {
        return;
    };
    assert!(Syn::parse(packet).is_err());
    let about = Packet::read(packet);
    assert_eq!((about.from, about.to), (echo.source(), echo.destination()));
    assert_eq!(about.message, echo.message());
    assert_eq!(word(about.message, 4), echo.identifier());
    let length = about.header.len() + about.message.len();
    assert!(Echo::parse(&packet[..length - 1]).is_err());

    let (request_type, reply_type, protocol) = if about.from.is_ipv4() {
        (8, 0, ip::ICMP)
    } else {
        (128, 129, ip::ICMPV6)
    };
    assert_eq!((about.protocol, about.message[0]), (protocol, request_type));

    // What was received may be anything; an echo of the request is a reply.
    let is_reply = received.len() >= 8 && received[0] == reply_type;
    assert_eq!(echo.reply(received).is_some(), is_reply);
    if is_reply {
        reply(&echo, &about, received);
    }
    let mut echoed = echo.message().to_vec();
    echoed[0] = reply_type;
    reply(&echo, &about, &echoed);

    for why in REASONS {
        ip::assert_unreachable(&echo.unreachable(why), &about, packet);
    }
    if let Some(fields) = received.first_chunk::<6>() {
        let client = SocketAddr::new(about.from, word(fields, 0));
        let destination = SocketAddr::new(about.to, word(fields, 2));
        datagram(client, destination, word(fields, 4).into());
    }
}

fn read_datagram(udp: &Udp, packet: &[u8]) {
    let about = Packet::read(packet);
    assert_eq!(about.protocol, ip::UDP);
    assert_eq!((about.from, about.to), (udp.client.ip(), udp.destination.ip()));
    let ports = (udp.client.port(), udp.destination.port());
    assert_eq!((word(about.message, 0), word(about.message, 2)), ports);
    assert_eq!(about.message[8..], packet[udp.payload.clone()]);
    assert!(Udp::parse(&packet[..udp.payload.end - 1]).is_err());
}

fn reply(echo: &Echo<'_>, about: &Packet<'_>, received: &[u8]) {
    let packet = echo.reply(received).unwrap();
    let reply = Packet::read(&packet);
    reply.assert_complete(&packet);
    assert_eq!((reply.from, reply.to), (about.to, about.from));
    assert_eq!(reply.protocol, about.protocol);
    assert_eq!(reply.message[..2], received[..2]);
    assert_eq!(word(reply.message, 4), echo.identifier());
    assert_eq!(reply.message[6..], received[6..]);
}

fn datagram(client: SocketAddr, destination: SocketAddr, length: usize) {
    let limit = if client.is_ipv4() { 65507 } else { 65527 };
    for why in REASONS {
        let Some(answer) = udp_unreachable(client, destination, length, why) else {
            assert!(length > limit);
            continue;
        };
        assert!(length <= limit);
        let quote = &Packet::read(&answer).message[8..];
        let quoted = Packet::read(quote);
        assert_eq!((quoted.from, quoted.to), (client.ip(), destination.ip()));
        assert_eq!(quoted.protocol, ip::UDP);
        assert_eq!(word(quoted.message, 0), client.port());
        assert_eq!(word(quoted.message, 2), destination.port());
        assert_eq!(usize::from(word(quoted.message, 4)), length + 8);
        ip::assert_unreachable(&answer, &quoted, quote);
    }
}
