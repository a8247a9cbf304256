//! What a session leaves behind that will run outside, and what is done about it.
//!
//! What exists at the start and runs outside is read-only inside. The rest is looked at before and
//! after: files that programs outside execute unasked, and everything by which a repository has
//! git run programs or leads it elsewhere. The latter is *defused*: it is put back to what it
//! was, the session's version is kept beside the log, and the user is told, first of all, with the
//! command that accepts it. Settings that only describe stay as the session set them
//! ([`git::settings`](crate::git::settings)).
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

pub(crate) mod baseline;
pub(crate) mod bounds;
pub(crate) mod content;
mod covers;
mod finding;
mod live;
mod quarantine;
mod restore;
mod settlement;

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use self::{
    baseline::{Baseline, Joined, Membership},
    bounds::{Bounds, Unseen},
    content::Content,
    covers::Covers,
    live::Places,
    settlement::Settlement,
};
pub use self::{
    finding::{Change, Finding, folded},
    live::{Alarm, Live},
    quarantine::{Keeping, Kept},
};
use crate::{
    config::{Config, GitSettings},
    error::Error,
    facts::{Facts, Git, Place},
    git::{
        controls::{Collection, Controls, Kind, Named},
        repositories::{Repositories, Search},
        settings::Own,
    },
    nofollow::Names,
    plan::Plan,
    tables::autorun::{DOTFILE, STATE, WORKSPACE},
};

/// How long the start may look, and the end. Both are far longer than they take in any tree that
/// was not made to be slow.
const START: Duration = Duration::from_millis(300);
const END: Duration = Duration::from_millis(1000);
/// How long it looks at the workspace's own repository, besides.
const TOP: Duration = Duration::from_millis(200);
const MOST_FILES: usize = 1_000_000;
/// How deep repositories are looked for in the tree before a session, and how many files that may
/// be. Those that are found later only are judged as new, or told of if they are older.
pub(crate) const SHALLOW: usize = 2;
const FEW_FILES: usize = 4096;
const DEEP: usize = 2048;

/// What there was before a session.
#[derive(Debug)]
pub struct Watch {
    workspace: PathBuf,
    home: Place,
    /// The repository outside, and all else that a session can write.
    writable: Vec<PathBuf>,
    mode: GitSettings,
    own: Own,
    told: Vec<(PathBuf, &'static str)>,
    hidden: Vec<(PathBuf, Option<Identity>)>,
    covers: Covers,
    baseline: Baseline,
    membership: Option<Membership>,
    keeping: Option<Keeping>,
    /// What went wrong at the start, to be told at the end.
    begun: Vec<Finding>,
    /// What is kept already: a session may change a file again and again.
    kept: Mutex<Vec<AlreadyKept>>,
    /// What settings of git's name in places that a session can write.
    named: Mutex<Named>,
}

/// What the session made of a file, and where that is kept.
#[derive(Debug)]
struct AlreadyKept {
    path: PathBuf,
    content: Content,
    record: PathBuf,
}

/// Which file it is, whatever is in it: its device and number.
type Identity = (u64, u64);

impl Watch {
    /// Looks before the session. Without a place to keep things nothing is put back.
    ///
    /// # Errors
    /// If sessions that run in the same workspace cannot be heard of, or wait for too long.
    pub fn begin(
        config: &Config,
        facts: &Facts,
        plan: &Plan,
        keeping: Option<Keeping>,
    ) -> Result<Self, Error> {
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
        let writable: Vec<PathBuf> = [facts.workspace.clone()]
            .into_iter()
            .chain(facts.git.outside.clone())
            .chain(given)
            .collect();
        let places: Vec<&Path> = writable.iter().map(PathBuf::as_path).collect();
        let own = Own::read(&facts.home.real, &places);
        let mut watch = Self {
            workspace: facts.workspace.clone(),
            home: facts.home.clone(),
            covers: Covers::new(plan.covers(), &writable),
            writable,
            own,
            mode: config.git,
            told: told(config, facts),
            hidden: hidden.collect(),
            baseline: Baseline {
                taken: a_moment_ago(),
                is_partial: false,
                contents: Default::default(),
                repositories: Default::default(),
            },
            membership: None,
            keeping,
            begun: Vec::new(),
            kept: Mutex::default(),
            named: Mutex::default(),
        };
        let take = || {
            let bounds = Bounds::new(START, MOST_FILES, &|| false);
            watch.take(&facts.git, &bounds)
        };
        match &watch.keeping {
            None => watch.baseline = take(),
            Some(Keeping { state, session }) => {
                let joined = baseline::join(state, session, &watch.workspace, take);
                let joined = joined.map_err(|error| Error::Baseline {
                    path: watch.workspace.clone(),
                    state: state.clone(),
                    error,
                })?;
                watch.join(joined);
            }
        }
        Ok(watch)
    }

