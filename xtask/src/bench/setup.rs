//! What has to be there before a world is opened: peers, the product, limits.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Programs that the network's bench needs, and the Debian packages that bring them.
pub(crate) const PEERS: [(&str, &str); 3] = [
    ("iperf3", "iperf3"),
    ("pasta", "passt"),
    ("slirp4netns", "slirp4netns"),
];

/// The relay needs two descriptors for each of 10 000 connections.
const DESCRIPTORS: u64 = 65_536;

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// Installs what is missing of these programs, each named with its package.
pub(crate) fn install(programs: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<&str> = programs
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let status = Command::new("sh")
        .args([
            "-c",
            ". scripts/packages.sh; install_packages \"$@\" >&2",
            "sh",
        ])
        .args(&missing)
        .current_dir(repository())
        .status()?;
    ensure!(status.success(), "cannot install {}", missing.join(", "));
    Ok(())
}

fn is_installed(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin", "/sbin"]
        .iter()
        .any(|directory| Path::new(directory).join(program).is_file())
}

/// Builds packages with optimisation and returns where their programs are.
pub(crate) fn build_release(packages: &[&str]) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release"]);
    for package in packages {
        build.args(["--package", package]);
    }
    let status = build
        .current_dir(repository())
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "{} does not build", packages.join(", "));
    let itself = env::current_exe().context("cannot find myself")?;
    let target = itself.ancestors().nth(2).context("no target directory")?;
    Ok(target.join("release"))
}

/// Root may raise the limit that everything in the world inherits. For others
/// it stays, and the table says how many connections were held.
pub(crate) fn raise_descriptor_limit() {
    let has = getrlimit(Resource::Nofile);
    if has.maximum.is_some_and(|maximum| maximum < DESCRIPTORS) {
        let wanted = Rlimit {
            current: Some(DESCRIPTORS),
            maximum: Some(DESCRIPTORS),
        };
        let _ = setrlimit(Resource::Nofile, wanted);
    }
}
