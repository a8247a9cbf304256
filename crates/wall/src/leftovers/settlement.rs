//! One comparison after a session: each changed file is judged, reported and restored.

mod folders;
mod settings;

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    END, Identity, MOST_FILES, TOP, Watch,
    bounds::Bounds,
    content::Content,
    finding::{Change, Finding},
    identity, locked,
    quarantine::{Keeping, Kept},
    restore::{self, Put},
};
use crate::{
    config::GitSettings,
    facts::{Git, is_in},
    git::{
        controls::{ALWAYS, Control, Controls, Kind, Stage},
        links::is_trial,
        repositories::{Repositories, Repository},
        settings::GitProgram,
        unfinished::without_commands,
    },
    nofollow,
    tables::autorun::{REDIRECTION, WORKTREE},
};

const SECOND_NAME: &str =
    "it had a second name (a hard link), by which git itself could have been made to write to it";
const TOO_MANY: &str = "there was no time to look at all repositories that git comes to by it";

/// One look after the session.
pub(super) struct Settlement<'a> {
    watch: &'a Watch,
    git: GitProgram,
    /// How long git has taken to read files.
    asked: Cell<Duration>,
    findings: RefCell<Vec<Finding>>,
    /// The same, to be looked up.
    told: RefCell<HashSet<Finding>>,
    /// Directories that were moved aside: under their new names they are as deep and as large.
    moved: RefCell<HashSet<Identity>>,
    /// The session runs: what it needs itself until its end is left alone.
    is_live: bool,
    /// How long locks may still be waited for.
    patience: Cell<Duration>,
    /// Which repositories the last comparison had no time for.
    unjudged: RefCell<Unjudged>,
}

#[derive(Debug, Default)]
enum Unjudged {
    #[default]
    None,
    Some(HashSet<PathBuf>),
    Any,
}

impl Unjudged {
    fn may_hold(&self, repository: &Path) -> bool {
        match self {
            Self::None => false,
            Self::Some(all) => all.contains(repository),
            Self::Any => true,
        }
    }
}

impl<'a> Settlement<'a> {
    /// With the own repositories of these compared already.
    pub(super) fn begin(watch: &'a Watch, gits: &[(&Path, Git)], is_live: bool) -> Self {
        let settlement = Self {
            watch,
            git: GitProgram::find(),
            asked: Cell::default(),
            findings: RefCell::default(),
            told: RefCell::default(),
            moved: RefCell::default(),
            is_live,
            // While it runs, who holds a lock for long has others wait.
            patience: Cell::new(Duration::from_millis(if is_live { 20 } else { 200 })),
            unjudged: RefCell::default(),
        };
        for (top, git) in gits {
            settlement.compare_top(top, git);
        }
        settlement
    }

    pub(super) fn end(self) -> Vec<Finding> {
        self.findings.into_inner()
    }

    /// The own repository of the workspace, or of what is given like it, alone.
    fn compare_top(&self, top: &Path, git: &Git) {
        let bounds = Bounds::new(TOP, MOST_FILES, &|| false);
        let mut repositories = Repositories::default();
        let dot_git = top.join(".git");
        let first = git.directories.iter().take(1).cloned();
        let is_directory = fs::symlink_metadata(&dot_git).is_ok_and(|metadata| metadata.is_dir());
        for directory in first.chain(is_directory.then(|| dot_git.clone())) {
            let repository = Repository {
                roots: [top.to_owned()].into(),
                is_reached: true,
            };
            repositories.found.insert(directory, repository);
        }
        if git.refused.is_some() {
            repositories.astray.insert(dot_git, true);
        }
        repositories.is_brief = true;
        self.compare(&repositories, &bounds);
        if repositories.len() == 0 && top != self.watch.workspace {
            // What is left is the same for all tops.
            return;
        }
        repositories.is_brief = false;
        self.compare(&repositories, &Bounds::new(TOP, MOST_FILES, &|| false));
    }

