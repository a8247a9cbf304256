//! The repositories of submodules, which git finds by their names.
//!
//! A name may have slashes in it, and any other name of git's: `x/logs/y` is a submodule to `git fetch`,
//! whatever lies in the place of `x`.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::{super::objects::is_of_single, MANY_SUBMODULES, MOST_DEEP, Search, TOO_DEEP};
use crate::{
    facts::{line_of, looks_like_repository},
    nofollow,
};

/// What a repository has of its own, in which a file called `config` may be a branch.
const PARTS: &[&str] = &[
    "branches", "hooks", "info", "lfs", "logs", "objects", "refs", "rr-cache",
];
/// How a file begins that names the directory of a repository.
pub(in crate::git) const GITFILE: &[u8] = b"gitdir: ";
/// What is looked at with each repository.
const OWN: &[&str] = &["modules", "worktrees"];

impl Search<'_> {
    /// Those of a repository, or of a worktree. Behind a link, they are looked at where they are.
    pub(super) fn modules_of(&mut self, directory: &Path, is_reached: bool, depth: usize) {
        let modules = nofollow::real(&directory.join("modules")).ok();
        if let Some(modules) = modules.filter(|path| self.is_writable(path)) {
            self.modules(&modules, is_reached, depth + 1, false);
        }
    }

    fn modules(&mut self, directory: &Path, is_reached: bool, depth: usize, is_part: bool) {
        for path in self.below(directory) {
            if depth > MOST_DEEP {
                self.repositories.unseen.add(directory, MANY_SUBMODULES);
                return;
            }
            if self.is_over(directory, MANY_SUBMODULES) {
                return;
            }
            self.module(&path, is_reached, depth, is_part);
        }
    }

    /// `is_part`: it lies among what another repository has of its own.
    fn module(&mut self, path: &Path, is_reached: bool, depth: usize, is_part: bool) {
        // `x/config` may be a submodule, too.
        let has_settings = || {
            let metadata = fs::symlink_metadata(path.join("config"));
            metadata.is_ok_and(|metadata| !metadata.is_dir())
        };
        let is_one = looks_like_repository(path) || (!is_part && has_settings());
        if !is_one {
            return self.modules(path, is_reached, depth + 1, is_part);
        }
        self.add(path, None, is_reached, depth);
        // That of `a/b` may lie in that of `a`, to `git fetch`.
        let is_gits = is_repository_to_git(path);
        for below in self.below(path) {
            let is_one_of = |names: &[&str]| names.iter().any(|name| below.ends_with(name));
            if is_one_of(OWN) {
                continue;
            }
            if is_gits && is_one_of(&["objects"]) {
                self.among_objects(&below, is_reached, depth + 1);
                continue;
            }
            if depth > MOST_DEEP || self.bounds.are_reached() {
                self.repositories.unseen.add(path, TOO_DEEP);
                return;
            }
            let is_part = is_part || is_one_of(PARTS);
            self.module(&below, is_reached, depth + 1, is_part);
        }
    }

    /// Git has directories for single objects there, in which there is none. They are many.
    fn among_objects(&mut self, objects: &Path, is_reached: bool, depth: usize) {
        // Where file systems count directories by their links, two are its own.
        let has_none = |path: &Path| fs::symlink_metadata(path).is_ok_and(|it| it.nlink() == 2);
        for below in self.below(objects) {
            if self.is_over(objects, MANY_SUBMODULES) {
                return;
            }
            if !(is_of_single(&below, objects) && has_none(&below)) {
                self.module(&below, is_reached, depth + 1, true);
            }
        }
    }

    /// What git finds by the name of a submodule among what it has of a worktree.
    pub(super) fn among_worktree(&mut self, directory: &Path, is_reached: bool, depth: usize) {
        if directory.iter().any(|name| name == "modules") {
            for below in self.below(directory) {
                if !below.ends_with("modules") {
                    self.module(&below, is_reached, depth + 1, true);
                }
            }
        }
    }

    /// The directories in another. Not what a link leads to, unless it comes to be named. A file that names
    /// a directory is one to git, too, which makes none there.
    fn below(&mut self, directory: &Path) -> Vec<PathBuf> {
        let mut entries = self.listed(directory);
        let is_file = |it: &fs::DirEntry| it.file_type().is_ok_and(|kind| kind.is_file());
        let files = entries.iter().filter(|entry| is_file(entry));
        let files = files.map(fs::DirEntry::path);
        let gitfiles = files.filter(|path| nofollow::begins_with(path, GITFILE));
        self.repositories.gitfiles.extend(gitfiles);
        entries.retain(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        entries.iter().map(fs::DirEntry::path).collect()
    }

    /// Whether git finds what lies there by the name of a submodule.
    pub(super) fn is_named(&self, directory: &Path) -> bool {
        let is_of = |own: &PathBuf| {
            let below = directory.strip_prefix(own);
            below.is_ok_and(|below| {
                let names: Vec<_> = below.iter().take(3).collect();
                match names.as_slice() {
                    [first, ..] if *first == "modules" => true,
                    [first, _, third] => *first == "worktrees" && *third == "modules",
                    _ => false,
                }
            })
        };
        self.own.iter().any(is_of)
    }
}

/// As git tells it: by what is in `HEAD`, too.
fn is_repository_to_git(directory: &Path) -> bool {
    let head = nofollow::read(&directory.join("HEAD")).unwrap_or_default();
    let names_branch = || {
        let branch = head.strip_prefix(b"ref:");
        branch.is_some_and(|name| name.trim_ascii_start().starts_with(b"refs/"))
    };
    let line = line_of(&head);
    let is_id = matches!(line.len(), 40 | 64) && line.iter().all(u8::is_ascii_hexdigit);
    let is_there = |name: &str| {
        let path = directory.join(name);
        let is_entered = rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).is_ok();
        is_entered && fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
    };
    let is_alone = fs::symlink_metadata(directory.join("commondir")).is_err();
    is_alone && (is_id || names_branch()) && is_there("objects") && is_there("refs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_takes_for_no_repository_is_none() {
        let place = tempfile::tempdir().unwrap();
        let is_one = |head: &str| {
            fs::write(place.path().join("HEAD"), head).unwrap();
            is_repository_to_git(place.path())
        };
        assert!(!is_one("ref: refs/heads/main\n"));
        for name in ["objects", "refs"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let id = "a".repeat(40);
        for head in ["ref: refs/heads/main\n", "ref:refs/x", &id, &"0".repeat(64)] {
            assert!(is_one(head), "{head}");
        }
        for head in ["", "junk", "ref: heads/main\n", "ref: ../x", &id[1..]] {
            assert!(!is_one(head), "{head}");
        }
        fs::write(place.path().join("commondir"), "x").unwrap();
        assert!(!is_one("ref: refs/heads/main\n"));
    }
}
