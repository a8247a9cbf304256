//! From events to lines.
//!
//! Denials of the same kind that follow each other closely are folded: the first is written at
//! once, those that come within a few seconds after it become one line, which says when the
//! first and the last of them were. A reload ends that, so every denial stands on its side of
//! the reload. What a program inside can make grow is bounded here.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        PoisonError,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    time::{Duration, Instant, SystemTime},
};

use stockade_config::Effective;
use stockade_gate::{Event, Grounds, Happenings, Ruling, Subject};
use stockade_policy::{Decider, Flow};

use super::{
    InForce, JournalEnd, SessionEnd,
    file::LogFile,
    lines::{self, Closed, Denied, Opened},
};
use crate::attribution::{Attribution, Process};

/// How long denials of one kind are folded before they are written.
const FOLD: Duration = Duration::from_secs(5);
/// How long after an event the next ones are fetched, and how often.
const BUSY: Duration = Duration::from_millis(20);
const NAP: Duration = Duration::from_millis(1);
/// Programs that are told of at the end.
const REMEMBERED: usize = 256;
const TICK: Duration = Duration::from_millis(500);
/// Kinds of denials that are folded at a time, and flows whose beginning is remembered.
const MOST_FOLDED: usize = 4096;
const MOST_OPEN: usize = 1 << 16;

/// Writes what happens, on its own thread.
pub(super) struct Writer {
    log: LogFile,
    attribution: Option<Attribution>,
    in_force: InForce,
    /// What was in force when the events happened that are being written.
    effective: Effective,
    folded: HashMap<Subject, Folded>,
    opened: HashMap<u64, Opened>,
    denied: u64,
    missed: u64,
    programs: HashMap<Subject, Process>,
}

/// Denials of one kind that were not written yet.
struct Folded {
    since: Instant,
    count: u64,
    first: SystemTime,
    last: SystemTime,
    ruling: Ruling,
}

impl Writer {
    pub(super) fn new(log: LogFile, attribution: Option<Attribution>, in_force: InForce) -> Self {
        let effective = now(&in_force);
        Self {
            log,
            attribution,
            in_force,
            effective,
            folded: HashMap::new(),
            opened: HashMap::new(),
            denied: 0,
            missed: 0,
            programs: HashMap::new(),
        }
    }

    /// Until the session has ended, and all that happened in it is written.
    pub(super) fn serve(
        mut self,
        happenings: &Happenings,
        ends: &Receiver<SessionEnd>,
    ) -> JournalEnd {
        let mut end = None;
        let mut busy = Instant::now();
        let mut looked = Instant::now();
        loop {
            let nap = || {
                // It ends with the session.
                if end.is_none() {
                    end = ends.recv_timeout(NAP).ok();
                }
            };
            match next(happenings, busy.elapsed() < BUSY, nap) {
                Ok(Some((when, event))) => {
                    busy = Instant::now();
                    self.happened(when, event);
                    // There may be no end to them.
                    if looked.elapsed() < TICK {
                        continue;
                    }
                }
                Ok(None) if end.is_none() => {}
                // The gate is gone, or nothing has come since the end: that was all.
                _ => break,
            }
            looked = Instant::now();
            self.flush(FOLD);
            self.tell_lost(happenings);
            end = end.or_else(|| ends.try_recv().ok());
        }
        self.flush(Duration::ZERO);
        self.tell_lost(happenings);
        // Without one the warden failed; the log ends without a last line then.
        if let Some(end) = end.or_else(|| ends.recv().ok()) {
            let now = SystemTime::now();
            for finding in &end.findings {
                self.log.write(&lines::found(now, finding));
            }
            self.log.write(&lines::end(now, &end, self.denied));
        }
        JournalEnd {
            lost: self.log.lost(),
            unfinished: false,
            missed: self.missed,
            programs: self.programs,
        }
    }

    /// Events that the gate could not hand over.
    fn tell_lost(&mut self, happenings: &Happenings) {
        let lost = happenings.take_lost();
        if lost > 0 {
            self.missed(lost, "they came faster than they could be written");
        }
    }

    fn missed(&mut self, count: u64, why: &str) {
        let now = SystemTime::now();
        self.missed += count;
        self.log.write(&lines::lost(now, now, count, why));
    }

