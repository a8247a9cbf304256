//! Policies, flows and hosts in which things meet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use proptest::prelude::*;
use stockade_policy::{Evidence, Flow, Hostname, Policy, Protocol, Route, Rule};

/// Addresses that sit close together and on the edges of every class, so that
/// rules and flows meet.
pub(crate) fn any_address() -> impl Strategy<Value = IpAddr> {
    let near = prop::sample::select(vec![
        "0.0.0.0",
        "8.8.8.8",
        "10.0.0.1",
        "10.0.0.2",
        "10.0.1.1",
        "93.0.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "168.63.129.16",
        "169.254.169.254",
        "192.168.1.5",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "::ffff:0:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::8.8.8.8",
        "64:ff9b:1::10.0.0.1",
        "2001:0:a00:1::1",
        "2002:a00:1::1",
        "2002:808:808::1",
        "2606::1",
        "fd00::5",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
    ]);
    prop_oneof![
        4 => near.prop_map(|text| text.parse().unwrap()),
        1 => any::<Ipv4Addr>().prop_map(IpAddr::from),
        1 => any::<Ipv6Addr>().prop_map(IpAddr::from),
        1 => any::<Ipv4Addr>().prop_map(|address| address.to_ipv6_mapped().into()),
    ]
}

pub(crate) fn any_port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(80), Just(443), Just(65535), 1..=u16::MAX]
}

pub(crate) fn any_flow() -> impl Strategy<Value = Flow> {
    (any_address(), any_port(), 0..3).prop_map(|(address, port, kind)| match kind {
        0 => Flow::tcp(SocketAddr::new(address, port)).unwrap(),
        1 => Flow::udp(SocketAddr::new(address, port)).unwrap(),
        _ => Flow::echo(address),
    })
}

pub(crate) fn any_protocol() -> impl Strategy<Value = Option<Protocol>> {
    prop::sample::select(vec![
        None,
        Some(Protocol::Tcp),
        Some(Protocol::Udp),
        Some(Protocol::Icmp),
    ])
}

pub(crate) fn any_ports() -> impl Strategy<Value = Option<Vec<(u16, u16)>>> {
    let range = (any_port(), any_port()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop::option::of(prop::collection::vec(range, 1..4))
}

/// Writes a rule from its parts; not every combination is one.
pub(crate) fn write(
    protocol: Option<Protocol>,
    network: IpNet,
    ports: Option<&[(u16, u16)]>,
) -> String {
    let protocol = protocol.map_or(String::new(), |protocol| format!("{protocol}://"));
    let Some(ports) = ports else {
        return format!("{protocol}{network}");
    };
    let ports = write_ports(ports);
    match network {
        IpNet::V4(_) => format!("{protocol}{network}:{ports}"),
        IpNet::V6(_) => format!("{protocol}[{network}]:{ports}"),
    }
}

fn write_ports(ports: &[(u16, u16)]) -> String {
    let ports: Vec<_> = ports.iter().map(|(a, b)| format!("{a}-{b}")).collect();
    ports.join(",")
}

pub(crate) fn network(address: IpAddr, length: u8) -> IpNet {
    let address = address.to_canonical();
    let max = IpNet::from(address).max_prefix_len();
    IpNet::new(address, length.min(max)).unwrap().trunc()
}

pub(crate) fn any_length() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0), Just(128), 0..=128_u8]
}

/// A few names that are below, beside and across each other.
pub(crate) fn any_name() -> impl Strategy<Value = Hostname> {
    let name = prop::sample::select(vec![
        "example.org",
        "www.example.org",
        "a.www.example.org",
        "a-www.example.org",
        "badexample.org",
        "b.example.org",
        "example.net",
        "printer",
        "lan",
        "x.lan",
        "localhost",
    ]);
    name.prop_map(|text| text.parse().unwrap())
}

pub(crate) fn any_names() -> impl Strategy<Value = Vec<Hostname>> {
    prop::collection::vec(any_name(), 0..4)
}

pub(crate) fn any_address_rule() -> impl Strategy<Value = Rule> {
    (any_protocol(), any_address(), any_length(), any_ports()).prop_filter_map(
        "not a rule",
        |(protocol, address, length, ports)| {
            write(protocol, network(address, length), ports.as_deref())
                .parse()
                .ok()
        },
    )
}

pub(crate) fn any_name_rule() -> impl Strategy<Value = Rule> {
    (any_protocol(), any_name(), any::<bool>(), any_ports()).prop_filter_map(
        "not a rule",
        |(protocol, name, wildcard, ports)| {
            write_name(protocol, &name, wildcard, ports.as_deref())
                .parse()
                .ok()
        },
    )
}

pub(crate) fn any_near_rule() -> impl Strategy<Value = Rule> {
    any_name_rule().prop_map(|rule| Rule::parse_near(&rule.to_string()).unwrap())
}

pub(crate) fn write_name(
    protocol: Option<Protocol>,
    name: &Hostname,
    wildcard: bool,
    ports: Option<&[(u16, u16)]>,
) -> String {
    let protocol = protocol.map_or(String::new(), |protocol| format!("{protocol}://"));
    let star = if wildcard { "*." } else { "" };
    let ports = ports.map_or(String::new(), |ports| format!(":{}", write_ports(ports)));
    format!("{protocol}{star}{name}{ports}")
}

pub(crate) fn any_rule() -> impl Strategy<Value = Rule> {
    prop_oneof![3 => any_address_rule(), 2 => any_name_rule(), 2 => any_near_rule()]
}

pub(crate) fn any_policy() -> impl Strategy<Value = Policy> {
    (any::<bool>(), prop::collection::vec(any_rule(), 0..5)).prop_map(|(internet, rules)| Policy {
        internet,
        rules: rules.into_iter().collect(),
        ..Policy::default()
    })
}

/// Evidence that owns its names.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) route: Route,
    pub(crate) own: bool,
    pub(crate) names: Vec<Hostname>,
}

impl Known {
    pub(crate) fn evidence(&self) -> Evidence<'_> {
        Evidence {
            route: self.route,
            own: self.own,
            names: &self.names,
        }
    }
}

/// What the kernel says.
fn any_kernel_route() -> impl Strategy<Value = Route> {
    prop_oneof![
        3 => Just(Route::Default),
        1 => Just(Route::Specific("93.0.0.0/8".parse().unwrap())),
        1 => Just(Route::Local),
        1 => Just(Route::Broadcast),
        1 => Just(Route::None),
    ]
}

/// Evidence before it is known whether there is a proxy.
pub(crate) fn any_kernel_evidence() -> impl Strategy<Value = Known> {
    evidence_with(any_kernel_route())
}

pub(crate) fn any_evidence() -> impl Strategy<Value = Known> {
    evidence_with(prop_oneof![
        7 => any_kernel_route(),
        1 => Just(Route::Proxied),
        1 => Just(Route::ToProxy),
    ])
}

fn evidence_with(route: impl Strategy<Value = Route>) -> impl Strategy<Value = Known> {
    (route, prop::bool::weighted(0.2), any_names()).prop_map(|(route, own, names)| Known {
        route,
        own,
        names,
    })
}

pub(crate) fn with_rules(policy: &Policy, rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy {
        rules: rules.into_iter().collect(),
        ..policy.clone()
    }
}
