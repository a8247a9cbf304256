//! What can be reached, heard and changed.

use std::{
    io::{self, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixStream},
    },
    path::Path,
    time::Duration,
};

use stockade_sys::{
    nft::Ruleset,
    packet::Injector,
    process,
    rtnl::{LOOPBACK, Routing},
    transparent::{self, Family},
};

use crate::verify::messages::{Changes, Target, Transport, Tried};

/// A denial comes at once, and so does an answer of this machine.
const PATIENCE: Duration = Duration::from_secs(1);

pub(in crate::verify) fn ask(target: &Target) -> Tried {
    let said = match target.transport {
        Transport::Tcp => ask_by_tcp(target.address),
        Transport::Udp => ask_by_udp(target.address, b"?"),
    };
    match said {
        Ok(said) => Tried::Worked(String::from_utf8_lossy(&said).into_owned()),
        Err(error) => Tried::from_error(&error),
    }
}

fn ask_by_tcp(address: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut said = [0; 256];
    // Whoever takes a connection is reached, also if nothing is said.
    let length = stream.read(&mut said).unwrap_or_default();
    Ok(said[..length].to_vec())
}

fn ask_by_udp(address: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let socket = UdpSocket::bind((Family::of(address.ip()).unspecified(), 0))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(question)?;
    let mut said = [0; 512];
    let length = socket.recv(&mut said)?;
    Ok(said[..length].to_vec())
}

/// Where the prober listens, on all its addresses, and whether it heard itself there. A
/// process of its own says the token to whoever comes, until the session ends.
pub(super) fn listen(token: &str) -> Option<(u16, Tried)> {
    let v4 = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    let port = v4.local_addr().ok()?.port();
    // Without IPv6 there is none.
    let v6 = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).ok();
    process::fork(|| {
        let _v6 = v6;
        for mut stream in v4.incoming().flatten() {
            // Whoever does not listen has come all the same.
            let _ = stream.write_all(token.as_bytes());
        }
        0
    })
    .ok()?;
    let own = Target {
        transport: Transport::Tcp,
        address: (Ipv4Addr::LOCALHOST, port).into(),
    };
    Some((port, ask(&own)))
}

pub(super) fn connect_to_file(path: &Path) -> Tried {
    let stream = UnixStream::connect(path).map(drop);
    let is_of_another_kind = |error: &io::Error| {
        error.raw_os_error() == Some(rustix::io::Errno::PROTOTYPE.raw_os_error())
    };
    match stream {
        // It is there, and takes datagrams.
        Err(error) if is_of_another_kind(&error) => UnixDatagram::unbound()
            .and_then(|socket| socket.connect(path))
            .into(),
        other => other.into(),
    }
}

pub(super) fn connect_to_abstract(name: &str) -> Tried {
    UnixAddress::from_abstract_name(name)
        .and_then(|address| UnixStream::connect_addr(&address))
        .map(drop)
        .into()
}

/// Asks a name server for the address of `localhost`, which it has to know without asking
/// anybody: by UDP and by TCP.
pub(super) fn ask_for_localhost(server: SocketAddr) -> Vec<Tried> {
    const QUERY: &[u8] = b"\x53\x74\x01\x00\x00\x01\0\0\0\0\0\0\x09localhost\0\0\x01\0\x01";
    let by_tcp = || -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let length = u16::try_from(QUERY.len()).unwrap_or_default();
        stream.write_all(&[&length.to_be_bytes(), QUERY].concat())?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut answer = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    let judged = |answer: io::Result<Vec<u8>>| match answer {
        Ok(answer) if is_loopback(&answer) => Tried::Worked("127.0.0.1".to_owned()),
        Ok(_) => Tried::Worked("nonsense".to_owned()),
        Err(error) => Tried::from_error(&error),
    };
    vec![judged(ask_by_udp(server, QUERY)), judged(by_tcp())]
}

/// An answer to the question above with an address record at its end.
fn is_loopback(answer: &[u8]) -> bool {
    let address = [0, 4, 127, 0, 0, 1];
    answer.starts_with(b"\x53\x74") && answer.windows(6).any(|bytes| bytes == address)
}

/// Tries to change the network that this process is in.
pub(super) fn change() -> Changes {
    let routing = |change: fn(&mut Routing) -> io::Result<()>| -> Tried {
        Routing::open().and_then(|mut it| change(&mut it)).into()
    };
    // Of no use to anybody, should it come to be.
    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 111));
    Changes {
        link: routing(|it| it.set_up(LOOPBACK)),
        address: routing(|it| it.add_address(LOOPBACK, ADDRESS)),
        route: routing(|it| it.prohibit_link_local(32_000)),
        filter: filter().into(),
        raw: Injector::open().map(drop).into(),
        transparent: transparent::listen(([0; 4], 0).into()).map(drop).into(),
    }
}

/// A chain that drops everything: a session in which that works has no network any more, and
/// is about to end.
pub(super) fn filter() -> io::Result<()> {
    let ruleset = Ruleset {
        table: "stockade-verify",
        chain: "arrival",
        rules: Vec::new(),
    };
    ruleset.install()
}
