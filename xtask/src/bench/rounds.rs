//! The driver, inside the world: round after round, every measurement in every
//! column before the next one, so that a busy minute of the machine falls on
//! all columns alike.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stockade_world::{Builder, HostSpec, World, open};

use super::background;
use super::column::{CLIENT, Column, Session};
use super::measure::{Bench, Measurement};
use super::processor::Processor;
use super::results::{Machine, Results};
use super::server::{ADDRESS, HOST, Servers};
use super::settings::Settings;

#[derive(Args)]
pub(crate) struct Arguments {
    /// [`Settings`] as JSON
    settings: String,
}

/// Runs in every stage of the entry; prints the results as JSON.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match prepare(arguments) {
        Ok((settings, builder)) => open(&builder, |world| match drive(world, &settings) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("bench: {error:#}");
                1
            }
        }),
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn prepare(arguments: &Arguments) -> Result<(Settings, Builder)> {
    let settings: Settings = serde_json::from_str(&arguments.settings)?;
    let builder = Builder::new()
        .product(&settings.product)
        .program(CLIENT, std::env::current_exe()?)
        .host(HostSpec::new(HOST).at(ADDRESS));
    Ok((settings, builder))
}

fn drive(world: &World, settings: &Settings) -> Result<()> {
    use_all_descriptors()?;
    let copied = world
        .laptop()
        .shell(&format!("cp \"$(command -v {CLIENT})\" {CLIENT}"))
        .run()?;
    ensure!(copied.succeeded(), "cannot copy the client: {copied:?}");
    let mut run = Run {
        world,
        settings,
        servers: Servers::start(world)?,
        results: Results {
            machine: machine(world),
            rounds: settings.rounds,
            connections: settings.connections,
            columns: settings.columns.clone(),
            samples: BTreeMap::new(),
            notes: Vec::new(),
        },
    };
    let begin = Instant::now();
    for round in 0..settings.rounds {
        let background = background::busy();
        run.results.machine.background.extend(background);
        run.round(round);
        eprintln!(
            "round {} of {}: {} s so far",
            round + 1,
            settings.rounds,
            begin.elapsed().as_secs()
        );
    }
    serde_json::to_writer(std::io::stdout(), &run.results)?;
    Ok(())
}

struct Run<'a> {
    world: &'a World,
    settings: &'a Settings,
    servers: Servers,
    results: Results,
}

impl Run<'_> {
    fn round(&mut self, round: usize) {
        // Nobody is always first.
        let mut order = self.settings.columns.clone();
        let first = round % order.len().max(1);
        order.rotate_left(first);

        let mut sessions: Vec<(Column, Option<Session>)> = Vec::new();
        for column in order {
            let session = self.open(column);
            sessions.push((column, session));
        }
        for measurement in &self.settings.measurements {
            for (column, session) in &mut sessions {
                self.measure(*measurement, *column, session, round);
            }
        }
    }

    fn open(&mut self, column: Column) -> Option<Session> {
        let outcome = Session::open(self.world, column, self.servers.tcp_echo);
        outcome
            .inspect_err(|error| self.note(column, &format!("does not start: {error:#}")))
            .ok()
    }

    /// After a failure the column goes on with a new session.
    fn measure(
        &mut self,
        measurement: Measurement,
        column: Column,
        session: &mut Option<Session>,
        round: usize,
    ) {
        if measurement == Measurement::Memory && session.is_some() {
            // The memory, and the descriptors, of a relay without a past. The
            // old one is ended first.
            drop(session.take());
            *session = self.open(column);
        }
        let Some(open) = session else { return };
        let outcome = Bench {
            column,
            session: open,
            servers: &self.servers,
            settings: self.settings,
        }
        .measure(measurement);
        match outcome {
            Ok(findings) => {
                for (row, value) in findings.values {
                    self.results.record(row, column, round, Some(value));
                }
                for note in findings.notes {
                    self.note(column, &format!("{measurement:?}: {note}"));
                }
            }
            Err(error) => {
                self.note(column, &format!("{measurement:?}: {error:#}"));
                drop(session.take());
                *session = self.open(column);
            }
        }
    }

    fn note(&mut self, column: Column, note: &str) {
        eprintln!("{}: {note}", column.name());
        self.results.note(format!("{}: {note}", column.name()));
    }
}

/// The servers hold one descriptor for each of many connections.
fn use_all_descriptors() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, all).context("cannot raise the limit of open files")
}

fn machine(world: &World) -> Machine {
    Machine {
        processor: Processor::here(),
        background: Vec::new(),
        open_files: getrlimit(Resource::Nofile).maximum,
        versions: PROGRAMS
            .map(|(program, package)| (program.to_owned(), version(world, program, package)))
            .into(),
    }
}

/// Program and the package it comes in. Some distributions build programs that
/// do not know their own version; the package does.
const PROGRAMS: [(&str, &str); 4] = [
    ("stockade", "stockade"),
    ("pasta", "passt"),
    ("slirp4netns", "slirp4netns"),
    ("iperf3", "iperf3"),
];

fn version(world: &World, program: &str, package: &str) -> String {
    let first_line = |line: String| {
        let output = world.laptop().shell(&line).run().ok()?;
        let text = output.stdout();
        let line = text.lines().next()?.trim();
        (output.succeeded() && !line.is_empty()).then(|| line.to_owned())
    };
    first_line(format!(
        "dpkg-query --show --showformat '{program} ${{Version}}' {package}"
    ))
    .or_else(|| first_line(format!("{program} --version 2>&1")))
    .unwrap_or_else(|| format!("{program}, version unknown"))
}
