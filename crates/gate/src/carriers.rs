//! Threads for bulk.
//!
//! A flow that moves bulk keeps a processor busy, mostly with the kernel's work. On the
//! gate's own thread it would slow down every small message and every new connection, and
//! several such flows would share one processor. So a flow that turns out to be heavy is
//! handed, as its two sockets, to one of a few threads that do nothing but relay.

use std::{
    io,
    net::TcpStream as Stream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokio::{
    net::TcpStream,
    runtime,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{LocalSet, spawn_local},
};

use crate::{
    confine,
    relay::{Direction, carry_on},
};

/// More than the processors of most machines can feed.
const LIMIT: usize = 4;

#[derive(Debug)]
pub(crate) struct Carriers(Vec<Carrier>);

#[derive(Debug)]
struct Carrier {
    loads: UnboundedSender<Load>,
    carried: Arc<AtomicUsize>,
}

/// A flow under way, with nothing of it in anybody's hands.
struct Load {
    near: Stream,
    far: Stream,
    directions: [Direction; 2],
}

impl Load {
    async fn carry(self) {
        let sockets = (
            TcpStream::from_std(self.near),
            TcpStream::from_std(self.far),
        );
        if let (Ok(near), Ok(far)) = sockets {
            carry_on(near, far, self.directions).await;
        }
    }
}

impl Carriers {
    /// One for each processor.
    ///
    /// # Errors
    /// If a thread cannot be had, or does not confine itself.
    pub(crate) fn start() -> io::Result<Self> {
        let processors = thread::available_parallelism()?.get();
        (0..processors.min(LIMIT))
            .map(|_| Carrier::start())
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Gives the flow to the carrier that has the fewest. A flow that cannot be given away,
    /// or whose carrier is gone, ends.
    pub(crate) fn take(&self, near: TcpStream, far: TcpStream, directions: [Direction; 2]) {
        let idlest = self
            .0
            .iter()
            .min_by_key(|carrier| carrier.carried.load(Ordering::Relaxed));
        if let (Some(carrier), Ok(near), Ok(far)) = (idlest, near.into_std(), far.into_std()) {
            carrier.carried.fetch_add(1, Ordering::Relaxed);
            let _ = carrier.loads.send(Load {
                near,
                far,
                directions,
            });
        }
    }
}

impl Carrier {
    fn start() -> io::Result<Self> {
        let (loads, accepted) = unbounded_channel();
        let carried = Arc::<AtomicUsize>::default();
        let carrier = Self {
            loads,
            carried: Arc::clone(&carried),
        };
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        thread::Builder::new()
            .name("carrier".to_owned())
            .spawn(move || {
                let runtime = runtime::Builder::new_current_thread()
                    .enable_io()
                    .build()
                    .and_then(|runtime| confine::confine_carrier().map(|()| runtime));
                match runtime {
                    Ok(runtime) => {
                        // The starter waits below.
                        let _ = ready.send(Ok(()));
                        LocalSet::new().block_on(&runtime, serve(accepted, carried));
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            })?;
        started
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("a carrier of the gate died")))?;
        Ok(carrier)
    }
}

async fn serve(mut loads: UnboundedReceiver<Load>, carried: Arc<AtomicUsize>) {
    while let Some(load) = loads.recv().await {
        let carried = Arc::clone(&carried);
        spawn_local(async move {
            load.carry().await;
            carried.fetch_sub(1, Ordering::Relaxed);
        });
    }
}
