//! What is said before a session and at its end. During it the terminal belongs to the command.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use stockade_config::{Effective, Limits, Loader, Sourced, shown_path};
use stockade_gate::{Denial, Denials, Fix, Ruling, Subject};
use stockade_policy::{
    Flow, NamePattern, Policy, Reason, Rule, STRANGERS, decide,
    registry::{self, Class},
};
use stockade_wall::{
    Change, Discarded, DiscardedPlace, Finding, Layer, LayerState, Protection, folded,
};
use stockade_warden::{JournalEnd, LostEvents, Notice, Process, program_name};

use crate::{advice, terminal};

/// What the configuration asks for and this machine does not have.
pub(crate) fn tell_missing(layers: &[Layer], effective: &Effective) {
    for layer in layers {
        let LayerState::Absent(why) = layer.state else {
            continue;
        };
        let asked = match layer.protection {
            Protection::Scratch => {
                tell!(
                    "stockade: ~/.local/share is empty inside: the kernel cannot overlay it here \
                     (see `stockade doctor`)"
                );
                None
            }
            Protection::Caches => {
                tell!("stockade: package caches: {why}");
                None
            }
            Protection::Memory => effective.limits.memory.as_ref().map(|limit| &limit.origin),
            Protection::Files => Some(&effective.agent.hardening.origin),
            _ => None,
        };
        if let Some(origin) = asked {
            let name = layer.protection.name();
            tell!("stockade: WARNING: unavailable on this machine ({origin}): {name}: {why}");
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
            tell!("stockade: this session is not logged: {directory}: {error}");
        }
        Notice::NoRoom(directory) => {
            let directory = directory.display();
            tell!(
                "stockade: nothing passes before the log has room: make some on the disk of \
                 {directory}"
            );
        }
        Notice::NotReloadable(error) => {
            tell!("stockade: this session cannot be reloaded: {error}");
        }
        Notice::WatchedAtEndOnly(error) => {
            tell!("stockade: settings of git are looked at only when this session ends: {error}");
        }
        Notice::Suspended { id, findings } => tell_findings(&findings, &id),
        Notice::ReloadRefused(why) => {
            tell!("stockade: the configuration was not reloaded: {why}");
        }
    }
}

/// What the log lacks.
pub(crate) fn tell_journal(journal: &JournalEnd, quiet: bool) {
    if let Some(LostEvents { count, why, .. }) = &journal.lost {
        let events = terminal::counted(*count, "event");
        tell!(
            "stockade: {events} of this session could not be logged: {why}; \
             `stockade log` has the others"
        );
    }
    if journal.refused > 0 {
        let attempts = terminal::counted(journal.refused, "attempt");
        tell!(
            "stockade: {attempts} did not pass although the rules allow it: the log fell behind, \
             or had no room for a line. If the disk of the logs is full, make room on it"
        );
    }
    if journal.missed > 0 && !quiet {
        let events = terminal::counted(journal.missed, "event");
        tell!("stockade: {events} of this session came too fast to be written down one by one");
    }
    if journal.unfinished {
        tell!("stockade: the end of the log is not written: the disk does not answer");
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
    // One of each danger at least.
    let dangers = all.iter().filter_map(|denial| denial.ruling.danger());
    let shown = LINES.max(dangers.collect::<BTreeSet<_>>().len());
    let mut fixes = Vec::new();
    for group in by_device(all.iter().take(shown)) {
        let Some(first) = group.first() else { continue };
        let names: BTreeSet<_> = group
            .iter()
            .filter_map(|denial| programs.get(&denial.subject))
            .map(|process| program_name(&process.exe))
            .collect();
        let mut details: Vec<_> = names.into_iter().collect();
        let count: u64 = group.iter().map(|denial| denial.count).sum();
        if count > 1 {
            details.push(format!("{count} times"));
        }
        let details = match details.as_slice() {
            [] => String::new(),
            details => format!(" ({})", details.join(", ")),
        };
        let subjects: Vec<_> = group.iter().map(|it| it.subject.to_string()).collect();
        let (subjects, ruling) = (subjects.join(", "), &first.ruling);
        let word = match ruling {
            // Nobody has denied it: the proxy did not do what it was asked for.
            Ruling::Proxy(_) => "failed",
            _ => "denied",
        };
        tell!("stockade: {word} {subjects}{details}: {ruling}");
        let needed = fixes_of(&group);
        if needed.is_empty() {
            continue;
        }
        let aside = in_addition(ruling);
        let flags: Vec<_> = needed.iter().map(Fix::flag).collect();
        let flags = flags.join(" ");
        match ruling.danger() {
            None => {
                let wider = wider_than_tried(&needed);
                tell!("stockade:   to allow it{aside}: {flags}{wider}");
                fixes.extend(needed);
            }
            // Not among what is to be copied: a program inside decides what is tried how often.
            Some(danger) => {
                tell!("stockade:   to allow it{aside}: {flags} (WARNING: {danger})");
            }
        }
    }
    let beyond: u64 = all.iter().skip(shown).map(|denial| denial.count).sum();
    let more = beyond + denials.others();
    if more > 0 {
        let attempts = terminal::counted(more, "more attempt");
        tell!("stockade: denied {attempts} to other destinations");
    }
    if !fixes.is_empty() {
        for line in advice::lines(loader, &fixes) {
            tell!("stockade: {line}");
        }
    }
    if !all.is_empty() {
        tell!("stockade: `stockade log {session}` shows the whole session");
    }
}

/// Denials in their order, with those of one private host together: who allows a device wants to
/// do so once.
fn by_device<'d>(denials: impl Iterator<Item = &'d Denial>) -> Vec<Vec<&'d Denial>> {
    let mut groups: Vec<Vec<&Denial>> = Vec::new();
    for denial in denials {
        let host = private_flow(denial).map(Flow::destination);
        let same = |group: &&mut Vec<&Denial>| {
            let other = group.first().and_then(|first| private_flow(first));
            host.is_some() && other.map(Flow::destination) == host
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(denial),
            None => groups.push(vec![denial]),
        }
    }
    groups
}

