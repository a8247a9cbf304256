//! The TOML of a file, and its syntax errors.

use std::{ops::Range, sync::Arc};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    source::{Place, Source},
    text::{quoted, shown},
};

/// The document of a TOML file, with places.
///
/// # Errors
/// With all mistakes of its syntax.
pub fn table(source: &Arc<Source>) -> Result<Spanned<DeTable<'_>>, Diagnostics> {
    let (table, errors) = DeTable::parse_recoverable(source.text());
    let mut wrong = Diagnostics::default();
    let mut last_span = None;
    for error in errors {
        let end = source.text().len();
        let span = error.span().unwrap_or(end..end);
        // A mistake that cannot be recovered from is reported once for each bracket.
        if last_span.as_ref() != Some(&span) {
            wrong.push(explain(
                source,
                error.message(),
                Place::new(source, span.clone()),
            ));
            last_span = Some(span);
        }
        if error.message().starts_with("cannot recurse") {
            break;
        }
    }
    wrong.sort();
    wrong.or(table)
}

/// The parser's message, or a better one for mistakes that people make.
fn explain(source: &Arc<Source>, message: &str, place: Place) -> Diagnostic {
    let written = source.text().get(place.span()).unwrap_or_default();
    if message == "duplicate key" {
        let name = shown(written);
        let first = first_use(source, written, place.span().start);
        let problem = Diagnostic::at(format!("duplicate `{name}`"), place);
        let problem = problem.help("write each key and section once");
        return match first {
            Some(first) => problem.beside(&first, "first here"),
            None => problem,
        };
    }
    if matches!(written, "null" | "nil" | "None" | "undefined") {
        let title = format!("`{written}` is not a TOML value");
        return Diagnostic::at(title, place).help("leave the key out to keep its default");
    }
    let is_word = written.starts_with(|c: char| c.is_alphabetic());
    if is_word && (message.contains("must be quoted") || message.starts_with("invalid float")) {
        let title = format!("`{}` needs quotes", shown(written));
        return Diagnostic::at(title, place).help(format!("write {}", quoted(written)));
    }
    if written.is_empty() && message.contains("must be quoted") {
        return Diagnostic::at("the value is missing", place);
    }
    if message == "invalid basic string, expected `\"`" {
        return Diagnostic::at("the string does not end", place).label("expected `\"`");
    }
    if message.starts_with("missing escaped value") {
        let after = source.text().get(place.span().start..).unwrap_or_default();
        let letter = after.chars().next().map(String::from).unwrap_or_default();
        let title = format!("unknown escape `\\{}`", shown(&letter));
        return Diagnostic::at(title, place)
            .help("write a backslash as \\\\, or the string in 'single' quotes");
    }
    if let Some(c) = written.chars().next().filter(|c| c.is_control()) {
        let title = format!("invalid character U+{:04X}", u32::from(c));
        return Diagnostic::at(title, place);
    }
    if message.starts_with("cannot recurse") {
        return Diagnostic::at("the lists are nested too deeply", place);
    }
    // `invalid basic string, expected ...`: the first part says what, the second how.
    match message.split_once(", expected ") {
        Some((what, expected)) => {
            Diagnostic::at(shown(what), place).label(format!("expected {}", shown(expected)))
        }
        None => Diagnostic::at(shown(message), place),
    }
}

/// Where the name that is there twice was first: the use without which the second would be
/// right. Only the parser knows which that is, so it is asked, the nearest first.
fn first_use(source: &Arc<Source>, name: &str, before: usize) -> Option<Place> {
    /// Files with more uses of one name are not for people.
    const MOST: usize = 64;
    let all = source.text();
    let line = all
        .get(..before)?
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let mut uses = Vec::new();
    // A section that is there twice has the place of the second in all of the text.
    for text in [all, all.get(..line)?] {
        let (table, _) = DeTable::parse_recoverable(text);
        collect(table.get_ref(), name.trim_matches(['"', '\'']), &mut uses);
    }
    uses.retain(|span| span.end <= before);
    uses.sort_by_key(|span| std::cmp::Reverse(span.start));
    let is_first = |span: &Range<usize>| {
        let mut text = all.to_owned();
        let other = if name.starts_with('x') { "y" } else { "x" };
        // Of the same length, so that everything stays in its place.
        text.replace_range(span.clone(), &other.repeat(span.len()));
        let (_, errors) = DeTable::parse_recoverable(&text);
        let starts = |error: &toml::de::Error| error.span().map(|span| span.start);
        !errors.iter().any(|error| starts(error) == Some(before))
    };
    let found = uses.into_iter().take(MOST).find(is_first)?;
    Some(Place::new(source, found))
}

/// Where a name stands as a key, anywhere in a table.
fn collect(table: &DeTable<'_>, name: &str, uses: &mut Vec<Range<usize>>) {
    for (key, value) in table {
        if key.get_ref() == name {
            uses.push(key.span());
        }
        collect_below(value.get_ref(), name, uses);
    }
}

fn collect_below(value: &DeValue<'_>, name: &str, uses: &mut Vec<Range<usize>>) {
    match value {
        DeValue::Table(table) => collect(table, name, uses),
        DeValue::Array(entries) => {
            for entry in entries {
                collect_below(entry.get_ref(), name, uses);
            }
        }
        _ => {}
    }
}
