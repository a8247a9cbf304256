//! DNS for the jail: queries to any server are answered by the host's own resolvers.
//!
//! The agent's query is checked, sent upstream under a fresh identifier from a fresh
//! port, and the answer is checked against the question before it goes back: neither a
//! stray packet outside nor a program inside can put an answer to somebody else's query.

use std::{
    cell::RefCell,
    io,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

use rustix::rand::{GetRandomFlags, getrandom};
use socket2::{Domain, Socket, Type};
use stockade_sys::{
    transparent::{AnyAddressUdp, Arrival},
    watch,
};
use stockade_wire::dns::{self, ExtendedError, Query, Rcode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, unix::AsyncFd},
    net::{TcpStream, UdpSocket},
    sync::Semaphore,
    task::spawn_local,
    time::timeout,
};

use crate::{
    awake,
    cache::Cache,
    resolvers::Resolvers,
    turns::Turns,
    udp::{INPUT, receive_now},
};

pub(crate) const PORT: u16 = 53;

/// Queries under way at a time; more are dropped, and the client asks again.
const IN_FLIGHT: usize = 512;
/// Connections for queries at a time.
const STREAMS: usize = 256;
/// The agent's resolver waits five seconds by default, then asks again. Two rounds over
/// two servers fit into that.
const ANSWER_LIMIT: Duration = Duration::from_millis(1200);
const ROUNDS: usize = 2;
const STREAM_IDLE_LIMIT: Duration = Duration::from_secs(30);
const LARGEST: usize = 65_535;
/// A question is a name and some options; no client needs as much.
const LARGEST_QUERY: usize = 4096;

thread_local! {
    /// Answers stay here only while they are checked.
    static ANSWER: RefCell<Box<[u8]>> = RefCell::new(vec![0; LARGEST].into_boxed_slice());
}

/// The answering side of all UDP queries of the jail.
#[derive(Debug)]
pub(crate) struct Service {
    socket: Rc<AsyncFd<AnyAddressUdp>>,
    upstream: Rc<Upstream>,
}

/// The host's resolvers, with a bound on how much they are asked at a time.
#[derive(Debug)]
pub(crate) struct Upstream {
    resolvers: Resolvers,
    asked: RefCell<Rc<[SocketAddr]>>,
    cache: RefCell<Cache>,
    permits: Semaphore,
    streams: Semaphore,
    /// Whether the jail has IPv6. If not, no name has an IPv6 address there.
    ipv6: bool,
}

impl Service {
    pub(crate) fn new(socket: AnyAddressUdp, upstream: Rc<Upstream>) -> io::Result<Self> {
        Ok(Self {
            socket: Rc::new(watch::watch(socket)?),
            upstream,
        })
    }

    pub(crate) async fn serve(self) {
        let mut buffer = vec![0; LARGEST];
        let mut turns = Turns::default();
        loop {
            turns.next().await;
            let Ok(mut ready) = self.socket.readable().await else {
                return;
            };
            let received = ready.try_io(|socket| socket.get_ref().receive(&mut buffer));
            // A datagram that cannot be received or answered is lost, as on any network.
            if let Ok(Ok(Some(arrival))) = received {
                let bytes = buffer.get(..arrival.length).unwrap_or_default();
                awake::stir();
                self.answer(bytes, arrival);
            }
        }
    }

    fn answer(&self, bytes: &[u8], arrival: Arrival) {
        let socket = Rc::clone(&self.socket);
        let Ok(query) = Query::parse(bytes) else {
            if let Some(complaint) = dns::formerr(bytes) {
                reply(&socket, &complaint, arrival);
            }
            return;
        };
        let upstream = Rc::clone(&self.upstream);
        spawn_local(async move {
            let Ok(_permit) = upstream.permits.try_acquire() else {
                return;
            };
            let response = upstream.resolve(&query).await;
            reply(&socket, &query.fit(response, query.udp_limit()), arrival);
        });
    }
}

