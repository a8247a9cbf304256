//! Joining two established connections.
//!
//! Small messages are copied through one buffer that all flows share. A direction that
//! fills that buffer is moving bulk, and is spliced through a pipe from then on: the
//! kernel hands pages from socket to socket, and no byte is copied. Pipes are few, because
//! the kernel gives a user only so many of full size; a flow borrows one while it has data
//! at hand, and copies if there is none.

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    future::pending,
    io,
    ops::Deref,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use rustix::net::{Shutdown, shutdown, sockopt};
use tokio::{io::Interest, net::TcpStream, task::yield_now, time::sleep};

use super::{
    carriers::Carriers,
    connection::{Connection, Established},
    dial::keep_alive,
    inspect::{Inspector, Vetted, farewell, send},
    pipes::{self, Pipe},
};
use crate::event_loop::busy_poll;

const BUFFER: usize = 64 * 1024;
/// How much all flows together may have read that the other side does not take. A program inside can
/// have thousands of connections whose peer does not read. Beyond it each reads a little at a time.
const WAITING_LIMIT: usize = 8 << 20;
const LITTLE: usize = 2048;
/// A flow that has moved so much in one direction without a pause is given to a carrier.
const HEAVY: usize = 4 << 20;
/// A connection that is older needs probes when it is idle. Most are over by then.
const OLD: Duration = Duration::from_secs(1);

thread_local! {
    /// One buffer for all flows: bytes stay in it only between a read and the write that
    /// follows at once. What the other side does not take is moved to the flow itself.
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER].into_boxed_slice());
}

/// Carries bytes both ways until both sides have ended. An end of one direction is passed
/// on alone (half-close); a reset of one side resets the other.
///
/// If there are carriers, one of them gets a connection that moves bulk.
pub(crate) async fn relay(
    connection: Connection<Established>,
    carriers: Option<&Carriers>,
    inspector: Option<&Inspector>,
) {
    let Connection { flow, state } = &connection;
    let (near, far) = (&state.near, &state.far);
    let [outward, inward] = &state.directions;
    let heavy = carriers.map_or(usize::MAX, |_| HEAVY);
    let (sent, received) = (|bytes| flow.sent(bytes), |bytes| flow.received(bytes));
    let going_out = async {
        // What is looked at leaves in pieces.
        if inspector.is_some() {
            outward.send_at_once(far);
        }
        if let Some(inspector) = inspector
            && let Vetted::Ended = inspector.vet(near, far, sent).await?
        {
            finish(far, outward, inward);
        }
        pump(near, far, [outward, inward], None, heavy, sent).await
    };
    let coming_in = pump(far, near, [inward, outward], inspector, heavy, received);
    let ended = tokio::select! {
        // What has to end moves nothing more.
        biased;
        () = flow.until_ended() => Err(Stop::Failed),
        ended = async { tokio::try_join!(going_out, coming_in) } => ended,
        never = probe_when_old(far, carriers) => match never {},
    };
    match (ended, carriers) {
        (Ok(_), _) => {}
        (Err(Stop::Heavy), Some(carriers)) => {
            // A carrier has no clock.
            keep_alive(&connection.state.far);
            carriers.take(connection);
        }
        (Err(Stop::Failed | Stop::Heavy), _) => {
            reset(connection.state.near);
            reset(connection.state.far);
        }
        (Err(Stop::Denied(message)), _) => {
            reset(connection.state.far);
            farewell(connection.state.near, &message).await;
        }
    }
}

async fn probe_when_old(far: &TcpStream, carriers: Option<&Carriers>) -> Infallible {
    if carriers.is_some() {
        sleep(OLD).await;
        keep_alive(far);
    }
    pending().await
}

/// Flows that may still have bytes from inside to deliver, on any thread.
static UNDERWAY: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
pub(crate) struct Underway(());

impl Underway {
    pub(crate) fn new() -> Self {
        UNDERWAY.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        UNDERWAY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until all that was written inside has been handed to the host's kernel, which goes
/// on by itself. For when the agent has ended, and its connections with it.
pub(crate) async fn delivered() {
    while UNDERWAY.load(Ordering::Relaxed) > 0 {
        sleep(Duration::from_millis(2)).await;
    }
}

/// Ends a connection with RST instead of FIN.
pub(crate) fn reset(stream: TcpStream) {
    // If the option cannot be set, the connection is closed the polite way.
    let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
    drop(stream);
}

/// How much a turn moved, and whether it met the end of the stream.
struct Turn {
    moved: usize,
    ended: bool,
}

/// One direction of a flow, as the other one sees it.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    /// Waits for something to move, and has nothing in hand.
    resting: Cell<bool>,
    ended: Cell<bool>,
    /// Something was written.
    begun: Cell<bool>,
    /// The kernel does not gather what is written: the sender's kernel has done so already.
    /// What is written first leaves at once in any case.
    at_once: Cell<bool>,
    underway: RefCell<Option<Underway>>,
}

impl Direction {
    pub(crate) fn outward() -> Self {
        Self {
            underway: RefCell::new(Some(Underway::new())),
            ..Self::default()
        }
    }

    /// What the listener accepts sends at once.
    pub(crate) fn inward() -> Self {
        Self {
            at_once: Cell::new(true),
            ..Self::default()
        }
    }

