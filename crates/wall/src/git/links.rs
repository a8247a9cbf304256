//! Links, pipes and files with second names among git's own files.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::ErrorKind::{NotFound, PermissionDenied},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileTypeExt as _, MetadataExt as _},
    },
    path::{Component, Path, PathBuf},
};

use super::{
    controls::{Collection, Kind, MANY_FILES, MOST_NEW},
    objects::{Odd, is_of_single, odd_in},
    repositories::{UNLISTED, is_too_deep, modules::GITFILE},
};
use crate::{
    facts::line_of,
    leftovers::{baseline::Baseline, restore::is_aside},
    nofollow::{self, MOST_ENTRIES},
    tables::autorun::{PIPE, REDIRECTION},
};

/// A path in a directory with a longer one may be too long for the kernel, and is not for git, which
/// begins at the worktree.
const LONGEST_PATH: usize = 3800;

/// What git has in a repository, and goes on writing to.
#[rustfmt::skip]
const WRITTEN: &[&str] = &[
    "logs/HEAD", "logs/refs/heads", "logs/refs/remotes", "logs/refs/stash", "refs/heads", "refs/remotes",
    "refs/tags", "refs/stash", "packed-refs", "HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "COMMIT_EDITMSG",
    "MERGE_MSG", "SQUASH_MSG", "TAG_EDITMSG", "NOTES_EDITMSG", "EDIT_DESCRIPTION", "MERGE_RR", "AUTO_MERGE",
    "index", "shallow", "gc.log", "info", "objects/info/commit-graph", "objects/pack", "rr-cache",
    "rebase-merge", "rebase-apply", "sequencer", "lfs", "modules", "worktrees", "reftable", "objects/info",
    "objects/info/commit-graphs", "objects/pack/multi-pack-index", "MERGE_MODE", "MERGE_AUTOSTASH",
    "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_LOG", "BISECT_START", "BISECT_TERMS", "BISECT_NAMES",
    "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK", "BISECT_RUN", "BISECT_FIRST_PARENT", "NOTES_MERGE_REF",
    "NOTES_MERGE_PARTIAL", "NOTES_MERGE_WORKTREE", "addp-hunk-edit.diff", "ADD_EDIT.patch", "gc.pid", "gitdir",
    "locked", "description", "lost-found",
];
/// The directories among these.
const FOLDERS: [&str; 8] = [
    "info",
    "lfs",
    "objects",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "rr-cache",
    "logs",
];

/// Those whose files git writes to in place.
pub(crate) const IN_PLACE: [&str; 6] = [
    "logs",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "rr-cache",
    "lost-found",
];
/// Those with a directory for each worktree or submodule.
const KEPT: [&str; 2] = ["worktrees", "modules"];
/// How much of these a brief look is for.
const FEW_FILES: usize = 4096;
const FEW_DIRECTORIES: usize = 1024;

/// Where files have second names in ordinary work. Git writes to none of them in place.
const STORED: [&str; 3] = ["objects", "lfs", "annex"];

