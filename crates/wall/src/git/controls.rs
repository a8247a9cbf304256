//! The files that make git run programs in a repository, or lead git elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{
    objects::lfs_beside,
    repositories::{Repositories, Repository, UNLISTED},
    settings::{self, Own, Setting},
    ways::remotes_below,
};
use crate::{
    facts::{absolute, is_in, named_path},
    leftovers::{
        baseline::Baseline,
        bounds::{Bounds, Unseen},
        content::Content,
        innermost,
        parts::parts_that_count,
    },
    nofollow::{self, MOST_ENTRIES},
    tables::autorun::{ATTRIBUTES, EXCLUDE, EXCLUDED, HOOKS, INDEX, PIPE, REDIRECTION, REMOTES},
};

const MANY_DIRECTORIES: &str = "there are too many git directories to look at all of them";
pub(super) const MANY_FILES: &str = "there are too many files to look at all of them";

/// So many new files of a kind in a directory are nothing that git or people make.
pub(crate) const MOST_NEW: usize = 64;

/// Of the repositories that were there before, so many are looked at however little time is left, and so many
/// files that lead git to others.
pub(crate) const ALWAYS: usize = 64;

/// Nor are so many hooks, in so many worktrees, that settings name.
pub(super) const MOST_NAMED: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) kind: Kind,
    pub(crate) content: Content,
    /// The repository that it is of.
    pub(crate) repository: Option<PathBuf>,
    pub(crate) stage: Stage,
}

impl Control {
    /// Where a directory is moved to that must go: the top of the repository that it lies in.
    pub(crate) fn place_aside(&self, path: &Path) -> Option<&Path> {
        let repository = self.repository.as_deref();
        repository.filter(|it| path.starts_with(it) && path != *it)
    }
}

/// What is looked for and judged before the rest, in all repositories: the time may run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Settings,
    Programs,
    /// Links at what git writes to most.
    Written,
    Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Settings of git's, each of which is judged.
    Settings,
    /// It is as it was, or it is put back. Why it counts.
    Whole(&'static str),
    /// It goes, also if it was there before. Why.
    Gone(&'static str),
    /// As `Whole`, but git itself makes it, in one form.
    Common,
    /// The same, unless it is older than the session.
    Away,
    /// What git is to do next, which may be to run programs.
    Plan,
    /// It has a second name, and gets to be a file of its own.
    Linked,
    /// Changes are told, and nothing is put back.
    Told(&'static str),
}

/// All files that count, and what they are.
pub(crate) type Controls = BTreeMap<PathBuf, Control>;

/// What settings name in places that a session can write, whether it is there or not.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) hooks: BTreeSet<PathBuf>,
    /// Of settings and of attributes.
    pub(crate) files: BTreeSet<PathBuf>,
}

impl Named {
    pub(crate) fn add(&mut self, other: &mut Self) {
        const MOST: usize = 1024;
        if self.hooks.len() + self.files.len() < MOST {
            self.hooks.append(&mut other.hooks);
            self.files.append(&mut other.files);
        }
    }
}

pub(crate) struct Collection<'a> {
    pub(crate) bounds: &'a Bounds<'a>,
    /// What a session can write of repositories.
    pub(crate) writable: &'a [PathBuf],
    pub(crate) home: &'a Path,
    pub(crate) own: &'a Own,
    /// After a session, what there was before. What it says about further files counts, not what the
    /// session made of it: else that would choose which files are put back.
    pub(crate) before: Option<&'a Baseline>,
    /// The directories that are looked at each on its own.
    pub(crate) repositories: HashSet<PathBuf>,
    pub(crate) is_brief: bool,
    pub(crate) stage: Stage,
    pub(crate) named: Named,
    pub(crate) controls: Controls,
    pub(crate) unseen: Unseen,
}

