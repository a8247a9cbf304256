//! Connection attempts, held at their SYN.
//!
//! An attempt is *held* from the arrival of its SYN until its fate is known. The agent's
//! kernel sends the SYN again and again meanwhile; the copies of a held attempt change
//! nothing. Nothing inside the jail is answered before the policy has spoken and the
//! connection outside is open.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet, VecDeque},
    rc::{Rc, Weak},
    time::{Duration, Instant},
};

use stockade_jail::is_inside;
use stockade_policy::Flow;
use stockade_sys::packet::{Injector, Tap};
use stockade_wire::packet::{Syn, Unreachable};
use tokio::{io::unix::AsyncFd, sync::Notify, task::spawn_local, time::sleep};

use crate::{
    dns,
    event_loop::{busy_poll, for_each_packet},
    flows::FlowKey,
    judge::{FlowRefusal, Judge, Judgement},
    tcp::{Tcp, connection::Connection},
};

/// Attempts that may be held at a time. Beyond it, the one that has waited longest for an answer from outside
/// gives its place up: a program that makes very many must not keep others out. It gets another place when
/// the agent's kernel sends its SYN again.
const HELD_LIMIT: usize = 4096;
/// How long an attempt has its place at least. If all are younger, SYNs are left unanswered.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// An ICMP error that reaches a socket just while its owner is inside `connect()` is not
/// noticed by the kernel, so a refusal is said again after these delays. A repetition that
/// is not needed hits no open attempt and is ignored.
const REFUSAL_ECHOES: [Duration; 2] = [Duration::from_millis(3), Duration::from_millis(30)];

#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) judge: Rc<Judge>,
    pub(crate) resolution: Rc<dns::Resolution>,
    pub(crate) tcp: Rc<Tcp>,
    pub(crate) attempts: Rc<RefCell<Attempts>>,
}

#[derive(Debug, Default)]
pub(crate) struct Attempts {
    held: HashSet<FlowKey>,
    /// The same in the order of their arrival, and some that are held no more.
    order: VecDeque<(Instant, Weak<Notify>)>,
    /// The sequence numbers of those that were let through: a copy of such a SYN may still wait at
    /// the tap, and is no new attempt.
    opened: HashMap<FlowKey, u32>,
}

/// How an attempt fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Reset,
    Unreachable(Unreachable),
    /// Nobody answered outside. The agent's own SYNs have gone unanswered as long, so
    /// its kernel gives up by itself.
    Silence,
}

/// The SYN of a held attempt, to be answered. As long as it lives, its copies change nothing.
#[derive(Debug)]
pub(crate) struct HeldSyn {
    pub(crate) key: FlowKey,
    syn: Syn,
    injector: Rc<Injector>,
    attempts: Rc<RefCell<Attempts>>,
    give_way: Rc<Notify>,
}

impl Attempts {
    /// Takes a place for an attempt, if there is one.
    fn hold(&mut self, key: FlowKey) -> Option<Rc<Notify>> {
        let now = Instant::now();
        while self.held.len() >= HELD_LIMIT {
            let (since, oldest) = self.order.front()?;
            if let Some(oldest) = oldest.upgrade() {
                if now.duration_since(*since) < LEAST_WAIT {
                    return None;
                }
                oldest.notify_one();
                self.order.pop_front();
                break;
            }
            self.order.pop_front();
        }
        if self.order.len() >= 2 * HELD_LIMIT {
            self.order.retain(|(_, attempt)| attempt.strong_count() > 0);
        }
        let give_way = Rc::new(Notify::new());
        self.held.insert(key);
        self.order.push_back((now, Rc::downgrade(&give_way)));
        Some(give_way)
    }
}

impl Hold {
    /// `injector` is the way back to where `tap` is.
    pub(crate) async fn watch(self: Rc<Self>, tap: Rc<AsyncFd<Tap>>, injector: Rc<Injector>) {
        let mut buffer = vec![0; 64 * 1024];
        for_each_packet(&tap, |tap| {
            let length = tap.receive(&mut buffer)?;
            busy_poll::extend();
            self.arrived(buffer.get(..length).unwrap_or_default(), &injector);
            Ok(1)
        })
        .await;
    }

