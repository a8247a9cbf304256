//! `cargo xtask bench net`: how fast the network inside is.
//!
//! A column is a way to give a command a network, started as its users start it. In each round
//! every column gets a session: a shell in its network, which is told one command line at a time.
//! Every measurement is taken in every column before the next one, so that a busy minute of the
//! machine falls on all columns alike.

mod session;

use std::env;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use stockade_world::{Builder, HostSpec, World, open};

use super::samples::{Samples, page, ratio, table, targets, value};
use super::{Common, chart, install, machine, repository};
use session::{ADDRESS, HOST, Servers, Session};

const COLUMNS: [&str; 4] = [DIRECT, STOCKADE, "pasta", "slirp4netns"];
pub(super) const DIRECT: &str = "direct";
const STOCKADE: &str = "stockade";

/// The client's name on the laptop's PATH, and in the workspace: the one place that every column
/// can see.
const CLIENT: &str = "bench-client";

/// A row of the table, and what the product's value has to be.
pub(super) struct Row {
    /// The measurement it comes from. One that has several rows finds their values in the order
    /// of the table.
    by: &'static str,
    pub(super) title: &'static str,
    unit: &'static str,
    targets: &'static [Target],
}

enum Target {
    /// At least, or at most, this much of the direct way's.
    Ratio(f64),
    /// Better than that of another column.
    Peer(&'static str),
    /// In the row's unit.
    Absolute(f64),
}

use Target::{Absolute, Peer, Ratio};

const fn row(
    by: &'static str,
    title: &'static str,
    unit: &'static str,
    targets: &'static [Target],
) -> Row {
    Row {
        by,
        title,
        unit,
        targets,
    }
}

const BOTH: &[Target] = &[Peer("pasta"), Peer("slirp4netns")];

#[rustfmt::skip]
pub(super) const ROWS: [Row; 22] = [
    row("upload", "TCP upload, 1 stream", "Gb/s", &[Ratio(0.85)]),
    row("download", "TCP download, 1 stream", "Gb/s", &[Ratio(0.85)]),
    row("upload4", "TCP upload, 4 streams", "Gb/s", &[Ratio(0.55)]),
    row("download4", "TCP download, 4 streams", "Gb/s", &[Ratio(0.55)]),
    row("upload16", "TCP upload, 16 streams", "Gb/s", &[]),
    row("download16", "TCP download, 16 streams", "Gb/s", &[]),
    row("connect", "connect, ask, answer, close", "/s", &[Ratio(0.75), Peer("pasta")]),
    row("connect", "the same, one by one: p50", "µs", &[]),
    row("connect", "the same, one by one: p99", "µs", &[]),
    row("tcp-echo", "TCP round trip, p50", "µs", &[Ratio(1.15)]),
    row("udp-echo", "UDP round trip, p50", "µs", &[Ratio(1.15), Peer("pasta")]),
    row("udp-rate", "UDP datagrams delivered", "/s", &[Peer("pasta")]),
    row("dns", "DNS queries, new names", "/s", &[Peer("pasta")]),
    row("dns", "DNS query, new name, p50", "µs", &[Peer("pasta")]),
    row("upload", "CPU of the relay, upload", "s/GB", BOTH),
    row("download", "CPU of the relay, download", "s/GB", BOTH),
    row("upload", "CPU of relay and both ends, upload", "s/GB", &[]),
    row("download", "CPU of relay and both ends, download", "s/GB", &[]),
    row("memory", "memory of the relay (RSS), idle", "MB", &[Absolute(12.0)]),
    row("memory", "memory of the relay (RSS), 10 000 connections", "MB", &[]),
    row("memory", "connections that were open then", "", &[]),
    row("start", "start, until a server has answered", "ms", &[]),
];

/// In the order in which they are taken. The start is measured by the way: opening a session
/// takes its time.
#[rustfmt::skip]
const MEASUREMENTS: [&str; 13] = [
    "start", "upload", "download", "upload4", "download4", "upload16", "download16", "connect",
    "tcp-echo", "udp-echo", "udp-rate", "dns", "memory",
];

#[derive(Args)]
#[command(
    about = "The network inside, against none, pasta and slirp4netns",
    long_about = "Measures throughput, connection rate, latency, names, CPU and memory in a closed \
        world: directly, in the product, and behind pasta and slirp4netns, which are installed if \
        they are missing. Prints two Markdown tables (values, ratios to direct) and the targets. \
        No packet leaves the machine.",
    after_help = "Examples:
  cargo xtask bench net --write
      the numbers of docs/performance.md, measured again (about five minutes)
  cargo xtask bench net --rounds 1 --columns direct,stockade
      a first impression
  cargo xtask bench net --only connect,tcp-echo --product /tmp/stockade
      two measurements of one build"
)]
pub(super) struct Net {
    #[command(flatten)]
    common: Common,

