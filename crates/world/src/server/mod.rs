//! Servers on hosts: threads of the test process, in the host's network.
//!
//! A server runs until it is stopped or the world ends; dropping its handle
//! does nothing, so a test that does not care keeps none. Handles tell the
//! server's address and what it saw.

mod dns;
mod http;
mod listen;
mod tcp;
mod tls;
mod udp;

pub use dns::{DnsServer, Misbehaviour, Query, Transport};
pub use http::{HttpServer, Page, Request, Site};
pub use listen::Endpoint;
pub(crate) use listen::Stop;
pub use tcp::{Connection, Stream, TcpServer};
pub use tls::{Authority, ServerIdentity};
pub use udp::{Datagram, UdpServer};
