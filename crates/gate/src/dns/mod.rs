//! DNS for the jail: queries to any server are answered by the host's own resolvers, or by that
//! server itself if a rule names it.
//!
//! The agent's query is checked, sent upstream under a fresh identifier from a fresh
//! port, and the answer is checked against the question before it goes back: neither a
//! stray packet outside nor a program inside can put an answer to somebody else's query.

mod ask;
mod cache;
mod crowd;
pub(crate) mod lookup;
pub(crate) mod resolvers;
mod streams;
mod upstream;

use std::{io, net::IpAddr, rc::Rc, time::Duration};

use stockade_policy::{Hostname, Protocol};
use stockade_sys::transparent::{AnyAddressUdp, Arrival};
use stockade_wire::dns::{self, Query, Rcode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, unix::AsyncFd},
    net::TcpStream,
    task::spawn_local,
    time::timeout,
};

pub(crate) use crowd::Crowded;
use streams::{Seat, Streams};
pub(crate) use upstream::Upstream;

use crate::{
    event_loop::{busy_poll, for_each_packet},
    flows::FlowKey,
    names::{Asker, Names},
};

pub(crate) const PORT: u16 = 53;

const STREAM_IDLE_LIMIT: Duration = Duration::from_secs(30);
const LARGEST: usize = 65_535;
/// A question is a name and some options; no client needs as much.
const LARGEST_QUERY: usize = 4096;

/// All that answers. How much is asked at a time is bounded upstream, and how many wait for the user
/// by [`crate::questions`].
#[derive(Debug)]
pub(crate) struct Resolution {
    names: Names,
    /// Shared with the queries that are under way.
    under_way: Rc<()>,
    streams: Streams,
}

impl Resolution {
    pub(crate) fn new(names: Names) -> Self {
        Self {
            names,
            under_way: Rc::default(),
            streams: Streams::default(),
        }
    }

    /// The addresses of a name that the gate itself looks up.
    pub(crate) async fn addresses(&self, name: &Hostname) -> Vec<IpAddr> {
        self.names.addresses(name).await
    }

    /// Where a device is, of one family: the answer that a program inside gets for its name.
    pub(crate) async fn device_addresses(&self, device: &Hostname, is_ipv4: bool) -> Vec<IpAddr> {
        self.names.device_addresses(device, is_ipv4).await
    }

    /// The next message may be near: of somebody who asks one question after the other. Where
    /// several are under way, there is one at hand most of the time, and who asks and who answers
    /// need the processor more.
    fn await_next(&self) {
        if Rc::strong_count(&self.under_way) == 2 {
            busy_poll::extend();
        }
    }
}

/// Answers all UDP queries of the jail.
pub(crate) async fn serve(socket: Rc<AsyncFd<AnyAddressUdp>>, resolution: Rc<Resolution>) {
    let mut buffer = vec![0; LARGEST];
    for_each_packet(&socket, |receiving| {
        if let Some(arrival) = receiving.receive(&mut buffer)? {
            let bytes = buffer.get(..arrival.length).unwrap_or_default();
            answer(&socket, &resolution, bytes, arrival);
        }
        Ok(1)
    })
    .await;
}

fn answer(
    socket: &Rc<AsyncFd<AnyAddressUdp>>,
    resolution: &Rc<Resolution>,
    bytes: &[u8],
    arrival: Arrival,
) {
    let Ok(query) = Query::parse(bytes) else {
        if let Some(complaint) = dns::formerr(bytes) {
            reply(socket, &complaint, arrival);
        }
        return;
    };
    let (socket, resolution) = (Rc::clone(socket), Rc::clone(resolution));
    spawn_local(async move {
        let _under_way = Rc::clone(&resolution.under_way);
        resolution.await_next();
        let from = Asker {
            client: arrival.client,
            server: arrival.destination,
            protocol: Protocol::Udp,
        };
        let Ok(response) = resolution.names.resolve(&query, &from).await else {
            return resolution.names.judge.events.overlook();
        };
        resolution.await_next();
        reply(&socket, &query.fit(response, query.udp_limit()), arrival);
    });
}

/// A full socket buffer loses the answer; the client asks again.
fn reply(socket: &AsyncFd<AnyAddressUdp>, response: &[u8], arrival: Arrival) {
    let _ = socket
        .get_ref()
        .send(response, arrival.client, arrival.destination.ip());
}

/// Answers the queries of one DNS connection to this server (RFC 7766), one after the other.
pub(crate) async fn serve_stream(stream: TcpStream, key: FlowKey, resolution: &Resolution) {
    let seat = resolution.streams.enter();
    tokio::select! {
        biased;
        () = seat.until_needed() => {}
        () = converse(stream, key, resolution, &seat) => {}
    }
}

async fn converse(
    mut stream: TcpStream,
    FlowKey {
        client,
        destination: server,
    }: FlowKey,
    resolution: &Resolution,
    seat: &Seat<'_>,
) {
    loop {
        let Ok(Ok(bytes)) =
            timeout(STREAM_IDLE_LIMIT, read_framed(&mut stream, LARGEST_QUERY)).await
        else {
            return;
        };
        let response = match Query::parse(&bytes) {
            Ok(query) => {
                let _under_way = Rc::clone(&resolution.under_way);
                let from = Asker {
                    client,
                    server,
                    protocol: Protocol::Tcp,
                };
                seat.is_busy();
                let response = resolution.names.resolve(&query, &from).await;
                seat.is_idle();
                response.unwrap_or_else(|_crowded| query.error(Rcode::ServFail, None))
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
