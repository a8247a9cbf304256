//! What identifies a connection of the agent.

use std::net::SocketAddr;

/// The two ends of a connection as the agent sees them.
///
/// `client` is an address in the jail, `destination` one that the agent wants to reach
/// outside; only the latter may ever be dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    pub(crate) client: SocketAddr,
    pub(crate) destination: SocketAddr,
}
