//! What else the machine is doing: numbers from a busy machine say little.

use std::fs;
use std::thread;
use std::time::Duration;

const SAMPLE: Duration = Duration::from_millis(500);

/// The busy share of all processors while the bench itself does nothing, from
/// 0 to 1. `None` where the kernel does not tell.
pub(crate) fn busy() -> Option<f64> {
    let before = Times::now()?;
    thread::sleep(SAMPLE);
    let after = Times::now()?;
    let total = after.total - before.total;
    (total > 0.0).then(|| 1.0 - (after.idle - before.idle) / total)
}

/// In ticks, since the machine started.
struct Times {
    total: f64,
    idle: f64,
}

impl Times {
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: `cpu user nice system idle iowait irq softirq steal …`,
    /// of which the fields after `steal` are contained in the first two.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<f64> = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .take(8)
            .map(|field| field.parse().ok())
            .collect::<Option<_>>()?;
        Some(Self {
            total: fields.iter().sum(),
            idle: fields.get(3)? + fields.get(4)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_not_counted_twice() {
        let times = Times::parse("cpu  10 0 5 80 3 1 1 0 10 0\ncpu0 1 1\n").unwrap();
        assert_eq!((times.total, times.idle), (100.0, 83.0));
        assert!(Times::parse("cpu 1 2 x 4 5").is_none());
    }
}
