//! The audit log of a session: one line of JSON for each event, outside of everything that a
//! command in a sandbox sees.
//!
//! A thread of its own writes it, one `write` for each line, so that what was written is there
//! whatever becomes of the warden. A disk that is full ends nothing: the lines that are lost
//! are counted, and told at the end. Denials of the same kind that follow each other closely are
//! folded into one line with a count. `docs/log.md` describes the lines.

mod file;
mod lines;
mod who;

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Map, Value};
use stockade_config::Effective;
use stockade_gate::{Event, Happenings, Ruling, Subject};

pub(crate) use file::Directory;
use file::Log;
pub(crate) use lines::{End, Start};
pub(crate) use who::{Process, Witness};

/// How long denials of one kind are folded before they are written.
const FOLD: Duration = Duration::from_secs(5);
/// How long after an event the next ones are fetched, and how often.
const BUSY: Duration = Duration::from_millis(20);
const NAP: Duration = Duration::from_millis(1);
/// Programs that are told of at the end.
const REMEMBERED: usize = 256;
const TICK: Duration = Duration::from_millis(500);

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
    /// How many lines could not be written, and why.
    pub(crate) lost: Option<(u64, io::Error)>,
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
        log.write(&lines::start(start));
        let (end, ends) = channel();
        let (done, ended) = channel();
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                let mut writer = Writer {
                    log,
                    witness,
                    in_force,
                    folded: HashMap::new(),
                    opened: HashMap::new(),
                    denied: 0,
                    programs: HashMap::new(),
                };
                writer.serve(&happenings, &ends);
                // The ender may have stopped waiting.
                let _ = done.send(Ended {
                    lost: writer.log.failure(),
                    programs: writer.programs,
                });
            })?;
        Ok(Self { end, ended })
    }

    /// Writes the last line.
    pub(crate) fn finish(self, end: End) -> Ended {
        const PATIENCE: Duration = Duration::from_secs(2);
        // The receiver is gone only with the thread.
        let _ = self.end.send(end);
        self.ended.recv_timeout(PATIENCE).unwrap_or_default()
    }
}

struct Writer {
    log: Log,
    witness: Option<Witness>,
    in_force: InForce,
    folded: HashMap<Subject, Folded>,
    opened: HashMap<u64, SystemTime>,
    denied: u64,
    programs: HashMap<Subject, Process>,
}

/// Denials of one kind that were not written yet.
struct Folded {
    since: Instant,
    count: u64,
    last: (SystemTime, Ruling),
}

impl Writer {
    fn serve(&mut self, happenings: &Happenings, ends: &Receiver<End>) {
        let mut end = None;
        let mut busy = Instant::now();
        loop {
            match next(happenings, busy.elapsed() < BUSY) {
                Ok(Some((when, event))) => {
                    busy = Instant::now();
                    self.happened(when, event);
                    continue;
                }
                Ok(None) if end.is_none() => {}
                // The gate is gone, or nothing has come since the end: that was all.
                _ => break,
            }
            self.flush(FOLD);
            let lost = happenings.take_lost();
            if lost > 0 {
                self.log.write(&lines::lost(SystemTime::now(), lost));
            }
            end = end.or_else(|| ends.try_recv().ok());
        }
        self.flush(Duration::ZERO);
        // Without one the warden failed; the log ends without a last line then.
        if let Some(end) = end.or_else(|| ends.recv_timeout(TICK).ok()) {
            self.log
                .write(&lines::end(SystemTime::now(), &end, self.denied));
        }
    }

    fn happened(&mut self, when: SystemTime, event: Event) {
        match event {
            Event::Opened {
                id,
                flow,
                client,
                names,
                verdict,
            } => {
                self.opened.insert(id, when);
                let by = self.origin(&verdict);
                let process = self
                    .witness
                    .as_mut()
                    .and_then(|who| who.of(&flow, client, false));
                let process = process.as_ref();
                let line = lines::opened(when, (id, &flow, &names), (&verdict, by), process);
                self.log.write(&line);
            }
            Event::Closed { id, sent, received } => {
                let since = self.opened.remove(&id);
                let lasted = since.and_then(|since| when.duration_since(since).ok());
                self.log
                    .write(&lines::closed(when, id, (sent, received), lasted));
            }
            Event::Denied {
                subject,
                ruling,
                client,
                noted,
            } => {
                self.denied += 1;
                self.denied(when, subject, ruling, client);
                drop(noted);
            }
            Event::Answered {
                name,
                kind,
                addresses,
            } => self
                .log
                .write(&lines::answered(when, &name, &kind, &addresses)),
            Event::Reloaded { internet, rules } => {
                let hash = self.in_force().hash();
                self.log
                    .write(&lines::reloaded(when, internet, rules, &hash));
            }
        }
    }

    fn denied(
        &mut self,
        when: SystemTime,
        subject: Subject,
        ruling: Ruling,
        client: Option<std::net::SocketAddr>,
    ) {
        if !self.in_force().network.log_denials.value {
            return;
        }
        if let Some(folded) = self.folded.get_mut(&subject) {
            folded.count += 1;
            folded.last = (when, ruling);
            return;
        }
        let process = match (&subject, client, &mut self.witness) {
            (Subject::Flow(flow), Some(client), Some(witness)) => witness.of(flow, client, true),
            _ => None,
        };
        self.log
            .write(&lines::denied(when, &subject, &ruling, 1, process.as_ref()));
        if let Some(process) = process
            && self.programs.len() < REMEMBERED
        {
            self.programs.entry(subject.clone()).or_insert(process);
        }
        let folded = Folded {
            since: Instant::now(),
            count: 0,
            last: (when, ruling),
        };
        self.folded.insert(subject, folded);
    }

    /// Writes what was folded for long enough.
    fn flush(&mut self, age: Duration) {
        let log = &mut self.log;
        self.folded.retain(|subject, folded| {
            let young = folded.since.elapsed() < age;
            if !young && folded.count > 0 {
                let (when, ruling) = &folded.last;
                log.write(&lines::denied(*when, subject, ruling, folded.count, None));
            }
            young
        });
    }

    fn origin(&self, verdict: &stockade_policy::Verdict) -> Option<String> {
        match verdict.decided_by() {
            stockade_policy::Decider::Rule { index, .. } => {
                let in_force = self.in_force();
                in_force.origin_of_rule(index).map(ToString::to_string)
            }
            stockade_policy::Decider::BuiltIn(_) => None,
        }
    }

    fn in_force(&self) -> std::sync::MutexGuard<'_, Effective> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next event, if one comes in a while. Where events follow each other closely they are
/// fetched now and then: to be woken for each would cost the gate more than the event.
fn next(
    happenings: &Happenings,
    busy: bool,
) -> Result<Option<(SystemTime, Event)>, RecvTimeoutError> {
    if busy {
        match happenings.take() {
            Ok(event) => return Ok(Some(event)),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => thread::sleep(NAP),
        }
        return Ok(happenings.take().ok());
    }
    match happenings.wait(TICK) {
        Ok(event) => Ok(Some(event)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(gone) => Err(gone),
    }
}

/// A line, as long as it is made.
type Line = Map<String, Value>;
