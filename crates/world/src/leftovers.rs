//! What a program leaves behind: compare before and after.
//!
//! A snapshot is a set of lines, each naming one thing that exists: a process,
//! a mount, a namespace, a file outside of the workspace, an interface, route,
//! rule or abstract socket of the laptop. Two snapshots differ by exactly what
//! was left behind or taken away.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::error::{Doing, Error, Result};
use crate::fs::mount_points;
use crate::laptop::Laptop;
use crate::tool;

/// Where programs leave files. The workspace is the agent's to change.
const PLACES: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/dev/shm", "/mnt"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    lines: BTreeSet<String>,
    expected: Vec<String>,
}

impl Snapshot {
    pub(crate) fn take(laptop: &Laptop) -> Result<Self> {
        let mut lines = BTreeSet::new();
        for mount in mount_points()? {
            lines.insert(format!("mount {}", mount.path.display()));
        }
        processes(&mut lines)?;
        for place in PLACES.map(PathBuf::from) {
            files(&place, &[], &mut lines);
        }
        // The logs of sessions are meant to stay.
        let logs = laptop.home().join(".local/state");
        files(laptop.home(), &[laptop.workspace(), logs], &mut lines);
        network(laptop, &mut lines)?;
        Ok(Self {
            lines,
            expected: Vec::new(),
        })
    }

    /// Differences whose line contains `text` are as they should be, for
    /// instance the path of a log.
    pub fn ignoring(mut self, text: &str) -> Self {
        self.expected.push(text.to_owned());
        self
    }

    /// Lines that are new (`+`) or gone (`-`) in `later`.
    pub fn differences(&self, later: &Self) -> Vec<String> {
        let (before, after) = (&self.lines, &later.lines);
        let new = after.difference(before).map(|line| format!("+ {line}"));
        let gone = before.difference(after).map(|line| format!("- {line}"));
        new.chain(gone)
            .filter(|line| !self.expected.iter().any(|text| line.contains(text)))
            .collect()
    }

    pub(crate) fn wait_until_restored(&self, laptop: &Laptop, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            let differences = self.differences(&Self::take(laptop)?);
            if differences.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::Overdue {
                    what: "that nothing is left behind".to_owned(),
                    limit,
                    seen: format!("differences:\n{}", differences.join("\n")),
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Processes, and the namespaces that live through them or their descriptors.
/// Zombies count: whoever started them has not cleaned up.
fn processes(lines: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir("/proc").doing("list processes")? {
        let path = entry.doing("list processes")?.path();
        let is_process = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_process {
            continue;
        }
        // It may be gone by now; then it has left nothing behind.
        let Ok(name) = fs::read_to_string(path.join("comm")) else {
            continue;
        };
        lines.insert(format!("process {} {}", path.display(), name.trim()));
        for directory in ["ns", "fd"] {
            for link in links(&path.join(directory)) {
                // Named by the kernel as `net:[4026531840]`. Those of our own
                // snapshot (sockets, this directory) have other names.
                if link.contains(":[") && !link.starts_with("socket:") && !link.starts_with("pipe:")
                {
                    lines.insert(format!("namespace {link}"));
                }
            }
        }
    }
    Ok(())
}

fn links(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|link| link.to_string_lossy().into_owned())
        .collect()
}

fn files(directory: &Path, except: &[PathBuf], lines: &mut BTreeSet<String>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if except.contains(&path) {
            continue;
        }
        lines.insert(format!("file {}", path.display()));
        if !path.is_symlink() && path.is_dir() {
            files(&path, except, lines);
        }
    }
}

fn network(laptop: &Laptop, lines: &mut BTreeSet<String>) -> Result<()> {
    let ip = tool::find("ip")?;
    for what in [
        &["-oneline", "link", "show"][..],
        &["-4", "rule", "show"],
        &["-6", "rule", "show"],
        &["route", "show", "table", "all"],
        &["-6", "route", "show", "table", "all"],
    ] {
        let output = laptop
            .enter(|| Command::new(&ip).args(what).output())
            .doing("ask ip")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        lines.extend(
            text.lines()
                .map(|line| format!("{}: {line}", what.join(" "))),
        );
    }
    let unix = laptop
        .enter(|| fs::read_to_string("/proc/thread-self/net/unix"))
        .doing("list unix sockets")?;
    let named = unix.lines().filter_map(|line| line.split_once('@'));
    lines.extend(named.map(|(_, name)| format!("abstract socket @{name}")));
    Ok(())
}