    /// One copy of a SYN has come.
    fn arrived(&self, packet: &[u8], injector: &Rc<Injector>) {
        // What is not a proper SYN was dropped by the filter and stays unanswered.
        let Ok(syn) = Syn::parse(packet) else { return };
        let key = FlowKey {
            client: syn.source(),
            destination: syn.destination(),
        };
        // The copy was taken before the filter, which drops forged sources.
        if !is_inside(key.client.ip()) {
            return;
        }
        let mut attempts = self.attempts.borrow_mut();
        if attempts.held.contains(&key) {
            // The first marked SYN may have met a full queue of the listener.
            if self.tcp.acceptor.expects(key) {
                injector.send(&syn.complete(), key.destination.ip());
            }
            return;
        }
        if attempts.opened.get(&key) == Some(&syn.sequence()) {
            return;
        }
        let place = attempts.hold(key);
        drop(attempts);
        let is_full = place.is_none();
        let held = HeldSyn {
            key,
            syn,
            injector: Rc::clone(injector),
            attempts: Rc::clone(&self.attempts),
            give_way: place.unwrap_or_default(),
        };
        let tcp = Rc::clone(&self.tcp);
        // The gate itself answers DNS, whatever server it was meant for.
        if key.destination.port() == dns::PORT {
            if is_full {
                return self.judge.events.overlook();
            }
            let resolution = Rc::clone(&self.resolution);
            spawn_local(async move {
                if let Some(near) = tcp.acceptor.let_through(held).await {
                    dns::serve_stream(near, key, &resolution).await;
                }
            });
            return;
        }
        let Some(flow) = Flow::tcp(key.destination) else {
            return held.fail(Failure::Unreachable(Unreachable::AdminProhibited));
        };
        match self.judge.judge(key.client, flow) {
            // What is denied needs no place.
            Judgement::Admitted(_) | Judgement::Held(_) if is_full => {
                self.judge.events.overlook();
            }
            Judgement::Admitted(flow) => {
                spawn_local(Connection::hold(flow, held).carry(tcp));
            }
            Judgement::Refused(FlowRefusal { why, held: None }) => {
                held.fail(Failure::Unreachable(why));
            }
            Judgement::Refused(refusal) => {
                spawn_local(refuse(held, refusal));
            }
            Judgement::Held(waiting) => {
                let judge = Rc::clone(&self.judge);
                spawn_local(async move {
                    let decision = waiting.decision().await;
                    match judge.judge_answered(key.client, flow, decision) {
                        Ok(flow) => Connection::hold(flow, held).carry(tcp).await,
                        Err(refusal) => refuse(held, refusal).await,
                    }
                });
            }
        }
    }
}

/// Fails an attempt once it is known whose it was.
async fn refuse(held: HeldSyn, refusal: FlowRefusal) {
    if let Some(client) = refusal.held {
        client.release().await;
    }
    held.fail(Failure::Unreachable(refusal.why));
}

impl HeldSyn {
    /// Sends it on its way, marked.
    pub(crate) fn send_on(&self) {
        let to = self.key.destination.ip();
        self.injector.send(&self.syn.complete(), to);
    }

    /// Returns when another attempt needs its place.
    pub(crate) async fn gives_way(&self) {
        self.give_way.notified().await;
    }

    /// It has become a connection.
    pub(crate) fn open(self) {
        let mut attempts = self.attempts.borrow_mut();
        let opened = &mut attempts.opened;
        if opened.len() >= HELD_LIMIT {
            opened.clear();
        }
        opened.insert(self.key, self.syn.sequence());
    }

    /// Makes the agent's `connect()` fail.
    pub(crate) fn fail(self, failure: Failure) {
        let client = self.key.client.ip();
        match failure {
            Failure::Reset => self.injector.send(&self.syn.reset(), client),
            Failure::Unreachable(why) => {
                let answer = self.syn.unreachable(why);
                self.injector.send(&answer, client);
                let injector = Rc::clone(&self.injector);
                spawn_local(async move {
                    for delay in REFUSAL_ECHOES {
                        sleep(delay).await;
                        injector.send(&answer, client);
                    }
                });
            }
            Failure::Silence => {}
        }
    }
}

impl Drop for HeldSyn {
    fn drop(&mut self) {
        self.attempts.borrow_mut().held.remove(&self.key);
    }
}
