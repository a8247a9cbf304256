//! Name queries, each for a name that nobody has asked before, so that no
//! cache answers, and each from a socket of its own, as the C library's
//! resolver does it.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::{TIMEOUT, timing, udp};
use crate::bench::task::Exchanges;

pub(super) fn ask(server: Option<SocketAddr>, threads: usize, seconds: f64) -> Result<Exchanges> {
    let server = match server {
        Some(server) => server,
        None => configured()?,
    };
    let nonce = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_micros());
    timing::repeat(threads, seconds, |thread| {
        let mut number = 0_u16;
        let mut answer = [0; 1500];
        Ok(move || {
            number = number.wrapping_add(1);
            let label = format!("n{nonce}-{}-{thread}-{number}", process::id());
            let query = query(number, &label);
            let socket = udp::connected(server)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            socket.send(&query)?;
            let count = socket.recv(&mut answer)?;
            check(number, answer.get(..count).unwrap_or_default())
        })
    })
}

/// The first name server of `/etc/resolv.conf`.
fn configured() -> Result<SocketAddr> {
    let text = fs::read_to_string("/etc/resolv.conf").context("cannot read /etc/resolv.conf")?;
    let address = text
        .lines()
        .find_map(|line| line.strip_prefix("nameserver"))
        .and_then(|rest| rest.trim().parse::<IpAddr>().ok())
        .context("/etc/resolv.conf names no server")?;
    Ok((address, 53).into())
}

/// A query for the address of `label.bench.example`.
fn query(id: u16, label: &str) -> Vec<u8> {
    let mut message = Vec::with_capacity(64);
    message.extend_from_slice(&id.to_be_bytes());
    // Recursion desired; one question.
    message.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for part in [label, "bench", "example", ""] {
        message.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
        message.extend_from_slice(part.as_bytes());
    }
    // Type A, class IN.
    message.extend_from_slice(&[0, 1, 0, 1]);
    message
}

/// The answer is to this query, without error, and has one record.
fn check(id: u16, answer: &[u8]) -> io::Result<()> {
    let [high, low] = id.to_be_bytes();
    match answer {
        [h, l, flags, code, _, _, 0, 1, ..]
            if (*h, *l) == (high, low) && flags & 0x80 != 0 && code & 0x0f == 0 =>
        {
            Ok(())
        }
        _ => Err(io::Error::other("not the answer to this query")),
    }
}
