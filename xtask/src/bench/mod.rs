//! `cargo xtask bench`: the numbers of docs/performance.md.
//!
//! ```text
//!  outer process   installs the peers, builds for release, prints and publishes
//!    │ its own arguments; Markdown on standard output
//!  driver          measures: in a closed world (`net`), on a stage without a network (`start`)
//!    │ command lines; a line of JSON for each
//!  client          for `net`: on the laptop, directly or inside a sandbox
//! ```
//! All three are this program, built for release.

mod chart;
mod client;
mod machine;
mod net;
mod samples;
mod start;

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};

use crate::sections::replaced;

const DOCUMENT: &str = "docs/performance.md";

#[derive(Args)]
#[command(about = "Measure the product")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Net(net::Net),
    Start(start::Start),
    #[command(hide = true)]
    NetDriver(net::Net),
    #[command(hide = true)]
    StartDriver(start::Start),
    #[command(hide = true)]
    Client(client::Arguments),
}

#[derive(Args)]
struct Common {
    /// How often to measure everything
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,

    /// Use this binary of the product instead of building one
    #[arg(long, value_name = "PATH", overrides_with = "product")]
    product: Option<PathBuf>,

    /// Also put the results into docs/performance.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let outcome = match &arguments.what {
        What::Net(net) => in_release().and_then(|()| net::run(net)),
        What::Start(start) => in_release().and_then(|()| start::run(start)),
        What::NetDriver(net) => return net::drive(net),
        What::StartDriver(start) => start::drive(start),
        What::Client(arguments) => client::run(arguments),
    };
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
    let error = Command::new(build_release("xtask")?)
        .args(env::args_os().skip(1))
        .exec();
    Err(error).context("cannot start the release build")
}

/// Builds a program with optimisation and returns where it is.
fn build_release(package: &str) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", package])
        .current_dir(repository())
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "{package} does not build");
    Ok(target_directory()?.join("release").join(package))
}

fn target_directory() -> Result<PathBuf> {
    let itself = env::current_exe().context("cannot find myself")?;
    let target = itself.ancestors().nth(2).context("no target directory")?;
    Ok(target.to_owned())
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// Installs the Debian package of a program if the program is missing.
fn install(program: &str, package: &str) -> Result<()> {
    let directories = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin", "/sbin"];
    if directories
        .iter()
        .any(|directory| Path::new(directory).join(program).is_file())
    {
        return Ok(());
    }
    let status = Command::new("sh")
        .args([
            "-c",
            ". scripts/packages.sh; install_packages \"$0\" >&2",
            package,
        ])
        .current_dir(repository())
        .status()?;
    ensure!(status.success(), "cannot install {package}");
    Ok(())
}

impl Common {
    fn product(&self) -> Result<PathBuf> {
        match &self.product {
            Some(path) => fs::canonicalize(path).context("cannot find the product"),
            None => build_release("stockade"),
        }
    }

    /// Runs the driver, which `command` starts, with the arguments that this process has, and
    /// returns what it found.
    fn drive(&self, mut command: Command, driver: &str, product: &Path) -> Result<String> {
        let driver = command
            .args(["bench", driver])
            .args(env::args_os().skip(3))
            .arg("--product")
            .arg(product)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start the driver")?;
        ensure!(driver.status.success(), "the measurement failed");
        Ok(String::from_utf8(driver.stdout)?)
    }

    fn publish(&self, bench: &str, tables: &str) -> Result<()> {
        print!("{tables}");
        if !self.write {
            return Ok(());
        }
        let path = repository().join(DOCUMENT);
        let text = fs::read_to_string(&path)?;
        let markers = ["begin", "end"]
            .map(|word| format!("<!-- cargo xtask bench {bench} --write: {word} -->"));
        let text = replaced(&text, &markers, &format!("\n{tables}"))
            .with_context(|| format!("{DOCUMENT} has lost its markers {markers:?}"))?;
        fs::write(path, text).with_context(|| format!("cannot write {DOCUMENT}"))
    }
}
