//! Connections: how many, how soon, and how long a byte takes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::Result;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use super::{TIMEOUT, timing};
use crate::bench::server::{ANSWER, REQUEST};
use crate::bench::task::Exchanges;

/// The time limits also bound `connect`, without making the socket non-blocking.
pub(super) fn open(server: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(
        Domain::for_address(server),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    socket.set_tcp_nodelay(true)?;
    socket.connect(&server.into()).map_err(named)?;
    Ok(socket.into())
}

/// A blocking call that ran into its time limit says that it would block, or
/// that it is in progress: true, but no help to anybody.
pub(super) fn named(error: io::Error) -> io::Error {
    match Errno::from_io_error(&error) {
        Some(Errno::AGAIN | Errno::INPROGRESS) => {
            io::Error::new(io::ErrorKind::TimedOut, "no answer in time")
        }
        _ => error,
    }
}

/// Connect, ask, read the answer until the server closes: HTTP/1.0 in small.
pub(super) fn connect(server: SocketAddr, threads: usize, seconds: f64) -> Result<Exchanges> {
    timing::repeat(threads, seconds, |_| {
        let mut answer = Vec::with_capacity(2 * ANSWER);
        Ok(move || {
            let mut stream = open(server)?;
            stream.write_all(&[b'?'; REQUEST])?;
            answer.clear();
            stream.read_to_end(&mut answer)?;
            if answer.len() == ANSWER {
                Ok(())
            } else {
                Err(io::Error::other("the answer was cut short"))
            }
        })
    })
}

pub(super) fn echo(server: SocketAddr, seconds: f64) -> Result<Exchanges> {
    timing::repeat(1, seconds, |_| {
        let mut stream = open(server)?;
        Ok(move || {
            stream.write_all(b"?")?;
            stream.read_exact(&mut [0])
        })
    })
}
