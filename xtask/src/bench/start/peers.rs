//! The peers: installed once, by the ordinary clients of their registries.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::setup;

/// Program and package, as Debian names it. The last two are what srt needs besides.
const SYSTEM: [(&str, &str); 6] = [
    ("bwrap", "bubblewrap"),
    ("strace", "strace"),
    ("firejail", "firejail"),
    ("npm", "npm"),
    ("socat", "socat"),
    ("rg", "ripgrep"),
];

/// Program and npm's package.
const NPM: [(&str, &str); 2] = [
    ("srt", "@anthropic-ai/sandbox-runtime"),
    ("codex", "@openai/codex"),
];

pub(super) struct Peers {
    /// Where npm has put them.
    pub(super) directory: PathBuf,
    pub(super) notes: Vec<String>,
}

pub(super) fn install() -> Result<Peers> {
    let itself = env::current_exe().context("cannot find myself")?;
    let target = itself.ancestors().nth(2).context("no target directory")?;
    let directory = target.join("bench-peers");
    fs::create_dir_all(&directory).context("cannot make a place for the peers")?;
    let mut notes = Vec::new();
    for (program, package) in SYSTEM {
        // One by one: one that is not to be had must not keep the others away.
        if let Err(error) = setup::install(&[(program, package)]) {
            notes.push(format!("{program}: {error:#}"));
        }
    }
    for (program, package) in NPM {
        if let Err(error) = install_by_npm(&directory, program, package) {
            notes.push(format!("{program}: {error:#}"));
        }
    }
    Ok(Peers { directory, notes })
}

fn install_by_npm(directory: &Path, program: &str, package: &str) -> Result<()> {
    if directory.join("node_modules/.bin").join(program).exists() {
        return Ok(());
    }
    eprintln!("Installing {package} by npm ...");
    let output = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
        .arg("--prefix")
        .arg(directory)
        .arg(package)
        .output()
        .context("cannot start npm")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "npm cannot install it: {}",
        complaint.lines().next().unwrap_or_default()
    );
    Ok(())
}
