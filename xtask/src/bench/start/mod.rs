//! `cargo xtask bench start`: how long a sandbox takes to run `true`.
//!
//! The driver runs on a stage: a mount namespace and a network namespace of their own, with
//! loopback in it and nothing else, so that whatever a peer does at its start, no packet leaves the
//! machine. In it an ordinary user with an ordinary home, in memory. Root becomes that user; others
//! stay who they are, in a user namespace, in which setuid programs do not work. For these it is no
//! world: one of the peers is one.

mod bubblewrap;
mod trace;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::samples::{Samples, page, ratio, table, targets, value};
use super::{Common, install, machine, target_directory};

const PRODUCT: &str = "/home/stockade";

/// Program and package, as Debian names it. The last two are what srt needs besides.
#[rustfmt::skip]
const SYSTEM: [(&str, &str); 6] = [
    ("bwrap", "bubblewrap"), ("strace", "strace"), ("firejail", "firejail"), ("npm", "npm"),
    ("socat", "socat"), ("rg", "ripgrep"),
];

/// Program and npm's package.
const NPM: [(&str, &str); 2] = [
    ("srt", "@anthropic-ai/sandbox-runtime"),
    ("codex", "@openai/codex"),
];

/// Ways to run a command in a sandbox, each as its users start it: name and command line. The dots
/// stand for the product's mounts and namespaces.
const COLUMNS: [(&str, &str); 6] = [
    ("no sandbox", "true"),
    (BUBBLEWRAP, "bwrap … true"),
    (STOCKADE, "stockade run -- true"),
    ("firejail", "firejail --quiet true"),
    ("codex sandbox", "codex sandbox -- true"),
    ("sandbox-runtime (srt)", "srt true"),
];
const BUBBLEWRAP: &str = "bubblewrap";
const STOCKADE: &str = "stockade";

/// The largest ratios to others that will do.
const TARGETS: [(f64, &str); 3] = [
    (2.5, BUBBLEWRAP),
    (0.2, "codex sandbox"),
    (0.2, "sandbox-runtime (srt)"),
];

/// Starts that do not count: of files that were never read, and of first settings.
const WARM_UP: usize = 3;
/// How often to look where the product's time goes.
const TRACES: usize = 15;

/// Arguments: the product, the peers' directory, this program, the driver's arguments. What
/// is needed of the disk is bound before anything is covered: it may lie anywhere.
const STAGE: &str = r#"
set -eu
product=$1 peers=$2 itself=$3
shift 3
ip link set lo up
set_at=$(mktemp -d)
mount -t tmpfs -o mode=755 stage "$set_at"
home=$set_at/bench
mkdir -p "$set_at/peers" "$home/.cache" "$home/.local/share" "$home/project/.git/hooks"
mount --bind "$peers" "$set_at/peers"
cp "$product" "$set_at/stockade"
cp "$itself" "$set_at/xtask"
echo 'ref: refs/heads/main' > "$home/project/.git/HEAD"
mkdir "$home/project/.git/objects" "$home/project/.git/refs"
become='--ambient-caps -all --inh-caps -all'
if [ "$(id -u)" = 0 ]; then
    become='--reuid 61000 --regid 61000 --clear-groups'
    for file in passwd group; do cp "/etc/$file" "$set_at/$file"; done
    echo 'bench:x:61000:61000::/home/bench:/bin/sh' >> "$set_at/passwd"
    echo 'bench:x:61000:' >> "$set_at/group"
    for file in passwd group; do mount --bind "$set_at/$file" "/etc/$file"; done
    chown -R 61000:61000 "$home"
fi
mount --rbind "$set_at" /home
mount -t tmpfs -o mode=1777 stage /tmp
cd /home/bench/project
exec setpriv $become env -i HOME=/home/bench USER=bench LANG=C.UTF-8 TERM=dumb \
    PATH=/usr/local/bin:/usr/bin:/bin /home/xtask "$@"
"#;

