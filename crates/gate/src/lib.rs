//! The gate: everything that passes between the jail and the host's network.
//!
//! # Theory of operation
//! The gate has a thread of its own with a single-threaded event loop. That thread never
//! left the host's network, so the sockets it makes face outward; the sockets it got from
//! the jail face the agent.
//!
//! A connection attempt arrives as a copy of its SYN ([`hold`]). The policy decides ([`judge`]);
//! what it admits is in one table ([`flows`]), whatever its protocol. If the attempt may pass, the
//! gate connects outside; when that connection is open, the SYN is sent again, marked, so that
//! the filter lets it pass to a listener, and the two connections are joined ([`tcp`]). If
//! not, or if the gate could not connect, the agent gets the packet that makes its `connect()`
//! fail with the right error. So nothing looks open that is closed, and nobody inside talks to a
//! peer that the policy did not see.
//!
//! Where the user wants that, what no rule covers waits for an answer ([`questions`]).
//!
//! UDP flows ([`udp`]) and echo requests ([`icmp::echo`]) are judged at their first packet. DNS
//! ([`dns`], [`names`]) is answered by the gate for every server address.
//!
//! What the agent does at its own loopback is its own business; the gate only hears of
//! connections there that were refused ([`audit::refusals`]), for a hint to the user.

mod audit;
mod confine;
mod descriptors;
mod dns;
mod event_loop;
mod flows;
mod hold;
mod icmp;
mod judge;
mod names;
mod proxy;
mod questions;
mod routes;
mod tcp;
mod udp;

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    io, iter,
    net::IpAddr,
    rc::Rc,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use stockade_jail::Sockets;
use stockade_policy::{InsideExplanation, Policy, Target};
use stockade_sys::watch::watch;
use tokio::{
    net::TcpListener,
    runtime::{self, Runtime},
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    task::{LocalSet, yield_now},
    time::timeout,
};

use audit::{
    attribution::Attributor,
    hints::{self, Hints},
    unseen,
};
use event_loop::busy_poll;
use icmp::echo;
use judge::Judge;
use names::Names;
use questions::Questions;
use tcp::{Tcp, accept::Acceptor, carriers::Carriers, published, relay};

pub use audit::{
    attribution::{Attribution, PendingProgram, Program, program_name},
    denials::{Denial, Denials, Fix, Ruling, Subject, danger_of_port},
    events::{Event, EventReceiver, EventSender, Grounds},
};
pub use descriptors::claim_descriptors;
pub use dns::{
    lookup::{completed, look_up},
    resolvers::resolv_conf,
};
pub use flows::Traffic;
pub use proxy::{Proxies, Proxy, Trust, TrustError};
pub use questions::{Answer, AnsweredBy, Attention};
pub use routes::{host_evidence, host_evidence_by_proxy, host_has_ipv6};
pub use tcp::published::{Local, Publish};

/// A running gate.
#[derive(Debug)]
pub struct Gate {
    stop: oneshot::Sender<()>,
    handle: GateHandle,
    /// What was denied, when the gate's thread has ended.
    ended: mpsc::Receiver<Denials>,
}

/// How long what the agent sent last may take to leave: a peer that reads slowly is waited for
/// so long.
const DELIVERY_LIMIT: Duration = Duration::from_secs(5);
/// How often all sockets are looked at once more at the end: a task that is woken by one look has
/// read what is there at the next, and what that gave other tasks to do is done at those after it.
const LAST_LOOKS: u32 = 4;
/// How long the gate may take to do as it is told. It does so between packets.
const ORDER_LIMIT: Duration = Duration::from_secs(5);
/// Longer than that only if something is wrong. Thousands of flows take a while to close, after the
/// time that delivery has.
const END_LIMIT: Duration = Duration::from_secs(15);

/// The gate's thread could not be started, or it died.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start the gate")]
    Start(#[from] io::Error),
    #[error("the gate died; the agent had no network from then on")]
    Died,
    #[error(
        "the gate was still busy {} seconds after the command had ended, so not all that it denied \
         is told; see: stockade log --denied",
        END_LIMIT.as_secs()
    )]
    Endless,
    #[error(
        "the gate has not answered for {} seconds, so the new rules may not be in force yet; \
         run this command again, or end the session",
        ORDER_LIMIT.as_secs()
    )]
    Busy,
}

