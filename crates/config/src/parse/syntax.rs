//! The TOML of a file, and what is wrong with it before any key is looked at.

use std::sync::Arc;

use toml::{Spanned, de::DeTable};

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    source::{Place, Source},
    text::{quoted, shown},
};

pub(super) fn table(source: &Arc<Source>) -> Result<Spanned<DeTable<'_>>, Diagnostics> {
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
        let problem = Diagnostic::at(format!("`{name}` is there twice"), place);
        let problem = problem.help("a key or section stands once in a file: put both together");
        return match first {
            Some(first) => problem.beside(&first, "first here"),
            None => problem,
        };
    }
    if matches!(written, "null" | "nil" | "None" | "undefined") {
        let title = format!("TOML has no `{written}`");
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
        let title = format!("`\\{}` is no escape", shown(&letter));
        return Diagnostic::at(title, place)
            .help("write a backslash as \\\\, or the string in 'single' quotes");
    }
    if let Some(c) = written.chars().next().filter(|c| c.is_control()) {
        let title = format!(
            "the character U+{:04X} cannot stand in a file as such",
            u32::from(c)
        );
        return Diagnostic::at(title, place);
    }
    if message.starts_with("cannot recurse") {
        return Diagnostic::at("the lists are nested too deep", place);
    }
    // `invalid basic string, expected ...`: the first part says what, the second how.
    match message.split_once(", expected ") {
        Some((what, expected)) => {
            Diagnostic::at(shown(what), place).label(format!("expected {}", shown(expected)))
        }
        None => Diagnostic::at(shown(message), place),
    }
}

/// Where a name stood at the beginning of a line, or in the brackets of one, before.
fn first_use(source: &Arc<Source>, name: &str, before: usize) -> Option<Place> {
    let text = source.text().get(..before)?;
    let stands = |at: &usize| {
        let line_start = text
            .get(..*at)?
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let left = text.get(line_start..*at)?.trim_start();
        let right = text.get(at + name.len()..)?.trim_start();
        let alone = left.chars().all(|c| c == '[') || left.ends_with('.');
        (alone && right.starts_with(['=', ']', '.'])).then_some(())
    };
    let found = text
        .match_indices(name)
        .map(|(at, _)| at)
        .filter(|at| stands(at).is_some())
        .last()?;
    Some(Place::new(source, found..found + name.len()))
}
