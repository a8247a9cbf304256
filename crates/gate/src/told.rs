//! What the agent is told about an error that the gate met outside, so that its own call
//! fails as it would have failed there.

use std::io;

use rustix::io::Errno;
use stockade_wire::packet::Unreachable;

pub(crate) fn unreachable(error: &io::Error) -> Unreachable {
    match Errno::from_io_error(error) {
        Some(Errno::CONNREFUSED) => Unreachable::Port,
        Some(Errno::NETUNREACH) => Unreachable::Network,
        Some(Errno::ACCESS | Errno::PERM) => Unreachable::AdminProhibited,
        _ => Unreachable::Host,
    }
}
