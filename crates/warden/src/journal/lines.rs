//! The lines of the log. Names of fields stay the same over versions; a change of their
//! meaning is a new number in `v`. `docs/log.md` has all of them: a test sees to it.

use std::{
    iter,
    net::IpAddr,
    path::Path,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use stockade_config::Effective;
use stockade_gate::{Answer, AnsweredBy, Fix, Grounds, Ruling, Subject};
use stockade_policy::{Flow, Hostname, Rule};
use stockade_wall::{Change, CommandLine, Finding, Layer, Version};

use super::Line;
use crate::{attribution::Process, live::OpenQuestion};

pub const LOG_VERSION: u32 = 1;

// Programs inside have a say in how long a line becomes, and each line about what passed has its room
// (`file::LINE`). So there is a limit to all that could be long, in bytes as they are written.

/// Names of a destination, or addresses of a name. How many more there are stands beside them.
const LISTED: usize = 400;
/// A rule. Of longer ones the beginning is kept.
const RULE: usize = 400;
/// The place of a rule. Of longer ones the end is kept, as of a program's file.
const PLACE: usize = 250;
const FILE: usize = 800;
/// The arguments of a program, and the names of those that started it.
const ARGUMENTS: usize = 800;
const PARENTS: usize = 400;

/// What there is to say about the start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionStart<'a> {
    pub(crate) id: &'a str,
    pub(crate) workspace: &'a Path,
    pub(crate) command: &'a CommandLine,
    pub(crate) effective: &'a Effective,
    /// What was achieved, and by which bubblewrap.
    pub(crate) layers: &'a [Layer],
    pub(crate) bubblewrap: Version,
}

/// What there is to say about the end.
#[derive(Debug)]
pub(crate) struct SessionEnd {
    pub(crate) code: u8,
    /// What the session left behind.
    pub(crate) findings: Vec<Finding>,
}

/// A flow that was allowed.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) when: SystemTime,
    pub(crate) id: u64,
    pub(crate) flow: Flow,
    pub(crate) names: Vec<Hostname>,
    pub(crate) grounds: Grounds,
    /// Where the setting stands that allowed it.
    pub(crate) at: Option<String>,
}

/// An answer to what waited.
#[derive(Debug)]
pub(super) struct Answered<'a> {
    pub(super) when: SystemTime,
    pub(super) id: u64,
    pub(super) subject: &'a Subject,
    pub(super) rule: &'a Rule,
    pub(super) answer: Answer,
    pub(super) by: AnsweredBy,
    pub(super) count: usize,
    /// How long it waited.
    pub(super) waited: Option<Duration>,
}

/// A flow that has ended.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) when: SystemTime,
    pub(super) id: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// Denials of one kind that are told in one line.
#[derive(Debug)]
pub(super) struct Denied<'a> {
    pub(super) when: SystemTime,
    /// The last one of those that were folded.
    pub(super) until: Option<SystemTime>,
    pub(super) count: u64,
    pub(super) subject: &'a Subject,
    pub(super) ruling: &'a Ruling,
    /// Where the setting stands that denied it.
    pub(super) at: Option<&'a str>,
    pub(super) process: Option<&'a Process>,
}

fn line(when: SystemTime, event: &str, fields: Value) -> Line {
    let mut line = Line::new();
    line.insert("v".to_owned(), json!(LOG_VERSION));
    line.insert("time".to_owned(), json!(time(when)));
    line.insert("event".to_owned(), json!(event));
    if let Value::Object(fields) = fields {
        line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    }
    line
}

/// As RFC 3339 has it, in UTC.
pub(crate) fn time(when: SystemTime) -> String {
    jiff::Timestamp::try_from(when).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}

/// A line as it is written. JSON escapes what moves a terminal's cursor only where that is
/// ASCII; here everything is escaped that does not show as what it is, so that the file can be
/// looked at with anything.
pub(super) fn text(line: &Line) -> String {
    let mut json = serde_json::to_string(line).unwrap_or_default();
    // Nearly every line is so.
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        json.push('\n');
        return json;
    }
    let mut text = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if shows(c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text.push('\n');
    text
}

