//! The guard: no packet before it is certain that none can leave.
//!
//! Test traffic uses addresses such as 8.8.8.8 that belong to somebody else
//! outside. A world may therefore only be built in a network namespace from
//! which no device leads anywhere. [`check`] looks at the namespace of the
//! calling thread and hands out a [`Closed`], the only key to building links
//! and hosts, if and only if
//!
//! 1. it is not the namespace in which the test was started,
//! 2. it holds no interface but `lo`,
//! 3. it holds no route except those of `lo`.
//!
//! Everything the world adds later are veth pairs whose both ends it makes
//! itself, in namespaces it makes itself; so what is closed here stays closed.

use std::ffi::OsString;
use std::fs;
use std::io;

/// The kernel's name for a network namespace, `net:[4026531840]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetnsId(OsString);

impl NetnsId {
    /// The namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        fs::read_link("/proc/thread-self/ns/net").map(|link| Self(link.into_os_string()))
    }

    pub fn named(name: OsString) -> Self {
        Self(name)
    }

    pub(crate) fn name(&self) -> &OsString {
        &self.0
    }
}

/// Proof that the calling thread's network namespace is cut off.
#[derive(Debug)]
pub struct Closed(());

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("this is the machine's own network namespace ({0:?}), packets would leave the machine")]
    SameNamespace(NetnsId),

    #[error("the network namespace is not fresh, it has interfaces besides lo: {}", .0.join(", "))]
    Interfaces(Vec<String>),

    #[error("the network namespace is not fresh, it has a route: {0}")]
    Route(String),

    #[error("cannot inspect the network namespace: {0}")]
    Unknown(#[from] io::Error),
}

/// Devices that tunnel modules put into every new namespace
/// (`net.core.fb_tunnels_only_for_init_net`). They are down, have no address,
/// and with no other device around there is nothing they could tunnel over.
const FALLBACK_TUNNELS: [&str; 9] = [
    "tunl0", "gre0", "gretap0", "erspan0", "sit0", "ip6tnl0", "ip6gre0", "ip_vti0", "ip6_vti0",
];

/// Checks the namespace of the calling thread against the one outside.
pub fn check(outside: &NetnsId) -> Result<Closed, Refusal> {
    let here = NetnsId::current()?;
    if here == *outside {
        return Err(Refusal::SameNamespace(here));
    }
    let extra = interfaces(&fs::read_to_string("/proc/thread-self/net/dev")?);
    if !extra.is_empty() {
        return Err(Refusal::Interfaces(extra));
    }
    for (table, device_column, header_lines) in [("route", 0, 1), ("ipv6_route", 9, 0)] {
        let Some(text) = read_if_present(&format!("/proc/thread-self/net/{table}"))? else {
            continue;
        };
        if let Some(route) = foreign_route(&text, device_column, header_lines) {
            return Err(Refusal::Route(route));
        }
    }
    Ok(Closed(()))
}

/// The interfaces in `/proc/net/dev` that a fresh namespace would not have.
fn interfaces(dev: &str) -> Vec<String> {
    dev.lines()
        .skip(2)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim())
        .filter(|name| *name != "lo" && !FALLBACK_TUNNELS.contains(name))
        .map(str::to_owned)
        .collect()
}

/// The first route over anything but `lo`. (IPv6 has reject entries on `lo`
/// from the start.)
fn foreign_route(table: &str, device_column: usize, header_lines: usize) -> Option<String> {
    table
        .lines()
        .skip(header_lines)
        .find(|line| line.split_whitespace().nth(device_column) != Some("lo"))
        .map(|line| line.trim().to_owned())
}

/// `None` if the kernel has no such table (IPv6 compiled out).
fn read_if_present(path: &str) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "Inter-|   Receive  |  Transmit\n face |bytes |bytes\n";

    #[test]
    fn only_lo_and_fallback_tunnels_count_as_fresh() {
        let fresh = format!("{DEV}    lo:  0  0\n  sit0:  0  0\n");
        assert!(interfaces(&fresh).is_empty());
        let wired = format!("{fresh}  eth0:  9  9\n");
        assert_eq!(interfaces(&wired), ["eth0"]);
    }

    #[test]
    fn a_route_over_another_device_is_found() {
        let header = "Iface Destination Gateway\n";
        assert_eq!(foreign_route(header, 0, 1), None);
        let routed = format!("{header}eth0 00000000 0100A8C0\n");
        assert!(foreign_route(&routed, 0, 1).unwrap().starts_with("eth0"));
    }
}
