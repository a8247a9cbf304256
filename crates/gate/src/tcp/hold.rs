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
    time::Duration,
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

use super::{
    carriers::Carriers,
    connection::Connection,
    dial::Failure,
    inspect::Inspector,
    relay::{relay, reset},
};
use crate::{
    dns,
    event_loop::{Turns, busy_poll},
    flows::{ActiveFlow, FlowKey},
    judge::{FlowRefusal, Judge},
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
    listeners: RefCell<HashMap<Family, Rc<TcpListener>>>,
    attempts: RefCell<HashMap<FlowKey, Attempt>>,
}

/// What became of a SYN so far.
#[derive(Debug)]
enum Attempt {
    /// It is held.
    Held,
    /// The marked SYN is on its way; the accepted connection goes to the receiver.
    LetThrough(oneshot::Sender<TcpStream>),
}

/// What is on the other side of an attempt that may pass.
#[derive(Debug)]
enum Far {
    Host(Arc<ActiveFlow>),
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
            listeners: RefCell::default(),
            attempts: RefCell::default(),
        }
    }

    /// One copy of a SYN has come.
    fn arrived(self: &Rc<Self>, packet: &[u8]) {
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
        let room = attempts.len() < HELD_LIMIT;
        match attempts.entry(key) {
            Entry::Occupied(attempt) => {
                // The first marked SYN may have met a full queue of the listener.
                if matches!(attempt.get(), Attempt::LetThrough(_)) {
                    self.inject(&syn.complete(), key.destination.ip());
                }
            }
            Entry::Vacant(_) if !room => self.judge.overlooked(),
            Entry::Vacant(vacant) => match self.judge(key) {
                Err(FlowRefusal { why, held: None }) => self.refuse(&syn, why),
                judged => {
                    vacant.insert(Attempt::Held);
                    spawn_local(carry(Rc::clone(self), key, syn, judged));
                }
            },
        }
    }

    /// Whether the attempt may pass, and else how it is refused.
    fn judge(&self, key: FlowKey) -> Result<Far, FlowRefusal> {
        if key.destination.port() == dns::PORT {
            return Ok(Far::Dns);
        }
        let flow = Flow::tcp(key.destination).ok_or(Unreachable::AdminProhibited)?;
        self.judge.judge(key.client, flow).map(Far::Host)
    }

    fn refuse(self: &Rc<Self>, syn: &Syn, why: Unreachable) {
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

    fn fail(self: &Rc<Self>, syn: &Syn, failure: Failure) {
        match failure {
            Failure::Reset => self.inject(&syn.reset(), syn.source().ip()),
            Failure::Unreachable(why) => self.refuse(syn, why),
            Failure::Silence => {}
        }
    }

    /// A packet that the jail's kernel does not take now is lost, as on any network: the
    /// agent's SYN comes again.
    fn inject(&self, packet: &[u8], to: IpAddr) {
        let _ = self.injector.send(packet, to);
    }

    /// Who waits for the connection that an attempt has become.
    fn take_waiting(&self, key: &FlowKey) -> Option<oneshot::Sender<TcpStream>> {
        let mut attempts = self.attempts.borrow_mut();
        match attempts.remove(key)? {
            Attempt::LetThrough(waiting) => Some(waiting),
            held @ Attempt::Held => {
                attempts.insert(*key, held);
                None
            }
        }
    }

    /// A connection came to stand. Tells whose it is.
    fn accepted(&self, near: TcpStream, client: SocketAddr) -> Option<FlowKey> {
        let key = near.local_addr().ok().map(|destination| FlowKey {
            client,
            destination,
        });
        match key.and_then(|key| self.take_waiting(&key)) {
            Some(waiting) => {
                // The flow may have stopped waiting in this very moment.
                let _ = waiting.send(near);
            }
            // Never held, so never judged: the filter should not have let it come.
            None => reset(near),
        }
        key
    }

    /// The handshake inside takes no time: it is the kernel's work within our own sending of
    /// the SYN. So the connection is there already, unless the queue was full.
    fn expect(&self, key: FlowKey) {
        let family = Family::of(key.destination.ip());
        let listener = self.listeners.borrow().get(&family).cloned();
        while let Some(Ok((near, client))) = listener.as_deref().map(accept_now)
            && self.accepted(near, client) != Some(key)
        {}
    }

    /// Sends the SYN again with the mark, and waits for the connection that it makes.
    async fn let_through(&self, key: FlowKey, syn: &Syn) -> Option<TcpStream> {
        let (sender, receiver) = oneshot::channel();
        self.attempts
            .borrow_mut()
            .insert(key, Attempt::LetThrough(sender));
        self.inject(&syn.complete(), key.destination.ip());
        self.expect(key);
        // Nobody comes if the agent gave the attempt up while it was held.
        let near = timeout(ACCEPT_LIMIT, receiver)
            .await
            .ok()
            .and_then(Result::ok);
        if near.is_none() {
            self.attempts.borrow_mut().remove(&key);
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

/// The life of an attempt, from the verdict to the end of the connection.
async fn carry(hold: Rc<Hold>, key: FlowKey, syn: Syn, judged: Result<Far, FlowRefusal>) {
    let failed = |syn: &Syn, failure| {
        hold.attempts.borrow_mut().remove(&key);
        hold.fail(syn, failure);
    };
    let flow = match judged {
        Ok(Far::Host(flow)) => flow,
        Ok(Far::Dns) => {
            if let Some(near) = hold.let_through(key, &syn).await {
                dns::serve_stream(near, &hold.resolution).await;
            }
            return;
        }
        Err(FlowRefusal { why, held }) => {
            if let Some(held) = held {
                held.release().await;
            }
            return failed(&syn, Failure::Unreachable(why));
        }
    };
    let dialled = match Connection::hold(flow, syn).dial().await {
        Ok(dialled) => dialled,
        Err((syn, failure)) => return failed(&syn, failure),
    };
    let Some(near) = hold.let_through(key, &dialled.state.syn).await else {
        return;
    };
    let connection = dialled.establish(near);
    let flow = &connection.flow;
    let inspector = flow
        .admission
        .by_name
        .then(|| Inspector::new(Rc::clone(&hold.judge), Arc::clone(flow)));
    relay(connection, Some(&hold.carriers), inspector.as_ref()).await;
}
