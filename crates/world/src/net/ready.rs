//! Waiting until a wire carries packets.
//!
//! An interface whose other end comes up later than itself is switched on by a
//! worker of the kernel, some time after. Until then it drops what it should
//! send, and a lost first SYN costs a test a second. So each new host asks its
//! router, at a port that nobody serves, until the refusal comes back: then
//! both directions work, and the neighbours know each other.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use rustix::net::netdevice::name_to_index;

use super::Host;
use crate::error::{Doing, Error, Result};
use crate::wait::PATIENCE;

/// Who answers at the other end of an interface.
#[derive(Clone, Copy)]
pub(super) enum Neighbour {
    /// The router, by the link-local address that it has on every wire.
    Router,
    /// Somebody with an address.
    At(IpAddr),
}

/// `tcpmux`, which nobody has served for decades and no world does at once.
const UNSERVED_PORT: u16 = 1;

const PAUSE: Duration = Duration::from_millis(5);

pub(super) fn wait(host: &Host, interface: &str, neighbour: Neighbour) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    host.enter(|| {
        while !refused(interface, neighbour)
            .doing(format_args!("probe {interface} of {}", host.name()))?
        {
            if Instant::now() >= deadline {
                return Err(Error::Overdue {
                    what: format!("{interface} of {} carries packets", host.name()),
                    limit: PATIENCE,
                    seen: "no answer from the other end".to_owned(),
                });
            }
        }
        Ok(())
    })
}

/// One question. `false`: no answer within the pause.
fn refused(interface: &str, neighbour: Neighbour) -> io::Result<bool> {
    let socket = match neighbour {
        Neighbour::At(IpAddr::V4(_)) => UdpSocket::bind("0.0.0.0:0")?,
        Neighbour::At(IpAddr::V6(_)) | Neighbour::Router => UdpSocket::bind("[::]:0")?,
    };
    let address = match neighbour {
        Neighbour::At(address) => SocketAddr::new(address, UNSERVED_PORT),
        Neighbour::Router => {
            let router = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
            let scope = name_to_index(&socket, interface)?;
            SocketAddrV6::new(router, UNSERVED_PORT, 0, scope).into()
        }
    };
    socket.set_read_timeout(Some(PAUSE))?;
    let answer = socket
        .connect(address)
        .and_then(|()| socket.send(b"?"))
        .and_then(|_| socket.recv(&mut [0; 1]));
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(true),
        Err(_) => {
            // Errors that come at once, such as an address not yet usable,
            // must not make this a busy loop.
            std::thread::sleep(PAUSE);
            Ok(false)
        }
    }
}
