//! What was measured, round by round, and what it comes to.

use std::collections::BTreeMap;

/// Of a row or column.
type Name = &'static str;

/// Values by row and column of a table, one for each round; `None` where there is none.
#[derive(Default)]
pub(super) struct Samples {
    values: BTreeMap<(Name, Name), Vec<Option<f64>>>,
    /// How many tenths of the values are left out at either end.
    tenths: usize,
    /// What the numbers alone do not say.
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Samples {
    /// Of whose values the first and the last decile are shown, not the extremes.
    pub(super) fn with_deciles() -> Self {
        Self {
            tenths: 1,
            ..Self::default()
        }
    }

    pub(super) fn record(
        &mut self,
        row: Name,
        column: Name,
        round: usize,
        value: impl Into<Option<f64>>,
    ) {
        let values = self.values.entry((row, column)).or_default();
        values.resize(round, None);
        values.push(value.into());
    }

    pub(super) fn note(&mut self, note: String) {
        eprintln!("{note}");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn notes(&self) -> String {
        let notes = self.notes.iter();
        notes
            .map(|note| format!("- {}\n", note.replace('\n', " ")))
            .collect()
    }

    pub(super) fn value(&self, row: Name, column: Name) -> Option<Spread> {
        self.spread(self.row(row, column).iter().flatten().copied())
    }

    /// How many times as much as another column, taken in each round by itself: what slows down
    /// a round slows down both.
    pub(super) fn ratio(&self, row: Name, column: Name, to: Name) -> Option<Spread> {
        let pairs = self.row(row, column).iter().zip(self.row(row, to));
        self.spread(pairs.filter_map(|(value, other)| Some((*value)? / (*other)?)))
    }

    fn row(&self, row: Name, column: Name) -> &[Option<f64>] {
        self.values.get(&(row, column)).map_or(&[], Vec::as_slice)
    }

    fn spread(&self, values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |tenths: usize| values[(last * tenths + 5) / 10];
        Some(Spread {
            median: at(5),
            low: at(self.tenths),
            high: at(10 - self.tenths),
        })
    }
}

/// Median and ends, or a dash.
pub(super) fn ratio(spread: Option<Spread>) -> String {
    spread.map_or("—".to_owned(), |Spread { median, low, high }| {
        format!("{median:.2} ({low:.2} – {high:.2})")
    })
}

/// The same with a median that stands out, and numbers as the caller writes them.
pub(super) fn value(spread: Option<Spread>, number: impl Fn(f64) -> String) -> String {
    spread.map_or("—".to_owned(), |Spread { median, low, high }| {
        format!(
            "**{}** ({} – {})",
            number(median),
            number(low),
            number(high)
        )
    })
}

/// A table of Markdown; empty if nothing was measured.
pub(super) fn table(header: &str, lines: &[Vec<String>]) -> String {
    let lines = lines
        .iter()
        .map(|cells| format!("| {} |\n", cells.join(" | ")));
    let lines: String = lines.collect();
    if lines.is_empty() {
        lines
    } else {
        format!("{header}\n{lines}")
    }
}

/// A table of targets, what was measured of each, and whether that meets it.
pub(super) fn targets(targets: impl Iterator<Item = (String, String, bool)>) -> String {
    let verdict = |met| if met { "met" } else { "**not met**" }.to_owned();
    let lines: Vec<_> = targets
        .map(|(target, measured, met)| vec![target, measured, verdict(met)])
        .collect();
    table("| target | measured | |\n|---|---:|---|", &lines)
}

/// Parts of a page, with an empty line between them.
pub(super) fn page(parts: &[String]) -> String {
    let parts = parts.iter().filter(|part| !part.is_empty());
    parts.map(String::as_str).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_pair_the_values_of_one_round() {
        let mut samples = Samples::default();
        for (round, (direct, value)) in [(10.0, 5.0), (2.0, 1.0), (4.0, 4.0)].iter().enumerate() {
            samples.record("speed", "direct", round, *direct);
            if round > 0 {
                samples.record("speed", "other", round, *value);
            }
        }
        let spread = |median, low, high| Some(Spread { median, low, high });
        assert_eq!(
            samples.ratio("speed", "other", "direct"),
            spread(1.0, 0.5, 1.0)
        );
        assert_eq!(samples.value("speed", "direct"), spread(4.0, 2.0, 10.0));
        assert_eq!(samples.value("speed", "nobody"), None);
    }

    #[test]
    fn deciles_leave_the_extremes_out() {
        let spread = Samples::with_deciles()
            .spread((0..=20).rev().map(f64::from))
            .unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (2.0, 10.0, 18.0));
    }
}
