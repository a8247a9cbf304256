//! What the process that relays costs, as the kernel counts it.

use std::fs;

use anyhow::{Context, Result};
use stockade_world::Pid;

/// Ticks per second in `/proc/PID/stat`: a constant of the kernel's interface
/// on every architecture that Rust runs on.
const TICKS: f64 = 100.0;

/// Processor time so far, of all its threads, in seconds.
pub(crate) fn cpu_seconds(relay: Pid) -> Result<f64> {
    let path = format!("/proc/{}/stat", relay.as_raw_nonzero());
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name, in parentheses, may contain anything; the last one ends it.
    let fields: Vec<&str> = text
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().collect())
        .unwrap_or_default();
    let ticks = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<f64>().ok())
    };
    // Fields 14 and 15 of the whole line: utime, stime.
    let (user, system) = ticks(11)
        .zip(ticks(12))
        .with_context(|| format!("cannot understand {path}"))?;
    Ok((user + system) / TICKS)
}

/// Resident memory, in megabytes (10^6).
pub(crate) fn resident(relay: Pid) -> Result<f64> {
    let path = format!("/proc/{}/status", relay.as_raw_nonzero());
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let kibibytes = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<f64>().ok())
        .with_context(|| format!("{path} says nothing about memory"))?;
    Ok(kibibytes * 1024.0 / 1e6)
}
