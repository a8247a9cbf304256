//! The flow table: what was admitted and has not ended, of TCP, UDP and echo alike.
//!
//! A change of the policy reviews it, whatever thread relays a flow by then.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use stockade_policy::{Flow, Host, Hostname, Rule};
use tokio::sync::Notify;

use crate::{
    audit::events::{Event, EventSender, Grounds},
    names::pins::Use,
};

/// The two ends of a flow as the agent sees them.
///
/// `client` is an address in the jail, `destination` one that the agent wants to reach
/// outside; only the latter may ever be dialled. An echo flow has its identifier as the
/// client's port, and no port at its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    pub(crate) client: SocketAddr,
    pub(crate) destination: SocketAddr,
}

/// Why a flow was admitted, and what follows from that.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The names of its destination are the only reason: those that it shows are judged.
    pub(crate) by_name: bool,
    /// Its destination is not on the internet, and a rule names it.
    pub(crate) near: bool,
    /// The user allowed it, and no other, by this rule.
    pub(crate) once: Option<Rule>,
    /// What the proxy is asked for, if it goes through that.
    pub(crate) proxied: Option<Host>,
    /// Keeps the names that it was admitted for.
    pub(crate) _pins: Option<Use>,
}

impl Admission {
    /// Between the two loopbacks.
    pub(crate) const LOCAL: Self = Self {
        by_name: false,
        near: true,
        once: None,
        proxied: None,
        _pins: None,
    };
}

/// How many bytes a flow has moved outward, and back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub sent: u64,
    pub received: u64,
}

/// A flow from its admission to its end. It is dropped where the flow ends, on whatever
/// thread, which also writes its end into the log.
#[derive(Debug)]
pub(crate) struct ActiveFlow {
    pub(crate) flow: Flow,
    pub(crate) admission: Admission,
    /// The name that it showed, and was admitted with.
    claimed: Mutex<Option<Hostname>>,
    /// Its number in the log.
    id: u64,
    events: EventSender,
    sent: AtomicU64,
    received: AtomicU64,
    ended: AtomicBool,
    end: Notify,
}

impl ActiveFlow {
    /// Writes its beginning into the log. It is reviewed only if it enters the table.
    pub(crate) fn open(
        events: &EventSender,
        (flow, client): (Flow, SocketAddr),
        (names, grounds): (Vec<Hostname>, Grounds),
        admission: Admission,
    ) -> Arc<Self> {
        let id = events.next_flow();
        events.send(Event::Opened {
            id,
            flow,
            client,
            names,
            grounds,
        });
        Arc::new(Self {
            flow,
            admission,
            claimed: Mutex::default(),
            id,
            events: events.clone(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            end: Notify::new(),
        })
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn claims(&self, name: Hostname) {
        *self.claimed.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    }

    pub(crate) fn claimed(&self) -> Option<Hostname> {
        let claimed = self.claimed.lock();
        claimed.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has it end: nothing more of it is moved.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.end.notify_one();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns when it has to end. One task at a time may wait for that.
    pub(crate) async fn until_ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for ActiveFlow {
    fn drop(&mut self) {
        let Traffic { sent, received } = self.traffic();
        self.events.send(Event::Closed {
            id: self.id,
            sent,
            received,
        });
    }
}

/// Takes a flow's sockets out, unless another flow with the same key has taken their place.
pub(crate) fn forget<T>(all: &RefCell<HashMap<FlowKey, Rc<T>>>, key: FlowKey, ended: &Rc<T>) {
    let mut all = all.borrow_mut();
    if all.get(&key).is_some_and(|known| Rc::ptr_eq(known, ended)) {
        all.remove(&key);
    }
}

/// All that are active, and some that have ended.
#[derive(Debug, Default)]
pub(crate) struct FlowTable {
    flows: RefCell<Vec<Weak<ActiveFlow>>>,
}

impl FlowTable {
    pub(crate) fn enter(&self, flow: &Arc<ActiveFlow>) {
        let mut flows = self.flows.borrow_mut();
        // Now and then: those that have ended make way.
        if flows.len() == flows.capacity() {
            flows.retain(|flow| flow.strong_count() > 0);
        }
        flows.push(Arc::downgrade(flow));
    }

    /// How much those with these numbers have moved.
    pub(crate) fn traffic(&self, ids: &HashSet<u64>) -> HashMap<u64, Traffic> {
        let flows = self.flows.borrow();
        let active = flows.iter().filter_map(Weak::upgrade);
        let asked = active.filter(|flow| ids.contains(&flow.id));
        asked.map(|flow| (flow.id, flow.traffic())).collect()
    }

    /// Ends those that may not stay.
    pub(crate) fn review(&self, may_stay: impl Fn(&ActiveFlow) -> bool) {
        let flows = self.flows.borrow();
        let active = flows.iter().filter_map(Weak::upgrade);
        for flow in active.filter(|flow| !may_stay(flow)) {
            flow.end();
        }
    }
}
