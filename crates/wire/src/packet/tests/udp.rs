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

/// The quotes are the datagrams as the kernel sent them.
#[test]
fn a_datagram_on_its_way_says_who_sent_it_where() {
    for (answer, client, destination) in [
        (REFUSED_V4, "10.9.9.1:60165", "10.9.9.1:9"),
        (REFUSED_V6, "[fd00::1]:50584", "[fd00::1]:9"),
    ] {
        let answer = bytes(answer);
        let packet = quote(&answer);
        let sent = Sent::parse(packet).unwrap();
        assert_eq!(sent.client, client.parse().unwrap());
        assert_eq!(sent.destination, destination.parse().unwrap());
        for length in 0..packet.len() {
            assert!(Sent::parse(&packet[..length]).is_err(), "{length}");
        }
    }
    assert!(Sent::parse(&bytes(syn::SYN_V4)).is_err());
}
