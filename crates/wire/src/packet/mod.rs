//! Packets of the network layer: the held SYN, the echo request, and the answers
//! to them.
//!
//! # Theory of operation
//!
//! The gate holds the first packet of each TCP connection: it sees a copy of the
//! SYN that a packet socket caught on the device to the jail, and nothing
//! else has answered yet. From that copy come all of the gate's possible moves:
//!
//! | the dial outside | the gate injects |
//! |---|---|
//! | succeeded | the same SYN, [`Syn::complete`], now marked to pass |
//! | was refused | [`Syn::reset`] |
//! | found no way, or the policy denies it | [`Syn::unreachable`] |
//!
//! An echo request comes to the gate the same way. Outside, it goes through a
//! ping socket, which wants the ICMP message alone and puts an identifier of its
//! own into it: [`Echo::message`]. What that socket receives becomes a packet for
//! the jail again, under the client's identifier, by [`Echo::reply`]; or the gate
//! answers with [`Echo::unreachable`]. A UDP datagram is read by [`Udp`], or put together
//! by [`Fragments`]; sockets carry it on, and the answers. [`udp_unreachable`] says that
//! one got nowhere.
//!
//! Two facts about that device shape the code. It claims to compute the
//! checksums of transports, so the kernel leaves a partial one in the packet: it
//! is neither checked here nor trusted, but made anew. And a captured packet may
//! be longer than the IP header says: what follows is padding, and is cut.
//!
//! An attempt at the jail's own loopback is none of the gate's business, but that
//! nobody listens there may be worth a hint: [`Refused`] reads the kernel's answer. Packets
//! of other protocols are refused: [`Foreign`].
//!
//! The TCP options are never parsed. They are between the kernel inside, which
//! wrote them, and the same kernel, which gets them back.

mod checksum;
mod echo;
mod foreign;
mod ip;
mod refused;
mod syn;
#[cfg(test)]
mod tests;
mod udp;
mod unreachable;

pub use echo::Echo;
pub use foreign::Foreign;
pub use refused::Refused;
pub use syn::Syn;
pub use udp::{Fragments, Udp};
pub use unreachable::{Unreachable, udp_unreachable};

use crate::cursor::Short;

/// Why bytes are not a packet that the gate can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the packet ends inside a header")]
    Short,
    #[error("IP version {0}")]
    Version(u8),
    #[error("a length field contradicts the packet")]
    Length,
    #[error("the IP header checksum is wrong")]
    Checksum,
    #[error("the packet is a fragment")]
    Fragment,
    #[error("the packet asks for a source route")]
    SourceRoute,
    #[error("protocol or extension header {0}, not the one expected")]
    Protocol(u8),
    #[error("a port is zero")]
    PortZero,
    #[error("TCP flags {0:#04x}, not those of a SYN")]
    NotSyn(u8),
    #[error("TCP flags {0:#04x}, not the answer to a SYN that met nobody")]
    NotRefusal(u8),
    #[error("ICMP type {0} code {1}, not an echo request")]
    NotEchoRequest(u8, u8),
}

impl From<Short> for Malformed {
    fn from(Short: Short) -> Self {
        Malformed::Short
    }
}
