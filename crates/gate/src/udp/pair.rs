//! A flow: its two sockets, and what goes between them.

use std::{
    cell::{Cell, RefCell},
    io,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use stockade_sys::batch::{BATCH, Batch};
use tokio::{net::UdpSocket, task::yield_now, time::Instant};

use super::{
    Datagrams,
    ports::Share,
    sockets::{INPUT, icmp_error, receive_batch, receive_now, send_now},
};
use crate::{
    event_loop::busy_poll,
    flows::{ActiveFlow, FlowKey, forget},
};

const IDLE_UNANSWERED: Duration = Duration::from_secs(30);
const IDLE_ANSWERED: Duration = Duration::from_secs(180);
/// So few at a time are an exchange, not a stream.
pub(super) const FEW: usize = 4;

thread_local! {
    /// Datagrams stay here only between a receive and the send that follows.
    pub(super) static BATCHES: RefCell<Batch> = RefCell::default();
}

/// The two sockets of a flow.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) near: UdpSocket,
    pub(super) far: UdpSocket,
    /// Keeps the port for the client, if the outer socket has the client's.
    _port: Option<Share>,
    pub(super) flow: Arc<ActiveFlow>,
    used: Cell<Instant>,
    answered: Cell<bool>,
}

/// The life of a flow, as far as it is not about what the client sends.
pub(super) async fn carry(datagrams: Rc<Datagrams>, key: FlowKey, pair: Rc<Pair>) {
    loop {
        tokio::select! {
            // What has to end moves nothing more.
            biased;
            () = pair.flow.until_ended() => break,
            _ = pair.near.ready(INPUT) => if pair.client_is_gone() {
                break;
            },
            _ = pair.far.ready(INPUT) => if pair.inward(&datagrams, key) {
                // A fast sender must not keep the others waiting.
                yield_now().await;
            },
        }
    }
    forget(&datagrams.pairs, key, &pair);
}

impl Pair {
    pub(super) fn new(
        [near, far]: [UdpSocket; 2],
        port: Option<Share>,
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

    /// It is not idle.
    pub(super) fn touch(&self) {
        self.used.set(Instant::now());
    }

    /// Passes one datagram to the client that came by another socket.
    pub(super) fn answer(&self, datagram: &[u8]) {
        self.touch();
        self.answered.set(true);
        self.flow.received(datagram.len());
        let _ = send_now(&self.near, datagram);
    }

    /// Nothing arrives at the inner socket but errors.
    fn client_is_gone(&self) -> bool {
        let received = receive_now(&self.near, &mut [0]);
        received.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
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
                self.touch();
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
