//! The jail: a network namespace whose only way leads to the gate.
//!
//! # Theory of operation
//! [`Owner::enter`] puts the process, while it has one thread, into a user namespace A.
//! [`Owner::build`] starts the *jail thread*, which moves, alone, into a network
//! namespace J that A owns. The agent will be in it. The thread makes a second one, the
//! *gatehouse*, and a pair of devices that leads from J to it ([`plumbing`]). No device leads on
//! from there: every destination is local in it, so that packets to wherever meet its packet filter
//! ([`filter`]), and sockets of the gate can speak for any destination. What the agent has at a port
//! of its own network is not in their way.
//!
//! A socket belongs to the namespace of the thread that made it and can be used by any
//! thread. So the sockets that face the agent are made in the gatehouse, where a thread stays that
//! makes more of them, and handed to the rest of the process, which never left the host's network.
//! The jail thread stays in J, and starts the
//! agent, whose own user namespace lies below A: no capability that the agent can get
//! has any authority over J.

mod advice;
mod filter;
mod plumbing;
mod socket_factory;
mod worker;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener},
    sync::mpsc,
};

pub use advice::for_confinement;
use rustix::thread::CapabilitySet;
pub use socket_factory::SocketFactory;
use stockade_sys::{
    namespace::{self, Identity, UserNamespaceError},
    packet::{Injector, Tap},
    transparent::AnyAddressUdp,
};
use worker::Worker;

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
    /// Every DNS query by UDP, to whatever server.
    pub dns: AnyAddressUdp,
    /// Every other datagram.
    pub datagrams: Tap,
    /// Copies of the agent's echo requests.
    pub echoes: Tap,
    /// Copies of datagrams to many, which go nowhere.
    pub groups: Tap,
    /// Copies of packets of which no flow can be made.
    pub foreign: Tap,
}

/// Ports of the jail's loopback that stand for the host's.
#[derive(Debug)]
pub struct HostPorts {
    /// Copies of connection attempts.
    pub syns: Vec<Tap>,
    /// Where those arrive that were let through. Nothing inside can have such a port: it is taken.
    pub listeners: Vec<TcpListener>,
    /// The way back to the loopback.
    pub injector: Injector,
}

/// All sockets that face the agent.
#[derive(Debug)]
pub struct Sockets {
    pub v4: Face,
    /// None if IPv6 leads nowhere.
    pub v6: Option<Face>,
    /// None if there are none.
    pub host_ports: Option<HostPorts>,
    /// Copies of refusals at the jail's own loopback, which has both families always.
    pub refusals: [Tap; 2],
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
    #[error("cannot make a pair of network devices (veth): {0}")]
    Pair(io::Error),
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
        let (built, result) = mpsc::sync_channel(1);
        let agents = Worker::start("jail", move |orders| {
            let made = namespace::enter_network_namespace()
                .map_err(Error::NetworkNamespace)
                .inspect(|()| inside())
                .and_then(|()| plumbing::build(&settings, orders));
            let failed = made.is_err();
            built.send(made).is_ok() && !failed
        })?;
        let (sockets, gatehouse) = result.recv().map_err(|_| Error::Thread)??;
        Ok((Jail { agents, gatehouse }, sockets))
    }
}

/// A running jail. Dropping it ends its threads; a namespace lives as long as somebody is in it or
/// has a socket of it.
#[derive(Debug)]
pub struct Jail {
    /// In the agent's network.
    agents: Worker,
    gatehouse: Worker,
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
        self.agents.run(job)
    }

    /// Takes from the jail's threads all authority but that of making sockets which speak for
    /// others. Call it when the agent has been started.
    ///
    /// # Errors
    /// If the kernel refuses, or a thread is gone.
    pub fn confine(&self) -> Result<(), Error> {
        self.agents.confine(CapabilitySet::empty())?;
        // They listen at the port that somebody wants to connect to, which may be a low one.
        let speaking = CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE;
        self.gatehouse.confine(speaking)
    }

    /// Has its threads end. Dropping it waits for that.
    pub fn end(&self) {
        self.agents.end();
        self.gatehouse.end();
    }
}
