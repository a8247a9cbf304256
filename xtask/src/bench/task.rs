//! What the driver and the client inside a column say to each other: one JSON
//! object per line, over the client's standard input and output.
//!
//! One client stays in each column for a whole round, so that starting it is
//! no part of what is measured, and so that every number of a round comes from
//! the same relay.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// What the client is asked to do. Durations are in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// iperf3 over TCP; `reverse` is a download.
    Iperf {
        server: SocketAddr,
        streams: u32,
        seconds: u32,
        reverse: bool,
    },
    /// A new connection for each request, from several threads.
    Connect {
        server: SocketAddr,
        threads: usize,
        seconds: f64,
    },
    /// One byte there and back on one connection.
    TcpEcho {
        server: SocketAddr,
        seconds: f64,
    },
    /// A small datagram there and back.
    UdpEcho {
        server: SocketAddr,
        seconds: f64,
    },
    /// Small datagrams one way, as fast as the kernel takes them.
    UdpFlood {
        server: SocketAddr,
        seconds: f64,
    },
    /// A new name, and a new socket, for each query. Without a server: the one
    /// in `/etc/resolv.conf` as the client sees it.
    Dns {
        server: Option<SocketAddr>,
        threads: usize,
        seconds: f64,
    },
    /// Opens connections, as many as the time allows, and keeps them until
    /// `Release`.
    Hold {
        server: SocketAddr,
        count: usize,
        seconds: f64,
    },
    Release,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The client runs; its network may not be there yet.
    Started,
    /// A server has answered.
    Ready,
    Transfer(Transfer),
    Exchanges(Exchanges),
    /// Connections that are open, and why there are not more.
    Held {
        count: usize,
        complaint: Option<String>,
    },
    Done,
    Failed(String),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Transfer {
    /// As counted by whoever received them.
    pub(crate) bytes: f64,
    pub(crate) bits_per_second: f64,
    /// Processor time of both ends, without the relay's.
    pub(crate) cpu_seconds: f64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Exchanges {
    pub(crate) per_second: f64,
    /// Seconds; zero where nothing comes back.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Attempts that failed or were never answered.
    pub(crate) failed: u64,
}
