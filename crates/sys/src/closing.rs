//! Descriptors that the kernel closes in a thread of its own.

use std::{
    io,
    mem::MaybeUninit,
    ops::Deref,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixDatagram,
    },
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// A descriptor that is slow to close, and need not be waited for.
///
/// Whoever closes a packet socket or a set of inotify watches waits until no processor can be
/// looking at it any more: ten milliseconds and more, one descriptor after the other, at the end
/// of each session. The end of the process waits just as long. So the descriptor is left to the
/// kernel instead: sent to a Unix socket that is in flight itself, to itself, and that nobody else
/// has. Such sockets are garbage which the kernel collects, since Linux 6.9 in a thread of its
/// own. Before, it does so here, and the wait is what it was.
#[derive(Debug)]
pub struct SlowToClose<T: AsFd> {
    descriptor: T,
    // Dropped in this order: the end of the sender is what starts the collection.
    receiver: UnixDatagram,
    sender: UnixDatagram,
}

impl<T: AsFd> SlowToClose<T> {
    pub fn new(descriptor: T) -> io::Result<Self> {
        let (sender, receiver) = UnixDatagram::pair()?;
        Ok(Self {
            descriptor,
            receiver,
            sender,
        })
    }
}

impl<T: AsFd> Deref for SlowToClose<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.descriptor
    }
}

impl<T: AsFd> AsFd for SlowToClose<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl<T: AsFd> Drop for SlowToClose<T> {
    fn drop(&mut self) {
        let descriptors = [self.descriptor.as_fd(), self.receiver.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let message = [io::IoSlice::new(&[0])];
        // What is not sent is closed by us.
        let _ = sendmsg(&self.sender, &message, &mut control, SendFlags::DONTWAIT);
    }
}
