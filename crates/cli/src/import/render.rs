//! The result, as a file, for a person and for a program.

use std::{fmt::Write as _, path::Path};

use serde_json::{Value, json};
use stockade_config::{Place, literal};

use super::{
    Imported,
    draft::{Note, Setting, Settled},
};

pub(super) fn as_toml(files: &[Imported], settled: &Settled, workspace: &str) -> String {
    let mut text =
        String::from("# Made by `stockade import`. Each line says where it comes from.\n");
    for Imported { source, format, .. } in files {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# Source: {} ({format})", source.name());
    }
    for (wider, title) in [(false, NARROWER), (true, WIDER)] {
        let mut notes = settled
            .notes
            .iter()
            .filter(|note| note.wider == wider)
            .peekable();
        if notes.peek().is_some() {
            let _ = writeln!(text, "#\n# {title}");
        }
        for Note {
            place, what, why, ..
        } in notes
        {
            let _ = writeln!(text, "#   {place}: {what}: {why}");
        }
    }
    for warning in &settled.warnings {
        let _ = writeln!(text, "#\n# Warning: {warning}");
    }
    let _ = writeln!(text, "\nworkspace = {}", literal(&json!(workspace)));
    let (mut section, mut open) = ("", "");
    for setting in &settled.settings {
        let key = if setting.is_list { setting.key } else { "" };
        if !open.is_empty() && (open != key || section != setting.section) {
            text.push_str("]\n");
            open = "";
        }
        if section != setting.section {
            section = setting.section;
            let _ = writeln!(text, "\n[{section}]");
        }
        if open != key {
            open = key;
            let _ = writeln!(text, "{key} = [");
        }
        let value = literal(&setting.value);
        let line = match setting.is_list {
            true => format!("    {value},"),
            false => format!("{} = {value}", setting.key),
        };
        let why = match setting.why {
            "" => String::new(),
            why => format!(": {why}"),
        };
        let _ = writeln!(text, "{line}  # {}{why}", setting.place);
    }
    if !open.is_empty() {
        text.push_str("]\n");
    }
    text
}

const WIDER: &str = "Stockade cannot say this, so the command would get MORE than before:";
const NARROWER: &str = "Not imported. The command gets less than before, or the same:";

/// What somebody has to know who does not read the output. What matters most is last. If the same
/// terminal shows the output, its comments have the notes.
pub(super) fn tell(files: &[Imported], settled: &Settled, is_shown: bool) {
    for file in files {
        if let Some(why) = &file.writable {
            tell!(
                "stockade: warning: review what comes from {}: {why}",
                file.source.name()
            );
        }
    }
    for Setting { value, place, .. } in settled.settings.iter().filter(|it| it.key == "mode") {
        if value == "host" {
            tell!(
                "stockade: WARNING: {place} turns the jail off. With mode = \"host\", the command \
                 uses this machine's network, unprotected: LAN, local services, metadata"
            );
        }
    }
    if is_shown {
        if let Some(counts) = counts(&settled.notes) {
            tell!("stockade: {counts}; see the comments above");
        }
    } else {
        for (of, title) in [(false, "not imported"), (true, "WIDER than the source")] {
            for Note {
                place, what, why, ..
            } in settled.notes.iter().filter(|note| note.wider == of)
            {
                tell!("stockade: {title}: {place}: {what}: {why}");
            }
        }
    }
    for warning in &settled.warnings {
        tell!("stockade: warning: {warning}");
    }
}

fn counts(notes: &[Note]) -> Option<String> {
    let wider = notes.iter().filter(|note| note.wider).count();
    let others = notes.len() - wider;
    let settings = |number| if number == 1 { "setting" } else { "settings" };
    let were = if others == 1 { "was" } else { "were" };
    match (wider, others) {
        (0, 0) => None,
        (0, _) => Some(format!("{others} {} {were} not imported", settings(others))),
        (_, 0) => Some(format!("{wider} {} would be WIDER", settings(wider))),
        _ => Some(format!(
            "{wider} {} would be WIDER, {others} {were} not imported",
            settings(wider)
        )),
    }
}

pub(super) fn as_json(
    files: &[Imported],
    settled: &Settled,
    unreviewed: &[&Setting],
    toml: &str,
    written: Option<&Path>,
) -> Value {
    let at = |place: &Place| (place.source().name(), place.line());
    let notes = |wider: bool| -> Vec<Value> {
        let notes = settled.notes.iter().filter(|note| note.wider == wider);
        let note = |note: &Note| {
            let (file, line) = at(&note.place);
            json!({ "file": file, "line": line, "what": note.what, "why": note.why })
        };
        notes.map(note).collect()
    };
    let setting = |it: &Setting| {
        let (file, line) = at(&it.place);
        let key = format!("{}.{}", it.section, it.key);
        json!({ "key": key, "value": it.value, "file": file, "line": line })
    };
    let file = |it: &Imported| {
        let format = it.format.to_string();
        json!({ "file": it.source.name(), "format": format, "warning": it.writable })
    };
    json!({
        "version": 1,
        "sources": files.iter().map(file).collect::<Vec<_>>(),
        "settings": settled.settings.iter().map(setting).collect::<Vec<_>>(),
        "unreviewed": unreviewed.iter().copied().map(setting).collect::<Vec<_>>(),
        "wider": notes(true),
        "not_imported": notes(false),
        "warnings": settled.warnings,
        "toml": toml,
        "written": written.map(Path::to_string_lossy),
    })
}
