//! From events to lines.
//!
//! What a program inside can make grow is bounded here.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    time::{Duration, Instant, SystemTime},
};

use stockade_config::{Effective, Notify};
use stockade_gate::{AnsweredBy, Event, EventReceiver, Grounds, PendingProgram, Ruling, Subject};
use stockade_policy::{Decider, Flow, Policy};

use super::{
    InForce, JournalEnd, JournalSource, Said, SessionEnd,
    file::{LogFile, SPARE},
    lines::{self, Answered, Closed, Denied, Opened},
};
use crate::{
    attribution::{Process, SharedSearch, program_name},
    live::{OpenQuestion, Prompts, SharedLive},
    questions::SharedDenials,
};

/// How long after an event the next ones are fetched, and how often.
const BUSY: Duration = Duration::from_millis(20);
const NAP: Duration = Duration::from_millis(1);
/// Programs that are told of at the end.
const REMEMBERED: usize = 256;
const TICK: Duration = Duration::from_millis(500);
/// While so many events wait, no program is waited for.
const BACKLOG: usize = 256;
/// At the end there is one line that must not be lost, the last.
const LAST: usize = 1;

/// Writes what happens, on its own thread.
pub(super) struct Writer {
    log: LogFile,
    search: Option<SharedSearch>,
    in_force: InForce,
    /// What was in force when the events happened that are being written.
    effective: Effective,
    policy: Policy,
    denials: SharedDenials,
    live: SharedLive,
    prompts: Option<Prompts>,
    /// Targets whose denial the user knows of.
    noticed: HashSet<Subject>,
    missed: u64,
    used_ssh: bool,
    refused: u64,
    programs: HashMap<Subject, Process>,
    /// Counts what is done, for whoever waits for the end.
    progress: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn new(
        log: LogFile,
        source: JournalSource,
        progress: Arc<AtomicU64>,
    ) -> (Self, EventReceiver) {
        let effective = now(&source.in_force);
        source.denials.begin();
        let writer = Self {
            log,
            search: source.search,
            in_force: source.in_force,
            policy: effective.policy(),
            effective,
            denials: source.denials,
            live: source.live,
            prompts: source.prompts,
            noticed: HashSet::new(),
            missed: 0,
            used_ssh: false,
            refused: 0,
            programs: HashMap::new(),
            progress,
        };
        (writer, source.events)
    }

