//! The watch while the session runs: somebody may type `git status` outside before it ends.
//!
//! The kernel (inotify) reports changes in the directories of the repositories that git reaches from
//! the top, and a thread of the warden settles them at once. It does not report what is written
//! through a mapping, or by another name of the file; so the thread also looks twice a second, and less
//! often where a look takes long. A command that does again at once what was undone would win some
//! of the time: that ends the session.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    fs, io,
    mem::MaybeUninit,
    ops::Bound,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

use stockade_sys::{
    closing::SlowToClose,
    process::{cpu_time_of_thread, time_waited_of_thread},
};

use super::{
    Bounds, Change, Finding, MOST_FILES, Repositories, WATCHED_DIRECTORIES, Watch, edits::Seen,
    locked,
};
use crate::{error::Error, facts::is_in, git::unfinished::is_part_of_unfinished};

/// How long one look may take, and how long there is none after it at least.
const LOOK: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(10);
/// How long a look may take where that was too short. Shorter than others wait for their turn.
const LONG_LOOK: Duration = Duration::from_secs(2);
/// How much of that it has the processor at least, unless others need it. Half of it is for what is found.
const OWN_TIME: Duration = Duration::from_millis(800);
/// How often is looked where nobody tells of changes. The kernel does not tell of all.
const RARELY: Duration = Duration::from_millis(500);
/// What part of the time that takes at most, where it tells of others.
const SHARE: u32 = 50;
/// How often the workspace's own repository is looked at while others are.
const OFTEN: Duration = Duration::from_millis(100);
const MOST_WATCHES: usize = 2048;
/// How often something in one directory may have to be put back within this time. A tool that sets its
/// hooks at each installation comes nowhere near.
const MOST_TIMES: usize = 10;
const SHORTLY: Duration = Duration::from_secs(10);

/// A watch that runs beside the session, until it is ended.
#[derive(Debug)]
pub struct Live {
    end: Arc<OwnedFd>,
    findings: Arc<Mutex<Vec<Finding>>>,
    alarm: Arc<Alarm>,
    thread: Option<JoinHandle<()>>,
}

/// Says that the session has to end, and why.
#[derive(Debug)]
pub struct Alarm {
    is_raised: OwnedFd,
    cause: Mutex<Cause>,
}

#[derive(Debug)]
enum Cause {
    /// What the command did again and again.
    Fight(String),
    /// It made more repositories than there is time to look at.
    Flood,
}

impl Alarm {
    fn raise_for(&self, finding: &Finding) {
        let what = match &finding.what {
            Change::Undone(change) => change,
            change => change,
        };
        let path = &finding.path;
        self.raise(Cause::Fight(match what {
            Change::Setting(setting) => {
                let key = setting.split(" = ").next().unwrap_or_default();
                format!("set {key:?} in {path:?}")
            }
            _ => format!("changed {path:?}"),
        }));
    }

    fn raise(&self, cause: Cause) {
        *locked(&self.cause) = cause;
        // It is read by nobody, so it cannot be full.
        let _ = rustix::io::write(&self.is_raised, &1_u64.to_ne_bytes());
    }

    /// Why the session has to end, after the alarm was raised.
    pub(crate) fn error(&self) -> Error {
        match &*locked(&self.cause) {
            Cause::Fight(what) => Error::Fight(what.clone()),
            Cause::Flood => Error::Flood,
        }
    }
}

/// Readable when the alarm was raised.
impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.is_raised.as_fd()
    }
}

