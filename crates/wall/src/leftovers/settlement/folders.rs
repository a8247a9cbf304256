//! Links in the folders that git writes to, at the end of a session, whatever else there is.
//!
//! Git writes text that a session can choose to files of its own, such as its logs, through any link in their
//! place. A session can make so many files that no look has time for all of them. So this one takes its turns: a
//! directory of each folder, then the next of each. A folder with few directories is done soon, however many
//! others have. One that is not done in time has far more than anybody needs, and goes.

use std::{
    collections::VecDeque,
    fs,
    io::ErrorKind::{NotFound, PermissionDenied},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::{
    super::{FOLDERS, bounds::Bounds, content::Content, finding::Change, restore},
    Control, Controls, Kind, MOST_FILES, Repositories, Settlement, Stage, changed,
};
use crate::{
    config::GitSettings,
    facts::is_in,
    git::{
        controls::MOST_NEW,
        links::{IN_PLACE, is_branch, is_real},
        objects::odd_in,
        repositories::UNLISTED,
    },
    nofollow,
    tables::autorun::{PIPE, REDIRECTION},
};

const UNWALKED: &str = "git writes there through links, and there was no time to look for them";
const MANY_LINKS: &str = "git writes there through links, of which there were very many";

/// Directories of a repository of which only what is directly in them is looked at.
const FLAT: [&str; 10] = [
    "",
    "worktrees",
    "modules",
    "info",
    "objects",
    "objects/info",
    "objects/info/commit-graphs",
    "objects/pack",
    "reftable",
    "refs",
];

/// With so many directories, a folder of a repository that was there before goes as well if it is not done.
const GROWN: usize = 512;

/// A part of a repository, and what is left to be looked at of it.
struct Folder<'a> {
    repository: &'a Path,
    path: PathBuf,
    left: VecDeque<PathBuf>,
    is_flat: bool,
    seen: usize,
    links: usize,
    /// A directory in it has changed since the session began.
    is_touched: bool,
}

