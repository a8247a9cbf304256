//! Polling between messages that follow each other closely.
//!
//! To sleep and be woken costs a thread several times what it costs to pass a small message
//! on: tens of microseconds, more in a virtual machine. A request and its answer pass the
//! gate one after the other, so the second often comes while the gate would be falling
//! asleep. After a small message the gate therefore looks for the next one a moment longer
//! before it sleeps.
//!
//! The moment is a guess that must pay off. Each watch in vain doubles the number of
//! messages after which none is tried, and a good one resets it: a gate whose peers answer
//! slowly, or which shares its processor with others that want it, soon sleeps as ever. Bulk
//! does not count, because it gains from being moved in larger pieces.

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::{sync::Notify, task::yield_now};

/// About what it takes a peer to be woken and answer.
const MOMENT: Duration = Duration::from_micros(100);
/// Longer than a look takes, unless somebody else has the processor.
const TAKEN_AWAY: Duration = Duration::from_micros(300);
const LONGEST_REST: u32 = 1024;

thread_local! {
    static BUSY_POLL: Rc<BusyPoll> = Rc::default();
}

#[derive(Debug, Default)]
struct BusyPoll {
    messages: Cell<u64>,
    /// Messages to come before the next watch.
    rest: Cell<u32>,
    begin: Notify,
}

/// A small message has passed: the next may be near.
pub(crate) fn extend() {
    BUSY_POLL.with(|poll| {
        poll.messages.set(poll.messages.get().wrapping_add(1));
        match poll.rest.get() {
            0 => poll.begin.notify_one(),
            rest => poll.rest.set(rest - 1),
        }
    });
}

/// Keeps watch on this thread, for ever.
pub(crate) async fn watch() {
    let poll = BUSY_POLL.with(Rc::clone);
    let mut next_rest = 1;
    loop {
        poll.begin.notified().await;
        if poll.look_out().await {
            next_rest = 1;
        } else {
            poll.rest.set(next_rest);
            next_rest = (next_rest * 2).min(LONGEST_REST);
        }
    }
}

impl BusyPoll {
    /// Looks for messages until none comes for a moment. Whether one came at all.
    async fn look_out(&self) -> bool {
        let mut any = false;
        let mut seen = self.messages.get();
        let mut last = Instant::now();
        let mut until = last + MOMENT;
        loop {
            // Lets all others have their turn, and the runtime look for events.
            yield_now().await;
            let now = Instant::now();
            if self.messages.get() != seen {
                any = true;
                seen = self.messages.get();
                until = now + MOMENT;
            } else if now > until {
                return any;
            }
            if now - last > TAKEN_AWAY {
                return false;
            }
            last = now;
        }
    }
}
