//! The search for repositories in the tree, and in what git keeps for itself.

use std::{
    ffi::OsStr,
    mem::MaybeUninit,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RawDir, open, statat},
    io::Errno,
};

use super::{Search, UNLISTED};
use crate::{
    facts::{Git, looks_like_repository},
    leftovers::SHALLOW,
    nofollow,
};

/// What git reads in a worktree, in any directory of it. At a pipe, it waits.
const READ: &[&str] = &[".gitattributes", ".gitignore", ".gitmodules", ".mailmap"];

impl Search<'_> {
    /// What lies in the tree, as deep as this.
    pub(crate) fn look_in_tree(&mut self, deepest: usize) {
        self.walk(vec![self.workspace.to_owned()], deepest, false, 0);
    }

    /// What git keeps for itself is a place for repositories, too, that others lead to.
    pub(crate) fn look_in_gits(&mut self, git: &Git, deepest: usize) {
        if deepest > SHALLOW {
            let mut tops = vec![self.workspace.join(".git")];
            tops.extend(git.outside.clone());
            self.walk(tops, deepest, false, 0);
        }
    }

    /// What lies nearer to any of these comes first, so that none of them hides what is in another one; and of what
    /// is as near, what has few others beside it. A directory that was filled to take long comes after the others.
    pub(super) fn walk(
        &mut self,
        tops: Vec<PathBuf>,
        deepest: usize,
        is_reached: bool,
        depth: usize,
    ) {
        let mut level = tops;
        // One for all of them: a tree has many directories, most of them small.
        let mut buffer = Vec::with_capacity(1 << 15);
        for _ in 0..deepest {
            let mut groups = Vec::new();
            for directory in &level {
                let buffer = buffer.spare_capacity_mut();
                let mut below = Vec::new();
                if !self.list(directory, is_reached, depth, &mut below, buffer) {
                    let why = "the tree is too large to look for repositories in all of it";
                    self.repositories.unseen.add(self.workspace, why);
                    return;
                }
                groups.push(below);
            }
            groups.retain(|group| !group.is_empty());
            if groups.is_empty() {
                return;
            }
            groups.sort_by_key(Vec::len);
            level = groups.into_iter().flatten().collect();
        }
        if deepest > SHALLOW {
            let why = "the tree is too deep to look for repositories in all of it";
            self.repositories.unseen.add(self.workspace, why);
        }
    }

    /// One directory of the tree. Whether there was time for it.
    fn list(
        &mut self,
        directory: &Path,
        is_reached: bool,
        depth: usize,
        below: &mut Vec<PathBuf>,
        buffer: &mut [MaybeUninit<u8>],
    ) -> bool {
        if self.bounds.are_reached() {
            return false;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = match open(directory, flags, Mode::empty()) {
            Ok(opened) => opened,
            // Who comes from nearer by has a shorter path to it.
            Err(Errno::NAMETOOLONG) => return false,
            Err(_) => {
                // Others go by name into what can be entered only.
                let is_entered = rustix::fs::access(directory, rustix::fs::Access::EXEC_OK).is_ok();
                if !is_entered || !directory.is_dir() {
                    return true;
                }
                // A session can leave its owner's directories so.
                let open_up = || nofollow::open_up(&nofollow::pin(directory)?);
                match open_up().and_then(|()| Ok(open(directory, flags, Mode::empty())?)) {
                    Ok(opened) => opened,
                    Err(_) => {
                        self.repositories.unseen.add(directory, UNLISTED);
                        return true;
                    }
                }
            }
        };
        let (mut has_head, mut may_have_git) = (false, false);
        let mut entries = RawDir::new(&opened, buffer);
        while let Some(Ok(entry)) = entries.next() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.bounds.are_reached() {
                return false;
            }
            if name == ".git" {
                if directory == self.workspace {
                    continue;
                }
                self.look_at(directory, is_reached, depth);
            } else {
                may_have_git |= may_be(name, ".git");
            }
            has_head |= may_be(name, "HEAD");
            if entry.file_type() == FileType::Fifo && READ.iter().any(|it| name == *it) {
                const MOST: usize = 4096;
                if self.repositories.pipes.len() < MOST {
                    self.repositories.pipes.insert(directory.join(name));
                }
            }
            let is_directory = match entry.file_type() {
                // Not every file system says so here.
                FileType::Unknown => statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()),
                kind => kind.is_dir(),
            };
            if is_directory {
                let path = directory.join(name);
                if !self.bounds.hold(path.as_os_str().len()) {
                    return false;
                }
                below.push(path);
            }
        }
        if may_have_git && directory != self.workspace {
            self.look_at(directory, is_reached, depth);
        }
        if has_head && looks_like_repository(directory) {
            self.add(directory, None, self.is_named(directory), depth);
        }
        true
    }
}

/// Whether git may find what has this name by another one: where capitals do not count, `.GIT` is `.git`, and
/// other letters may stand for these, too.
fn may_be(name: &OsStr, other: &str) -> bool {
    name.eq_ignore_ascii_case(other) || !name.is_ascii()
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::{super::Repositories, *};
    use crate::leftovers::bounds::Bounds;

    /// There is time for these few entries alone.
    #[test]
    fn a_directory_that_was_filled_hides_no_repository_beside_it() {
        const FILLED: usize = 600;
        const OTHERS: usize = 8;
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        for number in 0..FILLED {
            fs::create_dir_all(top.join(format!("filled/{number}"))).unwrap();
        }
        let others = (0..OTHERS).map(|number| top.join(format!("{number}/lib/.git")));
        let others: Vec<_> = others.collect();
        for git in &others {
            fs::create_dir_all(git.join("objects")).unwrap();
            fs::create_dir(git.join("refs")).unwrap();
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        let bounds = Bounds::new(Duration::from_secs(60), FILLED + 40 * OTHERS, &|| false);
        let mut search = Search {
            workspace: &top,
            writable: &[],
            own: &[],
            remotes: &[],
            bounds: &bounds,
            since: None,
            repositories: Repositories::default(),
        };
        search.look_in_tree(16);
        assert!(bounds.are_reached(), "positive control");
        for git in others {
            assert!(search.repositories.found.contains_key(&git), "{git:?}");
        }
    }

    #[test]
    fn names_are_known_where_capitals_do_not_count() {
        for name in [".git", ".GIT", ".g\u{131}t", ".g\u{200c}it"] {
            assert!(may_be(name.as_ref(), ".git"), "{name}");
        }
        for name in [".gi", ".github", "git"] {
            assert!(!may_be(name.as_ref(), ".git"), "{name}");
        }
    }
}
