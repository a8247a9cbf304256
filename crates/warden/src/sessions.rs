//! Sessions that run, as other commands of the same user find them.
//!
//! Each has a socket in the abstract namespace of the host's network: it is no file, so it is
//! gone with its session however that ends, and no path leads to it from inside a sandbox,
//! whose network is another one. Names there are anybody's to take, so both ends look at
//! whose process the other is.

use std::{
    fs,
    hash::{BuildHasher as _, RandomState},
    io::{self, Read as _, Write as _},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    process,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with},
    process::getuid,
};
use stockade_sys::socket::peer;

use crate::journal::LogDirectory;

/// A name for this session that sorts by time and is never used twice: containers that share a
/// home have processes of the same number.
pub fn identifier() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |now| now.as_secs());
    let random = RandomState::new().hash_one(seconds) & 0xffff;
    format!("{seconds:010}-{}-{random:04x}", process::id())
}

/// The number of the process whose session has this identifier.
pub fn process_of(id: &str) -> Option<u32> {
    id.split('-').nth(1)?.parse().ok()
}

/// Sorts identifiers by the time of their sessions, as far as that is known: as text, process
/// 10 would come before 9.
pub fn sort(identifiers: &mut [String]) {
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    identifiers.sort_by_cached_key(|id| {
        let second = id.split('-').next().unwrap_or_default();
        (number(second), process_of(id), id.clone())
    });
}

pub(crate) fn listen(id: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&address(id)?)
}

/// A connection to a session. Nothing if it is gone, or is not this user's.
pub fn connect(id: &str) -> io::Result<Option<UnixStream>> {
    connect_to(&format!("{}{id}", prefix()))
}

fn connect_to(name: &str) -> io::Result<Option<UnixStream>> {
    // Without waiting: a name may be somebody else's, who never answers.
    let kind = SocketType::STREAM;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
    let Ok(address) = SocketAddrUnix::new_abstract_name(name.as_bytes()) else {
        // Longer than any that a session has.
        return Ok(None);
    };
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {
            let stream = UnixStream::from(socket);
            stream.set_nonblocking(false)?;
            Ok(is_mine(&stream).then_some(stream))
        }
        Err(Errno::CONNREFUSED | Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the process at the other end is the same user's.
pub(crate) fn is_mine(stream: &UnixStream) -> bool {
    peer(stream).is_ok_and(|peer| peer.user == getuid().as_raw())
}

/// The identifiers of all sessions that seem to be there, the oldest first.
pub fn all() -> io::Result<Vec<String>> {
    named(&prefix())
}

/// What follows this prefix in names of sockets.
fn named(prefix: &str) -> io::Result<Vec<String>> {
    let prefix = format!("@{prefix}");
    // Names of others' sockets may be any bytes.
    let table = fs::read("/proc/net/unix")?;
    let mut found: Vec<String> = String::from_utf8_lossy(&table)
        .lines()
        .filter_map(|line| line.split_whitespace().last()?.strip_prefix(&prefix))
        .map(str::to_owned)
        .collect();
    sort(&mut found);
    found.dedup();
    Ok(found)
}

/// Those that run, the oldest first: by their logs, and by their sockets where they could not be
/// logged.
///
/// # Errors
/// If the kernel does not tell about sockets.
pub fn running(directory: &LogDirectory) -> io::Result<Vec<String>> {
    let mut ids = directory.sessions();
    ids.retain(|id| directory.is_running(id));
    for id in all()? {
        if !ids.contains(&id) && connect(&id)?.is_some() {
            ids.push(id);
        }
    }
    sort(&mut ids);
    Ok(ids)
}

/// A socket at which sessions that begin say so. Whoever has one is told of each before its command
/// runs, and does not miss what it asks first.
///
/// # Errors
/// If there can be no such socket.
pub fn hear_of_sessions() -> io::Result<UnixListener> {
    let name = format!("{}{}", watchers(), process::id());
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// The session that says so over this connection. Nothing if it is not this user's, or is slow.
pub fn begun(stream: &UnixStream) -> Option<String> {
    const LONGEST: u64 = 64;
    let mut id = String::new();
    stream
        .set_read_timeout(Some(Duration::from_millis(200)))
        .ok()?;
    let _ = stream.take(LONGEST).read_to_string(&mut id);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_one = is_mine(stream) && !id.is_empty() && id.bytes().all(is_name);
    is_one.then_some(id)
}

/// Tells all who hear of sessions. Whether there is one.
pub(crate) fn tell_watchers(id: &str) -> io::Result<bool> {
    let mut is_heard = false;
    for name in named(&watchers())? {
        if let Some(mut stream) = connect_to(&format!("{}{name}", watchers()))? {
            is_heard |= stream.write_all(id.as_bytes()).is_ok();
        }
    }
    Ok(is_heard)
}

fn watchers() -> String {
    format!("stockade-watch/{}/", getuid().as_raw())
}

fn address(id: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{}{id}", prefix()))
}

fn prefix() -> String {
    format!("stockade/{}/", getuid().as_raw())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn processes_of_one_number_have_names_of_their_own() {
        let names: HashSet<_> = (0..16).map(|_| identifier()).collect();
        assert!(names.len() > 8, "{names:?}");
        assert!(
            names
                .iter()
                .all(|name| process_of(name) == Some(process::id()))
        );
        let mut names = ["5-10-a", "5-9-b", "4-99-c"].map(str::to_owned);
        sort(&mut names);
        assert_eq!(names, ["4-99-c", "5-9-b", "5-10-a"]);
    }
}
