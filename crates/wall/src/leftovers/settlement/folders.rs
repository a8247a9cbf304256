//! Links in the folders that git writes to, at the end of a session, whatever else there is.
//!
//! Git writes text that a session can choose to files of its own, such as its logs, through any link in their
//! place. A session can make so many files that no look has time for all of them. So this one takes its turns:
//! some hundreds of entries of each folder, then the next of each. A folder with few entries is done soon, however
//! many others have. One that is not done in time has far more than anybody needs, and goes.

use std::{
    collections::VecDeque,
    fs,
    io::{
        self,
        ErrorKind::{NotFound, PermissionDenied},
    },
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::{
    super::{FOLDERS, bounds::Bounds, content::Content, finding::Change, restore},
    Control, Controls, Kind, MOST_FILES, Repositories, Settlement, Stage, changed,
};
use crate::{
    config::GitSettings,
    facts::{Git, is_in},
    git::{
        controls::MOST_NEW,
        links::{IN_PLACE, is_branch, is_real},
        objects::{Listing, Odd, odd_in},
        repositories::UNLISTED,
    },
    nofollow,
    tables::autorun::{PIPE, REDIRECTION},
};

const UNWALKED: &str = "git writes there through links, and there was no time to look for them";
const MANY_LINKS: &str = "git writes there through links, of which there were very many";

/// How much of a part of a repository is looked at, and what becomes of it if there was no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// What is directly in it.
    Flat,
    /// All of it. It is never moved as a whole, because nothing makes it anew.
    Whole,
    /// All of it, to which git writes in place. It goes.
    Written,
}

const PARTS: [(&str, Reach); 10] = [
    ("", Reach::Flat),
    ("worktrees", Reach::Flat),
    ("modules", Reach::Flat),
    ("info", Reach::Flat),
    ("objects", Reach::Flat),
    ("objects/info", Reach::Flat),
    ("objects/info/commit-graphs", Reach::Flat),
    ("objects/pack", Reach::Flat),
    ("reftable", Reach::Flat),
    ("refs", Reach::Whole),
];

/// With so many directories, a folder of a repository that was there before goes as well if it is not done.
const GROWN: usize = 512;

/// How many directories may be open, each read in part.
const MOST_OPEN: usize = 128;

/// A part of a repository, and what is left to be looked at of it.
#[derive(Debug)]
struct Folder<'a> {
    repository: &'a Path,
    path: PathBuf,
    reach: Reach,
    /// The directory that has been read in part.
    listing: Option<Listing>,
    left: VecDeque<PathBuf>,
    seen: usize,
    links: usize,
    /// A directory in it has changed since the session began.
    is_touched: bool,
}

impl Folder<'_> {
    fn is_done(&self) -> bool {
        self.listing.is_none() && self.left.is_empty()
    }
}

