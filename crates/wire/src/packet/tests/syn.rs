//! The held SYN. The captured ones have the partial checksums of loopback.

use proptest::prelude::*;

use super::*;

/// 10.9.9.1:49090 to 10.9.9.1:443.
pub(super) const SYN_V4: &str = "4500003c3f1440004006d5940a0909010a090901bfc201bb1f53fabf00000000\
    a002ffd7264200000204ffd70402080ab7d70023000000000103030a";
/// What the kernel itself answered to `SYN_V4`, nobody listening.
pub(super) const RST_V4: &str = "4500002800004000400614bd0a0909010a09090101bbbfc2000000001f53fac0\
    50140000ae2b0000";
/// With a record-route option in the IP header.
const SYN_V4_OPTIONS: &str = "470000445c0c400040069d7a0a0909010a0909010707080a09090100\
    ad6400508f42fc5800000000a002ffd7264200000204ffd70402080a12dc6c22000000000103030a";
/// fd00::1 to port 443 of itself, with a flow label.
const SYN_V6: &str = "6007f1a600280640fd000000000000000000000000000001\
    fd000000000000000000000000000001b2ac01bb12acb4db00000000a002ffc4fa310000\
    0204ffc40402080aca9ce75e000000000103030a";

const CAPTURED: [&str; 3] = [SYN_V4, SYN_V4_OPTIONS, SYN_V6];

/// `SYN_V6` with these extension headers before TCP.
fn extended(first: u8, headers: &[u8]) -> Vec<u8> {
    let mut packet = bytes(SYN_V6);
    packet[6] = first;
    packet[5] += u8::try_from(headers.len()).unwrap();
    packet.splice(40..40, headers.iter().copied());
    packet
}

fn refusal(packet: &[u8]) -> Malformed {
    Syn::parse(packet).unwrap_err()
}

fn is_intact(packet: &[u8]) -> bool {
    super::is_intact(packet, Transport::Tcp)
}

#[test]
fn a_captured_syn_says_where_it_goes() {
    let packet = bytes(SYN_V4);
    let syn = Syn::parse(&packet).unwrap();
    assert_eq!(syn.source(), "10.9.9.1:49090".parse().unwrap());
    assert_eq!(syn.destination(), "10.9.9.1:443".parse().unwrap());
    assert_eq!(syn.sequence(), 0x1f53_fabf);

    let packet = bytes(SYN_V6);
    let syn = Syn::parse(&packet).unwrap();
    assert_eq!(syn.destination(), "[fd00::1]:443".parse().unwrap());
}

#[test]
fn a_signed_syn_is_known_by_its_option() {
    let with = |options: &[u8]| {
        let mut packet = bytes(SYN_V4);
        packet[40..40 + options.len()].copy_from_slice(options);
        Syn::parse(&packet).unwrap()
    };
    assert!(!with(&[]).is_signed());
    for kind in [19, 29] {
        assert!(with(&[kind, 18]).is_signed());
        assert!(
            with(&[1, 2, 4, 5, 180, kind, 12]).is_signed(),
            "behind others"
        );
        assert!(!with(&[3, 4, kind, 0, 0]).is_signed(), "inside of another");
        assert!(!with(&[0, kind]).is_signed(), "behind the end");
    }
    assert!(!with(&[255, 0, 255, 0]).is_signed(), "of no length");
}

#[test]
fn a_completed_syn_differs_from_the_captured_one_in_its_checksum_only() {
    for hex in CAPTURED {
        let captured = bytes(hex);
        assert!(!is_intact(&captured), "the capture has a partial checksum");
        let syn = Syn::parse(&captured).unwrap();
        let complete = syn.complete();
        assert!(is_intact(&complete));

        let checksum = datagram(&captured, Transport::Tcp).header.len() + 16;
        for (at, (before, after)) in captured.iter().zip(&complete).enumerate() {
            assert!(before == after || at == checksum || at == checksum + 1);
        }
        assert_eq!(captured.len(), complete.len());
    }
}

#[test]
fn padding_after_the_packet_is_cut() {
    for hex in CAPTURED {
        let mut padded = bytes(hex);
        let complete = Syn::parse(&padded).unwrap().complete();
        padded.extend([0xaa; 7]);
        assert_eq!(Syn::parse(&padded).unwrap().complete(), complete);
    }
}

