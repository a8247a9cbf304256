//! New entries of indexes for files that no session was given.
//!
//! A session can write the index of the main worktree, and those of other worktrees, whose files it does not
//! see; and its own for files that are hidden. Git outside then takes such a file into the repository,
//! with `git stash` or `git commit -a`, and the next session reads it there. So entries that a session made
//! are told. Nobody inside knows the numbers and times of such files, which git writes beside their names.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsStr,
    fs,
    hash::{BuildHasher as _, RandomState},
    io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use super::finding::{Change, Finding};
use crate::{
    facts::{Git, is_in, line_of},
    git::{
        index,
        repositories::{hash_length, settings_of},
    },
    nofollow,
};

/// An index of about 150 000 files. To read it takes a tenth of a second.
const LONGEST: u64 = 16 << 20;
/// So many worktrees of one repository are looked at.
const MOST: usize = 32;

/// The entries before a session.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// By the path of each index, with the worktree that it is of.
    before: BTreeMap<PathBuf, (PathBuf, HashSet<u64>)>,
    /// In worktrees that the command can write, only these count.
    hidden: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    /// Nobody inside knows its key.
    hasher: RandomState,
}

impl Entries {
    pub(super) fn new(top: &Path, git: &Git, hidden: Vec<PathBuf>, writable: &[PathBuf]) -> Self {
        let mut entries = Self {
            hidden,
            writable: writable.to_owned(),
            ..Self::default()
        };
        for (directory, root) in worktrees(top, git) {
            let mut all = HashSet::new();
            let is_read = entries.read(&directory, &mut |entry| {
                all.insert(entries.hasher.hash_one(entry.path));
            });
            if is_read.is_some() {
                entries.before.insert(directory, (root, all));
            }
        }
        entries
    }

    /// None if there is nobody to tell what is in it.
    fn read(&self, directory: &Path, see: &mut dyn FnMut(&index::Entry<'_>)) -> Option<()> {
        let contents = match nofollow::read_at_most(&directory.join("index"), LONGEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(()),
            contents => contents.ok()?,
        };
        let hash = hash_length(&settings_of(directory)?)?;
        index::entries(&contents, hash, see)
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        const MOST: usize = 8;
        let mut findings = Vec::new();
        for (directory, (root, before)) in &self.before {
            let mut new = Vec::new();
            let is_given = is_in(root, &self.writable);
            let _ = self.read(directory, &mut |entry| {
                if before.contains(&self.hasher.hash_one(entry.path)) || new.len() > MOST {
                    return;
                }
                let path = root.join(OsStr::from_bytes(entry.path));
                let counts = !is_given || is_in(&path, &self.hidden);
                if counts && is_foreign(&path, entry) {
                    new.push(path);
                }
            });
            for path in new {
                let why = format!(
                    "a session may have added {path:?}, which it was not given: `git stash` and `git commit -a` \
                     there copy it into the repository, where sessions read it. `git rm --cached` takes it out"
                );
                let index = directory.join("index");
                findings.push(Finding::new(&index, Change::Changed, why));
            }
        }
        findings
    }
}

/// The worktrees of a repository, by the directories in which git has their indexes.
fn worktrees(top: &Path, git: &Git) -> Vec<(PathBuf, PathBuf)> {
    let Some(repository) = git.directories.first() else {
        return Vec::new();
    };
    let own = repository.parent().filter(|_| repository.ends_with(".git"));
    let mut all = vec![(repository.clone(), own.unwrap_or(top).to_owned())];
    let others = nofollow::list(&repository.join("worktrees")).unwrap_or_default();
    for entry in others.iter().take(MOST) {
        let directory = entry.path();
        let Ok(line) = nofollow::read(&directory.join("gitdir")) else {
            continue;
        };
        let dot_git = directory.join(OsStr::from_bytes(line_of(&line)));
        if let Some(root) = dot_git.parent().and_then(|it| nofollow::real(it).ok()) {
            all.push((directory, root));
        }
    }
    all
}

/// Whether a file is there, and git did not look at it when it made the entry.
fn is_foreign(path: &Path, entry: &index::Entry<'_>) -> bool {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "git keeps the lower half of each number"
    )]
    let half = |number: u64| number as u32;
    let metadata = fs::symlink_metadata(path)
        .ok()
        .filter(fs::Metadata::is_file);
    metadata.is_some_and(|it| {
        let is_same = entry.inode == half(it.ino());
        let is_equal =
            entry.seconds == half(it.mtime().cast_unsigned()) && entry.size == half(it.size());
        !is_same && !is_equal
    })
}