fn shows(c: char) -> bool {
    match c.is_ascii() {
        true => !c.is_control(),
        false => c.escape_debug().eq([c]),
    }
}

/// How many bytes a character has in a line, at most.
fn width(c: char) -> usize {
    match c {
        '"' | '\\' => 2,
        c if shows(c) => c.len_utf8(),
        c => 6 * c.len_utf16(),
    }
}

/// How many of these characters have so many bytes in a line, all but a mark, and whether that is all.
fn fitting(chars: impl Iterator<Item = char>, most: usize) -> (usize, bool) {
    let mut used = 0;
    let (mut kept, mut all) = (0, 0);
    for c in chars {
        used += width(c);
        all += 1;
        if used + '…'.len_utf8() <= most {
            kept = all;
        }
        if used > most {
            return (kept, false);
        }
    }
    (all, true)
}

/// A text, or as much of its beginning as has so many bytes in a line.
fn beginning(text: &str, most: usize) -> String {
    match fitting(text.chars(), most) {
        (_, true) => text.to_owned(),
        (kept, false) => text.chars().take(kept).chain(['…']).collect(),
    }
}

/// The same of its end.
fn ending(text: &str, most: usize) -> String {
    match fitting(text.chars().rev(), most) {
        (_, true) => text.to_owned(),
        (kept, false) => {
            let cut = text.chars().count() - kept;
            iter::once('…').chain(text.chars().skip(cut)).collect()
        }
    }
}

/// With quotes and a comma.
fn width_of_word(word: &str) -> usize {
    word.chars().map(width).sum::<usize>() + 3
}

/// As many of these words as have so many bytes in a line. The last one may be cut.
fn words(all: &[String], most: usize) -> Vec<String> {
    let mut left = most;
    let mut kept = Vec::new();
    for word in all {
        // Room for some letters and the mark.
        const LEAST: usize = 16;
        if left < LEAST {
            kept.push("…".to_owned());
            break;
        }
        let word = beginning(word, left - 3);
        left = left.saturating_sub(width_of_word(&word));
        kept.push(word);
    }
    kept
}

/// As many of these as a line has room for, whole, and how many more there are. Nothing if there are none.
fn listed(all: impl IntoIterator<Item = String>) -> (Option<Vec<String>>, Option<usize>) {
    let mut used = 0;
    let mut all = all.into_iter().peekable();
    let mut kept = Vec::new();
    while let Some(next) = all.next_if(|next| used + width_of_word(next) <= LISTED) {
        used += width_of_word(&next);
        kept.push(next);
    }
    let more = Some(all.count()).filter(|more| *more > 0);
    let is_empty = kept.is_empty() && more.is_none();
    ((!is_empty).then_some(kept), more)
}

fn program(process: Option<&Process>) -> Option<Value> {
    let Process {
        pid,
        exe,
        argv,
        parents,
    } = process?;
    Some(json!({
        "pid": pid,
        "exe": ending(exe, FILE),
        "argv": words(argv, ARGUMENTS),
        "parents": words(parents, PARENTS),
    }))
}

pub(super) fn start(start: &SessionStart<'_>) -> Line {
    let network = &start.effective.network;
    let layers: Line = start
        .layers
        .iter()
        .map(|layer| {
            let name = layer.protection.name().to_owned();
            (name, json!(layer.state.to_string()))
        })
        .collect();
    let CommandLine { program, arguments } = start.command;
    let command: Vec<_> = iter::once(program)
        .chain(arguments)
        .map(|word| word.to_string_lossy())
        .collect();
    line(
        SystemTime::now(),
        "start",
        json!({
            "session": start.id,
            "pid": std::process::id(),
            "stockade": env!("CARGO_PKG_VERSION"),
            "bubblewrap": start.bubblewrap.to_string(),
            "kernel": rustix::system::uname().release().to_string_lossy(),
            "workspace": start.workspace.to_string_lossy(),
            "command": command,
            "profile": start.effective.profile,
            "mode": network.mode.value.to_string(),
            "internet": network.internet.value,
            "rules": start.effective.policy().rules.len(),
            "policy": start.effective.hash(),
            "layers": layers,
        }),
    )
}