impl Collection<'_> {
    /// Git reads and writes through any link in its directory, such as `logs/HEAD`,
    /// `rr-cache/*/thisimage` and `objects/info/commit-graph`, and makes none itself. They are put back.
    /// So are pipes: at one in the place of `HEAD`, git would wait until the session has planted something.
    /// So is, as a whole, a directory that is too deep or too large to be looked at.
    /// A file that git writes to in place may be a second name (a hard link) of another one. It gets to be one
    /// of its own.
    /// Of the directories of single objects in `objects`, those are looked at that have changed, or all.
    pub(super) fn add_links(&mut self, top: &Path, objects: &Path, all: bool, of: Option<&Path>) {
        let mut left = vec![top.to_owned()];
        // Where git may find a repository by the name of a submodule.
        let is_named = top.iter().any(|name| name == "modules");
        while let Some(directory) = left.pop() {
            if is_of_single(&directory, objects) {
                if self.is_over(&directory, MANY_FILES) {
                    return;
                }
                self.add_odd_objects(&directory, of);
                continue;
            }
            // Who makes a second name changes the directory that it is in.
            let links_count = !is_stored(top, objects, &directory)
                && (self.before.is_none() || self.is_touched(&directory));
            let Some(entries) = self.entries(&directory, top, of) else {
                continue;
            };
            for entry in entries {
                if self.is_over(&directory, MANY_FILES) {
                    return;
                }
                let path = entry.path();
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                self.add_entry(&path, kind, links_count, of);
                if is_named && kind.is_file() && nofollow::begins_with(&path, GITFILE) {
                    self.add(&path, Kind::Whole(REDIRECTION), of);
                }
                // Repositories of submodules and worktrees have a look of their own. Nothing leads git to what
                // was moved aside.
                let is_elsewhere = self.repositories.contains(&path)
                    || directory == top && is_aside(&entry.file_name());
                if kind.is_dir()
                    && !is_elsewhere
                    && (all || !is_of_single(&path, objects) || self.is_touched(&path))
                {
                    left.push(path);
                }
            }
            if directory == top && self.unseen.has(top, UNLISTED) {
                let folders = FOLDERS.map(|name| top.join(name));
                left.extend(folders.into_iter().filter(is_real));
            }
        }
    }

    /// What is in a directory of a repository, unless all of it is to go.
    fn entries(
        &mut self,
        directory: &Path,
        top: &Path,
        of: Option<&Path>,
    ) -> Option<Vec<fs::DirEntry>> {
        if is_too_deep(directory).is_some() || directory.as_os_str().len() > LONGEST_PATH {
            self.add_whole(directory, REDIRECTION, of);
            return None;
        }
        match nofollow::list(directory) {
            Ok(entries) if directory != top && self.has_many_new_links(&entries) => {
                self.add_whole(directory, REDIRECTION, of);
                None
            }
            Ok(entries) => Some(entries),
            Err(error) if error.kind() == NotFound => None,
            // The repository itself stays: what is most dangerous in it is known by name.
            Err(_) if directory == top => {
                self.unseen.add(top, UNLISTED);
                Some(Vec::new())
            }
            // It is another user's, since the owner is let in. No session can have made it.
            Err(error) if error.kind() == PermissionDenied => {
                self.unseen.add(directory, UNLISTED);
                None
            }
            Err(_) => {
                self.add_whole(directory, REDIRECTION, of);
                None
            }
        }
    }

    fn add_entry(&mut self, path: &Path, kind: fs::FileType, links_count: bool, of: Option<&Path>) {
        self.add_link(path, kind, of);
        if links_count && kind.is_file() && has_second_name(path) {
            self.add(path, Kind::Linked, of);
        }
    }

    /// The same in the folders whose files git writes to in place. What it writes there may be text that a
    /// session has chosen, such as the name of a person or branch: through a link, that gets into any file.
    /// And what git keeps of worktrees, it removes through one.
    pub(super) fn add_links_to_folders(&mut self, top: &Path, of: Option<&Path>) {
        for name in KEPT {
            // The end looks at what is more.
            if let Ok(odd) = odd_in(&top.join(name), FEW_FILES)
                && odd.links.len() <= MOST_NEW
            {
                self.add_odd(&odd, of);
            }
        }
        let folders = IN_PLACE.map(|name| top.join(name));
        // The logs come first, to which git writes most.
        let mut left: Vec<_> = folders.into_iter().rev().filter(is_real).collect();
        // Another look has time for more.
        let mut few = if self.is_brief {
            FEW_DIRECTORIES
        } else {
            usize::MAX
        };
        while let Some(directory) = left.pop() {
            if few == 0 || self.is_over(&directory, MANY_FILES) {
                return;
            }
            few -= 1;
            if is_too_deep(&directory).is_some() || directory.as_os_str().len() > LONGEST_PATH {
                self.add_whole(&directory, REDIRECTION, of);
                continue;
            }
            match odd_in(&directory, MOST_ENTRIES) {
                Ok(odd) => {
                    let new = odd.links.iter().filter(|(link, _)| self.is_new(link));
                    match new.count() > MOST_NEW {
                        true => self.add_whole(&directory, REDIRECTION, of),
                        false => self.add_odd(&odd, of),
                    }
                    left.extend(odd.directories);
                }
                Err(error) if error.kind() == NotFound => {}
                // It is another user's, since the owner is let in.
                Err(error) if error.kind() == PermissionDenied => {
                    self.unseen.add(&directory, UNLISTED);
                }
                Err(_) => self.add_whole(&directory, REDIRECTION, of),
            }
        }
    }

    pub(super) fn add_odd(&mut self, odd: &Odd, of: Option<&Path>) {
        for (path, _) in &odd.links {
            if let Ok(metadata) = fs::symlink_metadata(path) {
                self.add_link(path, metadata.file_type(), of);
            }
        }
    }

    /// What git writes to most, whatever else there is to be looked at: its own files, and the log of the
    /// branch that is checked out and of those that were there before.
    pub(super) fn add_links_to_logs(&mut self, top: &Path, of: Option<&Path>) {
        let head = nofollow::read(&top.join("HEAD")).unwrap_or_default();
        let current = line_of(&head).strip_prefix(b"ref:");
        let current = current.map(|name| name.trim_ascii().to_vec());
        let before = self.before.filter(|_| !self.is_brief);
        let before = before.and_then(|before| before.branches.get(top));
        let before = before.into_iter().flat_map(|branches| &branches.0);
        let before = before.map(|name| [b"refs/heads/", name.as_slice()].concat());
        let logs = current.into_iter().chain(before);
        let logs = logs.map(|name| Path::new("logs").join(OsStr::from_bytes(&name)));
        let written = WRITTEN.iter().map(PathBuf::from);
        let mut new: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for below in written.chain(logs) {
            let is_plain = |part| matches!(part, Component::Normal(_));
            if self.is_over(top, MANY_FILES) {
                return;
            }
            if !below.components().all(is_plain) {
                continue;
            }
            let mut path = top.to_owned();
            for name in &below {
                path.push(name);
                let Ok(metadata) = fs::symlink_metadata(&path) else {
                    break;
                };
                if !metadata.is_dir() {
                    let directory = path.parent().unwrap_or(top);
                    let count = new.entry(directory.to_owned()).or_default();
                    *count += usize::from(self.is_new_link(&path, metadata.file_type()));
                    // To put each of very many back takes longer than there is time.
                    match *count > MOST_NEW && directory != top {
                        true => self.add_whole(directory, REDIRECTION, of),
                        false => self.add_link(&path, metadata.file_type(), of),
                    }
                    if metadata.is_file() && metadata.nlink() > 1 {
                        self.add(&path, Kind::Linked, of);
                    }
                    break;
                }
            }
        }
    }

    fn has_many_new_links(&self, entries: &[fs::DirEntry]) -> bool {
        let is_new = |entry: &&fs::DirEntry| {
            let kind = entry.file_type();
            kind.is_ok_and(|kind| self.is_new_link(&entry.path(), kind))
        };
        entries.iter().filter(is_new).count() > MOST_NEW
    }

    fn is_new_link(&self, path: &Path, kind: fs::FileType) -> bool {
        (kind.is_symlink() || kind.is_fifo()) && self.is_new(path)
    }

    fn is_new(&self, path: &Path) -> bool {
        let is_known = |before: &Baseline| before.contents.contains_key(path);
        self.before.is_some_and(|it| !is_known(it))
    }

    pub(super) fn add_link(&mut self, path: &Path, kind: fs::FileType, of: Option<&Path>) {
        if kind.is_symlink() && !is_branch(path) {
            self.add(path, Kind::Whole(REDIRECTION), of);
        }
        if kind.is_fifo() {
            self.add(path, Kind::Whole(PIPE), of);
        }
    }
}

