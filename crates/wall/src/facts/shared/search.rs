//! Looks through directories of dependencies, and through directories that links in them or in their
//! place lead to. Who installs writes there, too: `.venv/lib` may be a link that a session made.
//!
//! What is behind a link may also be the user's own: pnpm and npm link the packages of a workspace to one
//! another. So such a directory does not become an overlay as a whole, but what holds its files
//! that are linked elsewhere. A file that all links of were met does not count.

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
    time::Instant,
};

use super::{
    By, SHORT, SharedFiles, WHOLE, holds_link,
    links::{self, Unresolved},
    places::{Places, is_dependencies, is_environment},
};
use crate::{
    facts::{absolute, is_in},
    nofollow,
};

/// All whole looks together end here, if there is time for so much.
const MOST: usize = 2 * WHOLE.entries;

pub(super) struct Search<'a> {
    /// All that the command can write.
    pub(super) writable: &'a [PathBuf],
    pub(super) has_store: &'a dyn Fn(&Path, By) -> bool,
    /// All looks end then.
    until: Instant,
    seen: usize,
    /// On the way of links that could not be resolved.
    steps: usize,
    closed: Vec<PathBuf>,
    /// The directories that were looked at, or looked through.
    looked: HashSet<PathBuf>,
    /// Those that are to be looked at.
    left: Vec<Behind>,
    linked: Vec<Linked>,
    found: SharedFiles,
}

/// A directory that is still to be looked at.
struct Behind {
    path: PathBuf,
    /// It lies in the place of a package, as those of the user's own do.
    is_package: bool,
}

