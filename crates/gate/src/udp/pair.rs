//! A flow: its two sockets, and what goes between them.

use std::{
    cell::{Cell, RefCell},
    io,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use stockade_sys::{
    batch::{BATCH, Batch},
    transparent::Family,
};
use stockade_wire::packet::Unreachable;
use tokio::{net::UdpSocket, task::yield_now, time::Instant};

use super::{
    Datagrams,
    ports::Claim,
    sockets::{INPUT, icmp_error, receive_batch, send_now},
};
use crate::{
    event_loop::busy_poll,
    flows::{ActiveFlow, FlowKey, forget},
};

const IDLE_UNANSWERED: Duration = Duration::from_secs(30);
const IDLE_ANSWERED: Duration = Duration::from_secs(180);
/// So few at a time are an exchange, not a stream.
const FEW: usize = 4;

thread_local! {
    /// Datagrams stay here only between a receive and the send that follows.
    static BATCHES: RefCell<Batch> = RefCell::default();
}

/// The two sockets of a flow.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) near: UdpSocket,
    pub(super) far: UdpSocket,
    /// Keeps the port for the client, if the outer socket has the client's.
    _port: Option<Rc<Claim>>,
    pub(super) flow: Arc<ActiveFlow>,
    used: Cell<Instant>,
    answered: Cell<bool>,
}

/// What became of the next datagrams from inside.
struct Step {
    /// Whether there may be more.
    more: bool,
    /// For these there was no room.
    left: Vec<Vec<u8>>,
}

/// The life of a flow.
pub(super) async fn carry(datagrams: Rc<Datagrams>, key: FlowKey, pair: Rc<Pair>, since: u64) {
    datagrams
        .queue(Family::of(key.destination.ip()))
        .empty_since(since)
        .await;
    loop {
        let more = tokio::select! {
            // What has to end moves nothing more.
            biased;
            () = pair.flow.until_ended() => break,
            _ = pair.near.ready(INPUT) => pair.outward(&datagrams, key).await,
            _ = pair.far.ready(INPUT) => Ok(pair.inward(&datagrams, key)),
        };
        match more {
            // A fast sender must not keep the others waiting.
            Ok(true) => yield_now().await,
            Ok(false) => {}
            // An error of the inner socket: the client is gone.
            Err(_) => break,
        }
    }
    forget(&datagrams.pairs, key, &pair);
}

impl Pair {
    pub(super) fn new(
        [near, far]: [UdpSocket; 2],
        port: Option<Rc<Claim>>,
        flow: Arc<ActiveFlow>,
    ) -> Self {
        Self {
            near,
            far,
            _port: port,
            flow,
            used: Cell::new(Instant::now()),
            answered: Cell::new(false),
        }
    }

    /// Of several flows, the least goes first when there is no room.
    pub(super) fn worth(&self) -> impl Ord {
        (self.answered.get(), self.used.get())
    }

    /// Whether it has been idle for too long.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let limit = if self.answered.get() {
            IDLE_ANSWERED
        } else {
            IDLE_UNANSWERED
        };
        now.duration_since(self.used.get()) >= limit
    }

    /// Moves a batch out, and tells whether there may be more.
    async fn outward(&self, datagrams: &Datagrams, key: FlowKey) -> io::Result<bool> {
        self.used.set(Instant::now());
        let Step { more, left } = self.batch_outward(datagrams, key)?;
        // The host's network is slower than the agent: wait, as the agent's own call would
        // have done. What it sends meanwhile queues up before us.
        for datagram in left {
            // An error is told at the next datagram.
            let _ = self.far.send(&datagram).await;
        }
        Ok(more)
    }

    fn batch_outward(&self, datagrams: &Datagrams, key: FlowKey) -> io::Result<Step> {
        BATCHES.with_borrow_mut(|batch| {
            let count = match receive_batch(&self.near, batch) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                received => received?,
            };
            if (1..FEW).contains(&count) {
                busy_poll::extend();
            }
            if self.flow.admission.by_name {
                batch.retain(|datagram| {
                    let denied = datagrams.denies(key, self, datagram);
                    if denied {
                        datagrams.refuse(key, datagram.len(), Unreachable::AdminProhibited);
                    }
                    !denied
                });
            }
            self.flow.sent(batch.bytes());
            let mut left = Vec::new();
            for run in batch.runs() {
                let room = left.is_empty();
                if !room || datagrams.run_outward(key, &self.far, run).is_err() {
                    left.extend(run.datagrams().map(<[u8]>::to_vec));
                }
            }
            Ok(Step {
                more: count == BATCH,
                left,
            })
        })
    }

    /// Moves a batch in, and tells whether there may be more. What cannot be delivered is
    /// lost; the client's end shows when it is gone.
    fn inward(&self, datagrams: &Datagrams, key: FlowKey) -> bool {
        BATCHES.with_borrow_mut(|batch| {
            let count = match receive_batch(&self.far, batch) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => {
                    datagrams.refuse(key, 0, icmp_error(&self.far, key, &error));
                    return true;
                }
            };
            if count < FEW {
                busy_poll::extend();
            }
            // Before it was connected the socket heard anybody.
            batch.keep_from(key.destination);
            self.flow.received(batch.bytes());
            for run in batch.runs() {
                self.used.set(Instant::now());
                self.answered.set(true);
                if run.send(&self.near).is_err() {
                    for datagram in run.datagrams() {
                        let _ = send_now(&self.near, datagram);
                    }
                }
            }
            count == BATCH
        })
    }
}