/// Whether a file has a second name (a hard link).
pub(super) fn has_second_name(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.nlink() > 1)
}

/// Whether a directory of a repository, or of what it borrows, holds what is written once.
fn is_stored(top: &Path, objects: &Path, directory: &Path) -> bool {
    let below = directory.strip_prefix(top).unwrap_or(directory);
    let is_store = |name: &OsStr| STORED.iter().any(|store| name == *store);
    // Those of submodules that git does not come to from here.
    let is_module = below.starts_with("modules");
    top.join("objects") != objects
        || below.iter().next().is_some_and(is_store)
        || (is_module && below.iter().any(is_store))
}

/// Whether it is a directory, and no link to one.
pub(crate) fn is_real(path: &PathBuf) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Whether a link is the old form of saying which branch is checked out.
pub(crate) fn is_branch(link: &Path) -> bool {
    let to = fs::read_link(link).unwrap_or_default();
    let is_plain = |part| matches!(part, Component::Normal(_));
    link.file_name() == Some("HEAD".as_ref())
        && to.starts_with("refs")
        && to.components().all(is_plain)
}

/// Whether a link is one by which `git init` and `git clone` try whether the file system has links. They remove it
/// at once. Nothing of git's has such a name, and it leads to its own directory.
pub(crate) fn is_trial(link: &Path, to: &Path) -> bool {
    let name = link.file_name().unwrap_or_default().as_bytes();
    let random = name.strip_prefix(b"t").unwrap_or_default();
    to == Path::new("testing") && random.len() == 6 && random.iter().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_that_git_tries_is_told_from_others() {
        let is_trial = |link: &str, to: &str| is_trial(Path::new(link), Path::new(to));
        assert!(is_trial("/w/.git/tQdp903", "testing"));
        for (link, to) in [
            ("/w/.git/tQdp903", "../testing"),
            ("/w/.git/tQdp903", "/home/dev/.bashrc"),
            ("/w/.git/tags", "testing"),
            ("/w/.git/tQdp9034", "testing"),
            ("/w/.git/xQdp903", "testing"),
            ("/w/.git/tQd.903", "testing"),
        ] {
            assert!(!is_trial(link, to), "{link} -> {to}");
        }
    }
}
