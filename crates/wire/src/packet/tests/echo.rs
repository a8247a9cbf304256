//! Echo requests and the replies to them.

use proptest::prelude::*;

use super::*;

/// `ping` of 10.9.9.1 by itself, with 24 bytes of data.
const ECHO_V4: &str = "450000341f8840004001f52d0a0909010a09090108009d8b1a7d0001\
    290dfa6a00000000cf2d0100000000001011121314151617";
/// What the kernel answered.
const REPLY_V4: &str = "450000341f8900004001352d0a0909010a0909010000a58b1a7d0001\
    290dfa6a00000000cf2d0100000000001011121314151617";
/// `ping -R`: with a record-route option in the IP header.
const ECHO_V4_OPTIONS: &str = "4f00005c1fef40004001af850a0909010a090901010727080a090901\
    000000000000000000000000000000000000000000000000000000000000000008006a6b1a7f0001\
    2a0dfa6a00000000014c0100000000001011121314151617";
/// `ping` of fd00::1 by itself.
const ECHO_V6: &str = "6008e01700203a40fd000000000000000000000000000001\
    fd00000000000000000000000000000180000d7d1a7e0001\
    290dfa6a00000000e5dc0800000000001011121314151617";
/// What the kernel answered.
const REPLY_V6: &str = "60055fe000203a40fd000000000000000000000000000001\
    fd00000000000000000000000000000181000c7d1a7e0001\
    290dfa6a00000000e5dc0800000000001011121314151617";

const CAPTURED: [&str; 3] = [ECHO_V4, ECHO_V4_OPTIONS, ECHO_V6];

fn refusal(packet: &[u8]) -> Malformed {
    Echo::parse(packet).unwrap_err()
}

fn is_intact(packet: &[u8]) -> bool {
    super::is_intact(packet, Transport::Icmp)
}

fn message(packet: &[u8]) -> &[u8] {
    datagram(packet, Transport::Icmp).message
}

/// The reply that a host gives, as our own ping socket would get it: under an
/// identifier that is not the client's, the checksum already checked.
fn as_received(request: &Echo<'_>) -> Vec<u8> {
    let kind = if request.source().is_ipv4() { 0 } else { 129 };
    let mut reply = request.message().to_vec();
    reply[0] = kind;
    reply[2..6].fill(0x55);
    reply
}

#[test]
fn a_captured_echo_request_says_where_it_goes() {
    let packet = bytes(ECHO_V4);
    let echo = Echo::parse(&packet).unwrap();
    assert_eq!(echo.source().to_string(), "10.9.9.1");
    assert_eq!(echo.destination().to_string(), "10.9.9.1");
    assert_eq!(echo.identifier(), 0x1a7d);
    assert_eq!(echo.message(), &packet[20..]);

    let packet = bytes(ECHO_V6);
    let echo = Echo::parse(&packet).unwrap();
    assert_eq!(echo.destination().to_string(), "fd00::1");
    assert_eq!(echo.identifier(), 0x1a7e);
    assert_eq!(echo.message(), &packet[40..]);
}

#[test]
fn our_reply_is_the_one_the_kernel_sends() {
    for (request, reply) in [(ECHO_V4, REPLY_V4), (ECHO_V6, REPLY_V6)] {
        let request = bytes(request);
        let echo = Echo::parse(&request).unwrap();
        let ours = echo.reply(&as_received(&echo)).unwrap();
        assert_eq!(message(&ours), message(&bytes(reply)));
        assert!(is_intact(&ours));
    }
}

#[test]
fn answers_go_from_the_destination_to_the_source() {
    let request = mend([&bytes(ECHO_V4)[..16], &[8, 8, 8, 8], &bytes(ECHO_V4)[20..]].concat());
    let echo = Echo::parse(&request).unwrap();
    let reply = echo.reply(&as_received(&echo)).unwrap();
    for answer in [reply, echo.unreachable(Unreachable::Host)] {
        assert_eq!(answer[12..16], [8, 8, 8, 8]);
        assert_eq!(answer[16..20], [10, 9, 9, 1]);
    }
}

#[test]
fn what_is_no_echo_reply_of_the_family_makes_no_packet() {
    for (request, reply) in [(ECHO_V4, 0), (ECHO_V6, 129)] {
        let request = bytes(request);
        let echo = Echo::parse(&request).unwrap();
        for kind in 0..=u8::MAX {
            let mut received = as_received(&echo);
            received[0] = kind;
            assert_eq!(echo.reply(&received).is_some(), kind == reply, "{kind}");
        }
        let received = as_received(&echo);
        for end in 0..8 {
            assert_eq!(echo.reply(&received[..end]), None);
        }
        assert!(echo.reply(&received[..8]).is_some());
    }
}

#[test]
fn the_longest_reply_fills_a_packet() {
    for (request, room, total) in [(ECHO_V4, 65515, 65535), (ECHO_V6, 65535, 65575)] {
        let request = bytes(request);
        let echo = Echo::parse(&request).unwrap();
        let mut received = as_received(&echo);
        received.resize(room, 0xff);
        let reply = echo.reply(&received).unwrap();
        assert_eq!(reply.len(), total);
        assert!(is_intact(&reply));
        received.push(0);
        assert_eq!(echo.reply(&received), None);
    }
}

#[test]
fn an_unreachable_message_quotes_the_request() {
    for hex in CAPTURED {
        let request = bytes(hex);
        let echo = Echo::parse(&request).unwrap();
        let answer = echo.unreachable(Unreachable::AdminProhibited);
        assert!(is_intact(&answer));
        let code = if echo.source().is_ipv4() { 13 } else { 1 };
        assert_eq!(message(&answer)[1], code);
        assert_eq!(message(&answer)[8..], request);
    }
}

