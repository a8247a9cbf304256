//! All repositories that git outside may be led to from the workspace.
//!
//! They are the workspace's own, those of its worktrees and submodules, those that a gitlink of an
//! index leads to, at any depth, and those that lie in the tree as such. The tree may be
//! of any size: a walk through it ends when its bounds are reached, and says so.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    bounds::{Bounds, Unseen},
    index,
};
use crate::{
    beneath,
    facts::{Git, looks_like_repository, named_directory},
};

/// An index of a million files is about this long.
const LONGEST_INDEX: u64 = 128 << 20;
const MOST_DEEP: usize = 64;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Repositories {
    /// The directories of repositories, and the worktree of each where it is known.
    pub(super) found: BTreeMap<PathBuf, Repository>,
    /// What git keeps of a worktree: `worktrees/NAME` of a repository.
    pub(super) worktrees: BTreeSet<PathBuf>,
    /// What is called `.git` and is neither a directory nor a file that names one.
    /// Whether git at the top goes there by itself.
    pub(super) astray: BTreeMap<PathBuf, bool>,
    pub(super) unseen: Unseen,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Repository {
    pub(super) root: Option<PathBuf>,
    /// git at the top of the workspace goes there by itself.
    pub(super) is_reached: bool,
}

pub(super) struct Search<'a> {
    pub(super) workspace: &'a Path,
    /// All that a session can write of repositories.
    pub(super) writable: &'a [&'a Path],
    pub(super) bounds: &'a Bounds<'a>,
    pub(super) repositories: Repositories,
}