impl Gate {
    /// Starts serving. Call it on a thread that is in the host's network namespace.
    ///
    /// # Errors
    /// If a socket or the thread cannot be had.
    pub fn start(
        (policy, asks): (Policy, bool),
        local: Local,
        sockets: Sockets,
        events: EventSender,
        attribution: Option<Attribution>,
        proxies: Proxies,
    ) -> Result<Self, Error> {
        let (stop, stopped) = oneshot::channel();
        let (orders, received) = unbounded_channel();
        let attention = Arc::new(Attention::default());
        let questions = Questions::new(asks, Arc::clone(&attention), events.clone());
        let (ready, started) = mpsc::sync_channel(1);
        let (end, ended) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("gate".to_owned())
            .spawn(move || {
                let denials = serve(
                    (
                        policy,
                        local,
                        sockets,
                        events,
                        attribution,
                        (questions, proxies),
                    ),
                    stopped,
                    received,
                    |result| {
                        // The starter waits below; without it there is nobody to tell.
                        let _ = ready.send(result);
                    },
                );
                let _ = end.send(denials);
            })?;
        started.recv().map_err(|_| Error::Died)??;
        Ok(Self {
            stop,
            handle: GateHandle { orders, attention },
            ended,
        })
    }

    /// What gives the gate orders, for any thread.
    #[must_use]
    pub fn handle(&self) -> GateHandle {
        self.handle.clone()
    }

    /// Stops serving and tells what was denied. `meanwhile` is run by the calling thread, which
    /// would only wait.
    ///
    /// # Errors
    /// If the gate died before, or does not come to an end.
    pub fn finish<T>(self, meanwhile: impl FnOnce() -> T) -> (Result<Denials, Error>, T) {
        // The receiver is gone only if the thread is, which is found out below.
        let _ = self.stop.send(());
        let done = meanwhile();
        let denials = self.ended.recv_timeout(END_LIMIT);
        (denials.map_err(unended), done)
    }
}

/// See [`Gate::handle`].
#[derive(Debug, Clone)]
pub struct GateHandle {
    orders: UnboundedSender<Order>,
    /// Whether somebody can be asked.
    pub attention: Arc<Attention>,
}

#[derive(Debug)]
enum Order {
    Change(Policy, bool, mpsc::Sender<()>),
    Answer {
        id: u64,
        answer: Answer,
        by: AnsweredBy,
        policy: Option<(Policy, bool)>,
        was_asked: mpsc::Sender<bool>,
    },
    Traffic(HashSet<u64>, mpsc::Sender<HashMap<u64, Traffic>>),
    Explain(Target, Vec<IpAddr>, mpsc::Sender<InsideExplanation>),
}

impl GateHandle {
    /// Has new flows judged by another policy, and ends those that it does not allow. `asks`: whether
    /// the user is asked about what it does not cover.
    ///
    /// # Errors
    /// If the gate died before, or has not done it in time.
    pub fn change(&self, policy: Policy, asks: bool) -> Result<(), Error> {
        let (done, reply) = mpsc::channel();
        let order = Order::Change(policy, asks, done);
        self.orders.send(order).map_err(|_| Error::Died)?;
        reply.recv_timeout(ORDER_LIMIT).map_err(unanswered)
    }

    /// Answers a question, with the policy that this puts in force, as for [`Self::change`], if it
    /// does. Says whether the question still waited; if not, nothing changes.
    ///
    /// # Errors
    /// If the gate died before.
    pub fn answer(
        &self,
        id: u64,
        answer: Answer,
        by: AnsweredBy,
        policy: Option<(Policy, bool)>,
    ) -> Result<bool, Error> {
        let (was_asked, reply) = mpsc::channel();
        let order = Order::Answer {
            id,
            answer,
            by,
            policy,
            was_asked,
        };
        self.orders.send(order).map_err(|_| Error::Died)?;
        reply.recv_timeout(ORDER_LIMIT).map_err(unanswered)
    }

    /// How much the flows with these numbers have moved, those that are open.
    #[must_use]
    pub fn traffic(&self, flows: HashSet<u64>) -> HashMap<u64, Traffic> {
        let (reply, traffic) = mpsc::channel();
        // Without an answer none have.
        let _ = self.orders.send(Order::Traffic(flows, reply));
        traffic.recv_timeout(ORDER_LIMIT).unwrap_or_default()
    }

