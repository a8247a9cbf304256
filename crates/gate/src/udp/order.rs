//! The order of a flow's first datagrams.

use std::{cell::Cell, time::Duration};

use tokio::{sync::Notify, time::timeout};

pub(super) const ORDER_LIMIT: Duration = Duration::from_millis(20);

/// The queue of first datagrams of a family. When a flow begins, more of its datagrams may
/// be in it; they are older than those at the flow's own socket, and have to go first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    times_empty: Cell<u64>,
    news: Notify,
}

impl Queue {
    /// How often it has been empty.
    pub(super) fn times_empty(&self) -> u64 {
        self.times_empty.get()
    }

    pub(super) fn emptied(&self) {
        self.times_empty.set(self.times_empty() + 1);
        self.news.notify_waiters();
    }

    /// Waits until all that was in the queue at a time has been taken out; not for long,
    /// though, since a flood would fill it again and again.
    pub(super) async fn empty_since(&self, times: u64) {
        let emptied = async {
            while self.times_empty() == times {
                self.news.notified().await;
            }
        };
        // Then the order of a few datagrams may be another.
        let _ = timeout(ORDER_LIMIT, emptied).await;
    }
}
