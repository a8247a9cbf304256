//! The packet filters.
//!
//! What the agent sends to others comes to the gatehouse, and meets a filter there:
//!
//! * a TCP SYN is dropped; the gate has its copy, and sends the packet again with a mark, by `lo`,
//!   once the connection outside stands;
//! * other TCP packets pass: they belong to a connection that the gate accepted, or to none;
//! * a UDP datagram is dropped; the gate has its copy. Those for DNS arrive at a socket of the gate;
//! * an ICMP echo request is dropped; the gate has its copy, and answers;
//! * so is the rest, of which the gate has copies, too.
//!
//! In J itself there is one only if ports of its loopback stand for the host's: they are
//! treated like outward connections.

use std::net::{Ipv4Addr, Ipv6Addr};

use stockade_sys::{
    nft::{Rule, Ruleset},
    packet::PASS_MARK,
    rtnl::LOOPBACK,
};

use crate::{ADDRESS_V4, ADDRESS_V6};

pub(crate) const DNS_PORT: u16 = 53;

const ICMP_UNREACHABLE: u8 = 3;
const ICMPV6_UNREACHABLE: u8 = 1;
const ROUTING_HEADER: u8 = 43;

/// `device` leads to J.
pub(crate) fn gatehouse(device: u32) -> Ruleset {
    let rule = Rule::new;
    let to_many_v4 = |address, length| rule().ipv4().to_ipv4(address, length);
    named(vec![
        rule().from_interface(LOOPBACK).marked(PASS_MARK).accept(),
        rule().not_from_interface(device).drop(),
        // A program may write any address into a packet as its source (IP_FREEBIND), but an
        // answer to it would not come back inside.
        rule().ipv4().not_from_ipv4(ADDRESS_V4).drop(),
        rule().ipv6().not_from_ipv6(ADDRESS_V6).drop(),
        to_many_v4(Ipv4Addr::new(224, 0, 0, 0), 4).drop(),
        to_many_v4(Ipv4Addr::BROADCAST, 32).drop(),
        rule().ipv6().to_group().drop(),
        rule().ipv6().next_header(ROUTING_HEADER).drop(),
        rule().tcp().syn().drop(),
        rule().tcp().accept(),
        rule().udp().to_port(DNS_PORT).accept(),
        // The agent's kernel says to a flow's socket that the client is gone. Nothing
        // inside can send such a message: it takes a raw socket.
        rule().icmp(ICMP_UNREACHABLE).accept(),
        rule().icmpv6(ICMPV6_UNREACHABLE).accept(),
    ])
}

pub(crate) fn host_ports(ports: &[u16], ipv6: bool) -> Ruleset {
    let held = |to: Rule, port| {
        let syn = to.tcp().to_port(port).syn();
        syn.not_marked(PASS_MARK).drop()
    };
    let mut rules = Vec::new();
    for &port in ports {
        let to_loopback = Rule::new().ipv4().to_ipv4(Ipv4Addr::LOCALHOST, 32);
        rules.push(held(to_loopback, port));
        if ipv6 {
            let to_loopback = Rule::new().ipv6().to_ipv6(Ipv6Addr::LOCALHOST);
            rules.push(held(to_loopback, port));
        }
    }
    rules.push(Rule::new().accept());
    named(rules)
}

/// It drops what no rule accepts.
fn named(rules: Vec<Rule>) -> Ruleset {
    Ruleset {
        table: "stockade",
        chain: "arrival",
        rules,
    }
}