    /// What the gate would decide now about a target that has these addresses, by its policy, the
    /// host's routes and the names that were asked for: for programs inside. None if it does not
    /// answer in this time.
    #[must_use]
    pub fn explain(
        &self,
        target: Target,
        addresses: Vec<IpAddr>,
        patience: Duration,
    ) -> Option<InsideExplanation> {
        let (reply, answer) = mpsc::channel();
        self.orders
            .send(Order::Explain(target, addresses, reply))
            .ok()?;
        answer.recv_timeout(patience).ok()
    }
}

fn unanswered(why: mpsc::RecvTimeoutError) -> Error {
    match why {
        mpsc::RecvTimeoutError::Timeout => Error::Busy,
        mpsc::RecvTimeoutError::Disconnected => Error::Died,
    }
}

fn unended(why: mpsc::RecvTimeoutError) -> Error {
    match why {
        mpsc::RecvTimeoutError::Timeout => Error::Endless,
        mpsc::RecvTimeoutError::Disconnected => Error::Died,
    }
}

fn obey(judge: &Judge, order: Order) {
    match order {
        Order::Change(policy, asks, done) => {
            judge.questions().forget_refused();
            judge.change_policy(policy, asks);
            // Whoever has stopped waiting does not need to know.
            let _ = done.send(());
        }
        Order::Answer {
            id,
            answer,
            by,
            policy,
            was_asked,
        } => {
            let answered = judge.questions().answer(id, answer, by);
            // Those that waited are judged after this.
            if let Some((policy, asks)) = policy.filter(|_| answered) {
                judge.change_policy(policy, asks);
            }
            // Whoever has stopped waiting does not need to know.
            let _ = was_asked.send(answered);
        }
        Order::Traffic(flows, reply) => {
            let _ = reply.send(judge.traffic(&flows));
        }
        Order::Explain(target, addresses, reply) => {
            let _ = reply.send(judge.explain(&target, &addresses));
        }
    }
}

/// What the gate is started with.
type Given = (
    Policy,
    Local,
    Sockets,
    EventSender,
    Option<Attribution>,
    (Questions, Proxies),
);

fn serve(
    given: Given,
    mut stopped: oneshot::Receiver<()>,
    mut orders: UnboundedReceiver<Order>,
    started: impl FnOnce(io::Result<()>),
) -> Denials {
    let ready = set_up(given).and_then(|parts| {
        confine::confine()?;
        Ok(parts)
    });
    let serving = match ready {
        Ok(serving) => {
            started(Ok(()));
            serving
        }
        Err(error) => {
            started(Err(error));
            return Denials::default();
        }
    };
    let (judge, unseen) = (&serving.judge, &serving.unseen);
    serving.tasks.block_on(&serving.runtime, async {
        loop {
            tokio::select! {
                // An error means that the handle is gone, which ends the gate as well.
                _ = &mut stopped => break,
                Some(order) = orders.recv() => obey(judge, order),
            }
        }
        judge.questions().end();
        // The agent has ended, but what it sent last may still be on its way out, or lie unread
        // at a socket: the command may have ended with the packet that is denied.
        let last = async {
            loop {
                for _ in 0..LAST_LOOKS {
                    yield_now().await;
                }
                if !unseen.are_waiting() {
                    break;
                }
            }
            relay::delivered().await;
        };
        let _ = timeout(DELIVERY_LIMIT, last).await;
        serving.hints.catch_up();
    });
    unseen.tell();
    judge.take_denials()
}

/// All that is needed to serve.
struct Serving {
    runtime: Runtime,
    tasks: LocalSet,
    judge: Rc<Judge>,
    hints: Hints,
    unseen: Rc<unseen::Unseen>,
}

