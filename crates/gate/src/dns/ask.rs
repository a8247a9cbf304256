//! Asking one of the host's resolvers.
//!
//! Each question has an identifier and a port that nobody can guess: both are chosen at random for
//! it alone. Its socket is kept for other questions. Without a port of its own in between, it
//! hears nobody, and costs less than a new one.

use std::{cell::RefCell, io, net::SocketAddr};

use rustix::{
    net::{connect, connect_unspec},
    rand::{GetRandomFlags, getrandom},
};
use socket2::{Domain, Socket, Type};
use stockade_policy::NameServer;
use stockade_sys::transparent::Family;
use stockade_wire::dns::{Query, is_truncated};
use tokio::{
    io::Interest,
    net::{TcpStream, UdpSocket},
};

use super::{LARGEST, read_framed, write_framed};
use crate::{
    event_loop::busy_poll,
    udp::{INPUT, receive_now, send_now},
};

/// Sockets that are kept.
const MOST: usize = 16;

thread_local! {
    /// Answers stay here only while they are checked.
    static ANSWER: RefCell<Box<[u8]>> = RefCell::new(vec![0; LARGEST].into_boxed_slice());
}

/// Sockets that were answered, and have no port.
#[derive(Debug, Default)]
pub(super) struct SocketPool(RefCell<Vec<(Family, UdpSocket)>>);

impl SocketPool {
    /// The answer of one server.
    pub(super) async fn ask(&self, server: SocketAddr, query: &Query) -> io::Result<Vec<u8>> {
        let answer = self.ask_datagram(server, query).await?;
        if is_truncated(&answer) {
            // A server that does not do TCP still gave this much.
            return Ok(ask_stream(server, query).await.unwrap_or(answer));
        }
        Ok(answer)
    }

    /// The answer of a server that a rule names, by the transports of the rule.
    pub(super) async fn ask_named(
        &self,
        server: SocketAddr,
        by: NameServer,
        query: &Query,
    ) -> io::Result<Vec<u8>> {
        match by {
            NameServer {
                udp: true,
                tcp: true,
            } => self.ask(server, query).await,
            NameServer { udp: true, .. } => self.ask_datagram(server, query).await,
            NameServer { .. } => ask_stream(server, query).await,
        }
    }

    async fn ask_datagram(&self, server: SocketAddr, query: &Query) -> io::Result<Vec<u8>> {
        let id = random_id()?;
        let question = query.to_upstream(id);
        let socket = self.send(server, &question)?;
        loop {
            socket.ready(INPUT).await?;
            let answer = ANSWER.with_borrow_mut(|buffer| {
                receive_now(&socket, buffer)
                    .map(|(length, _)| query.accept(buffer.get(..length).unwrap_or_default(), id))
            });
            match answer {
                Ok(Ok(answer)) => {
                    busy_poll::extend();
                    self.give_back(server, socket);
                    return Ok(answer);
                }
                // What does not match is not ours, or forged: keep waiting for the real one.
                Ok(Err(_)) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a question from a port that the kernel chooses at random.
    fn send(&self, server: SocketAddr, question: &[u8]) -> io::Result<UdpSocket> {
        let family = Family::of(server.ip());
        let mut idle = self.0.borrow_mut();
        if let Some(index) = idle.iter().position(|(other, _)| *other == family) {
            let (_, socket) = idle.swap_remove(index);
            // An error that came late for another question shows here.
            if connect(&socket, &server).is_ok() && send_now(&socket, question).is_ok() {
                return Ok(socket);
            }
        }
        let socket = Socket::new(Domain::for_address(server), Type::DGRAM.nonblocking(), None)?;
        socket.connect(&server.into())?;
        socket.send(question)?;
        // With the event loop only now: an answer that is there already shows at once.
        UdpSocket::from_std(socket.into())
    }

    /// Takes the port from a socket that was answered. What it has received besides stays in its
    /// queue, and answers no other question.
    fn give_back(&self, server: SocketAddr, socket: UdpSocket) {
        let nothing_left = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        let _ = socket.try_io(Interest::READABLE, nothing_left);
        let mut idle = self.0.borrow_mut();
        if idle.len() < MOST && connect_unspec(&socket).is_ok() {
            idle.push((Family::of(server.ip()), socket));
        }
    }
}

async fn ask_stream(server: SocketAddr, query: &Query) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let id = random_id()?;
    write_framed(&mut stream, &query.to_upstream(id)).await?;
    let response = read_framed(&mut stream, LARGEST).await?;
    query
        .accept(&response, id)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Chance from the kernel, a handful at a time.
fn random_id() -> io::Result<u16> {
    thread_local! {
        static HANDFUL: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    HANDFUL.with_borrow_mut(|handful| {
        if handful.is_empty() {
            let mut bytes = [0; 256];
            let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
            handful.extend_from_slice(&bytes[..count & !1]);
        }
        match (handful.pop(), handful.pop()) {
            (Some(high), Some(low)) => Ok(u16::from_be_bytes([high, low])),
            _ => Err(io::Error::other("the kernel gave no random bytes")),
        }
    })
}
