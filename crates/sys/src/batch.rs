//! Many datagrams in one system call.
//!
//! Receiving takes what is queued at once. Sending hands a run of datagrams of the same size
//! to the kernel as one (UDP_SEGMENT), which cuts it only where somebody needs it cut: on
//! the way, the run costs what one datagram costs.

use std::{
    fmt,
    io::{self, IoSlice, IoSliceMut},
    net::SocketAddr,
    ops::Range,
    os::fd::{AsFd, AsRawFd},
};

use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmsg,
};

use crate::transparent::socket_address;

pub const BATCH: usize = 32;
const LARGEST: usize = 65_535;
/// Larger ones are cut on the way by IP, which a run cannot be.
const LARGEST_IN_RUN: usize = 1452;
/// Of a run as a whole: one IP packet, less its headers.
const LONGEST_RUN: usize = LARGEST - 128;

pub struct Batch {
    /// Touched only as far as datagrams reach, so large ones cost memory and small ones do not.
    room: Vec<u8>,
    received: Vec<Received>,
}

#[derive(Debug, Clone, Copy)]
struct Received {
    slot: usize,
    /// Where in the slot it begins.
    start: usize,
    length: usize,
    from: Option<SocketAddr>,
    /// Where it was sent, if whoever received it knows.
    to: Option<SocketAddr>,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.received).finish()
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            room: vec![0; BATCH * LARGEST],
            received: Vec::with_capacity(BATCH),
        }
    }
}

impl Batch {
    /// Takes what is queued at `socket`, in place of what was here. Tells how much it was.
    ///
    /// # Errors
    /// Those of recvmmsg(2); `WouldBlock` if there is nothing.
    pub fn receive(&mut self, socket: impl AsFd) -> io::Result<usize> {
        self.received.clear();
        let mut slots: Vec<_> = self
            .room
            .chunks_exact_mut(LARGEST)
            .map(|slot| [IoSliceMut::new(slot)])
            .collect();
        // New each time: the kernel writes into them how long an address was, and would take
        // that for the room there is at the next call.
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
        let messages = recvmmsg(
            socket.as_fd().as_raw_fd(),
            &mut headers,
            slots.iter_mut(),
            MsgFlags::MSG_DONTWAIT,
            None,
        )?;
        self.received
            .extend(messages.enumerate().map(|(slot, message)| Received {
                slot,
                start: 0,
                length: message.bytes,
                from: message.address.as_ref().and_then(socket_address),
                to: None,
            }));
        Ok(self.received.len())
    }

    /// The same, of packets, in which `read` finds a datagram: from, to, and where it stands. It may
    /// write a datagram in place of the packet, of which it gets the length. Packets without one are
    /// dropped, and counted.
    pub(crate) fn receive_packets(
        &mut self,
        socket: impl AsFd,
        mut read: impl FnMut(&mut [u8], usize) -> Option<(SocketAddr, SocketAddr, Range<usize>)>,
    ) -> io::Result<usize> {
        let count = self.receive(socket)?;
        let room = &mut self.room;
        self.received.retain_mut(|received| {
            let start = received.slot * LARGEST;
            let slot = &mut room[start..start + LARGEST];
            let Some((from, to, payload)) = read(slot, received.length) else {
                return false;
            };
            assert!(payload.end <= LARGEST, "a datagram ends in its slot");
            (received.from, received.to) = (Some(from), Some(to));
            (received.start, received.length) = (payload.start, payload.len());
            true
        });
        Ok(count)
    }

    pub fn keep_from(&mut self, sender: SocketAddr) {
        self.received
            .retain(|received| received.from == Some(sender));
    }

    pub fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        let room = &self.room;
        self.received
            .retain(|received| keep(datagram(room, received)));
    }

    /// The datagrams in their order, cut into runs.
    pub fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let mut rest = &self.received[..];
        std::iter::from_fn(move || {
            let count = run_length(rest)?;
            let (run, after) = rest.split_at(count);
            rest = after;
            Some(Run { batch: self, run })
        })
    }

    pub fn bytes(&self) -> usize {
        self.received.iter().map(|received| received.length).sum()
    }

    fn datagram(&self, received: &Received) -> &[u8] {
        datagram(&self.room, received)
    }
}

fn datagram<'a>(room: &'a [u8], received: &Received) -> &'a [u8] {
    let start = received.slot * LARGEST + received.start;
    &room[start..start + received.length]
}

