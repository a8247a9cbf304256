//! The jail: a network namespace that no device leads out of.
//!
//! # Theory of operation
//! [`Owner::enter`] puts the process, while it has one thread, into a user namespace A.
//! [`Owner::build`] starts the *jail thread*, which moves, alone, into a network
//! namespace J that A owns, and plumbs it ([`plumbing`], [`filter`]): every destination
//! that is not J's own is "local", behind `lo`, where the packet filter meets it.
//!
//! A socket belongs to the namespace of the thread that made it and can be used by any
//! thread. So the jail thread makes the sockets that face the agent, and hands them to
//! the rest of the process, which never left the host's network. It also starts the
//! agent, whose own user namespace lies below A: no capability that the agent can get
//! has any authority over J.

mod advice;
mod filter;
mod plumbing;
mod socket_factory;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener},
    sync::mpsc,
    thread,
};

pub use advice::for_confinement;
use rustix::thread::CapabilitySet;
pub use socket_factory::SocketFactory;
use stockade_sys::{
    confine::{hide_files, keep_capabilities},
    namespace::{self, Identity, UserNamespaceError},
    packet::{Injector, Tap},
    transparent::AnyAddressUdp,
};

/// The addresses of the agent's side. They are ones that documentation reserves (RFC 5737,
/// RFC 3849), so that no device anywhere is shadowed by them.
pub const ADDRESS_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const ADDRESS_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// Whether an address is one that the agent's packets may come from.
#[must_use]
pub fn is_inside(address: IpAddr) -> bool {
    address.is_loopback() || address == ADDRESS_V4 || address == ADDRESS_V6
}

/// The name server that the agent's `resolv.conf` names. Nobody has this address: the
/// gate answers queries to any address.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);

/// What a jail is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JailSettings {
    /// Whether IPv6 leads anywhere. Without it, programs inside see at once that it does
    /// not, and use IPv4.
    pub ipv6: bool,
    /// Ports of the jail's loopback whose connections go to the same port of the host's.
    pub host_ports: Vec<u16>,
}

/// The sockets of one family that face the agent.
#[derive(Debug)]
pub struct Face {
    /// Copies of the agent's connection attempts.
    pub syns: Tap,
    /// Where attempts that were let through arrive as connections.
    pub listener: TcpListener,
    /// Every DNS query by UDP, to whatever server.
    pub dns: AnyAddressUdp,
    /// The first datagram of every other UDP flow.
    pub datagrams: AnyAddressUdp,
    /// Copies of the agent's echo requests.
    pub echoes: Tap,
}

/// All sockets that face the agent.
#[derive(Debug)]
pub struct Sockets {
    pub v4: Face,
    /// None if IPv6 leads nowhere.
    pub v6: Option<Face>,
    /// Copies of refusals at the jail's own loopback, which has both families always.
    pub refusals: [Tap; 2],
    /// Copies of datagrams to many, which go nowhere.
    pub groups: Vec<Tap>,
    /// Copies of packets of which no flow can be made.
    pub foreign: Vec<Tap>,
    /// The way back for attempts that were let through, and for refusals.
    pub injector: Injector,
    /// Sockets that can speak for any destination, as many as are wanted.
    pub socket_factory: SocketFactory,
}

/// Why there is no jail, with the cause in the text. [`Error::fix`] says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make a user namespace: {error}")]
    UserNamespace {
        /// Who asked: inside a half-made user namespace it cannot be read any more.
        identity: Identity,
        error: UserNamespaceError,
    },
    #[error("cannot make a network namespace: {0}")]
    NetworkNamespace(io::Error),
    #[error("cannot set up the jail's network ({step}): {error}")]
    Plumbing {
        step: &'static str,
        error: io::Error,
    },
    #[error("cannot load the jail's packet filter: {0}")]
    Filter(io::Error),
    #[error("the jail's thread is gone")]
    Thread,
}

