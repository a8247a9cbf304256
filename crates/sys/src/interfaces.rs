//! The network interfaces of the calling thread's network namespace.

use std::{
    io,
    net::{IpAddr, SocketAddrV6},
};

use nix::{ifaddrs::getifaddrs, net::if_::InterfaceFlags};

/// An interface, once for each of its addresses, or once without any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub is_up: bool,
    pub is_loopback: bool,
    pub address: Option<IpAddr>,
}

/// All interfaces and their addresses of IPv4 and IPv6.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let found = getifaddrs()?.map(|interface| {
        let address = interface.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|it| IpAddr::from(it.ip()));
            let v6 = address.as_sockaddr_in6().copied();
            v4.or(v6.map(|it| IpAddr::from(*SocketAddrV6::from(it).ip())))
        });
        Interface {
            name: interface.interface_name,
            is_up: interface.flags.contains(InterfaceFlags::IFF_UP),
            is_loopback: interface.flags.contains(InterfaceFlags::IFF_LOOPBACK),
            address,
        }
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_with_its_address() {
        let all = interfaces().expect("interfaces");
        assert!(all.iter().any(|it| it.is_loopback
            && it.is_up
            && it.address == Some(std::net::Ipv4Addr::LOCALHOST.into())));
    }
}
