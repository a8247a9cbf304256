//! The registries, as of October 2025.
//!
//! - [IPv4 special-purpose addresses][v4], plus multicast;
//! - [IPv6 special-purpose addresses][v6], plus multicast, the deprecated
//!   site-local and IPv4-compatible blocks, and the plan of the whole space:
//!   2000::/3 is the only part in use as global unicast.
//!
//! Entries keep the order of the registries, so that the two can be compared
//! line by line. `Global` is what IANA calls globally reachable, but for the
//! anycast addresses of PCP, TURN and SRP: whoever answers there is the *nearest*
//! such server, and so a neighbour.
//!
//! [v4]: https://www.iana.org/assignments/iana-ipv4-special-registry
//! [v6]: https://www.iana.org/assignments/iana-ipv6-special-registry

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::Entry;
use super::Reach::{self, Global, Never, Special};

pub(super) fn entries(address: IpAddr) -> &'static [Entry] {
    match address {
        IpAddr::V4(_) => V4,
        IpAddr::V6(_) => V6,
    }
}

const fn v4([a, b, c, d]: [u8; 4], length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length))
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], length: u8) -> IpNet {
    let address = Ipv6Addr::new(a, b, c, d, e, f, g, h);
    IpNet::V6(Ipv6Net::new_assert(address, length))
}

const fn entry(block: IpNet, name: &'static str, source: &'static str, reach: Reach) -> Entry {
    Entry {
        block,
        name,
        source,
        reach,
    }
}

#[rustfmt::skip]
static V4: &[Entry] = &[
    entry(v4([0, 0, 0, 0], 8), "this network", "RFC 791", Never),
    entry(v4([0, 0, 0, 0], 32), "unspecified", "RFC 1122", Never),
    entry(v4([10, 0, 0, 0], 8), "private use", "RFC 1918", Special),
    entry(v4([100, 64, 0, 0], 10), "shared address space", "RFC 6598", Special),
    entry(v4([127, 0, 0, 0], 8), "loopback", "RFC 1122", Never),
    entry(v4([169, 254, 0, 0], 16), "link-local", "RFC 3927", Special),
    entry(v4([172, 16, 0, 0], 12), "private use", "RFC 1918", Special),
    entry(v4([192, 0, 0, 0], 24), "IETF protocol assignments", "RFC 6890", Special),
    entry(v4([192, 0, 0, 0], 29), "IPv4 service continuity", "RFC 7335", Special),
    entry(v4([192, 0, 0, 8], 32), "IPv4 dummy address", "RFC 7600", Special),
    entry(v4([192, 0, 0, 9], 32), "Port Control Protocol anycast", "RFC 7723", Special),
    entry(v4([192, 0, 0, 10], 32), "TURN anycast", "RFC 8155", Special),
    entry(v4([192, 0, 0, 170], 31), "NAT64/DNS64 discovery", "RFC 8880", Special),
    entry(v4([192, 0, 2, 0], 24), "documentation", "RFC 5737", Special),
    entry(v4([192, 31, 196, 0], 24), "AS112", "RFC 7535", Global),
    entry(v4([192, 52, 193, 0], 24), "automatic multicast tunneling", "RFC 7450", Global),
    entry(v4([192, 88, 99, 0], 24), "6to4 relay anycast, deprecated", "RFC 7526", Special),
    entry(v4([192, 168, 0, 0], 16), "private use", "RFC 1918", Special),
    entry(v4([192, 175, 48, 0], 24), "AS112 direct delegation", "RFC 7534", Global),
    entry(v4([198, 18, 0, 0], 15), "benchmarking", "RFC 2544", Special),
    entry(v4([198, 51, 100, 0], 24), "documentation", "RFC 5737", Special),
    entry(v4([203, 0, 113, 0], 24), "documentation", "RFC 5737", Special),
    entry(v4([224, 0, 0, 0], 4), "multicast", "RFC 5771", Never),
    entry(v4([240, 0, 0, 0], 4), "reserved", "RFC 1112", Special),
    entry(v4([255, 255, 255, 255], 32), "limited broadcast", "RFC 919", Never),
];

#[rustfmt::skip]
static V6: &[Entry] = &[
    entry(v6([0, 0, 0, 0, 0, 0, 0, 0], 0), "outside global unicast", "RFC 4291", Special),
    entry(v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3), "global unicast", "RFC 4291", Global),

    entry(v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback", "RFC 4291", Never),
    entry(v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "unspecified", "RFC 4291", Never),
    entry(v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "IPv4-compatible, deprecated", "RFC 4291", Special),
    entry(v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), "IPv4/IPv6 translation", "RFC 6052", Global),
    entry(v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "local-use IPv4/IPv6 translation", "RFC 8215", Special),
    entry(v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "discard-only", "RFC 6666", Special),
    entry(v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64), "dummy prefix", "RFC 9780", Special),
    entry(v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "IETF protocol assignments", "RFC 2928", Special),
    entry(v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "Teredo", "RFC 4380", Global),
    entry(v6([0x2001, 1, 0, 0, 0, 0, 0, 1], 128), "Port Control Protocol anycast", "RFC 7723", Special),
    entry(v6([0x2001, 1, 0, 0, 0, 0, 0, 2], 128), "TURN anycast", "RFC 8155", Special),
    entry(v6([0x2001, 1, 0, 0, 0, 0, 0, 3], 128), "DNS-SD registration anycast", "RFC 9665", Special),
    entry(v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), "benchmarking", "RFC 5180", Special),
    entry(v6([0x2001, 3, 0, 0, 0, 0, 0, 0], 32), "automatic multicast tunneling", "RFC 7450", Global),
    entry(v6([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48), "AS112", "RFC 7535", Global),
    entry(v6([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28), "ORCHID, deprecated", "RFC 4843", Special),
    entry(v6([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28), "ORCHIDv2", "RFC 7343", Global),
    entry(v6([0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28), "drone remote identifiers", "RFC 9374", Global),
    entry(v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "documentation", "RFC 3849", Special),
    entry(v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "6to4", "RFC 3056", Global),
    entry(v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48), "AS112 direct delegation", "RFC 7534", Global),
    entry(v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "documentation", "RFC 9637", Special),
    entry(v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "segment routing identifiers", "RFC 9602", Special),
    entry(v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "unique local", "RFC 4193", Special),
    // Without a zone it names no link, and rules and flows have no zones.
    entry(v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local", "RFC 4291", Never),
    entry(v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local, deprecated", "RFC 3879", Special),
    entry(v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast", "RFC 4291", Never),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_has_host_bits_or_is_listed_twice() {
        for table in [V4, V6] {
            for (index, entry) in table.iter().enumerate() {
                assert_eq!(entry.block.trunc(), entry.block);
                assert!(
                    table[index + 1..]
                        .iter()
                        .all(|other| other.block != entry.block)
                );
            }
        }
    }
}