impl Search<'_> {
    /// What git comes to from the top.
    pub(super) fn look_from_top(&mut self, git: &Git) {
        self.look_at(self.workspace, true, 0);
        for directory in &git.directories {
            let root = (directory == self.workspace).then(|| self.workspace.to_owned());
            self.add(directory, root, true, 0);
        }
        if git.refused.is_some() {
            let dot_git = self.workspace.join(".git");
            self.repositories.astray.insert(dot_git, true);
        }
    }

    /// What lies in the tree, as deep as this.
    pub(super) fn look_in_tree(&mut self, deepest: usize) {
        let mut level = vec![self.workspace.to_owned()];
        for _ in 0..deepest {
            let mut below = Vec::new();
            for directory in &level {
                if !self.list(directory, &mut below) {
                    let why = "the tree is too large to look for repositories in all of it";
                    self.repositories.unseen.add(self.workspace, why);
                    return;
                }
            }
            if below.is_empty() {
                return;
            }
            level = below;
        }
    }

    /// One directory of the tree. Whether there was time for it.
    fn list(&mut self, directory: &Path, below: &mut Vec<PathBuf>) -> bool {
        if self.bounds.are_reached() {
            return false;
        }
        let Ok(entries) = fs::read_dir(directory) else {
            return true;
        };
        let mut parts = 0;
        for entry in entries {
            if self.bounds.are_reached() {
                return false;
            }
            let Ok(entry) = entry else { continue };
            let name = entry.file_name();
            if name == ".git" {
                if directory != self.workspace {
                    self.look_at(directory, false, 0);
                }
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                parts += usize::from(name == "objects" || name == "refs");
                below.push(directory.join(name));
            }
        }
        if parts == 2 && looks_like_repository(directory) {
            self.add(directory, None, false, 0);
        }
        true
    }

    /// Whatever `.git` of a worktree is.
    fn look_at(&mut self, root: &Path, is_reached: bool, depth: usize) {
        let dot_git = root.join(".git");
        let Ok(metadata) = fs::symlink_metadata(&dot_git) else {
            return;
        };
        if metadata.is_dir() {
            self.add(&dot_git, Some(root.to_owned()), is_reached, depth);
            return;
        }
        if metadata.is_symlink() {
            self.repositories.astray.insert(dot_git.clone(), is_reached);
            if let Ok(real) = fs::canonicalize(&dot_git)
                && real.is_dir()
                && self.is_writable(&real)
            {
                self.add(&real, Some(root.to_owned()), is_reached, depth);
            }
            return;
        }
        match named_directory(&dot_git) {
            Some(named) if self.is_writable(&named) => {
                self.add(&named, Some(root.to_owned()), is_reached, depth);
            }
            // No session could have changed what is there.
            Some(_) => {}
            None => {
                self.repositories.astray.insert(dot_git, is_reached);
            }
        }
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().any(|place| path.starts_with(place))
    }

    fn add(&mut self, directory: &Path, root: Option<PathBuf>, is_reached: bool, depth: usize) {
        let is_worktree = directory.parent().and_then(Path::file_name)
            == Some("worktrees".as_ref())
            && directory.join("commondir").exists();
        if is_worktree {
            self.add_worktree(directory, root, is_reached, depth);
            if let Some(owner) = directory.ancestors().nth(2) {
                self.add(owner, None, is_reached, depth);
            }
            return;
        }
        let known = self.repositories.found.get(directory).cloned();
        let had_root = known.as_ref().is_some_and(|known| known.root.is_some());
        let was_reached = known.as_ref().is_some_and(|known| known.is_reached);
        let repository = Repository {
            root: root
                .clone()
                .or(known.as_ref().and_then(|known| known.root.clone())),
            is_reached: is_reached || was_reached,
        };
        self.repositories
            .found
            .insert(directory.to_owned(), repository);
        if depth > MOST_DEEP || self.bounds.are_reached() {
            let why = "there are too many repositories in one another";
            self.repositories.unseen.add(directory, why);
            return;
        }
        // What git follows by itself comes first.
        if let Some(root) = root
            && (!had_root || (is_reached && !was_reached))
        {
            self.linked(directory, &root, is_reached, depth);
        }
        if known.is_none() {
            self.modules(&directory.join("modules"), is_reached, depth + 1);
            self.worktrees(&directory.join("worktrees"), is_reached, depth + 1);
        }
    }

    fn add_worktree(
        &mut self,
        directory: &Path,
        root: Option<PathBuf>,
        is_reached: bool,
        depth: usize,
    ) {
        let is_new = self.repositories.worktrees.insert(directory.to_owned());
        if let Some(root) = root.filter(|_| is_new)
            && self.is_writable(&root)
        {
            self.linked(directory, &root, is_reached, depth);
        }
    }

    /// The repositories of submodules. Their names may have slashes in them.
    fn modules(&mut self, directory: &Path, is_reached: bool, depth: usize) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries {
            if depth > MOST_DEEP || self.bounds.are_reached() {
                let why = "there are too many submodules to look at all of them";
                self.repositories.unseen.add(directory, why);
                return;
            }
            // Not what a link leads to, unless it comes to be named.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if looks_like_repository(&path) || path.join("config").exists() {
                self.add(&path, None, is_reached, depth);
            } else {
                self.modules(&path, is_reached, depth + 1);
            }
        }
    }

    fn worktrees(&mut self, directory: &Path, is_reached: bool, depth: usize) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries {
            if self.bounds.are_reached() {
                let why = "there are too many worktrees to look at all of them";
                self.repositories.unseen.add(directory, why);
                return;
            }
            let path = entry.path();
            let back = beneath::read(&path.join("gitdir")).ok();
            let root = back.and_then(|line| {
                let line = line.strip_suffix(b"\n").unwrap_or(&line).to_vec();
                let line = PathBuf::from(
                    <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(line),
                );
                crate::facts::absolute(&path.join(line))
                    .parent()
                    .map(Path::to_owned)
            });
            self.add_worktree(&path, root, is_reached, depth);
        }
    }

    /// The repositories that the gitlinks of an index lead to.
    fn linked(&mut self, directory: &Path, root: &Path, is_reached: bool, depth: usize) {
        let mut indexes = vec![directory.join("index")];
        // Of a split index; usually there are none.
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let shared = entries.filter(|entry| {
            let name = entry.file_name();
            name.as_encoded_bytes().starts_with(b"sharedindex.")
        });
        indexes.extend(shared.take(16).map(|entry| entry.path()));
        for path in indexes {
            let links = match self.bounds.read(&path, LONGEST_INDEX) {
                Ok(index) => index::gitlinks(&index),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => None,
            };
            let Some(links) = links else {
                let why = "it is an index of git's that cannot be read";
                self.repositories.unseen.add(&path, why);
                continue;
            };
            for link in links {
                if self.bounds.are_reached() {
                    let why = "there are too many submodules to look at all of them";
                    self.repositories.unseen.add(&path, why);
                    return;
                }
                let nested = crate::facts::absolute(&root.join(link));
                if nested.starts_with(root) && nested != root {
                    self.look_at(&nested, is_reached, depth + 1);
                }
            }
        }
    }
}
