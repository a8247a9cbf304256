//! What a session leaves behind that will run outside, and what is done about it.
//!
//! What exists at the start and runs outside is read-only inside. The rest is looked at before and
//! after: files that programs outside execute unasked, and everything by which a repository has
//! git run programs or leads it elsewhere. The latter is *defused*: it is put back to what it
//! was, the session's version is kept beside the log, and the user is told, first of all, with the
//! command that accepts it. Settings that only describe stay as the session set them
//! ([`gitconfig`](crate::gitconfig)).
//!
//! ```text
//! Watch::begin   Repositories → Controls → Baseline, shared by sessions of one workspace
//! Watch::settle  Repositories → Controls, compared → quarantine, files put back, Findings
//! ```
//!
//! Looked at twice, too, is what is hidden: a program outside that replaces it by a rename takes
//! the cover off, and nobody inside or outside is asked.
//!
//! All of it may be hostile: nothing is executed, no link is followed, no more than a
//! bounded amount is read, and no longer than a bounded time. What was not looked at is told.

mod baseline;
mod bounds;
mod content;
mod controls;
mod finding;
mod index;
mod kept;
mod live;
mod put;
mod repositories;

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{BTreeSet, HashSet},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use self::{
    baseline::{Baseline, Joined, Membership},
    bounds::{Bounds, Unseen},
    content::Content,
    controls::{Collection, Control, Controls, Kind, without_commands},
    repositories::{Repositories, Repository, Search},
};
pub use self::{
    finding::{Change, Finding, folded},
    kept::{Keeping, Kept},
    live::Live,
};
use crate::{
    beneath,
    config::{Config, GitSettings},
    facts::{Facts, Git, Place},
    gitconfig::{self, Context, GitProgram, Setting},
    protected::{DOTFILE, REDIRECTION, STATE, WORKSPACE},
};

/// How long the start may look, and the end. Both are far longer than they take in any tree that
/// was not made to be slow.
const START: Duration = Duration::from_millis(300);
const END: Duration = Duration::from_millis(1000);
/// How long it looks at the workspace's own repository, besides.
const TOP: Duration = Duration::from_millis(300);
const MOST_FILES: usize = 1_000_000;
/// How deep repositories are looked for in the tree before a session, and how many files that may
/// be. Those that are found later only are judged as new, or told of if they are older.
const SHALLOW: usize = 2;
const FEW_FILES: usize = 4096;
const DEEP: usize = 256;

/// What there was before a session.
#[derive(Debug)]
pub struct Watch {
    workspace: PathBuf,
    home: Place,
    /// The repository outside, and all else that a session can write.
    writable: Vec<PathBuf>,
    mode: GitSettings,
    told: Vec<(PathBuf, &'static str)>,
    hidden: Vec<(PathBuf, Option<Identity>)>,
    baseline: Baseline,
    membership: Option<Membership>,
    keeping: Option<Keeping>,
    /// What went wrong at the start, to be told at the end.
    begun: Vec<Finding>,
    /// What is kept already: a session may change a file again and again.
    kept: Mutex<Vec<(PathBuf, Content)>>,
}

/// Which file it is, whatever is in it: its device and number.
type Identity = (u64, u64);

impl Watch {
    /// Looks before the session. Without a place to keep things nothing is put back.
    #[must_use]
    pub fn begin(config: &Config, facts: &Facts, keeping: Option<Keeping>) -> Self {
        let asked_for = config.hide.iter().map(|request| request.path.clone());
        let secrets = facts.secrets.iter().map(|secret| secret.path.clone());
        // Who cannot read them outside cannot inside.
        let secrets = secrets.filter(|_| facts.is_root);
        let hidden = asked_for.chain(secrets).map(|path| {
            let identity = identity(&path);
            (path, identity)
        });
        let given = config.write.iter().chain(&config.agent.state);
        let given = given.filter_map(|request| Some(facts.found.get(&request.path)?.real.clone()));
        let mut watch = Self {
            workspace: facts.workspace.clone(),
            home: facts.home.clone(),
            writable: [facts.workspace.clone()]
                .into_iter()
                .chain(facts.git.outside.clone())
                .chain(given)
                .collect(),
            mode: config.git,
            told: told(config, facts),
            hidden: hidden.collect(),
            baseline: Baseline {
                taken: SystemTime::now(),
                is_partial: false,
                contents: Default::default(),
                repositories: Default::default(),
            },
            membership: None,
            keeping,
            begun: Vec::new(),
            kept: Mutex::default(),
        };
        let take = || {
            let bounds = Bounds::new(START, MOST_FILES, &|| false);
            watch.take(&facts.git, &bounds)
        };
        match &watch.keeping {
            None => watch.baseline = take(),
            Some(Keeping { state, session }) => {
                let joined = baseline::join(state, session, &watch.workspace, take);
                watch.join(joined);
            }
        }
        watch
    }