pub(super) fn opened(opened: &Opened, process: Option<&Process>) -> Line {
    let reason = match &opened.grounds {
        Grounds::Policy(verdict) => verdict.reason().name(),
        Grounds::Search(..) => "discovery",
        Grounds::HostPort => "host-port",
        Grounds::Published { .. } => "published",
    };
    let fields = json!({ "reason": reason, "process": program(process) });
    line(opened.when, "open", both(about(opened), fields))
}

/// With what was said at its beginning: who looks for bytes looks for their destination.
pub(super) fn closed(closed: &Closed, opened: Option<&Opened>) -> Line {
    let lasted = opened.and_then(|opened| closed.when.duration_since(opened.when).ok());
    let fields = json!({
        "flow": closed.id,
        "sent": closed.sent,
        "received": closed.received,
        "seconds": lasted.map(seconds),
    });
    let beginning = opened.map_or(Value::Null, about);
    line(closed.when, "close", both(fields, beginning))
}

fn about(opened: &Opened) -> Value {
    let (names, more_names) = listed(opened.names.iter().map(Hostname::to_string));
    let search = match &opened.grounds {
        Grounds::Search(_, search) => Some(search.to_string()),
        _ => None,
    };
    let device = opened.grounds.device().map(Hostname::as_str);
    json!({
        "flow": opened.id,
        "to": opened.flow.to_string(),
        "device": device,
        "names": names,
        "more_names": more_names,
        "search": search,
        "by": beginning(&let_pass_by(&opened.grounds), RULE),
        "at": opened.at.as_deref().map(|at| ending(at, PLACE)),
    })
}

/// What let a flow pass.
pub(crate) fn let_pass_by(grounds: &Grounds) -> String {
    match grounds {
        Grounds::Policy(verdict) | Grounds::Search(verdict, _) => verdict.decided_by().to_string(),
        Grounds::HostPort => "host_ports".to_owned(),
        Grounds::Published { outside } => format!("publish, from port {outside} of this machine"),
    }
}

fn kind_and_what(subject: &Subject) -> (&'static str, String) {
    match subject {
        Subject::Flow(flow) => ("flow", flow.to_string()),
        Subject::Answer(flow) => ("answer", flow.to_string()),
        Subject::Name(name) => ("name", name.clone()),
        Subject::Claim(flow, name) => ("claim", format!("{name} at {flow}")),
        Subject::HostPort(_) => ("host-port", subject.to_string()),
        Subject::Packet(what) => ("packet", what.clone()),
    }
}

/// The user is asked.
pub(super) fn held(when: SystemTime, id: u64, question: &OpenQuestion) -> Line {
    let (kind, what) = kind_and_what(&question.subject);
    let (names, more_names) = listed(question.names.iter().map(Hostname::to_string));
    line(
        when,
        "ask",
        json!({
            "question": id,
            "kind": kind,
            "what": what,
            "names": names,
            "more_names": more_names,
            "reason": reason(&question.ruling),
            "text": question.ruling.to_string(),
            "fix": question.rule.to_string(),
            "process": program(question.process.as_ref()),
        }),
    )
}

pub(super) fn answered(answered: &Answered<'_>) -> Line {
    let (kind, what) = kind_and_what(answered.subject);
    line(
        answered.when,
        "answer",
        json!({
            "question": answered.id,
            "kind": kind,
            "what": what,
            "fix": answered.rule.to_string(),
            "answer": answered.answer.to_string(),
            "from": answered.by.to_string(),
            "count": answered.count,
            "seconds": answered.waited.map(seconds),
        }),
    )
}

/// So much was refused that nothing is asked for a while.
pub(super) fn paused(when: SystemTime, until: SystemTime) -> Line {
    let why = "the user refused too many questions in a minute";
    line(when, "pause", json!({ "until": time(until), "why": why }))
}

fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e3).round() / 1e3
}