    /// Each time with more repositories, and with more time.
    pub(super) fn compare(&self, repositories: &Repositories, bounds: &Bounds<'_>) {
        // What this look does not see, it says itself.
        let is_seen = |finding: &Finding| finding.what != Change::Unseen;
        self.findings.borrow_mut().retain(is_seen);
        self.told.borrow_mut().retain(is_seen);
        self.bring_back(repositories);
        let (watch, before) = (self.watch, Some(&self.watch.baseline));
        // What was found needs time to be put back.
        let half = bounds.half();
        let look = watch.collect(&watch.tops(), repositories, &half, before);
        let (controls, unseen) = (look.controls, look.unseen);
        // What the last stage looks at makes git run and write nothing.
        let is_cut = half.are_reached() && look.last < Stage::Rest;
        self.unjudged.replace(match is_cut {
            true => Unjudged::Any,
            false => Unjudged::None,
        });
        for (path, why) in unseen.0 {
            self.find(&path, Change::Unseen, why);
        }
        // Settings first, and those that git comes to first: nobody can have them wait for what lies
        // deep, or for very many others.
        let mut nearest: Vec<_> = controls.iter().collect();
        let known = &self.watch.baseline;
        let is_new = |path: &Path, control: &Control| {
            let repository = control.repository.as_ref();
            let is_known = repository.is_some_and(|it| known.repositories.contains(it));
            !is_known && !known.contents.contains_key(path)
        };
        nearest.sort_by_cached_key(|(path, control)| {
            let is_new = is_new(path, control);
            (control.stage, is_new, path.iter().count())
        });
        for (number, (path, control)) in nearest.iter().copied().enumerate() {
            let before = self.watch.baseline.contents.get(path);
            let is_same = before.is_some_and(|before| before.is_same(&control.content));
            if is_same && !matches!(control.kind, Kind::Gone(_)) {
                // Of those that say nothing about programs, the user's own stay.
                if control.kind != Kind::Linked {
                    self.make_its_own(path, control);
                }
                continue;
            }
            let is_first = repositories.is_brief || (number < ALWAYS && !is_new(path, control));
            let has_time = is_first && control.stage == Stage::Settings;
            if bounds.are_reached() && !has_time {
                let left = controls.len() - number;
                let why = format!("there was no time to look at {left} files of git's");
                self.find(&self.watch.workspace, Change::Unseen, &why);
                if !is_cut {
                    let left = nearest.iter().skip(number);
                    let left = left.filter(|(_, control)| control.stage < Stage::Rest);
                    let left = left.filter_map(|(_, control)| control.repository.clone());
                    self.unjudged.replace(Unjudged::Some(left.collect()));
                }
                return;
            }
            self.judge(path, before, control, repositories, &controls);
            self.make_its_own(path, control);
        }
    }

    /// Whether there was no time for something by which git runs programs.
    pub(super) fn has_unjudged(&self) -> bool {
        match &*self.unjudged.borrow() {
            Unjudged::None => false,
            Unjudged::Some(left) => !left.is_empty(),
            Unjudged::Any => true,
        }
    }

    /// Git writes to some of its files in place, with text that a session can choose: the message of a commit,
    /// a conflict. If such a file is a second name of another one, of which git takes programs, that one is
    /// written. So a file of git's with a second name gets to be a file of its own.
    fn make_its_own(&self, path: &Path, control: &Control) {
        let is_linked = |it: &fs::Metadata| it.is_file() && it.nlink() > 1;
        if matches!(control.kind, Kind::Told(_))
            || !fs::symlink_metadata(path).is_ok_and(|it| is_linked(&it))
            || !is_in(path, &self.watch.writable)
            || self.watch.covers.are_over(path)
        {
            return;
        }
        if self.watch.mode == GitSettings::Tell {
            return self.find(path, Change::Changed, SECOND_NAME);
        }
        let bounds = Bounds::new(END, MOST_FILES, &|| false);
        // What is too long, or no file by now, is judged as a whole.
        let Some(content @ Content::File { .. }) = Content::of(path, &bounds) else {
            return;
        };
        let is_still = || Content::of(path, &bounds).as_ref() == Some(&content);
        let covers = &self.watch.covers;
        match restore::put(path, Some(&content), &self.patience, covers, None, is_still) {
            Ok(_) => self.find(path, Change::Undone(Box::new(Change::Changed)), SECOND_NAME),
            Err(error) => {
                let why = format!("{SECOND_NAME}; it could NOT be undone: {error}");
                self.find(path, Change::Changed, &why);
            }
        }
    }

