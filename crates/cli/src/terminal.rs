//! Output for people.

use std::{
    env, fmt,
    io::{self, IsTerminal, Write as _},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use stockade_config::shown;

use crate::exit::refused;

pub(crate) fn colours() -> bool {
    shows_colours(&io::stdout())
}

/// The word in this colour, if stdout shows colours, padded to a column.
pub(crate) fn coloured(colour: &str, word: &str, width: usize) -> String {
    if colours() {
        format!("{colour}{word:width$}\x1b[0m")
    } else {
        format!("{word:width$}")
    }
}

pub(crate) fn shows_colours(stream: &impl IsTerminal) -> bool {
    let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|name| name == "dumb");
    !unwanted && !dumb && stream.is_terminal()
}

/// What `print!` is for: that one panics if stdout is a pipe that was closed or a full disk.
pub(crate) fn print(text: fmt::Arguments<'_>) -> Result<()> {
    write(text.to_string().as_bytes())
}

/// A reader that closes the pipe early is no error.
pub(crate) fn write(text: &[u8]) -> Result<()> {
    let mut stdout = io::stdout();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("cannot write to stdout"),
    }
}

/// Whether the user answers yes. `command` is for the advice if there is no terminal.
pub(crate) fn agreed(question: &str, command: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(refused(
            "cannot ask for confirmation: standard input is not a terminal",
            format!("review it with `{command} --show`, then add --yes"),
        ));
    }
    stockade_sys::message::tell(&format!("{question} [y/N] "));
    io::stderr().flush().context("cannot ask")?;
    let mut answer = String::new();
    if io::stdin().read_line(&mut answer).context("no answer")? == 0 {
        bail!("no answer");
    }
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// A value for a terminal. What a program inside made up may hold anything: what would move the
/// cursor, end the line or turn the direction of writing is shown as an escape.
pub(crate) fn said(value: &Value) -> String {
    match value {
        Value::Null => "?".to_owned(),
        Value::String(text) => shown(text),
        Value::Array(all) => all.iter().map(said).collect::<Vec<_>>().join(" "),
        other => shown(&other.to_string()),
    }
}

/// Several lines that another process wrote, for a terminal.
pub(crate) fn shown_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(shown).collect();
    lines.join("\n")
}

/// `1 event`, `2 events`.
pub(crate) fn counted(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    }
}

/// A number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes.div_ceil(1024);
    let mut tenths = 0;
    let mut unit = 0;
    while value >= 1024 && unit + 1 < UNITS.len() {
        tenths = value % 1024 * 10 / 1024;
        value /= 1024;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    match (unit, value) {
        (1.., 0..10) => format!("{value}.{tenths} {name}"),
        _ => format!("{value} {name}"),
    }
}

/// No more of it than fits.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(longest.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Rows below a heading, each column as wide as it has to be.
pub(crate) fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let heading = heading.map(str::to_owned);
    let all = || std::iter::once(&heading).chain(rows);
    let width = |column: usize| {
        let cells = all().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in all() {
        let cells = row.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_said() {
        let hostile = "\u{1b}[2J\u{7}\r\n\u{9b}31m\u{202e}txt\u{2066}\u{200b}\u{7f}é 'ok' \"ok\"";
        let safe = said(&json!([hostile, { "deep": hostile }]));
        let acted_on = |c: &char| c.is_control() || "\u{202e}\u{2066}\u{200b}".contains(*c);
        assert_eq!(safe.chars().find(acted_on), None, "{safe:?}");
        assert!(safe.contains("é 'ok' \"ok\""), "{safe}");
    }

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [["1", "é", "x"], ["100", "bb", ""]].map(|row| row.map(str::to_owned));
        let text = table(["A", "B", "C"], &rows);
        assert_eq!(text, "A    B   C\n1    é   x\n100  bb\n");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, shown) in [
            (0, "0 KiB"),
            (1, "1 KiB"),
            (1 << 20, "1.0 MiB"),
            (3 << 19, "1.5 MiB"),
            (700 << 20, "700 MiB"),
            (20 << 30, "20 GiB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }
}
