//! What is said before a session and at its end. During it the terminal belongs to the command.

use std::{collections::HashMap, path::Path};

use stockade_config::{Effective, Limits, Loader, Sourced, shown_path};
use stockade_gate::{Denials, Fix, Ruling, Subject};
use stockade_policy::{Reason, Restriction};
use stockade_wall::{
    Change, Discarded, DiscardedPlace, Finding, Layer, LayerState, Protection, folded,
};
use stockade_warden::{JournalEnd, LostEvents, Notice, Process};

use crate::{advice, terminal};

/// What the configuration asks for and this machine does not have.
pub(crate) fn tell_missing(layers: &[Layer], effective: &Effective) {
    for layer in layers {
        let LayerState::Absent(why) = layer.state else {
            continue;
        };
        let asked = match layer.protection {
            Protection::Scratch => {
                eprintln!(
                    "stockade: ~/.local/share is empty inside: the kernel cannot overlay it here \
                     (see `stockade doctor`)"
                );
                None
            }
            Protection::Caches => {
                eprintln!("stockade: package caches: {why}");
                None
            }
            Protection::Memory => effective.limits.memory.as_ref().map(|limit| &limit.origin),
            Protection::Files => Some(&effective.agent.hardening.origin),
            _ => None,
        };
        if let Some(origin) = asked {
            let name = layer.protection.name();
            eprintln!("stockade: WARNING: unavailable on this machine ({origin}): {name}: {why}");
        }
    }
}

/// The same without what `--quiet` leaves out.
pub(crate) fn tell_notice_quietly(notice: Notice) {
    if !matches!(notice, Notice::Suspended { .. }) {
        tell_notice(notice);
    }
}

/// What a session does without.
pub(crate) fn tell_notice(notice: Notice) {
    match notice {
        Notice::NotLogged { directory, error } => {
            let directory = directory.display();
            eprintln!("stockade: this session is not logged: {directory}: {error}");
        }
        Notice::NoRoom(directory) => {
            let directory = directory.display();
            eprintln!(
                "stockade: nothing passes before the log has room: make some on the disk of \
                 {directory}"
            );
        }
        Notice::NotReloadable(error) => {
            eprintln!("stockade: this session cannot be reloaded: {error}");
        }
        Notice::WatchedAtEndOnly(error) => {
            eprintln!(
                "stockade: settings of git are looked at only when this session ends: {error}"
            );
        }
        Notice::Suspended { id, findings } => tell_findings(&findings, &id),
        Notice::ReloadRefused(why) => {
            eprintln!("stockade: the configuration was not reloaded: {why}");
        }
    }
}

/// What the log lacks.
pub(crate) fn tell_journal(journal: &JournalEnd, quiet: bool) {
    if let Some(LostEvents { count, why, .. }) = &journal.lost {
        let events = terminal::counted(*count, "event");
        eprintln!(
            "stockade: {events} of this session could not be logged: {why}; \
             `stockade log` has the others"
        );
    }
    if journal.refused > 0 {
        let attempts = terminal::counted(journal.refused, "attempt");
        eprintln!(
            "stockade: {attempts} did not pass although the rules allow it: the log had no room for \
             a line; make room on the disk of the logs"
        );
    }
    if journal.missed > 0 && !quiet {
        let events = terminal::counted(journal.missed, "event");
        eprintln!("stockade: {events} of this session came too fast to be written down one by one");
    }
    if journal.unfinished {
        eprintln!("stockade: the end of the log is not written: the disk does not answer");
    }
}