    /// If there was no time to look at all new repositories that git at the top comes to, they are put out
    /// of its reach: an index that leads to new ones is set aside.
    pub(super) fn close_ways(&self, repositories: &Repositories, is_search_cut: bool) {
        let is_known = |path: &Path| self.watch.baseline.repositories.contains(path);
        let unjudged = self.unjudged.borrow();
        let is_open = |(path, it): (&PathBuf, &Repository)| {
            it.is_reached && !is_known(path) && unjudged.may_hold(path)
        };
        if !is_search_cut && !repositories.found.iter().any(is_open) {
            return;
        }
        let few = Bounds::new(TOP, MOST_FILES, &|| false);
        for (index, places) in repositories.leading() {
            // Those of new repositories are out of reach with the others.
            if !index.parent().is_some_and(is_known) {
                continue;
            }
            let is_newer_index = || {
                let metadata = fs::symlink_metadata(&index);
                metadata.is_ok_and(|it| changed(&it) >= self.watch.taken(&index))
            };
            let is_new = |path: &PathBuf| {
                let baseline = &self.watch.baseline;
                let is_known = is_known(path) || baseline.contents.contains_key(path);
                // Those of a worktree that nobody inside can write are the user's.
                let real = nofollow::real(path).unwrap_or_else(|_| path.clone());
                let is_written = [path, &real]
                    .iter()
                    .any(|it| is_in(it, &self.watch.writable));
                let is_there = !is_known && is_written && fs::symlink_metadata(path).is_ok();
                let is_new = is_there && self.is_unknown(path);
                is_new || (few.are_reached() && is_newer_index())
            };
            if !places.iter().any(is_new) {
                continue;
            }
            self.set_aside(&index, None, Content::of(&index, &few), TOO_MANY);
        }
        if is_search_cut {
            for directory in &self.watch.baseline.repositories {
                let index = directory.join("index");
                let metadata = fs::symlink_metadata(&index);
                let is_newer = metadata.is_ok_and(|it| changed(&it) >= self.watch.taken(&index));
                if is_newer && !repositories.has_read(directory) {
                    self.set_aside(&index, None, Content::of(&index, &few), TOO_MANY);
                }
                self.close_modules(&directory.join("modules"));
            }
        }
    }

    /// Git finds repositories there by the names of submodules. New ones go, whatever they are.
    fn close_modules(&self, modules: &Path) {
        if nofollow::real(modules).ok().as_deref() != Some(modules)
            || !is_in(modules, &self.watch.writable)
        {
            return;
        }
        let known = &self.watch.baseline.repositories;
        let is_known = |path: &Path| known.iter().any(|it| it.starts_with(path));
        match nofollow::list(modules) {
            Ok(entries) => {
                let new = entries.iter().map(fs::DirEntry::path);
                for path in new.filter(|path| !is_known(path)) {
                    let whole = Content::of_unlisted(&path);
                    self.set_aside(&path, modules.parent(), whole, TOO_MANY);
                }
            }
            Err(_) => {
                let whole = Content::of_unlisted(modules);
                self.set_aside(modules, modules.parent(), whole, TOO_MANY);
            }
        }
    }

    fn set_aside(
        &self,
        path: &Path,
        of: Option<&Path>,
        content: Option<Content>,
        why: &'static str,
    ) {
        let Some(content) = content else {
            return;
        };
        let control = Control {
            kind: Kind::Whole(why),
            content,
            repository: of.map(Path::to_owned),
            stage: Stage::Rest,
        };
        self.put_back(path, &control, None, &[(Change::Changed, why)], true);
    }

