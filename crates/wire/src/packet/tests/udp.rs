//! "Unreachable" about a datagram of which only addresses and length are known.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;

/// What the kernel answered to five bytes for the discard port of 10.9.9.1.
const REFUSED_V4: &str = "45c0003d20410000400133ac0a0909010a0909010303a7dc00000000\
    45000021267040004011ee480a0909010a090901eb050009000d263268656c6c6f";
/// The same to fd00::1.
const REFUSED_V6: &str = "60055906003d3a40fd000000000000000000000000000001\
    fd0000000000000000000000000000010104cb0900000000\
    6009ca79000d1140fd000000000000000000000000000001\
    fd000000000000000000000000000001c5980009000dfa2168656c6c6f";

/// The quoted packet.
fn quote(answer: &[u8]) -> &[u8] {
    &datagram(answer, Transport::Icmp).message[8..]
}

#[test]
fn it_says_what_the_kernel_says_without_the_data() {
    let cases = [
        (REFUSED_V4, "10.9.9.1:60165", "10.9.9.1:9"),
        (REFUSED_V6, "[fd00::1]:50584", "[fd00::1]:9"),
    ];
    for (theirs, client, destination) in cases {
        let theirs = bytes(theirs);
        let client: SocketAddr = client.parse().unwrap();
        let destination: SocketAddr = destination.parse().unwrap();
        let ours = udp_unreachable(client, destination, 5, Unreachable::Port).unwrap();
        assert!(is_intact(&ours, Transport::Icmp));

        // Type and code, then the UDP header up to its checksum.
        let headers = datagram(&theirs, Transport::Icmp).header.len();
        assert_eq!(ours[headers..headers + 2], theirs[headers..headers + 2]);
        assert_eq!(quote(&ours).len(), headers + 8);
        assert_eq!(
            quote(&ours)[headers..headers + 6],
            quote(&theirs)[headers..headers + 6]
        );
    }
}

#[test]
fn a_datagram_is_found_in_its_packet_and_a_part_of_one_is_not() {
    for (answer, client, destination) in [
        (REFUSED_V4, "10.9.9.1:60165", "10.9.9.1:9"),
        (REFUSED_V6, "[fd00::1]:50584", "[fd00::1]:9"),
    ] {
        let answer = bytes(answer);
        let packet = quote(&answer);
        let udp = Udp::parse(packet).unwrap();
        assert_eq!(udp.client, client.parse().unwrap());
        assert_eq!(udp.destination, destination.parse().unwrap());
        assert_eq!(&packet[udp.payload.clone()], b"hello");
        // Padding of the link is not a part of it.
        let padded = [packet, b"padding"].concat();
        assert_eq!(Udp::parse(&padded), Ok(udp));
        for end in 0..packet.len() {
            assert!(Udp::parse(&packet[..end]).is_err(), "{end}");
        }
        // A length that is not that of the message, and ports that nobody can have.
        let header = packet.len() - 5 - 8;
        for (field, value) in [(4, 12), (4, 14), (0, 0), (2, 0)] {
            let mut odd = packet.to_vec();
            odd[header + field..header + field + 2].copy_from_slice(&u16::to_be_bytes(value));
            assert!(Udp::parse(&odd).is_err(), "{field} {value}");
        }
    }
}

/// A fragment of a UDP message between two addresses.
fn fragment(identification: u32, message: &[u8], part: std::ops::Range<usize>) -> Vec<u8> {
    let path = Path::V6 {
        from: "2001:db8::1".parse().unwrap(),
        to: "2600::1".parse().unwrap(),
    };
    let more = u16::from(part.end < message.len());
    let place = u16::try_from(part.start).unwrap() | more;
    let mut packet = path.header(44, 8 + part.len());
    packet.extend([17, 0]);
    packet.extend(place.to_be_bytes());
    packet.extend(identification.to_be_bytes());
    packet.extend(&message[part]);
    packet
}

/// From port 5000 to port 7.
fn message(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 8).unwrap();
    let mut message: Vec<u8> = [5000, 7, length, 0]
        .into_iter()
        .flat_map(u16::to_be_bytes)
        .collect();
    message.extend(payload);
    message
}

fn pieces(identification: u32, message: &[u8], size: usize) -> Vec<Vec<u8>> {
    let starts = (0..message.len()).step_by(size);
    starts
        .map(|start| {
            let part = start..message.len().min(start + size);
            fragment(identification, message, part)
        })
        .collect()
}

