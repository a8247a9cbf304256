//! `cargo xtask bench net`: how fast the network inside is.
//!
//! ```text
//!  outer process    installs the peers, builds for release, renders the results
//!    │ settings as an argument, results as JSON on standard output
//!  driver           in a closed world: servers, rounds, columns      (rounds)
//!    │ tasks and replies, one JSON object per line                   (task)
//!  client           on the laptop, directly or inside a sandbox      (client)
//! ```
//!
//! All three are this program, built for release.

mod background;
pub(crate) mod client;
mod column;
mod measure;
mod processor;
mod relay;
mod report;
mod results;
pub(crate) mod rounds;
mod rows;
mod server;
mod settings;
mod setup;
pub(crate) mod start;
mod task;

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand, ValueEnum};

pub(crate) use column::CLIENT;
use column::Column;
use measure::Measurement;
use results::Results;
use settings::Settings;
pub(crate) use setup::repository;

#[derive(Args)]
#[command(about = "Measure the product")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Net(Net),
    Start(start::Start),
}

#[derive(Args)]
#[command(
    about = "The network inside, against none, pasta and slirp4netns",
    long_about = "Measures throughput, connection rate, latency, names, CPU and memory in a closed \
        world: directly, in the product, and behind pasta and slirp4netns, which are installed if \
        they are missing. Prints two Markdown tables (values, ratios to direct) and the targets. \
        No packet leaves the machine.",
    after_help = EXAMPLES
)]
struct Net {
    /// How often to measure everything
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,

    /// Less of everything, in under a minute: for trying, not for publishing
    #[arg(long)]
    quick: bool,

    /// Only these columns (direct is needed for ratios)
    #[arg(long, value_delimiter = ',', value_enum, value_name = "NAMES")]
    columns: Vec<Column>,

    /// Only these measurements
    #[arg(long, value_delimiter = ',', value_enum, value_name = "NAMES")]
    only: Vec<Measurement>,

    /// Use this binary of the product instead of building one
    #[arg(long, value_name = "PATH")]
    product: Option<PathBuf>,

    /// Print the results as JSON instead of tables
    #[arg(long)]
    json: bool,

    /// Also draw the ratios as a bar chart
    #[arg(long, value_name = "FILE.svg")]
    chart: Option<PathBuf>,

    /// Also put tables and chart into docs/performance.md
    #[arg(long, conflicts_with = "quick")]
    write: bool,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench net --write
      the numbers of docs/performance.md, measured again (about five minutes)
  cargo xtask bench net --quick --columns direct,stockade
      a first impression
  cargo xtask bench net --quick --rounds 5 --only connect,tcp-echo --product /tmp/stockade
      two measurements of one build";

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let outcome = in_release().and_then(|()| match &arguments.what {
        What::Net(net) => measure_net(net),
        What::Start(start) => start::run(start),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Becomes the release build of this program: slow servers and clients would hide the
/// differences.
fn in_release() -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let release = setup::build_release(&["xtask"])?;
    let error = Command::new(release.join("xtask"))
        .args(env::args_os().skip(1))
        .exec();
    Err(error).context("cannot start the release build")
}

fn measure_net(net: &Net) -> Result<()> {
    setup::install(&setup::PEERS)?;
    let product = match &net.product {
        Some(path) => fs::canonicalize(path).context("cannot find the product")?,
        None => setup::build_release(&["stockade"])?.join("stockade"),
    };
    setup::raise_descriptor_limit();
    let results = measure(&net.settings(product))?;
    publish(net, &results)
}

/// Runs the driver in a world and collects what it found.
fn measure(settings: &Settings) -> Result<Results> {
    let driver = Command::new(env::current_exe()?)
        .arg(DRIVER)
        .arg(serde_json::to_string(settings)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the driver")?
        .wait_with_output()?;
    ensure!(driver.status.success(), "the measurement failed");
    serde_json::from_slice(&driver.stdout).context("cannot understand the driver")
}

/// The driver's name as a task of this program; hidden from its help.
pub(crate) const DRIVER: &str = "bench-driver";

fn publish(net: &Net, results: &Results) -> Result<()> {
    if net.json {
        println!("{}", serde_json::to_string_pretty(results)?);
    } else {
        println!("{}", report::markdown(results));
    }
    if let Some(path) = &net.chart {
        fs::write(path, report::chart(results))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if net.write {
        report::write(&repository(), results)?;
    }
    Ok(())
}

impl Net {
    fn settings(&self, product: PathBuf) -> Settings {
        fn or_all<T: ValueEnum + Clone>(chosen: &[T]) -> Vec<T> {
            if chosen.is_empty() {
                T::value_variants().to_vec()
            } else {
                chosen.to_vec()
            }
        }
        Settings {
            product,
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 5 }).max(1),
            columns: or_all(&self.columns),
            measurements: or_all(&self.only),
            stream_seconds: if self.quick { 1 } else { 2 },
            streams_seconds: 1,
            exchange_seconds: if self.quick { 0.4 } else { 0.5 },
            connections: if self.quick { 1_000 } else { 10_000 },
        }
    }
}