    /// Settings and attributes that are gone come back as they were. What is gone with its
    /// directory is not missed.
    fn bring_back(&self, repositories: &Repositories) {
        const WHY: &str = "it was removed, and git outside goes on without what it said";
        if self.is_live {
            // Whoever clones into the place of a repository that was there has it gone for a while.
            return;
        }
        let is_told = self.watch.mode == GitSettings::Tell || self.watch.keeping.is_none();
        for directory in repositories.found.keys().chain(&repositories.worktrees) {
            for name in ["config", "config.worktree", "info/attributes"] {
                let path = directory.join(name);
                let Some(before) = self.watch.baseline.contents.get(&path) else {
                    continue;
                };
                let is_gone = || fs::symlink_metadata(&path).is_err();
                let is_missed = path.parent().is_some_and(Path::is_dir) && is_gone();
                if !is_missed {
                    continue;
                }
                // To git, an empty file is the same; it is what can be replaced.
                let empty = file_like(before, Vec::new());
                if !is_told {
                    // If it cannot be made, it cannot be replaced either, which is told.
                    let _ = restore::put(
                        &path,
                        Some(&empty),
                        &self.patience,
                        &self.watch.covers,
                        None,
                        is_gone,
                    );
                }
                let control = Control {
                    kind: Kind::Whole(WHY),
                    content: empty,
                    repository: Some(directory.clone()),
                    stage: Stage::Settings,
                };
                let undone = [(Change::Changed, WHY)];
                self.put_back(&path, &control, Some(before), &undone, true);
            }
        }
    }

    fn find(&self, path: &Path, what: Change, why: &str) {
        self.add(Finding::new(path, what, why));
    }

    fn add(&self, finding: Finding) {
        if self.told.borrow_mut().insert(finding.clone()) {
            self.findings.borrow_mut().push(finding);
        }
    }

    fn judge(
        &self,
        path: &Path,
        before: Option<&Content>,
        control: &Control,
        repositories: &Repositories,
        controls: &Controls,
    ) {
        let change = match before {
            Some(_) => Change::Changed,
            None => Change::Appeared,
        };
        let is_ours = self.is_judged_as_new(path, before, control, repositories);
        match control.kind {
            Kind::Told(_) if self.is_live => {}
            // A rebase that waited before the session is the user's, who may continue it at any time. The
            // session needs the steps of its own one until the end.
            Kind::Plan if self.is_live && before.is_none() && !self.has_waited(path) => {}
            Kind::Told(_) if before.is_none() && self.watch.baseline.is_partial => {
                let why = "there was no time to look at it before the session";
                self.find(path, Change::Unseen, why);
            }
            Kind::Told(why) => {
                let edits = &self.watch.edits;
                for finding in edits.findings(path, before, &control.content, why) {
                    self.add(finding);
                }
            }
            Kind::Common if control.content.bytes() == Some(b"../..\n") => {}
            // Git writes it before the worktree, which the user may be making.
            Kind::Whole(WORKTREE) if self.is_live => {}
            // Until the end, a look after this one would find it again, unless it is moved out of git's way.
            // And what cannot be listed at one moment may only be in the making.
            Kind::Whole(REDIRECTION)
                if self.is_live
                    && control.content.is_unlisted()
                    && (control.stage != Stage::Written || control.place_aside(path).is_none()) => {
            }
            Kind::Whole(REDIRECTION)
                if self.is_live
                    && matches!(&control.content, Content::Link(to) if is_trial(path, to)) => {}
            Kind::Whole(why) => {
                // By its file system, too: the session may write to several, with equal numbers.
                let moved = identity(path).filter(|_| control.content.is_unlisted());
                if moved.is_some_and(|it| !self.moved.borrow_mut().insert(it)) {
                    return;
                }
                self.put_back(path, control, before, &[(change, why)], is_ours);
            }
            // It is made one of its own then.
            Kind::Linked if matches!(control.content, Content::File { .. }) => {}
            Kind::Linked => {
                self.put_back(path, control, before, &[(change, SECOND_NAME)], is_ours);
            }
            Kind::Gone(why) => self.put_back(path, control, None, &[(change, why)], is_ours),
            Kind::Away if !is_ours => {}
            Kind::Common | Kind::Away => {
                self.put_back(path, control, before, &[(change, REDIRECTION)], is_ours);
            }
            Kind::Plan => {
                let now = control.content.bytes().unwrap_or_default();
                let was = before.and_then(Content::bytes).unwrap_or_default();
                if let Some(bytes) = without_commands(now, was) {
                    let kept = file_like(&control.content, bytes);
                    let why = "`git rebase --continue` runs what it says";
                    self.put_back(path, control, Some(&kept), &[(change, why)], is_ours);
                } else if control.content.bytes().is_none() {
                    // A link, or longer than any.
                    let why = "`git rebase --continue` does what it says";
                    self.put_back(path, control, before, &[(change, why)], is_ours);
                }
            }
            Kind::Settings => self.judge_settings(path, before, control, controls, is_ours),
        }
    }