#[test]
fn datagrams_in_fragments_are_put_together_also_when_they_are_mixed() {
    for (length, size) in [(0, 8), (4000, 1232), (65_527, 65_488), (65_527, 8)] {
        let [one, other] = [b'a', b'b'].map(|byte| message(&vec![byte; length]));
        let mut fragments = Fragments::default();
        let mut whole = Vec::new();
        let other_pieces = pieces(2, &other, size);
        for (mine, theirs) in pieces(1, &one, size).iter().zip(&other_pieces) {
            assert!(Udp::parse(mine).is_err());
            whole.extend(fragments.add(mine));
            whole.extend(fragments.add(theirs));
        }
        let udp = Udp {
            client: "[2001:db8::1]:5000".parse().unwrap(),
            destination: "[2600::1]:7".parse().unwrap(),
            payload: 8..8 + length,
        };
        assert!(whole == [(one, udp.clone()), (other, udp)], "{length}");
    }
}

#[test]
fn fragments_that_do_not_follow_each_other_make_nothing() {
    let message = message(&[b'a'; 92]);
    let made = |parts: &[std::ops::Range<usize>]| {
        let mut fragments = Fragments::default();
        let parts = parts.iter().cloned();
        let results = parts.map(|part| fragments.add(&fragment(1, &message, part)));
        results.flatten().count()
    };
    assert_eq!(made(&[0..40, 40..100]), 1);
    assert_eq!(made(&[0..16, 0..40, 40..100]), 1, "begun again");
    // Out of order, overlapping, with a gap, without a beginning, not in whole units.
    assert_eq!(made(&[40..100, 0..40]), 0);
    assert_eq!(made(&[0..40, 32..100]), 0);
    assert_eq!(made(&[0..40, 48..100]), 0);
    assert_eq!(made(&[40..80, 80..100]), 0);
    assert_eq!(made(&[0..39, 40..100]), 0);
    // The length in the UDP header is not that of the fragments.
    let mut fragments = Fragments::default();
    assert_eq!(fragments.add(&fragment(1, &message, 0..40)), None);
    assert_eq!(fragments.add(&fragment(1, &message[..80], 40..80)), None);
}

#[test]
fn fragments_are_kept_of_few_datagrams_and_no_longer_than_one_can_be() {
    let message = message(&[b'a'; 92]);
    let mut fragments = Fragments::default();
    for identification in 0..9 {
        fragments.add(&fragment(identification, &message, 0..40));
    }
    let mut ends = |identification| fragments.add(&fragment(identification, &message, 40..100));
    assert_eq!(ends(0), None);
    assert!((1..9).all(|identification| ends(identification).is_some()));

    // 65535 bytes and more.
    let mut long = vec![0; 65_544];
    long[..100].copy_from_slice(&message);
    let mut fragments = Fragments::default();
    assert_eq!(fragments.add(&fragment(1, &long, 0..65_480)), None);
    assert_eq!(fragments.add(&fragment(1, &long, 65_480..65_536)), None);
    assert!(fragments.add(&fragment(1, &long, 0..40)).is_none());
}

proptest! {
    #[test]
    fn no_packet_confuses_the_readers(packets: Vec<(u8, Vec<u8>)>) {
        let mut fragments = Fragments::default();
        for (next, mut body) in packets {
            let _ = Udp::parse(&body);
            let header = fragment(u32::from(next % 2), &[0; 16], 0..8);
            body.splice(0..0, header[..40].iter().copied());
            if let Some(protocol) = body.get_mut(40) {
                *protocol = 17;
            }
            let length = u16::try_from(body.len() - 40).unwrap();
            body[4..6].copy_from_slice(&length.to_be_bytes());
            if let Some((message, udp)) = fragments.add(&body) {
                prop_assert!(message.get(udp.payload).is_some());
            }
        }
    }
}

#[test]
fn addresses_of_two_families_or_too_much_data_make_no_packet() {
    let v4: SocketAddr = "10.0.0.1:1".parse().unwrap();
    let v6: SocketAddr = "[fd00::1]:1".parse().unwrap();
    let answers = |client, destination, length| {
        udp_unreachable(client, destination, length, Unreachable::Port).is_some()
    };
    assert!(!answers(v4, v6, 0));
    assert!(!answers(v6, v4, 0));
    assert!(answers(v4, v4, 65507));
    assert!(!answers(v4, v4, 65508));
    assert!(answers(v6, v6, 65527));
    assert!(!answers(v6, v6, 65528));
    assert!(!answers(v6, v6, usize::MAX));
}

proptest! {
    #[test]
    fn the_quote_is_a_datagram_from_the_client_to_the_destination(
        path in any_path(),
        ports in any::<(u16, u16)>(),
        length in 0_usize..=65507,
        why in any_reason(),
    ) {
        let client = SocketAddr::new(path.from(), ports.0);
        let destination = SocketAddr::new(path.to(), ports.1);
        let answer = udp_unreachable(client, destination, length, why).unwrap();
        assert!(is_intact(&answer, Transport::Icmp));
        assert_eq!(datagram(&answer, Transport::Icmp).path, path.reversed());

        let mut udp = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
        udp.extend(u16::try_from(length + 8).unwrap().to_be_bytes());
        udp.extend([0, 0]);
        let quoted = [path.header(17, length + 8), udp].concat();
        assert_eq!(quote(&answer), quoted);
    }
}
