//! What happens at the gate, as it happens, for whoever writes it down.
//!
//! The gate waits for the writer only before it takes a new attempt to connect, and for a second at most. Of denials that find its queue full only the number is
//! kept. What passes is never left out: if the writer is too far behind, or has no room left,
//! nothing new passes. The lines that what has passed still needs are counted: a flow needs one at
//! its end, too, and a question that has left is told when its answer is there.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    },
    time::{Duration, SystemTime},
};

use stockade_policy::{Flow, Hostname, Rule, Verdict};
use tokio::time::sleep;

use super::{
    attribution::PendingProgram,
    denials::{Ruling, Subject},
};
use crate::questions::{Answer, AnsweredBy};

/// Room for denials. It is counted, not allocated: for so many it would be two megabytes at each
/// start.
const QUEUE: usize = 8192;
/// Beyond so many events, nothing new is let through. Each flow that is ends with one more.
const MOST: usize = 4 * QUEUE;
/// One for its beginning, one for its end. What else passes has one.
const LINES_OF_A_FLOW: usize = 2;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// A flow was admitted. For TCP that is before it stands.
    Opened {
        /// Counted from one.
        id: u64,
        flow: Flow,
        client: SocketAddr,
        names: Vec<Hostname>,
        grounds: Grounds,
    },
    /// It has ended.
    Closed {
        id: u64,
        /// Bytes from inside to outside, and back.
        sent: u64,
        received: u64,
    },
    Denied {
        subject: Subject,
        ruling: Ruling,
        /// Who tried, if that is being found out.
        program: Option<PendingProgram>,
    },
    /// The same was denied again, soon after.
    DeniedAgain {
        subject: Subject,
        ruling: Ruling,
        count: u64,
        first: SystemTime,
        last: SystemTime,
    },
    /// A question for a name was sent on.
    Asked {
        /// Bytes that no host name has are escaped.
        name: String,
        kind: String,
        /// Those in the answer. Nothing if none came, or none that can be read.
        addresses: Option<Vec<IpAddr>>,
    },
    /// So many packets came faster than the gate could look at them. They went nowhere.
    Unseen { count: u64 },
    /// Something waits for the user's answer.
    Held {
        /// Counted from one.
        id: u64,
        subject: Subject,
        /// Why it would be denied.
        ruling: Ruling,
        /// What would allow it.
        rule: Rule,
        names: Vec<Hostname>,
        /// When the answer is no.
        until: SystemTime,
        program: Option<PendingProgram>,
    },
    /// So many attempts wait for the answer now.
    HeldMore { id: u64, count: usize },
    /// They wait no more.
    Answered {
        id: u64,
        subject: Subject,
        rule: Rule,
        answer: Answer,
        by: AnsweredBy,
        count: usize,
    },
    /// So much was refused that nothing is asked until then.
    Paused { until: SystemTime },
    /// Another policy is in force.
    Reloaded { internet: bool, rules: usize },
}

impl Event {
    /// Whether it is about something that has passed, so that its line must not be lost.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        matches!(
            self,
            Self::Opened { .. } | Self::Closed { .. } | Self::Asked { .. }
        )
    }
}

/// Why a flow was admitted.
#[derive(Debug)]
pub enum Grounds {
    Policy(Box<Verdict>),
    /// The same, and it carries what was sent to many: a search for devices.
    Search(Box<Verdict>, Flow),
    /// It is to a port of the host's loopback that the configuration names.
    HostPort,
    /// It comes from the host, where this port stands for one inside.
    Published {
        outside: u16,
    },
}

impl Grounds {
    /// The device at the destination, if the user gave it a name.
    #[must_use]
    pub fn device(&self) -> Option<&Hostname> {
        match self {
            Self::Policy(verdict) | Self::Search(verdict, _) => verdict.device(),
            Self::HostPort | Self::Published { .. } => None,
        }
    }
}

