//! Threads for bulk.
//!
//! A flow that moves bulk keeps a processor busy, mostly with the kernel's work. On the
//! gate's own thread it would slow down every small message and every new connection, and
//! several such flows would share one processor. So a flow that turns out to be heavy is
//! handed, as its two sockets, to one of a few threads that do nothing but relay.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use tokio::{
    runtime,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{LocalSet, spawn_local},
};

use super::{
    connection::{Connection, Detached, Established},
    relay::relay,
};
use crate::confine;

/// More than the processors of most machines can feed.
const LIMIT: usize = 4;

#[derive(Debug)]
pub(crate) struct Carriers(Vec<Carrier>);

#[derive(Debug)]
struct Carrier {
    connections: UnboundedSender<Connection<Detached>>,
    carried: Arc<AtomicUsize>,
}

impl Carriers {
    /// One for each processor.
    ///
    /// # Errors
    /// If a thread cannot be had, or does not confine itself.
    pub(crate) fn start() -> io::Result<Self> {
        let processors = thread::available_parallelism()?.get();
        // All at once, then each is waited for.
        let starting = (0..processors.min(LIMIT)).map(|_| Carrier::start());
        let starting: Vec<_> = starting.collect::<io::Result<_>>()?;
        let ready = starting.into_iter().map(|(carrier, started)| {
            let died = || Err(io::Error::other("a carrier of the gate died"));
            started.recv().unwrap_or_else(|_| died()).map(|()| carrier)
        });
        ready.collect::<io::Result<_>>().map(Self)
    }

    /// Gives the connection to the carrier that has the fewest. One that cannot be given
    /// away, or whose carrier is gone, ends.
    pub(crate) fn take(&self, connection: Connection<Established>) {
        let idlest = self
            .0
            .iter()
            .min_by_key(|carrier| carrier.carried.load(Ordering::Relaxed));
        if let (Some(carrier), Ok(connection)) = (idlest, connection.detach()) {
            carrier.carried.fetch_add(1, Ordering::Relaxed);
            let _ = carrier.connections.send(connection);
        }
    }
}

impl Carrier {
    /// With what tells that it is ready, or why it is not.
    fn start() -> io::Result<(Self, mpsc::Receiver<io::Result<()>>)> {
        let (connections, accepted) = unbounded_channel();
        let carried = Arc::<AtomicUsize>::default();
        let carrier = Self {
            connections,
            carried: Arc::clone(&carried),
        };
        let (ready, started) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("carrier".to_owned())
            .spawn(move || {
                let runtime = runtime::Builder::new_current_thread()
                    .enable_io()
                    .build()
                    .and_then(|runtime| confine::confine_carrier().map(|()| runtime));
                match runtime {
                    Ok(runtime) => {
                        // The starter waits for it.
                        let _ = ready.send(Ok(()));
                        LocalSet::new().block_on(&runtime, serve(accepted, carried));
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            })?;
        Ok((carrier, started))
    }
}

async fn serve(
    mut connections: UnboundedReceiver<Connection<Detached>>,
    carried: Arc<AtomicUsize>,
) {
    while let Some(connection) = connections.recv().await {
        let carried = Arc::clone(&carried);
        spawn_local(async move {
            if let Ok(connection) = connection.attach() {
                relay(connection, None, None).await;
            }
            carried.fetch_sub(1, Ordering::Relaxed);
        });
    }
}
