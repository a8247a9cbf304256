//! The audit log of a session: one line of JSON for each event, outside of everything that a
//! command in a sandbox sees.
//!
//! A thread of its own writes it ([`writer`]), one `write` for each line, so that what was written
//! is there whatever becomes of the warden. A disk that is full ends nothing ([`mod@file`]).
//! `docs/log.md` describes the lines.

mod directory;
#[cfg(test)]
mod documented;
mod file;
mod lines;
mod reader;
mod writer;

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use rustix::thread::CapabilitySet;
use serde_json::{Map, Value};
use stockade_config::Effective;
use stockade_gate::{EventReceiver, Subject};
use stockade_sys::{
    confine,
    signals::{self, Signal},
};
use stockade_wall::Finding;

pub use directory::LogDirectory;
use file::LogFile;
pub use file::LostEvents;
pub use lines::LOG_VERSION;
pub(crate) use lines::{Opened, SessionEnd, SessionStart, let_pass_by, time};
pub use reader::{LogItem, LogReader};
use writer::Writer;

use crate::{
    attribution::{Process, SharedSearch},
    live::{Prompts, SharedLive},
    questions::SharedDenials,
};

/// The configuration in force, for telling where a rule stands.
pub(crate) type InForce = Arc<Mutex<Effective>>;

/// How long a disk may take for anything.
const PATIENCE: Duration = Duration::from_secs(5);

/// The thread that is to write a log. It is there before the command is, which could take the last
/// process that the user may have.
#[derive(Debug)]
pub(crate) struct PendingJournal {
    begin: Sender<(Line, JournalSource)>,
    /// Whether the log has room.
    begun: Receiver<io::Result<bool>>,
    journal: Journal,
}

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    /// To tell it of files, and to end it.
    said: Sender<Said>,
    /// What is known when it has ended.
    ended: Receiver<JournalEnd>,
    /// How much it has done.
    progress: Arc<AtomicU64>,
}

/// What the warden itself has to say.
#[derive(Debug)]
enum Said {
    /// The command changed a file that runs by itself outside.
    Found(SystemTime, Finding),
    End(SessionEnd),
}

/// Where the lines of a log come from.
#[derive(Debug)]
pub(crate) struct JournalSource {
    pub(crate) events: EventReceiver,
    pub(crate) search: Option<SharedSearch>,
    pub(crate) in_force: InForce,
    /// Where others see it.
    pub(crate) live: SharedLive,
    /// The user can be told of something at once.
    pub(crate) prompts: Option<Prompts>,
    /// Where programs inside find what was denied.
    pub(crate) denials: SharedDenials,
}

/// What a log knows that others do not, when it has ended.
#[derive(Debug, Default)]
pub struct JournalEnd {
    /// What could not be written.
    pub lost: Option<LostEvents>,
    /// How much happened too fast to be written, or looked at. Nothing of the latter has passed.
    pub missed: u64,
    /// How much was allowed, and refused because the log fell behind or had no room for it.
    pub refused: u64,
    /// The disk took so long that this was not waited for.
    pub unfinished: bool,
    /// A connection to the port of ssh was opened.
    pub used_ssh: bool,
    /// Which program was denied something first.
    pub programs: HashMap<Subject, Process>,
}

impl PendingJournal {
    pub(crate) fn start(directory: LogDirectory, id: &str) -> io::Result<Self> {
        let (begin, beginning) = channel::<(Line, JournalSource)>();
        let (opened, begun) = channel();
        let (said, sayings) = channel();
        let (done, ended) = channel();
        let id = id.to_owned();
        let progress = Arc::new(AtomicU64::new(0));
        let done_so_far = Arc::clone(&progress);
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                let ready = get_ready();
                // If nothing comes, there is no session.
                let Ok((first, source)) = beginning.recv() else {
                    return;
                };
                let log = ready.and_then(|()| begin_log(&directory, &id, first));
                match log {
                    Ok(mut log) => {
                        // Before the command starts, so that nothing of it comes earlier.
                        source.events.set_room(log.make_sure(0));
                        let has_room = !log.is_behind();
                        // Who has stopped waiting hears nothing more.
                        let _ = opened.send(Ok(has_room));
                        log.make_room();
                        let (writer, events) = Writer::new(log, source, done_so_far);
                        let _ = done.send(writer.serve(&events, &sayings));
                    }
                    Err(error) => {
                        let _ = opened.send(Err(error));
                    }
                }
            })?;
        Ok(Self {
            begin,
            begun,
            journal: Journal {
                said,
                ended,
                progress,
            },
        })
    }

    /// Makes the file with its first line, and then writes what happens. Says whether there is
    /// room for that now.
    pub(crate) fn begin(
        self,
        start: &SessionStart<'_>,
        source: JournalSource,
    ) -> io::Result<(Journal, bool)> {
        // The thread is there until it has heard this.
        let _ = self.begin.send((lines::start(start), source));
        let begun = self.begun.recv_timeout(PATIENCE);
        let has_room =
            begun.unwrap_or_else(|_| Err(io::Error::other("the disk does not answer")))?;
        Ok((self.journal, has_room))
    }
}

fn get_ready() -> io::Result<()> {
    confine::keep_capabilities(CapabilitySet::empty())?;
    // A limit of the size of files must not end the session: the write fails, too.
    signals::block([Signal::XFSZ].into_iter().collect())?;
    Ok(())
}

fn begin_log(directory: &LogDirectory, id: &str, first: Line) -> io::Result<LogFile> {
    let mut log = directory.create(id)?;
    log.begin(first);
    Ok(log)
}

impl Journal {
    /// Takes down what is found while the session runs.
    pub(crate) fn findings(&self) -> impl Fn(Finding) + Send + 'static {
        let said = self.said.clone();
        move |finding| {
            let _ = said.send(Said::Found(SystemTime::now(), finding));
        }
    }

    /// Writes the last line. There may be much before it: who is behind is waited for, but not a disk
    /// that does not answer.
    pub(crate) fn finish(self, end: SessionEnd) -> JournalEnd {
        // The receiver is gone only with the thread.
        let _ = self.said.send(Said::End(end));
        loop {
            let before = self.progress.load(Ordering::Relaxed);
            let goes_on = || self.progress.load(Ordering::Relaxed) != before;
            match self.ended.recv_timeout(PATIENCE) {
                Ok(end) => return end,
                Err(RecvTimeoutError::Timeout) if goes_on() => {}
                Err(_) => {
                    return JournalEnd {
                        unfinished: true,
                        ..JournalEnd::default()
                    };
                }
            }
        }
    }
}

/// A line, as long as it is made.
type Line = Map<String, Value>;
