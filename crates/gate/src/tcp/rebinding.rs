//! Whose request comes to a published port.
//!
//! A web page of any site can have its own name point to 127.0.0.1 (DNS rebinding). The user's
//! browser then takes a published port for a part of that site, and the page can use the
//! development server inside like its own. But the browser says the site's name in the Host of
//! each request. So the first request of a connection has to say a name of this machine; browsers
//! use a connection for one name only. What is not HTTP passes, and so does a request without a
//! Host: no browser sends one.

use std::{net::IpAddr, time::Duration};

use stockade_policy::Hostname;
use stockade_wire::http::{Opened, open};
use tokio::{
    io::AsyncReadExt as _,
    net::TcpStream,
    time::{Instant, timeout_at},
};

use crate::names::hosts;

/// How much of a request is looked at. Its line and its Host come first.
const MOST: usize = 64 * 1024;
/// How long the rest of something may take that does not look like a request, and that of what
/// does.
const HESITATION: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(10);

/// What the first bytes from outside are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// Nothing that has to be judged.
    Other,
    /// A request for this host.
    Request(String),
    /// A request whose Host is out of sight.
    Endless,
}

/// Reads what a program of the host says first, as far as it takes to know what it is. A server
/// inside that speaks first speaks no HTTP.
pub(crate) async fn first(inner: &TcpStream, outer: &mut TcpStream, read: &mut Vec<u8>) -> First {
    let mut began = None;
    loop {
        let is_request = match open(read) {
            Opened::Host(host) => return First::Request(host),
            Opened::Other => return First::Other,
            Opened::Undecided { is_request } => is_request,
        };
        if read.len() >= MOST {
            return if is_request {
                First::Endless
            } else {
                First::Other
            };
        }
        read.reserve(MOST - read.len());
        let more = async {
            tokio::select! {
                biased;
                more = outer.read_buf(read) => more,
                _ = inner.readable(), if !is_request => Ok(0),
            }
        };
        let more = match began {
            None => more.await,
            Some(began) => {
                let limit = if is_request { PATIENCE } else { HESITATION };
                match timeout_at(began + limit, more).await {
                    Ok(more) => more,
                    Err(_) if is_request => return First::Endless,
                    Err(_) => Ok(0),
                }
            }
        };
        began.get_or_insert_with(Instant::now);
        // It has ended, or there is nothing to wait for.
        if !matches!(more, Ok(1..)) {
            return First::Other;
        }
    }
}

/// Whether a Host means this machine, whatever a name server says. An address does: a name is
/// what can be made to point elsewhere.
pub(crate) fn is_own(host: &str, machine: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.split_once(']'));
    let (name, port) = match bare {
        Some((address, port)) => (address, port),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return false;
    }
    if name.parse::<IpAddr>().is_ok() {
        return true;
    }
    let Some(name) = Hostname::from_wire(name.as_bytes()) else {
        return false;
    };
    let is_machine = || {
        let known = name.as_str();
        known.eq_ignore_ascii_case(machine)
            || known
                .strip_suffix(".local")
                .is_some_and(|name| name.eq_ignore_ascii_case(machine))
    };
    name.is_localhost() || is_machine() || hosts::is_own(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_port_may_follow_the_name() {
        for own in [
            "localhost",
            "localhost:3000",
            "127.0.0.1:80",
            "[::1]",
            "[::1]:80",
            "pc:",
        ] {
            assert!(is_own(own, "pc"), "{own}");
        }
        for other in [
            "evil.example",
            "[::1].evil.example",
            "[::1]evil.example",
            "127.0.0.1:3000@evil.example",
            "localhost:evil.example",
            "pc:80:80",
        ] {
            assert!(!is_own(other, "pc"), "{other}");
        }
    }
}
