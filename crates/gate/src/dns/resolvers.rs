//! The host's own name servers, and the `resolv.conf` that the agent sees.

use std::{
    cell::RefCell,
    fs, io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    os::unix::fs::MetadataExt as _,
    rc::Rc,
};

use resolv_conf::{Config, ScopedIp};

pub(crate) const PATH: &str = "/etc/resolv.conf";
const PORT: u16 = 53;

/// The name servers of the host's `resolv.conf`, read again when the file changes.
#[derive(Debug, Default)]
pub(crate) struct Resolvers {
    cached: RefCell<Option<Cached>>,
}

/// What tells one state of a file from another. The time alone would not: its clock ticks
/// slowly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    changed: (i64, i64),
    length: u64,
    inode: u64,
}

impl Version {
    pub(crate) fn of(path: &str) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        Ok(Self {
            changed: (file.ctime(), file.ctime_nsec()),
            length: file.len(),
            inode: file.ino(),
        })
    }
}

#[derive(Debug)]
struct Cached {
    version: Version,
    servers: Rc<[SocketAddr]>,
}

impl Resolvers {
    /// In the order of the file. Empty if the host has none.
    pub(crate) fn current(&self) -> Rc<[SocketAddr]> {
        let Ok(version) = Version::of(PATH) else {
            return Rc::default();
        };
        let mut cached = self.cached.borrow_mut();
        if let Some(cached) = &*cached
            && cached.version == version
        {
            return Rc::clone(&cached.servers);
        }
        // A file that cannot be read just now is tried again at the next question.
        let Ok(config) = read() else {
            return Rc::default();
        };
        let servers: Rc<[SocketAddr]> = servers(&config).into();
        *cached = Some(Cached {
            version,
            servers: Rc::clone(&servers),
        });
        servers
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