#[derive(Args)]
#[command(
    about = "How long a sandbox takes to run `true`, against bubblewrap, srt, codex and firejail",
    long_about = "Runs `true` in each sandbox, one after the other, many times over, as an ordinary user \
        without a network, and prints Markdown tables: times, ratios to bare bubblewrap with the \
        same mounts, targets, and where the product's time goes. Peers that are missing are \
        installed: by the system's package manager, and by npm below target/. One that cannot be had \
        is a note.",
    after_help = "Examples:
  cargo xtask bench start --write
      the numbers of docs/performance.md, measured again (about two minutes)
  cargo xtask bench start --rounds 10 --product /tmp/stockade
      a first impression of one build"
)]
pub(super) struct Start {
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(start: &Start) -> Result<()> {
    let peers = target_directory()?.join("bench-peers");
    fs::create_dir_all(&peers).context("cannot make a place for the peers")?;
    // One by one: one that cannot be had must not keep the others away.
    let system = SYSTEM.map(|(program, package)| install(program, package));
    let npm = NPM.map(|(program, package)| install_by_npm(&peers, program, package));
    for error in system.into_iter().chain(npm).filter_map(Result::err) {
        eprintln!("{error:#}");
    }
    let product = start.common.product()?;
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    unshare
        .args(["--net", "--mount", "--propagation", "private", "--"])
        .args(["sh", "-c", STAGE, "stage"])
        .args([&product, &peers, &env::current_exe()?]);
    let tables = start.common.drive(unshare, "start-driver", &product)?;
    start.common.publish("start", &tables)
}

fn install_by_npm(directory: &Path, program: &str, package: &str) -> Result<()> {
    if directory.join("node_modules/.bin").join(program).exists() {
        return Ok(());
    }
    let status = Command::new("npm")
        .args("install --no-audit --no-fund --loglevel=error --prefix".split(' '))
        .arg(directory)
        .arg(package)
        .stdout(Stdio::null())
        .status()
        .context("cannot start npm")?;
    ensure!(status.success(), "npm cannot install {package}");
    Ok(())
}

/// On the stage: every column once, in turn, before the next round, so that a busy moment of the
/// machine falls on all alike. Prints the tables.
pub(super) fn drive(start: &Start) -> Result<()> {
    let rounds = start.common.rounds.unwrap_or(100).max(1);
    let options = bubblewrap::options().context("bare bubblewrap")?;
    let busy = machine::busy()?;
    let mut samples = Samples::with_deciles();
    // Those that start at all, warm.
    let mut columns = COLUMNS.to_vec();
    columns.retain(|(name, line)| {
        let outcome = (0..WARM_UP).try_for_each(|_| time(line, &options).map(drop));
        outcome
            .inspect_err(|error| samples.note(format!("{name}: {error:#}")))
            .is_ok()
    });
    for round in 0..rounds {
        let mut order = columns.clone();
        // Nobody always comes after the same one.
        order.rotate_left(round % columns.len().max(1));
        if round / columns.len().max(1) % 2 == 1 {
            order.reverse();
        }
        for (name, line) in order {
            if let Ok(value) = time(line, &options) {
                samples.record("", name, round, value);
            }
        }
    }
    let stages = trace::stages(TRACES.min(rounds));
    let stages = stages.unwrap_or_else(|error| {
        samples.note(format!("where the time goes is not known: {error:#}"));
        Vec::new()
    });
    let machine = format!(
        "{}; {}.\nCPU used by others before: {busy:.0} %. Rounds: {rounds}; median (first – last decile).\n",
        machine::describe(),
        columns
            .iter()
            .filter_map(version)
            .collect::<Vec<_>>()
            .join(", "),
    );
    let tables = [
        machine,
        times(&samples, &columns),
        judged(&samples),
        breakdown(&stages),
        samples.notes(),
    ];
    print!("{}", page(&tables));
    Ok(())
}

/// Where a program is on the stage.
fn program(name: &str) -> String {
    match name {
        "stockade" => PRODUCT.to_owned(),
        "codex" | "srt" => format!("/home/peers/node_modules/.bin/{name}"),
        other => other.to_owned(),
    }
}

/// From the start to the end of one command, in milliseconds.
fn time(line: &str, options: &[String]) -> Result<f64> {
    let mut words = line.split(' ');
    let mut command = Command::new(program(words.next().unwrap_or_default()));
    for word in words {
        match word {
            "…" => command.args(options).arg("--"),
            word => command.arg(word),
        };
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
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
fn version((name, line): &(&str, &str)) -> Option<String> {
    let (own, _) = line.split_once(' ')?;
    let output = Command::new(program(own)).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace();
    let number = words.find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    Some(format!("{name} {number}"))
}

fn times(samples: &Samples, columns: &[(&'static str, &'static str)]) -> String {
    let lines = columns.iter().map(|(name, line)| {
        let time = value(samples.value("", name), |value| format!("{value:.1}"));
        let ratio = ratio(samples.ratio("", name, BUBBLEWRAP));
        vec![name.to_string(), format!("`{line}`"), time, ratio]
    });
    let header = "| | command | ms | × bubblewrap |\n|---|---|---:|---:|";
    table(header, &lines.collect::<Vec<_>>())
}

fn judged(samples: &Samples) -> String {
    targets(TARGETS.into_iter().filter_map(|(limit, other)| {
        let ratio = samples.ratio("", STOCKADE, other)?.median;
        let target = format!("at most {limit} × {other}");
        Some((target, format!("{ratio:.2}"), ratio <= limit))
    }))
}

fn breakdown(stages: &[(&'static str, f64)]) -> String {
    let all: f64 = stages.iter().map(|(_, time)| time).sum();
    let share = |time| format!("{:.0} %", time / all * 100.0);
    let line =
        |(name, time): &(&str, f64)| vec![name.to_string(), format!("{time:.1}"), share(*time)];
    let mut lines: Vec<_> = stages.iter().map(line).collect();
    if !lines.is_empty() {
        lines.push(vec!["all".to_owned(), format!("{all:.1}"), String::new()]);
    }
    table(
        "| where stockade's time goes, by strace | ms | |\n|---|---:|---:|",
        &lines,
    )
}
