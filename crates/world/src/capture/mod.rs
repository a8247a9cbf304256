//! Packet capture: how many packets reached a host, and which.
//!
//! A packet socket in the host's namespace sees every packet on every
//! interface there, coming and going. Counts therefore name an address: what
//! is addressed *to* the host arrived. Packets over `lo` show up twice, once
//! in each direction.

mod packet;

use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use packet::{Packet, Protocol};
use socket2::{Domain, Socket, Type};

use crate::error::{Doing, Result};
use crate::net::Host;
use crate::server::Stop;
use crate::wait::{PATIENCE, eventually};

/// Every protocol, in network byte order, as packet sockets want it.
const ETH_P_ALL: i32 = 0x0003_u16.to_be() as i32;

/// As much as an ordinary user gets; enough for some thousand small packets
/// between two looks of the thread.
const RECEIVE_BUFFER: usize = 4 * 1024 * 1024;

/// A running capture. Ends when dropped.
#[derive(Debug)]
pub struct Capture {
    socket: Arc<Socket>,
    packets: Arc<Mutex<Vec<Packet>>>,
    stop: Stop,
}

impl Host {
    /// Captures from now on.
    pub fn capture(&self) -> Result<Capture> {
        let open = || {
            // SOCK_DGRAM: packets come without their Ethernet header.
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(ETH_P_ALL.into()))?;
            socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
            socket.set_nonblocking(true)?;
            Ok::<_, std::io::Error>(socket)
        };
        let socket = self
            .enter(open)
            .doing(format_args!("capture on {}", self.name()))?;
        let capture = Capture {
            socket: Arc::new(socket),
            packets: Arc::default(),
            stop: Stop::new()?,
        };
        let (socket, packets) = (Arc::clone(&capture.socket), Arc::clone(&capture.packets));
        let stop = capture.stop.clone();
        self.spawn(move || {
            while stop.wait_readable(&*socket) {
                drain(&socket, &packets);
            }
        });
        Ok(capture)
    }
}

impl Capture {
    /// Everything captured up to this moment, including what the kernel still
    /// holds.
    pub fn packets(&self) -> Vec<Packet> {
        drain(&self.socket, &self.packets);
        self.packets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn count(&self, matches: impl Fn(&Packet) -> bool) -> usize {
        self.packets().iter().filter(|p| matches(p)).count()
    }

    /// How many packets went to this address.
    pub fn to(&self, address: IpAddr) -> usize {
        self.count(|packet| packet.destination == address)
    }

    /// How many packets of a protocol went to this address and port.
    pub fn to_port(&self, protocol: Protocol, address: IpAddr, port: u16) -> usize {
        self.count(|packet| {
            packet.protocol == protocol
                && packet.destination == address
                && packet.destination_port == Some(port)
        })
    }

    /// Waits until enough packets match.
    pub fn wait_for(&self, count: usize, matches: impl Fn(&Packet) -> bool) -> Result<()> {
        self.wait_within(PATIENCE, count, matches)
    }

    pub fn wait_within(
        &self,
        limit: Duration,
        count: usize,
        matches: impl Fn(&Packet) -> bool,
    ) -> Result<()> {
        let what = format!("the capture of {count} such packets");
        eventually(&what, limit, || self.count(&matches) >= count)
    }

    /// Forgets what was captured so far.
    pub fn clear(&self) {
        drain(&self.socket, &self.packets);
        self.packets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// The lock is held over the reads: whoever asks for a count afterwards finds
/// every packet that had arrived before asking, in order.
fn drain(socket: &Socket, packets: &Mutex<Vec<Packet>>) {
    let mut packets = packets.lock().unwrap_or_else(PoisonError::into_inner);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match (&*socket).read(&mut buffer) {
            Ok(count) => packets.extend(Packet::parse(buffer.get(..count).unwrap_or_default())),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
