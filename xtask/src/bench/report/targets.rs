//! The targets of the project, and whether this run met them.

use crate::bench::column::Column;
use crate::bench::results::Results;
use crate::bench::rows::{Better, Row};

use super::table::number;

/// What the product's value of a row is held against.
#[derive(Clone, Copy)]
enum Against {
    /// The direct way, as a ratio.
    Ratio(f64),
    /// Another column: better than it.
    Peer(Column),
    /// A number in the row's unit.
    Absolute(f64),
}

const TARGETS: [(Row, Against); 17] = [
    (Row::Upload, Against::Ratio(0.85)),
    (Row::Download, Against::Ratio(0.85)),
    (Row::Upload4, Against::Ratio(0.55)),
    (Row::Download4, Against::Ratio(0.55)),
    (Row::ConnectRate, Against::Ratio(0.75)),
    (Row::ConnectRate, Against::Peer(Column::Pasta)),
    (Row::TcpEcho, Against::Ratio(1.15)),
    (Row::UdpEcho, Against::Ratio(1.15)),
    (Row::UdpEcho, Against::Peer(Column::Pasta)),
    (Row::UdpRate, Against::Peer(Column::Pasta)),
    (Row::DnsRate, Against::Peer(Column::Pasta)),
    (Row::DnsLatency, Against::Peer(Column::Pasta)),
    (Row::RelayCpuUpload, Against::Peer(Column::Pasta)),
    (Row::RelayCpuUpload, Against::Peer(Column::Slirp4netns)),
    (Row::RelayCpuDownload, Against::Peer(Column::Pasta)),
    (Row::RelayCpuDownload, Against::Peer(Column::Slirp4netns)),
    (Row::MemoryIdle, Against::Absolute(12.0)),
];

/// Empty if none of them was measured.
pub(super) fn table(results: &Results) -> String {
    let lines: Vec<String> = TARGETS
        .iter()
        .filter_map(|(row, against)| judge(results, *row, *against))
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "| target | measured | |\n|---|---:|---|\n{}\n",
        lines.join("\n")
    )
}

/// One line, or nothing if one of the two sides was not measured.
fn judge(results: &Results, row: Row, against: Against) -> Option<String> {
    let unit = row.unit();
    let own = results.value(row, Column::Stockade)?.median;
    let (sign, word) = match row.better() {
        Better::Higher => ("≥", "more than"),
        Better::Lower => ("≤", "less than"),
    };
    let holds = |value: f64, limit: f64| match row.better() {
        Better::Higher => value >= limit,
        Better::Lower => value <= limit,
    };
    let (target, measured, met) = match against {
        Against::Ratio(limit) => {
            let ratio = results.ratio(row, Column::Stockade)?.median;
            (
                format!("{sign} {limit:.2} × direct"),
                format!("{ratio:.2}"),
                holds(ratio, limit),
            )
        }
        Against::Peer(peer) => {
            let theirs = results.value(row, peer)?.median;
            (
                format!("{word} {}", peer.name()),
                format!("{} : {}", number(own, unit), number(theirs, unit)),
                holds(own, theirs) && own != theirs,
            )
        }
        Against::Absolute(limit) => (
            format!("{sign} {limit} {}", unit.name()),
            number(own, unit),
            holds(own, limit),
        ),
    };
    let verdict = if met { "met" } else { "**not met**" };
    Some(format!(
        "| {}: {target} | {measured} | {verdict} |",
        row.title()
    ))
}
