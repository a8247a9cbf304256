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
        mpsc,
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
    tcp::relay::{Direction, Load, Papers, carry_on},
};

/// More than the processors of most machines can feed.
const LIMIT: usize = 4;

#[derive(Debug)]
pub(crate) struct Carriers(Vec<Carrier>);

#[derive(Debug)]
struct Carrier {
    parcels: UnboundedSender<Parcel>,
    carried: Arc<AtomicUsize>,
}

/// A connection that no event loop knows, to be taken to another thread.
struct Parcel {
    near: Stream,
    far: Stream,
    directions: [Direction; 2],
    papers: Papers,
}

impl Parcel {
    fn pack(load: Load) -> io::Result<Self> {
        Ok(Self {
            near: load.near.into_std()?,
            far: load.far.into_std()?,
            directions: load.directions,
            papers: load.papers,
        })
    }

    fn unpack(self) -> io::Result<Load> {
        Ok(Load {
            near: TcpStream::from_std(self.near)?,
            far: TcpStream::from_std(self.far)?,
            directions: self.directions,
            papers: self.papers,
        })
    }
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
    pub(crate) fn take(&self, load: Load) {
        let idlest = self
            .0
            .iter()
            .min_by_key(|carrier| carrier.carried.load(Ordering::Relaxed));
        if let (Some(carrier), Ok(parcel)) = (idlest, Parcel::pack(load)) {
            carrier.carried.fetch_add(1, Ordering::Relaxed);
            let _ = carrier.parcels.send(parcel);
        }
    }
}

impl Carrier {
    /// With what tells that it is ready, or why it is not.
    fn start() -> io::Result<(Self, mpsc::Receiver<io::Result<()>>)> {
        let (parcels, accepted) = unbounded_channel();
        let carried = Arc::<AtomicUsize>::default();
        let carrier = Self {
            parcels,
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

async fn serve(mut parcels: UnboundedReceiver<Parcel>, carried: Arc<AtomicUsize>) {
    while let Some(parcel) = parcels.recv().await {
        let carried = Arc::clone(&carried);
        spawn_local(async move {
            if let Ok(load) = parcel.unpack() {
                carry_on(load).await;
            }
            carried.fetch_sub(1, Ordering::Relaxed);
        });
    }
}
