//! The gate: everything that passes between the jail and the host's network.
//!
//! # Theory of operation
//! The gate has a thread of its own with a single-threaded event loop. That thread never
//! left the host's network, so the sockets it makes face outward; the sockets it got from
//! the jail face the agent.
//!
//! A connection attempt arrives as a copy of its SYN ([`hold`]). The policy decides. If
//! it may pass, the gate dials ([`dial`]); when the connection outside stands, the SYN is
//! sent again, marked, so that the jail's filter hands it to the listener, and the two
//! connections are joined ([`relay`]). If not, or if the dial failed, the agent gets the
//! packet that makes its `connect()` fail with the right error. So nothing looks open
//! that is closed, and nobody inside talks to a peer that the policy did not see.
//!
//! DNS ([`dns`]) is answered by the gate for every server address.

mod denials;
mod dial;
mod dns;
mod ends;
mod hold;
mod relay;
mod resolvers;

use std::{io, rc::Rc, thread};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stockade_jail::Sockets;
use stockade_policy::Policy;
use tokio::{runtime, sync::oneshot, task::LocalSet};

pub use denials::{Denial, Denials};
pub use resolvers::resolv_conf;

/// A running gate.
#[derive(Debug)]
pub struct Gate {
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<Denials>,
}

/// The gate's thread could not be started, or it died.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start the gate: {0}")]
    Start(#[from] io::Error),
    #[error("the gate died; the agent had no network from then on")]
    Died,
}

impl Gate {
    /// Starts serving. Call it on a thread that is in the host's network namespace.
    ///
    /// # Errors
    /// If a socket or the thread cannot be had.
    pub fn start(policy: Policy, sockets: Sockets) -> Result<Self, Error> {
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("gate".to_owned())
            .spawn(move || {
                serve(policy, sockets, stopped, |result| {
                    // The starter waits below; without it there is nobody to tell.
                    let _ = ready.send(result);
                })
            })?;
        started.recv().map_err(|_| Error::Died)??;
        Ok(Self { stop, thread })
    }

    /// Stops serving and tells what was denied.
    ///
    /// # Errors
    /// If the gate died before.
    pub fn finish(self) -> Result<Denials, Error> {
        // The receiver is gone only if the thread is, which the join tells.
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| Error::Died)
    }
}

/// Raises the limit of open files to what the machine permits: a flow needs two. Call it
/// when the agent has been started with the limits that the user had.
///
/// If it cannot be raised, fewer flows are served at a time.
pub fn claim_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

fn serve(
    policy: Policy,
    sockets: Sockets,
    stopped: oneshot::Receiver<()>,
    started: impl FnOnce(io::Result<()>),
) -> Denials {
    let set_up = || {
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let context = runtime.enter();
        let Sockets {
            syns,
            injector,
            listener,
            dns,
        } = sockets;
        let upstream = Rc::new(dns::Upstream::new());
        let hold = Rc::new(hold::Hold::new(policy, injector, Rc::clone(&upstream))?);
        let taps = (
            hold::Tap::new(syns)?,
            tokio::net::TcpListener::from_std(listener)?,
            dns::Service::new(dns, upstream)?,
        );
        drop(context);
        Ok((runtime, hold, taps))
    };
    let (runtime, hold, (syns, listener, dns)) = match set_up() {
        Ok(parts) => {
            started(Ok(()));
            parts
        }
        Err(error) => {
            started(Err(error));
            return Denials::default();
        }
    };
    let tasks = LocalSet::new();
    tasks.spawn_local(hold::watch(Rc::clone(&hold), syns));
    tasks.spawn_local(hold::accept(Rc::clone(&hold), listener));
    tasks.spawn_local(dns.serve());
    // An error means that the handle is gone, which ends the gate as well.
    let _ = tasks.block_on(&runtime, stopped);
    hold.take_denials()
}