/// What was denied, to which program and how often, and what would allow it: in the next session
/// by a flag, or in all by a line in a file.
pub(crate) fn tell_denials(
    denials: &Denials,
    programs: &HashMap<Subject, Process>,
    loader: &Loader,
    session: &str,
) {
    const LINES: usize = 8;
    let all = denials.by_count();
    let mut fixes = Vec::new();
    for denial in all.iter().take(LINES) {
        let mut details = Vec::from_iter(programs.get(&denial.subject).map(name));
        if denial.count > 1 {
            details.push(format!("{} times", denial.count));
        }
        let details = match details.as_slice() {
            [] => String::new(),
            details => format!(" ({})", details.join(", ")),
        };
        let (subject, ruling) = (&denial.subject, &denial.ruling);
        eprintln!("stockade: denied {subject}{details}: {ruling}");
        let aside = in_addition(&denial.ruling);
        match (denial.ruling.fix(), danger(&denial.ruling)) {
            (None, _) => {}
            (Some(fix), None) => {
                eprintln!("stockade:   to allow it{aside}: {}", flag(&fix));
                fixes.push(fix);
            }
            // Not among what is to be copied: a program inside decides what is tried how often.
            (Some(fix), Some(danger)) => {
                let fix = flag(&fix);
                eprintln!("stockade:   to allow it{aside}: {fix} (WARNING: {danger})");
            }
        }
    }
    let beyond: u64 = all.iter().skip(LINES).map(|denial| denial.count).sum();
    let more = beyond + denials.others();
    if more > 0 {
        let attempts = terminal::counted(more, "more attempt");
        eprintln!("stockade: denied {attempts} to other destinations");
    }
    if !fixes.is_empty() {
        for line in advice::lines(loader, &fixes) {
            eprintln!("stockade: {line}");
        }
    }
    if !all.is_empty() {
        eprintln!("stockade: `stockade log {session}` shows the whole session");
    }
}

/// A program by its file's name, which the program may have chosen so that it reads like more of
/// the sentence that it stands in.
fn name(process: &Process) -> String {
    const LONGEST: usize = 40;
    let name = process.exe.rsplit('/').next().unwrap_or_default();
    let name = terminal::cut(name, LONGEST);
    let is_word = |c: char| c.is_alphanumeric() || "._+-…".contains(c);
    if name.chars().all(is_word) {
        name
    } else {
        format!("{name:?}")
    }
}

/// What somebody gives away who allows what few commands need.
fn danger(ruling: &Ruling) -> Option<&'static str> {
    let verdict = match ruling {
        Ruling::Flow(verdict) => verdict,
        Ruling::HostPort(port) => return danger_of_port(*port),
        Ruling::Name(_) | Ruling::Malformed(_) => return None,
    };
    match verdict.reason() {
        Reason::Restricted {
            restriction: Restriction::Metadata { .. },
            ..
        } => Some("it hands out this machine's login at its cloud"),
        Reason::Restricted {
            restriction: Restriction::Own,
            ..
        } => Some("services there may take the command for the user"),
        Reason::OtherName { .. } => {
            Some("suspicious: the program used an address that it was given for another name")
        }
        _ => None,
    }
}