fn both(mut one: Value, other: Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&mut one, other) {
        one.extend(other);
    }
    one
}

pub(super) fn denied(denied: &Denied<'_>) -> Line {
    let (kind, what) = kind_and_what(denied.subject);
    let by = match denied.ruling {
        Ruling::Flow(verdict) => Some(verdict.decided_by().to_string()),
        Ruling::Name(verdict) => Some(verdict.decided_by().to_string()),
        Ruling::Proxy(_) => Some("proxy".to_owned()),
        Ruling::HostPort(_) | Ruling::Malformed(_) | Ruling::ProxyVariable(..) => None,
    };
    let (fix, setting) = match denied.ruling.fix() {
        Some(Fix::Allow(rule)) => (Some(rule.to_string()), None),
        Some(other) => (None, Some(other.to_string())),
        None => (None, None),
    };
    let device = match denied.ruling {
        Ruling::Flow(verdict) => verdict.device().map(Hostname::as_str),
        _ => None,
    };
    line(
        denied.when,
        "deny",
        json!({
            "until": denied.until.map(time),
            "kind": kind,
            "what": what,
            "device": device,
            "count": denied.count,
            "reason": reason(denied.ruling),
            "by": by,
            "at": denied.at,
            "text": denied.ruling.to_string(),
            "fix": fix,
            "setting": setting,
            "danger": denied.ruling.danger(),
            "process": program(denied.process),
        }),
    )
}

/// Why, for programs.
pub(super) fn reason(ruling: &Ruling) -> &'static str {
    match ruling {
        Ruling::Flow(verdict) => verdict.reason().name(),
        Ruling::Name(verdict) => verdict.reason().name(),
        Ruling::HostPort(_) => "loopback",
        Ruling::Malformed(_) => "malformed",
        Ruling::Proxy(_) => "proxy",
        Ruling::ProxyVariable(_, ruling) => reason(ruling),
    }
}

pub(super) fn asked(
    when: SystemTime,
    name: &str,
    kind: &str,
    addresses: Option<&[IpAddr]>,
) -> Line {
    let (kept, more) = listed(addresses.into_iter().flatten().map(IpAddr::to_string));
    let fields = json!({
        "name": name,
        "type": kind,
        "addresses": addresses.map(|_| kept.unwrap_or_default()),
        "more_addresses": more,
    });
    line(when, "name", fields)
}

pub(super) fn reloaded(when: SystemTime, internet: bool, rules: usize, policy: &str) -> Line {
    line(
        when,
        "reload",
        json!({ "internet": internet, "rules": rules, "policy": policy }),
    )
}

/// Of events that could not be written.
pub(super) fn lost(when: SystemTime, until: SystemTime, count: u64, why: &str) -> Line {
    let fields = json!({ "until": time(until), "count": count, "why": why });
    line(when, "lost", fields)
}

/// The first line of a further part.
pub(super) fn part(when: SystemTime, id: &str, part: u32, removed: u64) -> Line {
    let fields = json!({ "session": id, "part": part, "removed": removed });
    line(when, "part", fields)
}

/// Something that a session left behind and that runs outside, or does not hide any more.
/// `is_running`: it was seen while the session ran, and may be otherwise at the end.
pub(super) fn found(when: SystemTime, finding: &Finding, is_running: bool) -> Line {
    let change = match finding.what {
        Change::Appeared => "new",
        Change::Changed => "changed",
        Change::Setting(_) => "setting",
        Change::Malformed => "unreadable",
        Change::SettingGone(_) => "setting-removed",
        Change::Replaced => "replaced",
        Change::Undone(_) => "put-back",
        Change::Unseen => "not-checked",
        Change::More(_) => "more",
    };
    let path = finding.path.to_string_lossy();
    let fields = json!({
        "path": path,
        "change": change,
        "text": finding.to_string(),
        "diff": (!finding.diff.is_empty()).then_some(&finding.diff),
        "running": is_running.then_some(true),
    });
    line(when, "found", fields)
}

pub(super) fn end(when: SystemTime, end: &SessionEnd, denied: u64) -> Line {
    line(when, "end", json!({ "code": end.code, "denied": denied }))
}

