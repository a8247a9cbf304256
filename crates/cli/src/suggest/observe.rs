//! What the logs of sessions say that they did.
//!
//! A program inside decides what stands there: names, numbers and how often. Each value is parsed
//! into its type or left out, and all of it is bounded.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result};
use serde_json::Value;
use stockade_config::shown;
use stockade_policy::{Flow, Host, Hostname, Protocol, SeenFlow, Target, is_in_pool, registry};
use stockade_warden::{LogDirectory, LogItem as Item, LogReader as Reader};

use crate::{exit::refused, terminal::cut};

/// Different flows and names. Nobody reviews a policy of more.
const MOST: usize = 2000;
/// Denied destinations outside the internet that are more than a mistake.
const SCAN: usize = 16;
/// Programs that are named for a rule.
const PROGRAMS: usize = 3;
/// Of one session.
const REMARKS: usize = 5;

/// How often something was seen, when last, and by whom.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    pub(super) count: u64,
    /// As the log has it, so that the later one is the greater.
    pub(super) last: String,
    pub(super) programs: BTreeSet<String>,
}

impl Evidence {
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        if self.last < other.last {
            self.last.clone_from(&other.last);
        }
        self.programs.extend(other.programs.iter().cloned());
    }

    fn of(line: &Value) -> Self {
        let exe = line["process"]["exe"].as_str().unwrap_or_default();
        let name = exe.rsplit('/').next().unwrap_or_default();
        let name = cut(&shown(name), 24);
        let time = line["time"].as_str().unwrap_or_default();
        Self {
            count: 1,
            last: time.chars().take(19).collect(),
            programs: Some(name).filter(|it| !it.is_empty()).into_iter().collect(),
        }
    }

    /// `curl, git: 12 connections, last 2026-01-02 03:04`
    pub(super) fn said(&self, one: &str) -> String {
        let mut programs: Vec<_> = self.programs.iter().take(PROGRAMS).cloned().collect();
        if self.programs.len() > PROGRAMS {
            programs.push("…".to_owned());
        }
        let by = match programs.is_empty() {
            true => String::new(),
            false => format!("{}: ", programs.join(", ")),
        };
        let count = crate::terminal::counted(self.count, one);
        let last: String = self.last.replace('T', " ").chars().take(16).collect();
        format!("{by}{count}, last {last}")
    }
}

/// What sessions did.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) sessions: Vec<String>,
    pub(super) flows: HashMap<SeenFlow, Evidence>,
    /// Names that had an address.
    pub(super) names: BTreeMap<Hostname, Evidence>,
    pub(super) host_ports: BTreeMap<u16, Evidence>,
    /// Names that had none, and what else needs no rule.
    pub(super) unanswered: BTreeSet<String>,
    /// What was seen and cannot be said by a rule.
    pub(super) unsayable: BTreeSet<String>,
    /// Denied attempts.
    pub(super) denied: u64,
    /// Connections to addresses that had more names than a line of the log has room for.
    pub(super) abridged: u64,
    /// Why a log may not tell everything.
    pub(super) incomplete: Vec<String>,
    /// Why somebody should not learn from a session.
    pub(super) suspicious: Vec<String>,
}

