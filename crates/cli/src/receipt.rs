//! What is said at the end of a session. During it the terminal belongs to the command.

use std::collections::HashMap;

use stockade_gate::{Denials, Subject};
use stockade_wall::{Change, Finding};

use crate::journal::Process;

/// What was denied, and what would allow it.
pub(crate) fn tell_denials(denials: &Denials, programs: &HashMap<Subject, Process>) {
    const LINES: usize = 8;
    let all = denials.by_count();
    for denial in all.iter().take(LINES) {
        let times = if denial.count > 1 {
            format!(" ({} times)", denial.count)
        } else {
            String::new()
        };
        let program = programs.get(&denial.subject);
        let program = program.map_or_else(String::new, |by| format!(" to {}", by.brief()));
        eprintln!(
            "stockade: denied {}{program}{times}: {}",
            denial.subject, denial.ruling
        );
        if let Some(fix) = denial.ruling.fix() {
            eprintln!("stockade:   to allow it: --allow {fix}");
        }
    }
    if all.iter().any(|denial| denial.ruling.fix().is_some()) {
        eprintln!(
            "stockade:   or in the list `allow` of [network] in a file: see `stockade init`; \
             all of it: `stockade log`"
        );
    }
    let more: u64 = all.iter().skip(LINES).map(|denial| denial.count).sum();
    if more + denials.others() > 0 {
        eprintln!(
            "stockade: denied {} more attempts to other destinations",
            more + denials.others()
        );
    }
}

/// What the session left behind that will run outside.
pub(crate) fn tell_findings(findings: &[Finding]) {
    const LINES: usize = 8;
    for Finding { path, what, why } in findings.iter().take(LINES) {
        let path = path.display().to_string();
        let path = path.escape_debug();
        match what {
            Change::Appeared => eprintln!("stockade: new: {path}: {why}"),
            Change::Changed => eprintln!("stockade: changed: {path}: {why}"),
            Change::Setting(setting) => {
                eprintln!("stockade: {path} has {}: {why}", setting.escape_debug());
            }
            Change::Malformed => eprintln!("stockade: {path} cannot be read: {why}"),
        }
    }
    if let Some(more) = findings.len().checked_sub(LINES).filter(|more| *more > 0) {
        eprintln!("stockade: and {more} more of these");
    }
}
