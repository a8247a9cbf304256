//! How long it takes to load 100 000 rules, and to decide one flow by them, in
//! shapes that would hurt a list or a tree.
//!
//! Time: `cargo bench -p stockade-policy`.
//!
//! Instructions, which a busy machine does not change: what callgrind collected,
//! divided by the number of decisions that is printed at the end:
//!
//! ```sh
//! CARGO_PROFILE_BENCH_STRIP=none cargo bench -p stockade-policy --bench decide --no-run
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     --toggle-collect='*one_decision*' EXECUTABLE --bench --test decide/mixed
//! ```
//!
//! where EXECUTABLE is what the first command names.
//!
//! In November 2026, per decision (time: the best of 2000 rounds, on a virtual
//! machine with two cores of an AMD EPYC that was busy otherwise):
//!
//! | shape | instructions | ns |
//! |---|---|---|
//! | mixed | 1963 | 464 |
//! | one_address | 1144 | 237 |
//! | nested_v4 | 1137 | 192 |
//! | nested_v6 | 2078 | 405 |
//! | one_suffix | 2495 | 765 |
//! | nested_names | 3124 | 618 |
//!
//! Loading took from 0.14 s (one_address) to 0.48 s (nested_names) there.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::cell::Cell;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use criterion::{BatchSize, Criterion};
use stockade_policy::{Evidence, Flow, Hostname, Policy, Route, Rule, RuleSet, decide};

const RULES: u32 = 100_000;
/// Decisions per round: half of them covered by a rule, or nearly.
const FLOWS: u32 = 1000;

/// A policy, and what is asked of it.
struct Shape {
    name: &'static str,
    rules: fn(u32) -> String,
    question: fn(u32) -> (Flow, Vec<Hostname>),
}

const SHAPES: [Shape; 6] = [
    Shape {
        name: "mixed",
        rules: |n| match n % 4 {
            0 => format!("tcp://{}/{}:443", network_v4(n), 16 + n % 17),
            1 => format!("[{}]:80,8000-8100", address_v6(n)),
            2 => format!("tcp://host{n}.example.org:443"),
            _ => format!("*.team{n}.example.net"),
        },
        question: |n| match n % 4 {
            0 => (tcp(address_v4(mixed(n) & !3), 443), vec![]),
            1 => (tcp(address_v6(mixed(n) | 1), 8050), vec![]),
            2 => (
                tcp(PUBLIC, 443),
                vec![name(&format!("host{}.example.org", mixed(n)))],
            ),
            _ => (
                tcp(PUBLIC, 443),
                vec![name(&format!("a.b.team{}.example.net", mixed(n)))],
            ),
        },
    },
    Shape {
        name: "one_address",
        rules: |n| match n % 2 {
            0 => format!("tcp://10.0.0.1:{}", 1 + n % 65_535),
            _ => format!("udp://10.0.0.1:{}", 1 + n % 65_535),
        },
        question: |n| (tcp(Ipv4Addr::new(10, 0, 0, 1), port(scattered(n))), vec![]),
    },
    Shape {
        name: "nested_v4",
        rules: |n| {
            format!(
                "tcp://{}/{}:{}",
                truncated_v4(n % 33),
                n % 33,
                2 * (n % 32_000) + 1
            )
        },
        question: |n| {
            (
                tcp(Ipv4Addr::from_bits(0xaaaa_aaaa), port(scattered(n))),
                vec![],
            )
        },
    },
    Shape {
        name: "nested_v6",
        rules: |n| {
            format!(
                "tcp://[{}/{}]:{}",
                truncated_v6(n % 129),
                n % 129,
                2 * (n % 32_000) + 1
            )
        },
        question: |n| {
            (
                tcp(Ipv6Addr::from_bits(NEST_V6), port(scattered(n))),
                vec![],
            )
        },
    },
    Shape {
        name: "one_suffix",
        rules: |n| match n % 2 {
            0 => format!("tcp://host-with-a-long-name-{n}.services.example.org:443"),
            _ => format!("tcp://*.domain-with-a-long-name-{n}.services.example.org:443"),
        },
        question: |n| {
            let below = format!(
                "a.domain-with-a-long-name-{}.services.example.org",
                mixed(n)
            );
            (tcp(PUBLIC, 443), vec![name(&below)])
        },
    },
    Shape {
        name: "nested_names",
        rules: |n| {
            format!(
                "tcp://*.{}x:{}",
                "a.".repeat((n % 120) as usize),
                2 * (n % 32_000) + 1
            )
        },
        question: |n| {
            (
                tcp(PUBLIC, port(scattered(n))),
                vec![name(&format!("{}x", "a.".repeat(125)))],
            )
        },
    },
];