    fn join(&mut self, joined: Joined) {
        let Joined {
            baseline,
            membership,
            abandoned,
        } = joined;
        match membership {
            Ok(membership) => self.membership = Some(membership),
            Err(error) => self.begun.push(Finding {
                path: self.workspace.clone(),
                what: Change::Unseen,
                why: format!(
                    "sessions that run in it at the same time do not know of one another: {error}"
                ),
            }),
        }
        if let Some(abandoned) = abandoned {
            self.baseline = abandoned;
            let mode = std::mem::replace(&mut self.mode, GitSettings::Tell);
            let found = self.settle(&|| false);
            self.mode = mode;
            self.begun.extend(found.into_iter().map(|mut finding| {
                finding
                    .why
                    .push_str("; an earlier session that was killed left it");
                finding
            }));
        }
        self.baseline = baseline;
    }

    /// What was found before the session already.
    #[must_use]
    pub fn begun(&self) -> &[Finding] {
        &self.begun
    }

    fn take(&self, git: &Git, bounds: &Bounds<'_>) -> Baseline {
        let taken = SystemTime::now();
        let (mut search, writable) = (Repositories::default(), self.writable());
        self.search(git, &writable, bounds, &mut search, None);
        let few = Bounds::new(START / 10, FEW_FILES, &|| false);
        let unseen = search.unseen.clone();
        let is_partial = !unseen.0.is_empty();
        self.search(git, &writable, &few, &mut search, Some(SHALLOW));
        // That there are more is told at the end, if it is still so.
        search.unseen = unseen;
        let (controls, _) = self.collect(&search, &writable, bounds, None);
        let contents = controls.into_iter();
        Baseline {
            taken,
            is_partial,
            contents: contents
                .map(|(path, control)| (path, control.content))
                .collect(),
            repositories: search.found.into_keys().chain(search.worktrees).collect(),
        }
    }

    fn writable(&self) -> Vec<&Path> {
        self.writable.iter().map(PathBuf::as_path).collect()
    }

    /// From the top, or in the tree.
    fn search(
        &self,
        git: &Git,
        writable: &[&Path],
        bounds: &Bounds<'_>,
        repositories: &mut Repositories,
        depth: Option<usize>,
    ) {
        let mut search = Search {
            workspace: &self.workspace,
            writable,
            bounds,
            repositories: std::mem::take(repositories),
        };
        match depth {
            None => search.look_from_top(git),
            Some(depth) => search.look_in_tree(depth),
        }
        *repositories = search.repositories;
    }

    fn collect(
        &self,
        repositories: &Repositories,
        writable: &[&Path],
        bounds: &Bounds<'_>,
        before: Option<&Baseline>,
    ) -> (Controls, Unseen) {
        let mut collection = Collection {
            bounds,
            writable,
            home: &self.home.real,
            before,
            controls: Controls::new(),
            unseen: Unseen::default(),
        };
        collection.add_repositories(repositories, &self.workspace);
        for (path, why) in &self.told {
            collection.add(path, Kind::Told(why), None);
        }
        (collection.controls, collection.unseen)
    }

