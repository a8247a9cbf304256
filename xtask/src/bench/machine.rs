//! The machine under the numbers, and what else it is doing.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stockade_world::Pid;

/// Ticks per second in `/proc/PID/stat`: a constant of the kernel's interface on every
/// architecture that Rust runs on.
const TICKS: f64 = 100.0;

/// The relay needs two descriptors for each of 10 000 connections.
const DESCRIPTORS: u64 = 65_536;

/// Processors and kernel.
pub(super) fn describe() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let name = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, name)| name);
    let count = thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{count} × {name}, Linux {}", kernel.trim())
}

/// The busy share of all processors while the bench itself does nothing, in percent: numbers
/// from a busy machine say little.
pub(super) fn busy() -> Result<f64> {
    // `cpu user nice system idle iowait irq softirq steal …`; what follows is contained in the
    // first two.
    let times = || -> Result<[f64; 2]> {
        let text = fs::read_to_string("/proc/stat")?;
        let fields = text.split_whitespace().skip(1).take(8);
        let fields = fields.map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        Ok([fields.iter().sum(), fields[3] + fields[4]])
    };
    let [all, idle] = times()?;
    thread::sleep(Duration::from_millis(500));
    let [all_later, idle_later] = times()?;
    Ok(100.0 * (1.0 - (idle_later - idle) / (all_later - all)))
}

/// As many descriptors as one may have; root may raise the limit that everything inherits.
/// Returns the limit.
pub(super) fn raise_descriptor_limit() -> Option<u64> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let more = maximum.map(|maximum| maximum.max(DESCRIPTORS));
    let set = |maximum| {
        let limit = Rlimit {
            current: maximum,
            maximum,
        };
        setrlimit(Resource::Nofile, limit).is_ok()
    };
    if !set(more) {
        set(maximum);
    }
    getrlimit(Resource::Nofile).current
}

/// Processor time of a process so far, of all its threads, in seconds.
pub(super) fn cpu_seconds(process: Pid) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()))?;
    // The name, in parentheses, may contain anything. utime and stime are fields 14 and 15.
    let (_, rest) = text.rsplit_once(')').context("no process")?;
    let ticks = rest.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

/// Resident memory of a process, in megabytes (10^6).
pub(super) fn resident(process: Pid) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kibibytes.context("no memory")?.parse::<f64>()? * 1024.0 / 1e6)
}
