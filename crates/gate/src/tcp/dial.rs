//! The outward half of a connection.

use std::{io, net::SocketAddr, time::Duration};

use rustix::io::Errno;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream};

use crate::{descriptors::spare, hold::Failure, icmp::icmp_error::unreachable};

pub(crate) async fn dial(destination: SocketAddr) -> Result<TcpStream, Failure> {
    connect(destination).await.map_err(|error| failure(&error))
}

pub(crate) async fn connect(destination: SocketAddr) -> io::Result<TcpStream> {
    let socket = match destination {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    spare(socket?)?.connect(destination).await
}

/// The agent's own probes end at the gate. So the gate sends some, as often as the routers on
/// the way need them to remember an idle connection, and with more patience than they have:
/// a peer that was out of reach for an hour may come back.
pub(crate) fn keep_alive(far: &TcpStream) {
    let probes = TcpKeepalive::new()
        .with_time(Duration::from_secs(120))
        .with_interval(Duration::from_secs(75))
        .with_retries(60);
    // Without them an idle connection may be forgotten on the way.
    let _ = SockRef::from(far).set_tcp_keepalive(&probes);
}

/// The answer that makes the agent's `connect()` fail as this one did.
fn failure(error: &io::Error) -> Failure {
    match Errno::from_io_error(error) {
        Some(Errno::CONNREFUSED | Errno::CONNRESET) => Failure::Reset,
        Some(Errno::TIMEDOUT) => Failure::Silence,
        _ => Failure::Unreachable(unreachable(error)),
    }
}
