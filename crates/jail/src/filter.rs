//! The packet filter of J.
//!
//! Every packet of J passes `lo`, and so this chain. What is to J's own addresses is the
//! agent talking to itself, or the gate talking to the agent. Everything else wants out:
//!
//! * a TCP SYN without the gate's mark is dropped here; the gate has its copy, and sends
//!   the packet again with the mark once the connection outside stands;
//! * other TCP packets pass if they belong to a connection that the gate accepted;
//! * UDP goes to the gate: to the socket that speaks for the destination to this client,
//!   if there is one, else to the one that takes first datagrams;
//! * an ICMP echo request is dropped; the gate has its copy, and answers;
//! * ports of loopback that stand for the host's are treated like outward connections;
//! * the rest is refused, so that nobody waits for an answer.

use std::net::{Ipv4Addr, Ipv6Addr};

use stockade_sys::{
    nft::{Refusal, Rule, Ruleset},
    packet::PASS_MARK,
    rtnl::LOOPBACK,
};

use crate::{ADDRESS_V4, ADDRESS_V6};

/// A privileged port, so that nothing inside can bind it, even for an instant.
pub(crate) const LISTENER_PORT: u16 = 1;
pub(crate) const DNS_PORT: u16 = 53;

const ICMP_UNREACHABLE: u8 = 3;
const ICMP_ECHO_REQUEST: u8 = 8;
const ICMPV6_UNREACHABLE: u8 = 1;
const ICMPV6_ECHO_REQUEST: u8 = 128;

pub(crate) fn ruleset(host_ports: &[u16]) -> Ruleset {
    let rule = Rule::new;
    let to_loopback = || rule().ipv4().to_ipv4(Ipv4Addr::new(127, 0, 0, 0), 8);
    let to_own_v4 = || rule().ipv4().to_ipv4(ADDRESS_V4, 32);
    let to_loopback_v6 = || rule().ipv6().to_ipv6(Ipv6Addr::LOCALHOST);
    let to_own_v6 = || rule().ipv6().to_ipv6(ADDRESS_V6);
    // The gate's ports are reached by way of the gate or not at all.
    let at_listener = |to: Rule| to.tcp().to_port(LISTENER_PORT).refuse(Refusal::TcpReset);
    let at_datagrams = |to: Rule| {
        to.udp()
            .to_port(LISTENER_PORT)
            .refuse(Refusal::AdminProhibited)
    };
    let held = |to: &dyn Fn() -> Rule, port: u16| {
        let syn = || to().tcp().to_port(port).syn();
        [
            syn().marked(PASS_MARK).to_listener(LISTENER_PORT),
            syn().drop(),
        ]
    };
    let mut rules = vec![rule().not_from_interface(LOOPBACK).drop()];
    for &port in host_ports {
        rules.extend(held(&to_loopback, port));
        rules.extend(held(&to_loopback_v6, port));
    }
    rules.extend([
        at_listener(to_loopback()),
        at_listener(to_own_v4()),
        at_listener(to_loopback_v6()),
        at_listener(to_own_v6()),
        at_datagrams(to_loopback()),
        at_datagrams(to_own_v4()),
        at_datagrams(to_loopback_v6()),
        at_datagrams(to_own_v6()),
        to_loopback().accept(),
        to_own_v4().accept(),
        to_loopback_v6().accept(),
        to_own_v6().accept(),
        // From here on, all is outward. A program may write any address into a packet as
        // its source (IP_FREEBIND), but an answer to it would not come back inside.
        rule()
            .ipv4()
            .not_from_ipv4(Ipv4Addr::new(127, 0, 0, 0), 8)
            .not_from_ipv4(ADDRESS_V4, 32)
            .drop(),
        rule()
            .ipv6()
            .not_from_ipv6(Ipv6Addr::LOCALHOST)
            .not_from_ipv6(ADDRESS_V6)
            .drop(),
        // The SYN comes before the socket match: that one
        // would find the listener itself for a SYN to the listener's port.
        rule()
            .tcp()
            .syn()
            .marked(PASS_MARK)
            .to_listener(LISTENER_PORT),
        rule().tcp().syn().drop(),
        rule().tcp().for_transparent_socket().accept(),
        rule().udp().to_port(DNS_PORT).to_listener(DNS_PORT),
        rule().udp().for_transparent_socket().accept(),
        rule().udp().to_listener(LISTENER_PORT),
        rule().icmp(ICMP_ECHO_REQUEST).drop(),
        rule().icmpv6(ICMPV6_ECHO_REQUEST).drop(),
        // The jail's own kernel says to a flow's socket that the client is gone. Nothing
        // inside can send such a message: it takes a raw socket.
        rule().icmp(ICMP_UNREACHABLE).accept(),
        rule().icmpv6(ICMPV6_UNREACHABLE).accept(),
        rule().refuse(Refusal::AdminProhibited),
    ]);
    Ruleset {
        table: "stockade",
        chain: "arrival",
        rules,
    }
}
