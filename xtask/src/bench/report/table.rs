//! The tables of values and of ratios.

use crate::bench::column::Column;
use crate::bench::results::{Results, Summary};
use crate::bench::rows::{Row, Unit};

pub(super) fn machine(results: &Results) -> String {
    let machine = &results.machine;
    let versions: Vec<&str> = machine.versions.values().map(String::as_str).collect();
    let open_files = machine.open_files.map_or_else(
        || "any number of".to_owned(),
        |count| thousands(count as f64),
    );
    let background = Summary::of(machine.background.iter().copied()).map_or_else(
        || "unknown".to_owned(),
        |share| format!("{:.0} %", share.median * 100.0),
    );
    format!(
        "{}, at most {open_files} open files per process; {}.\n\
         CPU used by others before each round: {background}. Rounds: {}; median (least – most).\n",
        machine.processor,
        versions.join(", "),
        results.rounds,
    )
}

pub(super) fn values(results: &Results) -> String {
    let mut lines = header(&results.columns, "");
    for row in measured(results) {
        let cells = results.columns.iter().map(|column| {
            results
                .value(row, *column)
                .map_or_else(|| "—".to_owned(), |summary| value(summary, row.unit()))
        });
        lines.push(line(&title(results, row), cells));
    }
    lines.join("\n") + "\n"
}

/// Only what the direct way can be measured by.
pub(super) fn ratios(results: &Results) -> String {
    let columns: Vec<Column> = results
        .columns
        .iter()
        .copied()
        .filter(|column| *column != Column::Direct)
        .collect();
    let comparable: Vec<Row> = measured(results)
        .into_iter()
        .filter(|row| results.value(*row, Column::Direct).is_some())
        .collect();
    if comparable.is_empty() || columns.is_empty() {
        return String::new();
    }
    let mut lines = header(&columns, "ratio to direct");
    for row in comparable {
        let cells = columns.iter().map(|column| {
            results.ratio(row, *column).map_or_else(
                || "—".to_owned(),
                |ratio| {
                    format!(
                        "{:.2} ({:.2} – {:.2})",
                        ratio.median, ratio.least, ratio.most
                    )
                },
            )
        });
        lines.push(line(row.title(), cells));
    }
    lines.join("\n") + "\n"
}

pub(super) fn notes(results: &Results) -> String {
    results
        .notes
        .iter()
        .map(|note| format!("- {}\n", note.replace('\n', " ")))
        .collect()
}

fn measured(results: &Results) -> Vec<Row> {
    let rows = Row::all().iter().copied();
    rows.filter(|row| results.samples.contains_key(row))
        .collect()
}

fn title(results: &Results, row: Row) -> String {
    let title = match row {
        Row::MemoryLoaded => row
            .title()
            .replace("many", &thousands(results.connections as f64)),
        _ => row.title().to_owned(),
    };
    match row.unit() {
        Unit::Count => title,
        unit => format!("{title} ({})", unit.name()),
    }
}

fn header(columns: &[Column], corner: &str) -> Vec<String> {
    vec![
        line(
            corner,
            columns.iter().map(|column| column.name().to_owned()),
        ),
        format!("|---|{}", "---:|".repeat(columns.len())),
    ]
}

fn line(first: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {first} | {} |", cells.join(" | "))
}

fn value(summary: Summary, unit: Unit) -> String {
    format!(
        "**{}** ({} – {})",
        number(summary.median, unit),
        number(summary.least, unit),
        number(summary.most, unit)
    )
}

pub(super) fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::PerSecond | Unit::Count => thousands(value),
        Unit::GigabitsPerSecond | Unit::Microseconds | Unit::Milliseconds | Unit::Megabytes => {
            format!("{value:.1}")
        }
        Unit::SecondsPerGigabyte => format!("{value:.2}"),
    }
}

/// 1234567 as `1 234 567`.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
