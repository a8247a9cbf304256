//! The name in a TLS ClientHello, as far as it shows.
//!
//! # Theory of operation
//!
//! A client that means a name says so in its first message, in the clear. The
//! gate holds what a client sent until [`inspect`] has an opinion on it:
//!
//! - [`Inspection::NotTls`] as soon as no TLS server would take it for a hello,
//!   mostly at the first byte;
//! - [`Inspection::Broken`] if it claims to be TLS and is not as every server
//!   would read it. Two readers of one hello are how a filter is fooled;
//! - [`Inspection::Hello`] otherwise. It may be split over records and segments
//!   at any byte.
//!
//! A connection that begins in the clear may go over to TLS later. [`Search`] finds the hello
//! then, wherever it stands.
//!
//! A server may ask for a second hello (RFC 8446 §4.1.4), and some servers
//! believe the name in that one. [`Handshake`] follows what the client sends
//! after the first, until no other hello can come.
//!
//! # Encrypted hellos
//!
//! With Encrypted Client Hello the name that is seen is the *outer* one. Browsers send the extension
//! to every server, and nobody but the server can tell a key from noise (GREASE). So [`Hello::ech`]
//! is no reason to refuse: the outer name is judged as any other, and the gate's DNS takes the keys
//! out of HTTPS records. A client that brings its keys along can front (docs/decisions/0008).

mod follow;
mod hello;
mod late;
mod records;
#[cfg(test)]
mod tests;

pub use follow::{Handshake, Next};
pub use late::{Late, SPARE_WORK, Search};
pub use records::inspect;

/// The longest hello that is read. Post-quantum key shares make hellos of two to
/// ten kilobytes; no client comes near this.
pub const MAX_HELLO: usize = 64 * 1024;

/// What a client's first bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inspection {
    /// Ask again when there is more.
    NeedMore,
    NotTls,
    Hello(Hello),
    Broken(Broken),
}

/// What can be known from a hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The server that the client asks for, in lower case: letters, digits,
    /// hyphens, underscores and dots, at least one byte. Whether that is a host
    /// name, or an address written as one, is for the caller to judge.
    pub server_name: Option<String>,
    /// Whether there may be another name inside, which only the server can read.
    pub ech: bool,
    /// Whether the client may send data before the server has answered.
    pub early_data: bool,
    /// How many bytes of what the client sent are the hello.
    pub length: usize,
}

/// Why something that claims to be TLS is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("the hello has the format of SSL 2, which carries no server name")]
    Ssl2,
    #[error("the connection starts with a TLS record of type {0}, not with a hello")]
    NoHandshake(u8),
    #[error("a record has version {0:#06x}, not one of TLS 1.0 to 1.3")]
    RecordVersion(u16),
    #[error("a record is empty")]
    EmptyRecord,
    #[error("a record of {0} bytes is longer than TLS allows")]
    RecordLength(u16),
    #[error("the hello is split over too many records")]
    Records,
    #[error("a record of type {0} interrupts the hello")]
    Interrupted(u8),
    #[error("handshake message {0} comes where a ClientHello is expected")]
    NoHello(u8),
    #[error("the hello is longer than {MAX_HELLO} bytes")]
    TooLong,
    #[error("more follows in the record in which the hello ends")]
    Trailing,
    #[error("the hello has version {0:#06x}, not one of TLS 1.0 to 1.3")]
    HelloVersion(u16),
    #[error("a length inside the hello is wrong")]
    Length,
    #[error("the extension {0} stands twice in the hello")]
    Twice(u16),
    #[error("the server name has no entry, or more than one")]
    Names,
    #[error("the server name is of type {0}, not a host name")]
    NameType(u8),
    #[error("the server name is empty, longer than 255 bytes, or has bytes that no host name has")]
    Name,
    #[error("a second hello asks for another server name than the first")]
    OtherName,
    #[error("too many starts of hellos lie inside each other")]
    Nested,
}
