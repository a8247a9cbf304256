//! Plumbing both networks, in the jail thread: one straight sequence.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use stockade_sys::{
    namespace::{Identity, Network, enter_network_namespace},
    packet::{Injector, Tap},
    rtnl::{LOOPBACK, Routing},
    transparent::{AnyAddressUdp, Family, listen},
};

use crate::{
    ADDRESS_V4, ADDRESS_V6, Error, Face, HostPorts, JailSettings, Sockets,
    filter::{self, DNS_PORT},
    socket_factory::SocketFactory,
    worker::{Orders, Worker},
};

/// Of both ends of the pair. Far from the low indices, which tunnel modules may have taken for
/// their fallback devices.
const DEVICE: u32 = 100;
const AGENTS_NAME: &str = "stockade0";
const GATES_NAME: &str = "jail";
/// Nobody has these: they only stand for the other end of the pair.
const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
/// After the table of J's own addresses (0), before everything else.
const RULE_PRIORITY: u32 = 10;

/// Builds the gatehouse and the way to it. The calling thread is in J, before and after, and
/// `orders` lead to it; the thread that is returned is in the gatehouse.
pub(crate) fn build(settings: &JailSettings, orders: Orders) -> Result<(Sockets, Worker), Error> {
    let jail = at("find the jail's network", Network::current())?;
    let mut agents = at("open a route socket", Routing::open())?;
    at("bring lo up", agents.set_up(LOOPBACK))?;
    permit_ping();

    enter_network_namespace().map_err(Error::NetworkNamespace)?;
    // A thread is where the one is that starts it.
    let gatehouse = Worker::start("gatehouse", |_| true)?;
    let mut gates = at("open a route socket", Routing::open())?;
    at("bring lo up", gates.set_up(LOOPBACK))?;
    gates
        .add_pair(DEVICE, GATES_NAME, &jail, AGENTS_NAME)
        .map_err(Error::Pair)?;
    gates.without_link_local(DEVICE);
    // Filter and sockets come before the devices are up: at no time is there a way without them.
    let ruleset = filter::gatehouse(DEVICE);
    ruleset.install().map_err(Error::Filter)?;
    let v4 = face(ADDRESS_V4.into())?;
    let v6 = settings.ipv6.then(|| face(ADDRESS_V6.into())).transpose()?;
    let injector = at("open raw sockets", Injector::open())?;
    at("bring the device up", gates.set_up(DEVICE))?;
    for own in addresses(settings) {
        at("add the routes", gates.add_everything_arrives(own, DEVICE))?;
    }

    at("go back to the jail", jail.enter())?;
    let refusals = |family| at("tap refusals", Tap::refusals(family));
    let sockets = Sockets {
        v4,
        v6,
        host_ports: host_ports(settings)?,
        refusals: [refusals(Family::V4)?, refusals(Family::V6)?],
        injector,
        socket_factory: SocketFactory::new(orders, gatehouse.orders.clone()),
    };
    agents.without_link_local(DEVICE);
    at("bring the device up", agents.set_up(DEVICE))?;
    for own in addresses(settings) {
        at("set the address", agents.add_address(DEVICE, own))?;
        let gateway = match own {
            IpAddr::V4(_) => GATEWAY_V4.into(),
            IpAddr::V6(_) => GATEWAY_V6.into(),
        };
        if own.is_ipv6() {
            let prohibited = agents.prohibit_link_local(RULE_PRIORITY);
            at("prohibit link-local addresses", prohibited)?;
        }
        at("add the route", agents.add_default(gateway, DEVICE))?;
    }
    // The agents' end sends since it is up, because the other one was. That one does not yet: the
    // first answer might be lost, and the program inside would wait a second, or five for a name.
    at("wait for the device", gates.wait_until_it_sends(DEVICE))?;
    Ok((sockets, gatehouse))
}

/// The addresses of the agent's side that lead anywhere.
fn addresses(settings: &JailSettings) -> impl Iterator<Item = IpAddr> + use<> {
    let v6 = settings.ipv6.then_some(IpAddr::V6(ADDRESS_V6));
    [Some(ADDRESS_V4.into()), v6].into_iter().flatten()
}

/// In the gatehouse.
fn face(own: IpAddr) -> Result<Face, Error> {
    let family = Family::of(own);
    Ok(Face {
        dns: at("listen for DNS", AnyAddressUdp::bind(family, DNS_PORT))?,
        datagrams: at("tap datagrams", Tap::datagrams(DEVICE, own, DNS_PORT))?,
        syns: at("tap connection attempts", Tap::syns(DEVICE, own, &[]))?,
        echoes: at("tap echo requests", Tap::echoes(DEVICE, own))?,
        groups: at("tap groups", Tap::groups(DEVICE, family))?,
        foreign: at("tap other protocols", Tap::foreign(DEVICE, own))?,
    })
}

/// In J, whose loopback it is.
fn host_ports(settings: &JailSettings) -> Result<Option<HostPorts>, Error> {
    let ports = &settings.host_ports;
    if ports.is_empty() {
        return Ok(None);
    }
    let ruleset = filter::host_ports(ports, settings.ipv6);
    ruleset.install().map_err(Error::Filter)?;
    let (mut syns, mut listeners) = (Vec::new(), Vec::new());
    for own in addresses(settings) {
        let tap = Tap::syns(LOOPBACK, own, ports);
        syns.push(at("tap connection attempts", tap)?);
        let loopback = match own {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        for &port in ports {
            let listener = listen((loopback, port).into());
            listeners.push(at("listen for connections", listener)?);
        }
    }
    let injector = at("open raw sockets", Injector::open())?;
    Ok(Some(HostPorts {
        syns,
        listeners,
        injector,
    }))
}

/// Lets programs inside have ping sockets. Only a convenience: where `/proc/sys` is read-only
/// `ping` fails at once, with an error of its own.
fn permit_ping() {
    let gid = Identity::current().gid;
    let _ = fs::write(
        "/proc/sys/net/ipv4/ping_group_range",
        format!("{gid} {gid}"),
    );
}

fn at<T>(step: &'static str, result: io::Result<T>) -> Result<T, Error> {
    result.map_err(|error| Error::Plumbing { step, error })
}
