//! Calls on the sockets of a flow that do not wait.

use std::{io, iter, net::SocketAddr};

use rustix::net::{RecvFlags, SendFlags};
use stockade_sys::{
    batch::{BATCH, Batch},
    socket::take_error,
};
use stockade_wire::packet::Unreachable;
use tokio::{io::Interest, net::UdpSocket};

use crate::{flows::FlowKey, icmp::icmp_error::queued_error};

/// An ICMP error shows as an error only, without anything to read.
pub(crate) const INPUT: Interest = Interest::READABLE.add(Interest::ERROR);

/// Sends without asking the event loop first, which knows nothing yet of a new socket.
pub(crate) fn send_now(socket: &UdpSocket, datagram: &[u8]) -> io::Result<()> {
    rustix::net::send(socket, datagram, SendFlags::empty())?;
    Ok(())
}

/// What is queued at a socket, or an error that an ICMP message brought.
pub(super) fn receive_batch(socket: &UdpSocket, batch: &mut Batch) -> io::Result<usize> {
    let mut got = Err(io::ErrorKind::WouldBlock.into());
    // One kind of readiness at a time: asked for both, tokio finds neither.
    for interest in [Interest::READABLE, Interest::ERROR] {
        let _ = socket.try_io(interest, || {
            got = batch.receive(socket);
            // Less than a batch was all there was: the next wait is for the next datagram,
            // without another look to find that out.
            match got {
                Ok(BATCH) => Ok(()),
                _ => Err(io::ErrorKind::WouldBlock.into()),
            }
        });
        if !matches!(&got, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            break;
        }
    }
    got
}

/// A datagram, or an error that an ICMP message brought, if one is there.
pub(crate) fn receive_now(
    socket: &UdpSocket,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<SocketAddr>)> {
    let mut receive = || {
        let (length, _, from) = rustix::net::recvfrom(socket, &mut *buffer, RecvFlags::empty())?;
        Ok((length, from.and_then(|from| from.try_into().ok())))
    };
    // One kind of readiness at a time: asked for both, tokio finds neither.
    match socket.try_io(Interest::READABLE, &mut receive) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            socket.try_io(Interest::ERROR, receive)
        }
        received => received,
    }
}

/// What the agent is told about an error of the outer socket. The error itself is coarse;
/// beside it the kernel keeps the ICMP message that caused it.
pub(super) fn icmp_error(far: &UdpSocket, key: FlowKey, error: &io::Error) -> Unreachable {
    let queued = iter::from_fn(|| take_error(far).ok()).take(BATCH).last();
    queued_error(queued.as_ref(), key.destination.ip(), error)
}
