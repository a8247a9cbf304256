//! The report on leftovers, the most dangerous first.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use crate::tables::autorun;

/// Something that will run outside and was not there before, or is not hidden any more.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    pub path: PathBuf,
    pub what: Change,
    /// Who runs it, or what it does.
    pub why: String,
    /// Of a file that git may change inside: what has changed, by lines, each safe to print.
    pub diff: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    Appeared,
    Changed,
    /// A setting of git's, as `key = value`.
    Setting(String),
    /// One that was taken out.
    SettingGone(String),
    /// Settings of git's that we cannot read: malformed, a link, or too long. Git may read them.
    Malformed,
    /// It was hidden, and is another file now.
    Replaced,
    /// It was so, and was put back to what it was before.
    Undone(Box<Change>),
    /// It was not looked at.
    Unseen,
    /// So many more of the same kind, which are not told one by one.
    More(usize),
}

/// Where what was undone comes among others.
const UNDONE: usize = 2;

impl Finding {
    pub(super) fn new(path: &Path, what: Change, why: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            what,
            why: why.into(),
            diff: Vec::new(),
        }
    }

    /// Whether it should have been put back, and was not.
    pub(super) fn is_left(&self) -> bool {
        self.why.contains("NOT be undone")
    }

    /// Whether what was there is gone, and what should be there, too.
    pub(super) fn is_removed(&self) -> bool {
        self.why.contains("was REMOVED")
    }

    /// What matters most comes first: nobody reads to the end.
    fn rank(&self) -> usize {
        match &self.what {
            Change::Unseen => 0,
            Change::Malformed | Change::Setting(_) | Change::SettingGone(_) => 1,
            Change::Appeared | Change::Changed if self.is_left() => 1,
            Change::Appeared | Change::Changed if self.is_removed() => 2,
            Change::Undone(_) => UNDONE,
            Change::Replaced => 3,
            Change::Appeared | Change::Changed => 4 + autorun::position(&self.why),
            Change::More(_) => 2,
        }
    }
}

/// The most dangerous first. Of what was undone, an index: without it, git takes all files for new. Of what
/// was not looked at, what lies nearest to the top: a session can make very many repositories below.
pub(super) fn sort(findings: &mut [Finding]) {
    let is_index = |it: &Finding| it.path.ends_with("index") && it.rank() == UNDONE;
    let depth = |it: &Finding| match it.what {
        Change::Unseen => it.path.iter().count(),
        _ => 0,
    };
    findings.sort_by_key(|it| (it.rank(), !is_index(it), depth(it)));
}

/// Of many of a kind, the first few.
#[must_use]
pub fn folded(findings: &[Finding]) -> Vec<Finding> {
    const SHOWN: usize = 3;
    let mut counts: BTreeMap<(usize, &PathBuf), usize> = BTreeMap::new();
    let mut folded: Vec<Finding> = Vec::new();
    for finding in findings {
        let count = counts.entry((finding.rank(), &finding.path)).or_default();
        *count += 1;
        if *count <= SHOWN {
            folded.push(finding.clone());
            continue;
        }
        let more = folded
            .iter_mut()
            .rev()
            .find_map(|other| match &mut other.what {
                Change::More(more) if other.path == finding.path => Some(more),
                _ => None,
            });
        match more {
            Some(more) => *more += 1,
            None => folded.push(Finding::new(&finding.path, Change::More(1), &finding.why)),
        }
    }
    folded
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path, what, why, ..
        } = self;
        match what {
            Change::Undone(change) => {
                write!(f, "undone: {}", Self::new(path, (**change).clone(), why))
            }
            Change::Appeared => write!(f, "{path:?} is new: {why}"),
            Change::Changed => write!(f, "{path:?} has changed: {why}"),
            Change::Setting(setting) => {
                write!(f, "{path:?} has a new setting {:?}: {why}", shown(setting))
            }
            Change::SettingGone(setting) => {
                write!(f, "{path:?} lost its setting {:?}: {why}", shown(setting))
            }
            Change::Malformed => write!(f, "{path:?} cannot be read: {why}"),
            Change::Replaced => write!(f, "{path:?} was replaced outside: {why}"),
            Change::Unseen => write!(f, "NOT CHECKED: {path:?}: {why}"),
            Change::More(more) => write!(f, "{path:?}: {more} more of these"),
        }
    }
}

fn shown(setting: &str) -> String {
    const LONGEST: usize = 200;
    setting.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_many_repositories_do_not_push_the_workspaces_own_from_the_top() {
        let unseen = |path: &str| Finding::new(Path::new(path), Change::Unseen, "no time");
        let undone = Change::Undone(Box::new(Change::Appeared));
        let mut findings: Vec<_> = (0..100)
            .map(|i| unseen(&format!("/w/n{i}/.git/logs")))
            .collect();
        findings.insert(0, Finding::new(Path::new("/w/x"), undone, "why"));
        findings.push(unseen("/w/.git/logs"));
        sort(&mut findings);
        assert_eq!(findings[0].path, Path::new("/w/.git/logs"));
        assert_eq!(findings[1].path, Path::new("/w/n0/.git/logs"));
        assert_eq!(findings[101].path, Path::new("/w/x"));
    }
}
