//! What a session leaves behind that would run outside.
//!
//! Files that exist at the start and run outside are read-only inside. The others are compared
//! before and after the session: files that programs outside execute unasked, and everything that
//! makes git run programs or leads it elsewhere. Changes of git's files are *defused*: the file is
//! restored, the session's version is kept beside the log, and the user gets a report with the
//! command that accepts it. Settings that only describe stay as the session set them
//! ([`git::settings`](crate::git::settings)).
//!
//! ```text
//! Watch::begin   Repositories → Controls → Baseline, shared by sessions of one place
//! Watch::settle  Repositories → Controls, compared → quarantine, files restored, Findings
//! ```
//!
//! Hidden files are compared, too: a program outside that replaces one by a rename removes its
//! cover, and nobody is asked.
//!
//! All of these files may be hostile: nothing is executed, no link is followed, and both the amount
//! that is read and the time are bounded. What was not checked is reported.

pub(crate) mod baseline;
pub(crate) mod bounds;
pub(crate) mod content;
mod covers;
mod diff;
mod edits;
mod entries;
mod finding;
mod live;
mod look;
pub(crate) mod parts;
mod quarantine;
mod reported;
pub(crate) mod restore;
mod settlement;
pub(crate) mod untracked;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

#[cfg(test)]
pub(crate) use self::reported::DOTFILES;
pub(crate) use self::settlement::changed;
use self::{
    baseline::{Baseline, Membership},
    bounds::Bounds,
    covers::Covers,
    edits::Edits,
    entries::Entries,
    live::Places,
    reported::reported_files,
    settlement::Settlement,
};
pub use self::{
    finding::{Change, Finding, folded},
    live::{Alarm, Live},
    quarantine::{Keeping, Kept},
    untracked::accept as accept_tracked,
};
use crate::{
    config::{Config, GitSettings},
    error::Error,
    facts::{Facts, Git, Kind, Place},
    git::{controls::Named, repositories::Repositories, settings::Own},
    plan::Plan,
};

/// How long the start may look, and the end. Both are far longer than they take in any tree that
/// was not made to be slow.
const START: Duration = Duration::from_millis(300);
const END: Duration = Duration::from_millis(800);
/// How long the end looks at what was found in the tree.
const REST: Duration = Duration::from_millis(200);
/// How long it looks for links in the folders that git writes to, besides.
const FOLDERS: Duration = Duration::from_millis(250);
/// How long it looks at the workspace's own repository, besides.
const TOP: Duration = Duration::from_millis(200);
const MOST_FILES: usize = 1_000_000;
/// How deep repositories are looked for in the tree before a session, and how many files that may
/// be. Those that are found later only are judged as new, or told of if they are older.
pub(crate) const SHALLOW: usize = 2;
const FEW_FILES: usize = 4096;
/// The same in directories of an agent's state that hold programs: `marketplaces/NAME` of `plugins` is a clone.
const SHALLOW_IN_STATE: usize = 3;
pub(crate) const DEEP: usize = 2048;

