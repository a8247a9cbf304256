//! Hosts and the wires between them.
//!
//! ```text
//!            router ─┬─ lan0 (bridge, 192.168.10.1/24) ─┬─ laptop  192.168.10.5
//!                    │                                  └─ LAN hosts 192.168.10.x
//!                    ├─ h2 ── dns   8.8.8.8
//!                    ├─ h3 ── web   93.184.216.34, 2606:2800:…
//!                    └─ …           any address at all, several per host
//! ```
//!
//! Every host is a network namespace; every wire is a veth pair. Hosts behind
//! the router hold their addresses as /32 and /128 and find the router by its
//! link-local address `fe80::1`, for IPv4 too. So a host's wire takes no
//! address that a test could want to use, not even a gateway's.
//!
//! The router has no default route: it answers "network unreachable" for what
//! does not exist in the world.

mod build;
mod host;
mod ip;
mod lines;
mod ready;
mod spec;

pub(crate) use build::Network;
pub use host::Host;
pub(crate) use ip::ip_in;
pub(crate) use spec::parse;
pub use spec::{DeadEnd, HostSpec};

/// Fixed addresses of the laptop's own subnet.
pub mod lan {
    use std::net::{Ipv4Addr, Ipv6Addr};

    pub const LAPTOP: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 5);
    pub const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 1);
    pub const PREFIX: u8 = 24;

    pub const LAPTOP_V6: Ipv6Addr = Ipv6Addr::new(0x2a0a, 0x5c40, 0x10, 0, 0, 0, 0, 5);
    pub const ROUTER_V6: Ipv6Addr = Ipv6Addr::new(0x2a0a, 0x5c40, 0x10, 0, 0, 0, 0, 1);
    pub const PREFIX_V6: u8 = 64;
}