    /// Until the session has ended, and all that happened in it is written.
    pub(super) fn serve(mut self, events: &EventReceiver, said: &Receiver<Said>) -> JournalEnd {
        self.make_sure(events);
        let mut end = None;
        let mut busy = Instant::now();
        let mut looked = Instant::now();
        loop {
            let nap = || {
                // It ends with the session.
                if end.is_none() {
                    let said = said.recv_timeout(NAP).ok();
                    end = said.and_then(|said| self.heard(said, events));
                }
            };
            match next(events, busy.elapsed() < BUSY, nap) {
                Ok(Some((when, event))) => {
                    busy = Instant::now();
                    self.happened(when, event, events);
                    self.make_sure(events);
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
            // While there is no room, they are counted on.
            if self.log.has_room_beside(kept(events) + 1) {
                self.tell_lost(events, kept(events));
            }
            self.make_sure(events);
            while end.is_none()
                && let Ok(said) = said.try_recv()
            {
                end = self.heard(said, events);
            }
        }
        self.tell_lost(events, LAST);
        // Without one the warden failed; the log ends without a last line then.
        while end.is_none()
            && let Ok(said) = said.recv()
        {
            end = self.heard(said, events);
        }
        if let Some(end) = end {
            let now = SystemTime::now();
            for finding in &end.findings {
                let line = lines::found(now, finding, false);
                self.log.write_beside(&line, LAST);
                self.progress.fetch_add(1, Ordering::Relaxed);
            }
            let denied = self.live.lock().denied;
            self.log.write(&lines::end(now, &end, denied));
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
    fn heard(&mut self, said: Said, events: &EventReceiver) -> Option<SessionEnd> {
        match said {
            Said::End(end) => Some(end),
            Said::Found(when, finding) => {
                let line = lines::found(when, &finding, true);
                self.log.write_beside(&line, kept(events));
                self.progress.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    fn make_sure(&mut self, events: &EventReceiver) {
        events.set_room(self.log.make_sure(events.owed()));
    }

    /// Events that the gate could not hand over.
    fn tell_lost(&mut self, events: &EventReceiver, kept: usize) {
        let lost = events.take_lost();
        if lost > 0 {
            self.missed(lost, "they came faster than they could be written", kept);
        }
        let refused = events.take_refused();
        if refused > 0 {
            let now = SystemTime::now();
            self.refused += refused;
            let why = "the log fell behind or had no room for them, so they were refused";
            let line = lines::lost(now, now, refused, why);
            self.log.write_beside(&line, kept);
        }
    }

    fn missed(&mut self, count: u64, why: &str, kept: usize) {
        let now = SystemTime::now();
        self.missed += count;
        let line = lines::lost(now, now, count, why);
        self.log.write_beside(&line, kept);
    }

    fn happened(&mut self, when: SystemTime, event: Event, events: &EventReceiver) {
        self.progress.fetch_add(1, Ordering::Relaxed);
        let kept = kept(events);
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
                    let mut search = match search.try_lock() {
                        Ok(search) => search,
                        Err(TryLockError::Poisoned(search)) => search.into_inner(),
                        // It looks for somebody who was denied something. The log goes on.
                        Err(TryLockError::WouldBlock) => return None,
                    };
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
                // Its program is worth a line, but has no room of its own.
                let line = lines::opened(&opened, process.as_ref());
                let short = || lines::opened(&opened, None);
                self.log.write_or(&line, short, kept);
                self.live.lock().open(opened, process);
            }
            Event::Closed { id, sent, received } => {
                let opened = self.live.lock().close(id);
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
                let process = program.and_then(|program| found(&program, events));
                let at = decided_at(&self.effective, &ruling);
                let denied = Denied {
                    when,
                    until: None,
                    count: 1,
                    subject: &subject,
                    ruling: &ruling,
                    at: at.as_deref(),
                    process: process.as_ref(),
                };
                self.denied(&denied, kept);
            }
            Event::DeniedAgain {
                subject,
                ruling,
                count,
                first,
                last,
            } => {
                let at = decided_at(&self.effective, &ruling);
                let denied = Denied {
                    when: first,
                    until: Some(last),
                    count,
                    subject: &subject,
                    ruling: &ruling,
                    at: at.as_deref(),
                    process: None,
                };
                self.denied(&denied, kept);
            }
            Event::Asked {
                name,
                kind,
                addresses,
            } => {
                let line = lines::asked(when, &name, &kind, addresses.as_deref());
                self.log.write(&line);
            }
            Event::Held {
                id,
                subject,
                ruling,
                rule,
                names,
                until,
                program,
            } => {
                let since = Instant::now();
                let question = OpenQuestion {
                    process: program.and_then(|program| found(&program, events)),
                    subject,
                    ruling,
                    rule,
                    names,
                    held: 1,
                    since,
                    until,
                };
                let line = lines::held(when, id, &question);
                self.log.write_beside(&line, kept);
                self.live.lock().questions.insert(id, question);
                if let Some(prompts) = &self.prompts {
                    prompts.asked();
                }
            }
            Event::HeldMore { id, count } => {
                if let Some(question) = self.live.lock().questions.get_mut(&id) {
                    question.held = count;
                }
            }
            Event::Answered {
                id,
                subject,
                rule,
                answer,
                by,
                count,
            } => {
                let question = self.live.lock().questions.remove(&id);
                let line = lines::answered(&Answered {
                    when,
                    id,
                    subject: &subject,
                    rule: &rule,
                    answer,
                    by,
                    count,
                    waited: question.map(|question| question.since.elapsed()),
                });
                self.log.write_beside(&line, kept);
                // Whoever was asked knows. Where nobody was, a notice says it.
                if by != AnsweredBy::Unattended {
                    self.is_news(&subject);
                }
                if let Some(prompts) = &self.prompts {
                    prompts.asked();
                }
            }
            Event::Paused { until } => {
                self.live.lock().paused = Some(until);
                self.log.write_beside(&lines::paused(when, until), kept);
                let text = "stockade: so much was refused that nothing is asked for a while; the rest \
                            is denied";
                self.notice(text.to_owned());
            }
            Event::Unseen { count } => {
                self.missed(
                    count,
                    "their packets came faster than they could be looked at",
                    kept,
                );
            }
            Event::Reloaded { internet, rules } => {
                self.effective = now(&self.in_force);
                self.policy = self.effective.policy();
                let hash = self.effective.hash();
                let line = lines::reloaded(when, internet, rules, &hash);
                self.log.write_beside(&line, kept);
            }
        }
    }

    fn denied(&mut self, denied: &Denied<'_>, kept: usize) {
        let is_logged = self.effective.network.log_denials.value;
        if is_logged {
            self.log.write_beside(&lines::denied(denied), kept);
        }
        // Whoever sees the count finds the lines.
        self.live.lock().denied += denied.count;
        let last = denied.until.unwrap_or(denied.when);
        let what = (denied.subject, denied.ruling);
        self.denials.note(what, &self.policy, denied.count, last);
        if !is_logged {
            return;
        }
        if let Some(process) = denied.process
            && self.programs.len() < REMEMBERED
        {
            let first = self.programs.entry(denied.subject.clone());
            first.or_insert_with(|| process.clone());
        }
        if self.is_news(denied.subject) {
            self.notice(notice(denied.subject, denied.ruling, denied.process));
        }
    }

    /// Whether the user knows nothing of this target yet.
    fn is_news(&mut self, subject: &Subject) -> bool {
        self.noticed.len() < REMEMBERED && self.noticed.insert(subject.clone())
    }

    fn notice(&self, text: String) {
        let how = self.effective.network.notify.value;
        if let Some(prompts) = self.prompts.as_ref().filter(|_| how != Notify::Off) {
            prompts.tell(how, text);
        }
    }

    /// Where the setting stands that let a flow pass, if one did.
    fn origin(&self, flow: &Flow, grounds: &Grounds) -> Option<String> {
        let network = &self.effective.network;
        let origin = match grounds {
            Grounds::Policy(verdict) | Grounds::Search(verdict, _) => match verdict.decided_by() {
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

/// What is shown of a denial at once. The end of the line may be out of sight, so the program, which chose its
/// own name, stands behind the fix. What is dangerous to allow, or too long to be seen whole, is not proposed
/// here: there is no room to say why.
fn notice(subject: &Subject, ruling: &Ruling, process: Option<&Process>) -> String {
    const LONGEST_FIX: usize = 60;
    let fix = ruling.fix().filter(|_| ruling.danger().is_none());
    let fix = fix.map(|fix| fix.flag());
    let fix = fix.filter(|fix| fix.chars().count() <= LONGEST_FIX);
    let fix = fix.map(|fix| format!("; to allow it: {fix}"));
    let program = process.map(|process| format!(" ({})", program_name(&process.exe)));
    let [fix, program] = [fix, program].map(Option::unwrap_or_default);
    format!("stockade: denied {subject}{fix}{program}")
}

/// The program behind a denial. It is waited for unless others wait for the log: if those become too many,
/// nothing new passes.
fn found(program: &PendingProgram, events: &EventReceiver) -> Option<Process> {
    match events.waiting() < BACKLOG {
        true => program.wait(),
        false => program.take(),
    }
}

/// How many lines have room set aside that no other may take.
fn kept(events: &EventReceiver) -> usize {
    events.owed() + SPARE
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

#[cfg(test)]
mod tests {
    use stockade_policy::{Evidence, Route, decide};

    use super::*;

    fn noticed(to: &str, own: bool, exe: &str) -> String {
        let flow = Flow::tcp(to.parse().expect("an address")).expect("a flow");
        let (route, names) = (Route::Default, &[][..]);
        let verdict = decide(&Policy::default(), &flow, &Evidence { route, own, names });
        let process = Process {
            exe: exe.to_owned(),
            ..crate::attribution::example()
        };
        let ruling = Ruling::Flow(Box::new(verdict));
        notice(&Subject::Flow(flow), &ruling, Some(&process))
    }

    #[test]
    fn p08_what_a_program_calls_itself_is_no_advice_in_a_notice() {
        let plain = "stockade: denied tcp://10.0.0.5:80; to allow it: --allow tcp://10.0.0.5:80";
        let said = noticed("10.0.0.5:80", false, "/usr/bin/curl");
        assert_eq!(said, format!("{plain} (curl)"));
        let hostile = format!("/tmp/git; to allow it: --mode host{}", " ".repeat(200));
        let said = noticed("10.0.0.5:80", false, &hostile);
        let rest = said.strip_prefix(plain).expect("what is ours comes first");
        assert!(
            !rest.contains("to allow") && rest.chars().count() < 50,
            "{rest}"
        );
    }

    #[test]
    fn p08_what_is_dangerous_to_allow_is_not_proposed_in_a_notice() {
        for (to, own) in [("169.254.169.254:80", false), ("192.168.1.7:80", true)] {
            let said = noticed(to, own, "/usr/bin/curl");
            assert_eq!(said, format!("stockade: denied tcp://{to} (curl)"));
        }
    }
}