    /// Looks again, after the session, and puts back what it must not leave behind.
    #[must_use]
    pub fn settle(&self, is_interrupted: &dyn Fn() -> bool) -> Vec<Finding> {
        let lock = self.membership.as_ref().map(Membership::lock);
        let git = Git::find(&self.workspace, &self.home);
        let writable = self.writable();
        let mut settlement = Settlement::new(self, &writable, false);
        // The workspace's own repository matters most, and nobody can have this wait for others.
        settlement.compare_top(&git);
        let bounds = Bounds::new(END, MOST_FILES, is_interrupted);
        let mut repositories = Repositories::default();
        self.search(&git, &writable, &bounds, &mut repositories, None);
        settlement.compare(&repositories, &bounds);
        let before = repositories.found.len() + repositories.worktrees.len();
        self.search(&git, &writable, &bounds, &mut repositories, Some(DEEP));
        if repositories.found.len() + repositories.worktrees.len() > before {
            settlement.compare(&repositories, &bounds);
        }
        let mut findings = std::mem::take(settlement.findings.get_mut());
        findings.extend(repositories.unseen.0.iter().map(|(path, why)| Finding {
            path: path.clone(),
            what: Change::Unseen,
            why: (*why).to_owned(),
        }));
        findings.extend(self.replaced());
        if is_interrupted() {
            findings.push(Finding {
                path: self.workspace.clone(),
                what: Change::Unseen,
                why: "the look at what the session left behind was interrupted".to_owned(),
            });
        }
        finding::sort(&mut findings);
        drop(lock);
        findings
    }

    /// The same of what git comes to from the top, while the session runs.
    fn settle_known(&self, bounds: &Bounds<'_>) -> Vec<Finding> {
        let lock = self.membership.as_ref().map(Membership::lock);
        let git = Git::find(&self.workspace, &self.home);
        let writable = self.writable();
        let mut settlement = Settlement::new(self, &writable, true);
        settlement.compare_top(&git);
        let mut repositories = Repositories::default();
        self.search(&git, &writable, bounds, &mut repositories, None);
        for directory in &self.baseline.repositories {
            repositories.found.entry(directory.clone()).or_default();
        }
        settlement.compare(&repositories, bounds);
        drop(lock);
        let mut findings = std::mem::take(settlement.findings.get_mut());
        // The end looks at it again, with more time.
        findings.retain(|finding| matches!(finding.what, Change::Undone(_)));
        findings
    }

    /// Where a change may have git run something.
    fn known_directories(&self) -> BTreeSet<PathBuf> {
        let bounds = Bounds::new(START, MOST_FILES, &|| false);
        let git = Git::find(&self.workspace, &self.home);
        let mut repositories = Repositories::default();
        self.search(&git, &self.writable(), &bounds, &mut repositories, None);
        let found = repositories.found.into_keys();
        let all = found.chain(self.baseline.repositories.iter().cloned());
        let mut directories = BTreeSet::from([self.workspace.clone()]);
        for directory in all.chain(repositories.worktrees) {
            for name in [
                "hooks",
                "info",
                "modules",
                "worktrees",
                "remotes",
                "branches",
            ] {
                directories.insert(directory.join(name));
            }
            directories.insert(directory);
        }
        directories
    }

    /// The end: nothing of this session is left.
    #[must_use]
    pub fn end(&self, live: Option<Live>, is_interrupted: &dyn Fn() -> bool) -> Vec<Finding> {
        let mut findings = live.map(Live::end).unwrap_or_default();
        let known: HashSet<Finding> = findings.iter().cloned().collect();
        let found = self.settle(is_interrupted).into_iter();
        findings.extend(found.filter(|finding| !known.contains(finding)));
        finding::sort(&mut findings);
        if let Some(membership) = &self.membership {
            membership.leave();
        }
        findings
    }

    fn replaced(&self) -> impl Iterator<Item = Finding> {
        let replaced = self.hidden.iter().filter(|(path, before)| {
            let after = identity(path);
            after.is_some() && after != *before
        });
        replaced.map(|(path, _)| Finding {
            path: path.clone(),
            what: Change::Replaced,
            why: "what was hidden could be read from then on".to_owned(),
        })
    }
}

/// Files that run by themselves or are obeyed.
fn told(config: &Config, facts: &Facts) -> Vec<(PathBuf, &'static str)> {
    let in_workspace = WORKSPACE
        .iter()
        .map(|runs| (facts.workspace.join(runs.name), runs.why));
    let is_state = |path: &Path| {
        let mut states = config.agent.state.iter();
        states.any(|state| path.starts_with(&state.path))
    };
    let in_home = STATE
        .iter()
        .map(|runs| (facts.home.real.join(runs.name), runs.why))
        .filter(|(path, _)| is_state(path));
    let dotfiles = dotfiles(&facts.home.real, &facts.workspace).into_iter();
    let dotfiles = dotfiles.map(|path| (path, DOTFILE));
    in_workspace.chain(in_home).chain(dotfiles).collect()
}

/// What dotfiles of the home lead to in the workspace, which then is a repository of dotfiles.
fn dotfiles(home: &Path, workspace: &Path) -> Vec<PathBuf> {
    const MOST: usize = 2000;
    let list = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
    let is_dotfile = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    let top = list(home).take(MOST).filter(is_dotfile);
    let below = ["", "systemd/user", "autostart"];
    let below = below.map(|name| home.join(".config").join(name));
    let below = below
        .iter()
        .flat_map(|directory| list(directory).take(MOST));
    top.chain(below)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| fs::canonicalize(entry.path()).ok())
        .filter(|real| real.starts_with(workspace) && real != workspace)
        .collect()
}

