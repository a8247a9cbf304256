//! Joining two established connections.
//!
//! Small messages are copied through one buffer that all flows share. A direction that
//! fills that buffer is moving bulk, and is spliced through a pipe from then on: the
//! kernel hands pages from socket to socket, and no byte is copied. Pipes are few, because
//! the kernel gives a user only so many of full size; a flow borrows one while it has data
//! at hand, and copies if there is none.

use std::{
    cell::{Cell, RefCell},
    io,
    time::Duration,
};

use rustix::net::{Shutdown, shutdown, sockopt};
use tokio::{io::Interest, net::TcpStream, task::yield_now, time::sleep};

use crate::pipes::{self, Pipe};

const BUFFER: usize = 64 * 1024;

thread_local! {
    /// One buffer for all flows: bytes stay in it only between a read and the write that
    /// follows at once. What the other side does not take is moved to the flow itself.
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER].into_boxed_slice());
}

/// Carries bytes both ways until both sides have ended. An end of one direction is passed
/// on alone (half-close); a reset of one side resets the other.
pub(crate) async fn relay(near: TcpStream, far: TcpStream) {
    let outward = async {
        let _underway = Outward::new();
        pump(&near, &far).await
    };
    let both = tokio::try_join!(outward, pump(&far, &near));
    if both.is_err() {
        reset(near);
        reset(far);
    }
}

thread_local! {
    static OUTWARD: Cell<usize> = const { Cell::new(0) };
}

/// Counts a flow that may still have bytes from inside to deliver.
struct Outward;

impl Outward {
    fn new() -> Self {
        OUTWARD.set(OUTWARD.get() + 1);
        Self
    }
}

impl Drop for Outward {
    fn drop(&mut self) {
        // At the end of the thread the counter may be gone before the flows.
        let _ = OUTWARD.try_with(|count| count.set(count.get().saturating_sub(1)));
    }
}

/// Waits until all that was written inside has been handed to the host's kernel, which goes
/// on by itself. For when the agent has ended, and its connections with it.
pub(crate) async fn delivered() {
    while OUTWARD.get() > 0 {
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

async fn pump(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let mut bulk = false;
    loop {
        from.readable().await?;
        let pipe = if bulk { pipes::borrow() } else { None };
        let turn = match pipe {
            Some(pipe) => splice(from, to, pipe).await?,
            None => copy(from, to).await?,
        };
        if turn.ended {
            // A peer that is gone needs no goodbye.
            let _ = shutdown(to, Shutdown::Write);
            return Ok(());
        }
        bulk = turn.moved >= BUFFER;
        if bulk {
            // A fast sender must not keep the others waiting.
            yield_now().await;
        }
    }
}

async fn copy(from: &TcpStream, to: &TcpStream) -> io::Result<Turn> {
    let (turn, rest) = match copy_now(from, to) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Ok(Turn {
                moved: 0,
                ended: false,
            });
        }
        copied => copied?,
    };
    let mut rest = &rest[..];
    while !rest.is_empty() {
        to.writable().await?;
        match to.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(turn)
}

/// Reads once, writes once, and gives back what was not taken.
fn copy_now(from: &TcpStream, to: &TcpStream) -> io::Result<(Turn, Vec<u8>)> {
    SHARED.with_borrow_mut(|buffer| {
        let moved = read_now(from, buffer)?;
        let ended = moved == 0;
        let bytes = &buffer[..moved];
        if ended {
            return Ok((Turn { moved, ended }, Vec::new()));
        }
        let written = match to.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            written => written?,
        };
        Ok((Turn { moved, ended }, bytes[written..].to_vec()))
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