    fn join(&mut self, joined: Joined) {
        let Joined {
            baseline,
            membership,
            abandoned,
        } = joined;
        self.membership = Some(membership);
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
        let taken = a_moment_ago();
        let (mut search, writable) = (Repositories::default(), self.writable());
        self.search(git, &writable, bounds, &mut search, None);
        let few = Bounds::new(START / 10, FEW_FILES, &|| false);
        let unseen = search.unseen.clone();
        let is_partial = !unseen.0.is_empty();
        self.search(git, &writable, &few, &mut search, Some(SHALLOW));
        // That there are more is told at the end, if it is still so.
        search.unseen = unseen;
        let bounds = Bounds::new(START, MOST_FILES, &|| false);
        let (controls, _) = self.collect(&search, &writable, &bounds, None);
        let contents = controls.into_iter();
        let contents: BTreeMap<_, _> = contents
            .map(|(path, control)| (path, control.content))
            .collect();
        // One that there was no time for is not known: its settings would count as new.
        let is_cut = bounds.are_reached();
        let is_known = |path: &PathBuf| !is_cut || contents.contains_key(&path.join("config"));
        let repositories = search.found.into_keys().chain(search.worktrees);
        Baseline {
            taken,
            is_partial: is_partial || is_cut,
            repositories: repositories.filter(is_known).collect(),
            contents,
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
            own: &self.own,
            before,
            repositories: HashSet::new(),
            is_brief: repositories.is_brief,
            named: Named::default(),
            controls: Controls::new(),
            unseen: Unseen::default(),
        };
        collection.add_repositories(repositories, &self.workspace);
        for path in &self.own.writable {
            collection.named.files.insert(path.clone());
            collection.add_settings(path, None, 0);
        }
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.add(&mut collection.named);
        drop(named);
        if repositories.is_brief {
            return (collection.controls, collection.unseen);
        }
        // Some are directories, with any number of files.
        let half = bounds.half();
        collection.bounds = &half;
        let names = Names::of(self.workspace.clone());
        for (path, why) in self.told.iter().filter(|(path, _)| names.may_hold(path)) {
            collection.add(path, Kind::Told(why), None);
        }
        (collection.controls, collection.unseen)
    }

    /// Looks again, after the session, and puts back what it must not leave behind.
    #[must_use]
    pub fn settle(&self, is_interrupted: &dyn Fn() -> bool) -> Vec<Finding> {
        self.settle_after(|| (), is_interrupted)
    }

    /// The same. `between` is done as soon as the workspace's own repository is settled: that
    /// matters most, and nobody can have it wait for others. Nor is it interrupted.
    fn settle_after(
        &self,
        between: impl FnOnce(),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Vec<Finding> {
        let git = Git::find(&self.workspace, &self.home);
        let writable = self.writable();
        let mut settlement = Settlement::new(self, &writable, false);
        settlement.compare_top(&git);
        is_interrupted();
        between();
        let lock = self.membership.as_ref().map(Membership::lock);
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
    fn settle_known(&self, bounds: &Bounds<'_>) -> (Vec<Finding>, Places) {
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
        let findings = std::mem::take(settlement.findings.get_mut());
        (findings, self.places(repositories))
    }

    /// The same of the workspace's own repository alone.
    fn settle_top(&self) -> Vec<Finding> {
        let git = Git::find(&self.workspace, &self.home);
        let writable = self.writable();
        let mut settlement = Settlement::new(self, &writable, true);
        settlement.compare_top(&git);
        std::mem::take(settlement.findings.get_mut())
    }

    /// Where a change may have git run something.
    fn places(&self, repositories: Repositories) -> Places {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let roots = repositories.found.values();
        let roots = roots.filter_map(|repository| repository.root.clone());
        let others = named.files.iter().cloned().chain(roots);
        let others = others.chain(repositories.links).collect();
        let found = repositories.found.into_keys().chain(repositories.worktrees);
        let known = self.baseline.repositories.iter().cloned();
        Places {
            writable: self.writable.clone(),
            git: found.chain(known).collect(),
            hooks: named.hooks.clone(),
            others,
        }
    }

    /// The end of the session. It gives up its part in the baseline when this is dropped.
    /// `is_interrupted` is asked from the moment on when the workspace's own repository is settled.
    #[must_use]
    pub fn end(&self, live: Option<Live>, is_interrupted: &dyn Fn() -> bool) -> Vec<Finding> {
        if let Some(live) = &live {
            live.ask_to_end();
        }
        let mut findings = Vec::new();
        let between = || findings = live.map(Live::end).unwrap_or_default();
        let found = self.settle_after(between, is_interrupted).into_iter();
        let known: HashSet<Finding> = findings.iter().cloned().collect();
        findings.extend(found.filter(|finding| !known.contains(finding)));
        finding::sort(&mut findings);
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

/// The directories of a repository in which something can appear that git acts on.
const WATCHED_DIRECTORIES: [&str; 11] = [
    "logs",
    "logs/refs",
    "logs/refs/heads",
    "refs",
    "refs/heads",
    "hooks",
    "info",
    "modules",
    "worktrees",
    "remotes",
    "branches",
];

/// Now, by the clock of file systems: they give what is made the time of the last tick.
fn a_moment_ago() -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(Duration::from_millis(20)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
