//! What the agent is told about an error that the gate met outside, so that its own call
//! fails as it would have failed there.

use std::{io, net::IpAddr};

use rustix::io::Errno;
use stockade_sys::socket::QueuedError;
use stockade_wire::packet::Unreachable;

pub(crate) fn unreachable(error: &io::Error) -> Unreachable {
    match Errno::from_io_error(error) {
        Some(Errno::CONNREFUSED) => Unreachable::Port,
        Some(Errno::NETUNREACH) => Unreachable::Network,
        Some(Errno::ACCESS | Errno::PERM) => Unreachable::AdminProhibited,
        _ => Unreachable::Host,
    }
}

/// The same for an error of a socket whose kernel keeps the ICMP message that caused it, which
/// says more.
pub(crate) fn queued_error(
    queued: Option<&QueuedError>,
    destination: IpAddr,
    error: &io::Error,
) -> Unreachable {
    match queued.and_then(|queued| queued.unreachable_code) {
        Some(code) => unreachable_code(destination, code),
        None => unreachable(error),
    }
}

/// What an ICMP error outside becomes inside, by its code in the destination's family.
fn unreachable_code(destination: IpAddr, code: u8) -> Unreachable {
    match (destination, code) {
        (IpAddr::V4(_), 3) | (IpAddr::V6(_), 4) => Unreachable::Port,
        (IpAddr::V4(_), 9 | 10 | 13) | (IpAddr::V6(_), 1 | 5 | 6) => Unreachable::AdminProhibited,
        (_, 0) | (IpAddr::V4(_), 6 | 11) => Unreachable::Network,
        _ => Unreachable::Host,
    }
}
