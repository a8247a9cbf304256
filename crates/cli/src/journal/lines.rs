//! The lines of the log. Names of fields stay the same over versions; a change of their
//! meaning is a new number in `v`.

use std::{
    ffi::OsString,
    net::IpAddr,
    path::Path,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use stockade_config::Effective;
use stockade_gate::{Fix, Ruling, Subject};
use stockade_policy::{Flow, Hostname, Verdict};
use stockade_wall::Layer;

use super::{Line, who::Process};

const VERSION: u32 = 1;

/// What there is to say about the start.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) id: &'a str,
    pub(crate) workspace: &'a Path,
    pub(crate) command: &'a [OsString],
    pub(crate) effective: &'a Effective,
    pub(crate) layers: &'a [Layer],
}

/// What there is to say about the end.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: u8,
}

fn line(when: SystemTime, event: &str, fields: Value) -> Line {
    let mut line = Line::new();
    line.insert("v".to_owned(), json!(VERSION));
    line.insert("time".to_owned(), json!(time(when)));
    line.insert("event".to_owned(), json!(event));
    if let Value::Object(fields) = fields {
        line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    }
    line
}

/// As RFC 3339 has it, in UTC.
fn time(when: SystemTime) -> String {
    jiff::Timestamp::try_from(when).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}

pub(super) fn start(start: &Start<'_>) -> Line {
    let network = &start.effective.network;
    let layers: Line = start
        .layers
        .iter()
        .map(|layer| (layer.name.to_owned(), json!(layer.state.to_string())))
        .collect();
    let command: Vec<_> = start
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    line(
        SystemTime::now(),
        "start",
        json!({
            "session": start.id,
            "pid": std::process::id(),
            "stockade": env!("CARGO_PKG_VERSION"),
            "kernel": rustix::system::uname().release().to_string_lossy(),
            "workspace": start.workspace.to_string_lossy(),
            "command": command,
            "profile": start.effective.profile,
            "mode": network.mode.value.to_string(),
            "internet": network.internet.value,
            "rules": network.allow.len(),
            "policy": start.effective.hash(),
            "layers": layers,
        }),
    )
}

pub(super) fn opened(
    when: SystemTime,
    (id, flow, names): (u64, &Flow, &[Hostname]),
    (verdict, origin): (&Verdict, Option<String>),
    process: Option<&Process>,
) -> Line {
    let names: Vec<_> = names.iter().map(Hostname::as_str).collect();
    line(
        when,
        "open",
        json!({
            "flow": id,
            "to": flow.to_string(),
            "names": (!names.is_empty()).then_some(names),
            "reason": verdict.reason().name(),
            "by": verdict.decided_by().to_string(),
            "at": origin,
            "process": process,
        }),
    )
}

pub(super) fn closed(
    when: SystemTime,
    id: u64,
    (sent, received): (u64, u64),
    lasted: Option<Duration>,
) -> Line {
    line(
        when,
        "close",
        json!({
            "flow": id,
            "sent": sent,
            "received": received,
            "seconds": lasted.map(|lasted| (lasted.as_secs_f64() * 1e3).round() / 1e3),
        }),
    )
}

pub(super) fn denied(
    when: SystemTime,
    subject: &Subject,
    ruling: &Ruling,
    count: u64,
    process: Option<&Process>,
) -> Line {
    let (kind, what) = match subject {
        Subject::Flow(flow) => ("flow", flow.to_string()),
        Subject::Name(name) => ("name", name.clone()),
        Subject::Claim(flow, name) => ("claim", format!("{name} at {flow}")),
        Subject::HostPort(_) => ("host-port", subject.to_string()),
    };
    let reason = match ruling {
        Ruling::Flow(verdict) => verdict.reason().name(),
        Ruling::Name(verdict) => verdict.reason().name(),
        Ruling::HostPort(_) => "loopback",
        Ruling::Odd(_) => "malformed",
    };
    let (fix, setting) = match ruling.fix() {
        Some(Fix::Allow(rule)) => (Some(rule.to_string()), None),
        Some(port @ Fix::HostPort(_)) => (None, Some(port.to_string())),
        None => (None, None),
    };
    line(
        when,
        "deny",
        json!({
            "kind": kind,
            "what": what,
            "count": count,
            "reason": reason,
            "text": ruling.to_string(),
            "fix": fix,
            "setting": setting,
            "process": process,
        }),
    )
}

pub(super) fn answered(
    when: SystemTime,
    name: &Hostname,
    kind: &str,
    addresses: &[IpAddr],
) -> Line {
    line(
        when,
        "name",
        json!({ "name": name.as_str(), "type": kind, "addresses": addresses }),
    )
}

pub(super) fn reloaded(when: SystemTime, internet: bool, rules: usize, policy: &str) -> Line {
    line(
        when,
        "reload",
        json!({ "internet": internet, "rules": rules, "policy": policy }),
    )
}

pub(super) fn lost(when: SystemTime, count: u64) -> Line {
    line(when, "lost", json!({ "count": count }))
}

pub(super) fn end(when: SystemTime, end: &End, denied: u64) -> Line {
    line(when, "end", json!({ "code": end.code, "denied": denied }))
}
