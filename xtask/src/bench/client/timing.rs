//! Repeating an exchange for a while, on several threads, and summing up.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::bench::task::Exchanges;

/// The part of the time that is spent before counting starts.
const WARM_UP: f64 = 0.15;
/// After this many failures in a row, a thread gives up.
const HOPELESS: u32 = 3;

#[derive(Default)]
struct Tally {
    latencies: Vec<Duration>,
    failed: u64,
    first_failure: Option<String>,
}

/// Calls `exchange` over and over. `prepare` makes one exchange function for
/// each thread.
pub(super) fn repeat<E>(
    threads: usize,
    seconds: f64,
    prepare: impl Fn(usize) -> std::io::Result<E> + Sync,
) -> Result<Exchanges>
where
    E: FnMut() -> std::io::Result<()>,
{
    let length = Duration::from_secs_f64(seconds);
    let begin = Instant::now() + Duration::from_secs_f64(seconds * WARM_UP);
    let end = begin + length;
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let prepare = &prepare;
        let workers: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || work(number, prepare, begin, end)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_default())
            .collect()
    });
    sum_up(&tallies, length)
}

fn work<E>(
    number: usize,
    prepare: &impl Fn(usize) -> std::io::Result<E>,
    begin: Instant,
    end: Instant,
) -> Tally
where
    E: FnMut() -> std::io::Result<()>,
{
    let mut tally = Tally::default();
    let mut exchange = match prepare(number) {
        Ok(exchange) => exchange,
        Err(error) => {
            tally.failed += 1;
            tally.first_failure = Some(error.to_string());
            return tally;
        }
    };
    let mut failures = 0;
    let mut start = Instant::now();
    while start < end && failures < HOPELESS {
        let outcome = exchange();
        let stop = Instant::now();
        match outcome {
            Ok(()) => {
                failures = 0;
                if start >= begin && stop <= end {
                    tally.latencies.push(stop - start);
                }
            }
            Err(error) => {
                failures += 1;
                tally.failed += 1;
                tally.first_failure.get_or_insert_with(|| error.to_string());
            }
        }
        start = stop;
    }
    tally
}

fn sum_up(tallies: &[Tally], length: Duration) -> Result<Exchanges> {
    let mut latencies: Vec<Duration> = tallies
        .iter()
        .flat_map(|tally| tally.latencies.iter().copied())
        .collect();
    latencies.sort_unstable();
    let failed = tallies.iter().map(|tally| tally.failed).sum();
    ensure!(
        !latencies.is_empty(),
        "no exchange succeeded: {}",
        tallies
            .iter()
            .find_map(|tally| tally.first_failure.as_deref())
            .unwrap_or("the time was too short")
    );
    Ok(Exchanges {
        per_second: latencies.len() as f64 / length.as_secs_f64(),
        p50: percentile(&latencies, 50),
        p99: percentile(&latencies, 99),
        failed,
    })
}

fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).map_or(0.0, Duration::as_secs_f64)
}