    /// Only these columns (direct is needed for ratios)
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_values = COLUMNS, value_parser = PossibleValuesParser::new(COLUMNS))]
    columns: Vec<String>,

    /// Only these measurements
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_values = MEASUREMENTS, value_parser = PossibleValuesParser::new(MEASUREMENTS))]
    only: Vec<String>,
}

pub(super) fn run(net: &Net) -> Result<()> {
    for (program, package) in [
        ("iperf3", "iperf3"),
        ("pasta", "passt"),
        ("slirp4netns", "slirp4netns"),
    ] {
        install(program, package)?;
    }
    machine::raise_descriptor_limit();
    let itself = Command::new(env::current_exe()?);
    let text = net
        .common
        .drive(itself, "net-driver", &net.common.product()?)?;
    let (tables, chart) = text.split_at(text.find("<svg").context("no chart")?);
    net.common.publish("net", tables)?;
    if net.common.write {
        fs::write(repository().join("docs/performance.svg"), chart)?;
    }
    Ok(())
}

/// Runs in every stage of the world's entry; prints tables and chart.
pub(super) fn drive(net: &Net) -> ExitCode {
    let itself = env::current_exe().unwrap_or_default();
    let builder = Builder::new()
        .product(net.common.product.as_deref().unwrap_or(&itself))
        .program(CLIENT, itself)
        .host(HostSpec::new(HOST).at(ADDRESS));
    open(&builder, |world| match measure_all(world, net) {
        Ok(results) => {
            print!("{results}");
            0
        }
        Err(error) => {
            eprintln!("bench: {error:#}");
            1
        }
    })
}

