//! What is said at the end of a session. During it the terminal belongs to the command.

use std::collections::HashMap;

use stockade_config::Loader;
use stockade_gate::{Denials, Fix, Ruling, Subject};
use stockade_policy::Reason;
use stockade_wall::{Change, Finding};

use crate::{advice, journal::Process};

/// What was denied how often, to which program, and what would allow it: in the next session
/// by a flag, or in all by a line in a file.
pub(crate) fn tell_denials(
    denials: &Denials,
    programs: &HashMap<Subject, Process>,
    loader: &Loader,
) {
    const LINES: usize = 8;
    let all = denials.by_count();
    let mut fixes = Vec::new();
    for denial in all.iter().take(LINES) {
        let times = if denial.count > 1 {
            format!(" ({} times)", denial.count)
        } else {
            String::new()
        };
        let program = programs.get(&denial.subject);
        let program = program.map_or_else(String::new, |by| format!(" to {}", by.name()));
        eprintln!(
            "stockade: denied {}{program}{times}: {}",
            denial.subject, denial.ruling
        );
        if let Some(fix) = denial.ruling.fix() {
            let aside = in_addition(&denial.ruling);
            eprintln!("stockade:   to allow it{aside}: {}", flag(&fix));
            fixes.push(fix);
        }
    }
    let more: u64 = all.iter().skip(LINES).map(|denial| denial.count).sum();
    if more + denials.others() > 0 {
        eprintln!(
            "stockade: denied {} more attempts to other destinations",
            more + denials.others()
        );
    }
    if !fixes.is_empty() {
        for line in advice::lines(loader, &fixes) {
            eprintln!("stockade: {line}");
        }
    }
    if !all.is_empty() {
        eprintln!("stockade: all that happened: `stockade log`");
    }
}

/// Who gives one rule up for another one that is needed as well goes round in circles.
fn in_addition(ruling: &Ruling) -> String {
    if let Ruling::Flow(verdict) = ruling
        && let Reason::Inward { rule, .. } = verdict.reason()
    {
        return format!(", in addition to `{rule}`");
    }
    String::new()
}

/// To be put before the command.
fn flag(fix: &Fix) -> String {
    match fix {
        Fix::Allow(rule) => format!("--allow {rule}"),
        Fix::HostPort(port) => format!("--host-port {port}"),
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
            Change::Replaced => eprintln!("stockade: {path} was replaced outside: {why}"),
        }
    }
    if let Some(more) = findings.len().checked_sub(LINES).filter(|more| *more > 0) {
        eprintln!("stockade: and {more} more of these");
    }
}
