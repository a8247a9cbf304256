//! What to make of what was seen. Pure: every judgement is a function of data, so that each
//! protection can be taken out of the data and its check watched to fail.

mod environment;
mod files;
mod network;
mod process;

use std::{
    collections::BTreeSet,
    net::IpAddr,
    path::{Path, PathBuf},
};

pub(super) use self::files::replaced;
use stockade_config::{Effective, Mode};
use stockade_sys::confine::Landlock;
use stockade_wall::{Operation, Plan};

use super::{
    messages::{Observations, SecondAssignment, SecondObservations},
    outside::Outside,
    report::{Check, Finding},
};

pub(super) struct Case<'a> {
    pub(super) effective: &'a Effective,
    /// What a session of this configuration is to be.
    pub(super) plan: &'a Plan,
    pub(super) home: &'a Path,
    pub(super) outside: &'a Outside,
    /// What was given to the session to reach, for control.
    pub(super) controls: Controls,
    pub(super) seen: Observations,
    /// The file that was left in the workspace is there outside.
    pub(super) left_is_found: bool,
    /// What listens inside was reached from outside.
    pub(super) listener_was_reached: bool,
    pub(super) second: SecondAssignment,
    pub(super) then: SecondObservations,
    /// Destinations that were not tried, because a rule opens them.
    pub(super) opened: Vec<IpAddr>,
    pub(super) log: Option<Log>,
}

/// Whether verify could give the session something to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controls {
    Given,
    /// The administrator locked the network.
    Locked,
}

/// What the session's log says of destinations.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) denied: BTreeSet<String>,
    pub(super) opened: BTreeSet<String>,
}

/// What a session can find out about itself, with nobody outside to compare with.
pub(super) fn inside(seen: &Observations, landlock: Landlock) -> Vec<Finding> {
    let check = Check::new(
        "files.system",
        "the system and Stockade's own files cannot be written",
    );
    let written = seen.writes.iter().filter(|(_, tried)| tried.worked());
    let faults: Vec<_> = written
        .map(|(path, _)| format!("{} could be written to", shown(path)))
        .collect();
    let mut findings = process::inside(seen, landlock);
    findings.push(check.unless(&faults, "each attempt is refused"));
    findings
}

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    [
        process::findings(case),
        files::findings(case),
        environment::findings(case),
        network::findings(case),
    ]
    .concat()
}

impl Case<'_> {
    fn mode(&self) -> Mode {
        self.effective.network.mode.value
    }

    /// Whether a namespace is another than the host's; nothing if that cannot be told.
    fn is_apart(&self, kind: &str) -> Option<bool> {
        let outside = self.outside.namespaces.get(kind)?;
        Some(self.seen.namespaces.get(kind)? != outside)
    }

    fn planned(&self, path: &Path) -> Option<&Operation> {
        let steps = self.plan.files.iter();
        let deepest = steps
            .filter(|it| !matches!(it.operation, Operation::Freeze | Operation::Link { .. }))
            .filter(|it| path.starts_with(&it.at))
            .max_by_key(|it| it.at.components().count());
        deepest.map(|it| &it.operation)
    }

    /// Whether the plan shows what is at this path outside.
    fn is_shown(&self, path: &Path) -> bool {
        let operation = self.planned(path);
        operation.is_some_and(|it| it.source().is_some())
    }

    /// Whether the plan lets the command write at this path.
    fn is_writable(&self, path: &Path) -> bool {
        matches!(
            self.planned(path),
            Some(
                Operation::Writable { .. }
                    | Operation::Scratch { .. }
                    | Operation::Kept { .. }
                    | Operation::Empty { .. }
                    | Operation::Device { .. }
            )
        )
    }

    /// The names right below a directory that lead to something of the plan's.
    fn planned_below(&self, directory: &Path) -> BTreeSet<String> {
        let below = |path: &Path| {
            let rest = path.strip_prefix(directory).ok()?;
            let first = rest.components().next()?;
            Some(first.as_os_str().to_string_lossy().into_owned())
        };
        let steps = self.plan.files.iter();
        steps.filter_map(|it| below(&it.at)).collect()
    }
}

/// Paths to be told to others.
pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What the plan protects in directories that can be written.
pub(super) fn guarded(plan: &Plan, outside: &Outside) -> Vec<PathBuf> {
    let steps = plan.files.iter();
    steps
        .filter(|it| matches!(it.operation, Operation::Guard(_)))
        .map(|it| it.at.clone())
        .filter(|path| outside.canaries.hidden.as_ref() != Some(path))
        .collect()
}
