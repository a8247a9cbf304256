//! A UDP server: echo, with a log.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use super::listen::{Endpoint, Stop, plain, public_udp, udp};
use crate::error::Result;
use crate::net::Host;
use crate::wait::Seen;

/// A datagram that reached a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub peer: SocketAddr,
    pub payload: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct UdpServer {
    address: SocketAddr,
    datagrams: Seen<Datagram>,
    stop: Stop,
}

impl UdpServer {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn datagrams(&self) -> &Seen<Datagram> {
        &self.datagrams
    }

    /// Closes the port: senders get port unreachable.
    pub fn stop(&self) {
        self.stop.stop();
    }
}

impl Host {
    /// Sends every datagram back to where it came from.
    pub fn udp_echo(&self, endpoint: impl Into<Endpoint>) -> Result<UdpServer> {
        self.udp(endpoint, |datagram| Some(datagram.payload.clone()))
    }

    /// Notes datagrams and never answers.
    pub fn udp_sink(&self, endpoint: impl Into<Endpoint>) -> Result<UdpServer> {
        self.udp(endpoint, |_| None)
    }

    /// Answers each datagram with what `answer` says.
    pub fn udp(
        &self,
        endpoint: impl Into<Endpoint>,
        answer: impl Fn(&Datagram) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Result<UdpServer> {
        let endpoint = endpoint.into();
        let sockets = udp(self, endpoint)?;
        let server = UdpServer {
            address: public_udp(&sockets, self, endpoint),
            datagrams: Seen::default(),
            stop: Stop::new()?,
        };
        let answer = Arc::new(answer);
        for socket in sockets {
            let (handle, answer) = (server.clone(), Arc::clone(&answer));
            self.spawn(move || serve(&socket, &handle, &*answer));
        }
        Ok(server)
    }
}

fn serve(socket: &UdpSocket, server: &UdpServer, answer: &impl Fn(&Datagram) -> Option<Vec<u8>>) {
    let mut buffer = vec![0; 64 * 1024];
    while server.stop.wait_readable(socket) {
        // Errors are those of earlier answers (a client's port was closed).
        let Ok((count, peer)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let datagram = Datagram {
            peer: plain(peer),
            payload: buffer.get(..count).unwrap_or_default().to_vec(),
        };
        let reply = answer(&datagram);
        server.datagrams.push(datagram);
        if let Some(reply) = reply {
            let _ = socket.send_to(&reply, peer);
        }
    }
}
