//! Input of the sockets that face the agent, in turns.

use std::{io, os::fd::AsRawFd};

use tokio::{io::unix::AsyncFd, task::yield_now};

/// Waiting for a socket that is ready does not give the thread away, so a flood of packets could
/// keep it forever. After so many the others have their turn.
const AT_ONCE: usize = 128;

/// Has `handle` receive packets, one or several at a time, until the gate ends. It tells how many it
/// received, and fails with `WouldBlock` when nothing is left; a packet that cannot be received is
/// lost, as on any network.
pub(crate) async fn for_each_packet<T: AsRawFd>(
    socket: &AsyncFd<T>,
    handle: impl FnMut(&T) -> io::Result<usize>,
) {
    for_each_packet_after(socket, async || {}, handle).await;
}

/// The same, and waits for `pause` before each time.
pub(crate) async fn for_each_packet_after<T: AsRawFd>(
    socket: &AsyncFd<T>,
    pause: impl AsyncFn(),
    mut handle: impl FnMut(&T) -> io::Result<usize>,
) {
    while let Ok(mut ready) = socket.readable().await {
        pause().await;
        let mut received = 0;
        while let Ok(count) = ready.try_io(|socket| handle(socket.get_ref())) {
            received += count.unwrap_or(1);
            if received >= AT_ONCE {
                yield_now().await;
                break;
            }
            pause().await;
        }
    }
}