/// A full socket buffer loses the answer; the client asks again.
fn reply(socket: &AsyncFd<AnyAddressUdp>, response: &[u8], arrival: Arrival) {
    let _ = socket
        .get_ref()
        .send(response, arrival.client, arrival.destination.ip());
}

/// Answers the queries of one DNS connection (RFC 7766), one after the other.
pub(crate) async fn serve_stream(mut stream: TcpStream, upstream: &Upstream) {
    // One too many is closed; the client comes again.
    let Ok(_permit) = upstream.streams.try_acquire() else {
        return;
    };
    loop {
        let Ok(Ok(bytes)) =
            timeout(STREAM_IDLE_LIMIT, read_framed(&mut stream, LARGEST_QUERY)).await
        else {
            return;
        };
        let response = match Query::parse(&bytes) {
            Ok(query) => {
                let Ok(_permit) = upstream.permits.acquire().await else {
                    return;
                };
                upstream.resolve(&query).await
            }
            Err(_) => match dns::formerr(&bytes) {
                Some(complaint) => complaint,
                None => return,
            },
        };
        let written = timeout(STREAM_IDLE_LIMIT, write_framed(&mut stream, &response)).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
}

impl Upstream {
    pub(crate) fn new(ipv6: bool) -> Self {
        Self {
            resolvers: Resolvers::default(),
            asked: RefCell::default(),
            cache: RefCell::default(),
            permits: Semaphore::new(IN_FLIGHT),
            streams: Semaphore::new(STREAMS),
            ipv6,
        }
    }

    /// The host's resolvers. Others may give other answers, so a change empties the cache.
    fn servers(&self) -> Rc<[SocketAddr]> {
        let servers = self.resolvers.current();
        if *self.asked.borrow() != servers {
            self.cache.borrow_mut().clear();
            self.asked.replace(Rc::clone(&servers));
        }
        servers
    }

    /// The answer of the first resolver that knows one, or the failure that one reported, or
    /// one of our own that says why there is none.
    async fn resolve(&self, query: &Query) -> Vec<u8> {
        if query.qtype() == dns::Type::AAAA && !self.ipv6 {
            return query.error(Rcode::NoError, None);
        }
        let now = Instant::now();
        let servers = self.servers();
        if let Some(answer) = self.cache.borrow().get(query, now) {
            return answer;
        }
        let mut failure = None;
        for server in servers.iter().cycle().take(servers.len() * ROUNDS) {
            if let Ok(Ok(answer)) = timeout(ANSWER_LIMIT, ask(*server, query)).await {
                if dns::is_failure(&answer) {
                    failure = Some(answer);
                    continue;
                }
                self.cache.borrow_mut().put(query, &answer, now);
                return answer;
            }
        }
        if let Some(failure) = failure {
            return failure;
        }
        let text = if servers.is_empty() {
            "Stockade: the host has no name server in /etc/resolv.conf".to_owned()
        } else {
            "Stockade: none of the host's name servers answered".to_owned()
        };
        let code = ExtendedError::NO_REACHABLE_AUTHORITY;
        query.error(Rcode::ServFail, Some(&ExtendedError { code, text }))
    }
}

async fn ask(server: SocketAddr, query: &Query) -> io::Result<Vec<u8>> {
    let answer = ask_datagram(server, query).await?;
    if dns::is_truncated(&answer) {
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
                awake::stir();
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

/// Reads a message of at most `limit` bytes. Memory is taken as the bytes come, not as the
/// sender announces them.
async fn read_framed(stream: &mut TcpStream, limit: usize) -> io::Result<Vec<u8>> {
    let length = usize::from(stream.read_u16().await?);
    if length > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "DNS message too long",
        ));
    }
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes).await?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

async fn write_framed(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "DNS message too long"))?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend_from_slice(message);
    stream.write_all(&framed).await
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
