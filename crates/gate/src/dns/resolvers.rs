//! The host's own name servers, and the `resolv.conf` that the agent sees.
//!
//! Names of `near` may be known on one link only, such as a VPN's. Where systemd-resolved runs, its
//! stub knows which link to ask, also if `/etc/resolv.conf` names other servers. Its own file says
//! where the stub is, and which search domains the links have.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
};

use resolv_conf::{Config, ScopedIp};
use stockade_policy::Hostname;

use crate::names::host_file::HostFileContent;

pub(crate) const PATH: &str = "/etc/resolv.conf";
/// What systemd-resolved would have the former be. Without a stub it is a link to a file with the
/// servers of all links.
pub(crate) const SPLIT_PATH: &str = "/run/systemd/resolve/stub-resolv.conf";
const PORT: u16 = 53;
/// Nobody has as many search domains.
const MOST_DOMAINS: usize = 32;

/// What the host's `resolv.conf` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resolvers {
    /// In its order.
    pub(crate) servers: Vec<SocketAddr>,
    pub(crate) search: Vec<Hostname>,
}

impl Resolvers {
    fn of(path: &str) -> io::Result<Self> {
        read(path).map(|config| Self {
            servers: servers(&config),
            search: search(&config),
        })
    }
}

impl HostFileContent for Resolvers {
    const PATH: &str = PATH;

    fn read() -> io::Result<Self> {
        Self::of(PATH)
    }
}

/// The same of systemd-resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SplitResolvers(pub(crate) Resolvers);

impl HostFileContent for SplitResolvers {
    const PATH: &str = SPLIT_PATH;

    fn read() -> io::Result<Self> {
        Resolvers::of(SPLIT_PATH).map(Self)
    }
}

fn search(config: &Config) -> Vec<Hostname> {
    let domains = config.get_last_search_or_domain();
    let domains = domains.filter_map(|domain| Hostname::from_wire(domain.as_bytes()));
    domains.take(MOST_DOMAINS).collect()
}

/// The `resolv.conf` for inside: the host's search domains and options, and one name
/// server, `server`. With `asks`, programs wait for as long as the user may take.
///
/// A host without a readable file gets one without search domains. Those of links are for names of
/// `near`, and nobody else's business.
#[must_use]
pub fn resolv_conf(server: Ipv4Addr, has_near_names: bool, asks: bool) -> String {
    let host = read(PATH).unwrap_or_default();
    let split = has_near_names.then(|| read(SPLIT_PATH).unwrap_or_default());
    render(server, &host, &split.unwrap_or_default(), asks)
}

/// How long programs wait for an answer that the user gives first, which is at most a minute. glibc
/// takes 30 s for the first and tries as often as the second says; musl takes the first for all tries
/// together.
const PATIENT: &str = "options timeout:60 attempts:3\n";

fn render(server: Ipv4Addr, host: &Config, split: &Config, asks: bool) -> String {
    let mut text = format!("nameserver {server}\n");
    let mut search: Vec<_> = host
        .get_last_search_or_domain()
        .map(String::as_str)
        .filter(|domain| domain.bytes().all(|byte| byte.is_ascii_graphic()))
        .collect();
    // Of links that the host's own file says nothing about.
    let of_links = self::search(split);
    for domain in of_links.iter().map(Hostname::as_str) {
        if !search.contains(&domain) {
            search.push(domain);
        }
    }
    if !search.is_empty() {
        text.push_str(&format!("search {}\n", search.join(" ")));
    }
    if host.ndots != 1 {
        text.push_str(&format!("options ndots:{}\n", host.ndots));
    }
    if asks {
        text.push_str(PATIENT);
    }
    text
}

fn read(path: &str) -> io::Result<Config> {
    Config::parse(fs::read(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn servers(config: &Config) -> Vec<SocketAddr> {
    config
        .nameservers
        .iter()
        .map(|server| match server {
            ScopedIp::V4(address) => SocketAddrV4::new(*address, PORT).into(),
            ScopedIp::V6(address, scope) => {
                let scope = scope.as_deref().map_or(0, interface_index);
                SocketAddrV6::new(*address, PORT, 0, scope).into()
            }
        })
        .collect()
}

/// The zone of a link-local address may be written as a number or as a device's name. A
/// zone that does not exist gives 0, with which the address is not reachable.
fn interface_index(zone: &str) -> u32 {
    let by_name = || {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        rustix::net::netdevice::name_to_index(&socket, zone).ok()
    };
    zone.parse().ok().or_else(by_name).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_gets_the_search_domains_and_one_name_server() {
        let host =
            Config::parse("nameserver 127.0.0.53\nsearch lab.example corp\noptions ndots:2\n")
                .expect("a valid file");
        assert_eq!(
            render(Ipv4Addr::new(192, 0, 2, 53), &host, &Config::new(), false),
            "nameserver 192.0.2.53\nsearch lab.example corp\noptions ndots:2\n"
        );
        let split = Config::parse("nameserver 127.0.0.53\nsearch vpn.example corp bad/name\n");
        assert_eq!(
            render(
                Ipv4Addr::new(192, 0, 2, 53),
                &host,
                &split.expect("valid"),
                false
            ),
            "nameserver 192.0.2.53\nsearch lab.example corp vpn.example\noptions ndots:2\n"
        );
        let none = Config::default();
        let patient = render(Ipv4Addr::new(192, 0, 2, 53), &none, &none, true);
        assert_eq!(patient, format!("nameserver 192.0.2.53\n{PATIENT}"));
    }

    #[test]
    fn loopback_stubs_and_zones_are_servers_too() {
        let host = Config::parse("nameserver 127.0.0.53\nnameserver fe80::1%1\n").expect("valid");
        let expected: Vec<SocketAddr> = vec![
            "127.0.0.53:53".parse().expect("address"),
            SocketAddrV6::new("fe80::1".parse().expect("address"), 53, 0, 1).into(),
        ];
        assert_eq!(servers(&host), expected);
    }
}