/// The flow of a denial, if it is to a private address that has no name to be allowed by.
fn private_flow(denial: &Denial) -> Option<&Flow> {
    let Ruling::Flow(verdict) = &denial.ruling else {
        return None;
    };
    let flow = verdict.flow();
    let is_special = matches!(registry::classify(flow.destination()), Class::Special(_));
    let is_private = match verdict.reason() {
        Reason::Near(_) => true,
        Reason::NotListed { .. } => is_special,
        _ => false,
    };
    let by_address = verdict.fix().is_some_and(|fix| fix.network().is_some());
    (is_private && by_address && matches!(denial.subject, Subject::Flow(_))).then_some(flow)
}

/// What allows a group of denials. A private host is allowed by its ports, for TCP and UDP alike
/// unless all were of TCP: who finds a service by a datagram connects to it next.
fn fixes_of(group: &[&Denial]) -> Vec<Fix> {
    let flows: Vec<Flow> = group
        .iter()
        .filter_map(|it| private_flow(it))
        .copied()
        .collect();
    if flows.is_empty() {
        return group.iter().filter_map(|it| it.ruling.fix()).collect();
    }
    Rule::for_flows(&flows).into_iter().map(Fix::from).collect()
}

/// A rule for ports without a protocol opens both, of which one may not have been tried.
fn wider_than_tried(fixes: &[Fix]) -> &'static str {
    let is_of_both = |fix: &Fix| matches!(fix, Fix::Allow(rule) if rule.protocol().is_none() && rule.ports().is_some());
    match fixes.iter().any(is_of_both) {
        true => " (TCP and UDP)",
        false => "",
    }
}

/// What somebody gives away who adds a rule.
pub(crate) fn danger_of_rule(rule: &Rule) -> Option<&'static str> {
    if rule.is_of_strangers() {
        return Some(STRANGERS);
    }
    if rule.name().is_some_and(NamePattern::holds_strangers) {
        return Some("strangers can have names below this domain");
    }
    let network = rule.network()?;
    let flow = Flow::tcp((network.addr(), 1).into())?;
    let evidence = stockade_gate::host_evidence(network.addr()).ok()?;
    decide(&Policy::default(), &flow, &evidence).danger()
}

/// Who gives one rule up for another one that is needed as well goes round in circles.
fn in_addition(ruling: &Ruling) -> String {
    let Ruling::Flow(verdict) = ruling else {
        return String::new();
    };
    match verdict.reason() {
        Reason::Inward { rule, .. } if !verdict.fix().is_some_and(Rule::is_near) => {
            format!(", in addition to `{rule}`")
        }
        Reason::SearchOff {
            has_devices: false, ..
        } => ", with `--allow ADDRESS` for each device".to_owned(),
        _ => String::new(),
    }
}

/// Why ssh asked about a server that the user knows, or refused it.
pub(crate) fn tell_known_hosts(path: &Path) {
    if path.exists() {
        tell!(
            "stockade: ssh had no known hosts inside; to give it yours: --read ~/.ssh/known_hosts"
        );
    }
}

/// What the command wrote to its private home, which is gone.
pub(crate) fn tell_discarded(discarded: &Discarded) {
    const MOST: usize = 5;
    const LONGEST: usize = 60;
    for path in discarded.dependencies.iter().take(MOST) {
        tell!(
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
    tell!(
        "stockade: {least}{files} written outside the workspace {were} discarded: {}",
        places.join(", ")
    );
    tell!("stockade:   to keep files there: --write DIRECTORY");
}

/// Whether a limit of the session may be why the command was killed.
pub(crate) fn tell_limit(code: u8, limits: &Limits) {
    if let Some(why) = limit_behind(code, limits) {
        tell!("stockade: {why}");
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
        tell!("stockade: {finding}");
        for line in finding.diff.iter().take(room.min(DIFF_LINES)) {
            tell!("stockade:   {line}");
        }
        let rest = finding.diff.len().saturating_sub(room.min(DIFF_LINES));
        room = room.saturating_sub(finding.diff.len());
        if rest > 0 {
            tell!(
                "stockade:   and {}: `stockade log {session}`",
                terminal::counted(rest as u64, "more line")
            );
        }
    }
    if let Some(more) = shown.len().checked_sub(LINES).filter(|more| *more > 0) {
        tell!("stockade: and {more} more of these: `stockade log {session}`");
    }
    let is_undone = |finding: &Finding| matches!(finding.what, Change::Undone(_));
    if findings.iter().any(is_undone) {
        tell!("stockade: to apply what was undone: stockade accept {session}");
    }
}