fn measure_all(world: &World, net: &Net) -> Result<String> {
    let chosen = |all: &[&'static str], wanted: &[String]| -> Vec<&'static str> {
        let all = all.iter().copied();
        all.filter(|name| wanted.iter().any(|wanted| wanted == name))
            .collect()
    };
    let columns = chosen(&COLUMNS, &net.columns);
    let measurements = chosen(&MEASUREMENTS, &net.only);
    let rounds = net.common.rounds.unwrap_or(5).max(1);
    let descriptors = machine::raise_descriptor_limit();
    let copy = world
        .laptop()
        .shell(&format!("cp \"$(command -v {CLIENT})\" ."));
    let copied = copy.run()?;
    ensure!(copied.succeeded(), "cannot copy the client: {copied:?}");

    let servers = Servers::start(world)?;
    let (mut samples, mut busy) = (Samples::default(), Samples::default());
    for round in 0..rounds {
        busy.record("", "", round, machine::busy()?);
        // Nobody is always first.
        let mut order = columns.clone();
        order.rotate_left(round % columns.len().max(1));
        let start = |column, samples: &mut Samples| {
            Session::open(world, column)
                .inspect_err(|error| samples.note(format!("{column}: does not start: {error:#}")))
                .ok()
        };
        let mut sessions: Vec<_> = order
            .into_iter()
            .map(|column| (column, start(column, &mut samples)))
            .collect();
        for measurement in &measurements {
            for (column, session) in &mut sessions {
                if *measurement == "memory" && session.take().is_some() {
                    // The memory, and the descriptors, of a relay without a past.
                    *session = start(column, &mut samples);
                }
                let Some(open) = session else { continue };
                match open.measure(measurement, &servers) {
                    Ok(values) => {
                        let rows = ROWS.iter().filter(|row| row.by == *measurement);
                        for (row, value) in rows.zip(values) {
                            samples.record(row.title, column, round, value);
                        }
                        if let Some(note) = open.note.take() {
                            samples.note(format!("{column}: {measurement}: {note}"));
                        }
                    }
                    // It goes on with a new session.
                    Err(error) => {
                        samples.note(format!("{column}: {measurement}: {error:#}"));
                        drop(session.take());
                        *session = start(column, &mut samples);
                    }
                }
            }
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    let machine = format!(
        "{}, at most {} open files per process; {}.\n\
         CPU used by others before each round: {:.0} %. Rounds: {rounds}; median (least – most).\n",
        machine::describe(),
        descriptors.map_or("any number of".to_owned(), |count| thousands(count as f64)),
        versions(world)?,
        busy.value("", "").map_or(0.0, |busy| busy.median),
    );
    Ok(report(&machine, &samples, &columns))
}

/// Some distributions build programs that do not know their own version; the package does.
fn versions(world: &World) -> Result<String> {
    let output = world.laptop().shell(
        "for pair in iperf3:iperf3 pasta:passt slirp4netns:slirp4netns; do
            version=$(dpkg-query --show --showformat '${Version}' ${pair#*:} 2>/dev/null) ||
                version=$(${pair%:*} --version | grep -om 1 '[0-9][^ ]*') || version=unknown
            printf '%s %s, ' ${pair%:*} $version
        done; stockade --version",
    );
    Ok(output.run()?.stdout().trim().to_owned())
}

impl Row {
    pub(super) fn higher_is_better(&self) -> bool {
        matches!(self.unit, "Gb/s" | "/s" | "")
    }

    fn number(&self, value: f64) -> String {
        match self.unit {
            "/s" | "" => thousands(value),
            "s/GB" => format!("{value:.2}"),
            _ => format!("{value:.1}"),
        }
    }

    /// The target, what was measured, and whether it is met; nothing if a side is missing.
    fn judge(&self, target: &Target, samples: &Samples) -> Option<(String, String, bool)> {
        let own = samples.value(self.title, STOCKADE)?.median;
        let higher = self.higher_is_better();
        let (sign, word, factor) = match higher {
            true => ("≥", "more", 1.0),
            false => ("≤", "less", -1.0),
        };
        let meets = |value: f64, limit: f64| value * factor >= limit * factor;
        let (target, measured, met) = match target {
            Ratio(limit) => {
                let ratio = samples.ratio(self.title, STOCKADE, DIRECT)?.median;
                let target = format!("{sign} {limit:.2} × direct");
                (target, format!("{ratio:.2}"), meets(ratio, *limit))
            }
            Peer(peer) => {
                let theirs = samples.value(self.title, peer)?.median;
                let measured = format!("{} : {}", self.number(own), self.number(theirs));
                (format!("{word} than {peer}"), measured, !meets(theirs, own))
            }
            Absolute(limit) => {
                let target = format!("{sign} {limit} {}", self.unit);
                (target, self.number(own), meets(own, *limit))
            }
        };
        Some((format!("{}: {target}", self.title), measured, met))
    }
}

/// 1234567 as `1 234 567`.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b' ')).into_owned()
}

/// Tables and chart.
fn report(machine: &str, samples: &Samples, columns: &[&'static str]) -> String {
    let header = |corner: &str, columns: &[&str]| {
        let line = "---:|".repeat(columns.len());
        format!("| {corner} | {} |\n|---|{line}", columns.join(" | "))
    };
    let others: Vec<_> = columns
        .iter()
        .copied()
        .filter(|column| *column != DIRECT)
        .collect();
    let (mut values, mut ratios) = (Vec::new(), Vec::new());
    for row in &ROWS {
        let measured = |column: &&&'static str| samples.value(row.title, column).is_some();
        if columns.iter().any(|column| measured(&column)) {
            let unit = if row.unit.is_empty() {
                String::new()
            } else {
                format!(" ({})", row.unit)
            };
            let cells = columns
                .iter()
                .map(|column| value(samples.value(row.title, column), |value| row.number(value)));
            values.push(
                [format!("{}{unit}", row.title)]
                    .into_iter()
                    .chain(cells)
                    .collect(),
            );
        }
        if samples.value(row.title, DIRECT).is_some() && !others.is_empty() {
            let cells = others
                .iter()
                .map(|column| ratio(samples.ratio(row.title, column, DIRECT)));
            ratios.push([row.title.to_owned()].into_iter().chain(cells).collect());
        }
    }
    let judged = ROWS.iter().flat_map(|row| {
        row.targets
            .iter()
            .filter_map(|target| row.judge(target, samples))
    });
    let tables = page(&[
        machine.to_owned(),
        table(&header("", columns), &values),
        table(&header("ratio to direct", &others), &ratios),
        targets(judged),
        samples.notes(),
    ]);
    tables + &chart::draw(samples, &others)
}
