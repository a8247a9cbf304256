//! One comparison after a session: each changed file is judged, reported and restored.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashSet},
    fs,
    hash::BuildHasher as _,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
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
    facts::Git,
    git::{
        controls::{Control, Controls, Kind, Stage},
        repositories::{Repositories, Repository},
        settings::{self, Context, GitProgram, Setting},
        unfinished::without_commands,
    },
    tables::autorun::REDIRECTION,
};

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
        let (controls, unseen) = watch.collect(&watch.tops(), repositories, &half, before);
        for (path, why) in unseen.0 {
            self.find(&path, Change::Unseen, why);
        }
        // Settings first, and those that git comes to first: nobody can have them wait for what lies
        // deep, or for very many others.
        let mut nearest: Vec<_> = controls.iter().collect();
        nearest.sort_by_cached_key(|(path, control)| (control.stage, path.iter().count()));
        for (number, (path, control)) in nearest.into_iter().enumerate() {
            let before = self.watch.baseline.contents.get(path);
            let is_same = before.is_some_and(|before| before.is_same(&control.content));
            if is_same && !matches!(control.kind, Kind::Gone(_)) {
                continue;
            }
            let is_first = repositories.is_brief && control.stage == Stage::Settings;
            if bounds.are_reached() && !is_first {
                let left = controls.len() - number;
                let why = format!("there was no time to look at {left} files of git's");
                self.find(&self.watch.workspace, Change::Unseen, &why);
                return;
            }
            self.judge(path, before, control, repositories, &controls);
        }
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
            Kind::Told(_) | Kind::Plan if self.is_live => {}
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
            // Until the end, a look after this one would find it again.
            Kind::Whole(REDIRECTION) if self.is_live && control.content.is_unlisted() => {}
            Kind::Whole(why) => {
                // By its file system, too: the session may write to several, with equal numbers.
                let moved = identity(path).filter(|_| control.content.is_unlisted());
                if moved.is_some_and(|it| !self.moved.borrow_mut().insert(it)) {
                    return;
                }
                self.put_back(path, control, before, &[(change, why)], is_ours);
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
        let is_reached = is_reached && !self.watch.baseline.is_partial;
        is_known || is_reached || !is_older || !path.starts_with(directory)
    }

    fn judge_settings(
        &self,
        path: &Path,
        before: Option<&Content>,
        control: &Control,
        controls: &Controls,
        is_ours: bool,
    ) {
        let Some(now) = control.content.bytes() else {
            let why = "git reads its settings from there";
            let undone = [(Change::Malformed, why)];
            return self.put_back(path, control, before, &undone, is_ours);
        };
        // To ask git takes long. The end judges all of them again.
        let harmless = &self.watch.harmless;
        let hash = locked(harmless).hasher().hash_one(now);
        if self.is_live && locked(harmless).get(path) == Some(&hash) {
            return;
        }
        // Of very many changed files, git reads the first; the others are read by us.
        const LONGEST: Duration = Duration::from_millis(300);
        let git = if self.asked.get() < LONGEST {
            self.git.clone()
        } else {
            GitProgram::none()
        };
        let begin = Instant::now();
        let baseline = &self.watch.baseline;
        let repository = control.repository.as_deref();
        let context = Context {
            repository,
            is_for_all: repository.is_none(),
            is_new: repository.is_some_and(|it| !baseline.repositories.contains(it)),
            branches: repository.and_then(|it| Some(&baseline.branches.get(it)?.0)),
            writable: &self.watch.writable,
            elsewhere: self.remotes_elsewhere(path, control, controls),
            ..Context::default()
        };
        let was = before.and_then(Content::bytes);
        let settled = settings::settle(&git, was, now, &self.watch.own.settings, context);
        self.asked.set(self.asked.get() + begin.elapsed());
        let shown = |setting: &Setting| format!("{} = {}", setting.key(), setting.value());
        for (setting, why) in &settled.told {
            self.find(path, Change::Setting(shown(setting)), why);
        }
        let Some(contents) = settled.contents else {
            const MOST: usize = 4096;
            let mut harmless = locked(harmless);
            if harmless.len() < MOST {
                harmless.insert(path.to_owned(), hash);
            }
            return;
        };
        let undone = settled.undone.into_iter().map(|(change, why)| {
            let change = match change {
                settings::Change::Set(setting) => Change::Setting(shown(&setting)),
                settings::Change::Removed(setting) => Change::SettingGone(shown(&setting)),
                settings::Change::Reordered => Change::Changed,
                settings::Change::Malformed => Change::Malformed,
            };
            (change, why)
        });
        let undone: Vec<_> = undone.collect();
        let result = (before.is_some() || !contents.is_empty())
            .then(|| file_like(before.unwrap_or(&control.content), contents));
        self.put_back(path, control, result.as_ref(), &undone, is_ours);
    }

    /// The remotes that other files of the same repository had an address of, or have now, and those of the
    /// user's own settings. Git pushes to all addresses of a remote, whichever file they are in.
    fn remotes_elsewhere(
        &self,
        path: &Path,
        control: &Control,
        controls: &Controls,
    ) -> BTreeSet<Vec<u8>> {
        let is_other = |(other, it): &(&PathBuf, &Control)| {
            it.kind == Kind::Settings && it.repository == control.repository && *other != path
        };
        let others = controls.iter().filter(is_other);
        let contents = others.flat_map(|(other, control)| {
            let before = self.watch.baseline.contents.get(other);
            before.into_iter().chain([&control.content])
        });
        // Those of the repository itself come before those of its worktrees, of which there may be many.
        const MOST: usize = 8 << 20;
        let mut left = MOST;
        let contents = contents.map_while(|content| {
            let bytes = content.bytes().unwrap_or_default();
            left = left.checked_sub(bytes.len())?;
            Some(bytes)
        });
        let settings = contents.filter_map(|bytes| settings::parse(bytes).ok());
        let own = &self.watch.own;
        let own = own.settings.iter().chain(&own.included).cloned();
        let settings = settings.flatten().chain(own).filter(Setting::is_address);
        let names = settings.filter_map(|setting| Some(setting.subsection()?.to_vec()));
        names.collect()
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
        if !is_ours {
            let also = "; it was not put back, since it may have been there before";
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
        let done = restore::put_or_remove(path, to, &self.patience, covers, is_still);
        let kept = kept.map_err(|error| error.to_string());
        let done = match done {
            // Another look has removed it.
            Err(error) if to.is_some() && fs::symlink_metadata(path).is_err() => {
                Ok(Put::Removed(error))
            }
            done => done,
        };
        match done {
            Ok(Put::Done) => {
                let lost = |error| format!("; what the session made of it is lost: {error}");
                tell(true, &kept.map_or_else(lost, |_| String::new()));
            }
            Ok(Put::Removed(error)) => {
                let was = match kept {
                    Ok(kept) => format!("what it was is kept in {kept:?}"),
                    Err(_) => "what it was is lost".to_owned(),
                };
                let also = format!("; it could not be put back, and was REMOVED: {error}; {was}");
                tell(false, &also);
            }
            // Another look was quicker.
            Err(_) if Content::of(path, &bounds).as_ref() == to => tell(true, ""),
            Err(error) => tell(false, &format!("; it could NOT be put back: {error}")),
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
