//! IPv4 addresses inside IPv6 addresses.
//!
//! Each of these formats tells some gateway on the way to unpack the IPv4
//! address and send the packet there. IPv4-mapped addresses are not among them:
//! to the kernel they are IPv4 addresses, and a [`Flow`](crate::Flow) holds them
//! as such.
//!
//! A network may also translate under a prefix of its own (RFC 6052 §2.2), which
//! an address does not show.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embedding {
    pub address: Ipv4Addr,
    pub format: Format,
}

/// To be read after the IPv6 address.
impl fmt::Display for Embedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "carries {} ({})", self.address, self.format)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `::a.b.c.d`, deprecated (RFC 4291).
    Compatible,
    /// `::ffff:0:a.b.c.d`, stateless translation (RFC 2765).
    Translated,
    /// `64:ff9b::a.b.c.d` (RFC 6052).
    Nat64,
    /// In `64:ff9b:1::/48`, at one of four places (RFC 8215).
    LocalNat64,
    /// `2002:aabb:ccdd::/48` (RFC 3056).
    SixToFour,
    /// The server in `2001:0:aabb:ccdd::/64` (RFC 4380).
    TeredoServer,
    /// The client at the end of a Teredo address, its bits inverted.
    TeredoClient,
    /// `…:0:5efe:a.b.c.d` or `…:200:5efe:a.b.c.d` under any prefix (RFC 5214).
    Isatap,
}

impl Format {
    /// Length of the prefix that marks the format. A rule with a shorter prefix
    /// was not written with the format in mind.
    pub(crate) fn prefix_len(self) -> u8 {
        match self {
            Format::Compatible | Format::Translated | Format::Nat64 => 96,
            Format::LocalNat64 => 48,
            Format::SixToFour => 16,
            Format::TeredoServer | Format::TeredoClient => 32,
            Format::Isatap => 0,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Compatible => "IPv4-compatible",
            Format::Translated => "IPv4-translated",
            Format::Nat64 | Format::LocalNat64 => "NAT64",
            Format::SixToFour => "6to4",
            Format::TeredoServer => "Teredo server",
            Format::TeredoClient => "Teredo client",
            Format::Isatap => "ISATAP",
        })
    }
}

/// All IPv4 addresses that an address may carry; none for an IPv4 address.
pub fn embedded(address: IpAddr) -> impl Iterator<Item = Embedding> {
    let found = match address {
        IpAddr::V4(_) => [None; 5],
        IpAddr::V6(address) => find(address),
    };
    found.into_iter().flatten()
}

fn find(address: Ipv6Addr) -> [Option<Embedding>; 5] {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let last = join(g, h);
    let some = |address, format| Some(Embedding { address, format });
    let isatap = match (e, f) {
        (0 | 0x200, 0x5efe) => some(last, Format::Isatap),
        _ => None,
    };
    match [a, b, c, d, e, f] {
        // Not :: and ::1, which are older than the format.
        [0, 0, 0, 0, 0, 0] if g != 0 || h > 1 => {
            [some(last, Format::Compatible), None, None, None, None]
        }
        [0, 0, 0, 0, 0xffff, 0] => [some(last, Format::Translated), None, None, None, None],
        [0x64, 0xff9b, 0, 0, 0, 0] => [some(last, Format::Nat64), None, None, None, None],
        [0x64, 0xff9b, 1, ..] => {
            let [i, j, k, l] = local_translations(address)
                .map(|found| found.and_then(|address| some(address, Format::LocalNat64)));
            [i, j, k, l, isatap]
        }
        [0x2001, 0, ..] => {
            let server = some(join(c, d), Format::TeredoServer);
            let client = some(join(!g, !h), Format::TeredoClient);
            [server, client, isatap, None, None]
        }
        [0x2002, ..] => [
            some(join(b, c), Format::SixToFour),
            isatap,
            None,
            None,
            None,
        ],
        _ => [isatap, None, None, None, None],
    }
}

fn join(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

/// Translation prefixes in `64:ff9b:1::/48` have 48, 56, 64 or 96 bits, and the
/// IPv4 address follows (around the ninth byte, which is zero). Which one the
/// network uses is unknown, so all count, but for what reads as 0.0.0.0/8: that
/// is how the zeros of another length look.
fn local_translations(address: Ipv6Addr) -> [Option<Ipv4Addr>; 4] {
    let [.., a, b, _, c, d, e, f, g, h, i] = address.octets();
    [[a, b, c, d], [b, c, d, e], [c, d, e, f], [f, g, h, i]]
        .map(Ipv4Addr::from)
        .map(|address| Some(address).filter(|found| !matches!(found.octets(), [0, ..])))
}
