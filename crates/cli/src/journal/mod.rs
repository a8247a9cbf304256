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

use serde_json::{Map, Value};
use stockade_config::Effective;
use stockade_gate::{Happenings, Subject};
use stockade_sys::signals::{self, Signal};

pub(crate) use directory::Directory;
use file::Log;
pub(crate) use file::Lost;
pub(crate) use lines::{End, Start, VERSION};
pub(crate) use who::{Process, Witness};
use writer::Writer;

/// The configuration in force, for telling where a rule stands.
pub(crate) type InForce = Arc<Mutex<Effective>>;

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    /// To end it, with what there is to say about the end.
    end: Sender<End>,
    /// What is known when it has ended.
    ended: Receiver<Ended>,
}

/// What a log knows that others do not.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// What could not be written.
    pub(crate) lost: Option<Lost>,
    /// The disk took so long that this was not waited for.
    pub(crate) unfinished: bool,
    /// Which program was denied something first.
    pub(crate) programs: HashMap<Subject, Process>,
}

impl Journal {
    /// Starts to write what happens.
    pub(crate) fn start(
        mut log: Log,
        start: &Start<'_>,
        happenings: Happenings,
        witness: Option<Witness>,
        in_force: InForce,
    ) -> io::Result<Self> {
        let first = lines::start(start);
        let (end, ends) = channel();
        let (done, ended) = channel();
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                // A limit of the size of files must not end the session: the write fails, too.
                let _ = signals::block([Signal::XFSZ].into_iter().collect());
                log.begin(first);
                log.make_room();
                let writer = Writer::new(log, witness, in_force);
                // The ender may have stopped waiting.
                let _ = done.send(writer.serve(&happenings, &ends));
            })?;
        Ok(Self { end, ended })
    }

    /// Writes the last line.
    pub(crate) fn finish(self, end: End) -> Ended {
        const PATIENCE: Duration = Duration::from_secs(5);
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