    fn send_at_once(&self, to: &TcpStream) {
        if !self.at_once.replace(true) {
            // Without this option the connection only gets slower.
            let _ = to.set_nodelay(true);
        }
    }

    /// Whether no byte is lost if the flow goes on elsewhere.
    fn is_at_rest(&self) -> bool {
        self.resting.get() || self.ended.get()
    }

    fn end(&self) {
        self.ended.set(true);
        self.underway.take();
    }
}

/// Why a flow does not go on here.
pub(crate) enum Stop {
    Failed,
    /// One direction moves bulk; nothing is in hand, so it can go on elsewhere.
    Heavy,
    /// It showed a name that it may not. The client is told.
    Denied(Vec<u8>),
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Failed
    }
}

/// Moves one direction to its end, or until it has moved `heavy` bytes without a pause.
async fn pump(
    from: &TcpStream,
    to: &TcpStream,
    [this, other]: [&Direction; 2],
    inspector: Option<&Inspector>,
    heavy: usize,
    moved: impl Fn(usize),
) -> Result<(), Stop> {
    let mut bulk = false;
    let mut weight = 0_usize;
    while !this.ended.get() {
        this.resting.set(true);
        from.readable().await?;
        this.resting.set(false);
        if let Some(inspector) = inspector {
            inspector.look_at_answer(from).await?;
        }
        let pipe = if bulk { pipes::borrow() } else { None };
        let turn = match pipe {
            Some(pipe) => splice(from, to, pipe).await?,
            None => copy(from, to, this).await?,
        };
        if turn.ended {
            finish(to, this, other);
            break;
        }
        moved(turn.moved);
        bulk = turn.moved >= BUFFER;
        if !bulk {
            busy_poll::extend();
            weight = 0;
            // There may be more than so little was read of, and no wait then.
            if turn.moved == LITTLE {
                yield_now().await;
            }
            continue;
        }
        weight = weight.saturating_add(turn.moved);
        if weight >= heavy && other.is_at_rest() {
            return Err(Stop::Heavy);
        }
        // A fast sender must not keep the others waiting.
        yield_now().await;
    }
    Ok(())
}

/// Passes the end of a direction on.
fn finish(to: &TcpStream, this: &Direction, other: &Direction) {
    // If nothing comes back either, both are closed next, which says the same. A peer that is
    // gone needs no goodbye.
    if !other.ended.get() {
        let _ = shutdown(to, Shutdown::Write);
    }
    this.end();
}

async fn copy(from: &TcpStream, to: &TcpStream, this: &Direction) -> io::Result<Turn> {
    let (turn, rest) = match copy_now(from, to, this) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Ok(Turn {
                moved: 0,
                ended: false,
            });
        }
        copied => copied?,
    };
    send(to, &rest).await?;
    Ok(turn)
}

/// Bytes that wait until the other side takes them, counted.
struct Rest(Vec<u8>);

/// Those of all threads.
static WAITING: AtomicUsize = AtomicUsize::new(0);

impl Rest {
    fn new(bytes: &[u8]) -> Self {
        WAITING.fetch_add(bytes.len(), Ordering::Relaxed);
        Self(bytes.to_vec())
    }
}

impl Deref for Rest {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        WAITING.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

/// Reads once, writes once, and gives back what was not taken.
fn copy_now(from: &TcpStream, to: &TcpStream, this: &Direction) -> io::Result<(Turn, Rest)> {
    let crowded = WAITING.load(Ordering::Relaxed) >= WAITING_LIMIT;
    let most = if crowded { LITTLE } else { BUFFER };
    SHARED.with_borrow_mut(|buffer| {
        let buffer = &mut buffer[..most];
        let moved = read_now(from, buffer)?;
        let ended = moved == 0;
        let bytes = &buffer[..moved];
        if ended {
            return Ok((Turn { moved, ended }, Rest::new(&[])));
        }
        if this.begun.replace(true) {
            this.send_at_once(to);
        }
        let written = match to.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            written => written?,
        };
        Ok((Turn { moved, ended }, Rest::new(&bytes[written..])))
    })
}

/// Reads what is there. If that is less than the buffer holds, there is no more: the next
/// wait is for the next packet, without another read to find that out.
fn read_now(from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = None;
    let read = from.try_io(Interest::READABLE, || {
        let length = rustix::io::read(from, &mut *buffer)?;
        got = Some(length);
        let more = length == 0 || length == buffer.len();
        if more {
            Ok(())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    });
    match (got, read) {
        (Some(length), _) => Ok(length),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Err(io::ErrorKind::WouldBlock.into()),
    }
}

/// Moves what is there. The pipe is empty again at the end, or gone.
async fn splice(from: &TcpStream, to: &TcpStream, pipe: Pipe) -> io::Result<Turn> {
    let filled = from.try_io(Interest::READABLE, || pipe.fill_from(from));
    let moved = match filled {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            pipes::give_back(pipe);
            return Ok(Turn {
                moved: 0,
                ended: false,
            });
        }
        filled => filled?,
    };
    let mut left = moved;
    while left > 0 {
        match to.try_io(Interest::WRITABLE, || pipe.drain_to(to, left)) {
            Ok(drained) => left -= drained,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
            Err(error) => return Err(error),
        }
    }
    pipes::give_back(pipe);
    Ok(Turn {
        moved,
        ended: moved == 0,
    })
}