/// What there was before a session.
#[derive(Debug)]
pub struct Watch {
    workspace: PathBuf,
    /// What counts like the workspace.
    given: Vec<PathBuf>,
    /// Of these, what is of an agent's state.
    state: Vec<PathBuf>,
    home: Place,
    /// The repository outside, and all else that a session can write.
    writable: Vec<PathBuf>,
    mode: GitSettings,
    own: Own,
    told: Vec<(PathBuf, &'static str)>,
    edits: Edits,
    entries: Entries,
    hidden: Vec<(PathBuf, Option<Identity>)>,
    covers: Covers,
    baseline: Baseline,
    /// When that of each place was taken, which may be before this session.
    taken: BTreeMap<PathBuf, SystemTime>,
    /// In the order in which they are locked.
    memberships: Vec<Membership>,
    keeping: Option<Keeping>,
    /// What went wrong at the start, to be told at the end.
    begun: Vec<Finding>,
    /// What is kept already: a session may change a file again and again.
    kept: Mutex<Vec<Kept>>,
    /// Files of settings that may stay as they are, each with a hash of its bytes. Nobody inside knows the
    /// key of the hash.
    harmless: Mutex<HashMap<PathBuf, u64>>,
    /// What settings of git's name in places that a session can write.
    named: Mutex<Named>,
    /// What was found when the session was suspended. Whoever looks while the session runs holds it,
    /// so that the warden never stops in the middle of putting a file back.
    suspended: Mutex<Vec<Finding>>,
}

/// Which file it is, whatever is in it: its device and number.
pub(crate) type Identity = (u64, u64);

impl Watch {
    /// Looks before the session. Without a place to keep things nothing is put back.
    ///
    /// # Errors
    /// If sessions that run in the same place cannot be heard of, or wait for too long.
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
        let hidden: Vec<_> = hidden.collect();
        let given = config.write.iter().chain(&config.agent.state);
        let given = given.filter_map(|request| Some(facts.found.get(&request.path)?.real.clone()));
        let writable: Vec<PathBuf> = [facts.workspace.clone()]
            .into_iter()
            .chain(facts.git.outside.clone())
            .chain(given)
            .collect();
        let own = Own::read(&facts.home.real, &writable);
        // What is given by a link is covered under the link's name.
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let links = facts.given.iter().flat_map(|_| plan.covers()).map(real);
        let links: BTreeSet<PathBuf> = links.collect();
        let covers = plan.covers().chain(links.iter().map(PathBuf::as_path));
        let names = hidden.iter().map(|(path, _)| path.clone()).collect();
        let entries = Entries::new(&facts.workspace, &facts.git, names, &writable);
        let mut watch = Self {
            workspace: facts.workspace.clone(),
            given: facts.given.iter().map(|given| given.path.clone()).collect(),
            state: (facts.given.iter().filter(|given| given.is_state))
                .map(|given| given.path.clone())
                .collect(),
            home: facts.home.clone(),
            covers: Covers::new(covers, &writable),
            writable,
            own,
            mode: config.git,
            told: reported_files(config, facts),
            edits: Edits::new(facts),
            entries,
            hidden,
            baseline: Baseline::default(),
            taken: BTreeMap::new(),
            memberships: Vec::new(),
            keeping,
            begun: Vec::new(),
            kept: Mutex::default(),
            harmless: Mutex::default(),
            named: Mutex::default(),
            suspended: Mutex::default(),
        };
        let given = facts.given.iter().map(|given| (&given.path, &given.git));
        let tops = [(&facts.workspace, &facts.git)].into_iter().chain(given);
        let (mut parts, mut abandoned) = (Vec::new(), Vec::new());
        // Each has a baseline of its own: sessions with other workspaces may share one of them.
        for (top, git) in tops {
            let take = || {
                let bounds = Bounds::new(START, MOST_FILES, &|| false);
                watch.take(top, git, &bounds)
            };
            let Some(Keeping { state, session }) = &watch.keeping else {
                parts.push((top.as_path(), take()));
                continue;
            };
            let joined = baseline::join(state, session, top, take);
            let joined = joined.map_err(|error| Error::Baseline {
                path: top.clone(),
                state: state.clone(),
                error,
            })?;
            watch.memberships.push(joined.membership);
            parts.push((top.as_path(), joined.baseline));
            abandoned.push(joined.abandoned);
        }
        watch.note_files(config, facts)?;
        watch.note_untracked(&facts.guards.untracked);
        let order = |one: &Membership, other: &Membership| one.order().cmp(other.order());
        watch.memberships.sort_by(order);
        watch.join(&parts, &abandoned);
        Ok(watch)
    }

    /// So that later sessions know which files this one could write outside of its directories.
    fn note_files(&self, config: &Config, facts: &Facts) -> Result<(), Error> {
        let Some(Keeping { state, .. }) = &self.keeping else {
            return Ok(());
        };
        let found = config.write.iter();
        let found = found.filter_map(|request| facts.found.get(&request.path));
        for file in found.filter(|found| found.kind == Kind::File) {
            let path = &file.real;
            baseline::note(state, path).map_err(|error| Error::Baseline {
                path: path.clone(),
                state: state.clone(),
                error,
            })?;
        }
        Ok(())
    }

    /// So that no later session takes these for files that the user tracks.
    fn note_untracked(&mut self, paths: &[PathBuf]) {
        let Some(Keeping { state, .. }) = &self.keeping else {
            return;
        };
        let locks = self.locks();
        let tops = self.tops();
        let note = |top: &&Path| {
            let own = paths.iter().filter(|path| innermost(&tops, path) == *top);
            let own: Vec<PathBuf> = own.cloned().collect();
            let error = untracked::note(state, top, &own).err()?;
            let why = format!(
                "a later session may take files for tracked that git does not track now: {error}"
            );
            Some(Finding::new(top, Change::Unseen, why))
        };
        let findings: Vec<Finding> = tops.iter().filter_map(note).collect();
        drop(locks);
        self.begun.extend(findings);
    }

