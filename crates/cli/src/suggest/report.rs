//! What `stockade suggest` prints.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use serde_json::{Value, json};
use stockade_config::{Effective, Origin, Sourced, shown, shown_path};
use stockade_policy::Rule;

use super::{Seen, Suggestion, observe::Evidence, unused};
use crate::terminal::{self, counted};

const DENIED: &str = "`stockade log --denied`";
/// Lines about one thing.
const MOST: usize = 8;

/// What the reader should know about the result, whatever becomes of it.
pub(super) fn warn(suggestion: &Suggestion) {
    let observed = &suggestion.observed;
    for why in observed.suspicious.iter().chain(&observed.incomplete) {
        tell!("stockade: WARNING: {why}");
    }
    match observed.denied {
        0 => {}
        1 => tell!("stockade: 1 attempt was denied and is not in the result: {DENIED}"),
        count => {
            tell!("stockade: {count} attempts were denied and are not in the result: {DENIED}");
        }
    }
    if observed.abridged > 0 {
        let connections = counted(observed.abridged, "connection");
        tell!(
            "stockade: {connections} went to addresses that have more names than the log shows; the \
             rules use the names that it shows"
        );
    }
    for name in suggestion.quic.iter().take(MOST) {
        tell!("stockade: QUIC to {name} is not admitted by a name; programs fall back to TCP");
    }
    let unanswered = observed.unanswered.len();
    if unanswered > 0 {
        let names: Vec<_> = observed.unanswered.iter().take(MOST).cloned().collect();
        let dots = if unanswered > MOST { ", …" } else { "" };
        tell!(
            "stockade: no rule for {} without an address: {}{dots}",
            counted(unanswered as u64, "name"),
            names.join(", ")
        );
    }
}

/// The rules are not enough, so they are not used.
pub(super) fn unproven(suggestion: &Suggestion, as_json: bool) -> Result<()> {
    let denied = &suggestion.denied;
    if as_json {
        let report =
            json!({ "sessions": suggestion.observed.sessions, "proven": false, "denied": denied });
        terminal::print(format_args!("{report:#}\n"))?;
    }
    tell!("stockade: no rules admit all that these sessions did, so there is no suggestion");
    for what in denied.iter().take(MOST) {
        tell!("stockade:   {what}");
    }
    if denied.len() > MOST {
        tell!("stockade:   and {} more", denied.len() - MOST);
    }
    Ok(())
}

pub(super) fn print(suggestion: &Suggestion, written: Option<&Path>, as_json: bool) -> Result<()> {
    let observed = &suggestion.observed;
    if as_json {
        let report = json!({
            "sessions": observed.sessions,
            "proven": true,
            "internet": false,
            "allow": rules(suggestion),
            "host_ports": observed.host_ports.keys().collect::<Vec<_>>(),
            "quic": suggestion.quic,
            "unanswered": observed.unanswered,
            "denied": observed.denied,
            "toml": suggestion.edit().to_toml(),
            "written": written.map(shown_path),
        });
        return terminal::print(format_args!("{report:#}\n"));
    }
    match written {
        Some(path) => terminal::print(format_args!("{}\n", shown_path(path)))?,
        None => terminal::write(suggestion.edit().to_toml().as_bytes())?,
    }
    tell!(
        "stockade: checked: these rules allow all of {} and {} of {}",
        counted(count(observed.flows.values()), "connection"),
        counted(observed.names.len() as u64, "name"),
        counted(observed.sessions.len() as u64, "session"),
    );
    if written.is_none() {
        tell!("stockade: to use them: stockade suggest --write");
    }
    Ok(())
}

fn count<'a>(all: impl Iterator<Item = &'a Evidence>) -> u64 {
    all.map(|evidence| evidence.count).sum()
}

fn rules(suggestion: &Suggestion) -> Vec<Value> {
    let rule = |(rule, seen): &(Rule, Seen)| {
        let evidence = match seen.connections.count {
            0 => &seen.questions,
            _ => &seen.connections,
        };
        json!({
            "rule": rule.to_string(),
            "connections": seen.connections.count,
            "questions": seen.questions.count,
            "last": evidence.last,
            "programs": evidence.programs,
        })
    };
    suggestion.rules.iter().map(rule).collect()
}

