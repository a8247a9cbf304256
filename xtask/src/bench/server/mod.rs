//! The servers that the columns are measured against.
//!
//! They live on a host of the world's internet, as threads of the driver, and
//! do as little as possible per request: what a server needs for itself hides
//! the differences between the columns. That is also why the world's own
//! servers, which remember everything they see, are not used here.

mod dns;
mod iperf;
mod tcp;
mod udp;

use std::net::SocketAddr;

use anyhow::Result;
use stockade_world::World;

pub(crate) use tcp::Holder;
pub(crate) use udp::Sink;

use super::column::Column;

/// Sizes of a request and its answer, in bytes.
pub(crate) const REQUEST: usize = 100;
pub(crate) const ANSWER: usize = 1000;
/// Payload of the datagrams that are sent around.
pub(crate) const DATAGRAM: usize = 64;

/// The host that serves, by its name in the world.
pub(crate) const HOST: &str = "server";
pub(crate) const ADDRESS: &str = "93.184.216.34";

pub(crate) struct Servers {
    pub(crate) tcp_echo: SocketAddr,
    pub(crate) connect: SocketAddr,
    pub(crate) udp_echo: SocketAddr,
    pub(crate) sink: Sink,
    pub(crate) holder: Holder,
    iperf: iperf::Servers,
}

impl Servers {
    pub(crate) fn start(world: &World) -> Result<Self> {
        let host = world.host(HOST);
        dns::take_over(world)?;
        Ok(Self {
            tcp_echo: tcp::echo(host)?,
            connect: tcp::answer(host)?,
            udp_echo: udp::echo(host)?,
            sink: Sink::start(host)?,
            holder: Holder::start(host)?,
            iperf: iperf::Servers::start(host)?,
        })
    }

    /// Each column has an iperf3 server of its own: one that is stuck with the
    /// client of one column must not refuse those of the others.
    pub(crate) fn iperf(&self, column: Column) -> SocketAddr {
        self.iperf.address(column)
    }
}
