//! Looking while the session runs: somebody may type `git status` outside before it ends.
//!
//! A thread of the warden's is told by the kernel (inotify) of changes in the directories of the
//! repositories that git comes to from the top, and settles what has changed at once. Where
//! the kernel has no watches left it looks twice a second.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

use stockade_sys::closing::SlowToClose;

use super::{Bounds, Finding, Repositories, WATCHED_DIRECTORIES, Watch};

/// How long one look may take, and how long there is none after it at least.
const LOOK: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(10);
/// How often is looked where nobody tells of changes.
const RARELY: Duration = Duration::from_millis(500);
const MOST_WATCHES: usize = 512;

/// A watch that runs beside the session, until it is ended.
#[derive(Debug)]
pub struct Live {
    end: Arc<OwnedFd>,
    findings: Arc<Mutex<Vec<Finding>>>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// To be called by a thread that has given up what it does not need: this one inherits that.
    ///
    /// # Errors
    /// If there are no descriptors or threads left.
    pub fn begin(watch: Arc<Watch>) -> io::Result<Self> {
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let findings = Arc::new(Mutex::new(Vec::new()));
        let mut looking = Looking {
            watch,
            end: Arc::clone(&end),
            findings: Arc::clone(&findings),
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
                .map_err(io::Error::from)
                .and_then(SlowToClose::new)
                .ok(),
            watched: HashMap::new(),
        };
        // Before the command is there: what it does first counts, too.
        let directories = looking.watch.directories(Repositories::default());
        looking.watch_more(directories);
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || looking.serve())?;
        Ok(Self {
            end,
            findings,
            thread: Some(thread),
        })
    }

    /// What was found while the session ran.
    #[must_use]
    pub fn end(mut self) -> Vec<Finding> {
        self.stop();
        std::mem::take(&mut *self.findings.lock().unwrap_or_else(PoisonError::into_inner))
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
    end: Arc<OwnedFd>,
    findings: Arc<Mutex<Vec<Finding>>>,
    inotify: Option<SlowToClose<OwnedFd>>,
    /// The directories, by the number that the kernel has for them.
    watched: HashMap<i32, PathBuf>,
}

impl Looking {
    fn serve(mut self) {
        loop {
            match self.wait() {
                Next::End => return,
                Next::Nothing => {}
                Next::Look => {
                    let begin = Instant::now();
                    let mut directories = self.look();
                    // What came into a new directory before it was watched is not told.
                    while self.watch_more(directories) && begin.elapsed() < LOOK {
                        directories = self.look();
                    }
                    // A fifth of the time at most, whatever the session does.
                    if self.is_over((begin.elapsed() * 4).max(PAUSE)) {
                        return;
                    }
                }
            }
        }
    }

    /// Settles, and says which directories are to be watched.
    fn look(&self) -> BTreeSet<PathBuf> {
        let is_over = || self.is_over(Duration::ZERO);
        let bounds = Bounds::new(LOOK, 100_000, &is_over);
        let (found, directories) = self.watch.settle_known(&bounds);
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in found {
            const MOST: usize = 10_000;
            if findings.len() < MOST && !findings.contains(&finding) {
                findings.push(finding);
            }
        }
        directories
    }

    fn wait(&self) -> Next {
        let mut fds = vec![PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN)];
        let mut timeout = None;
        match &self.inotify {
            Some(inotify) if !self.watched.is_empty() => {
                fds.push(PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN));
            }
            _ => timeout = Timespec::try_from(RARELY).ok(),
        }
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
    fn is_told(&self) -> bool {
        let Some(inotify) = &self.inotify else {
            return true;
        };
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = Reader::new(inotify, &mut buffer);
        let mut is_told = false;
        while let Ok(event) = reader.next() {
            let directory = self.watched.get(&event.wd());
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            is_told |= event.events().contains(ReadFlags::QUEUE_OVERFLOW)
                || directory.is_none_or(|directory| concerns(directory, name));
        }
        is_told
    }

    /// Has the kernel tell of directories that have appeared. Whether there were any.
    fn watch_more(&mut self, directories: BTreeSet<PathBuf>) -> bool {
        let mut is_more = false;
        let Some(inotify) = &self.inotify else {
            return false;
        };
        let what = WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::CREATE
            | WatchFlags::ATTRIB
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        for directory in directories {
            if self.watched.len() >= MOST_WATCHES {
                break;
            }
            if let Ok(number) = inotify::add_watch(inotify, &directory, what) {
                is_more |= self.watched.insert(number, directory).is_none();
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

/// Whether a change of this file in this directory may have git run something.
fn concerns(directory: &Path, name: Option<&OsStr>) -> bool {
    const NAMES: &[&str] = &[
        "config",
        "config.worktree",
        "commondir",
        "attributes",
        "index",
        ".git",
    ];
    const DIRECTORIES: &[&str] = &["hooks", "remotes", "branches", "modules", "worktrees"];
    let is_one_of = |name: Option<&OsStr>, names: &[&str]| {
        name.is_none_or(|name| names.iter().any(|other| name == *other))
    };
    is_one_of(name, NAMES)
        || is_one_of(name, &WATCHED_DIRECTORIES)
        || is_one_of(directory.file_name(), DIRECTORIES)
}
