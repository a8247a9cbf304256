//! The driver, on the stage: every column once, in turn, before the next round, so that a
//! busy moment of the machine falls on all alike.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::bubblewrap;
use super::column::Column;
use super::results::Results;
use super::trace;
use crate::bench::background;
use crate::bench::processor::Processor;

/// The driver's name as a task of this program; hidden from its help.
pub(crate) const DRIVER: &str = "bench-start-driver";

/// Starts that do not count: of files that were never read, and of first settings.
const WARM_UP: usize = 3;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) rounds: usize,
    /// How often to look where the product's time goes.
    pub(crate) traces: usize,
}

#[derive(Args)]
pub(crate) struct Arguments {
    /// [`Settings`] as JSON
    settings: String,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match drive(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn drive(arguments: &Arguments) -> Result<()> {
    let settings: Settings = serde_json::from_str(&arguments.settings)?;
    let options = bubblewrap::options().context("bare bubblewrap")?;
    let mut results = Results {
        processor: Processor::here(),
        rounds: settings.rounds,
        background: background::busy(),
        versions: Vec::new(),
        samples: BTreeMap::new(),
        stages: Vec::new(),
        notes: Vec::new(),
    };
    let columns = starting(&options, &mut results);
    for column in &columns {
        results.versions.extend(version(*column));
    }
    for round in 0..settings.rounds {
        let mut order = columns.clone();
        // Nobody always comes after the same one.
        order.rotate_left(round % columns.len().max(1));
        if round / columns.len().max(1) % 2 == 1 {
            order.reverse();
        }
        for column in order {
            let value = time(column, &options).ok();
            results.samples.entry(column).or_default().push(value);
        }
    }
    match trace::stages(settings.traces) {
        Ok(stages) => results.stages = stages,
        Err(error) => results.note(format!("where the time goes is not known: {error:#}")),
    }
    serde_json::to_writer(std::io::stdout(), &results)?;
    Ok(())
}

/// The columns that start at all, warm.
fn starting(options: &[String], results: &mut Results) -> Vec<Column> {
    let starts = |column: &Column| {
        let outcome = (0..WARM_UP).try_for_each(|_| time(*column, options).map(drop));
        outcome
            .inspect_err(|error| results.note(format!("{}: {error:#}", column.name())))
            .is_ok()
    };
    let columns = Column::ALL.iter().copied();
    let mut starts = starts;
    columns.filter(|column| starts(column)).collect()
}

/// From the start to the end of one command, in milliseconds.
fn time(column: Column, options: &[String]) -> Result<f64> {
    let mut command = column.command(options);
    let begin = Instant::now();
    let status = command.status().context("does not start")?;
    let elapsed = begin.elapsed();
    if !status.success() {
        let output = command.stderr(Stdio::piped()).output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint = complaint.trim().lines().last().unwrap_or_default();
        ensure!(
            output.status.success(),
            "does not start: {status}; {complaint}"
        );
    }
    Ok(elapsed.as_secs_f64() * 1000.0)
}

/// The first number that a program says of itself.
fn version(column: Column) -> Option<(String, String)> {
    let output = Command::output(&mut column.version()?).ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    Some((column.name().to_owned(), number.to_owned()))
}