impl Settlement<'_> {
    pub(in crate::leftovers) fn close_folders(
        &self,
        gits: &[(&Path, Git)],
        repositories: &Repositories,
        is_interrupted: &dyn Fn() -> bool,
    ) {
        let bounds = Bounds::new(FOLDERS, MOST_FILES, is_interrupted);
        let known = &self.watch.baseline.repositories;
        let all = repositories.found.keys().chain(&repositories.worktrees);
        let (known, new): (Vec<_>, Vec<_>) = all.partition(|it| known.contains(*it));
        // Nor has the workspace's own to wait for those that earlier sessions made.
        let is_own = |it: &&PathBuf| {
            let mut directories = gits.iter().flat_map(|(_, git)| &git.directories);
            directories.any(|own| own == *it)
        };
        let (own, others): (Vec<_>, Vec<_>) = known.into_iter().partition(is_own);
        // However many repositories a session makes, there is time for those that were there.
        for known in [own, others] {
            let unfinished = self.walk(known.into_iter(), repositories, &bounds.half());
            // The end says so for all of it.
            if is_interrupted() {
                return;
            }
            for folder in unfinished {
                // The user's own may be many, on a slow disk.
                let is_grown = folder.seen + folder.left.len() >= GROWN;
                self.give_up(&folder, is_grown);
            }
        }
        let unfinished = self.walk(new.into_iter(), repositories, &bounds);
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
        tops: impl Iterator<Item = &'a PathBuf>,
        repositories: &Repositories,
        bounds: &Bounds<'_>,
    ) -> VecDeque<Folder<'a>> {
        let folders = tops.flat_map(|top| {
            let written = IN_PLACE.map(|name| (name, Reach::Written));
            let parts = written.into_iter().chain(PARTS);
            parts.map(move |(name, reach)| {
                let path = match name {
                    "" => top.clone(),
                    name => top.join(name),
                };
                Folder {
                    repository: top,
                    left: [path.clone()].into(),
                    path,
                    reach,
                    listing: None,
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
        let mut open = 0;
        while let Some(mut folder) = folders.pop_front() {
            if bounds.are_reached() {
                folders.push_front(folder);
                break;
            }
            open -= usize::from(folder.listing.is_some());
            let may_be_open = open < MOST_OPEN;
            let goes_on = self.step(&mut folder, may_be_open, repositories, bounds);
            open += usize::from(folder.listing.is_some());
            if goes_on && !folder.is_done() {
                folders.push_back(folder);
            }
        }
        folders
    }

    /// Looks at some entries of the next directory of a folder; at all of them unless it may be left open.
    /// Whether the folder stays.
    fn step(
        &self,
        folder: &mut Folder<'_>,
        may_be_open: bool,
        repositories: &Repositories,
        bounds: &Bounds<'_>,
    ) -> bool {
        let mut odd = Odd::default();
        let read = self.read_some(folder, &mut odd, may_be_open, bounds);
        match read {
            Ok(()) => {}
            Err(error) if error.kind() == NotFound => {}
            // Its path may be too long here, and not for git, which may come by a shorter one.
            Err(_) => {
                self.give_up(folder, true);
                return false;
            }
        }
        if folder.reach != Reach::Flat {
            folder.left.extend(odd.directories);
        }
        for (path, is_pipe) in odd.links {
            let before = self.watch.baseline.contents.get(&path);
            let is_same = |content: Content| before.is_some_and(|before| before.is_same(&content));
            if is_branch(&path) || link_at(&path).is_some_and(is_same) {
                continue;
            }
            folder.links += 1;
            if folder.links <= MOST_NEW {
                self.judge_link(folder, &path, is_pipe, repositories);
            } else if folder.reach == Reach::Written {
                self.close(folder, MANY_LINKS);
                return false;
            } else if self.watch.mode != GitSettings::Tell {
                let covers = &self.watch.covers;
                let removed = restore::put(&path, None, &self.patience, covers, None, || true);
                let directory = path.parent().unwrap_or(&path);
                let change = Box::new(Change::Appeared);
                match removed {
                    Ok(_) => self.find(directory, Change::Undone(change), MANY_LINKS),
                    Err(_) => self.find(directory, Change::Unseen, MANY_LINKS),
                }
            }
        }
        true
    }

    fn read_some(
        &self,
        folder: &mut Folder<'_>,
        odd: &mut Odd,
        may_be_open: bool,
        bounds: &Bounds<'_>,
    ) -> io::Result<()> {
        let mut listing = match folder.listing.take() {
            Some(listing) => listing,
            None => {
                let Some(directory) = folder.left.pop_front() else {
                    return Ok(());
                };
                folder.seen += 1;
                folder.is_touched |= fs::symlink_metadata(&directory)
                    .is_ok_and(|metadata| changed(&metadata) >= self.watch.taken(&directory));
                match Listing::open(directory.clone()) {
                    // It is another user's, since the owner is let in.
                    Err(error) if error.kind() == PermissionDenied => {
                        self.find(&directory, Change::Unseen, UNLISTED);
                        return Ok(());
                    }
                    listing => listing?,
                }
            }
        };
        while listing.read_more(odd)? {
            if may_be_open || bounds.are_reached() {
                folder.listing = Some(listing);
                break;
            }
        }
        Ok(())
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
        match closes && folder.is_touched && folder.reach == Reach::Written {
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
        let aside = odd_in(folder.repository, usize::MAX).unwrap_or_default();
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