#[cfg(test)]
mod tests {
    use stockade_policy::{Evidence, Policy, Route, decide};

    use super::{
        super::file::{GAP, LINE},
        *,
    };

    #[test]
    fn what_does_not_show_is_escaped_and_comes_back() {
        let hostile = "\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{200b}\u{e0001}é日\"\\";
        let mut line = Line::new();
        line.insert("what".to_owned(), json!(hostile));
        let text = text(&line);
        let odd = |c: &char| c.is_control() || "\u{202e}\u{200b}\u{e0001}".contains(*c);
        assert_eq!(text.trim_end().chars().find(odd), None, "{text:?}");
        assert!(text.contains("é日") && text.ends_with("}\n"));
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read["what"], hostile);
    }

    #[test]
    fn p14_no_line_about_what_passed_is_longer_than_its_room() {
        let when = SystemTime::now();
        let long_name = |last: u32| -> Hostname {
            let label = "x".repeat(63);
            let text = format!("{label}.{label}.{label}.{}{last:03}", "y".repeat(58));
            assert_eq!(text.len(), 253);
            text.parse().expect("a name")
        };
        let to = "[2a02:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535";
        let flow = Flow::udp(to.parse().expect("an address")).expect("a flow");
        // A device with the longest name, at which a search for it is let through.
        let device = long_name(0);
        let rule = Rule::parse_device(&device, &format!("udp://{to}")).expect("a rule");
        let policy = Policy {
            rules: [rule].into_iter().collect(),
            ..Policy::default()
        };
        let evidence = Evidence {
            route: Route::Default,
            own: false,
            names: &[],
        };
        let verdict = Box::new(decide(&policy, &flow, &evidence));
        assert_eq!(verdict.device(), Some(&device));
        let opened = Opened {
            when,
            id: u64::MAX,
            flow,
            names: (0..32).map(long_name).collect(),
            grounds: Grounds::Search(verdict, flow),
            at: Some("\u{1}".repeat(4096)),
        };
        let closed = Closed {
            when: when + Duration::from_secs(1 << 40),
            id: u64::MAX,
            sent: u64::MAX,
            received: u64::MAX,
        };
        let odd = r"\255".repeat(253);
        let addresses = [flow.destination(); 4000];
        let all = [
            super::opened(&opened, None),
            super::closed(&closed, Some(&opened)),
            asked(when, &odd, "TYPE65535", Some(&addresses)),
        ];
        for line in all {
            let text = text(&line);
            assert!(text.len() as u64 <= LINE - GAP, "{}: {text}", text.len());
        }
        let why = std::io::Error::from(rustix::io::Errno::NOSPC).to_string();
        let lost = text(&lost(when, when, u64::MAX, &why));
        assert!(lost.len() as u64 <= GAP, "{lost}");
        // What is left out is counted, and a name is whole or not there.
        let line = super::opened(&opened, None);
        assert_eq!(line["names"], json!([opened.names[0].as_str()]));
        assert_eq!(line["more_names"], 31);
    }

    #[test]
    fn of_a_program_no_field_grows_with_what_it_calls_itself() {
        let odd = |count: usize| "\u{e0001}".repeat(count);
        let process = Process {
            pid: 7,
            exe: format!("/tmp/{}end", odd(400)),
            argv: vec![odd(400), "more".to_owned()],
            parents: vec![odd(15); 8],
        };
        let told = program(Some(&process)).expect("a program");
        let mut line = Line::new();
        line.insert("process".to_owned(), told.clone());
        let length = text(&line).len();
        assert!(length < FILE + ARGUMENTS + PARENTS + 100, "{length}");
        let exe = told["exe"].as_str().expect("a file");
        assert!(exe.starts_with('…') && exe.ends_with("end"), "{exe}");
        let first = told["argv"][0].as_str().expect("an argument");
        assert!(first.ends_with('…'), "{first}");
        // What is of ordinary length is as it is.
        let process = crate::attribution::example();
        assert_eq!(program(Some(&process)), Some(json!(process)));
    }
}
