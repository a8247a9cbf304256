//! The machine under the numbers.

use std::fmt;
use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(crate) struct Processor {
    pub(crate) count: usize,
    pub(crate) name: String,
    pub(crate) kernel: String,
}

impl Processor {
    pub(crate) fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let name = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or("unknown", |(_, name)| name);
        Self {
            count: thread::available_parallelism().map_or(0, usize::from),
            name: name.to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}, Linux {}", self.count, self.name, self.kernel)
    }
}
