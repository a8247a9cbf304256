//! DNS messages, as a forwarder needs them.
//!
//! # Theory of operation
//!
//! The gate stands between a stub resolver inside, which is hostile, and the
//! host's resolvers, which may be. A message passes as bytes, not as a decoded
//! and re-encoded tree, so that every record type works without being known
//! here. What is parsed is the frame: header, the one question, the bounds of
//! every record, and the EDNS record.
//!
//! - [`Query::parse`] takes a question from inside. What is no question can be
//!   told so with [`formerr`].
//! - [`Query::to_upstream`] gives the bytes to send, under an identifier that
//!   the client did not choose.
//! - [`Query::accept`] checks that an answer is to that question, and dresses it
//!   for the client. Anything else is a [`Mismatch`]: to be dropped while the
//!   real answer may still come, as RFC 5452 §9.1 asks.
//! - [`Query::error`] and [`Query::answer`] answer in the gate's own name,
//!   [`Query::fit`] makes an answer fit a datagram.
//!
//! Where names are enforced, an answer is opened as well: [`Answer`] knows which
//! addresses belong to the question, and writes anew what the client may see.

mod age;
mod answer;
mod data;
mod filter;
mod message;
mod name;
mod opened;
mod own;
mod query;
mod service;
#[cfg(test)]
mod tests;

use std::fmt;

pub use age::Aging;
pub use answer::{
    ExtendedError, Mismatch, Rcode, formerr, is_failure, is_truncated, is_unknown, name_exists,
};
pub use data::Data;
pub use name::{Below, Name};
pub use opened::{Answer, Resource};
pub use own::Own;
pub use query::Query;
pub use service::Service;

use crate::cursor::Short;

/// Why bytes are not a DNS message that can be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the message ends early")]
    Short,
    #[error("bytes follow the last record")]
    Trailing,
    #[error("a name is longer than DNS allows or its compression does not end")]
    Name,
    #[error("the message is a response, not a query")]
    NotAQuery,
    #[error("opcode {0} is not a standard query")]
    Opcode(u8),
    #[error("{0} questions, not one")]
    Questions(u16),
    #[error("a query carries answers")]
    AnswersInQuery,
    #[error("an EDNS record is repeated or out of place")]
    Edns,
    #[error("a record of type {0} does not hold what its type has")]
    Data(Type),
    #[error("the message has more records than are looked at, or is too long without compression")]
    TooLong,
}

impl From<Short> for Malformed {
    fn from(Short: Short) -> Self {
        Malformed::Short
    }
}

/// A record type. `Display` gives its mnemonic, or `TYPE` and the number (RFC 3597).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type(pub u16);

impl Type {
    pub const A: Type = Type(1);
    pub const NS: Type = Type(2);
    pub const CNAME: Type = Type(5);
    pub const SOA: Type = Type(6);
    pub const PTR: Type = Type(12);
    pub const MX: Type = Type(15);
    pub const TXT: Type = Type(16);
    pub const DS: Type = Type(43);
    pub const DNSKEY: Type = Type(48);
    pub const AAAA: Type = Type(28);
    pub const SRV: Type = Type(33);
    pub const DNAME: Type = Type(39);
    pub const OPT: Type = Type(41);
    pub const SVCB: Type = Type(64);
    pub const HTTPS: Type = Type(65);
    pub const ANY: Type = Type(255);
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Type::A => "A",
            Type::NS => "NS",
            Type::CNAME => "CNAME",
            Type::SOA => "SOA",
            Type::PTR => "PTR",
            Type::MX => "MX",
            Type::TXT => "TXT",
            Type::AAAA => "AAAA",
            Type::SRV => "SRV",
            Type::DNAME => "DNAME",
            Type::OPT => "OPT",
            Type::SVCB => "SVCB",
            Type::HTTPS => "HTTPS",
            Type::ANY => "ANY",
            Type(other) => return write!(f, "TYPE{other}"),
        })
    }
}

/// A record class; in practice always [`Class::IN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Class(pub u16);

impl Class {
    pub const IN: Class = Class(1);
    pub const ANY: Class = Class(255);
}
