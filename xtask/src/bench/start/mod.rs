//! `cargo xtask bench start`: how long a sandbox takes to run `true`.
//!
//! ```text
//!  outer process   installs the peers, builds for release, renders the results
//!    │ settings as an argument, results as JSON on standard output
//!  driver          on a stage of its own: every column once, round after round   (driver)
//! ```
//! The stage (`stage`) is an ordinary user's home in memory and a network without any
//! interface but loopback. It is no world: one of the peers is a setuid program, and those
//! do not work in a user namespace.

mod bubblewrap;
mod column;
pub(crate) mod driver;
mod peers;
mod report;
mod results;
mod stage;
mod trace;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use results::Results;

use super::setup;

#[derive(Args)]
#[command(
    about = "How long a sandbox takes to run `true`, against bubblewrap, srt, codex and firejail",
    long_about = "Runs `true` in each sandbox, one after the other, many times over, as an ordinary user \
        without a network, and prints Markdown tables: times, ratios to bare bubblewrap with the \
        same mounts, targets, and where the product's time goes. Peers that are missing are \
        installed: by the system's package manager, and by npm below target/. One that cannot be had \
        is a note.",
    after_help = EXAMPLES
)]
pub(crate) struct Start {
    /// How often to start each
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,

    /// Ten rounds: for trying, not for publishing
    #[arg(long)]
    quick: bool,

    /// Use this binary of the product instead of building one
    #[arg(long, value_name = "PATH")]
    product: Option<PathBuf>,

    /// Print the results as JSON instead of tables
    #[arg(long)]
    json: bool,

    /// Also put the tables into docs/performance.md
    #[arg(long, conflicts_with = "quick")]
    write: bool,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench start --write
      the numbers of docs/performance.md, measured again (about two minutes)
  cargo xtask bench start --quick --product /tmp/stockade
      a first impression of one build";

pub(super) fn run(start: &Start) -> Result<()> {
    let peers = peers::install()?;
    let product = match &start.product {
        Some(path) => fs::canonicalize(path).context("cannot find the product")?,
        None => setup::build_release(&["stockade"])?.join("stockade"),
    };
    let rounds = start.rounds.unwrap_or(if start.quick { 10 } else { 100 });
    let settings = driver::Settings {
        rounds: rounds.max(1),
        traces: if start.quick { 3 } else { 15 },
    };
    let mut results: Results = stage::run(&settings, &product, &peers.directory)?;
    results.notes.splice(0..0, peers.notes);
    if start.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    } else {
        println!("{}", report::markdown(&results));
    }
    if start.write {
        report::write(&setup::repository(), &results)?;
    }
    Ok(())
}