fn identity(path: &Path) -> Option<Identity> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// One look after the session.
struct Settlement<'a> {
    watch: &'a Watch,
    writable: &'a [&'a Path],
    git: GitProgram,
    /// The user's own settings, for all repositories.
    own: OnceCell<Vec<Setting>>,
    /// How long git has taken to read files.
    asked: Cell<Duration>,
    findings: RefCell<Vec<Finding>>,
    /// The same, to be looked up.
    told: RefCell<HashSet<Finding>>,
    /// The session runs: what it needs itself until its end is left alone.
    is_live: bool,
    /// How long locks may still be waited for.
    patience: Cell<Duration>,
}

impl<'a> Settlement<'a> {
    fn new(watch: &'a Watch, writable: &'a [&'a Path], is_live: bool) -> Self {
        Self {
            watch,
            writable,
            git: GitProgram::find(),
            own: OnceCell::new(),
            asked: Cell::default(),
            findings: RefCell::default(),
            told: RefCell::default(),
            is_live,
            patience: Cell::new(Duration::from_millis(200)),
        }
    }

    /// The workspace's own repository alone.
    fn compare_top(&self, git: &Git) {
        let bounds = Bounds::new(TOP, MOST_FILES, &|| false);
        let mut repositories = Repositories::default();
        let dot_git = self.watch.workspace.join(".git");
        let top = git.directories.iter().take(1).cloned();
        let is_directory = fs::symlink_metadata(&dot_git).is_ok_and(|metadata| metadata.is_dir());
        for directory in top.chain(is_directory.then(|| dot_git.clone())) {
            let repository = Repository {
                root: Some(self.watch.workspace.clone()),
                is_reached: true,
            };
            repositories.found.insert(directory, repository);
        }
        if git.refused.is_some() {
            repositories.astray.insert(dot_git, true);
        }
        self.compare(&repositories, &bounds);
    }

    fn compare(&self, repositories: &Repositories, bounds: &Bounds<'_>) {
        let (controls, unseen) = {
            let before = Some(&self.watch.baseline);
            self.watch
                .collect(repositories, self.writable, bounds, before)
        };
        for (path, why) in unseen.0 {
            self.find(&path, Change::Unseen, why);
        }
        for (number, (path, control)) in controls.iter().enumerate() {
            let before = self.watch.baseline.contents.get(path);
            if before.is_some_and(|before| before.is_same(&control.content)) {
                continue;
            }
            if bounds.are_reached() {
                let left = controls.len() - number;
                let why = format!("there was no time to look at {left} files of git's");
                self.find(&self.watch.workspace, Change::Unseen, &why);
                return;
            }
            self.judge(path, before, control, repositories);
        }
    }

    fn find(&self, path: &Path, what: Change, why: &str) {
        let finding = Finding {
            path: path.to_owned(),
            what,
            why: why.to_owned(),
        };
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
    ) {
        let change = match before {
            Some(_) => Change::Changed,
            None => Change::Appeared,
        };
        let is_ours = self.is_judged_as_new(path, before, control, repositories);
        match control.kind {
            Kind::Told(_) | Kind::Plan if self.is_live => {}
            Kind::Told(why) => self.find(path, change, why),
            Kind::Whole(why) => {
                self.put_back(path, control, before, &[(change, why)], is_ours);
            }
            Kind::Common if control.content.bytes() == Some(b"../..\n") => {}
            Kind::Common => {
                let undone = [(change, REDIRECTION)];
                self.put_back(path, control, before, &undone, is_ours);
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
            Kind::Settings => self.judge_settings(path, before, control, is_ours),
        }
    }

    /// Whether what is not in the baseline is the session's. A repository that git does not come
    /// to by itself, and that lay there before, may have been too deep to be looked at then.
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
        let is_older = fs::symlink_metadata(directory)
            .and_then(|metadata| metadata.created())
            .is_ok_and(|created| created < self.watch.baseline.taken);
        let is_reached = is_reached && !self.watch.baseline.is_partial;
        is_known || is_reached || !is_older || !path.starts_with(directory)
    }

    fn judge_settings(
        &self,
        path: &Path,
        before: Option<&Content>,
        control: &Control,
        is_ours: bool,
    ) {
        let Some(now) = control.content.bytes() else {
            let why = "git reads its settings from there";
            let undone = [(Change::Malformed, why)];
            return self.put_back(path, control, before, &undone, is_ours);
        };
        // Of very many changed files, git reads the first; the others are read by us.
        const LONGEST: Duration = Duration::from_millis(300);
        let git = if self.asked.get() < LONGEST {
            self.git.clone()
        } else {
            GitProgram::none()
        };
        let begin = Instant::now();
        let context = Context {
            repository: control.repository.as_deref(),
            writable: self.writable,
            ..Context::default()
        };
        let was = before.and_then(Content::bytes);
        let settled = gitconfig::settle(&git, was, now, self.own(), context);
        self.asked.set(self.asked.get() + begin.elapsed());
        let Some(contents) = settled.contents else {
            return;
        };
        let undone = settled.undone.into_iter().map(|(change, why)| {
            let shown = |setting: &Setting| format!("{} = {}", setting.key(), setting.value());
            let change = match change {
                gitconfig::Change::Set(setting) => Change::Setting(shown(&setting)),
                gitconfig::Change::Removed(setting) => Change::SettingGone(shown(&setting)),
                gitconfig::Change::Reordered => Change::Changed,
                gitconfig::Change::Malformed => Change::Malformed,
            };
            (change, why)
        });
        let undone: Vec<_> = undone.collect();
        let result = (before.is_some() || !contents.is_empty())
            .then(|| file_like(before.unwrap_or(&control.content), contents));
        self.put_back(path, control, result.as_ref(), &undone, is_ours);
    }

    /// Settings of the user's own that no session could have written.
    fn own(&self) -> &[Setting] {
        self.own.get_or_init(|| {
            let home = &self.watch.home.real;
            let configured = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            let configured = configured.filter(|path| path.is_absolute());
            let places = [
                PathBuf::from("/etc/gitconfig"),
                configured
                    .unwrap_or_else(|| home.join(".config"))
                    .join("git/config"),
                home.join(".gitconfig"),
            ];
            let real = places.iter().filter_map(|path| fs::canonicalize(path).ok());
            let is_own = |path: &PathBuf| {
                let mut writable = self.writable.iter();
                !writable.any(|place| path.starts_with(place))
            };
            let read = |path: PathBuf| {
                let contents = beneath::read(&path).unwrap_or_default();
                gitconfig::parse(&contents).unwrap_or_default()
            };
            real.filter(is_own).flat_map(read).collect()
        })
    }

    /// Keeps what the session made of a file, unless it is kept already.
    fn keep(
        &self,
        keeping: &Keeping,
        path: &Path,
        theirs: &Content,
        ours: Option<&Content>,
        said: &[String],
    ) -> io::Result<()> {
        let mut kept = self
            .watch
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_kept = |(other, content): &(PathBuf, Content)| other == path && content == theirs;
        if kept.iter().any(is_kept) {
            return Ok(());
        }
        keeping.keep(path, Some(theirs), ours, said)?;
        kept.push((path.to_owned(), theirs.clone()));
        Ok(())
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
        let tell = |result: &dyn Fn(Change) -> Change, also: &str| {
            const MOST: usize = 64;
            for (change, why) in undone.iter().take(MOST) {
                self.find(path, result(change.clone()), &format!("{why}{also}"));
            }
            if let Some(more) = undone.len().checked_sub(MOST).filter(|more| *more > 0) {
                self.find(path, Change::More(more), "");
            }
        };
        if self.watch.mode == GitSettings::Tell {
            return tell(&|change| change, "");
        }
        if !is_ours {
            return tell(
                &|change| change,
                "; it was not put back, since it may have been there before",
            );
        }
        let Some(keeping) = &self.watch.keeping else {
            return tell(&|change| change, "");
        };
        let theirs = Some(&control.content);
        let said: Vec<String> = undone
            .iter()
            .take(16)
            .map(|(what, why)| {
                let finding = Finding {
                    path: path.to_owned(),
                    what: what.clone(),
                    why: (*why).to_owned(),
                };
                finding.to_string()
            })
            .collect();
        let kept = self.keep(keeping, path, &control.content, to, &said);
        let bounds = Bounds::new(END, MOST_FILES, &|| false);
        let is_still = || Content::of(path, &bounds).as_ref() == theirs;
        let done = put::put(path, to, &self.patience, is_still);
        let lost = kept.err();
        let lost = lost.map(|error| format!("; what the session made of it is lost: {error}"));
        match done {
            Ok(()) => tell(
                &|change| Change::Undone(Box::new(change)),
                &lost.unwrap_or_default(),
            ),
            Err(error) => tell(
                &|change| change,
                &format!("; it could NOT be put back: {error}"),
            ),
        }
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;
    use crate::{config::PathRequest, facts::tests::facts};

    struct Workspace {
        _directory: TempDir,
        state: TempDir,
        path: PathBuf,
    }

    impl Workspace {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = fs::canonicalize(directory.path()).unwrap();
            let workspace = Self {
                _directory: directory,
                state: tempfile::tempdir().unwrap(),
                path,
            };
            workspace.write(".git/HEAD", "ref: refs/heads/main\n");
            workspace.write(".git/config", "[core]\n\tbare = false\n");
            workspace.write(".git/hooks/pre-commit.sample", "");
            workspace.write(".vscode/tasks.json", "{}");
            workspace
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.path.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn watch(&self) -> Watch {
            let mut facts = facts();
            facts.workspace = self.path.clone();
            facts.git = Git::find(&self.path, &facts.home);
            let keeping = Keeping {
                state: self.state.path().to_owned(),
                session: "1".to_owned(),
            };
            Watch::begin(&Config::default(), &facts, Some(keeping))
        }

        /// What is found after `change`, as text without the workspace's path.
        fn found(&self, change: impl FnOnce()) -> Vec<String> {
            let watch = self.watch();
            assert_eq!(watch.settle(&|| false), []);
            change();
            let prefix = format!("{}/", self.path.display());
            let findings = watch.end(None, &|| false).into_iter();
            findings
                .map(|finding| finding.to_string().replace(&prefix, ""))
                .collect()
        }
    }

    #[test]
    fn new_and_changed_files_that_run_outside_are_found() {
        let workspace = Workspace::new();
        let found = workspace.found(|| {
            workspace.write(".envrc", "evil");
            workspace.write(".vscode/tasks.json", "{ }");
            workspace.write(".husky/pre-commit", "evil");
            workspace.write("README.md", "fine");
        });
        assert_eq!(
            found,
            [
                "\".envrc\" is new: direnv runs it outside, when a shell enters the directory",
                "\".husky\" is new: git's hooks run its commands outside, with commits",
                "\".vscode\" has changed: VS Code runs its tasks outside, when it opens the directory",
            ]
        );
    }

    #[test]
    fn hooks_are_found_and_samples_are_not() {
        let workspace = Workspace::new();
        let found = workspace.found(|| {
            workspace.write(".git/hooks/post-checkout", "evil");
            workspace.write(".git/hooks/update.sample", "");
        });
        assert_eq!(
            found,
            ["put back: \".git/hooks/post-checkout\" is new: git runs them outside"]
        );
    }

    #[test]
    fn settings_that_run_programs_are_found_also_in_a_new_repository() {
        let workspace = Workspace::new();
        let found = workspace.found(|| {
            workspace.write(
                ".git/config",
                "[core]\n\tbare = false\n\tfsmonitor = \"ev\\nil\"\n[user]\n\tname = x\n",
            );
        });
        assert_eq!(
            found,
            [
                "put back: \".git/config\" has a new setting \"core.fsmonitor = ev\\nil\": makes git run a program"
            ]
        );
        fs::remove_dir_all(workspace.path.join(".git")).unwrap();
        let found = workspace.found(|| {
            workspace.write(".git/config", "[core]\n\thooksPath = x\n");
            workspace.write("x/pre-commit", "evil");
        });
        assert_eq!(
            found,
            [
                "put back: \".git/config\" has a new setting \"core.hookspath = x\": makes git run a program"
            ]
        );
        let left = fs::read_to_string(workspace.path.join(".git/config"));
        assert!(left.is_err(), "{left:?}");
    }

    #[test]
    fn what_leads_git_past_what_is_looked_at_is_found() {
        const EVIL: &str = "[core]\n\tfsmonitor = evil\n";
        let workspace = Workspace::new();
        let common = ".git/commondir";
        let found = workspace.found(|| workspace.write(common, "../x\n"));
        let why = "git takes settings and hooks from where it leads";
        assert_eq!(found, [format!("put back: {common:?} is new: {why}")]);
        assert!(!workspace.path.join(common).exists());

        // A worktree that git made is nothing to tell of.
        let common = ".git/worktrees/t/commondir";
        let found = workspace.found(|| workspace.write(common, "../..\n"));
        assert_eq!(found, [""; 0]);
        let found = workspace.found(|| workspace.write(common, "../../../x\n"));
        assert_eq!(found, [format!("put back: {common:?} has changed: {why}")]);
        let found = workspace.found(|| workspace.write(".git/worktrees/t/config.worktree", EVIL));
        assert_eq!(found.len(), 1, "{found:?}");

        // Settings that git reads and we do not.
        let config = workspace.path.join(".git/config");
        for plant in [
            &(|| workspace.write(".git/config", &(" ".repeat(1 << 20) + EVIL))) as &dyn Fn(),
            &|| {
                workspace.write("config", EVIL);
                fs::remove_file(&config).unwrap();
                symlink("../config", &config).unwrap();
            },
        ] {
            fs::remove_file(&config).ok();
            workspace.write(".git/config", "");
            let found = workspace.found(plant);
            assert!(found[0].contains("config\" cannot be read"), "{found:?}");
        }

        // A repository in another form.
        let dot_git = workspace.path.join(".git");
        let found = workspace.found(|| {
            fs::rename(&dot_git, workspace.path.join("moved")).unwrap();
            symlink("moved", &dot_git).unwrap();
        });
        assert_eq!(found, [format!("put back: \".git\" is new: {why}")]);
        assert!(fs::symlink_metadata(&dot_git).is_err());
        fs::remove_file(workspace.path.join("config")).unwrap();
        let found = workspace.found(|| {
            workspace.write("HEAD", "ref: refs/heads/main\n");
            workspace.write("commondir", "moved\n");
        });
        assert_eq!(found, [format!("put back: \"commondir\" is new: {why}")]);
    }

    #[test]
    fn files_that_settings_include_are_settings() {
        let workspace = Workspace::new();
        workspace.write(".git/config", "[include]\n\tpath = ../.gitconfig\n");
        workspace.write(".gitconfig", "");
        let found = workspace.found(|| workspace.write(".gitconfig", "[alias] x = !evil\n"));
        assert_eq!(
            found,
            [
                "put back: \".gitconfig\" has a new setting \"alias.x = !evil\": makes git run a program"
            ]
        );
        let found = workspace.found(|| workspace.write(".git/config", "[core\n"));
        assert!(
            found[0].starts_with("put back: \".git/config\" cannot be read"),
            "{found:?}"
        );
    }

    #[test]
    fn what_was_hidden_and_is_another_file_now_is_told() {
        let workspace = Workspace::new();
        workspace.write(".env", "TOKEN=decoy");
        workspace.write("new", "TOKEN=other");
        let path = workspace.path.join(".env");
        let mut config = Config::default();
        config.hide.push(PathRequest {
            path: path.clone(),
            required: true,
            by: String::new(),
        });
        let mut facts = facts();
        facts.workspace = workspace.path.clone();
        let watch = Watch::begin(&config, &facts, None);
        workspace.write(".env", "written in place");
        assert_eq!(watch.settle(&|| false), []);
        fs::rename(workspace.path.join("new"), &path).unwrap();
        let found = watch.settle(&|| false);
        let [Finding { what, .. }] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(*what, Change::Replaced);
    }

    #[test]
    fn links_are_told_and_not_followed() {
        let workspace = Workspace::new();
        let found = workspace.found(|| {
            symlink("/dev/zero", workspace.path.join(".envrc")).unwrap();
            symlink("/", workspace.path.join(".idea")).unwrap();
        });
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