    fn happened(&mut self, when: SystemTime, event: Event) {
        match event {
            Event::Opened {
                id,
                flow,
                client,
                names,
                grounds,
            } => {
                // The client of a published port is a program of the user's.
                let inside = !matches!(grounds, Grounds::Published { .. });
                let attribution = self.attribution.as_mut().filter(|_| inside);
                let process = attribution.and_then(|who| who.of(&flow, client, false));
                let at = self.origin(&flow, &grounds);
                let opened = Opened {
                    when,
                    id,
                    flow,
                    names,
                    grounds,
                    at,
                };
                self.log.write(&lines::opened(&opened, process.as_ref()));
                // The ends of some may have been lost.
                if self.opened.len() < MOST_OPEN {
                    self.opened.insert(id, opened);
                }
            }
            Event::Closed { id, sent, received } => {
                let opened = self.opened.remove(&id);
                let closed = Closed {
                    when,
                    id,
                    sent,
                    received,
                };
                self.log.write(&lines::closed(&closed, opened.as_ref()));
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
            Event::Asked {
                name,
                kind,
                addresses,
            } => {
                let line = lines::asked(when, &name, &kind, addresses.as_deref());
                self.log.write(&line);
            }
            Event::Unseen { count } => {
                self.missed(
                    count,
                    "their packets came faster than they could be looked at",
                );
            }
            Event::Reloaded { internet, rules } => {
                self.flush(Duration::ZERO);
                self.effective = now(&self.in_force);
                let hash = self.effective.hash();
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
        client: Option<SocketAddr>,
    ) {
        if !self.effective.network.log_denials.value {
            return;
        }
        if let Some(folded) = self.folded.get_mut(&subject) {
            if folded.count == 0 {
                folded.first = when;
            }
            folded.count += 1;
            folded.last = when;
            return;
        }
        if self.folded.len() >= MOST_FOLDED {
            self.flush(Duration::ZERO);
        }
        let process = match (&subject, client, &mut self.attribution) {
            (Subject::Flow(flow), Some(client), Some(attribution)) => {
                attribution.of(flow, client, true)
            }
            _ => None,
        };
        let line = lines::denied(&Denied {
            when,
            until: None,
            count: 1,
            subject: &subject,
            ruling: &ruling,
            at: decided_at(&self.effective, &ruling).as_deref(),
            process: process.as_ref(),
        });
        self.log.write(&line);
        if let Some(process) = process
            && self.programs.len() < REMEMBERED
        {
            self.programs.entry(subject.clone()).or_insert(process);
        }
        let folded = Folded {
            since: Instant::now(),
            count: 0,
            first: when,
            last: when,
            ruling,
        };
        self.folded.insert(subject, folded);
    }

    /// Writes what was folded for long enough, in the order in which it began.
    fn flush(&mut self, age: Duration) {
        let due = |_: &Subject, folded: &mut Folded| folded.since.elapsed() >= age;
        let mut due: Vec<_> = self.folded.extract_if(due).collect();
        due.retain(|(_, folded)| folded.count > 0);
        due.sort_by_key(|(_, folded)| folded.first);
        for (subject, folded) in due {
            self.log.write(&lines::denied(&Denied {
                when: folded.first,
                until: Some(folded.last),
                count: folded.count,
                subject: &subject,
                ruling: &folded.ruling,
                at: decided_at(&self.effective, &folded.ruling).as_deref(),
                process: None,
            }));
        }
    }

    /// Where the setting stands that let a flow pass, if one did.
    fn origin(&self, flow: &Flow, grounds: &Grounds) -> Option<String> {
        let network = &self.effective.network;
        let origin = match grounds {
            Grounds::Policy(verdict) => match verdict.decided_by() {
                Decider::Rule { index, .. } => self.effective.origin_of_rule(index),
                Decider::BuiltIn(_) => None,
            },
            Grounds::HostPort => {
                let mut ports = network.host_ports.iter();
                let port = ports.find(|port| Some(port.value) == flow.port());
                port.map(|port| &port.origin)
            }
            Grounds::Published { outside } => {
                let mut ports = network.publish.iter();
                let ports = ports.find(|ports| ports.value.outside.get() == *outside);
                ports.map(|ports| &ports.origin)
            }
        };
        origin.map(ToString::to_string)
    }
}

/// Where the setting stands that denied something, if one did.
fn decided_at(effective: &Effective, ruling: &Ruling) -> Option<String> {
    let internet = &effective.network.internet;
    let closed = lines::reason(ruling) == "internet-off" && !internet.value;
    closed.then(|| internet.origin.to_string())
}

fn now(in_force: &InForce) -> Effective {
    let in_force = in_force.lock().unwrap_or_else(PoisonError::into_inner);
    in_force.clone()
}

/// The next event, if one comes in a while. Where events follow each other closely they are
/// fetched now and then: to be woken for each would cost the gate more than the event.
fn next(
    happenings: &Happenings,
    busy: bool,
    nap: impl FnOnce(),
) -> Result<Option<(SystemTime, Event)>, RecvTimeoutError> {
    if busy {
        match happenings.take() {
            Ok(event) => return Ok(Some(event)),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => nap(),
        }
        return Ok(happenings.take().ok());
    }
    match happenings.wait(TICK) {
        Ok(event) => Ok(Some(event)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(gone) => Err(gone),
    }
}
