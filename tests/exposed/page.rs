//! The document's sections: rendered, and compared line by line.

use std::collections::BTreeSet;

use super::rows::{Exposed, Rows};

type Column<'a> = (&'a str, Exposed);

pub(super) fn section(columns: &[Column<'_>]) -> String {
    let tables = [
        table("file or directory", columns, |it| &it.files),
        table("socket", columns, |it| &it.sockets),
        table("variable", columns, |it| &it.variables),
        table("process", columns, |it| &it.processes),
    ];
    tables.join("\n")
}

fn table(corner: &str, columns: &[Column<'_>], rows: impl Fn(&Exposed) -> &Rows) -> String {
    let all = || columns.iter().map(|(_, exposed)| rows(exposed));
    let names: BTreeSet<&String> = all().flat_map(|rows| rows.keys()).collect();
    if names.is_empty() {
        return format!("No {corner}.\n");
    }
    let titles: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let mut text = format!("| {corner} | {} | why |\n", titles.join(" | "));
    text.push_str(&format!("|---|{}---|\n", "---|".repeat(columns.len())));
    for name in names {
        let cells: Vec<_> = all().map(|rows| cell(rows, name)).collect();
        let reason = all().find_map(|rows| rows.get(name));
        let reason = reason.map_or("", |row| &row.reason);
        text.push_str(&format!(
            "| `{name}` | {} | {reason} |\n",
            cells.join(" | ")
        ));
    }
    text
}

fn cell(rows: &Rows, name: &str) -> String {
    let Some(row) = rows.get(name) else {
        return "—".to_owned();
    };
    let words: Vec<_> = row.access.iter().map(String::as_str).collect();
    words.join(", ")
}

/// Whether what is listed is what was found; if not, how they differ.
pub(super) fn agrees(listed: &str, section: &str) -> Result<(), String> {
    let lines = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().map(str::to_owned);
        lines.filter(|line| line.starts_with('|')).collect()
    };
    let (listed, found) = (lines(listed), lines(section));
    let told = |sign: char, lines: Vec<&String>| -> String {
        lines
            .iter()
            .map(|line| format!("{sign} {line}\n"))
            .collect()
    };
    let differences = told('+', found.difference(&listed).collect())
        + &told('-', listed.difference(&found).collect());
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!("found (+), listed (-):\n{differences}"))
}