    fn join(&mut self, parts: &[(&Path, Baseline)], abandoned: &[Option<Baseline>]) {
        let taken = |(top, part): &(&Path, Baseline)| (top.to_path_buf(), part.taken);
        self.taken = parts.iter().map(taken).collect();
        let whole = self.merged(parts.iter().map(|(top, part)| (*top, part)));
        if abandoned.iter().any(Option::is_some) {
            let parts = parts.iter().zip(abandoned);
            self.baseline = self.merged(
                parts.map(|((top, part), abandoned)| (*top, abandoned.as_ref().unwrap_or(part))),
            );
            let mode = std::mem::replace(&mut self.mode, GitSettings::Tell);
            let found = self.settle(&|| false);
            self.mode = mode;
            self.begun.extend(found);
            for finding in &mut self.begun {
                finding.why += "; an earlier session that was killed left it";
            }
        }
        self.baseline = whole;
    }

    /// The baselines of all places as one. Where one place lies in another, that of the inner counts.
    fn merged<'a>(&self, parts: impl Iterator<Item = (&'a Path, &'a Baseline)>) -> Baseline {
        let tops = self.tops();
        let mut whole = Baseline::default();
        let mut taken: Option<SystemTime> = None;
        for (top, part) in parts {
            taken = Some(taken.map_or(part.taken, |taken| taken.min(part.taken)));
            whole.is_partial |= part.is_partial;
            whole.has_all_repositories &= part.has_all_repositories;
            whole.repositories.extend(part.repositories.iter().cloned());
            for (objects, identity) in &part.objects {
                if innermost(&tops, objects) == top || !whole.objects.contains_key(objects) {
                    whole.objects.insert(objects.clone(), *identity);
                }
            }
            for (repository, branches) in &part.branches {
                if innermost(&tops, repository) == top || !whole.branches.contains_key(repository) {
                    let branches = branches.clone();
                    whole.branches.insert(repository.clone(), branches);
                }
            }
            for (path, content) in &part.contents {
                if innermost(&tops, path) == top || !whole.contents.contains_key(path) {
                    whole.contents.insert(path.clone(), content.clone());
                }
            }
        }
        whole.taken = taken.unwrap_or(UNIX_EPOCH);
        whole
    }

    /// The workspace and what counts like it.
    fn tops(&self) -> Vec<&Path> {
        let all = [&self.workspace].into_iter().chain(&self.given);
        all.map(PathBuf::as_path).collect()
    }

    /// The same, with what git makes of each now.
    fn gits(&self) -> Vec<(&Path, Git)> {
        let git = |top: &Path| {
            let git = Git::find(top, &self.home);
            // A file that the session made may name a repository that it was not given.
            let mut outside = git.outside.iter();
            match top == self.workspace && outside.all(|it| self.writable.contains(it)) {
                true => git,
                false => Git::find_given(top, &self.home, &self.writable),
            }
        };
        let tops = self.tops().into_iter();
        tops.map(|top| (top, git(top))).collect()
    }

    /// When the baseline that this path is a part of was taken.
    fn taken(&self, path: &Path) -> SystemTime {
        let taken = self.taken.get(innermost(&self.tops(), path));
        taken.copied().unwrap_or(UNIX_EPOCH)
    }

    /// What was found before the session already.
    #[must_use]
    pub fn begun(&self) -> &[Finding] {
        &self.begun
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
        let gits = self.gits();
        let settlement = Settlement::begin(self, &gits, false);
        is_interrupted();
        between();
        let locks = self.locks();
        let bounds = Bounds::new(END, MOST_FILES, is_interrupted);
        let mut repositories = Repositories::default();
        self.search(&gits, &bounds, &mut repositories, None);
        for directory in &self.baseline.repositories {
            repositories.found.entry(directory.clone()).or_default();
        }
        let is_cut = bounds.are_reached();
        // However long the search took, there is time for what it found.
        let rest = || Bounds::new(REST, MOST_FILES, is_interrupted);
        match is_cut {
            true => settlement.compare(&repositories, &rest()),
            false => settlement.compare(&repositories, &bounds),
        }
        settlement.close_ways(&repositories, is_cut);
        let before = repositories.len();
        let deep = if is_cut { rest() } else { bounds };
        self.search(&gits, &deep, &mut repositories, Some(DEEP));
        if repositories.len() > before {
            settlement.compare(&repositories, &rest());
        }
        settlement.close_folders(&gits, &repositories, is_interrupted);
        let mut findings = settlement.end();
        let unseen = repositories.unseen.0.iter();
        findings.extend(unseen.map(|(path, why)| Finding::new(path, Change::Unseen, *why)));
        findings.extend(self.replaced());
        findings.extend(self.entries.findings());
        if is_interrupted() {
            let why = "the look at what the session left behind was interrupted";
            findings.push(Finding::new(&self.workspace, Change::Unseen, why));
        }
        finding::sort(&mut findings);
        drop(locks);
        findings
    }

    /// No session starts or ends in these places meanwhile.
    fn locks(&self) -> Vec<io::Result<File>> {
        self.memberships.iter().map(Membership::lock).collect()
    }

    /// The same of what git comes to from the top, while the session runs. Says if there was no time for
    /// all that makes git run programs. If git outside is to come to none of that, `closes` says so.
    fn settle_known(&self, bounds: &Bounds<'_>, closes: bool) -> (Vec<Finding>, Places, bool) {
        let (settlement, repositories, is_cut) = self.look_while_it_runs(bounds);
        if is_cut && closes {
            settlement.close_ways(&repositories, true);
        }
        (settlement.end(), self.places(repositories), is_cut)
    }

    fn look_while_it_runs(&self, bounds: &Bounds<'_>) -> (Settlement<'_>, Repositories, bool) {
        let locks = self.locks();
        let gits = self.gits();
        let settlement = Settlement::begin(self, &gits, true);
        let mut repositories = Repositories::default();
        self.search(&gits, bounds, &mut repositories, None);
        // `git mv` moves a submodule before it says so in its settings.
        let is_there = |worktree: &Path| fs::symlink_metadata(worktree).is_ok();
        let misplaced = &mut repositories.misplaced;
        misplaced.retain(|_, (worktree, _)| is_there(worktree));
        for directory in &self.baseline.repositories {
            repositories.found.entry(directory.clone()).or_default();
        }
        let is_cut = bounds.are_reached();
        settlement.compare(&repositories, bounds);
        drop(locks);
        let is_cut = is_cut || settlement.has_unjudged();
        (settlement, repositories, is_cut)
    }

    /// The same of the workspace's own repository alone, and of what is given like it.
    fn settle_top(&self) -> Vec<Finding> {
        Settlement::begin(self, &self.gits(), true).end()
    }

    /// Settles before the session is suspended, when nothing inside runs any more: somebody has a shell
    /// then, and nobody looks. `stop` returns when the session continues.
    pub fn pause(&self, tell: impl FnOnce(&[Finding]), stop: impl FnOnce()) {
        let mut suspended = locked(&self.suspended);
        let within = |time| Bounds::new(time, MOST_FILES, &|| false);
        let (settlement, _, is_cut) = self.look_while_it_runs(&within(TOP));
        let mut findings = settlement.end();
        if is_cut {
            let (settlement, repositories, is_cut) = self.look_while_it_runs(&within(END));
            // Git outside must not come to what nobody has looked at.
            if is_cut {
                settlement.close_ways(&repositories, true);
            }
            findings.extend(settlement.end());
        }
        // The end says what else there is.
        findings.retain(|it| matches!(it.what, Change::Undone(_)) || it.is_left());
        finding::sort(&mut findings);
        tell(&findings);
        suspended.extend(findings);
        stop();
    }

    /// Where a change may have git run something.
    fn places(&self, repositories: Repositories) -> Places {
        let named = locked(&self.named);
        let roots = repositories.found.values();
        let roots = roots.flat_map(|repository| repository.roots.clone());
        let others = named.files.iter().cloned().chain(roots);
        let others = others.chain(repositories.links);
        let others = others.chain(self.edits.paths().map(Path::to_owned));
        let others = others.collect();
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
        for finding in locked(&self.suspended).drain(..) {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
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
        let why = "what was hidden could be read from then on";
        replaced.map(move |(path, _)| Finding::new(path, Change::Replaced, why))
    }
}

/// The workspace, or what is given like it, that a path lies in; the first of those if in none.
pub(crate) fn innermost<'a>(tops: &[&'a Path], path: &Path) -> &'a Path {
    let holding = tops.iter().filter(|top| path.starts_with(top));
    let innermost = holding.max_by_key(|top| top.as_os_str().len());
    innermost
        .or(tops.first())
        .copied()
        .unwrap_or(Path::new("/"))
}

/// What a mutex holds, also if a thread that held it has panicked.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn identity(path: &Path) -> Option<Identity> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// The directories of a repository in which something can appear that git acts on.
const WATCHED_DIRECTORIES: [&str; 17] = [
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
    "objects",
    "objects/info",
    "objects/pack",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

/// Now, by the clock of file systems: they give what is made the time of the last tick.
fn a_moment_ago() -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(Duration::from_millis(20)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