impl Settlement<'_> {
    pub(in crate::leftovers) fn close_folders(
        &self,
        repositories: &Repositories,
        is_interrupted: &dyn Fn() -> bool,
    ) {
        let bounds = Bounds::new(FOLDERS, MOST_FILES, is_interrupted);
        let known = &self.watch.baseline.repositories;
        let all = repositories.found.keys().chain(&repositories.worktrees);
        let (known, new): (Vec<_>, Vec<_>) = all.partition(|it| known.contains(*it));
        // However many repositories a session makes, there is time for those that were there.
        let half = bounds.half();
        let unfinished = self.walk(&known, repositories, &half);
        // The end says so for all of it.
        if is_interrupted() {
            return;
        }
        for folder in unfinished {
            // The user's own may be many, on a slow disk.
            let is_grown = folder.seen + folder.left.len() >= GROWN;
            self.give_up(&folder, is_grown);
        }
        let unfinished = self.walk(&new, repositories, &bounds);
        if is_interrupted() {
            return;
        }
        for folder in unfinished {
            self.give_up(&folder, true);
        }
    }

    /// Says which folders are not done.
    fn walk<'a>(
        &self,
        tops: &[&'a PathBuf],
        repositories: &Repositories,
        bounds: &Bounds<'_>,
    ) -> VecDeque<Folder<'a>> {
        let folders = tops.iter().copied().flat_map(|top| {
            let deep = IN_PLACE.iter().map(|name| (name, false));
            deep.chain(FLAT.iter().map(|name| (name, true)))
                .map(move |(name, is_flat)| {
                    let path = if name.is_empty() {
                        top.clone()
                    } else {
                        top.join(name)
                    };
                    Folder {
                        repository: top,
                        left: [path.clone()].into(),
                        path,
                        is_flat,
                        seen: 0,
                        links: 0,
                        is_touched: false,
                    }
                })
        });
        let is_ours = |folder: &Folder<'_>| {
            is_in(&folder.path, &self.watch.writable) && is_real(&folder.path)
        };
        let mut folders: VecDeque<_> = folders.filter(is_ours).collect();
        while let Some(mut folder) = folders.pop_front() {
            if bounds.are_reached() {
                folders.push_front(folder);
                break;
            }
            if self.step(&mut folder, repositories, bounds) && !folder.left.is_empty() {
                folders.push_back(folder);
            }
        }
        folders
    }

    /// Looks at the next directory of a folder. Whether there is more to be looked at.
    fn step(
        &self,
        folder: &mut Folder<'_>,
        repositories: &Repositories,
        bounds: &Bounds<'_>,
    ) -> bool {
        let Some(directory) = folder.left.pop_front() else {
            return false;
        };
        folder.seen += 1;
        folder.is_touched |= fs::symlink_metadata(&directory)
            .is_ok_and(|metadata| changed(&metadata) >= self.watch.taken(&directory));
        let odd = match odd_in(&directory, usize::MAX, &|| bounds.are_reached()) {
            Ok(odd) => odd,
            Err(error) if error.kind() == NotFound => return true,
            // It is another user's, since the owner is let in.
            Err(error) if error.kind() == PermissionDenied => {
                self.find(&directory, Change::Unseen, UNLISTED);
                return true;
            }
            // Its path may be too long here, and not for git, which may come by a shorter one.
            Err(_) => {
                self.give_up(folder, true);
                return false;
            }
        };
        for (path, is_pipe) in odd.links {
            let before = self.watch.baseline.contents.get(&path);
            let is_same = |content: Content| before.is_some_and(|before| before.is_same(&content));
            if is_branch(&path) || link_at(&path).is_some_and(is_same) {
                continue;
            }
            folder.links += 1;
            if folder.links <= MOST_NEW {
                self.judge_link(folder, &path, is_pipe, repositories);
            } else if !folder.is_flat {
                self.close(folder, MANY_LINKS);
                return false;
            } else if self.watch.mode != GitSettings::Tell {
                let covers = &self.watch.covers;
                let removed = restore::put(&path, None, &self.patience, covers, None, || true);
                let change = Box::new(Change::Appeared);
                match removed {
                    Ok(()) => self.find(&directory, Change::Undone(change), MANY_LINKS),
                    Err(_) => self.find(&directory, Change::Unseen, MANY_LINKS),
                }
            }
        }
        if odd.is_cut {
            folder.left.push_front(directory);
        } else if !folder.is_flat {
            folder.left.extend(odd.directories);
        }
        true
    }

    fn judge_link(
        &self,
        folder: &Folder<'_>,
        path: &Path,
        is_pipe: bool,
        repositories: &Repositories,
    ) {
        let Some(content) = link_at(path) else {
            return;
        };
        let before = self.watch.baseline.contents.get(path);
        let control = Control {
            kind: Kind::Whole(if is_pipe { PIPE } else { REDIRECTION }),
            content,
            repository: Some(folder.repository.to_owned()),
            stage: Stage::Written,
        };
        self.judge(path, before, &control, repositories, &Controls::new());
    }

    fn give_up(&self, folder: &Folder<'_>, closes: bool) {
        match closes && folder.is_touched && !folder.is_flat {
            true => self.close(folder, UNWALKED),
            false => self.find(&folder.path, Change::Unseen, UNWALKED),
        }
    }

    /// The folder goes as a whole. Git makes it anew. Of the logs, those of branches that were there and of
    /// stashes come back, if they are files.
    fn close(&self, folder: &Folder<'_>, why: &'static str) {
        let Ok(metadata) = fs::symlink_metadata(&folder.path) else {
            return;
        };
        let number = metadata.ino();
        let whole = Content::of_unlisted(&folder.path);
        self.set_aside(&folder.path, Some(folder.repository), whole, why);
        if !folder.path.ends_with("logs") {
            return;
        }
        let is_it = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|it| it.ino() == number);
        let aside = odd_in(folder.repository, usize::MAX, &|| false).unwrap_or_default();
        let mut aside = aside.directories.into_iter();
        let Some(aside) = aside.find(|path| *path != folder.path && is_it(path)) else {
            return;
        };
        const MOST: usize = 4096;
        let branches = self.watch.baseline.branches.get(folder.repository);
        let branches = branches.into_iter().flat_map(|branches| &branches.0);
        let branches = branches.filter_map(|name| std::str::from_utf8(name).ok());
        let names = branches
            .take(MOST)
            .map(|name| Path::new("refs/heads").join(name));
        let own = ["HEAD", "refs/stash"].map(PathBuf::from);
        for name in own.into_iter().chain(names) {
            let (from, to) = (aside.join(&name), folder.path.join(&name));
            let is_plain = || {
                let metadata = fs::symlink_metadata(&from);
                metadata.is_ok_and(|it| it.is_file() && it.nlink() == 1)
            };
            // Without a link on the way.
            if nofollow::pin(&from).is_ok()
                && is_plain()
                && to.parent().is_some_and(|it| fs::create_dir_all(it).is_ok())
            {
                // What does not come back is kept where it is.
                let _ = fs::rename(&from, &to);
            }
        }
    }
}

/// A link or pipe, as it is compared.
fn link_at(path: &Path) -> Option<Content> {
    Content::of(path, &Bounds::new(FOLDERS, 1, &|| false))
}
