//! The host's own name servers, and the `resolv.conf` that the agent sees.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
};

use resolv_conf::{Config, ScopedIp};

use crate::names::host_file::HostFileContent;

pub(crate) const PATH: &str = "/etc/resolv.conf";
const PORT: u16 = 53;

/// The name servers of the host's `resolv.conf`, in its order.
pub(crate) type Resolvers = Vec<SocketAddr>;

impl HostFileContent for Resolvers {
    const PATH: &str = PATH;

    fn read() -> io::Result<Self> {
        read().map(|config| servers(&config))
    }
}

/// The `resolv.conf` for inside: the host's search domains and options, and one name
/// server, `server`.
///
/// A host without a readable file gets one without search domains.
#[must_use]
pub fn resolv_conf(server: Ipv4Addr) -> String {
    render(server, &read().unwrap_or_default())
}

fn render(server: Ipv4Addr, host: &Config) -> String {
    let mut text = format!("nameserver {server}\n");
    let search: Vec<_> = host
        .get_last_search_or_domain()
        .map(String::as_str)
        .filter(|domain| domain.bytes().all(|byte| byte.is_ascii_graphic()))
        .collect();
    if !search.is_empty() {
        text.push_str(&format!("search {}\n", search.join(" ")));
    }
    if host.ndots != 1 {
        text.push_str(&format!("options ndots:{}\n", host.ndots));
    }
    text
}

fn read() -> io::Result<Config> {
    Config::parse(fs::read(PATH)?)
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
            render(Ipv4Addr::new(192, 0, 2, 53), &host),
            "nameserver 192.0.2.53\nsearch lab.example corp\noptions ndots:2\n"
        );
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