    /// Whether a rebase of either kind waited before the session in the repository of these steps.
    fn has_waited(&self, steps: &Path) -> bool {
        let contents = &self.watch.baseline.contents;
        let has_any = |directory: PathBuf| {
            let mut from = contents.range(directory.clone()..);
            from.next()
                .is_some_and(|(path, _)| path.starts_with(&directory))
        };
        let repository = steps.ancestors().nth(2).unwrap_or(steps);
        has_any(repository.join("rebase-apply")) || has_any(repository.join("rebase-merge"))
    }

    /// Whether what is not in the baseline is the session's. A repository that git does not come
    /// to by itself may have been too deep to be looked at then. Its file is older if it has not
    /// changed since; the directory that it lies in may be an old one that was put there.
    fn is_judged_as_new(
        &self,
        path: &Path,
        before: Option<&Content>,
        control: &Control,
        repositories: &Repositories,
    ) -> bool {
        let Some(directory) = control.repository.as_deref().filter(|_| before.is_none()) else {
            return true;
        };
        let is_known = self.watch.baseline.repositories.contains(directory);
        let found = repositories.found.get(directory);
        let is_reached = found.is_some_and(|found| found.is_reached);
        let is_older = fs::symlink_metadata(path)
            .is_ok_and(|metadata| changed(&metadata) < self.watch.taken(path));
        let is_reached = is_reached && self.is_unknown(path);
        is_known || is_reached || !is_older || !path.starts_with(directory)
    }

    /// Whether what git comes to by itself, and the baseline does not know, was not there when that was
    /// taken. If there was no time to look at all then, what has not moved since was there. Whoever moves
    /// a directory changes that one, and nothing in it.
    fn is_unknown(&self, path: &Path) -> bool {
        let taken = self.watch.taken(path);
        let writable = &self.watch.writable;
        let is_inner = |it: &&Path| {
            let mut tops = writable.iter();
            tops.any(|top| it.starts_with(top) && it != top)
        };
        let is_newer = |it: &Path| {
            let metadata = fs::symlink_metadata(it);
            metadata.map_or(true, |metadata| changed(&metadata) >= taken)
        };
        let mut way = path.ancestors().take_while(is_inner);
        !self.watch.baseline.is_partial || way.any(is_newer)
    }

    /// Keeps what the session made of a file, unless it is kept already. Says where.
    fn keep(&self, keeping: &Keeping, mut kept: Kept) -> io::Result<PathBuf> {
        let mut all = locked(&self.watch.kept);
        let is_kept = |it: &&Kept| it.path == kept.path && it.theirs == kept.theirs;
        if let Some(kept) = all.iter().find(is_kept) {
            return Ok(kept.record.clone());
        }
        kept.record = keeping.keep(&kept)?;
        let record = kept.record.clone();
        all.push(kept);
        Ok(record)
    }