impl Live {
    /// To be called by a thread that has given up what it does not need: this one inherits that.
    /// `tell` gets each change of a file that runs by itself and that the command may write.
    ///
    /// # Errors
    /// If there are no descriptors or threads left.
    pub fn begin(watch: Arc<Watch>, tell: impl Fn(Finding) + Send + 'static) -> io::Result<Self> {
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let findings = Arc::new(Mutex::new(Vec::new()));
        let alarm = Arc::new(Alarm {
            is_raised: eventfd(0, EventfdFlags::CLOEXEC)?,
            cause: Mutex::new(Cause::Flood),
        });
        let mut looking = Looking {
            seen: RefCell::new(Seen::new(&watch.edits, &watch.baseline.contents)),
            tell: Box::new(tell),
            watch,
            end: Arc::clone(&end),
            findings: Arc::clone(&findings),
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
                .map_err(io::Error::from)
                .and_then(SlowToClose::new)
                .ok(),
            watched: HashMap::new(),
            is_partial: false,
            idle: RARELY,
            places: Places::default(),
            alarm: Arc::clone(&alarm),
            times: RefCell::default(),
        };
        // Before the command is there: what it does first counts, too.
        let places = looking.watch.places(Repositories::default());
        looking.watch_more(places);
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || looking.serve())?;
        Ok(Self {
            end,
            findings,
            alarm,
            thread: Some(thread),
        })
    }

    /// What ends the session, to be given to those who watch over it.
    #[must_use]
    pub fn alarm(&self) -> Arc<Alarm> {
        Arc::clone(&self.alarm)
    }

    /// What was found while the session ran.
    #[must_use]
    pub fn end(mut self) -> Vec<Finding> {
        self.stop();
        std::mem::take(&mut *locked(&self.findings))
    }

    /// Without waiting for it.
    pub(super) fn ask_to_end(&self) {
        // It is read by nobody, so it cannot be full.
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
    }

    /// Waits for the look that is under way, which is bounded; if it is not after all, no longer
    /// than this. What it finds then is lost, and the end finds what it left.
    fn stop(&mut self) {
        const LONGEST: Duration = Duration::from_millis(500);
        const MOMENT: Duration = Duration::from_millis(1);
        self.ask_to_end();
        let until = Instant::now() + LONGEST;
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && Instant::now() < until {
                thread::sleep(MOMENT);
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Looking {
    watch: Arc<Watch>,
    /// Of the files that run by themselves and may be changed.
    seen: RefCell<Seen>,
    tell: Box<dyn Fn(Finding) + Send>,
    end: Arc<OwnedFd>,
    findings: Arc<Mutex<Vec<Finding>>>,
    inotify: Option<SlowToClose<OwnedFd>>,
    /// The directories, by the number that the kernel has for them.
    watched: HashMap<i32, PathBuf>,
    /// Not all of them could be watched.
    is_partial: bool,
    /// How long there is no look if nobody tells of changes.
    idle: Duration,
    places: Places,
    alarm: Arc<Alarm>,
    /// When something in a directory had to be put back.
    times: RefCell<HashMap<PathBuf, Vec<Instant>>>,
}

impl Looking {
    fn serve(mut self) {
        // The first look finds what is to be watched.
        let (mut is_due, mut not_before) = (true, Instant::now());
        loop {
            let due = is_due.then(|| not_before.saturating_duration_since(Instant::now()));
            match self.wait(due) {
                Next::End => return,
                // Of what does not concern us there may be much.
                Next::Nothing if self.is_over(PAUSE) => return,
                Next::Nothing => continue,
                Next::Look => is_due = true,
            }
            let (begin, begun) = (Instant::now(), cpu_time_of_thread());
            let waited = time_waited_of_thread();
            if begin < not_before {
                let suspended = self.watch.suspended.lock();
                let found = self.watch.settle_top();
                drop(suspended);
                self.note(found);
            } else {
                let mut places = self.look();
                // What came into a new directory before it was watched is not told.
                while self.watch_more(places) && begin.elapsed() < LOOK {
                    places = self.look();
                }
                // All of it takes a fifth of the time at most, whatever the session does. The time that
                // others had the processors does not count: a session could keep them busy.
                is_due = false;
                let since = |ended: Option<Duration>, begun: Option<Duration>| {
                    ended.zip(begun).map(|(ended, begun)| ended - begun)
                };
                let waited = since(time_waited_of_thread(), waited).unwrap_or_default();
                not_before = Instant::now() + begin.elapsed().saturating_sub(waited) * 4;
                let spent = since(cpu_time_of_thread(), begun);
                self.idle = RARELY.max(spent.unwrap_or_default() * SHARE);
            }
            if self.is_over(begin.elapsed().clamp(PAUSE, OFTEN / 2)) {
                return;
            }
        }
    }

    /// Settles, and says what is to be watched. If there is no time for all repositories, git outside meets
    /// what nobody has looked at. So the next look is longer; and if that is not enough where it was before the
    /// session, the session ends. Where it was not, git is kept from what is new. Time in which others have the
    /// processors does not count.
    fn look(&self) -> Places {
        let (places, is_cut) = self.look_for(LOOK, 100_000, false);
        if !is_cut {
            return places;
        }
        let begun = cpu_time_of_thread();
        let was_whole = self.watch.baseline.has_all_repositories;
        let (places, is_cut) = self.look_for(LONG_LOOK, MOST_FILES, !was_whole);
        let spent = cpu_time_of_thread().zip(begun);
        let is_ours = spent.is_none_or(|(ended, begun)| ended - begun > OWN_TIME);
        if is_cut && is_ours && was_whole && !self.is_over(Duration::ZERO) {
            self.alarm.raise(Cause::Flood);
        }
        places
    }

    fn look_for(&self, time: Duration, files: usize, closes: bool) -> (Places, bool) {
        let last = Cell::new(Instant::now());
        let is_over = || {
            if last.get().elapsed() > OFTEN {
                self.note(self.watch.settle_top());
                last.set(Instant::now());
            }
            self.is_over(Duration::ZERO)
        };
        let bounds = Bounds::new(time, files, &is_over);
        let suspended = self.watch.suspended.lock();
        let (found, places, is_cut) = self.watch.settle_known(&bounds, closes);
        drop(suspended);
        self.note(found);
        (places, is_cut)
    }

    /// Takes down what was put back, and raises the alarm if that is in vain.
    fn note(&self, mut found: Vec<Finding>) {
        const FEW: usize = 10_000;
        let bounds = Bounds::new(LOOK / 10, FEW, &|| false);
        let edited = self.seen.borrow_mut().look(&self.watch.edits, &bounds);
        edited.into_iter().for_each(&self.tell);
        found.retain(|it| matches!(it.what, Change::Undone(_)) || it.is_left() || it.is_removed());
        let mut times = self.times.borrow_mut();
        let now = Instant::now();
        let is_recent = |time: &Instant| now.duration_since(*time) < SHORTLY;
        times.retain(|_, times| times.last().is_some_and(is_recent));
        let mut counted = BTreeSet::new();
        for finding in &found {
            let place = finding.path.parent().unwrap_or(&finding.path);
            if !counted.insert(place) {
                continue;
            }
            let times = times.entry(place.to_owned()).or_default();
            times.retain(is_recent);
            times.push(now);
            if times.len() >= MOST_TIMES {
                self.alarm.raise_for(finding);
            }
        }
        // The end looks at it again, with more time.
        found.retain(|finding| !finding.is_left());
        let mut findings = locked(&self.findings);
        for finding in found {
            const MOST: usize = 10_000;
            if findings.len() < MOST && !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }

    /// Waits for a change, or until the next look is due.
    fn wait(&mut self, due: Option<Duration>) -> Next {
        let mut fds = vec![PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN)];
        match &self.inotify {
            Some(inotify) if !self.watched.is_empty() => {
                fds.push(PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN));
            }
            _ => self.is_partial = true,
        }
        let idle = if self.is_partial { RARELY } else { self.idle };
        let timeout = Timespec::try_from(due.unwrap_or(idle)).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => return Next::Look,
            Err(Errno::INTR) => return Next::Nothing,
            Err(_) => return Next::End,
            Ok(_) => {}
        }
        if fds.first().is_some_and(|end| !end.revents().is_empty()) {
            return Next::End;
        }
        if self.is_told() {
            Next::Look
        } else {
            Next::Nothing
        }
    }

    /// Whether the session is over within this time.
    fn is_over(&self, time: Duration) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN)];
        let time = Timespec::try_from(time).unwrap_or_default();
        poll(&mut fds, Some(&time)).is_ok_and(|count| count > 0)
    }

    /// Reads what there is to read. Whether it concerns what git runs: git itself writes much.
    fn is_told(&mut self) -> bool {
        let Some(inotify) = &self.inotify else {
            return true;
        };
        // As many as the kernel keeps; if they come faster than they are read, there is no end.
        const MOST: usize = 16384;
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = Reader::new(inotify, &mut buffer);
        let mut is_told = false;
        for _ in 0..MOST {
            let Ok(event) = reader.next() else {
                return is_told;
            };
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            let events = event.events();
            if events.contains(ReadFlags::IGNORED) {
                self.watched.remove(&event.wd());
                continue;
            }
            let is_new = events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
            let directory = self.watched.get(&event.wd());
            is_told = is_told
                || events.contains(ReadFlags::QUEUE_OVERFLOW)
                || directory.is_none_or(|directory| self.places.concern(directory, name, is_new));
        }
        true
    }

    /// Has the kernel tell of directories that have appeared. Whether there were any.
    fn watch_more(&mut self, places: Places) -> bool {
        let mut is_more = false;
        self.places = places;
        let Some(inotify) = &self.inotify else {
            return false;
        };
        // Who writes need not close.
        let what = WatchFlags::CLOSE_WRITE
            | WatchFlags::MODIFY
            | WatchFlags::MOVED_TO
            | WatchFlags::CREATE
            | WatchFlags::ATTRIB
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        for directory in self.places.directories() {
            if self.watched.len() >= MOST_WATCHES {
                self.is_partial = true;
                break;
            }
            match inotify::add_watch(inotify, &directory, what) {
                Ok(number) => is_more |= self.watched.insert(number, directory).is_none(),
                Err(Errno::NOSPC | Errno::NOMEM) => self.is_partial = true,
                // There is none now.
                Err(_) => {}
            }
        }
        is_more
    }
}

