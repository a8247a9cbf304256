//! Asking one of the host's resolvers.
//!
//! Each question has an identifier and a port that nobody can guess: both are chosen at random for
//! it alone. Its socket is kept for other questions. Without a port of its own in between, it
//! hears nobody, and costs less than a new one. It is not connected, which would cost another
//! system call for each question; so who sent an answer is checked here.

use std::{cell::RefCell, io, net::SocketAddr};

use rustix::{
    net::{SendFlags, connect_unspec, sendto},
    rand::{GetRandomFlags, getrandom},
};
use socket2::{Domain, Socket, Type};
use stockade_policy::NameServer;
use stockade_sys::{socket::report_errors, transparent::Family};
use stockade_wire::dns::{Query, is_truncated};
use tokio::{io::Interest, net::UdpSocket};

use super::{LARGEST, read_framed, write_framed};
use crate::{
    descriptors::spare,
    tcp::dial::connect as connect_stream,
    udp::{INPUT, receive_now},
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
        let socket = self.send(server, &query.to_upstream(id))?;
        loop {
            socket.ready(INPUT).await?;
            let answer = ANSWER.with_borrow_mut(|buffer| {
                let (length, from) = receive_now(&socket, buffer)?;
                let bytes = buffer.get(..length).filter(|_| from == Some(server));
                Ok::<_, io::Error>(bytes.and_then(|bytes| query.accept(bytes, id).ok()))
            });
            match answer {
                Ok(Some(answer)) => {
                    self.give_back(server, socket);
                    return Ok(answer);
                }
                // What does not match is not ours, or forged: keep waiting for the real one.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a question from a port that the kernel chooses at random.
    fn send(&self, server: SocketAddr, question: &[u8]) -> io::Result<UdpSocket> {
        let family = Family::of(server.ip());
        let none = SendFlags::empty();
        let mut idle = self.0.borrow_mut();
        if let Some(index) = idle.iter().position(|(other, _)| *other == family) {
            let (_, socket) = idle.swap_remove(index);
            // An error that came late for another question shows here.
            if sendto(&socket, question, none, &server).is_ok() {
                return Ok(socket);
            }
        }
        let socket = Socket::new(Domain::for_address(server), Type::DGRAM.nonblocking(), None)?;
        let socket = spare(socket)?;
        // That nobody listens is told to connected sockets only, or to who asks for it.
        report_errors(&socket, family)?;
        sendto(&socket, question, none, &server)?;
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
    let mut stream = connect_stream(server).await?;
    let id = random_id()?;
    write_framed(&mut stream, &query.to_upstream(id)).await?;
    let response = read_framed(&mut stream, LARGEST).await?;
    query
        .accept(&response, id)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Chance from the kernel, a handful at a time.
pub(super) fn random_id() -> io::Result<u16> {
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

#[cfg(test)]
mod tests {
    use tokio::{join, net::UdpSocket};

    use super::*;

    /// An answer to a question: 192.0.2.`last`.
    fn answer(question: &[u8], last: u8) -> Vec<u8> {
        let mut bytes = question.to_vec();
        bytes[2] |= 0x80;
        bytes[7] = 1;
        bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last]);
        bytes
    }

    #[tokio::test]
    async fn only_the_server_that_was_asked_answers() {
        let query = [
            &[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1][..],
            b"a\0\0\x01\0\x01",
        ]
        .concat();
        let query = Query::parse(&query).expect("a query");
        let server = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let stranger = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let at = server.local_addr().expect("an address");
        let answering = async {
            let mut question = [0; 512];
            let (length, asker) = server.recv_from(&mut question).await.expect("a question");
            let question = &question[..length];
            // It knows everything, and is first.
            let forged = stranger.send_to(&answer(question, 6), asker).await;
            forged.expect("sent");
            let real = server.send_to(&answer(question, 7), asker).await;
            real.expect("sent");
        };
        let pool = SocketPool::default();
        let (given, ()) = join!(pool.ask(at, &query), answering);
        assert_eq!(given.expect("an answer").last(), Some(&7));
    }
}
