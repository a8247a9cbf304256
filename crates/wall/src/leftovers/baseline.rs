//! The files as they were before a session: one baseline for all sessions that run in a workspace,
//! or in another directory that is given to be written, at the same time. If each session had its
//! own, one could plant what the next one takes for normal.
//!
//! The baseline lies in the directory of Stockade's own state, which no session sees. Each session
//! holds a lock on a file of its own beside it; the kernel releases the lock however the process
//! ends. The baseline of the first session is valid until the last one has ended.
//!
//! Other workspaces may reach the same repository: worktrees share one, and a workspace may lie in
//! another. A new baseline takes from those of all sessions that run what they say of such a
//! repository, and not what is there now.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FlockOperation, flock};

use serde::{Deserialize, Serialize};

use super::{Identity, content::Content, settlement::changed};
use crate::{
    encoding::{Text, decode, encode, list, map},
    git::branches::Branches,
};

const VERSION: u64 = 4;
/// How long another session's start or end is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// The same at the start, which cannot do without: longer than an end takes.
const START_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Baseline {
    pub(crate) taken: SystemTime,
    /// There was no time to look at all of them.
    pub(crate) is_partial: bool,
    /// Whether there was time for all repositories, and for what in them has git run programs. A session can
    /// leave very many other files there.
    #[serde(default)]
    pub(crate) has_all_repositories: bool,
    #[serde(with = "map")]
    pub(crate) contents: BTreeMap<PathBuf, Content>,
    /// The directories of repositories that were looked at.
    #[serde(with = "list")]
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// The branches of those of which all are known.
    #[serde(with = "map")]
    pub(crate) branches: BTreeMap<PathBuf, Branches>,
    /// Which directories those were that hold the objects of repositories.
    #[serde(with = "map")]
    pub(crate) objects: BTreeMap<PathBuf, Identity>,
}

/// This session's part in a shared baseline.
#[derive(Debug)]
pub(crate) struct Membership {
    directory: PathBuf,
    session: String,
    /// Locked as long as the session lives.
    _member: File,
}

/// What a session that starts is given.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) baseline: Baseline,
    pub(crate) membership: Membership,
    /// A baseline whose sessions have all died without looking again.
    pub(crate) abandoned: Option<Baseline>,
}

/// The baseline of the sessions that run in this workspace, or a new one. Never one beside that of
/// others: it could hold what one of them has planted, and this one would put that back.
pub(crate) fn join(
    state: &Path,
    session: &str,
    workspace: &Path,
    take: impl Fn() -> Baseline,
) -> io::Result<Joined> {
    let directory = state.join("baselines").join(name_of(workspace));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)?;
    let _lock = lock(&directory, START_PATIENCE)?;
    // Whoever starts later finds this baseline, wherever that is.
    let _start = wait_for(open(&state.join("baselines.lock"))?, START_PATIENCE)?;
    let kept = read(&directory, workspace);
    let is_in_use = is_in_use(&directory);
    if is_in_use && kept.is_none() {
        return Err(io::Error::other("what they started from cannot be read"));
    }
    let member = open(&directory.join(format!("session-{session}")))?;
    flock(&member, FlockOperation::NonBlockingLockExclusive)?;
    let (baseline, abandoned) = match kept {
        Some(kept) if is_in_use => (kept, None),
        kept => {
            // Before the look: one that ends meanwhile has put back what it planted, or it counts.
            let others = others(state, &directory)?;
            let mut baseline = take();
            for (top, other) in others {
                baseline.inherit(&top, other);
            }
            // On a full disk the session is alone: others find that it runs, and no baseline.
            if write(&directory, workspace, &baseline).is_err() {
                let _ = fs::remove_file(directory.join("baseline.new"));
                match fs::remove_file(directory.join("baseline")) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            (baseline, kept)
        }
    };
    Ok(Joined {
        baseline,
        membership: Membership {
            directory,
            session: session.to_owned(),
            _member: member,
        },
        abandoned,
    })
}