/// The same of services that are made to be driven by whoever reaches them.
fn danger_of_port(port: u16) -> Option<&'static str> {
    match port {
        22 => Some("it is where people log in to this machine"),
        2375 | 2376 => Some("whoever reaches Docker is root on this machine"),
        5037 => Some("whoever reaches adb drives the phones at this machine"),
        6443 | 10250 => Some("whoever reaches Kubernetes may run containers on this machine"),
        8888 => Some("whoever reaches Jupyter may run programs outside"),
        9222 | 9229 => Some("whoever reaches a debugger drives the browser or program outside"),
        _ => None,
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

/// Why ssh asked about a server that the user knows, or refused it.
pub(crate) fn tell_known_hosts(path: &Path) {
    if path.exists() {
        eprintln!(
            "stockade: ssh had no known hosts inside; to give it yours: --read ~/.ssh/known_hosts"
        );
    }
}

/// To be put before the command.
fn flag(fix: &Fix) -> String {
    match fix {
        Fix::Allow(rule) => format!("--allow {rule}"),
        Fix::HostPort(port) => format!("--host-port {port}"),
    }
}

/// What the command wrote to its private home, which is gone.
pub(crate) fn tell_discarded(discarded: &Discarded) {
    const MOST: usize = 5;
    const LONGEST: usize = 60;
    for path in discarded.dependencies.iter().take(MOST) {
        eprintln!(
            "stockade: changes to {} were discarded: it shares files with other projects by hard \
             links. Run your package manager outside",
            terminal::cut(&shown_path(path), LONGEST)
        );
    }
    if discarded.files == 0 {
        return;
    }
    let place = |place: &DiscardedPlace| {
        let path = format!("~/{}", shown_path(&place.path));
        let path = terminal::cut(&path, LONGEST);
        let size = terminal::size(place.bytes);
        match place.is_directory {
            true => format!(
                "{path}/ ({}, {size})",
                terminal::counted(place.files, "file")
            ),
            false => format!("{path} ({size})"),
        }
    };
    let mut places: Vec<_> = discarded.places.iter().take(MOST).map(place).collect();
    let more = discarded.places.len().saturating_sub(MOST);
    if more > 0 {
        places.push(format!("and {more} more"));
    }
    let least = if discarded.is_at_least {
        "at least "
    } else {
        ""
    };
    let files = terminal::counted(discarded.files, "file");
    let were = if discarded.files == 1 { "was" } else { "were" };
    eprintln!(
        "stockade: {least}{files} written outside the workspace {were} discarded: {}",
        places.join(", ")
    );
    eprintln!("stockade:   to keep files there: --write DIRECTORY");
}

/// Whether a limit of the session may be why the command was killed.
pub(crate) fn tell_limit(code: u8, limits: &Limits) {
    if let Some(why) = limit_behind(code, limits) {
        eprintln!("stockade: {why}");
    }
}

/// By the exit code alone, which is also that of a shell whose last program was killed. Nobody
/// else sends the signal of the limit of processor time; the others have many causes.
fn limit_behind(code: u8, limits: &Limits) -> Option<String> {
    const KILLED: u8 = 128;
    const SIGABRT: u8 = 6;
    const SIGKILL: u8 = 9;
    const SIGSEGV: u8 = 11;
    const SIGXCPU: u8 = 24;
    let signal = code.checked_sub(KILLED)?;
    let cpu_time = limits.cpu_time.as_ref().map(|Sourced { value, origin }| {
        let fix = format!("cpu_time={}", value.doubled());
        ("processor time", value.to_string(), origin, fix)
    });
    let memory = limits.memory.as_ref().map(|Sourced { value, origin }| {
        let fix = format!("memory={}", value.doubled());
        ("memory", value.to_string(), origin, fix)
    });
    let (what, value, origin, fix) = match signal {
        SIGXCPU => cpu_time,
        SIGKILL => memory.or(cpu_time),
        SIGABRT | SIGSEGV => memory,
        _ => None,
    }?;
    let certain = if signal == SIGXCPU { "is" } else { "may be" };
    Some(format!(
        "the command was killed (signal {signal}): its limit of {what}, {value} ({origin}), \
         {certain} the cause; to raise it: --limit {fix}"
    ))
}

/// What the session left behind that will run outside, or would have.
pub(crate) fn tell_findings(findings: &[Finding], session: &str) {
    const LINES: usize = 24;
    const DIFF_LINES: usize = 16;
    let shown = folded(findings);
    // Of all diffs together.
    let mut room = 48;
    for finding in shown.iter().take(LINES) {
        eprintln!("stockade: {finding}");
        for line in finding.diff.iter().take(room.min(DIFF_LINES)) {
            eprintln!("stockade:   {line}");
        }
        let rest = finding.diff.len().saturating_sub(room.min(DIFF_LINES));
        room = room.saturating_sub(finding.diff.len());
        if rest > 0 {
            eprintln!(
                "stockade:   and {}: `stockade log {session}`",
                terminal::counted(rest as u64, "more line")
            );
        }
    }
    if let Some(more) = shown.len().checked_sub(LINES).filter(|more| *more > 0) {
        eprintln!("stockade: and {more} more of these: `stockade log {session}`");
    }
    let is_undone = |finding: &Finding| matches!(finding.what, Change::Undone(_));
    if findings.iter().any(is_undone) {
        eprintln!("stockade: to apply what was put back: stockade accept {session}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_sentence_is_seen_to_be_a_name() {
        let name = |exe: &str| {
            name(&Process {
                pid: 7,
                exe: exe.to_owned(),
                argv: Vec::new(),
                parents: Vec::new(),
            })
        };
        assert_eq!(name("/usr/bin/python3.11"), "python3.11");
        assert_eq!(name("/x/c++-é"), "c++-é");
        assert_eq!(name("/x/a: b\n\u{1b}"), "\"a: b\\n\\u{1b}\"");
        assert_eq!(name("/x/curl (deleted)"), "\"curl (deleted)\"");
        let long = name(&format!("/x/{}", "y".repeat(255)));
        assert!(long.starts_with("yyy") && long.chars().count() == 40);
    }
}
