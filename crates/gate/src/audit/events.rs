//! What happens at the gate, as it happens, for whoever writes it down.
//!
//! The gate never waits for the writer. Of denials that find its queue full only the number is
//! kept. What passes is never left out: if the writer is too far behind, or has no room left,
//! nothing new passes.

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
    /// So many more can be written for certain.
    room: AtomicUsize,
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
        self.queue.try_recv().inspect(|_| self.fetched())
    }

    /// The next event, if one comes in this time.
    ///
    /// # Errors
    /// If none came, or will ever come.
    pub fn wait(&self, time: Duration) -> Result<(SystemTime, Event), RecvTimeoutError> {
        self.queue.recv_timeout(time).inspect(|_| self.fetched())
    }

    fn fetched(&self) {
        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Says for how many more events there is room.
    pub fn set_room(&self, events: usize) {
        self.shared.room.store(events, Ordering::Relaxed);
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
            room: AtomicUsize::new(MOST),
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
        let Shared { waiting, lost, .. } = &*self.shared;
        let (count, room) = match event {
            Event::DeniedAgain { count, .. } => (count, QUEUE),
            Event::Denied { .. } | Event::Unseen { .. } => (1, QUEUE),
            _ => (1, usize::MAX),
        };
        let has_room = waiting.fetch_add(1, Ordering::Relaxed) < room;
        if !has_room || self.queue.send((SystemTime::now(), event)).is_err() {
            waiting.fetch_sub(1, Ordering::Relaxed);
            lost.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Whether something new may pass: the log has room to say so. Counts what may not.
    pub(crate) fn have_room(&self) -> bool {
        let Shared { waiting, room, .. } = &*self.shared;
        let room = room.load(Ordering::Relaxed).min(MOST);
        let may = waiting.load(Ordering::Relaxed) < room;
        if !may {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        may
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
        while events.have_room() {
            events.send(asked());
        }
        events.send(asked());
        assert_eq!(received.take_lost(), 0);
        let all = std::iter::from_fn(|| received.take().ok());
        let passed = all.filter(|(_, event)| matches!(event, Event::Asked { .. }));
        assert_eq!(passed.count(), MOST - QUEUE + 1);
        assert_eq!(received.take_refused(), 1);
        received.set_room(2);
        assert!(events.have_room());
        events.send(asked());
        assert!(events.have_room());
        events.send(asked());
        assert!(!events.have_room());
    }
}