    /// Makes a file what it was, or says why it is not.
    fn put_back(
        &self,
        path: &Path,
        control: &Control,
        to: Option<&Content>,
        undone: &[(Change, &'static str)],
        is_ours: bool,
    ) {
        let tell = |is_undone: bool, also: &str| {
            const MOST: usize = 64;
            for (change, why) in undone.iter().take(MOST) {
                let change = match is_undone {
                    true => Change::Undone(Box::new(change.clone())),
                    false => change.clone(),
                };
                self.find(path, change, &format!("{why}{also}"));
            }
            if let Some(more) = undone.len().checked_sub(MOST).filter(|more| *more > 0) {
                self.find(path, Change::More(more), "");
            }
        };
        if self.watch.mode == GitSettings::Tell {
            return tell(false, "");
        }
        // The file that was in the place of its directory is back.
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotADirectory;
        if fs::symlink_metadata(path).is_err_and(|error| is_gone(&error)) {
            return;
        }
        if !is_ours {
            let also = "; it was not undone, since it may have been there before";
            return tell(false, also);
        }
        if self.watch.covers.are_over(path) {
            // Without what is in it, which may be secret.
            let what = match self.watch.baseline.contents.contains_key(path) {
                true => Change::Changed,
                false => Change::Appeared,
            };
            let why =
                "git would use it; it was left as it is, since it is hidden or read-only inside";
            return self.find(path, what, why);
        }
        let Some(keeping) = &self.watch.keeping else {
            return tell(false, "");
        };
        // Who accepts it has to have seen each.
        const MOST_SAID: usize = 256;
        let said: Vec<String> = undone
            .iter()
            .take(MOST_SAID)
            .map(|(what, why)| Finding::new(path, what.clone(), *why).to_string())
            .collect();
        let kept = Kept {
            path: path.to_owned(),
            theirs: control.content.clone(),
            ours: to.cloned(),
            unsaid: undone.len() - said.len(),
            said,
            record: PathBuf::new(),
        };
        let kept = self.keep(keeping, kept);
        let bounds = Bounds::new(END, MOST_FILES, &|| false);
        let is_still = || match &control.content {
            // It may hold more than there is time to compare.
            Content::Directory(_) => {
                fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
            }
            theirs => Content::of(path, &bounds).as_ref() == Some(theirs),
        };
        let covers = &self.watch.covers;
        let aside = control.place_aside(path);
        let done = restore::put_or_remove(path, to, &self.patience, covers, aside, is_still);
        let kept = kept.map_err(|error| error.to_string());
        let done = match done {
            // Another look has removed it.
            Err(error) if to.is_some() && fs::symlink_metadata(path).is_err() => {
                Ok(Put::Removed(error))
            }
            done => done,
        };
        match done {
            Ok(Put::Done(Some(moved))) => tell(true, &format!("; what was there is in {moved:?}")),
            Ok(Put::Done(None)) => {
                let lost = |error| format!("; what the session made of it is lost: {error}");
                tell(true, &kept.map_or_else(lost, |_| String::new()));
            }
            Ok(Put::Removed(error)) => {
                let was = match kept {
                    Ok(kept) => format!("what it was is kept in {kept:?}"),
                    Err(_) => "what it was is lost".to_owned(),
                };
                let also = format!("; it could not be undone, and was REMOVED: {error}; {was}");
                tell(false, &also);
            }
            // Another look was quicker.
            Err(_) if Content::of(path, &bounds).as_ref() == to => tell(true, ""),
            Err(error) => tell(false, &format!("; it could NOT be undone: {error}")),
        }
    }
}

/// When a file was last changed or moved, which nobody can set.
pub(crate) fn changed(metadata: &fs::Metadata) -> SystemTime {
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).unwrap_or(0);
    UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

/// A file with other bytes.
fn file_like(content: &Content, bytes: Vec<u8>) -> Content {
    const USUAL: u32 = 0o644;
    let mode = match content {
        Content::File { mode, .. } => *mode,
        _ => USUAL,
    };
    Content::File { bytes, mode }
}
