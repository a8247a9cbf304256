//! Diagnostics as text.
//!
//! A mistake in a file looks as the Rust compiler would show it. One in a flag or a
//! variable is shown with the value alone: it has no lines to be found in.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{
    diagnostic::Diagnostic,
    source::{Place, Source},
    text::{masked, shown},
};

/// More than that nobody reads at once.
const MOST: usize = 20;

pub(crate) fn render(diagnostics: &[Diagnostic], colours: bool) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(MOST) {
        match &diagnostic.at {
            Some((place, _)) if !place.is_in_file() => {
                text.push_str(&brief(diagnostic, place));
            }
            _ => text.push_str(&full(diagnostic, colours)),
        }
    }
    let more = diagnostics.len().saturating_sub(MOST);
    if more > 0 {
        let errors = if more == 1 { "error" } else { "errors" };
        text.push_str(&format!("stockade: and {more} more {errors}\n"));
    }
    text
}

type Mark<'d> = (AnnotationKind, &'d Place, &'d str);

fn full(diagnostic: &Diagnostic, colours: bool) -> String {
    let mut group = Group::with_title(Level::ERROR.primary_title(diagnostic.title.as_str()));
    let mut notes = Vec::new();
    let mut sources: Vec<(&Source, Vec<Mark<'_>>)> = Vec::new();
    let at = diagnostic
        .at
        .iter()
        .map(|(place, label)| (AnnotationKind::Primary, place, label));
    let beside = diagnostic.beside.iter();
    let beside = beside.map(|(place, label)| (AnnotationKind::Context, place, label));
    for (kind, place, label) in at.chain(beside) {
        let source = place.source();
        if !place.is_in_file() {
            notes.push(format!("{}: {label}", source.name()));
            continue;
        }
        match sources
            .iter_mut()
            .find(|(known, _)| std::ptr::eq(*known, source))
        {
            Some((_, places)) => places.push((kind, place, label)),
            None => sources.push((source, vec![(kind, place, label)])),
        }
    }
    for (source, places) in sources {
        let mut snippet = Snippet::source(masked(source.text())).path(source.name());
        for (kind, place, label) in places {
            let annotation = kind.span(clamped(source.text(), place.span()));
            snippet = snippet.annotation(annotation.label((!label.is_empty()).then_some(label)));
        }
        group = group.element(snippet);
    }
    for note in &notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if colours {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    format!("{}\n\n", renderer.render(&[group]))
}

/// A span in which the renderer can count: on character boundaries, on one line.
fn clamped(text: &str, span: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(span.start);
    let line_end = text.get(start..).and_then(|rest| rest.find('\n'));
    let line_end = line_end.map_or(text.len(), |length| start + length);
    let end = text
        .ceil_char_boundary(span.end)
        .clamp(start, line_end.max(start));
    start..end
}

fn brief(diagnostic: &Diagnostic, place: &Place) -> String {
    let source = place.source();
    let mut message = format!("stockade: {}: {}", source.name(), diagnostic.title);
    for help in &diagnostic.help {
        message.push_str(&format!("; {help}"));
    }
    let text = source.text();
    let escaped = shown(text);
    message.push_str(&format!("\n  {escaped}\n"));
    // What was escaped has no columns to point at.
    if escaped == text {
        let span = place.span();
        let before = text.get(..span.start).unwrap_or_default().chars().count();
        let width = text.get(span).unwrap_or_default().chars().count().max(1);
        message.push_str(&format!("  {}{}\n", " ".repeat(before), "^".repeat(width)));
    }
    for (place, label) in &diagnostic.beside {
        message.push_str(&format!("stockade: {place}: {label}\n"));
    }
    message
}