#[test]
fn our_reset_is_the_one_the_kernel_sends() {
    assert_eq!(Syn::parse(&bytes(SYN_V4)).unwrap().reset(), bytes(RST_V4));
    let v6 = Syn::parse(&bytes(SYN_V6)).unwrap().reset();
    assert!(is_intact(&v6));
    assert_eq!(v6[40..44], [0x01, 0xbb, 0xb2, 0xac]);
    assert_eq!(v6[48..52], 0x12ac_b4dc_u32.to_be_bytes());
}

#[test]
fn a_reset_acknowledges_data_in_the_syn() {
    let mut packet = bytes(SYN_V4);
    packet.extend(b"fast");
    packet[3] += 4;
    let packet = mend(packet);
    let reset = Syn::parse(&packet).unwrap().reset();
    assert_eq!(reset[28..32], (0x1f53_fabf_u32 + 5).to_be_bytes());
}

#[test]
fn an_unreachable_message_quotes_the_packet_under_the_right_code() {
    let cases = [
        (Unreachable::Network, 0, 0),
        (Unreachable::Host, 1, 3),
        (Unreachable::Port, 3, 4),
        (Unreachable::AdminProhibited, 13, 1),
    ];
    for (why, code_v4, code_v6) in cases {
        let captured = bytes(SYN_V4);
        let message = Syn::parse(&captured).unwrap().unreachable(why);
        assert!(super::is_intact(&message, Transport::Icmp));
        assert_eq!((message[9], message[20], message[21]), (1, 3, code_v4));
        assert_eq!(message[28..], captured);

        let captured = bytes(SYN_V6);
        let message = Syn::parse(&captured).unwrap().unreachable(why);
        assert!(super::is_intact(&message, Transport::Icmp));
        assert_eq!((message[6], message[40], message[41]), (58, 1, code_v6));
        assert_eq!(message[48..], captured);
    }
}

#[test]
fn answers_go_from_the_destination_to_the_source() {
    let syn = mend([&bytes(SYN_V4)[..16], &[8, 8, 8, 8], &bytes(SYN_V4)[20..]].concat());
    let syn = Syn::parse(&syn).unwrap();
    for answer in [syn.reset(), syn.unreachable(Unreachable::Host)] {
        assert_eq!(answer[12..16], [8, 8, 8, 8]);
        assert_eq!(answer[16..20], [10, 9, 9, 1]);
    }
}

#[test]
fn data_in_a_syn_is_neither_sent_on_nor_quoted() {
    for (hex, field, before) in [(SYN_V4, 2, 0), (SYN_V4_OPTIONS, 2, 0), (SYN_V6, 4, 40)] {
        let plain = mend(bytes(hex));
        let mut large = plain.clone();
        large.resize(1400, 7);
        large[field..field + 2].copy_from_slice(&(1400_u16 - before).to_be_bytes());
        let [plain, large] = [plain, mend(large)].map(|packet| Syn::parse(&packet).unwrap());
        assert_eq!(large.complete(), plain.complete());
        let [plain, large] = [plain, large].map(|syn| syn.unreachable(Unreachable::Host));
        assert_eq!(large, plain);
    }
}

