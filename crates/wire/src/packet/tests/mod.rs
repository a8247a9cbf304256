//! The packets here were captured on the loopback device of an empty network
//! namespace (Linux 6): they are what the gate will see, and what the kernel
//! itself answered.

mod echo;
mod refused;
mod syn;
mod udp;

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::checksum::Sum;
use super::ip::{Datagram, Path, Transport};
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap())
        .collect()
}

/// Recomputes the IPv4 header checksum, if there is such a header, after a test
/// changed it.
fn mend(mut packet: Vec<u8>) -> Vec<u8> {
    let length = usize::from(packet[0] & 0x0f) * 4;
    if packet[0] >> 4 == 4 && (20..=packet.len()).contains(&length) {
        packet[10..12].fill(0);
        let sum = Sum::default().add(&packet[..length]).finish();
        packet[10..12].copy_from_slice(&sum);
    }
    packet
}

fn datagram(packet: &[u8], transport: Transport) -> Datagram<'_> {
    Datagram::parse(packet, transport).unwrap()
}

/// Whether all checksums of a packet are right; panics if it is none of
/// `transport`.
fn is_intact(packet: &[u8], transport: Transport) -> bool {
    let Datagram { path, message, .. } = datagram(packet, transport);
    path.sum(transport, message).holds()
}

fn any_path() -> impl Strategy<Value = Path> {
    let v4 = any::<([u8; 4], [u8; 4])>();
    let v6 = any::<([u8; 16], [u8; 16])>();
    prop_oneof![
        v4.prop_map(|(from, to)| Path::V4 {
            from: Ipv4Addr::from(from),
            to: Ipv4Addr::from(to)
        }),
        v6.prop_map(|(from, to)| Path::V6 {
            from: Ipv6Addr::from(from),
            to: Ipv6Addr::from(to)
        }),
    ]
}

fn any_reason() -> impl Strategy<Value = Unreachable> {
    prop::sample::select(vec![
        Unreachable::Network,
        Unreachable::Host,
        Unreachable::Port,
        Unreachable::AdminProhibited,
    ])
}

type Damage = Vec<(prop::sample::Index, u8)>;

fn any_damage() -> impl Strategy<Value = Damage> {
    prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..8)
}

/// Some bytes overwritten; the header checksum made to fit, so that the damage
/// reaches what is read after it.
fn damaged(mut packet: Vec<u8>, damage: Damage) -> Vec<u8> {
    for (at, value) in damage {
        let at = at.index(packet.len());
        packet[at] = value;
    }
    mend(packet)
}