#[test]
fn a_quote_is_bounded() {
    for (hex, field, before, limit) in [(ECHO_V4, 2, 0, 576), (ECHO_V6, 4, 40, 1280)] {
        let mut large = bytes(hex);
        large.resize(1400, 7);
        large[field..field + 2].copy_from_slice(&(1400_u16 - before).to_be_bytes());
        let large = mend(large);
        let answer = Echo::parse(&large).unwrap();
        let answer = answer.unreachable(Unreachable::Host);
        assert_eq!(answer.len(), limit);
        assert!(is_intact(&answer));
    }
}

#[test]
fn padding_after_the_packet_is_cut() {
    for hex in CAPTURED {
        let packet = bytes(hex);
        let mut padded = packet.clone();
        padded.extend([0xaa; 7]);
        assert_eq!(Echo::parse(&padded).unwrap().message(), message(&packet));
    }
}

#[test]
fn every_prefix_of_an_echo_request_is_refused() {
    for hex in CAPTURED {
        let packet = bytes(hex);
        for end in 0..packet.len() {
            assert!(matches!(
                refusal(&packet[..end]),
                Malformed::Short | Malformed::Length
            ));
        }
    }
}

#[test]
fn a_message_without_a_whole_header_is_refused() {
    for length in 0..8 {
        let mut packet = bytes(ECHO_V4);
        packet[3] = 20 + length;
        assert_eq!(refusal(&mend(packet)), Malformed::Short);
        let mut packet = bytes(ECHO_V6);
        packet[5] = length;
        assert_eq!(refusal(&packet), Malformed::Short);
    }
}

#[test]
fn other_icmp_messages_are_refused() {
    for (hex, at, request) in [(ECHO_V4, 20, 8), (ECHO_V6, 40, 128)] {
        for kind in (0..=u8::MAX).filter(|&kind| kind != request) {
            let mut packet = bytes(hex);
            packet[at] = kind;
            assert_eq!(refusal(&packet), Malformed::NotEchoRequest(kind, 0));
        }
        let mut packet = bytes(hex);
        packet[at + 1] = 1;
        assert_eq!(refusal(&packet), Malformed::NotEchoRequest(request, 1));
    }
}

#[test]
fn the_icmp_of_the_other_family_is_refused() {
    let mut packet = bytes(ECHO_V4);
    packet[9] = 58;
    assert_eq!(refusal(&mend(packet)), Malformed::Protocol(58));
    let mut packet = bytes(ECHO_V6);
    packet[6] = 1;
    assert_eq!(refusal(&packet), Malformed::Protocol(1));
}

#[test]
fn fragments_source_routes_and_damaged_headers_are_refused() {
    let with = |at: usize, value: u8| {
        let mut packet = bytes(ECHO_V4);
        packet[at] = value;
        packet
    };
    assert_eq!(refusal(&with(8, 1)), Malformed::Checksum);
    assert_eq!(refusal(&mend(with(6, 0x20))), Malformed::Fragment);
    assert_eq!(refusal(&mend(with(7, 0x01))), Malformed::Fragment);
    assert_eq!(refusal(&mend(with(9, 6))), Malformed::Protocol(6));

    let mut packet = bytes(ECHO_V4_OPTIONS);
    packet[21] = 131; // after a no-operation
    assert_eq!(refusal(&mend(packet)), Malformed::SourceRoute);

    let mut packet = bytes(ECHO_V6);
    packet[6] = 43;
    packet[5] += 8;
    packet.splice(40..40, [58, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(refusal(&packet), Malformed::SourceRoute);
}

prop_compose! {
    /// An echo request between any addresses, checksum unset.
    fn any_echo()(
        path in any_path(),
        fields in any::<[u8; 6]>(),
        data in prop::collection::vec(any::<u8>(), 0..1500),
    ) -> Vec<u8> {
        let kind = match path {
            Path::V4 { .. } => 8,
            Path::V6 { .. } => 128,
        };
        let message = [&[kind, 0][..], &fields, &data].concat();
        [path.header(path.number(Transport::Icmp), message.len()), message].concat()
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Echo::parse(&bytes);
    }

    #[test]
    fn a_damaged_request_never_panics(
        packet in any_echo(),
        damage in any_damage(),
        why in any_reason(),
    ) {
        let packet = damaged(packet, damage);
        if let Ok(echo) = Echo::parse(&packet) {
            assert!(is_intact(&echo.reply(&as_received(&echo)).unwrap()));
            assert!(is_intact(&echo.unreachable(why)));
        }
    }

    #[test]
    fn a_reply_differs_from_what_was_received_in_identifier_and_checksum_only(
        packet in any_echo(),
        identifier in any::<[u8; 2]>(),
        data in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        let echo = Echo::parse(&packet).unwrap();
        let mut received = as_received(&echo);
        received[4..6].copy_from_slice(&identifier);
        received.extend(data);
        let reply = echo.reply(&received).unwrap();
        assert!(is_intact(&reply));
        let back = datagram(&packet, Transport::Icmp).path.reversed();
        assert_eq!(datagram(&reply, Transport::Icmp).path, back);

        let reply = message(&reply);
        assert_eq!(reply[..2], received[..2]);
        assert_eq!(reply[4..6], echo.identifier().to_be_bytes());
        assert_eq!(reply[6..], received[6..]);
    }
}
