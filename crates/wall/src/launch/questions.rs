//! The socket for questions from inside.

use std::{io, os::fd::OwnedFd, path::Path};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

/// Programs inside that may wait for an answer at a time.
const BACKLOG: i32 = 64;

/// A socket that listens. It is this process that does, so the kernel tells whoever connects that its
/// peer is not in their process namespace: no program inside can listen like that. It is a file in a
/// directory that will be frozen, so it needs no cover of its own.
pub(super) fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}
