//! The agent's side of a connection: the marked SYN goes in, an accepted connection comes out.

use std::{cell::RefCell, collections::HashMap, io, net::SocketAddr, rc::Rc, time::Duration};

use rustix::net::{SocketFlags, acceptfrom_with};
use stockade_sys::transparent::Family;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::{sleep, timeout},
};

use super::{Tcp, relay::reset};
use crate::{descriptors::spare, flows::FlowKey, hold::HeldSyn};

/// Between the marked SYN and the accepted connection lies only the agent's kernel.
const ACCEPT_LIMIT: Duration = Duration::from_secs(10);

/// Pairs what the listeners accept with the attempts that were let through.
#[derive(Debug, Default)]
pub(crate) struct Acceptor {
    listeners: RefCell<HashMap<Family, Rc<TcpListener>>>,
    expected: RefCell<HashMap<FlowKey, oneshot::Sender<TcpStream>>>,
}

impl Acceptor {
    /// Whether the attempt's marked SYN is on its way.
    pub(crate) fn expects(&self, key: FlowKey) -> bool {
        self.expected.borrow().contains_key(&key)
    }

    /// Sends the SYN again with the mark, and waits for the connection that it makes.
    pub(crate) async fn let_through(&self, syn: HeldSyn) -> Option<TcpStream> {
        let (sender, receiver) = oneshot::channel();
        self.expected.borrow_mut().insert(syn.key, sender);
        syn.send_on();
        self.accept_now(syn.key);
        // Nobody comes if the agent gave the attempt up while it was held.
        let near = timeout(ACCEPT_LIMIT, receiver).await;
        self.expected.borrow_mut().remove(&syn.key);
        let near = near.ok()?.ok()?;
        syn.open();
        Some(near)
    }

    /// The handshake inside takes no time: it is the kernel's work within our own sending of
    /// the SYN. So the connection is there already, unless the queue was full.
    fn accept_now(&self, key: FlowKey) {
        let family = Family::of(key.destination.ip());
        let listener = self.listeners.borrow().get(&family).cloned();
        while let Some(Ok((near, client))) = listener.as_deref().map(accept_now)
            && self.accepted(near, client) != Some(key)
        {}
    }

    /// A connection has come. Tells whose it is.
    fn accepted(&self, near: TcpStream, client: SocketAddr) -> Option<FlowKey> {
        let key = near.local_addr().ok().map(|destination| FlowKey {
            client,
            destination,
        });
        match key.and_then(|key| self.expected.borrow_mut().remove(&key)) {
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

pub(crate) async fn serve(tcp: Rc<Tcp>, listener: TcpListener, family: Family) {
    let listener = Rc::new(listener);
    let known = Rc::clone(&listener);
    tcp.acceptor.listeners.borrow_mut().insert(family, known);
    loop {
        match listener.accept().await {
            Ok((near, client)) => {
                tcp.acceptor.accepted(near, client);
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
