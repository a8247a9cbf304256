//! Datagrams: there and back, and one way.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::timing;
use crate::bench::server::DATAGRAM;
use crate::bench::task::Exchanges;

/// A lost datagram costs this much; long enough that a late one is a lost one.
const TIMEOUT: Duration = Duration::from_millis(250);
/// Between two looks at the clock.
const BURST: u32 = 32;

pub(super) fn connected(server: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    Ok(socket)
}

pub(super) fn echo(server: SocketAddr, seconds: f64) -> Result<Exchanges> {
    timing::repeat(1, seconds, |_| {
        let socket = connected(server)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        let mut number = 0_u64;
        Ok(move || {
            number += 1;
            let mut datagram = [0; DATAGRAM];
            let (head, _) = datagram.split_at_mut(8);
            head.copy_from_slice(&number.to_be_bytes());
            socket.send(&datagram)?;
            // Late answers to earlier datagrams may come first.
            let mut answer = [0; DATAGRAM];
            while answer != datagram {
                socket.recv(&mut answer)?;
            }
            Ok(())
        })
    })
}

/// How many were delivered, the server knows; this counts what was sent.
pub(super) fn flood(server: SocketAddr, seconds: f64) -> Result<Exchanges> {
    let socket = connected(server)?;
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(seconds);
    let (mut sent, mut failed) = (0_u64, 0);
    while Instant::now() < end {
        for _ in 0..BURST {
            match socket.send(&[0; DATAGRAM]) {
                Ok(_) => sent += 1,
                Err(_) => failed += 1,
            }
        }
    }
    Ok(Exchanges {
        per_second: sent as f64 / start.elapsed().as_secs_f64(),
        p50: 0.0,
        p99: 0.0,
        failed,
    })
}