/// Where events go. Clones go to the same place.
#[derive(Debug, Clone)]
pub struct EventSender {
    queue: Sender<(SystemTime, Event)>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    flows: AtomicU64,
    /// Told and not fetched.
    waiting: AtomicUsize,
    /// So many more lines can be written for certain.
    room: AtomicUsize,
    /// Lines that what has passed still needs.
    owed: AtomicUsize,
    lost: AtomicU64,
    overlooked: AtomicU64,
    refused: AtomicU64,
}

/// Where they come out.
#[derive(Debug)]
pub struct EventReceiver {
    queue: Receiver<(SystemTime, Event)>,
    shared: Arc<Shared>,
}

impl EventReceiver {
    /// The next event, if there is one.
    ///
    /// # Errors
    /// If there is none, or will never be one.
    pub fn take(&self) -> Result<(SystemTime, Event), TryRecvError> {
        let next = self.queue.try_recv();
        next.inspect(|(_, event)| self.fetched(event))
    }

    /// The next event, if one comes in this time.
    ///
    /// # Errors
    /// If none came, or will ever come.
    pub fn wait(&self, time: Duration) -> Result<(SystemTime, Event), RecvTimeoutError> {
        let next = self.queue.recv_timeout(time);
        next.inspect(|(_, event)| self.fetched(event))
    }