fn set_up(
    (policy, local, sockets, events, attribution, (questions, proxies)): Given,
) -> io::Result<Serving> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let tasks = LocalSet::new();
    let context = runtime.enter();

    let Sockets {
        v4,
        v6,
        host_ports: at_host_ports,
        refusals,
        injector,
        socket_factory,
    } = sockets;
    let Local {
        host_ports,
        publish,
    } = local;
    let unseen = Rc::new(unseen::Unseen::new(events.clone()));
    let attributor = Attributor::start(attribution)?;
    let judge = Rc::new(Judge::new(
        policy,
        host_ports,
        events,
        attributor,
        (questions, proxies),
    )?);
    let socket_factory = Rc::new(RefCell::new(socket_factory));
    let injector = Rc::new(injector);
    let names = Names::new(Rc::clone(&judge), v6.is_some());
    let resolution = Rc::new(dns::Resolution::new(names));
    if let Some(upstream) = &judge.upstream {
        upstream.look_up_first();
        tasks.spawn_local(proxy::watch(Rc::clone(upstream), Rc::clone(&resolution)));
    }
    let mut held = Vec::new();
    let mut listeners = Vec::new();
    if let Some(at) = at_host_ports {
        let injector = Rc::new(at.injector);
        held.extend(at.syns.into_iter().map(|tap| (tap, Rc::clone(&injector))));
        listeners = at.listeners;
    }
    let tcp = Rc::new(Tcp {
        judge: Rc::clone(&judge),
        resolution: Rc::clone(&resolution),
        acceptor: Acceptor::start(Rc::clone(&socket_factory), listeners, &tasks)?,
        carriers: Carriers::start()?,
    });
    let hold = Rc::new(hold::Hold {
        judge: Rc::clone(&judge),
        resolution: Rc::clone(&resolution),
        tcp: Rc::clone(&tcp),
        attempts: Rc::default(),
    });
    let datagrams = Rc::new(udp::Datagrams::new(
        Rc::clone(&judge),
        Rc::clone(&resolution),
        Rc::clone(&injector),
        Rc::clone(&socket_factory),
    ));
    let echoes = Rc::new(echo::Echoes {
        judge: Rc::clone(&judge),
        injector: Rc::clone(&injector),
        pings: RefCell::default(),
        held: RefCell::default(),
    });
    let (mut groups, mut others) = (Vec::new(), Vec::new());
    for face in iter::once(v4).chain(v6) {
        let requests = Rc::new(watch(face.echoes)?);
        let (dns, all) = (Rc::new(watch(face.dns)?), Rc::new(watch(face.datagrams)?));
        unseen.add(Rc::clone(&requests));
        unseen.add(Rc::clone(&dns));
        unseen.add(Rc::clone(&all));
        held.push((face.syns, Rc::clone(&injector)));
        groups.push(face.groups);
        others.push(face.foreign);
        tasks.spawn_local(dns::serve(dns, Rc::clone(&resolution)));
        tasks.spawn_local(udp::watch(Rc::clone(&datagrams), all));
        tasks.spawn_local(echo::watch(Rc::clone(&echoes), requests));
    }
    for (syns, injector) in held {
        let syns = Rc::new(watch(syns)?);
        unseen.add(Rc::clone(&syns));
        tasks.spawn_local(Rc::clone(&hold).watch(syns, injector));
    }
    tasks.spawn_local(audit::tell(Rc::clone(&unseen), Rc::clone(&judge)));
    let outside = publish.iter().map(|publish| publish.outside).collect();
    let mut hints = Hints::default();
    hints.add(refusals, hints::refused(Rc::clone(&judge), outside)?)?;
    hints.add(groups, hints::to_many(Rc::clone(&datagrams)))?;
    hints.add(others, hints::foreign(Rc::clone(&judge), injector))?;
    hints.watch(&tasks);
    tasks.spawn_local(busy_poll::watch());
    tasks.spawn_local(udp::sweep(datagrams));
    // Read before the thread is confined.
    let machine: Rc<str> = rustix::system::uname().nodename().to_string_lossy().into();
    for publish in publish {
        for listener in publish.listeners {
            let listener = TcpListener::from_std(listener)?;
            tasks.spawn_local(published::serve(published::Published {
                listener,
                outside: publish.outside,
                inside: publish.inside,
                socket_factory: Rc::clone(&socket_factory),
                tcp: Rc::clone(&tcp),
                machine: Rc::clone(&machine),
            }));
        }
    }
    drop(context);
    Ok(Serving {
        runtime,
        tasks,
        judge,
        hints,
        unseen,
    })
}