impl Error {
    /// The smallest change to the machine that would help.
    #[must_use]
    pub fn fix(&self) -> String {
        advice::for_error(self)
    }
}

/// The right to make a jail: the process is alone in its user namespace A.
#[derive(Debug)]
pub struct Owner(());

impl Owner {
    /// Enters user namespace A. There is no way back, so do first what needs the
    /// host's user namespace.
    ///
    /// # Errors
    /// If the process has threads already, or the machine forbids user namespaces.
    pub fn enter() -> Result<Self, Error> {
        let identity = Identity::current();
        namespace::enter_user_namespace(identity)
            .map_err(|error| Error::UserNamespace { identity, error })?;
        namespace::become_undumpable().map_err(|error| Error::Plumbing {
            step: "hide this process from others",
            error,
        })?;
        Ok(Self(()))
    }

    /// Builds the jail; it is closed before this returns. `inside` is run as soon as the
    /// network is one that leads nowhere, before it is plumbed: threads that it starts are in
    /// the jail, and can prepare what will run there in the meantime.
    ///
    /// # Errors
    /// If any step fails. Nothing of the jail is left then.
    pub fn build(
        self,
        settings: JailSettings,
        inside: impl FnOnce() + Send + 'static,
    ) -> Result<(Jail, Sockets), Error> {
        let (orders, queue) = mpsc::channel();
        let (built, result) = mpsc::sync_channel(1);
        let socket_factory = SocketFactory::new(orders.clone());
        let thread = thread::Builder::new()
            .name("jail".to_owned())
            .spawn(move || {
                let sockets = namespace::enter_network_namespace()
                    .map_err(Error::NetworkNamespace)
                    .inspect(|()| inside())
                    .and_then(|()| plumbing::build(&settings, socket_factory));
                let failed = sockets.is_err();
                if built.send(sockets).is_err() || failed {
                    return;
                }
                for order in queue {
                    match order {
                        Order::Run(job) => job(),
                        Order::End => return,
                    }
                }
            })
            .map_err(|error| Error::Plumbing {
                step: "start the jail's thread",
                error,
            })?;
        let jail = Jail {
            orders,
            thread: Some(thread),
        };
        let sockets = result.recv().map_err(|_| Error::Thread)??;
        Ok((jail, sockets))
    }
}

/// What the jail thread is told.
pub(crate) enum Order {
    Run(Box<dyn FnOnce() + Send>),
    End,
}

/// A running jail. Dropping it ends its thread; the namespace lives as long as somebody is
/// in it or has a socket of it.
#[derive(Debug)]
pub struct Jail {
    orders: mpsc::Sender<Order>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Jail {
    /// Runs `job` on the jail thread: sockets that it makes and processes that it
    /// starts are in the jail.
    ///
    /// # Errors
    /// If the thread is gone.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (done, result) = mpsc::sync_channel(1);
        let job = move || {
            // The receiver waits below; it can only be gone together with this process.
            let _ = done.send(job());
        };
        let order = Order::Run(Box::new(job));
        self.orders.send(order).map_err(|_| Error::Thread)?;
        result.recv().map_err(|_| Error::Thread)
    }
}

impl Jail {
    /// Takes from the jail thread all authority but that of making sockets which speak for
    /// others. Call it when the agent has been started.
    ///
    /// # Errors
    /// If the kernel refuses, or the thread is gone.
    pub fn confine(&self) -> Result<(), Error> {
        let confined = self.run(|| {
            keep_capabilities(CapabilitySet::NET_RAW)?;
            hide_files([])?;
            Ok(())
        })?;
        confined.map_err(|error| Error::Plumbing {
            step: "confine the jail's thread",
            error,
        })
    }
}

impl Jail {
    /// Has its thread end. Dropping it waits for that.
    pub fn end(&self) {
        // If it is gone already, so much the better.
        let _ = self.orders.send(Order::End);
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already, and there is nothing to
            // clean up after it.
            let _ = thread.join();
        }
    }
}