/// A file that has more links than one.
struct Linked {
    /// The number of the directory that it was met in.
    behind: usize,
    directory: PathBuf,
    identity: (u64, u64),
    links: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        writable: &'a [PathBuf],
        has_store: &'a dyn Fn(&Path, By) -> bool,
        until: Instant,
    ) -> Self {
        Self {
            writable,
            has_store,
            until,
            seen: 0,
            steps: 0,
            closed: Vec::new(),
            looked: HashSet::new(),
            left: Vec::new(),
            linked: Vec::new(),
            found: SharedFiles::default(),
        }
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// What was found in a workspace.
    pub(super) fn add(&mut self, places: Places) {
        let Places {
            found,
            closed,
            astray,
            unseen,
        } = places;
        for (place, by) in found {
            self.look_at(place, by);
        }
        self.closed.extend(closed);
        self.found.astray.extend(astray);
        self.found.unseen.extend(unseen);
    }

    /// A directory of dependencies, or what a link of such a name leads to.
    fn look_at(&mut self, place: PathBuf, by: By) {
        let has_link = holds_link(&place, SHORT, &mut 0) == Some(true);
        if !self.looked.contains(&place) && (has_link || (self.has_store)(&place, by)) {
            let is_package = false;
            self.left.push(Behind {
                path: place,
                is_package,
            });
        }
    }

    pub(super) fn end(mut self) -> SharedFiles {
        // The first ones are at the top of the workspace, and get the most of what there is to look at.
        self.left.reverse();
        let mut number = 0;
        while let Some(Behind { path, is_package }) = self.left.pop() {
            number += 1;
            if self.looked.contains(&path) {
                continue;
            }
            let is_environment = || !self.is_top(&path) && is_environment(&path);
            if is_dependencies(&path) || is_environment() {
                let mut is_linked = false;
                let end = self.seen + WHOLE.entries;
                let is_whole = self.through(&path, &path, end, &mut is_linked).is_some();
                if !is_whole {
                    self.found.unseen.push(path.clone());
                }
                if is_linked || !is_whole {
                    self.found.dependencies.push(path);
                }
            } else if self.behind(&path, &path, number).is_none() {
                if is_package || self.is_top(&path) {
                    self.found.unseen.push(path);
                } else {
                    self.found.dependencies.push(path);
                }
            }
        }
        self.add_closed();
        self.add_linked();
        let mut found = self.found;
        let all = found.dependencies.clone();
        let is_in_another = |path: &Path| {
            path.ancestors()
                .skip(1)
                .any(|it| all.iter().any(|other| other == it))
        };
        found.dependencies.retain(|path| !is_in_another(path));
        found
    }

    /// Dependencies: whether a file has another link, and where links lead. None if it cannot look at as
    /// much as there is.
    fn through(
        &mut self,
        top: &Path,
        directory: &Path,
        end: usize,
        is_linked: &mut bool,
    ) -> Option<()> {
        self.looked.insert(directory.to_owned());
        for entry in fs::read_dir(directory).ok()? {
            let entry = entry.ok()?;
            self.seen += 1;
            if self.seen > end.min(MOST) || self.is_late() {
                return None;
            }
            let kind = entry.file_type().ok()?;
            if kind.is_dir() {
                self.through(top, &entry.path(), end, is_linked)?;
            } else if kind.is_symlink() {
                self.follow(top, &entry.path());
            } else if kind.is_file() && !*is_linked {
                *is_linked = entry.metadata().ok()?.nlink() > 1;
            }
        }
        Some(())
    }

    /// What is behind a link: the files that have other links. Dependencies in it are looked at on their own.
    fn behind(&mut self, top: &Path, directory: &Path, number: usize) -> Option<()> {
        if !self.looked.insert(directory.to_owned()) {
            return Some(());
        }
        for entry in fs::read_dir(directory).ok()? {
            let entry = entry.ok()?;
            self.seen += 1;
            if self.seen > MOST || self.is_late() {
                return None;
            }
            let (kind, name) = (entry.file_type().ok()?, entry.file_name());
            if kind.is_symlink() {
                self.follow(top, &entry.path());
            } else if kind.is_dir() && is_dependencies(&entry.path()) {
                self.look_at(entry.path(), By::Link);
            } else if kind.is_dir() && name != ".git" {
                self.behind(top, &entry.path(), number)?;
            } else if kind.is_file() {
                let metadata = entry.metadata().ok()?;
                if metadata.nlink() > 1 {
                    self.linked.push(Linked {
                        behind: number,
                        directory: directory.to_owned(),
                        identity: (metadata.dev(), metadata.ino()),
                        links: metadata.nlink(),
                    });
                }
            }
        }
        Some(())
    }

    /// A link that leads out of `top` into what the command can write is followed later.
    fn follow(&mut self, top: &Path, link: &Path) {
        let (Ok(to), Some(parent)) = (fs::read_link(link), link.parent()) else {
            return;
        };
        // pnpm makes very many that lead to beside them. If another link is on the way of such a one,
        // that is met itself; but `..` after it would lead up from elsewhere.
        let is_up = |part: &Component<'_>| matches!(part, Component::ParentDir);
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let is_simple = to.components().skip_while(is_up).all(is_plain);
        // Nobody meets what is in a git directory but by such a link.
        let is_met = |place: &Path| {
            let below = place.strip_prefix(top);
            below.is_ok_and(|it| !it.components().any(|part| part.as_os_str() == ".git"))
        };
        if is_simple && is_met(&absolute(&parent.join(&to))) {
            return;
        }
        let Ok(real) = nofollow::real(link) else {
            match links::follow(link, &mut self.steps) {
                Unresolved::Nowhere => {}
                Unresolved::Closed(directory) => self.closed.push(directory),
                Unresolved::Anywhere => self.found.astray.push(link.to_owned()),
            }
            return;
        };
        if is_met(&real) || !is_in(&real, self.writable) || !real.is_dir() {
            return;
        }
        let is_scope = parent
            .file_name()
            .is_some_and(|it| it.as_encoded_bytes().starts_with(b"@"));
        let around = if is_scope {
            parent.parent()
        } else {
            Some(parent)
        };
        let is_hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".");
        let is_package = around.is_some_and(|it| it.ends_with("node_modules"))
            && !link.file_name().is_some_and(is_hidden);
        self.left.push(Behind {
            path: real,
            is_package,
        });
    }

    /// Whether it is, or holds, all of what was given: nobody could work there if changes were discarded.
    fn is_top(&self, path: &Path) -> bool {
        self.writable.iter().any(|top| top.starts_with(path))
    }

    /// What could not be looked at, because a session may have closed it, counts as shared.
    fn add_closed(&mut self) {
        let mut closed = std::mem::take(&mut self.closed);
        closed.sort();
        closed.dedup();
        for directory in closed {
            if is_in(&directory, self.writable) {
                self.found.unseen.push(directory.clone());
                if !self.is_top(&directory) {
                    self.found.dependencies.push(directory);
                }
            }
        }
    }

    /// For each directory behind a link, what holds all of its files that are linked elsewhere.
    fn add_linked(&mut self) {
        let mut met: HashMap<(u64, u64), u64> = HashMap::new();
        for linked in &self.linked {
            *met.entry(linked.identity).or_default() += 1;
        }
        // pnpm links packages of a workspace into its dependencies, if it is told to.
        if !met.is_empty() {
            let mut left = MOST;
            for place in &self.found.dependencies {
                count(place, &mut met, &mut left, self.until);
            }
        }
        let elsewhere = |linked: &&Linked| {
            met.get(&linked.identity)
                .is_none_or(|met| *met < linked.links)
        };
        let mut around: HashMap<(usize, Option<PathBuf>), PathBuf> = HashMap::new();
        for linked in self.linked.iter().filter(elsewhere) {
            // Of what was given, each directory is one of its own.
            let above = linked.directory.ancestors();
            let part = above.take_while(|it| !self.is_top(it)).last();
            let key = (linked.behind, part.map(Path::to_owned));
            let common = around
                .entry(key)
                .or_insert_with(|| linked.directory.clone());
            while !linked.directory.starts_with(&common) {
                common.pop();
            }
        }
        for ((_, part), common) in around {
            let found = match part {
                Some(_) => &mut self.found.dependencies,
                None => &mut self.found.objects,
            };
            if !found.contains(&common) {
                found.push(common);
            }
        }
        self.found.dependencies.sort();
    }
}

/// Takes the files of these numbers into account that lie below a directory.
fn count(directory: &Path, met: &mut HashMap<(u64, u64), u64>, left: &mut usize, until: Instant) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let in_time = |_: &usize| Instant::now() < until;
        let Some(fewer) = left.checked_sub(1).filter(in_time) else {
            return;
        };
        *left = fewer;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => count(&entry.path(), met, left, until),
            Ok(kind) if kind.is_file() => {
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if let Some(met) = met.get_mut(&(metadata.dev(), metadata.ino())) {
                    *met += 1;
                }
            }
            _ => {}
        }
    }
}