#[test]
fn every_prefix_of_a_syn_is_refused() {
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
fn what_is_no_lone_syn_is_refused() {
    for flags in 0..=u8::MAX {
        let mut packet = bytes(SYN_V4);
        packet[33] = flags;
        let expected = flags & 0x17 == 0x02;
        assert_eq!(Syn::parse(&packet).is_ok(), expected, "{flags:#x}");
    }
}

#[test]
fn damaged_ipv4_headers_are_refused() {
    let with = |at: usize, value: u8| {
        let mut packet = bytes(SYN_V4);
        packet[at] = value;
        mend(packet)
    };
    assert_eq!(refusal(&with(0, 0x55)), Malformed::Version(5));
    assert_eq!(refusal(&[0x44; 60]), Malformed::Length);
    assert_eq!(refusal(&with(3, 19)), Malformed::Length);
    assert_eq!(refusal(&with(3, 61)), Malformed::Length);
    assert_eq!(refusal(&with(6, 0x20)), Malformed::Fragment);
    assert_eq!(refusal(&with(7, 0x01)), Malformed::Fragment);
    assert_eq!(refusal(&with(9, 17)), Malformed::Protocol(17));
    assert_eq!(refusal(&with(32, 0x40)), Malformed::Length);
    assert_eq!(refusal(&with(32, 0xf0)), Malformed::Length);
    let mut ports = with(20, 0);
    ports[21] = 0;
    assert_eq!(refusal(&ports), Malformed::PortZero);
    let mut damaged = bytes(SYN_V4);
    damaged[8] ^= 1;
    assert_eq!(refusal(&damaged), Malformed::Checksum);
}

#[test]
fn a_source_route_is_refused_in_both_families() {
    for option in [131, 137] {
        let mut packet = bytes(SYN_V4_OPTIONS);
        packet[20] = option;
        assert_eq!(refusal(&mend(packet)), Malformed::SourceRoute);
    }
    let mut packet = bytes(SYN_V4_OPTIONS);
    packet[21] = 1;
    assert_eq!(refusal(&mend(packet)), Malformed::Length);
    assert_eq!(
        refusal(&extended(43, &[6, 0, 0, 1, 0, 0, 0, 0])),
        Malformed::SourceRoute
    );
}

#[test]
fn ipv6_extension_headers_are_stepped_over_and_kept() {
    let padding = [1, 4, 0, 0, 0, 0];
    let chain = [
        &[43, 0][..],
        &padding,
        &[60, 0, 4, 0, 0, 0, 0, 0],
        &[6, 0],
        &padding,
    ]
    .concat();
    let packet = extended(0, &chain);
    let syn = Syn::parse(&packet).unwrap();
    assert_eq!(syn.destination(), "[fd00::1]:443".parse().unwrap());
    assert_eq!(syn.complete()[40..64], chain);
    assert!(is_intact(&syn.complete()));
}

#[test]
fn other_ipv6_headers_are_refused() {
    for kind in [44, 50, 51, 59, 135, 139, 17, 58] {
        assert_eq!(
            refusal(&extended(kind, &[6, 0, 0, 0, 0, 0, 0, 0])),
            Malformed::Protocol(kind)
        );
    }
    // Hop-by-hop options anywhere but first.
    let late = [0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(refusal(&extended(60, &late)), Malformed::Protocol(0));
    assert_eq!(
        refusal(&extended(60, &[6, 255, 0, 0, 0, 0, 0, 0])),
        Malformed::Short
    );
}

prop_compose! {
    /// A SYN between any addresses with any options and data, checksum unset.
    fn any_syn()(
        path in any_path(),
        ports in (1..=u16::MAX, 1..=u16::MAX),
        sequence in any::<u32>(),
        options in prop::collection::vec(any::<[u8; 4]>(), 0..=10),
        data in prop::collection::vec(any::<u8>(), 0..1500),
    ) -> Vec<u8> {
        let mut segment = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
        segment.extend(sequence.to_be_bytes());
        segment.extend([0; 4]);
        segment.push(u8::try_from((5 + options.len()) << 4).unwrap());
        segment.extend([0x02, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(options.concat());
        segment.extend(data);
        [path.header(path.number(Transport::Tcp), segment.len()), segment].concat()
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Syn::parse(&bytes);
    }

    /// Starts from a valid packet, so that the damage reaches deep branches.
    #[test]
    fn a_damaged_syn_never_panics(
        packet in any_syn(),
        damage in any_damage(),
    ) {
        let packet = damaged(packet, damage);
        if let Ok(syn) = Syn::parse(&packet) {
            assert!(is_intact(&syn.complete()));
            assert!(is_intact(&syn.reset()));
            assert!(super::is_intact(&syn.unreachable(Unreachable::Host), Transport::Icmp));
        }
    }

    #[test]
    fn every_answer_is_intact_and_goes_back(packet in any_syn()) {
        let syn = Syn::parse(&packet).unwrap();
        let complete = syn.complete();
        assert!(is_intact(&complete));
        assert!(complete.len() <= 40 + 60, "data is not sent again");
        let again = Syn::parse(&complete).unwrap();
        assert_eq!((again.source(), again.destination()), (syn.source(), syn.destination()));
        assert_eq!(again.complete(), complete);

        let reset = syn.reset();
        assert!(is_intact(&reset));
        let back = datagram(&packet, Transport::Tcp).path.reversed();
        assert_eq!(datagram(&reset, Transport::Tcp).path, back);
    }
}
