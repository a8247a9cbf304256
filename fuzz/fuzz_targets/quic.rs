//! A datagram: as it is, and as the parts of a client's first packet of QUIC.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_wire::quic::has_long_header;

fuzz_target!(|input: &[u8]| {
    check(input);
    let Some(([first, version @ .., to, from], rest)) = input.split_first_chunk::<7>() else {
        return;
    };
    // With identifiers that RFC 9000 allows, and padded as it demands.
    let (to, from) = (to % 21, from % 21);
    let mut packet = vec![first | 0xc0];
    packet.extend(version);
    for length in [to, from] {
        packet.push(length);
        packet.extend(rest.iter().chain(&[7; 20]).take(length.into()));
    }
    let header = packet.len();
    packet.extend(rest);
    packet.resize(packet.len().max(1200), 0);
    check(&packet);
    if *version != [0; 4] {
        assert!(has_long_header(&packet));
        return;
    }
    // The list of versions that a server answers with.
    for count in 0..10 {
        let is_list = count > 0 && count % 4 == 0;
        assert_eq!(has_long_header(&packet[..header + count]), is_list);
    }
});

fn check(datagram: &[u8]) {
    let is_quic = has_long_header(datagram);
    let Some(([first, version @ ..], rest)) = datagram.split_first_chunk::<5>() else {
        assert!(!is_quic);
        return;
    };
    assert!(first & 0x80 != 0 || !is_quic);
    let cleared = [&[first & 0x7f][..], version, rest].concat();
    assert!(!has_long_header(&cleared));
    if first & 0x80 != 0 {
        // Versions 1 and 2, and any that asks for the others, decide alone.
        for known in [
            [0, 0, 0, 1],
            [0x6b, 0x33, 0x43, 0xcf],
            [0x1a, 0x2a, 0x3a, 0x4a],
        ] {
            assert!(has_long_header(&[&[*first], &known[..], rest].concat()));
        }
    }
    if *version != [0; 4] && is_quic {
        assert!(
            has_long_header(&[datagram, &[0]].concat()),
            "more of the same"
        );
    }
}
