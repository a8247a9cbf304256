//! Results as people read them, and their place in the documentation.

use std::path::Path;

use anyhow::Result;

use super::column::Column;
use super::results::Results;
use crate::bench::report::Section;

const SECTION: Section = Section {
    begin: "<!-- cargo xtask bench start --write: begin -->",
    end: "<!-- cargo xtask bench start --write: end -->",
};

pub(super) fn write(repository: &Path, results: &Results) -> Result<()> {
    SECTION.write(repository, &markdown(results))
}

/// Machine, times, targets, stages and notes.
pub(super) fn markdown(results: &Results) -> String {
    let notes: String = results
        .notes
        .iter()
        .map(|note| format!("- {note}\n"))
        .collect();
    [
        machine(results),
        times(results),
        targets(results),
        stages(results),
        notes,
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect::<Vec<_>>()
    .join("\n")
}

fn machine(results: &Results) -> String {
    let versions = results.versions.iter();
    let versions: Vec<_> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let background = results.background.unwrap_or_default() * 100.0;
    format!(
        "{}; {}.\nCPU used by others before: {background:.0} %. Rounds: {}; median (first – last decile).\n",
        results.processor,
        versions.join(", "),
        results.rounds
    )
}

fn times(results: &Results) -> String {
    let mut text = "| | command | ms | × bubblewrap |\n|---|---|---:|---:|\n".to_owned();
    for column in Column::ALL {
        let Some(time) = results.time(column) else {
            continue;
        };
        let ratio = results.ratio(column, Column::Bubblewrap);
        let ratio = ratio.map_or("—".to_owned(), |ratio| {
            format!("{:.2} ({:.2} – {:.2})", ratio.median, ratio.low, ratio.high)
        });
        text.push_str(&format!(
            "| {} | `{}` | **{:.1}** ({:.1} – {:.1}) | {ratio} |\n",
            column.name(),
            column.line(),
            time.median,
            time.low,
            time.high
        ));
    }
    text
}

/// Who is compared, with whom, and the largest ratio that will do.
const TARGETS: [(Column, Column, f64); 3] = [
    (Column::Stockade, Column::Bubblewrap, 2.5),
    (Column::Stockade, Column::Codex, 0.2),
    (Column::Stockade, Column::Srt, 0.2),
];

fn targets(results: &Results) -> String {
    let mut lines = Vec::new();
    for (own, other, limit) in TARGETS {
        let Some(ratio) = results.ratio(own, other) else {
            continue;
        };
        let verdict = if ratio.median <= limit {
            "met"
        } else {
            "**not met**"
        };
        let name = other.name();
        lines.push(format!(
            "| at most {limit} × {name} | {:.2} | {verdict} |",
            ratio.median
        ));
    }
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "| target | measured | |\n|---|---:|---|\n{}\n",
        lines.join("\n")
    )
}

fn stages(results: &Results) -> String {
    if results.stages.is_empty() {
        return String::new();
    }
    let total: f64 = results.stages.iter().map(|stage| stage.milliseconds).sum();
    let mut text = "| where stockade's time goes, by strace | ms | |\n|---|---:|---:|\n".to_owned();
    for stage in &results.stages {
        let share = stage.milliseconds / total * 100.0;
        text.push_str(&format!(
            "| {} | {:.1} | {share:.0} % |\n",
            stage.name, stage.milliseconds
        ));
    }
    text.push_str(&format!("| all | {total:.1} | |\n"));
    text
}
