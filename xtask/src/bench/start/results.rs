//! The numbers of a run, and what they come to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::column::Column;
use crate::bench::processor::Processor;

#[derive(Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) processor: Processor,
    pub(crate) rounds: usize,
    /// The share of the processors that others used before the first round.
    pub(crate) background: Option<f64>,
    /// Program and version.
    pub(crate) versions: Vec<(String, String)>,
    /// Milliseconds, one value for each round, `None` where the start failed.
    pub(crate) samples: BTreeMap<Column, Vec<Option<f64>>>,
    /// Where the product's time goes.
    pub(crate) stages: Vec<Stage>,
    pub(crate) notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) milliseconds: f64,
}

impl Results {
    pub(crate) fn note(&mut self, note: String) {
        eprintln!("{note}");
        self.notes.push(note);
    }

    pub(crate) fn time(&self, column: Column) -> Option<Spread> {
        Spread::of(self.samples(column).iter().flatten().copied())
    }

    /// How many times as long as another, taken in each round by itself: what slows down a
    /// round slows down both.
    pub(crate) fn ratio(&self, column: Column, to: Column) -> Option<Spread> {
        let pairs = self.samples(column).iter().zip(self.samples(to));
        Spread::of(pairs.filter_map(|(value, other)| Some((*value)? / (*other)?)))
    }

    fn samples(&self, column: Column) -> &[Option<f64>] {
        self.samples.get(&column).map_or(&[], Vec::as_slice)
    }
}

/// Median and the first and last decile: single starts are now and then much longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |tenths: usize| values.get((last * tenths + 5) / 10).copied();
        Some(Self {
            median: at(5)?,
            low: at(1)?,
            high: at(9)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deciles_leave_the_extremes_out() {
        let spread = Spread::of((0..=20).rev().map(f64::from)).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (2.0, 10.0, 18.0));
        let one = Spread::of([7.0].into_iter()).unwrap();
        assert_eq!((one.low, one.median, one.high), (7.0, 7.0, 7.0));
        assert_eq!(Spread::of(std::iter::empty()), None);
    }
}
