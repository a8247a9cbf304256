//! Results as people read them.

mod chart;
mod document;
mod table;
mod targets;

pub(crate) use chart::draw as chart;
pub(crate) use document::{Section, write};

use super::results::Results;

/// Machine, values, ratios, targets and notes.
pub(crate) fn markdown(results: &Results) -> String {
    [
        table::machine(results),
        table::values(results),
        table::ratios(results),
        targets::table(results),
        table::notes(results),
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect::<Vec<_>>()
    .join("\n")
}