/// How many of the next datagrams have one size and the same ends; the last of them may be smaller.
fn run_length(datagrams: &[Received]) -> Option<usize> {
    let first = datagrams.first()?;
    let size = first.length;
    if size == 0 || size > LARGEST_IN_RUN {
        return Some(1);
    }
    let most = (LONGEST_RUN / size).min(datagrams.len());
    let ends = |datagram: &Received| (datagram.from, datagram.to);
    let most = datagrams[..most]
        .iter()
        .take_while(|datagram| ends(datagram) == ends(first))
        .count();
    let same = datagrams[..most]
        .iter()
        .take_while(|datagram| datagram.length == size)
        .count();
    let tail = datagrams[..most]
        .get(same)
        .is_some_and(|last| (1..size).contains(&last.length));
    Some(same + usize::from(tail))
}

/// Datagrams that can go together.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    batch: &'a Batch,
    run: &'a [Received],
}

impl<'a> Run<'a> {
    /// Who sent them, and where to.
    pub fn ends(self) -> Option<(SocketAddr, SocketAddr)> {
        let first = self.run.first()?;
        Some((first.from?, first.to?))
    }

    pub fn bytes(self) -> usize {
        self.run.iter().map(|received| received.length).sum()
    }

    pub fn datagrams(self) -> impl Iterator<Item = &'a [u8]> {
        self.run
            .iter()
            .map(|received| self.batch.datagram(received))
    }

    /// Sends them through a connected socket: all, or none.
    ///
    /// # Errors
    /// Those of sendmsg(2). A run that the kernel does not take as one is `InvalidInput`:
    /// its datagrams may still go one by one.
    pub fn send(self, socket: impl AsFd) -> io::Result<()> {
        let slices: Vec<_> = self.datagrams().map(IoSlice::new).collect();
        let size = self.run.first().map_or(0, |first| first.length);
        let size = u16::try_from(size).unwrap_or_default();
        let segmented = [ControlMessage::UdpGsoSegments(&size)];
        let control: &[_] = if slices.len() > 1 { &segmented } else { &[] };
        let fd = socket.as_fd().as_raw_fd();
        let sent = sendmsg::<()>(fd, &slices, control, MsgFlags::MSG_DONTWAIT, None);
        match sent {
            Ok(_) => Ok(()),
            // Too large for the path, or for a device that cannot cut.
            Err(nix::Error::EMSGSIZE | nix::Error::EIO | nix::Error::EINVAL)
                if slices.len() > 1 =>
            {
                Err(io::ErrorKind::InvalidInput.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, UdpSocket},
        time::Duration,
    };

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let [a, b] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        b.connect(a.local_addr().unwrap()).unwrap();
        b.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (a, b)
    }

    #[test]
    fn datagrams_keep_their_bounds_and_order_in_runs() {
        let sizes = [
            100, 100, 100, 40, 100, 0, 0, 1452, 1452, 9000, 9000, 1, 1, 1, 0, 65_000, 7,
        ];
        let ((client, near), (far, server)) = (pair(), pair());
        for (number, size) in (0_u8..).zip(sizes) {
            client.send(&vec![number; size]).unwrap();
        }
        let mut batch = Batch::default();
        assert_eq!(batch.receive(&near).unwrap(), sizes.len());
        let runs: Vec<_> = batch.runs().map(|run| run.run.len()).collect();
        assert_eq!(runs, [4, 1, 1, 1, 2, 1, 1, 3, 1, 1, 1]);
        for run in batch.runs() {
            run.send(&far).unwrap();
        }
        let mut buffer = vec![0; LARGEST];
        for (number, size) in (0_u8..).zip(sizes) {
            let length = server.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], vec![number; size]);
        }
    }

    #[test]
    fn one_batch_serves_both_families() {
        let mut batch = Batch::default();
        for address in ["127.0.0.1:0", "[::1]:0", "127.0.0.1:0"] {
            let [near, client] = [(); 2].map(|()| UdpSocket::bind(address).unwrap());
            client.send_to(b"x", near.local_addr().unwrap()).unwrap();
            assert_eq!(batch.receive(&near).unwrap(), 1);
            batch.keep_from(client.local_addr().unwrap());
            assert_eq!(batch.runs().count(), 1, "{address}");
        }
    }

    #[test]
    fn nothing_to_receive_is_told() {
        let (_client, near) = pair();
        let error = Batch::default().receive(&near).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_others_sent_is_dropped() {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (other, mine) = (pair().0, pair().0);
        for socket in [&other, &mine] {
            socket.send_to(b"x", near.local_addr().unwrap()).unwrap();
        }
        let mut batch = Batch::default();
        assert_eq!(batch.receive(&near).unwrap(), 2);
        batch.keep_from(mine.local_addr().unwrap());
        assert_eq!(batch.runs().count(), 1);
    }
}