impl Observed {
    /// Whether nothing was seen that a rule could be for.
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
            && self.names.is_empty()
            && self.host_ports.is_empty()
            && self.unsayable.is_empty()
    }

    /// # Errors
    /// If a log cannot be read, or has too much.
    pub(super) fn read(directory: &LogDirectory, sessions: &[String]) -> Result<Self> {
        let mut observed = Self::default();
        for id in sessions {
            observed
                .session(directory, id)
                .with_context(|| format!("cannot learn from session {id}"))?;
            observed.sessions.push(id.clone());
        }
        Ok(observed)
    }

    fn session(&mut self, directory: &LogDirectory, id: &str) -> Result<()> {
        let is_running = directory.is_running(id);
        let mut reader = Reader::open(directory.clone(), id).context("it has no log")?;
        let mut session = Session::default();
        while let Some(item) = reader.read()? {
            match item {
                Item::Line(line, _) => self.line(&line, &mut session)?,
                Item::Unreadable(_) => session.remark("its log has bytes that are no line"),
            }
        }
        if session.scanned.len() >= SCAN {
            let count = session.scanned.len();
            session.remark(&format!("it tried {count} addresses outside the internet"));
        }
        let remarks = session.remarks;
        if !remarks.is_empty() {
            let remarks = remarks.join("; ");
            self.suspicious.push(format!("session {id}: {remarks}"));
        }
        if is_running {
            self.incomplete
                .push(format!("session {id} is still running"));
        } else if !session.has_ended {
            let why = format!("session {id} ended abnormally");
            self.incomplete.push(why);
        }
        Ok(())
    }

    fn line(&mut self, line: &Value, session: &mut Session) -> Result<()> {
        let text = |field: &str| line[field].as_str().unwrap_or_default();
        match text("event") {
            "start" if text("mode") != "jail" => {
                return Err(refused(
                    format!(
                        "it ran in mode \"{}\", which logs no connections",
                        shown(text("mode"))
                    ),
                    "name sessions of mode \"jail\"",
                ));
            }
            "open" => self.open(line),
            "name" => self.name(line),
            "deny" => {
                let count = line["count"].as_u64().unwrap_or(1);
                self.denied = self.denied.saturating_add(count);
                session.deny(text("kind"), text("reason"), text("what"));
            }
            "found" => session.remark(&format!("it left {}", cut(&shown(text("text")), 100))),
            "lost" => session.remark("events are missing in its log"),
            "part" if line["removed"].as_u64() != Some(0) => {
                session.remark("lines were removed from its log");
            }
            "end" => session.has_ended = true,
            _ => {}
        }
        if self.flows.len() + self.names.len() > MOST || self.unanswered.len() > MOST {
            return Err(refused(
                format!("more than {MOST} different connections and names are no policy"),
                "name fewer sessions, or keep the internet open",
            ));
        }
        Ok(())
    }

    fn open(&mut self, line: &Value) {
        let to = line["to"].as_str().unwrap_or_default();
        let evidence = Evidence::of(line);
        let Some(flow) = flow(to) else {
            self.unsayable
                .insert(format!("a connection to {}", cut(&shown(to), 80)));
            return;
        };
        let reason = line["reason"].as_str().unwrap_or_default();
        match (reason, flow.port()) {
            // It comes from outside.
            ("published", _) => return,
            ("host-port", Some(port)) => {
                let known = self.host_ports.entry(port.get());
                known.or_default().add(&evidence);
                return;
            }
            _ => {}
        }
        let names = line["names"].as_array().into_iter().flatten();
        let names = names.filter_map(|name| name.as_str()?.parse().ok());
        let seen = SeenFlow {
            flow,
            names: names.collect(),
            by_address: match reason {
                "rule" => true,
                "internet" => false,
                // A name of `near`, or of a device, led to a private address. The address is what was used.
                _ => is_special(&flow) && !is_in_pool(flow.destination()),
            },
        };
        self.abridged += u64::from(line["more_names"].as_u64().is_some_and(|more| more > 0));
        self.flows.entry(seen).or_default().add(&evidence);
    }

    fn name(&mut self, line: &Value) {
        let text = line["name"].as_str().unwrap_or_default();
        let addresses = line["addresses"].as_array();
        let has_address = addresses.is_some_and(|addresses| !addresses.is_empty());
        let name: Option<Hostname> = text.parse().ok();
        match name {
            Some(name) if has_address => {
                self.names.entry(name).or_default().add(&Evidence::of(line));
            }
            None if has_address => {
                let text = cut(&shown(text), 80);
                self.unsayable.insert(format!("the name {text}"));
            }
            _ => drop(self.unanswered.insert(cut(&shown(text), 80))),
        }
    }
}

/// What is found about one session.
#[derive(Debug, Default)]
struct Session {
    has_ended: bool,
    remarks: Vec<String>,
    scanned: BTreeSet<String>,
}

impl Session {
    fn remark(&mut self, text: &str) {
        if self.remarks.len() < REMARKS && !self.remarks.iter().any(|known| known == text) {
            self.remarks.push(text.to_owned());
        }
    }

    fn scan(&mut self, what: String) {
        if self.scanned.len() < MOST {
            self.scanned.insert(what);
        }
    }

    /// Denials that no honest mistake explains, or too many of those that one does.
    fn deny(&mut self, kind: &str, reason: &str, what: &str) {
        let what = cut(&shown(what), 80);
        match (kind, reason) {
            (_, "metadata-service") => {
                self.remark(&format!("it tried a cloud metadata service ({what})"));
            }
            (_, "own-address") => self.remark(&format!("it tried this machine itself ({what})")),
            ("claim", _) => {
                self.remark(&format!(
                    "a connection showed a name that it may not ({what})"
                ));
            }
            ("flow", "special-address" | "known-network" | "name-points-inward") => {
                self.scan(what);
            }
            // With the internet closed, all else has one reason.
            ("flow", "internet-off") if flow(&what).is_some_and(|it| is_special(&it)) => {
                self.scan(what);
            }
            _ => {}
        }
    }
}

fn is_special(flow: &Flow) -> bool {
    let class = registry::classify(flow.destination());
    matches!(class, registry::Class::Special(_))
}

/// A flow as the log writes it.
fn flow(text: &str) -> Option<Flow> {
    let target: Target = text.parse().ok()?;
    let Host::Address(address) = target.host() else {
        return None;
    };
    let socket = || Some((*address, target.port()?.get()).into());
    match target.protocol()? {
        Protocol::Tcp => Flow::tcp(socket()?),
        Protocol::Udp => Flow::udp(socket()?),
        Protocol::Icmp => Some(Flow::echo(*address)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn connections_with_more_names_than_the_log_has_are_counted() {
        let mut observed = Observed::default();
        let mut open = json!({ "event": "open", "to": "tcp://203.0.113.1:443", "reason": "internet",
            "names": ["a.example"] });
        for more in [json!(null), json!(31), json!(1), json!("x")] {
            open["more_names"] = more;
            observed.line(&open, &mut Session::default()).unwrap();
        }
        assert_eq!(observed.abridged, 2);
    }
}
