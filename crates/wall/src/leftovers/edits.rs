//! Changes of files that run by themselves outside and that the command may write: those that git
//! tracks, and new ones. They are shown by lines, at the end and in the log as soon as they happen.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    bounds::Bounds,
    content::Content,
    diff,
    finding::{Change, Finding},
};
use crate::{facts::Facts, tables::autorun::WORKSPACE};

/// The paths whose changes are shown by lines.
#[derive(Debug)]
pub(super) struct Edits {
    /// Files that git tracks, alone or in directories of the table.
    tracked: BTreeSet<PathBuf>,
    /// These, and the names of the table, with who runs them.
    watched: BTreeMap<PathBuf, &'static str>,
}

impl Edits {
    pub(super) fn new(facts: &Facts) -> Self {
        let tops = facts.projects();
        let guards = WORKSPACE.iter().filter(|runs| runs.are_guarded());
        let names = tops.flat_map(|top| guards.clone().flat_map(|runs| runs.below(top)));
        let tracked = facts.guards.tracked.iter();
        let watched = tracked.clone().map(|it| (it.path.clone(), it.reason));
        Self {
            watched: names.chain(watched).collect(),
            tracked: tracked.map(|guarded| guarded.path.clone()).collect(),
        }
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.watched.keys().map(PathBuf::as_path)
    }

    /// What there is to say about a file, or a directory, that has changed.
    pub(super) fn findings(
        &self,
        path: &Path,
        before: Option<&Content>,
        now: &Content,
        why: &str,
    ) -> Vec<Finding> {
        let what = |before: Option<&Content>| match before {
            Some(_) => Change::Changed,
            None => Change::Appeared,
        };
        let mut finding = Finding::new(path, what(before), why);
        if let Content::Directory(files) = now {
            let mut below = self.tracked.range(path.to_owned()..);
            if !below.next().is_some_and(|next| next.starts_with(path)) {
                return vec![finding];
            }
            // Those that git tracks stand for themselves.
            let was = match before {
                Some(Content::Directory(files)) => Some(files),
                _ => None,
            };
            let is_new = |name: &&PathBuf| {
                let is_same = was.is_some_and(|was| was.get(*name) == files.get(*name));
                !is_same && !self.tracked.contains(&path.join(name))
            };
            let changed: Vec<&PathBuf> = files.keys().filter(is_new).collect();
            let finding = |name: &PathBuf| {
                let before = was.and_then(|was| was.get(name));
                let what = before.map_or(Change::Appeared, |_| Change::Changed);
                Finding::new(&path.join(name), what, why)
            };
            const MOST: usize = 16;
            let mut findings: Vec<Finding> =
                changed.iter().take(MOST).map(|it| finding(it)).collect();
            if let Some(more) = changed.len().checked_sub(MOST).filter(|more| *more > 0) {
                let why = format!("{why}; {more} more files in it");
                findings.push(Finding::new(path, Change::Changed, why));
            }
            return findings;
        }
        if self.watched.contains_key(path) {
            finding.diff = diff::lines(before, now);
        }
        vec![finding]
    }
}

/// What was seen last while the session runs.
#[derive(Debug, Default)]
pub(super) struct Seen {
    contents: BTreeMap<PathBuf, Content>,
    told: usize,
}

impl Seen {
    pub(super) fn new(edits: &Edits, baseline: &BTreeMap<PathBuf, Content>) -> Self {
        let known = edits.watched.keys();
        let known = known.filter_map(|path| Some((path.clone(), baseline.get(path)?.clone())));
        Self {
            contents: known.collect(),
            told: 0,
        }
    }

    /// What has changed since. A command that changes them without end is told of so often only;
    /// the end of the session says what became of them.
    pub(super) fn look(&mut self, edits: &Edits, bounds: &Bounds<'_>) -> Vec<Finding> {
        const MOST: usize = 256;
        let mut found = Vec::new();
        for (path, why) in &edits.watched {
            // What is gone does not run; git removes a file before it writes another.
            let Some(now) = Content::of(path, bounds) else {
                continue;
            };
            let before = self.contents.get(path);
            if before.is_some_and(|before| before.is_same(&now)) {
                continue;
            }
            found.extend(edits.findings(path, before, &now, why));
            self.contents.insert(path.clone(), now);
        }
        found.truncate(MOST.saturating_sub(self.told));
        self.told += found.len();
        found
    }
}
