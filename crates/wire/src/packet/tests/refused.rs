//! The kernel's answer to a SYN at a port where nobody listens.

use super::syn::{RST_V4, SYN_V4};
use super::*;

#[test]
fn the_kernels_refusal_says_who_tried_what() {
    let packet = bytes(RST_V4);
    let refused = Refused::parse(&packet).unwrap();
    assert_eq!(refused.client, "10.9.9.1:49090".parse().unwrap());
    assert_eq!(refused.destination, "10.9.9.1:443".parse().unwrap());
}

#[test]
fn what_the_gate_itself_refuses_reads_the_same() {
    let captured = bytes(SYN_V4);
    let syn = Syn::parse(&captured).unwrap();
    let reset = syn.reset();
    let refused = Refused::parse(&reset).unwrap();
    assert_eq!(refused.client, syn.source());
    assert_eq!(refused.destination, syn.destination());
}

#[test]
fn other_segments_are_no_refusal() {
    let flags = 20 + 13;
    for other in [0x02, 0x04, 0x10, 0x12, 0x15, 0x16] {
        let mut packet = bytes(RST_V4);
        packet[flags] = other;
        let read = Refused::parse(&packet);
        assert_eq!(read, Err(Malformed::NotRefusal(other)));
    }
    // A reset within a connection.
    let mut packet = bytes(RST_V4);
    packet[20 + 7] = 1;
    assert!(Refused::parse(&packet).is_err());
}

#[test]
fn no_prefix_of_one_is_one() {
    let packet = bytes(RST_V4);
    for length in 0..packet.len() {
        assert!(Refused::parse(&packet[..length]).is_err(), "{length}");
    }
}