/// What the suggestion would change, as a list with signs.
pub(super) fn diff(
    suggestion: &Suggestion,
    effective: &Effective,
    as_json: bool,
) -> Result<ExitCode> {
    let in_force = effective.policy().rules;
    // A device has its rules under its own name.
    let is_there = |rule: &Rule| {
        let mut known = in_force.iter().filter(|known| !known.is_near());
        known.any(|known| known.to_string() == rule.to_string())
    };
    let internet = &effective.network.internet;
    let sessions = counted(suggestion.observed.sessions.len() as u64, "session");
    let mut lines = Vec::new();
    let mut report = json!({
        "sessions": suggestion.observed.sessions,
        "internet": { "in_force": internet.value, "suggested": false },
    });
    if internet.value {
        lines.push(format!(
            "- internet = true  # {}",
            shown(&internet.origin.to_string())
        ));
        lines.push("+ internet = false".to_owned());
    }
    let unused = unused(&suggestion.observed, effective);
    let (mut idle, mut kept, mut new) = (Vec::new(), Vec::new(), Vec::new());
    for (index, rule) in in_force.iter().enumerate() {
        let origin = effective.origin_of_rule(index).map(origin);
        let origin = origin.unwrap_or_default();
        let list = match rule.device() {
            Some(device) => format!("{device} = "),
            None if rule.is_near() => "near = ".to_owned(),
            None => String::new(),
        };
        let known = json!({ "rule": rule.to_string(), "at": origin });
        if unused.contains(&index) {
            lines.push(format!(
                "- {list}\"{rule}\"  # {origin}: nothing used it in {sessions}"
            ));
            idle.push(known);
        } else {
            lines.push(format!("  {list}\"{rule}\"  # {origin}"));
            kept.push(known);
        }
    }
    for (rule, seen) in &suggestion.rules {
        if !is_there(rule) {
            lines.push(format!("+ \"{rule}\"  # {}", seen.said()));
            new.push(rule.to_string());
        }
    }
    let (in_force, used) = (
        &effective.network.host_ports,
        &suggestion.observed.host_ports,
    );
    let (mut idle_ports, mut kept_ports, mut new_ports) = (Vec::new(), Vec::new(), Vec::new());
    for Sourced { value, origin: at } in in_force {
        let (port, at) = (value.get(), origin(at));
        if used.contains_key(&port) {
            lines.push(format!("  host_ports = {port}  # {at}"));
            kept_ports.push(port);
        } else {
            lines.push(format!(
                "- host_ports = {port}  # {at}: nothing used it in {sessions}"
            ));
            idle_ports.push(port);
        }
    }
    for (port, evidence) in used {
        if !kept_ports.contains(port) {
            let said = evidence.said("connection");
            lines.push(format!("+ host_ports = {port}  # {said}"));
            new_ports.push(*port);
        }
    }
    let is_same = |changes: [usize; 4]| changes.iter().all(|count| *count == 0);
    let changes = [idle.len(), new.len(), idle_ports.len(), new_ports.len()];
    let differs = internet.value || !is_same(changes);
    if as_json {
        report["unused"] = idle.into();
        report["used"] = kept.into();
        report["new"] = new.into();
        report["host_ports"] =
            json!({ "unused": idle_ports, "used": kept_ports, "new": new_ports });
        terminal::print(format_args!("{report:#}\n"))?;
    } else {
        terminal::print(format_args!("{}\n", lines.join("\n")))?;
    }
    Ok(ExitCode::from(u8::from(differs)))
}

fn origin(origin: &Origin) -> String {
    shown(&origin.to_string())
}

/// Another place says that the internet is open, and wins.
pub(super) fn still_open(effective: &Effective) {
    let internet = &effective.network.internet;
    if internet.value {
        tell!(
            "stockade: WARNING: the internet is still open: {} says so",
            origin(&internet.origin)
        );
    }
}
