//! A day's work inside, with the real tools: compilers, package managers, interpreters. Each works
//! as it does outside, in the profile of every agent.

mod agents;
mod caches;
mod dns;
mod environments;
mod git;
mod home;
pub(crate) mod packages;
mod small;
mod toolchains;
pub(crate) mod transcript;
mod workspace;

use std::{fs, path::Path, time::Duration};

use stockade_world::{Builder, Command, HttpServer, Laptop, World};

use crate::support::standard;

/// Registries of packages on the host `web`, and projects that need what they have.
pub(crate) fn serve_registry(world: &World) -> HttpServer {
    packages::serve(world)
}

/// A model for agents: see the script.
pub(crate) fn model() -> &'static str {
    include_str!("model.py")
}

/// Any command's profile, and every agent's.
const PROFILES: [&str; 5] = ["generic", "claude", "codex", "gemini", "aider"];

/// What agents keep, so that no session says that it is missing.
const STATE: &[(&str, &str)] = &[
    (".claude/settings.json", "{}"),
    (".claude.json", "{}"),
    (".codex/config.toml", ""),
    (".gemini/settings.json", "{}"),
    (".aider/settings", ""),
];

/// Compilers take their time on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

/// A laptop whose user has installed Rust as whoever runs these tests has, and where its programs
/// are there: those of rustup, or else the toolchain's own.
fn with_rust() -> (Builder, &'static str) {
    let cargo = Path::new(env!("CARGO"));
    let toolchain = cargo.ancestors().nth(2).expect("a toolchain");
    let rustup = option_env!("RUSTUP_HOME").zip(option_env!("CARGO_HOME"));
    let (builder, path) = match rustup {
        Some((rustup, cargo)) => (
            standard()
                .directory("/home/dev/.rustup", rustup)
                .directory("/home/dev/.cargo/bin", Path::new(cargo).join("bin")),
            "/home/dev/.cargo/bin",
        ),
        None => (
            standard().directory("/home/dev/.rustup/toolchains/own", toolchain),
            "/home/dev/.rustup/toolchains/own/bin",
        ),
    };
    (builder.limit(4 * LIMIT), path)
}

/// `stockade run --profile PROFILE -- bash -c SCRIPT`, with this in front of the search path.
fn inside(laptop: &Laptop, profile: &str, path: &str, script: &str) -> Command {
    let run = laptop.stockade(["run", "--profile", profile, "--", "bash", "-euc", script]);
    run.env("PATH", format!("{path}:{SYSTEM}")).limit(LIMIT)
}

#[track_caller]
fn said(command: Command) -> String {
    let output = command.run().expect("its end").expect_success();
    output.stdout()
}

/// Writes files below a directory.
fn write(directory: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
}
