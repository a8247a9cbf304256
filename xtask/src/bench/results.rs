//! The numbers of a run, and what they come to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::column::Column;
use super::processor::Processor;
use super::rows::Row;

#[derive(Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    pub(crate) rounds: usize,
    pub(crate) connections: usize,
    pub(crate) columns: Vec<Column>,
    /// One value for each round, `None` where it could not be measured.
    pub(crate) samples: BTreeMap<Row, BTreeMap<Column, Vec<Option<f64>>>>,
    /// What the numbers alone do not say, without repetitions.
    pub(crate) notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: Processor,
    /// The limit of open files that everything ran under.
    pub(crate) open_files: Option<u64>,
    pub(crate) versions: BTreeMap<String, String>,
    /// Before each round: the share of the processors that others used.
    pub(crate) background: Vec<f64>,
}

impl Results {
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(crate) fn record(&mut self, row: Row, column: Column, round: usize, value: Option<f64>) {
        let samples = self
            .samples
            .entry(row)
            .or_default()
            .entry(column)
            .or_default();
        samples.resize(round, None);
        samples.push(value);
    }

    pub(crate) fn value(&self, row: Row, column: Column) -> Option<Summary> {
        Summary::of(self.samples(row, column).iter().flatten().copied())
    }

    /// The ratio to the direct way, taken in each round by itself: what slows
    /// down a whole round slows down both.
    pub(crate) fn ratio(&self, row: Row, column: Column) -> Option<Summary> {
        let direct = self.samples(row, Column::Direct);
        let pairs = self.samples(row, column).iter().zip(direct);
        Summary::of(pairs.filter_map(|(value, direct)| match (value, direct) {
            (Some(value), Some(direct)) if *direct > 0.0 => Some(value / direct),
            _ => None,
        }))
    }

    fn samples(&self, row: Row, column: Column) -> &[Option<f64>] {
        self.samples
            .get(&row)
            .and_then(|columns| columns.get(&column))
            .map_or(&[], Vec::as_slice)
    }
}

/// Median and extremes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Summary {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let lower = if values.len().is_multiple_of(2) {
            *values.get(middle - 1)?
        } else {
            upper
        };
        Some(Self {
            median: f64::midpoint(lower, upper),
            least: *values.first()?,
            most: *values.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        Results {
            machine: Machine {
                processor: Processor::here(),
                open_files: None,
                versions: BTreeMap::new(),
                background: Vec::new(),
            },
            rounds: 3,
            connections: 0,
            columns: Column::ALL.to_vec(),
            samples: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let summary = Summary::of([4.0, 1.0, 3.0, 2.0].into_iter()).unwrap();
        assert_eq!(
            (summary.least, summary.median, summary.most),
            (1.0, 2.5, 4.0)
        );
        assert_eq!(Summary::of(std::iter::empty()), None);
    }

    #[test]
    fn ratios_pair_the_values_of_one_round() {
        let mut results = results();
        for (round, (direct, value)) in [(10.0, 5.0), (2.0, 1.0), (4.0, 4.0)].iter().enumerate() {
            results.record(Row::Upload, Column::Direct, round, Some(*direct));
            results.record(Row::Upload, Column::Stockade, round, Some(*value));
        }
        let ratio = results.ratio(Row::Upload, Column::Stockade).unwrap();
        assert_eq!((ratio.least, ratio.median, ratio.most), (0.5, 0.5, 1.0));
    }

    #[test]
    fn a_round_without_a_value_leaves_no_hole_in_the_order() {
        let mut results = results();
        results.record(Row::Upload, Column::Direct, 0, Some(1.0));
        results.record(Row::Upload, Column::Direct, 1, Some(2.0));
        results.record(Row::Upload, Column::Pasta, 1, Some(4.0));
        let ratio = results.ratio(Row::Upload, Column::Pasta).unwrap();
        assert_eq!(ratio.median, 2.0);
    }
}
