//! Builds the network, and adds to it while it runs.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use super::ip::{ip, ip_in};
use super::spec::{DeadEnd, HostSpec, Place};
use super::{Host, lan};
use crate::error::{Doing, Error, Result};
use crate::guard::Closed;

const ROUTER: &str = "router";
const LAPTOP: &str = "laptop";

/// For routers and servers: forward or answer whatever comes, and never limit
/// the ICMP errors that tests count.
const HOST_SYSCTLS: [(&str, &str); 4] = [
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/icmp_ratelimit", "0"),
    ("net/ipv6/icmp/ratelimit", "0"),
];

const FORWARDING: [(&str, &str); 2] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv6/conf/all/forwarding", "1"),
];

pub(crate) struct Network {
    /// Links exist only for whoever has seen that the namespace is closed.
    _closed: Closed,
    router: Host,
    pub(crate) laptop: Host,
    /// Bridges on the laptop: name → the bridge's address and prefix length.
    bridges: BTreeMap<String, (IpAddr, u8)>,
    sysctls: Arc<OwnedFd>,
    wires: usize,
}

impl Network {
    /// Router and laptop, and nothing else yet.
    pub(crate) fn boot(closed: Closed, ipv6: bool, gid: u32) -> Result<Self> {
        fs::create_dir_all("/run/netns").doing("make /run/netns")?;
        let sysctls: Arc<OwnedFd> =
            Arc::new(fs::File::open("/proc/sys").doing("open /proc/sys")?.into());
        ip(&[netns_add(ROUTER), netns_add(LAPTOP)])?;
        let router = open_host(ROUTER, vec![lan::ROUTER.into()], &sysctls)?;
        let mut addresses = vec![IpAddr::from(lan::LAPTOP)];
        if ipv6 {
            addresses.push(lan::LAPTOP_V6.into());
        }
        let laptop = open_host(LAPTOP, addresses, &sysctls)?;

        router.sysctl_all(&HOST_SYSCTLS)?;
        router.sysctl_all(&FORWARDING)?;
        // Desktops let every user send pings without privilege.
        laptop.sysctl("net/ipv4/ping_group_range", &format!("{gid} {gid}"))?;

        ip_in(ROUTER, &router_lines(ipv6))?;
        ip_in(LAPTOP, &laptop_lines(ipv6))?;
        Ok(Self {
            _closed: closed,
            router,
            laptop,
            bridges: BTreeMap::new(),
            sysctls,
            wires: 0,
        })
    }

    /// Adds hosts, all at once: what takes time is starting `ip`.
    pub(crate) fn add_hosts(&mut self, specs: &[HostSpec]) -> Result<Vec<Host>> {
        ip(&specs
            .iter()
            .map(|spec| netns_add(&spec.name))
            .collect::<Vec<_>>())?;
        let mut hosts = Vec::new();
        let mut near_router = Vec::new();
        let mut near_laptop = Vec::new();
        let mut at_hosts = Vec::new();
        for spec in specs {
            let host = open_host(&spec.name, spec.addresses.clone(), &self.sysctls)?;
            host.sysctl_all(&HOST_SYSCTLS)?;
            self.wires += 1;
            let wire = format!("h{}", self.wires);
            match &spec.place {
                Place::Internet => near_router.extend(routed_wire(spec, &wire)),
                Place::Lan => near_router.extend(bridged_wire(spec, &wire, "lan0")),
                Place::Bridge(bridge) => near_laptop.extend(bridged_wire(spec, &wire, bridge)),
            }
            at_hosts.push((spec.name.clone(), self.host_lines(spec, self.wires)?));
            hosts.push(host);
        }
        ip_in(ROUTER, &near_router)?;
        ip_in(LAPTOP, &near_laptop)?;
        thread::scope(|scope| {
            let threads: Vec<_> = at_hosts
                .iter()
                .map(|(host, lines)| scope.spawn(|| ip_in(host, lines)))
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })?;
        Ok(hosts)
    }

    fn host_lines(&self, spec: &HostSpec, number: usize) -> Result<Vec<String>> {
        let mut lines = vec!["link set lo up".to_owned()];
        lines.extend(interface_up("eth0", &format!("fe80::1:{number:x}")));
        let (gateway, bridge) = match &spec.place {
            Place::Internet => ("inet6 fe80::1".to_owned(), None),
            Place::Lan => (lan::ROUTER.to_string(), None),
            Place::Bridge(name) => {
                let (address, prefix) = self.bridges.get(name).ok_or(Error::Place {
                    path: name.into(),
                    why: "the laptop has no bridge of this name",
                })?;
                (address.to_string(), Some(*prefix))
            }
        };
        for address in &spec.addresses {
            let prefix = match bridge {
                Some(prefix) => prefix,
                None if spec.is_on_lan_subnet(*address) => lan_prefix(*address),
                None => host_prefix(*address),
            };
            lines.push(address_add(*address, prefix, "eth0"));
        }
        lines.push(format!("route add 0.0.0.0/0 via {gateway} dev eth0"));
        if bridge.is_none() {
            lines.push("route add ::/0 via fe80::1 dev eth0".to_owned());
        }
        Ok(lines)
    }

