//! What is said to `ip`, line by line.

use std::net::IpAddr;

use super::build::{Bridge, LAPTOP};
use super::lan;
use super::spec::{HostSpec, Place};

pub(super) fn netns_add(name: &str) -> String {
    format!("netns add {name}")
}

/// Up, with a link-local address of our choice and no duplicate detection:
/// that would make the first second of every world useless.
pub(super) fn interface_up(name: &str, link_local: &str) -> Vec<String> {
    vec![
        format!("link set {name} addrgenmode none"),
        format!("link set {name} up"),
        format!("address add {link_local}/64 dev {name} nodad"),
    ]
}

/// Asks again soon for a neighbour that did not answer because its wire was
/// not switched on yet. Gives it up no sooner than by default: on a busy machine an
/// answer may take its time.
pub(super) fn impatient(interface: &str) -> [String; 2] {
    ask_again_after(20, 150, interface)
}

/// As by default.
pub(super) fn patient(interface: &str) -> [String; 2] {
    ask_again_after(1000, 3, interface)
}

fn ask_again_after(milliseconds: u32, times: u32, interface: &str) -> [String; 2] {
    ["arp_cache", "ndisc_cache"].map(|table| {
        format!(
            "ntable change name {table} dev {interface} retrans {milliseconds} \
             ucast_probes {times} mcast_probes {times}"
        )
    })
}

pub(super) fn address_add(address: IpAddr, prefix: u8, interface: &str) -> String {
    let nodad = if address.is_ipv6() { " nodad" } else { "" };
    format!("address add {address}/{prefix} dev {interface}{nodad}")
}

fn host_prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn lan_prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() {
        lan::PREFIX
    } else {
        lan::PREFIX_V6
    }
}

pub(super) fn routed_wire(spec: &HostSpec, wire: &str, number: usize) -> Vec<String> {
    let mut lines = vec![veth(spec, wire)];
    lines.extend(impatient(wire));
    lines.extend(interface_up(wire, "fe80::1"));
    for address in &spec.addresses {
        lines.push(format!("route add {address} dev {wire}"));
    }
    for network in &spec.networks {
        // Through one neighbour, not as many as there are addresses.
        let family = if network.contains(':') { "" } else { "inet6 " };
        let host = link_local(number);
        lines.push(format!("route add {network} via {family}{host} dev {wire}"));
    }
    lines
}

/// A host's own, unique on the LAN.
fn link_local(number: usize) -> String {
    format!("fe80::1:{number:x}")
}

pub(super) fn bridged_wire(spec: &HostSpec, wire: &str, bridge: &str) -> Vec<String> {
    let mut lines = vec![
        veth(spec, wire),
        format!("link set {wire} addrgenmode none"),
        format!("link set {wire} master {bridge} up"),
    ];
    let strangers = spec
        .addresses
        .iter()
        .filter(|address| spec.place == Place::Lan && !spec.is_on_lan_subnet(**address));
    lines.extend(strangers.map(|address| format!("route add {address} dev {bridge}")));
    lines
}

fn veth(spec: &HostSpec, wire: &str) -> String {
    format!(
        "link add {wire} type veth peer name eth0 netns {}",
        spec.name
    )
}

pub(super) fn router(ipv6: bool) -> Vec<String> {
    let mut lines = vec![
        "link set lo up".to_owned(),
        "link add lan0 type bridge mcast_snooping 0".to_owned(),
    ];
    lines.extend(impatient("lan0"));
    lines.extend(interface_up("lan0", "fe80::1"));
    lines.push(address_add(lan::ROUTER.into(), lan::PREFIX, "lan0"));
    if ipv6 {
        lines.push(address_add(lan::ROUTER_V6.into(), lan::PREFIX_V6, "lan0"));
    }
    lines.push(format!(
        "link add h0 type veth peer name eth0 netns {LAPTOP}"
    ));
    lines.push("link set h0 addrgenmode none".to_owned());
    lines.push("link set h0 master lan0 up".to_owned());
    lines
}

pub(super) fn laptop(ipv6: bool) -> Vec<String> {
    let mut lines = vec!["link set lo up".to_owned()];
    lines.extend(impatient("eth0"));
    lines.extend(interface_up("eth0", "fe80::5"));
    lines.push(address_add(lan::LAPTOP.into(), lan::PREFIX, "eth0"));
    lines.push(format!("route add default via {} dev eth0", lan::ROUTER));
    if ipv6 {
        lines.push(address_add(lan::LAPTOP_V6.into(), lan::PREFIX_V6, "eth0"));
        lines.push("route add ::/0 via fe80::1 dev eth0".to_owned());
    }
    lines
}

/// A host's own end.
pub(super) fn host(spec: &HostSpec, number: usize, bridge: Option<Bridge>) -> Vec<String> {
    let mut lines = vec!["link set lo up".to_owned()];
    lines.extend(impatient("eth0"));
    lines.extend(interface_up("eth0", &link_local(number)));
    for address in &spec.addresses {
        let prefix = match bridge {
            Some(bridge) => bridge.prefix,
            None if spec.is_on_lan_subnet(*address) => lan_prefix(*address),
            None => host_prefix(*address),
        };
        lines.push(address_add(*address, prefix, "eth0"));
    }
    let all_of = |network| format!("route add local {network} dev lo");
    lines.extend(spec.networks.iter().map(all_of));
    let gateway = match (bridge, &spec.place) {
        (Some(bridge), _) => bridge.address.to_string(),
        (None, Place::Lan) => lan::ROUTER.to_string(),
        (None, _) => "inet6 fe80::1".to_owned(),
    };
    lines.push(format!("route add 0.0.0.0/0 via {gateway} dev eth0"));
    if bridge.is_none() {
        lines.push("route add ::/0 via fe80::1 dev eth0".to_owned());
    }
    lines
}
