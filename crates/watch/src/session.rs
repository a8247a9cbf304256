//! What is known of one session: what its log says, and what it says of itself.
//!
//! Connections and questions come from the session's own snapshots, denials and names from its log.
//! Everything is made harmless for a terminal as it comes in.

use std::{collections::HashMap, hash::Hash, time::Duration};

use jiff::Timestamp;
use serde_json::Value;
use stockade_warden::{
    Process as Seen,
    live::{HeldQuestion, LiveFlow, LiveSnapshot, QuestionKind},
    program_name,
};

use crate::text::{clean, field};

/// Denials and names that are kept, of each. The log has them all.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) workspace: String,
    pub(crate) command: String,
    pub(crate) started: Option<Timestamp>,
    pub(crate) standing: Standing,
    pub(crate) connections: Vec<Connection>,
    /// Connections that are open and not told.
    pub(crate) left_out: usize,
    /// By what was denied, and why.
    pub(crate) denials: HashMap<(String, String), Denial>,
    /// By name and type.
    pub(crate) names: HashMap<(String, String), Name>,
    /// All denials, also those that are not kept.
    pub(crate) denied: u64,
    pub(crate) questions: Vec<Question>,
    /// It asks nothing for so many seconds.
    pub(crate) paused: Option<u64>,
}

/// How far a session can be heard.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has not been asked yet.
    #[default]
    Unknown,
    /// It tells what it does, and takes answers.
    Live,
    /// Only its log is there, for this reason.
    LogOnly(String),
    Ended(String),
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: String,
    pub(crate) exe: String,
    /// That of its file, fit to stand in a sentence.
    name: String,
    pub(crate) argv: String,
    /// The nearest first.
    pub(crate) parents: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    /// Its number in the log.
    pub(crate) flow: u64,
    pub(crate) to: String,
    pub(crate) names: String,
    pub(crate) by: String,
    pub(crate) at: String,
    pub(crate) process: Option<Process>,
    pub(crate) age: Duration,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Everything of one kind that was denied.
#[derive(Debug, Default)]
pub(crate) struct Denial {
    pub(crate) what: String,
    pub(crate) text: String,
    pub(crate) by: String,
    pub(crate) at: String,
    /// A rule for `allow`.
    pub(crate) fix: String,
    /// What somebody gives away who allows it.
    pub(crate) danger: String,
    /// A setting, if no rule would do.
    pub(crate) setting: String,
    pub(crate) process: Option<Process>,
    pub(crate) count: u64,
    pub(crate) last: Option<Timestamp>,
}

/// All that was asked of one name.
#[derive(Debug, Default)]
pub(crate) struct Name {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) addresses: String,
    pub(crate) count: u64,
    pub(crate) last: Option<Timestamp>,
}

/// A flow or a name that waits for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) id: u64,
    /// `tcp://203.0.113.10:443 (api.example.com)`, or `the name api.example.com`.
    pub(crate) what: String,
    /// Names that are not ASCII, as a browser would show them.
    pub(crate) unicode: String,
    pub(crate) process: Option<Process>,
    /// The rule that an answer would add.
    pub(crate) rule: String,
    pub(crate) why: String,
    /// Flows that wait for the answer.
    pub(crate) held: usize,
    /// Seconds until the answer is no.
    pub(crate) left: u64,
}

impl From<&LiveFlow> for Connection {
    fn from(flow: &LiveFlow) -> Self {
        Self {
            flow: flow.id,
            to: clean(&flow.to),
            names: clean(&flow.names.join(" ")),
            by: clean(&flow.rule),
            at: clean(flow.at.as_deref().unwrap_or_default()),
            process: flow.process.as_ref().map(Process::from),
            age: Duration::try_from_secs_f64(flow.age).unwrap_or_default(),
            sent: flow.sent,
            received: flow.received,
        }
    }
}

impl From<&HeldQuestion> for Question {
    fn from(question: &HeldQuestion) -> Self {
        let names = question.names.join(", ");
        let what = match question.kind {
            QuestionKind::Name => format!("the name {}", question.target),
            QuestionKind::Flow if names.is_empty() => question.target.clone(),
            QuestionKind::Flow => format!("{} ({names})", question.target),
        };
        Self {
            id: question.id,
            what: clean(&what),
            unicode: clean(&question.unicode.join(", ")),
            process: question.process.as_ref().map(Process::from),
            rule: clean(&question.rule),
            why: clean(&question.why),
            held: question.held,
            left: question.left,
        }
    }
}