/// Notes a place that a session can write, and of which it takes no baseline.
pub(crate) fn note(state: &Path, place: &Path) -> io::Result<()> {
    let directory = state.join("baselines").join(name_of(place));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Whether some session had this place as its workspace, or was given it to write.
pub(crate) fn is_known(state: &Path, place: &Path) -> bool {
    let directory = state.join("baselines").join(name_of(place));
    directory.symlink_metadata().is_ok()
}

/// The baselines of all other sessions that run, each with the directory that it is of.
fn others(state: &Path, own: &Path) -> io::Result<Vec<(PathBuf, Baseline)>> {
    let mut others = Vec::new();
    for entry in fs::read_dir(state.join("baselines"))? {
        let directory = entry?.path();
        if directory == own || !is_in_use(&directory) {
            continue;
        }
        match read_any(&directory) {
            Some(other) => others.push(other),
            // It may have ended since.
            None if !is_in_use(&directory) => {}
            None => {
                let why = "what a session elsewhere started from cannot be read";
                return Err(io::Error::other(why));
            }
        }
    }
    Ok(others)
}

impl Baseline {
    /// Takes what sessions of `top` started from, for all that they may have changed since. A file in
    /// a repository of theirs that they do not know was not there.
    fn inherit(&mut self, top: &Path, other: Self) {
        let ours = self.repositories.clone();
        let theirs = other.repositories.clone();
        let is_ours = |path: &Path| path.ancestors().any(|above| ours.contains(above));
        let is_theirs = |path: &Path| path.ancestors().any(|above| theirs.contains(above));
        let is_shared = |path: &Path| is_ours(path) && is_theirs(path);
        // Whether this one counts depends on what a session can write: they may have passed it over.
        let is_passed_over = |path: &Path| {
            path.ends_with("objects/info/alternates")
                && fs::symlink_metadata(path).is_ok_and(|file| changed(&file) < other.taken)
        };
        self.repositories.retain(|path| !is_theirs(path));
        self.branches.retain(|path, _| !is_theirs(path));
        self.objects.retain(|path, _| !is_theirs(path));
        self.contents
            .retain(|path, _| !is_theirs(path) || is_passed_over(path));
        let mut repositories = other.repositories;
        repositories.retain(|path| is_shared(path));
        self.repositories.extend(repositories);
        let mut branches = other.branches;
        branches.retain(|path, _| is_shared(path));
        self.branches.extend(branches);
        let mut objects = other.objects;
        objects.retain(|path, _| is_shared(path));
        self.objects.extend(objects);
        for (path, content) in other.contents {
            let is_known = path.starts_with(top) && self.contents.contains_key(&path);
            // One that says which repository a worktree has may be gone by now.
            if is_shared(&path) || is_known || path.ends_with(".git") {
                self.contents.insert(path, content);
            }
        }
    }
}

impl Default for Baseline {
    fn default() -> Self {
        Self {
            taken: UNIX_EPOCH,
            is_partial: false,
            has_all_repositories: true,
            contents: BTreeMap::new(),
            repositories: BTreeSet::new(),
            branches: BTreeMap::new(),
            objects: BTreeMap::new(),
        }
    }
}

impl Membership {
    /// What they are locked by the order of, so that no two sessions wait for one another.
    pub(crate) fn order(&self) -> &Path {
        &self.directory
    }

    /// Keeps sessions from starting and ending in this workspace.
    pub(crate) fn lock(&self) -> io::Result<File> {
        lock(&self.directory, PATIENCE)
    }

    /// Says good bye. The last one takes the baseline along. To be called with the lock held.
    fn leave(&self) {
        let _ = fs::remove_file(self.directory.join(format!("session-{}", self.session)));
        if !is_in_use(&self.directory) {
            let _ = fs::remove_file(self.directory.join("baseline"));
        }
    }
}

/// A session that ends, or whose launch fails, has nothing to be looked for any more. One that is
/// killed does not come here.
impl Drop for Membership {
    fn drop(&mut self) {
        // Without it, another session may be about to join. The kernel tells that this one is gone.
        if let Ok(_lock) = self.lock() {
            self.leave();
        }
    }
}

/// Takes what a user accepted into the baseline of the sessions that run, so that their end does
/// not put it back again.
pub(crate) fn accept(state: &Path, path: &Path, content: &Content) -> io::Result<()> {
    let baselines = match fs::read_dir(state.join("baselines")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        baselines => baselines?,
    };
    for directory in baselines.flatten().map(|entry| entry.path()) {
        let _lock = lock(&directory, PATIENCE)?;
        let Some((workspace, mut baseline)) = read_any(&directory) else {
            continue;
        };
        let contents = &mut baseline.contents;
        contents.insert(path.to_owned(), content.clone());
        write(&directory, &workspace, &baseline)?;
    }
    Ok(())
}

/// A name for a path that fits into a directory.
pub(crate) fn name_of(workspace: &Path) -> String {
    // FNV-1a; two workspaces of one name only take turns, since the file says whose it is.
    let bytes = workspace.as_os_str().as_bytes().iter();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn lock(directory: &Path, patience: Duration) -> io::Result<File> {
    wait_for(open(&directory.join("lock"))?, patience)
}

fn wait_for(file: File, patience: Duration) -> io::Result<File> {
    let deadline = Instant::now() + patience;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a session lives that uses it. Files of dead ones are removed.
fn is_in_use(directory: &Path) -> bool {
    let mut is_in_use = false;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(b"session-") {
            continue;
        }
        // Shared, so that of two who ask neither takes the other one for the session.
        let is_dead = File::open(entry.path())
            .is_ok_and(|file| flock(file, FlockOperation::NonBlockingLockShared).is_ok());
        if is_dead {
            let _ = fs::remove_file(entry.path());
        } else {
            is_in_use = true;
        }
    }
    is_in_use
}

fn read(directory: &Path, workspace: &Path) -> Option<Baseline> {
    let (whose, baseline) = read_any(directory)?;
    (whose == workspace).then_some(baseline)
}

fn read_any(directory: &Path) -> Option<(PathBuf, Baseline)> {
    let bytes = fs::read(directory.join("baseline")).ok()?;
    let (version, Text(workspace), baseline): (u64, _, _) = decode(&bytes)?;
    (version == VERSION).then_some((workspace, baseline))
}

fn write(directory: &Path, workspace: &Path, baseline: &Baseline) -> io::Result<()> {
    let contents = encode(&(VERSION, Text(&workspace.to_owned()), baseline))?;
    let new = directory.join("baseline.new");
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    io::Write::write_all(&mut file, &contents)?;
    fs::rename(new, directory.join("baseline"))
}
