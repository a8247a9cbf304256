//! Builds the network, and adds to it while it runs.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use super::ip::{ip, ip_in};
use super::ready::{self, Neighbour};
use super::spec::{DeadEnd, HostSpec, Place};
use super::{Host, lan, lines};
use crate::error::{Doing, Error, Result};
use crate::guard::Closed;

pub(super) const ROUTER: &str = "router";
pub(super) const LAPTOP: &str = "laptop";

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

/// A bridge on the laptop itself.
#[derive(Clone, Copy)]
pub(super) struct Bridge {
    pub(super) address: IpAddr,
    pub(super) prefix: u8,
}

pub(crate) struct Network {
    /// Links exist only for whoever has seen that the namespace is closed.
    _closed: Closed,
    router: Host,
    pub(crate) laptop: Host,
    bridges: BTreeMap<String, Bridge>,
    sysctls: Arc<OwnedFd>,
    wires: usize,
}

impl Network {
    /// Router and laptop, and nothing else yet. `pinging`: the group that may
    /// send pings without privilege on the laptop.
    pub(crate) fn boot(closed: Closed, ipv6: bool, pinging: Option<u32>) -> Result<Self> {
        fs::create_dir_all("/run/netns").doing("make /run/netns")?;
        let sysctls: Arc<OwnedFd> =
            Arc::new(fs::File::open("/proc/sys").doing("open /proc/sys")?.into());
        ip(&[lines::netns_add(ROUTER), lines::netns_add(LAPTOP)])?;
        let router = open_host(ROUTER, vec![lan::ROUTER.into()], &sysctls)?;
        let mut addresses = vec![IpAddr::from(lan::LAPTOP)];
        if ipv6 {
            addresses.push(lan::LAPTOP_V6.into());
        }
        let laptop = open_host(LAPTOP, addresses, &sysctls)?;

        router.sysctl_all(&HOST_SYSCTLS)?;
        router.sysctl_all(&FORWARDING)?;
        if let Some(group) = pinging {
            laptop.sysctl("net/ipv4/ping_group_range", &format!("{group} {group}"))?;
        }

        ip_in(ROUTER, &lines::router(ipv6))?;
        ip_in(LAPTOP, &lines::laptop(ipv6))?;
        ready::wait(&laptop, "eth0", Neighbour::Router)?;
        // How long an absent LAN device takes to be found absent is something
        // that tests look at.
        ip_in(LAPTOP, &lines::patient("eth0"))?;
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
            .map(|spec| lines::netns_add(&spec.name))
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
            let bridge = match &spec.place {
                Place::Internet => {
                    near_router.extend(lines::routed_wire(spec, &wire, self.wires));
                    None
                }
                Place::Lan => {
                    near_router.extend(lines::bridged_wire(spec, &wire, "lan0"));
                    None
                }
                Place::Bridge(name) => {
                    near_laptop.extend(lines::bridged_wire(spec, &wire, name));
                    Some(self.bridge(name)?)
                }
            };
            at_hosts.push((lines::host(spec, self.wires, bridge), bridge));
            hosts.push(host);
        }
        ip_in(ROUTER, &near_router)?;
        ip_in(LAPTOP, &near_laptop)?;
        thread::scope(|scope| {
            let threads: Vec<_> = hosts
                .iter()
                .zip(&at_hosts)
                .map(|(host, (lines, bridge))| scope.spawn(|| finish(host, lines, *bridge)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        Ok(hosts)
    }

    fn bridge(&self, name: &str) -> Result<Bridge> {
        let bridge = self.bridges.get(name).copied();
        bridge.ok_or_else(|| Error::NoBridge(name.to_owned()))
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
                lines::address_add(address, prefix, name),
            ],
        )?;
        self.laptop.sysctl("net/ipv4/ip_forward", "1")?;
        self.bridges
            .insert(name.to_owned(), Bridge { address, prefix });
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
        near_router.extend(lines::interface_up(&wire, "fe80::1"));
        near_router.push(format!("route add {address} dev {wire}"));
        ip_in(ROUTER, &near_router)?;

        let mut at_laptop = lines::impatient(name).to_vec();
        at_laptop.extend(lines::interface_up(name, "fe80::2"));
        at_laptop.push(lines::address_add(address, prefix, name));
        for route in routes {
            let family = if route.contains(':') { "" } else { "inet6 " };
            at_laptop.push(format!("route add {route} via {family}fe80::1 dev {name}"));
        }
        ip_in(LAPTOP, &at_laptop)?;
        ready::wait(&self.laptop, name, Neighbour::Router)
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

/// Configures a host's own end of its wire, and waits until the wire works.
fn finish(host: &Host, lines: &[String], bridge: Option<Bridge>) -> Result<()> {
    ip_in(host.name(), lines)?;
    let neighbour = bridge.map_or(Neighbour::Router, |bridge| Neighbour::At(bridge.address));
    ready::wait(host, "eth0", neighbour)
}
