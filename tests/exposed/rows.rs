//! Findings, folded into rows that people can read.
//!
//! What a step of the plan shows as a whole is one row; where it shows a directory in which
//! many programs keep things, each entry is. What no step explains stands alone.

use std::collections::{BTreeMap, BTreeSet};

use super::audit::{Audit, Process};
use super::kernel;
use super::plan::{Plan, Step, is_at_or_below};

/// Rows of one kind: what, and what is to be said of it.
pub(super) type Rows = BTreeMap<String, Row>;

#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) access: BTreeSet<String>,
    pub(super) reason: String,
}

#[derive(Debug)]
pub(super) struct Exposed {
    pub(super) files: Rows,
    pub(super) sockets: Rows,
    pub(super) variables: Rows,
    pub(super) processes: Rows,
}

pub(super) const UNEXPLAINED: &str = "**not explained by the plan**";

pub(super) fn fold(audit: &Audit, plan: &Plan) -> Exposed {
    let mut files = Rows::new();
    for (path, access) in &audit.files {
        let step = plan.step(path);
        let (what, reason) = place(path, access, step);
        let row = files.entry(what).or_default();
        row.reason = reason;
        if access.contains('r') {
            row.access.insert("read".to_owned());
        }
        if access.contains('w') {
            row.access.insert(writing(step).to_owned());
        }
    }
    let sockets = audit.sockets.iter();
    let sockets = sockets.map(|name| {
        let step = plan.step(name).filter(|step| step.word() == "socket");
        let reason = step.map_or(UNEXPLAINED, |step| step.reason.as_str());
        (name.clone(), row("connect", reason))
    });
    let variables = audit.variables.keys().map(|name| {
        let reason = plan.variable(name).unwrap_or(UNEXPLAINED);
        (name.clone(), row("read", reason))
    });
    Exposed {
        files,
        sockets: sockets.collect(),
        variables: variables.collect(),
        processes: processes(&audit.processes),
    }
}

fn row(access: &str, reason: &str) -> Row {
    Row {
        access: BTreeSet::from([access.to_owned()]),
        reason: reason.to_owned(),
    }
}

/// Whether what is written stays when the session ends.
fn writing(step: Option<&Step>) -> &'static str {
    match step.map(Step::word) {
        Some("empty" | "scratch" | "processes") => "scratch",
        Some("kept") => "kept",
        _ => "write",
    }
}

/// Under which name a file is listed, and why it is there.
fn place(path: &str, access: &str, step: Option<&Step>) -> (String, String) {
    if is_at_or_below(path, "/proc") {
        let (what, reason) = kernel::place(path, access.contains('w'));
        return (what, reason.to_owned());
    }
    let Some(step) = step.filter(|step| step.word() != "hidden") else {
        return (path.to_owned(), UNEXPLAINED.to_owned());
    };
    let below = path.strip_prefix(&step.at).unwrap_or_default();
    let first = below.trim_start_matches('/').split('/').next();
    let first = first.filter(|first| !first.is_empty());
    let what = match (step.word(), first) {
        // Many programs keep things there, each under a name of its own.
        ("scratch" | "kept", Some(first)) => format!("{}/{first}", step.at),
        // Directories on the way to what other steps show, and nothing to be read.
        ("empty", _) if !access.contains('r') => step.at.clone(),
        ("empty" | "devices", _) => path.to_owned(),
        // All of it, or nothing but itself.
        _ => step.at.clone(),
    };
    (what, step.reason.clone())
}

fn processes(found: &[Process]) -> Rows {
    let mut rows = Rows::new();
    for process in found {
        let (what, reason) = match process.place.as_str() {
            "itself" => ("the command".to_owned(), "itself"),
            "inside" if process.name == "init" => (process.name.clone(), INNER),
            "outside" => ("all processes outside".to_owned(), OUTER),
            _ => (process.name.clone(), UNEXPLAINED),
        };
        let row = rows.entry(what).or_default();
        row.reason = reason.to_owned();
        if process.place == "itself" {
            row.access.insert("everything".to_owned());
        } else {
            row.access.extend(process.looks.iter().cloned());
        }
    }
    rows
}

const INNER: &str = "process 1: starts the command and reports what becomes of it";
const OUTER: &str = "the container masks a part of /proc, so the kernel refuses a fresh one";