impl Collection<'_> {
    /// `tops` are the workspace and what is given like it.
    pub(crate) fn add_repositories(&mut self, repositories: &Repositories, tops: &[&Path]) {
        let all = repositories.found.keys().chain(&repositories.worktrees);
        self.repositories = all.cloned().collect();
        // However many others a session makes, there is time for those that were there.
        for stage in [Stage::Settings, Stage::Programs, Stage::Written] {
            if !self.add_stage(stage, repositories, tops, true) {
                return;
            }
        }
        self.stage = Stage::Settings;
        let misplaced = repositories.misplaced.iter();
        let misplaced = misplaced.map(|(path, (_, is_reached))| (path, is_reached));
        for (path, is_reached) in repositories.astray.iter().chain(misplaced) {
            if self.is_over(path, MANY_DIRECTORIES) {
                return;
            }
            // One that lies deeper may be older than the session: it stands for itself.
            let of = (!is_reached).then_some(path.as_path());
            let is_dot_git = path.file_name() == Some(".git".as_ref());
            let why = if is_dot_git { REDIRECTION } else { INDEX };
            self.add(path, Kind::Whole(why), of);
        }
        for path in &repositories.away {
            if self.is_over(path, MANY_DIRECTORIES) {
                return;
            }
            self.add(path, Kind::Away, Some(path));
        }
        for path in &repositories.pipes {
            if self.is_over(path, MANY_DIRECTORIES) {
                return;
            }
            self.add(path, Kind::Whole(PIPE), Some(path));
        }
        for path in &repositories.gitfiles {
            if self.is_over(path, MANY_DIRECTORIES) {
                return;
            }
            self.add(path, Kind::Whole(REDIRECTION), None);
        }
        for path in &repositories.files {
            if self.is_over(path, MANY_DIRECTORIES) {
                return;
            }
            // A session may make repositories, but not give a worktree that has one another one.
            let is_known = |before: &Baseline| {
                before.contents.contains_key(path) || before.repositories.contains(path)
            };
            if self.before.is_none_or(is_known) {
                self.add(path, Kind::Whole(REDIRECTION), None);
            }
        }
        for path in &repositories.diverted {
            if self.is_over(path, MANY_DIRECTORIES) {
                return;
            }
            self.reached(&path.join(".git"), None);
        }
        let files = repositories.files.iter().chain(&repositories.away);
        let files = files.chain(repositories.astray.keys());
        for path in files.chain(repositories.misplaced.keys()) {
            if self.is_over(path, MANY_DIRECTORIES) {
                return;
            }
            // What another link on the way leads to is not what the file named before.
            if let Some(named) = named_path(path) {
                self.reached(&named.join("HEAD"), None);
            }
        }
        let is_file = |content: &Content| content.bytes().is_some();
        for path in repositories.found.keys() {
            let before = self.before.and_then(|before| before.contents.get(path));
            if before.is_some_and(is_file) {
                self.add_whole(path, REDIRECTION, None);
            }
        }
        // What one repository is filled with keeps nobody from the settings of the next.
        let stages = [
            Stage::Settings,
            Stage::Programs,
            Stage::Written,
            Stage::Rest,
        ];
        for stage in stages {
            if !self.add_stage(stage, repositories, tops, false) {
                return;
            }
        }
    }

    /// Of all repositories, or of those alone that were there before.
    fn add_stage(
        &mut self,
        stage: Stage,
        repositories: &Repositories,
        tops: &[&Path],
        is_known: bool,
    ) -> bool {
        self.stage = stage;
        let known = self.before.map(|before| &before.repositories);
        let counts = |it: &Path| !is_known || known.is_some_and(|known| known.contains(it));
        let mut number = 0;
        for (directory, repository) in &repositories.found {
            if !counts(directory) {
                continue;
            }
            number += 1;
            let has_time = is_known && stage == Stage::Settings && number <= ALWAYS;
            if !has_time && self.is_over(directory, MANY_DIRECTORIES) {
                return false;
            }
            let top = innermost(tops, directory);
            self.add_parts(directory, Some(directory), repository, top);
        }
        for directory in &repositories.worktrees {
            if !counts(directory) {
                continue;
            }
            if self.is_over(directory, MANY_DIRECTORIES) {
                return false;
            }
            let owner = directory.ancestors().nth(2);
            self.add(&directory.join("commondir"), Kind::Common, owner);
            self.add_place_of_worktree(directory, owner);
            // Without that file, it would be a repository of its own.
            let repository = Repository::default();
            let top = innermost(tops, directory);
            self.add_parts(directory, owner, &repository, top);
        }
        true
    }

    /// Whether it is about the settings of the workspace's own repository. They are few, and there is time
    /// for them however busy the machine is.
    pub(super) fn is_first(&self) -> bool {
        self.is_brief && self.stage == Stage::Settings
    }

    /// Whether there is no time for this any more, nor for what comes after it.
    pub(super) fn is_over(&mut self, directory: &Path, why: &'static str) -> bool {
        let is_over = self.bounds.are_reached() && !self.is_first();
        if is_over {
            self.unseen.add(directory, why);
        }
        is_over
    }

    fn add_parts(
        &mut self,
        directory: &Path,
        of: Option<&Path>,
        repository: &Repository,
        top: &Path,
    ) {
        match self.stage {
            Stage::Settings => self.add_leading(directory, of),
            Stage::Programs => self.add_running(directory, of, repository, top),
            Stage::Written => {
                self.add_links_to_logs(directory, of);
                self.add_links_to_folders(directory, of);
            }
            Stage::Rest => {
                for name in ["remotes", "branches"] {
                    let directory = directory.join(name);
                    let most = self.most_in(&directory);
                    self.add_programs(&directory, REMOTES, of, most);
                }
                // They are looked for in all of its directories, which may be made to take long.
                if !self.is_brief {
                    let objects = directory.join("objects");
                    let is_replaced = self.is_replaced(&objects);
                    self.add_links(directory, &objects, is_replaced, of);
                    self.add_packs(&objects, of);
                    for borrowed in self.add_alternates(&objects, of) {
                        self.add_links(&borrowed, &borrowed, true, of);
                        self.add_packs(&borrowed, of);
                        let lfs = self.reached(&lfs_beside(&borrowed).join("x"), of);
                        let lfs = lfs.as_deref().and_then(Path::parent);
                        if let Some(lfs) = lfs.filter(|lfs| self.is_writable(lfs)) {
                            self.add_links(lfs, &borrowed, true, of);
                        }
                    }
                }
            }
        }
    }

    /// Settings, and what has git take others.
    fn add_leading(&mut self, directory: &Path, of: Option<&Path>) {
        for name in ["config", "config.worktree"] {
            self.add_settings(&directory.join(name), of, 0);
        }
        self.add(&directory.join("commondir"), Kind::Whole(REDIRECTION), of);
        self.add_way_to_worktree(directory, of);
        self.add_alternates(&directory.join("objects"), of);
        self.add_tables(directory, of);
        let attributes = directory.join("info/attributes");
        if !self.is_below_link(&attributes) {
            self.add(&attributes, Kind::Whole(ATTRIBUTES), of);
            self.add(&directory.join(EXCLUDE), Kind::Told(EXCLUDED), of);
        }
    }

    /// The links on the way to the worktree that the settings name, and one in its place.
    fn add_way_to_worktree(&mut self, directory: &Path, of: Option<&Path>) {
        const MOST: usize = 64;
        let names = ["config", "config.worktree"].iter();
        let settings = names.flat_map(|name| self.counting(&directory.join(name)));
        let named = settings.filter(|setting| setting.is("core", "worktree"));
        let named = named.map(|setting| directory.join(OsStr::from_bytes(setting.bytes())));
        for worktree in named.take(MOST).collect::<Vec<_>>() {
            self.reached(&worktree.join(".git"), of);
        }
    }

    /// What git runs, there or where settings say.
    fn add_running(
        &mut self,
        directory: &Path,
        of: Option<&Path>,
        repository: &Repository,
        top: &Path,
    ) {
        let settings = self.settings_of(directory);
        let hooks = directory.join("hooks");
        let most = self.most_in(&hooks);
        self.add_programs(&hooks, HOOKS, of, most);
        self.add_unfinished(directory, &repository.roots, of);
        let mut roots: Vec<&Path> = repository.roots.iter().map(PathBuf::as_path).collect();
        if roots.is_empty() {
            roots.push(top);
        }
        // The user's own settings count where git comes to by itself.
        let own = self.own.settings.iter().chain(&self.own.included);
        let written = self.own.written(self.home, &|path| self.counting(path));
        let own = own.chain(&written).filter(|_| repository.is_reached);
        // The last one counts, but which is the last one depends on conditions.
        let all: Vec<&Setting> = settings.iter().chain(own).collect();
        let named = |name: &str| {
            let all = all.iter().filter(|setting| setting.is("core", name));
            let paths = all.map(|setting| setting.path(self.home));
            let paths = paths.flat_map(|path| roots.iter().map(move |root| root.join(&path)));
            paths.take(MOST_NAMED).collect::<BTreeSet<PathBuf>>()
        };
        let (hooks, attributes) = (named("hookspath"), named("attributesfile"));
        for hooks in hooks {
            if self.is_writable(&absolute(&hooks)) {
                self.named.hooks.insert(absolute(&hooks));
            }
            if let Some(hooks) = self.reached(&hooks, of).filter(|it| self.is_writable(it)) {
                self.named.hooks.insert(hooks.clone());
                self.add_programs(&hooks, HOOKS, of, MOST_ENTRIES);
            }
        }
        let remotes = all.iter().copied();
        for remote in roots
            .iter()
            .flat_map(|root| remotes_below(root, remotes.clone()))
        {
            self.add_way_to_remote(&remote, of);
        }
        for attributes in attributes {
            if let Some(attributes) = self.reached_file(&attributes, of) {
                self.add(&attributes, Kind::Whole(ATTRIBUTES), of);
            }
        }
    }

    /// A directory that stands for all that is in it, which nobody looks at.
    pub(super) fn add_whole(
        &mut self,
        directory: &Path,
        why: &'static str,
        repository: Option<&Path>,
    ) {
        if let Some(content) = Content::of_unlisted(directory) {
            let control = Control {
                kind: Kind::Whole(why),
                content,
                repository: repository.map(Path::to_owned),
                stage: self.stage,
            };
            self.controls.insert(directory.to_owned(), control);
        }
    }

    fn settings_of(&self, directory: &Path) -> Vec<Setting> {
        let read = |path: &Path| self.counting(path);
        let names = ["config", "config.worktree"].iter();
        names
            .flat_map(|name| settings::with_included(&directory.join(name), self.home, &read))
            .collect()
    }

    /// The settings of a file as they will be when all is put back.
    fn counting(&self, path: &Path) -> Vec<Setting> {
        const MOST_LINKS: usize = 8;
        let (mut path, _) = self.way(path);
        for _ in 0..MOST_LINKS {
            if !self.is_writable(&path) {
                return settings::in_file(&path);
            }
            let content = match self.before {
                Some(before) => before.contents.get(&path),
                None => self.controls.get(&path).map(|control| &control.content),
            };
            let Some(Content::Link(to)) = content else {
                let bytes = content.and_then(Content::bytes).unwrap_or_default();
                return settings::parse(bytes).unwrap_or_default();
            };
            (path, _) = self.way(&path.parent().unwrap_or(&path).join(to));
        }
        Vec::new()
    }

    pub(super) fn is_writable(&self, path: &Path) -> bool {
        is_in(path, self.writable)
    }

    pub(crate) fn add(&mut self, path: &Path, kind: Kind, repository: Option<&Path>) {
        if self.controls.contains_key(path) {
            return;
        }
        if let Some(mut content) = Content::of(path, self.bounds) {
            let is_listed = matches!(kind, Kind::Told(_)) && content.is_directory();
            if is_listed && self.bounds.are_reached() {
                // A part of the files would look like a change.
                self.unseen.add(path, MANY_FILES);
                return;
            }
            if let (Kind::Told(_), Content::File { bytes, .. }) = (kind, &mut content)
                && let Some(parts) = parts_that_count(path, bytes, self.writable)
            {
                *bytes = parts;
                if bytes.is_empty() {
                    return;
                }
            }
            let control = Control {
                kind,
                content,
                repository: repository.map(Path::to_owned),
                stage: self.stage,
            };
            self.controls.insert(path.to_owned(), control);
        }
    }

    /// A file of settings, and those that it includes.
    pub(crate) fn add_settings(&mut self, path: &Path, repository: Option<&Path>, depth: usize) {
        if self.controls.contains_key(path) {
            return;
        }
        self.add(path, Kind::Settings, repository);
        if depth > settings::DEEPEST || self.bounds.are_reached() {
            return;
        }
        if let Some(real) = self.target(path) {
            self.add_settings(&real, repository, depth + 1);
        }
        let settings = self.counting(path);
        let directory = path.parent().unwrap_or(path);
        const MOST: usize = 64;
        let included = settings.iter().filter(|setting| setting.is_include());
        let included = included.take(MOST);
        let included = included.map(|setting| directory.join(setting.path(self.home)));
        for path in included.collect::<Vec<_>>() {
            // Others cannot be written inside.
            if let Some(path) = self.reached_file(&path, repository) {
                self.add_settings(&path, repository, depth + 1);
            }
        }
    }

    /// A file that settings name in a place that a session can write, if the way there is as it was.
    pub(crate) fn reached_file(&mut self, path: &Path, of: Option<&Path>) -> Option<PathBuf> {
        let named = absolute(path);
        if self.is_writable(&named) {
            self.named.files.insert(named);
        }
        let real = self.reached(path, of).filter(|it| self.is_writable(it))?;
        self.named.files.insert(real.clone());
        Some(real)
    }

    /// A directory of programs that git runs, but for the samples that it never does.
    /// One with more than `most` files is put back as a whole.
    fn add_programs(
        &mut self,
        directory: &Path,
        why: &'static str,
        repository: Option<&Path>,
        most: usize,
    ) {
        let Ok(metadata) = fs::symlink_metadata(directory) else {
            return;
        };
        if !metadata.is_dir() {
            self.add(directory, Kind::Whole(why), repository);
            self.add_target(directory, why, repository);
            return;
        }
        let Ok(entries) = nofollow::list_at_most(directory, most) else {
            // Git may find programs in it by their names.
            self.unseen.add(directory, UNLISTED);
            self.add_whole(directory, why, repository);
            return;
        };
        for entry in entries {
            if self.is_over(directory, MANY_FILES) {
                return;
            }
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_sample = why == HOOKS && path.extension() == Some("sample".as_ref());
            if is_directory || is_sample {
                continue;
            }
            self.add(&path, Kind::Whole(why), repository);
            self.add_target(&path, why, repository);
        }
    }

    /// How many files there may be in a directory of the repository's own. To put back each of very
    /// many takes the time that others need.
    fn most_in(&self, directory: &Path) -> usize {
        let Some(before) = self.before else {
            return MOST_ENTRIES;
        };
        let known = before.contents.range(directory.to_owned()..);
        let known = known.take_while(|(path, _)| path.starts_with(directory));
        MOST_NEW + known.count()
    }

    /// What a link leads to that a session can write is what runs.
    fn add_target(&mut self, link: &Path, why: &'static str, repository: Option<&Path>) {
        let Some(real) = self.target(link) else {
            return;
        };
        if real.is_dir() {
            self.named.hooks.insert(real.clone());
            self.add_programs(&real, why, repository, MOST_ENTRIES);
        } else {
            self.named.files.insert(real.clone());
            self.add(&real, Kind::Whole(why), repository);
        }
    }

    /// Where a link leads, if that was so before, and a session can write there.
    fn target(&self, link: &Path) -> Option<PathBuf> {
        let content = self.controls.get(link).map(|control| &control.content);
        let is_link = matches!(content, Some(Content::Link(_)));
        let was_so = self
            .before
            .is_none_or(|before| before.contents.get(link) == content);
        if !is_link || !was_so {
            return None;
        }
        let real = nofollow::real(link).ok()?;
        (self.is_writable(&real) && !self.controls.contains_key(&real)).then_some(real)
    }

    /// Whether the directory of a file is a link that a session made, and that will be gone.
    pub(super) fn is_below_link(&self, path: &Path) -> bool {
        let (Some(parent), Some(before)) = (path.parent(), self.before) else {
            return false;
        };
        let link = fs::read_link(parent).map(Content::Link);
        link.is_ok_and(|link| before.contents.get(parent) != Some(&link))
    }
}
