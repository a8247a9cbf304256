//! How long one decision takes by [`RULES`] rules, in shapes that hurt a search:
//!
//! ```sh
//! cargo bench -p stockade-policy
//! ```
//!
//! prints nanoseconds for each decision: of the best round, as the machine may be busy.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

use stockade_policy::{Evidence, Flow, Hostname, Policy, Route, Rule, decide};

const RULES: u32 = 1000;
const FLOWS: u32 = 1000;
const ROUNDS: u32 = 200;

const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 215, 14);
const NESTED_V4: Ipv4Addr = Ipv4Addr::from_bits(0xaaaa_aaaa);
const NESTED_V6: Ipv6Addr = Ipv6Addr::from_bits(0xfd55_5555_5555_5555_5555_5555_5555_5555);

/// A rule, and a question that some rule of the same shape covers, or nearly.
type Shape = (
    &'static str,
    fn(u32) -> String,
    fn(u32) -> (Flow, Vec<Hostname>),
);

const SHAPES: [Shape; 7] = [
    (
        "mixed",
        |n| match n % 4 {
            0 => format!("tcp://{}/24:443", Ipv4Addr::from_bits(0x0a00_0000 | n << 8)),
            1 => format!("[{}]:80,8000-8100", address_v6(n)),
            2 => format!("tcp://host{n}.example.org:443"),
            _ => format!("*.team{n}.example.net"),
        },
        |n| match n % 4 {
            0 => (tcp(Ipv4Addr::from_bits(0x0a00_0001 | n << 8), 443), vec![]),
            1 => (tcp(address_v6(n), 8050), vec![]),
            2 => named(&format!("host{n}.example.org"), 443),
            _ => named(&format!("a.b.team{n}.example.net"), 443),
        },
    ),
    (
        "addresses, v4",
        |n| format!("tcp://{}:443", Ipv4Addr::from_bits(0x0a00_0000 | n)),
        |n| (tcp(Ipv4Addr::from_bits(0x0a00_0000 | n), 443), vec![]),
    ),
    (
        "addresses, v6",
        |n| format!("tcp://[{}]:443", address_v6(n)),
        |n| (tcp(address_v6(n), 443), vec![]),
    ),
    (
        "ports of one address",
        |n| format!("tcp://10.0.0.1:{}", 2 * n + 1),
        |n| (tcp(Ipv4Addr::new(10, 0, 0, 1), port(n)), vec![]),
    ),
    (
        "networks in each other, v4",
        |n| {
            let network = ipnet::Ipv4Net::new(NESTED_V4, u8::try_from(n % 33).unwrap()).unwrap();
            format!("tcp://{}:{}", network.trunc(), 2 * n + 1)
        },
        |n| (tcp(NESTED_V4, port(n)), vec![]),
    ),
    (
        "networks in each other, v6",
        |n| {
            let network = ipnet::Ipv6Net::new(NESTED_V6, u8::try_from(n % 129).unwrap()).unwrap();
            format!("tcp://[{}]:{}", network.trunc(), 2 * n + 1)
        },
        |n| (tcp(NESTED_V6, port(n)), vec![]),
    ),
    (
        "domains in each other",
        |n| format!("tcp://*.{}x:{}", "a.".repeat((n % 30) as usize), 2 * n + 1),
        |n| named(&format!("{}x", "a.".repeat(32)), port(n)),
    ),
];

fn address_v6(n: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(n))
}

/// Half of the rules' ports, and others.
fn port(n: u32) -> u16 {
    u16::try_from(n * 2 + n / 2 % 2).unwrap().max(1)
}

fn tcp(address: impl Into<IpAddr>, port: u16) -> Flow {
    Flow::tcp(SocketAddr::new(address.into(), port)).unwrap()
}

fn named(name: &str, port: u16) -> (Flow, Vec<Hostname>) {
    (tcp(PUBLIC, port), vec![name.parse().unwrap()])
}

fn main() {
    println!("ns for each decision by {RULES} rules:");
    for (name, rule, question) in SHAPES {
        let rules = (0..RULES).map(|n| rule(n).parse::<Rule>().unwrap());
        let policy = Policy {
            internet: false,
            rules: rules.collect(),
            ..Policy::default()
        };
        let questions: Vec<_> = (0..FLOWS).map(question).collect();
        let round = || {
            let start = Instant::now();
            let allowed = questions.iter().filter(|(flow, names)| {
                let evidence = Evidence {
                    route: Route::Default,
                    own: false,
                    names,
                };
                decide(black_box(&policy), black_box(flow), &evidence).is_allowed()
            });
            assert!(allowed.count() > 0, "{name} would measure denials only");
            start.elapsed()
        };
        let best = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
        println!("{:>6}  {name}", best.as_nanos() / u128::from(FLOWS));
    }
}
