//! The agent's side of a connection: the marked SYN goes in, an accepted connection comes out.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    io,
    net::{SocketAddr, TcpListener as StdTcpListener},
    rc::Rc,
    time::Duration,
};

use rustix::net::{SocketFlags, acceptfrom_with};
use stockade_jail::SocketFactory;
use stockade_sys::transparent::Family;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{AbortHandle, LocalSet, spawn_local},
    time::{sleep, timeout},
};

use super::relay::reset;
use crate::{descriptors::spare, flows::FlowKey, hold::HeldSyn};

/// Between the marked SYN and the accepted connection lies only the agent's kernel.
const ACCEPT_LIMIT: Duration = Duration::from_secs(10);
/// When there are as many, those are closed that nothing is expected at. What was accepted stays
/// open.
const LISTENER_LIMIT: usize = 256;

/// Pairs what the listeners accept with the attempts that were let through.
#[derive(Debug)]
pub(crate) struct Acceptor {
    socket_factory: Rc<RefCell<SocketFactory>>,
    /// By where they listen: at a port of the host's, or at a port of any address.
    listeners: RefCell<HashMap<SocketAddr, Listener>>,
    expected: Rc<Expected>,
}

#[derive(Debug, Default)]
struct Expected(RefCell<HashMap<FlowKey, oneshot::Sender<TcpStream>>>);

#[derive(Debug)]
struct Listener {
    socket: Rc<TcpListener>,
    /// Accepts from it; none if it was there from the beginning, and stays.
    task: Option<AbortHandle>,
}

impl Acceptor {
    /// `listeners` are there from the beginning: those at ports of the host's.
    pub(crate) fn start(
        socket_factory: Rc<RefCell<SocketFactory>>,
        listeners: Vec<StdTcpListener>,
        tasks: &LocalSet,
    ) -> io::Result<Self> {
        let expected = Rc::default();
        let listeners = listeners.into_iter().map(|socket| {
            let at = socket.local_addr()?;
            let socket = Rc::new(TcpListener::from_std(socket)?);
            tasks.spawn_local(serve(Rc::clone(&expected), Rc::clone(&socket)));
            Ok((at, Listener { socket, task: None }))
        });
        Ok(Self {
            socket_factory,
            listeners: RefCell::new(listeners.collect::<io::Result<_>>()?),
            expected,
        })
    }

    /// Whether the attempt's marked SYN is on its way.
    pub(crate) fn expects(&self, key: FlowKey) -> bool {
        self.expected.0.borrow().contains_key(&key)
    }

    /// Sends the SYN again with the mark, and waits for the connection that it makes.
    pub(crate) async fn let_through(&self, syn: HeldSyn) -> Option<TcpStream> {
        let key = syn.key();
        let listener = self.listener(key.destination).ok()?;
        let (sender, receiver) = oneshot::channel();
        self.expected.0.borrow_mut().insert(key, sender);
        syn.send_on();
        // The handshake inside takes no time: it is the kernel's work within our own sending of
        // the SYN. So the connection is there already, unless the queue was full.
        while let Ok((near, client)) = accept_now(&listener)
            && self.expected.accepted(near, client) != Some(key)
        {}
        // Nobody comes if the agent gave the attempt up while it was held.
        let near = tokio::select! {
            biased;
            near = timeout(ACCEPT_LIMIT, receiver) => near.ok(),
            () = syn.gives_way() => None,
        };
        self.expected.forget(key);
        let near = near?.ok()?;
        syn.open();
        Some(near)
    }

    /// The one at which a connection to `destination` arrives.
    fn listener(&self, destination: SocketAddr) -> io::Result<Rc<TcpListener>> {
        let mut listeners = self.listeners.borrow_mut();
        let (family, port) = (Family::of(destination.ip()), destination.port());
        let anywhere = SocketAddr::new(family.unspecified(), port);
        let known = listeners.get(&destination);
        if let Some(known) = known.or_else(|| listeners.get(&anywhere)) {
            return Ok(Rc::clone(&known.socket));
        }
        if listeners.len() >= LISTENER_LIMIT {
            let expected = self.expected.0.borrow();
            let ports: HashSet<u16> = expected.keys().map(|key| key.destination.port()).collect();
            listeners.retain(|at, it| it.task.is_none() || ports.contains(&at.port()));
        }
        let socket = spare(self.socket_factory.borrow().listen(family, port)?)?;
        let socket = Rc::new(TcpListener::from_std(socket)?);
        let serving = serve(Rc::clone(&self.expected), Rc::clone(&socket));
        let task = Some(spawn_local(serving).abort_handle());
        let known = Rc::clone(&socket);
        listeners.insert(anywhere, Listener { socket, task });
        Ok(known)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Expected {
    /// Nobody waits for it any more, unless another attempt has the same key by now.
    fn forget(&self, key: FlowKey) {
        let mut expected = self.0.borrow_mut();
        if expected.get(&key).is_some_and(oneshot::Sender::is_closed) {
            expected.remove(&key);
        }
    }

    /// A connection has come. Tells whose it is.
    fn accepted(&self, near: TcpStream, client: SocketAddr) -> Option<FlowKey> {
        let key = near.local_addr().ok().map(|destination| FlowKey {
            client,
            destination,
        });
        match key.and_then(|key| self.0.borrow_mut().remove(&key)) {
            Some(waiting) => {
                // The flow may have stopped waiting in this very moment. Without a connection it
                // ends.
                let _ = spare(near).map(|near| waiting.send(near));
            }
            // Never held, so never judged: the filter should not have let it come.
            None => reset(near),
        }
        key
    }
}

async fn serve(expected: Rc<Expected>, listener: Rc<TcpListener>) {
    loop {
        match listener.accept().await {
            Ok((near, client)) => {
                expected.accepted(near, client);
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
