//! A packet that may be a SYN, and every answer to it.

#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use stockade_fuzz::ip::{self, Packet, word};
use stockade_wire::packet::{Echo, Malformed, Refused, Syn, Unreachable};

fuzz_target!(|packet: &[u8]| {
    check(packet);
    check(&ip::mended(packet));
});

fn check(packet: &[u8]) {
    let refused = Refused::parse(packet);
    let Ok(syn) = Syn::parse(packet) else {
        return;
    };
    assert!(refused.is_err());
    assert!(Echo::parse(packet).is_err());
    let about = Packet::read(packet);
    assert_eq!(about.protocol, ip::TCP);
    assert_eq!(
        (about.from, about.to),
        (syn.source().ip(), syn.destination().ip())
    );
    assert_eq!(word(about.message, 0), syn.source().port());
    assert_eq!(word(about.message, 2), syn.destination().port());
    assert_eq!(about.message[4..8], syn.sequence().to_be_bytes());
    assert_eq!(about.message[13] & 0x17, 0x02);

    let length = about.header.len() + about.message.len();
    assert!(Syn::parse(&packet[..length - 1]).is_err());

    reset(&syn, &about);
    let packet = &without_data(&about, &packet[..length]);
    let about = Packet::read(packet);
    complete(&syn, &about, packet);
    for why in [
        Unreachable::Network,
        Unreachable::Host,
        Unreachable::Port,
        Unreachable::AdminProhibited,
    ] {
        ip::assert_unreachable(&syn.unreachable(why), &about, packet);
    }
}

/// The packet up to the end of TCP's options.
fn without_data(about: &Packet<'_>, packet: &[u8]) -> Vec<u8> {
    let length = about.header.len() + usize::from(about.message[12] >> 4) * 4;
    let mut packet = packet[..length].to_vec();
    let (field, counted) = match about.from {
        IpAddr::V4(_) => (2, length),
        IpAddr::V6(_) => (4, length - 40),
    };
    let counted = u16::try_from(counted).unwrap();
    packet[field..field + 2].copy_from_slice(&counted.to_be_bytes());
    ip::mended(&packet)
}

/// The same packet but for its checksum, and it stays that way.
fn complete(syn: &Syn, about: &Packet<'_>, packet: &[u8]) {
    let complete = syn.complete();
    Packet::read(&complete).assert_complete(&complete);
    let checksum = about.header.len() + 16;
    let mut same = packet.to_vec();
    same[checksum..checksum + 2].copy_from_slice(&complete[checksum..checksum + 2]);
    assert_eq!(complete, same);

    let again = Syn::parse(&complete).unwrap();
    assert_eq!(again.complete(), complete);
    assert_eq!(
        (again.source(), again.destination(), again.sequence()),
        (syn.source(), syn.destination(), syn.sequence())
    );
}

fn reset(syn: &Syn, about: &Packet<'_>) {
    let packet = syn.reset();
    assert!(matches!(Syn::parse(&packet), Err(Malformed::NotSyn(_))));
    let reset = Packet::read(&packet);
    reset.assert_complete(&packet);
    let refused = Refused::parse(&packet).unwrap();
    assert_eq!(
        (refused.client, refused.destination),
        (syn.source(), syn.destination())
    );
    assert_eq!((reset.from, reset.to), (about.to, about.from));
    assert_eq!(word(reset.message, 0), syn.destination().port());
    assert_eq!(word(reset.message, 2), syn.source().port());
    let data = about.message.len() - usize::from(about.message[12] >> 4) * 4;
    let next = syn
        .sequence()
        .wrapping_add(u32::try_from(data + 1).unwrap());
    assert_eq!(reset.message[8..12], next.to_be_bytes());
    assert_eq!(reset.message[13], 0x14);
}
