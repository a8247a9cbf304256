//! A resolver that knows what the test tells it, by UDP and TCP, and that can
//! be told to misbehave.

mod answer;
mod zone;

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use simple_dns::rdata::RData;
pub use zone::Misbehaviour;
use zone::Zone;

use super::listen::{self, Endpoint, Stop, plain};
use super::tcp::{Stream, TcpServer};
use crate::error::Result;
use crate::net::Host;
use crate::wait::Seen;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
}

/// A query that reached the resolver, understood or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Lower case, without the final dot. Empty if the query made no sense.
    pub name: String,
    /// `A`, `AAAA`, `TXT` …
    pub kind: String,
    pub transport: Transport,
    pub peer: SocketAddr,
    /// The message as it arrived.
    pub message: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct DnsServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    queries: Seen<Query>,
    stop: Stop,
    tcp: Option<TcpServer>,
}

impl Host {
    /// A resolver that knows nothing yet.
    pub fn dns(&self, endpoint: impl Into<Endpoint>) -> Result<DnsServer> {
        let server = DnsServer {
            address: SocketAddr::new(self.address(), 53),
            zone: Arc::default(),
            queries: Seen::default(),
            stop: Stop::new()?,
            tcp: None,
        };
        server.at(self, endpoint)
    }
}

impl DnsServer {
    /// Serves the same records at another place, for instance as a stub on the
    /// laptop's loopback. Queries there appear in the same log.
    pub fn at(&self, host: &Host, endpoint: impl Into<Endpoint>) -> Result<Self> {
        let endpoint = endpoint.into();
        let mut server = self.clone();
        server.stop = Stop::new()?;
        let sockets = listen::udp(host, endpoint)?;
        server.address = listen::public_udp(&sockets, host, endpoint);
        for socket in sockets {
            let server = server.clone();
            host.spawn(move || server.serve_udp(&socket));
        }
        let by_tcp = server.clone();
        server.tcp = Some(host.tcp(endpoint, move |stream| by_tcp.serve_tcp(stream))?);
        Ok(server)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds an address record with a TTL of a minute. The name may begin with
    /// `*.` to stand for all names below.
    pub fn record(&self, name: &str, address: impl Into<IpAddr>) -> &Self {
        self.records(name, 60, vec![zone::address(address.into())])
    }

    pub fn cname(&self, name: &str, target: &str) -> &Self {
        self.records(name, 60, vec![zone::cname(target)])
    }

    pub fn txt(&self, name: &str, text: &str) -> &Self {
        self.records(name, 60, vec![zone::txt(text)])
    }

    /// Adds records of any kind.
    pub fn records(&self, name: &str, ttl: u32, data: Vec<RData<'static>>) -> &Self {
        self.zone().add(name, ttl, data);
        self
    }

    /// Answers with the first set of addresses, the next time with the next,
    /// and so on round and round; counted for each record type. TTL 0.
    pub fn rotate<A: Into<IpAddr> + Copy>(&self, name: &str, sets: &[&[A]]) -> &Self {
        let sets = sets
            .iter()
            .map(|set| set.iter().map(|a| zone::address((*a).into())).collect())
            .collect();
        self.zone().rotate(name, sets);
        self
    }

    /// Forgets a name: it does not exist any more.
    pub fn forget(&self, name: &str) -> &Self {
        self.zone().forget(name);
        self
    }

    /// Misbehaves for one name (and `*.` patterns), or for `"*"`, everything.
    pub fn misbehave(&self, name: &str, how: Misbehaviour) -> &Self {
        self.zone().misbehave(name, how);
        self
    }

    /// Ends all misbehaviour.
    pub fn behave(&self) -> &Self {
        self.zone().behave();
        self
    }

    pub fn queries(&self) -> &Seen<Query> {
        &self.queries
    }

    /// How many queries asked for this name.
    pub fn queries_for(&self, name: &str) -> usize {
        let name = zone::normal(name);
        self.queries.count_where(|query| query.name == name)
    }

    /// Stops this one; the same records elsewhere stay.
    pub fn stop(&self) {
        // Each datagram socket has a thread, and an event wakes them all: it
        // stays raised.
        self.stop.stop();
        if let Some(tcp) = &self.tcp {
            tcp.stop();
        }
    }

    fn zone(&self) -> MutexGuard<'_, Zone> {
        self.zone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve_udp(&self, socket: &UdpSocket) {
        let mut buffer = vec![0; 64 * 1024];
        while self.stop.wait_readable(socket) {
            let Ok((count, peer)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            let message = buffer.get(..count).unwrap_or_default();
            let Some((reply, delay)) = self.answer(message, Transport::Udp, plain(peer)) else {
                continue;
            };
            match (delay, socket.try_clone()) {
                // One slow answer does not hold up the others.
                (Some(delay), Ok(socket)) => drop(thread::spawn(move || {
                    thread::sleep(delay);
                    let _ = socket.send_to(&reply, peer);
                })),
                _ => drop(socket.send_to(&reply, peer)),
            }
        }
    }

    fn serve_tcp(&self, stream: &mut Stream) -> io::Result<()> {
        let peer = plain(stream.socket.peer_addr()?);
        loop {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut message)?;
            let Some((reply, delay)) = self.answer(&message, Transport::Tcp, peer) else {
                // Silence: keep the connection open and say nothing.
                continue;
            };
            thread::sleep(delay.unwrap_or_default());
            let length = u16::try_from(reply.len()).unwrap_or(u16::MAX);
            stream.write_all(&[&length.to_be_bytes(), reply.as_slice()].concat())?;
        }
    }

    /// The reply and how long to hold it back; `None` for silence.
    fn answer(
        &self,
        message: &[u8],
        transport: Transport,
        peer: SocketAddr,
    ) -> Option<(Vec<u8>, Option<Duration>)> {
        let (name, kind) = answer::question(message);
        self.queries.push(Query {
            name: name.clone(),
            kind,
            transport,
            peer,
            message: message.to_vec(),
        });
        let mut zone = self.zone();
        let how = zone.misbehaviour(&name);
        let reply = answer::reply(&mut zone, message, transport, how)?;
        let delay = match how {
            Some(Misbehaviour::Slow(delay)) => Some(delay),
            _ => None,
        };
        Some((reply, delay))
    }
}