    fn fetched(&self, event: &Event) {
        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
        if event.is_owed() {
            self.shared.owed.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Events that were told and not fetched.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Lines that what has passed still needs, without the event that was fetched last.
    #[must_use]
    pub fn owed(&self) -> usize {
        self.shared.owed.load(Ordering::Relaxed)
    }

    /// Says for how many lines there is room, those that are owed among them.
    pub fn set_room(&self, lines: usize) {
        self.shared.room.store(lines, Ordering::Relaxed);
    }

    /// How much was refused for want of room, since the last time that this was asked.
    pub fn take_refused(&self) -> u64 {
        self.shared.refused.swap(0, Ordering::Relaxed)
    }

    /// How many events were lost since the last time that this was asked.
    pub fn take_lost(&self) -> u64 {
        self.shared.lost.swap(0, Ordering::Relaxed)
    }
}

impl EventSender {
    #[must_use]
    pub fn new() -> (Self, EventReceiver) {
        let (sender, queue) = channel();
        let shared = Arc::new(Shared {
            flows: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            room: AtomicUsize::new(usize::MAX),
            owed: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            overlooked: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let events = Self {
            queue: sender,
            shared: Arc::clone(&shared),
        };
        (events, EventReceiver { queue, shared })
    }

    pub(crate) fn send(&self, event: Event) {
        let Shared {
            waiting,
            lost,
            owed,
            ..
        } = &*self.shared;
        let promised = match event {
            Event::Opened { .. } => {
                owed.fetch_add(LINES_OF_A_FLOW, Ordering::Relaxed);
                LINES_OF_A_FLOW
            }
            Event::Asked { .. } => 1,
            _ => 0,
        };
        let (count, room) = match event {
            Event::DeniedAgain { count, .. } => (count, QUEUE),
            Event::Denied { .. } | Event::Unseen { .. } => (1, QUEUE),
            _ => (1, usize::MAX),
        };
        let has_room = waiting.fetch_add(1, Ordering::Relaxed) < room;
        if !has_room || self.queue.send((SystemTime::now(), event)).is_err() {
            waiting.fetch_sub(1, Ordering::Relaxed);
            lost.fetch_add(count, Ordering::Relaxed);
            // Nobody writes, so nothing is owed.
            owed.fetch_sub(promised, Ordering::Relaxed);
        }
    }

    /// A question leaves. It is told when its answer has come.
    pub(crate) fn promise_question(&self) {
        self.shared.owed.fetch_add(1, Ordering::Relaxed);
    }

    /// A question that was promised did not leave.
    pub(crate) fn withdraw_question(&self) {
        self.shared.owed.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether something new may pass: the log has room to say so. Counts what may not.
    pub(crate) fn have_room(&self) -> bool {
        let Shared {
            waiting,
            room,
            owed,
            ..
        } = &*self.shared;
        let needed = owed.load(Ordering::Relaxed) + LINES_OF_A_FLOW;
        let may = waiting.load(Ordering::Relaxed) < MOST && needed <= room.load(Ordering::Relaxed);
        if !may {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        may
    }

    /// Returns when the writer, who has more to write than there is room for, has made more, or has not for a
    /// second. It does not wait for a disk that is full.
    pub(crate) async fn caught_up(&self) {
        const NAP: Duration = Duration::from_millis(1);
        const NAPS: u32 = 1000;
        for _ in 0..NAPS {
            if !self.is_behind() {
                return;
            }
            sleep(NAP).await;
        }
    }

    fn is_behind(&self) -> bool {
        let Shared {
            waiting,
            room,
            owed,
            ..
        } = &*self.shared;
        let room = room.load(Ordering::Relaxed);
        let needed = owed.load(Ordering::Relaxed) + LINES_OF_A_FLOW;
        waiting.load(Ordering::Relaxed) > 0 && room > 0 && needed > room
    }

    /// A packet came for which the gate has no room. It went nowhere.
    pub(crate) fn overlook(&self) {
        self.shared.overlooked.fetch_add(1, Ordering::Relaxed);
    }

    /// How many did, since the last time that this was asked.
    pub(crate) fn take_overlooked(&self) -> u64 {
        self.shared.overlooked.swap(0, Ordering::Relaxed)
    }

    /// A number for a new flow.
    pub(crate) fn next_flow(&self) -> u64 {
        self.shared.flows.fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_denials_leaves_room_for_what_passes() {
        let (events, received) = EventSender::new();
        let denied = || Event::DeniedAgain {
            subject: Subject::Name("a.example".to_owned()),
            ruling: Ruling::Malformed("a test".to_owned()),
            count: 3,
            first: SystemTime::UNIX_EPOCH,
            last: SystemTime::UNIX_EPOCH,
        };
        let asked = || Event::Asked {
            name: "b.example".to_owned(),
            kind: "A".to_owned(),
            addresses: None,
        };
        for _ in 0..=QUEUE {
            events.send(denied());
        }
        assert_eq!(received.take_lost(), 3);
        let ask = || {
            events.promise_question();
            events.send(asked());
        };
        while events.have_room() {
            ask();
        }
        ask();
        assert_eq!(received.take_lost(), 0);
        let all = std::iter::from_fn(|| received.take().ok());
        let passed = all.filter(|(_, event)| matches!(event, Event::Asked { .. }));
        assert_eq!(passed.count(), MOST - QUEUE + 1);
        assert_eq!(received.take_refused(), 1);
    }

    #[test]
    fn what_passes_has_room_for_all_lines_that_it_will_need() {
        let (events, received) = EventSender::new();
        let flow = Flow::tcp(([192, 0, 2, 7], 80).into()).expect("a flow");
        let open = || Event::Opened {
            id: 1,
            flow,
            client: ([192, 0, 2, 1], 1).into(),
            names: Vec::new(),
            grounds: Grounds::HostPort,
        };
        let close = || Event::Closed {
            id: 1,
            sent: 0,
            received: 0,
        };
        received.set_room(5);
        assert!(events.have_room());
        events.send(open());
        // A question that has no answer yet counts, too.
        events.promise_question();
        assert_eq!(received.owed(), 3);
        assert!(events.have_room());
        assert!(!events.is_behind());
        received.set_room(4);
        assert!(!events.have_room());
        assert!(events.is_behind());
        received.set_room(0);
        assert!(!events.is_behind(), "nobody waits for a full disk");
        received.set_room(4);
        // What was written has used the room: its end still has some.
        assert!(received.take().is_ok());
        received.set_room(3);
        assert!(!events.have_room());
        events.send(close());
        assert_eq!(received.owed(), 2);
        assert!(received.take().is_ok());
        assert_eq!(received.owed(), 1);
        // Where nobody writes, nothing is owed.
        let (events, _) = EventSender::new();
        events.send(open());
        events.send(close());
        assert!(events.have_room());
        assert_eq!(events.shared.owed.load(Ordering::Relaxed), 0);
    }
}
