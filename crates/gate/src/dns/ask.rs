//! Asking one of the host's resolvers.

use std::{cell::RefCell, io, net::SocketAddr};

use rustix::rand::{GetRandomFlags, getrandom};
use socket2::{Domain, Socket, Type};
use stockade_wire::dns::{Query, is_truncated};
use tokio::net::{TcpStream, UdpSocket};

use super::{LARGEST, read_framed, write_framed};
use crate::{
    event_loop::busy_poll,
    udp::{INPUT, receive_now},
};

thread_local! {
    /// Answers stay here only while they are checked.
    static ANSWER: RefCell<Box<[u8]>> = RefCell::new(vec![0; LARGEST].into_boxed_slice());
}

pub(super) async fn ask(server: SocketAddr, query: &Query) -> io::Result<Vec<u8>> {
    let answer = ask_datagram(server, query).await?;
    if is_truncated(&answer) {
        // A server that does not do TCP still gave this much.
        return Ok(ask_stream(server, query).await.unwrap_or(answer));
    }
    Ok(answer)
}

async fn ask_datagram(server: SocketAddr, query: &Query) -> io::Result<Vec<u8>> {
    let socket = Socket::new(Domain::for_address(server), Type::DGRAM.nonblocking(), None)?;
    // The kernel chooses a port at random.
    socket.connect(&server.into())?;
    let id = random_id()?;
    socket.send(&query.to_upstream(id))?;
    // With the event loop only now: an answer that is there already shows at once.
    let socket = UdpSocket::from_std(socket.into())?;
    loop {
        socket.ready(INPUT).await?;
        let answer = ANSWER.with_borrow_mut(|buffer| {
            receive_now(&socket, buffer)
                .map(|(length, _)| query.accept(buffer.get(..length).unwrap_or_default(), id))
        });
        match answer {
            Ok(Ok(answer)) => {
                busy_poll::stir();
                return Ok(answer);
            }
            // What does not match is not ours, or forged: keep waiting for the real one.
            Ok(Err(_)) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
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