    pub(crate) fn add_dead_end(&self, prefix: &str, kind: DeadEnd) -> Result<()> {
        self.router
            .ip(&format!("route add {} {prefix}", kind.route_type()))
    }

    /// A bridge on the laptop with an address, as container engines make it.
    pub(crate) fn add_bridge(&mut self, name: &str, address: IpAddr, prefix: u8) -> Result<()> {
        ip_in(
            LAPTOP,
            &[
                format!("link add {name} type bridge mcast_snooping 0"),
                format!("link set {name} addrgenmode none"),
                format!("link set {name} up"),
                address_add(address, prefix, name),
            ],
        )?;
        self.laptop.sysctl("net/ipv4/ip_forward", "1")?;
        self.bridges.insert(name.to_owned(), (address, prefix));
        Ok(())
    }

    /// A second way from the laptop to the router, as a VPN opens it.
    pub(crate) fn add_interface(
        &mut self,
        name: &str,
        address: IpAddr,
        prefix: u8,
        routes: &[&str],
    ) -> Result<()> {
        self.wires += 1;
        let wire = format!("h{}", self.wires);
        let mut near_router = vec![format!(
            "link add {wire} type veth peer name {name} netns {LAPTOP}"
        )];
        near_router.extend(interface_up(&wire, "fe80::1"));
        near_router.push(format!("route add {address} dev {wire}"));
        ip_in(ROUTER, &near_router)?;

        let mut at_laptop = interface_up(name, "fe80::2");
        at_laptop.push(address_add(address, prefix, name));
        for route in routes {
            let family = if route.contains(':') { "" } else { "inet6 " };
            at_laptop.push(format!("route add {route} via {family}fe80::1 dev {name}"));
        }
        ip_in(LAPTOP, &at_laptop)
    }
}

fn open_host(name: &str, addresses: Vec<IpAddr>, sysctls: &Arc<OwnedFd>) -> Result<Host> {
    let path = format!("/run/netns/{name}");
    let netns = fs::File::open(&path).doing(format_args!("open {path}"))?;
    Ok(Host {
        name: name.to_owned(),
        addresses,
        netns: Arc::new(netns.into()),
        sysctls: Arc::clone(sysctls),
    })
}

fn netns_add(name: &str) -> String {
    format!("netns add {name}")
}

/// Up, with a link-local address of our choice and no duplicate detection:
/// that would make the first second of every world useless.
fn interface_up(name: &str, link_local: &str) -> Vec<String> {
    vec![
        format!("link set {name} addrgenmode none"),
        format!("link set {name} up"),
        format!("address add {link_local}/64 dev {name} nodad"),
    ]
}

fn address_add(address: IpAddr, prefix: u8, interface: &str) -> String {
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

fn routed_wire(spec: &HostSpec, wire: &str) -> Vec<String> {
    let mut lines = vec![veth(spec, wire)];
    lines.extend(interface_up(wire, "fe80::1"));
    for address in &spec.addresses {
        lines.push(format!("route add {address} dev {wire}"));
    }
    lines
}

fn bridged_wire(spec: &HostSpec, wire: &str, bridge: &str) -> Vec<String> {
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

fn router_lines(ipv6: bool) -> Vec<String> {
    let mut lines = vec![
        "link set lo up".to_owned(),
        "link add lan0 type bridge mcast_snooping 0".to_owned(),
    ];
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

fn laptop_lines(ipv6: bool) -> Vec<String> {
    let mut lines = vec!["link set lo up".to_owned()];
    lines.extend(interface_up("eth0", "fe80::5"));
    lines.push(address_add(lan::LAPTOP.into(), lan::PREFIX, "eth0"));
    lines.push(format!("route add default via {} dev eth0", lan::ROUTER));
    if ipv6 {
        lines.push(address_add(lan::LAPTOP_V6.into(), lan::PREFIX_V6, "eth0"));
        lines.push("route add ::/0 via fe80::1 dev eth0".to_owned());
    }
    lines
}
