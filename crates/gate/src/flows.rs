//! The connections that stand, so that a change of the policy can end them.

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use stockade_policy::{Flow, Hostname};
use tokio::sync::Notify;

/// All that stand, and some that have ended.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    known: RefCell<Vec<Weak<Standing>>>,
}

/// One connection. It lives where the connection does, on whatever thread.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) flow: Flow,
    /// It was admitted for the names of its destination, and what it shows is judged.
    by_name: bool,
    /// The name that it showed, and was admitted with.
    claimed: Mutex<Option<Hostname>>,
    cut: Notify,
}

impl Standing {
    fn new(flow: Flow, by_name: bool) -> Self {
        Self {
            flow,
            by_name,
            claimed: Mutex::default(),
            cut: Notify::new(),
        }
    }

    pub(crate) fn claims(&self, name: Hostname) {
        *self.claimed.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    }

    /// Returns when the connection has to end.
    pub(crate) async fn is_cut(&self) {
        self.cut.notified().await;
    }
}

impl Flows {
    pub(crate) fn enter(&self, flow: Flow, by_name: bool) -> Arc<Standing> {
        let standing = Arc::new(Standing::new(flow, by_name));
        let mut known = self.known.borrow_mut();
        // Now and then: those that have ended make way.
        if known.len() == known.capacity() {
            known.retain(|flow| flow.strong_count() > 0);
        }
        known.push(Arc::downgrade(&standing));
        standing
    }

    /// Ends those for which `may_stay` is false.
    pub(crate) fn review(&self, may_stay: impl Fn(&Flow, bool, Option<&Hostname>) -> bool) {
        for standing in self.known.borrow().iter().filter_map(Weak::upgrade) {
            let claimed = standing.claimed.lock();
            let claimed = claimed.unwrap_or_else(PoisonError::into_inner);
            if !may_stay(&standing.flow, standing.by_name, claimed.as_ref()) {
                standing.cut.notify_one();
            }
        }
    }
}
