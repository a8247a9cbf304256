//! Input of the sockets that face the agent, in turns.

use std::{io, os::fd::AsRawFd};

use tokio::{io::unix::AsyncFd, task::yield_now};

/// Waiting for a socket that is ready does not give the thread away, so a flood of packets could
/// keep it forever. After so many the others have their turn.
const AT_ONCE: u32 = 128;

/// Has `handle` receive one packet after the other, until the gate ends. It fails with
/// `WouldBlock` when nothing is left; a packet that cannot be received is lost, as on any network.
pub(crate) async fn for_each_packet<T: AsRawFd>(
    socket: &AsyncFd<T>,
    mut handle: impl FnMut(&T) -> io::Result<()>,
) {
    while let Ok(mut ready) = socket.readable().await {
        let mut handle = || ready.try_io(|socket| handle(socket.get_ref())).is_ok();
        if (0..AT_ONCE).all(|_| handle()) {
            yield_now().await;
        }
    }
}
