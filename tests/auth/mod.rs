//! `stockade auth`, against forges of the world that answer as the real ones do.
//!
//! * `answers`: what is said of a token; `hostile`: forges that mean harm;
//! * `session`: what a session gets, with the real git, `gh` and `glab`;
//! * `secrecy`: the token shows nowhere.

mod answers;
mod hostile;
mod secrecy;
mod session;

use std::{fs, path::PathBuf};

use stockade_world::{Builder, Command, HostSpec, Output, World};

use crate::{feature::daemon::Daemon, support::standard};

/// Where the forges keep their repositories.
const SHELF: &str = "/srv/forge";
const SCRIPT: &str = "/srv/forge.py";
/// What the forges were asked.
const LOG: &str = "/tmp/forge.log";
const NAMES: [&str; 5] = [
    "github.com",
    "api.github.com",
    "ghe.example.org",
    "gitlab.com",
    "evil.example.org",
];

/// A token of a kind that needs no warning.
const FINE: &str = "github_pat_decoyfine";
const CLASSIC: &str = "ghp_decoyclassic";
const ENTERPRISE: &str = "ghp_decoyenterprise";
const PROJECT: &str = "glpat-decoyproject";

fn world() -> Builder {
    let forge = HostSpec::new("forge").at("140.82.121.4");
    standard().host(NAMES.iter().fold(forge, |forge, name| forge.named(name)))
}

/// The forges, with a repository.
fn serve(world: &World) -> Daemon {
    let line = format!(
        "git init -q --bare -b main {SHELF}/project.git &&
        git clone -q {SHELF}/project.git /tmp/first && cd /tmp/first &&
        echo one > file && git add file &&
        git -c user.name=Dev -c user.email=dev@example.com commit -q -m first &&
        git push -q origin HEAD:main"
    );
    let output = world.laptop().shell(&line).run().expect("git ends");
    output.expect_success();
    let identity = world.authority().identity(&NAMES).expect("a certificate");
    fs::write("/tmp/certificate.pem", identity.certificate).expect("write");
    fs::write("/tmp/key.pem", identity.key).expect("write");
    // By its name: its text has the tokens, and lists of processes would show it.
    fs::write(SCRIPT, include_str!("forge.py")).expect("write");
    let files = ["/tmp/certificate.pem", "/tmp/key.pem", LOG];
    let arguments = [&["-I", SCRIPT, "443", SHELF][..], &files].concat();
    Daemon::start(world.host("forge"), 443, "python3", &arguments)
}

fn auth(world: &World, words: &[&str]) -> Command {
    world.laptop().stockade(["auth"]).args(words)
}

/// Logs in with a token at standard input.
fn log_in(world: &World, words: &[&str], token: &str) -> Output {
    let command = auth(world, words).input(format!("{token}\n"));
    command.run().expect("stockade ends")
}

fn run(command: Command) -> Output {
    command.run().expect("stockade ends")
}

/// Where logins are stored.
fn store(world: &World) -> PathBuf {
    world.laptop().home().join(".local/state/stockade/logins")
}

/// The requests that the forges had, each a host, a path, and whether there was a token.
fn requests() -> Vec<String> {
    let log = fs::read_to_string(LOG).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

/// Whether the user has this program. Debian has `glab` since 13.
fn has(program: &str) -> bool {
    let is_there = ["/usr/bin", "/usr/local/bin"]
        .iter()
        .any(|directory| PathBuf::from(directory).join(program).is_file());
    if !is_there {
        eprintln!("NOT TESTED: there is no {program} here");
    }
    is_there
}
