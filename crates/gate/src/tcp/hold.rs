//! Connection attempts, from the first SYN to the established pair.
//!
//! An attempt is *held* from the arrival of its SYN until its fate is known. The agent's
//! kernel sends the SYN again and again meanwhile; the copies of a held attempt change
//! nothing. Nothing inside the jail is answered before the policy has spoken and the
//! connection outside stands.

use std::{
    cell::RefCell,
    collections::{HashMap, hash_map::Entry},
    io,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::net::{SocketFlags, acceptfrom_with};
use stockade_jail::is_inside;
use stockade_policy::Flow;
use stockade_sys::{
    packet::{Injector, SynTap},
    transparent::Family,
};
use stockade_wire::packet::{Syn, Unreachable};
use tokio::{
    io::unix::AsyncFd,
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::spawn_local,
    time::{sleep, timeout},
};

use crate::{
    dns,
    ends::Ends,
    event_loop::Turns,
    event_loop::busy_poll,
    flows::{Flows, Standing},
    judge::{Admission, Judge, Refusal},
    tcp::carriers::Carriers,
    tcp::dial::{Failure, dial},
    tcp::inspect::Inspector,
    tcp::relay::{Papers, relay, reset},
};

/// Attempts that may be held at a time. Beyond it, SYNs are left unanswered: the agent's
/// kernel sends them again, and they get their turn when there is room.
const HELD_LIMIT: usize = 4096;

/// Between the marked SYN and the accepted connection lies only the agent's kernel.
const ACCEPT_LIMIT: Duration = Duration::from_secs(10);

/// An ICMP error that reaches a socket just while its owner is inside `connect()` is not
/// noticed by the kernel, so a refusal is said again after these delays. A repetition that
/// is not needed hits no open attempt and is ignored.
const REFUSAL_ECHOES: [Duration; 2] = [Duration::from_millis(3), Duration::from_millis(30)];

#[derive(Debug)]
pub(crate) struct Hold {
    judge: Rc<Judge>,
    injector: Rc<Injector>,
    resolution: Rc<dns::Resolution>,
    carriers: Rc<Carriers>,
    flows: Flows,
    listeners: RefCell<HashMap<Family, Rc<TcpListener>>>,
    attempts: RefCell<HashMap<Ends, Attempt>>,
}

#[derive(Debug)]
enum Attempt {
    Dialling,
    /// The marked SYN is on its way; the accepted connection goes to the receiver.
    LetThrough(oneshot::Sender<TcpStream>),
}

/// What is on the other side of an attempt that may pass.
#[derive(Debug)]
enum Far {
    Host(Arc<Standing>, Admission),
    /// The gate itself answers DNS, whatever server it was meant for.
    Dns,
}

impl Hold {
    pub(crate) fn new(
        judge: Rc<Judge>,
        injector: Rc<Injector>,
        resolution: Rc<dns::Resolution>,
        carriers: Rc<Carriers>,
    ) -> Self {
        Self {
            judge,
            injector,
            resolution,
            carriers,
            flows: Flows::default(),
            listeners: RefCell::default(),
            attempts: RefCell::default(),
        }
    }

    /// Ends what the policy does not allow any more.
    pub(crate) fn review(&self) {
        let judge = &self.judge;
        self.flows
            .review(|flow, by_name, claimed| judge.may_stay(flow, by_name, claimed));
    }

    /// One copy of a SYN has come.
    fn arrived(self: &Rc<Self>, packet: &[u8]) {
        // What is not a proper SYN was dropped by the filter and stays unanswered.
        let Ok(syn) = Syn::parse(packet) else { return };
        let ends = Ends {
            client: syn.source(),
            destination: syn.destination(),
        };
        // The copy was taken before the filter, which drops forged sources.
        if !is_inside(ends.client.ip()) {
            return;
        }
        let mut attempts = self.attempts.borrow_mut();
        let room = attempts.len() < HELD_LIMIT;
        match attempts.entry(ends) {
            Entry::Occupied(attempt) => {
                // The first marked SYN may have met a full queue of the listener.
                if matches!(attempt.get(), Attempt::LetThrough(_)) {
                    self.inject(&syn.complete(), ends.destination.ip());
                }
            }
            Entry::Vacant(_) if !room => self.judge.overlooked(),
            Entry::Vacant(vacant) => match self.judge(ends) {
                Ok(far) => {
                    vacant.insert(Attempt::Dialling);
                    spawn_local(carry(Rc::clone(self), ends, far, packet.to_vec()));
                }
                Err(Refusal { why, noted: None }) => self.refuse(&syn, why),
                // Held until somebody has looked at whose it is.
                Err(Refusal {
                    why,
                    noted: Some(noted),
                }) => {
                    vacant.insert(Attempt::Dialling);
                    let (hold, packet) = (Rc::clone(self), packet.to_vec());
                    spawn_local(async move {
                        noted.wait().await;
                        hold.attempts.borrow_mut().remove(&ends);
                        hold.fail(&packet, Failure::Unreachable(why));
                    });
                }
            },
        }
    }

    /// Whether the attempt may pass, and else how it is refused.
    fn judge(&self, ends: Ends) -> Result<Far, Refusal> {
        if ends.destination.port() == dns::PORT {
            return Ok(Far::Dns);
        }
        let flow = Flow::tcp(ends.destination).ok_or(Unreachable::AdminProhibited)?;
        let admission = self.judge.judge(ends.client, flow)?;
        // From this moment on, so that a change of the policy finds it whatever it waits for.
        let standing = self.flows.enter(flow, admission.by_name);
        Ok(Far::Host(standing, admission))
    }

    fn refuse(self: &Rc<Self>, syn: &Syn<'_>, why: Unreachable) {
        let answer = syn.unreachable(why);
        let client = syn.source().ip();
        self.inject(&answer, client);
        let hold = Rc::clone(self);
        spawn_local(async move {
            for delay in REFUSAL_ECHOES {
                sleep(delay).await;
                hold.inject(&answer, client);
            }
        });
    }

    fn fail(self: &Rc<Self>, packet: &[u8], failure: Failure) {
        let Ok(syn) = Syn::parse(packet) else { return };
        match failure {
            Failure::Reset => self.inject(&syn.reset(), syn.source().ip()),
            Failure::Unreachable(why) => self.refuse(&syn, why),
            Failure::Silence => {}
        }
    }

    /// A packet that the jail's kernel does not take now is lost, as on any network: the
    /// agent's SYN comes again.
    fn inject(&self, packet: &[u8], to: IpAddr) {
        let _ = self.injector.send(packet, to);
    }

    /// Who waits for the connection that an attempt has become.
    fn take_waiting(&self, ends: &Ends) -> Option<oneshot::Sender<TcpStream>> {
        let mut attempts = self.attempts.borrow_mut();
        match attempts.remove(ends)? {
            Attempt::LetThrough(waiting) => Some(waiting),
            dialling @ Attempt::Dialling => {
                attempts.insert(*ends, dialling);
                None
            }
        }
    }

    /// A connection came to stand. Tells whose it is.
    fn accepted(&self, near: TcpStream, client: SocketAddr) -> Option<Ends> {
        let ends = near.local_addr().ok().map(|destination| Ends {
            client,
            destination,
        });
        match ends.and_then(|ends| self.take_waiting(&ends)) {
            Some(waiting) => {
                // The flow may have stopped waiting in this very moment.
                let _ = waiting.send(near);
            }
            // Never held, so never judged: the filter should not have let it come.
            None => reset(near),
        }
        ends
    }

    /// The handshake inside takes no time: it is the kernel's work within our own sending of
    /// the SYN. So the connection is there already, unless the queue was full.
    fn expect(&self, ends: Ends) {
        let family = Family::of(ends.destination.ip());
        let listener = self.listeners.borrow().get(&family).cloned();
        while let Some(Ok((near, client))) = listener.as_deref().map(accept_now)
            && self.accepted(near, client) != Some(ends)
        {}
    }

    /// Sends the SYN again with the mark, and waits for the connection that it makes.
    async fn let_through(&self, ends: Ends, packet: &[u8]) -> Option<TcpStream> {
        let (sender, receiver) = oneshot::channel();
        self.attempts
            .borrow_mut()
            .insert(ends, Attempt::LetThrough(sender));
        let syn = Syn::parse(packet).ok()?;
        self.inject(&syn.complete(), ends.destination.ip());
        self.expect(ends);
        // Nobody comes if the agent gave the attempt up while it was held.
        let near = timeout(ACCEPT_LIMIT, receiver)
            .await
            .ok()
            .and_then(Result::ok);
        if near.is_none() {
            self.attempts.borrow_mut().remove(&ends);
        }
        near
    }
}

pub(crate) async fn watch(hold: Rc<Hold>, tap: Rc<AsyncFd<SynTap>>) {
    let mut buffer = vec![0; 64 * 1024];
    let mut turns = Turns::default();
    loop {
        turns.next().await;
        let Ok(mut ready) = tap.readable().await else {
            return;
        };
        // A malformed or lost copy concerns one attempt; the SYN comes again.
        if let Ok(Ok(length)) = ready.try_io(|tap| tap.get_ref().receive(&mut buffer)) {
            busy_poll::stir();
            hold.arrived(buffer.get(..length).unwrap_or_default());
        }
    }
}

pub(crate) async fn accept(hold: Rc<Hold>, listener: TcpListener, family: Family) {
    let listener = Rc::new(listener);
    let known = Rc::clone(&listener);
    hold.listeners.borrow_mut().insert(family, known);
    loop {
        match listener.accept().await {
            Ok((near, client)) => {
                hold.accepted(near, client);
            }
            // Out of descriptors, or the client is gone already: the next may fare better.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Accepts without asking the event loop first, which does not know yet.
fn accept_now(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (stream, client) = acceptfrom_with(listener, flags)?;
    let client = client.and_then(|client| client.try_into().ok());
    let client = client.ok_or(io::ErrorKind::InvalidData)?;
    Ok((TcpStream::from_std(stream.into())?, client))
}

/// The life of an attempt that may pass.
async fn carry(hold: Rc<Hold>, ends: Ends, far: Far, packet: Vec<u8>) {
    match far {
        Far::Dns => {
            if let Some(near) = hold.let_through(ends, &packet).await {
                dns::serve_stream(near, &hold.resolution).await;
            }
        }
        Far::Host(standing, admission) => {
            carry_out(hold, ends, standing, admission, packet).await;
        }
    }
}

async fn carry_out(
    hold: Rc<Hold>,
    ends: Ends,
    standing: Arc<Standing>,
    admission: Admission,
    packet: Vec<u8>,
) {
    let by_name = admission.by_name;
    let destination = standing.flow.destination();
    let pins = &hold.judge.pins;
    let papers = Papers {
        _pins: by_name
            .then(|| pins.hold(destination, Instant::now()))
            .flatten(),
        standing: Some(Arc::clone(&standing)),
        entry: Some(admission.entry),
    };
    let outward = match dial(ends.destination).await {
        Ok(stream) => stream,
        Err(failure) => {
            hold.attempts.borrow_mut().remove(&ends);
            hold.fail(&packet, failure);
            return;
        }
    };
    let Some(near) = hold.let_through(ends, &packet).await else {
        return;
    };
    drop(packet);
    let inspector = by_name.then(|| Inspector::new(Rc::clone(&hold.judge), standing));
    relay(near, outward, &hold.carriers, papers, inspector.as_ref()).await;
}