const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 215, 14);
const NEST_V6: u128 = 0xfd55_5555_5555_5555_5555_5555_5555_5555;

/// A different number of about the same size for each, in no order.
fn scattered(n: u32) -> u32 {
    n.wrapping_mul(2_654_435_761) >> 8
}

/// The number of some rule.
fn mixed(n: u32) -> u32 {
    scattered(n) % RULES
}

fn address_v4(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 | scattered(n) & 0x00ff_ffff)
}

fn network_v4(n: u32) -> Ipv4Addr {
    let length = 16 + n % 17;
    Ipv4Addr::from_bits(address_v4(n).to_bits() & u32::MAX << (32 - length))
}

fn address_v6(n: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(scattered(n)))
}

fn truncated_v4(length: u32) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    Ipv4Addr::from_bits(0xaaaa_aaaa & mask)
}

fn truncated_v6(length: u32) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
    Ipv6Addr::from_bits(NEST_V6 & mask)
}

fn port(n: u32) -> u16 {
    u16::try_from(1 + n % 65_535).unwrap()
}

fn tcp(address: impl Into<IpAddr>, port: u16) -> Flow {
    Flow::tcp(SocketAddr::new(address.into(), port)).unwrap()
}

fn name(text: &str) -> Hostname {
    text.parse().unwrap()
}

fn load(texts: &[String]) -> RuleSet {
    texts
        .iter()
        .map(|text| text.parse::<Rule>().unwrap())
        .collect()
}

#[inline(never)]
fn one_decision(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> bool {
    decide(policy, flow, evidence).is_allowed()
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    // What the filter leaves out is not even built, for the sake of callgrind.
    let filter = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let shapes = SHAPES.into_iter().filter(|shape| {
        let filter = filter.as_deref().unwrap_or_default();
        !filter.contains('/') || filter.contains(shape.name)
    });
    for shape in shapes {
        let texts: Vec<String> = (0..RULES).map(shape.rules).collect();
        let mut group = criterion.benchmark_group("load");
        group
            .sample_size(10)
            .measurement_time(Duration::from_secs(5));
        group.bench_function(shape.name, |bencher| {
            bencher.iter_batched(|| (), |()| load(&texts), BatchSize::PerIteration);
        });
        group.finish();

        let policy = Policy {
            internet: false,
            rules: load(&texts),
        };
        let questions: Vec<_> = (0..FLOWS).map(shape.question).collect();
        let decisions = Cell::new(0_u64);
        let decide_all = || {
            decisions.set(decisions.get() + u64::from(FLOWS));
            let allowed = questions.iter().filter(|(flow, names)| {
                let evidence = Evidence {
                    route: Route::Default,
                    own: false,
                    names,
                };
                one_decision(black_box(&policy), black_box(flow), &evidence)
            });
            allowed.count()
        };
        let allowed = decide_all();
        assert!(allowed > 0, "{} would measure denials only", shape.name);
        let mut group = criterion.benchmark_group("decide");
        // Criterion then shows the time of one decision as its throughput.
        group.throughput(criterion::Throughput::Elements(FLOWS.into()));
        group.measurement_time(Duration::from_secs(3));
        group.bench_function(shape.name, |bencher| bencher.iter(decide_all));
        group.finish();
        eprintln!("{}: {} decisions", shape.name, decisions.get());
    }
    criterion.final_summary();
}
