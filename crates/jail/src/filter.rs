//! The packet filter of J.
//!
//! Every packet of J passes `lo`, and so this chain. What is to J's own addresses is the
//! agent talking to itself, or the gate talking to the agent. Everything else wants out:
//!
//! * a TCP SYN without the gate's mark is dropped here; the gate has its copy, and sends
//!   the packet again with the mark once the connection outside stands;
//! * other TCP packets pass if they belong to a connection that the gate accepted;
//! * DNS goes to the gate, whatever server it was meant for;
//! * the rest is refused, so that nobody waits for an answer.

use std::net::{Ipv4Addr, Ipv6Addr};

use stockade_sys::{
    nft::{Refusal, Rule, Ruleset},
    packet::PASS_MARK,
    rtnl::LOOPBACK,
};

use crate::ADDRESS;

/// A privileged port, so that nothing inside can bind it, even for an instant.
pub(crate) const LISTENER_PORT: u16 = 1;
pub(crate) const DNS_PORT: u16 = 53;

pub(crate) fn ruleset() -> Ruleset {
    let rule = Rule::new;
    let to_loopback = || rule().ipv4().to_ipv4(Ipv4Addr::new(127, 0, 0, 0), 8);
    let to_own_address = || rule().ipv4().to_ipv4(ADDRESS, 32);
    let outward_tcp = || rule().ipv4().tcp();
    Ruleset {
        table: "stockade",
        chain: "arrival",
        rules: vec![
            rule().not_from_interface(LOOPBACK).drop(),
            // The gate's listener is reached by way of the gate or not at all.
            to_loopback()
                .tcp()
                .to_port(LISTENER_PORT)
                .refuse(Refusal::TcpReset),
            to_own_address()
                .tcp()
                .to_port(LISTENER_PORT)
                .refuse(Refusal::TcpReset),
            to_loopback().accept(),
            to_own_address().accept(),
            rule().ipv6().to_ipv6(Ipv6Addr::LOCALHOST).accept(),
            // From here on, all is outward. The SYN comes before the socket match: that
            // one would find the listener itself for a SYN to the listener's port.
            outward_tcp()
                .syn()
                .marked(PASS_MARK)
                .to_listener_ipv4(LISTENER_PORT),
            outward_tcp().syn().drop(),
            outward_tcp().for_transparent_socket().accept(),
            rule()
                .ipv4()
                .udp()
                .to_port(DNS_PORT)
                .to_listener_ipv4(DNS_PORT),
            rule().refuse(Refusal::AdminProhibited),
        ],
    }
}