impl From<&Seen> for Process {
    fn from(process: &Seen) -> Self {
        Self {
            pid: process.pid.to_string(),
            exe: clean(&process.exe),
            name: name_of(&process.exe),
            argv: clean(&process.argv.join(" ")),
            parents: process.parents.iter().map(|name| clean(name)).collect(),
        }
    }
}

impl Process {
    fn of(value: &Value) -> Option<Self> {
        value.is_object().then(|| Self {
            pid: field(&value["pid"]),
            exe: field(&value["exe"]),
            name: name_of(value["exe"].as_str().unwrap_or_default()),
            argv: field(&value["argv"]),
            parents: value["parents"]
                .as_array()
                .into_iter()
                .flatten()
                .map(field)
                .collect(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `curl < bash < claude`.
    pub(crate) fn chain(&self) -> String {
        let all = std::iter::once(self.name()).chain(self.parents.iter().map(String::as_str));
        all.collect::<Vec<_>>().join(" < ")
    }
}

fn name_of(exe: &str) -> String {
    match program_name(exe) {
        name if name.is_empty() => "?".to_owned(),
        name => clean(&name),
    }
}

impl Session {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: clean(id),
            ..Self::default()
        }
    }

    /// What people know it by: the last part of its workspace.
    pub(crate) fn place(&self) -> &str {
        let place = self.workspace.rsplit('/').next();
        place.filter(|place| !place.is_empty()).unwrap_or(&self.id)
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.standing, Standing::Ended(_))
    }

    pub(crate) fn end(&mut self, how: &str) {
        self.unheard("");
        self.standing = Standing::Ended(clean(how));
    }

    /// Takes what it says of itself.
    pub(crate) fn show(&mut self, snapshot: &LiveSnapshot) {
        if self.has_ended() {
            return;
        }
        self.standing = Standing::Live;
        self.workspace = clean(&snapshot.workspace);
        self.command = clean(&snapshot.command.join(" "));
        self.started = snapshot.started.parse().ok().or(self.started);
        self.connections = snapshot.flows.iter().map(Connection::from).collect();
        self.left_out = snapshot.flows_left_out;
        self.denied = snapshot.counts.denied;
        self.questions = snapshot.questions.iter().map(Question::from).collect();
        self.paused = snapshot.paused;
    }

    /// It cannot be asked any more, or never could.
    pub(crate) fn unheard(&mut self, why: &str) {
        if self.has_ended() {
            return;
        }
        self.standing = Standing::LogOnly(clean(why));
        self.connections.clear();
        self.questions.clear();
        self.paused = None;
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        self.connections.len() + self.left_out
    }

    /// Takes a line of its log.
    pub(crate) fn read(&mut self, line: &Value) {
        let time = line["time"].as_str().and_then(|time| time.parse().ok());
        match line["event"].as_str() {
            Some("start") => {
                self.started = time;
                self.workspace = field(&line["workspace"]);
                self.command = field(&line["command"]);
            }
            Some("deny") => self.denied(line, time),
            Some("name") => self.asked(line, time),
            Some("end") => {
                self.denied = line["denied"].as_u64().unwrap_or(self.denied);
                self.end(&format!("exit code {}", field(&line["code"])));
            }
            _ => {}
        }
    }

    fn denied(&mut self, line: &Value, time: Option<Timestamp>) {
        let count = line["count"].as_u64().unwrap_or(1);
        // A session that tells counts those that are not logged, too.
        if self.standing != Standing::Live {
            self.denied = self.denied.saturating_add(count);
        }
        make_room(&mut self.denials, |denial| denial.last);
        let what = field(&line["what"]);
        let key = (what.clone(), field(&line["reason"]));
        let denial = self.denials.entry(key).or_default();
        let until = line["until"].as_str().and_then(|time| time.parse().ok());
        *denial = Denial {
            what,
            text: field(&line["text"]),
            by: field(&line["by"]),
            at: field(&line["at"]),
            fix: field(&line["fix"]),
            setting: field(&line["setting"]),
            danger: field(&line["danger"]),
            // Folded denials have none.
            process: Process::of(&line["process"]).or(denial.process.take()),
            count: denial.count.saturating_add(count),
            last: until.or(time),
        };
    }

    fn asked(&mut self, line: &Value, time: Option<Timestamp>) {
        make_room(&mut self.names, |name| name.last);
        let (name, kind) = (field(&line["name"]), field(&line["type"]));
        let known = self.names.entry((name.clone(), kind.clone())).or_default();
        *known = Name {
            name,
            kind,
            addresses: match &line["addresses"] {
                Value::Null => "no answer".to_owned(),
                Value::Array(none) if none.is_empty() => "no addresses".to_owned(),
                addresses => field(addresses),
            },
            count: known.count.saturating_add(1),
            last: time,
        };
    }
}

/// Takes the older half out of a table that is full.
fn make_room<K: Eq + Hash, V>(all: &mut HashMap<K, V>, last: impl Fn(&V) -> Option<Timestamp>) {
    if all.len() < MOST {
        return;
    }
    let mut times: Vec<_> = all.values().map(&last).collect();
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().flatten();
    all.retain(|_, value| last(value) > middle);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_end_leaves_nothing_open() {
        let mut session = Session::new("1-2-3");
        session.read(
            &json!({ "event": "start", "workspace": "/home/dev/project", "command": ["a", "b"] }),
        );
        assert_eq!(
            (session.place(), session.command.as_str()),
            ("project", "a b")
        );
        session.show(&crate::example::snapshot());
        assert!(session.open() > 0 && !session.questions.is_empty());
        let process = session.connections[0].process.as_ref().expect("a program");
        assert_eq!(process.chain(), "curl < bash < claude");
        session.read(&json!({ "event": "end", "code": 3, "denied": 9 }));
        assert_eq!(session.denied, 9);
        assert_eq!(session.standing, Standing::Ended("exit code 3".to_owned()));
        // A snapshot that comes late changes nothing.
        session.show(&crate::example::snapshot());
        assert!(session.open() == 0 && session.questions.is_empty());
    }

    #[test]
    fn denials_of_one_kind_are_one_and_keep_their_program() {
        let mut session = Session::new("1");
        let deny = |count: u64, process: Value| {
            json!({ "event": "deny", "what": "tcp://10.0.0.1:22", "reason": "near", "count": count,
                "time": "2026-01-02T03:04:05Z", "process": process })
        };
        session.read(&deny(1, json!({ "exe": "/bin/ssh" })));
        session.read(&deny(41, Value::Null));
        let denials: Vec<_> = session.denials.values().collect();
        assert_eq!((denials.len(), denials[0].count), (1, 42));
        assert_eq!(session.denied, 42);
        assert_eq!(denials[0].process.as_ref().map(Process::name), Some("ssh"));
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_latest_stays() {
        let mut session = Session::new("1");
        for number in 0..5 * MOST {
            let time =
                Timestamp::from_second(i64::try_from(number).expect("a time")).expect("a time");
            let name = format!("{number}.example");
            session.read(
                &json!({ "event": "name", "time": time.to_string(), "name": name, "type": "A" }),
            );
            let what = format!("tcp://10.0.0.1:{number}");
            session.read(&json!({ "event": "deny", "what": what, "count": 1 }));
        }
        assert!(session.names.len() <= MOST && session.denials.len() <= MOST);
        let last = format!("{}.example", 5 * MOST - 1);
        assert!(session.names.contains_key(&(last, "A".to_owned())));
        assert_eq!(session.denied, 5 * MOST as u64);
    }

    #[test]
    fn lines_that_are_odd_do_no_harm() {
        let mut session = Session::new("1\u{1b}");
        for event in ["start", "open", "close", "deny", "name", "end", "x"] {
            for value in [json!(null), json!(7), json!("x"), json!([1]), json!({})] {
                let mut line = json!({ "event": event });
                for field in [
                    "time",
                    "flow",
                    "count",
                    "process",
                    "to",
                    "what",
                    "name",
                    "addresses",
                ] {
                    line[field] = value.clone();
                }
                session.read(&line);
            }
        }
        assert_eq!(session.id, "1\\u{1b}");
    }
}
