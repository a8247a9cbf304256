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
mod who;
mod writer;

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use rustix::thread::CapabilitySet;
use serde_json::{Map, Value};
use stockade_config::Effective;
use stockade_gate::{Happenings, Subject};
use stockade_sys::{
    confine,
    signals::{self, Signal},
};

pub(crate) use directory::Directory;
use file::Log;
pub(crate) use file::Lost;
pub(crate) use lines::{End, Start, VERSION};
pub(crate) use who::{Process, Witness};
use writer::Writer;

/// The configuration in force, for telling where a rule stands.
pub(crate) type InForce = Arc<Mutex<Effective>>;

/// How long a disk may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A log that is being opened, by the thread that is to write it. So no disk is waited for while
/// the sandbox is built; and the thread is there before the command is, which could take the
/// last process that the user may have. Dropped before it begins, it leaves no file.
#[derive(Debug)]
pub(crate) struct Opening {
    begin: Option<Sender<Beginning>>,
    begun: Receiver<io::Result<()>>,
    journal: Option<Journal>,
}

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    /// To end it, with what there is to say about the end.
    end: Sender<End>,
    /// What is known when it has ended.
    ended: Receiver<Ended>,
}

/// What is known when the command is about to start.
#[derive(Debug)]
struct Beginning {
    first: Line,
    happenings: Happenings,
    witness: Option<Witness>,
    in_force: InForce,
}

/// What a log knows that others do not.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// What could not be written.
    pub(crate) lost: Option<Lost>,
    /// How much happened too fast to be written, or looked at. Nothing of the latter has passed.
    pub(crate) missed: u64,
    /// The disk took so long that this was not waited for.
    pub(crate) unfinished: bool,
    /// Which program was denied something first.
    pub(crate) programs: HashMap<Subject, Process>,
}

impl Opening {
    pub(crate) fn start(directory: Directory, id: &str) -> io::Result<Self> {
        let (begin, beginning) = channel();
        let (opened, begun) = channel();
        let (end, ends) = channel();
        let (done, ended) = channel();
        let id = id.to_owned();
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || match open(&directory, &id, &beginning) {
                Ok(Some((log, known))) => {
                    // Who has stopped waiting hears nothing more.
                    let _ = opened.send(Ok(()));
                    log.make_room();
                    let writer = Writer::new(log, known.witness, known.in_force);
                    let _ = done.send(writer.serve(&known.happenings, &ends));
                }
                Ok(None) => {}
                Err(error) => {
                    let _ = opened.send(Err(error));
                }
            })?;
        Ok(Self {
            begin: Some(begin),
            begun,
            journal: Some(Journal { end, ended }),
        })
    }

    /// Writes the first line, and then what happens.
    pub(crate) fn begin(
        mut self,
        start: &Start<'_>,
        happenings: Happenings,
        witness: Option<Witness>,
        in_force: InForce,
    ) -> io::Result<Journal> {
        let beginning = Beginning {
            first: lines::start(start),
            happenings,
            witness,
            in_force,
        };
        // If the thread has failed, it has said why.
        if let Some(begin) = self.begin.take() {
            let _ = begin.send(beginning);
        }
        let begun = self.begun.recv_timeout(PATIENCE);
        begun.unwrap_or_else(|_| Err(io::Error::other("the disk does not answer")))?;
        self.journal
            .take()
            .ok_or_else(|| io::Error::other("it has begun already"))
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        // The thread takes the file away then.
        if self.begin.take().is_some() {
            let _ = self.begun.recv_timeout(PATIENCE);
        }
    }
}

/// Makes the file and, when it is time, writes its first line.
fn open(
    directory: &Directory,
    id: &str,
    beginning: &Receiver<Beginning>,
) -> io::Result<Option<(Log, Beginning)>> {
    confine::keep_capabilities(CapabilitySet::empty())?;
    // A limit of the size of files must not end the session: the write fails, too.
    signals::block([Signal::XFSZ].into_iter().collect())?;
    let mut log = directory.create(id)?;
    match beginning.recv() {
        Ok(beginning) => {
            log.begin(beginning.first.clone());
            Ok(Some((log, beginning)))
        }
        // There is no session.
        Err(_) => {
            log.remove();
            Ok(None)
        }
    }
}

impl Journal {
    /// Writes the last line.
    pub(crate) fn finish(self, end: End) -> Ended {
        // The receiver is gone only with the thread.
        let _ = self.end.send(end);
        let ended = self.ended.recv_timeout(PATIENCE);
        ended.unwrap_or_else(|_| Ended {
            unfinished: true,
            ..Ended::default()
        })
    }
}

/// A line, as long as it is made.
type Line = Map<String, Value>;