enum Next {
    Look,
    Nothing,
    End,
}

/// Where a change may have git run something.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// What a session can write: all else cannot be exchanged.
    pub(super) writable: Vec<PathBuf>,
    /// The directories of repositories.
    pub(super) git: BTreeSet<PathBuf>,
    /// Directories of hooks elsewhere.
    pub(super) hooks: BTreeSet<PathBuf>,
    /// Files of settings and attributes elsewhere, and worktrees of submodules. Whoever exchanges a
    /// directory above them exchanges them.
    pub(super) others: BTreeSet<PathBuf>,
}

impl Places {
    /// All that have to be watched, the nearest first.
    fn directories(&self) -> Vec<PathBuf> {
        let mut all = BTreeSet::new();
        for directory in &self.git {
            all.extend(WATCHED_DIRECTORIES.map(|name| directory.join(name)));
        }
        let places = self.git.iter().chain(&self.hooks).chain(&self.others);
        for place in places.chain(&self.writable) {
            let around = place.ancestors();
            let around = around.take_while(|path| is_in(path, &self.writable));
            all.extend(around.map(Path::to_owned));
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_cached_key(|path| path.iter().count());
        all
    }

    /// Whether a change of this file leads to a look at once.
    #[cfg(test)]
    pub(super) fn are_told_of(&self, path: &Path) -> bool {
        let (directory, name) = (path.parent().unwrap(), path.file_name());
        self.directories().iter().any(|it| it == directory) && self.concern(directory, name, false)
    }

    /// Whether a change of this file in this directory counts. Git itself writes much.
    fn concern(&self, directory: &Path, name: Option<&OsStr>, is_new: bool) -> bool {
        const NAMES: &[&str] = &[
            "config",
            "config.worktree",
            "commondir",
            "attributes",
            "index",
        ];
        const DIRECTORIES: &[&str] = &[
            "hooks",
            "info",
            "remotes",
            "branches",
            "modules",
            "worktrees",
        ];
        let Some(name) = name else { return true };
        let path = directory.join(name);
        // It is one of these places, or around one.
        let is_around = |places: &BTreeSet<PathBuf>| {
            let mut from =
                places.range::<Path, _>((Bound::Included(path.as_path()), Bound::Unbounded));
            from.next().is_some_and(|place| place.starts_with(&path))
        };
        if name == ".git"
            || [&self.git, &self.hooks, &self.others]
                .into_iter()
                .any(is_around)
        {
            return true;
        }
        if self.hooks.contains(directory) {
            return true;
        }
        let is_one_of = |name: Option<&OsStr>, names: &[&str]| {
            name.is_some_and(|name| names.iter().any(|other| name == *other))
        };
        let is_in_git = self.git.contains(directory)
            && (is_one_of(Some(name), NAMES) || is_one_of(Some(name), &WATCHED_DIRECTORIES));
        let is_below = directory
            .parent()
            .is_some_and(|parent| self.git.contains(parent));
        if is_in_git || (is_below && is_one_of(directory.file_name(), DIRECTORIES)) {
            return true;
        }
        // Git writes other files there at each step of a rebase.
        let is_unfinished = |above: Option<&Path>| {
            above.is_some_and(|above| {
                self.git.contains(above) && is_part_of_unfinished(above, &path)
            })
        };
        if is_unfinished(Some(directory)) || is_unfinished(directory.parent()) {
            return true;
        }
        // Git reads and writes through links among its files, and waits at pipes.
        let is_odd = || {
            let metadata = fs::symlink_metadata(&path);
            metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
        };
        is_new
            && directory
                .ancestors()
                .any(|directory| self.git.contains(directory))
            && is_odd()
    }
}
