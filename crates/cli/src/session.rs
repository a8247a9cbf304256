//! Sessions that run, as other commands of the same user find them.
//!
//! Each has a socket in the abstract namespace of the host's network: it is no file, so it is
//! gone with its session however that ends, and no path leads to it from inside a sandbox,
//! whose network is another one. Names there are anybody's to take, so both ends look at
//! whose process the other is.

use std::{
    fs, io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{net::sockopt::socket_peercred, process::getuid};

/// A name for this session that sorts by time and is never used twice.
pub(crate) fn identifier() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |now| now.as_secs());
    format!("{seconds:010}-{}", process::id())
}

pub(crate) fn listen(id: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&address(id)?)
}

/// A connection to a session. Nothing if it is gone, or is not this user's.
pub(crate) fn connect(id: &str) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect_addr(&address(id)?) {
        Ok(stream) if is_mine(&stream) => Ok(Some(stream)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the process at the other end is the same user's.
pub(crate) fn is_mine(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid == getuid())
}

/// The identifiers of all sessions that seem to be there, the oldest first.
pub(crate) fn all() -> io::Result<Vec<String>> {
    let prefix = format!("@{}", prefix());
    let table = fs::read_to_string("/proc/net/unix")?;
    let mut found: Vec<String> = table
        .lines()
        .filter_map(|line| line.split_whitespace().last()?.strip_prefix(&prefix))
        .map(str::to_owned)
        .collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn address(id: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{}{id}", prefix()))
}

fn prefix() -> String {
    format!("stockade/{}/", getuid().as_raw())
}
