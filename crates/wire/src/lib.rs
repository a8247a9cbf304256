//! Bytes in, typed values out.
//!
//! Everything that the program inside the jail, or a server outside, can put
//! on the wire is parsed here and nowhere else. The crate does no I/O and keeps
//! no state but that of a stream it reads, so each parser is a function that a
//! test or a fuzzer can call.
//!
//! Rules of the room:
//! - one cursor (`cursor.rs`) does all reading; nothing indexes a slice;
//! - a value of a type is valid: what could not be parsed is a `Malformed`, and
//!   no accessor can fail;
//! - no input panics, and the work done is linear in its length.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used,
    )
)]

mod cursor;
pub mod dns;
pub mod http;
pub mod packet;
pub mod proxy;
pub mod quic;
pub mod tls;
