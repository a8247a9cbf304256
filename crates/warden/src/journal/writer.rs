//! From events to lines.
//!
//! What a program inside can make grow is bounded here.

use std::{
    collections::HashMap,
    sync::{
        PoisonError,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    time::{Duration, Instant, SystemTime},
};

use stockade_config::Effective;
use stockade_gate::{Event, EventReceiver, Grounds, Ruling, Subject};
use stockade_policy::{Decider, Flow};

use super::{
    InForce, JournalEnd, Said, SessionEnd,
    file::LogFile,
    lines::{self, Closed, Denied, Opened},
};
use crate::attribution::{Process, SharedSearch};

/// How long after an event the next ones are fetched, and how often.
const BUSY: Duration = Duration::from_millis(20);
const NAP: Duration = Duration::from_millis(1);
/// Programs that are told of at the end.
const REMEMBERED: usize = 256;
const TICK: Duration = Duration::from_millis(500);
/// Flows whose beginning is remembered.
const MOST_OPEN: usize = 1 << 16;

/// Writes what happens, on its own thread.
pub(super) struct Writer {
    log: LogFile,
    search: Option<SharedSearch>,
    in_force: InForce,
    /// What was in force when the events happened that are being written.
    effective: Effective,
    opened: HashMap<u64, Opened>,
    denied: u64,
    missed: u64,
    used_ssh: bool,
    refused: u64,
    programs: HashMap<Subject, Process>,
}

impl Writer {
    pub(super) fn new(log: LogFile, search: Option<SharedSearch>, in_force: InForce) -> Self {
        let effective = now(&in_force);
        Self {
            log,
            search,
            in_force,
            effective,
            opened: HashMap::new(),
            denied: 0,
            missed: 0,
            used_ssh: false,
            refused: 0,
            programs: HashMap::new(),
        }
    }

    /// Until the session has ended, and all that happened in it is written.
    pub(super) fn serve(mut self, events: &EventReceiver, said: &Receiver<Said>) -> JournalEnd {
        events.set_room(self.log.make_sure());
        let mut end = None;
        let mut busy = Instant::now();
        let mut looked = Instant::now();
        loop {
            let nap = || {
                // It ends with the session.
                if end.is_none() {
                    let said = said.recv_timeout(NAP).ok();
                    end = said.and_then(|said| self.heard(said));
                }
            };
            match next(events, busy.elapsed() < BUSY, nap) {
                Ok(Some((when, event))) => {
                    busy = Instant::now();
                    self.happened(when, event);
                    events.set_room(self.log.make_sure());
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
            self.tell_lost(events);
            events.set_room(self.log.make_sure());
            while end.is_none()
                && let Ok(said) = said.try_recv()
            {
                end = self.heard(said);
            }
        }
        self.tell_lost(events);
        // Without one the warden failed; the log ends without a last line then.
        while end.is_none()
            && let Ok(said) = said.recv()
        {
            end = self.heard(said);
        }
        if let Some(end) = end {
            let now = SystemTime::now();
            for finding in &end.findings {
                self.log.write(&lines::found(now, finding, false));
            }
            self.log.write(&lines::end(now, &end, self.denied));
        }
        JournalEnd {
            lost: self.log.finish(),
            unfinished: false,
            missed: self.missed,
            used_ssh: self.used_ssh,
            refused: self.refused,
            programs: self.programs,
        }
    }

    /// What the warden says, unless that is the end.
    fn heard(&mut self, said: Said) -> Option<SessionEnd> {
        match said {
            Said::End(end) => Some(end),
            Said::Found(when, finding) => {
                self.log.write(&lines::found(when, &finding, true));
                None
            }
        }
    }

    /// Events that the gate could not hand over.
    fn tell_lost(&mut self, events: &EventReceiver) {
        let lost = events.take_lost();
        if lost > 0 {
            self.missed(lost, "they came faster than they could be written");
        }
        let refused = events.take_refused();
        if refused > 0 {
            let now = SystemTime::now();
            self.refused += refused;
            let why = "the log had no room for them, so they were refused";
            self.log.write(&lines::lost(now, now, refused, why));
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
                const SSH: u16 = 22;
                self.used_ssh |= flow.port().is_some_and(|port| port.get() == SSH);
                // The client of a published port is a program of the user's.
                let inside = !matches!(grounds, Grounds::Published { .. });
                let search = self.search.as_ref().filter(|_| inside);
                let process = search.and_then(|search| {
                    let mut search = search.lock().unwrap_or_else(PoisonError::into_inner);
                    search.of(&flow, client, false)
                });
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
                program,
            } => {
                let process = program.and_then(|program| program.wait());
                self.denied(&Denied {
                    when,
                    until: None,
                    count: 1,
                    subject: &subject,
                    ruling: &ruling,
                    at: decided_at(&self.effective, &ruling).as_deref(),
                    process: process.as_ref(),
                });
            }
            Event::DeniedAgain {
                subject,
                ruling,
                count,
                first,
                last,
            } => {
                self.denied(&Denied {
                    when: first,
                    until: Some(last),
                    count,
                    subject: &subject,
                    ruling: &ruling,
                    at: decided_at(&self.effective, &ruling).as_deref(),
                    process: None,
                });
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
                self.effective = now(&self.in_force);
                let hash = self.effective.hash();
                self.log
                    .write(&lines::reloaded(when, internet, rules, &hash));
            }
        }
    }

    fn denied(&mut self, denied: &Denied<'_>) {
        self.denied += denied.count;
        if !self.effective.network.log_denials.value {
            return;
        }
        self.log.write(&lines::denied(denied));
        if let Some(process) = denied.process
            && self.programs.len() < REMEMBERED
        {
            let first = self.programs.entry(denied.subject.clone());
            first.or_insert_with(|| process.clone());
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
    events: &EventReceiver,
    busy: bool,
    nap: impl FnOnce(),
) -> Result<Option<(SystemTime, Event)>, RecvTimeoutError> {
    if busy {
        match events.take() {
            Ok(event) => return Ok(Some(event)),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => nap(),
        }
        return Ok(events.take().ok());
    }
    match events.wait(TICK) {
        Ok(event) => Ok(Some(event)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(gone) => Err(gone),
    }
}
