//! What kind of address an address is, by the registries of IANA.
//!
//! An address is *global* if the registries say that packets to it may leave an
//! administrative domain; everything else is *special*: it may be the host, its
//! network, or a neighbour. IPv6 addresses that carry an IPv4 address inside
//! are judged by that too, because some gateway will unpack it: an address is as
//! special as the most special thing in it.

mod embedded;
mod metadata;
mod table;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

pub use embedded::{Embedding, Format, embedded};
pub use metadata::{Metadata, metadata};

#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub block: IpNet,
    pub name: &'static str,
    /// The document that set the block apart.
    pub source: &'static str,
    pub reach: Reach,
}

/// How far packets to a block go, from harmless to hopeless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    Global,
    /// Somewhere near, or nowhere by agreement.
    Special,
    /// To no single other host, whatever the network: the jail cannot pass such
    /// packets on, so no rule can allow them.
    Never,
}

impl Entry {
    /// Whether packets to it are for many.
    pub(crate) fn is_for_many(&self) -> bool {
        matches!(self.name, "multicast" | "limited broadcast")
    }

    /// Whether the address is in the block. (`IpNet::contains` computes the bounds
    /// of the network each time, and each flow passes the whole table.)
    fn holds(&self, address: IpAddr) -> bool {
        let length = u32::from(self.block.prefix_len());
        match (self.block.addr(), address) {
            (IpAddr::V4(block), IpAddr::V4(address)) => {
                let differing = block.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= length
            }
            (IpAddr::V6(block), IpAddr::V6(address)) => {
                let differing = block.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= length
            }
            _ => false,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.block, self.name, self.source)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Global,
    Special(Special),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Special {
    pub entry: &'static Entry,
    /// The address inside that makes it so, unless it is special by itself.
    pub via: Option<Embedding>,
}

impl Special {
    /// Whether it is an address of the kind that a company or a laboratory numbers its own hosts
    /// with. Of special addresses, a rule of `near` for a name opens only these.
    pub(crate) fn is_private(self) -> bool {
        let names = ["private use", "shared address space", "unique local"];
        names.contains(&self.entry.name)
    }

    /// What to do instead of reaching it, where that is not plain. To be read after
    /// the rest of a sentence.
    pub(crate) fn instead(self) -> &'static str {
        match self.entry.name {
            "loopback" => "; `host_ports` opens single ports of the host's loopback",
            _ if self.entry.is_for_many() => ": name the device's own address",
            _ => "",
        }
    }
}

/// To be read after an address: "192.168.1.5 **is in 192.168.0.0/16 (…)**".
impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(embedding) = self.via {
            write!(f, "{embedding}, which ")?;
        }
        write!(f, "is in {}", self.entry)
    }
}

pub fn classify(address: IpAddr) -> Class {
    let by_itself = lookup(address).map(|entry| Special { entry, via: None });
    let inside = embedded(address).filter_map(|embedding| {
        let entry = lookup(embedding.address.into())?;
        Some(Special {
            entry,
            via: Some(embedding),
        })
    });
    // Of equally special ones the last wins: what is inside tells more.
    by_itself
        .into_iter()
        .chain(inside)
        .max_by_key(|special| special.entry.reach)
        .filter(|special| special.entry.reach > Reach::Global)
        .map_or(Class::Global, Class::Special)
}

/// The entry of the smallest block that holds the address. IPv4 addresses that
/// are in no block are ordinary ones; IPv6 addresses are all in one.
fn lookup(address: IpAddr) -> Option<&'static Entry> {
    let address = address.to_canonical();
    table::entries(address)
        .iter()
        .filter(|entry| entry.holds(address))
        .max_by_key(|entry| entry.block.prefix_len())
}

/// The entry that makes a whole network out of reach, if one does.
pub(crate) fn never_reachable(network: IpNet) -> Option<Special> {
    let whole = table::entries(network.addr())
        .iter()
        .find(|entry| entry.reach == Reach::Never && entry.block.contains(&network))
        .map(|entry| Special { entry, via: None });
    whole.or_else(|| match classify(network.addr()) {
        Class::Special(special)
            if network.prefix_len() == network.max_prefix_len()
                && special.entry.reach == Reach::Never =>
        {
            Some(special)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(address: &str) -> Option<&'static str> {
        match classify(address.parse().unwrap()) {
            Class::Global => None,
            Class::Special(special) => Some(special.entry.name),
        }
    }

    #[test]
    fn ordinary_addresses_are_global() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.215.14",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.31.196.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:2800:21f::1",
            "2001:4860:4860::8888",
            "2001:200::1",
            "2001:4:112::1",
            "2620:4f:8000::1",
            "3ffe::1",
        ] {
            assert_eq!(entry(address), None, "{address}");
        }
    }

    #[test]
    fn special_addresses_have_their_entry() {
        for (address, name) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "this network"),
            ("10.255.0.1", "private use"),
            ("100.64.0.1", "shared address space"),
            ("127.255.255.254", "loopback"),
            ("169.254.169.254", "link-local"),
            ("172.31.255.255", "private use"),
            ("192.0.0.192", "IETF protocol assignments"),
            ("192.0.0.9", "Port Control Protocol anycast"),
            ("192.168.1.5", "private use"),
            ("198.19.255.255", "benchmarking"),
            ("224.0.0.251", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "limited broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("100::1", "discard-only"),
            ("2001:db8::1", "documentation"),
            ("2001:1::1", "Port Control Protocol anycast"),
            ("2001:1ff::1", "IETF protocol assignments"),
            ("3fff:fff::1", "documentation"),
            ("4000::1", "outside global unicast"),
            ("5f00::1", "segment routing identifiers"),
            ("fd12::1", "unique local"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local, deprecated"),
            ("ff02::1", "multicast"),
            ("64:ff9b:1::808:808", "local-use IPv4/IPv6 translation"),
        ] {
            assert_eq!(entry(address), Some(name), "{address}");
        }
    }

    #[test]
    fn an_address_is_as_special_as_what_it_carries() {
        for address in [
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::10.0.0.1",
            "64:ff9b:1:a00:0:100::",
            "2002:a00:1::1",
            "2001:0:a00:1::f7f7:f7f7",
            "2001:0:808:808:0:0:f5ff:fffe",
            "2606:4700::5efe:10.0.0.1",
            "2606:4700::200:5efe:10.0.0.1",
        ] {
            assert_eq!(entry(address), Some("private use"), "{address}");
        }
        for address in [
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
            "2001:0:808:808::f7f7:f7f7",
            "2606:4700::5efe:8.8.8.8",
        ] {
            assert_eq!(entry(address), None, "{address}");
        }
        assert_eq!(entry("::8.8.8.8"), Some("IPv4-compatible, deprecated"));
    }

    #[test]
    fn of_two_addresses_inside_the_worse_one_counts() {
        // A Teredo server that is private, a client that is loopback.
        assert_eq!(entry("2001:0:a00:1::80ff:fffe"), Some("loopback"));
    }

    #[test]
    fn a_reason_reads_as_a_sentence() {
        let told = |address: &str| match classify(address.parse().unwrap()) {
            Class::Special(special) => format!("{address} {special}"),
            Class::Global => String::new(),
        };
        assert_eq!(
            told("192.168.1.5"),
            "192.168.1.5 is in 192.168.0.0/16 (private use, RFC 1918)"
        );
        assert_eq!(
            told("64:ff9b::a00:1"),
            "64:ff9b::a00:1 carries 10.0.0.1 (NAT64), which is in 10.0.0.0/8 (private use, RFC 1918)"
        );
    }
}
