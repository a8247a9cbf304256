//! The names in a plain HTTP/1 connection: of every request, not only the first.
//!
//! # Theory of operation
//!
//! The gate holds what a client sends until [`Requests`] has said what it is. Heads
//! of requests are held until they are complete and judged; bodies stream through.
//! To find the next head the length of each body must be known for sure, so
//! everything that two readers could understand differently is refused: this is
//! the one place where a filter and a server can be brought to disagree.
//!
//! ```text
//! loop {
//!     match requests.step(&held) {
//!         Step::NeedMore => read more into held,
//!         Step::Release(count) => send and drop that many,
//!         Step::Head(head) => judge(&head)?; send and drop head.length,
//!         Step::Opaque => send all, and splice from now on,
//!         Step::NotHttp => judge by the address alone; splice from now on,
//!         Step::Broken(why) => deny,
//!     }
//! }
//! ```
//!
//! What is held when the client ends is no complete request; [`Requests::may_end`] tells
//! whether it is something else. Nothing here holds the server's bytes. If the server spoke first,
//! and not HTTP, the caller says so with [`Requests::greeted`]: then only a line that names HTTP is a
//! request.
//!
//! **When it is HTTP.** A first line with a method and `HTTP/` or another protocol's version, or
//! with a method in capitals and a path, is a request to some server, however sloppily it is written.
//! Such a line has to be right in every detail. [`Step::NotHttp`] is said only of what
//! no server takes for a request, mostly at the first byte; it may need the whole
//! first line if that starts like a word. Some servers take any bytes for a method, so what is
//! let through unread is still shown to [`FirstLine`], to [`Unanswered`] before the server has
//! spoken, and to [`LateRequest`] after that.
//!
//! **After an upgrade.** Only WebSocket is let through, as the first request of its
//! connection, which is how clients do it. If the server's first answer is 101
//! ([`is_switch`]), the caller says so with [`Requests::switched`] *before* it passes
//! that answer on. Until then the client has nothing to say, and what it says is read
//! as a request.

mod authority;
mod chunked;
mod glance;
mod head;
mod lines;
mod opening;
mod requests;
#[cfg(test)]
mod tests;
mod unanswered;

pub use authority::Authority;
pub use glance::{Opened, open};
pub use opening::{FirstLine, LateRequest};
pub use requests::Requests;
pub use unanswered::Unanswered;

/// The longest head of a request, and the most that trailers may be.
pub const MAX_HEAD: usize = 64 * 1024;
/// The most header fields of a request.
pub const MAX_FIELDS: usize = 128;

/// What to do with the bytes that are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Ask again with these bytes and more.
    NeedMore,
    /// The first so many belong to a request that was judged.
    Release(usize),
    /// A request begins. To ask again, without its head, is to let it pass.
    Head(Head),
    /// Nothing from here on is read: the connection was switched.
    Opaque,
    /// The connection does not start as HTTP.
    NotHttp,
    Broken(Broken),
}

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The server that is meant. Nothing only for HTTP/1.0, which may leave it out.
    pub authority: Option<Authority>,
    pub kind: Kind,
    /// How many of the bytes that are held are the head.
    pub length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Plain,
    /// The connection turns into a WebSocket if the server agrees.
    WebSocket,
    /// A tunnel to the authority is asked for. What follows is not read.
    Connect,
}

/// Whether an answer that starts like this is "101 Switching Protocols". Nothing
/// while it cannot be known.
pub fn is_switch(answer: &[u8]) -> Option<bool> {
    const SWITCH: &[u8] = b"HTTP/1.1 101";
    match answer.strip_prefix(SWITCH) {
        Some([]) => None,
        Some([next, ..]) => Some(matches!(next, b' ' | b'\r')),
        None if SWITCH.starts_with(answer) => None,
        None => Some(false),
    }
}

/// Why something that claims to be HTTP is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("the first line names HTTP, but does not start like a request")]
    Disguised,
    #[error("a request follows something else in its connection")]
    Late,
    #[error("fields of a request follow a first line that a server could take for one")]
    Behind,
    #[error("a URL follows the first word, so a server could take the line for a request")]
    Url,
    #[error("a request starts with white space or an empty line")]
    LeadingSpace,
    #[error("a line ends without a carriage return")]
    BareLf,
    #[error("a carriage return stands inside a line")]
    BareCr,
    #[error("a head contains a zero byte")]
    Nul,
    #[error("the head is longer than {MAX_HEAD} bytes")]
    HeadTooLong,
    #[error("the request line is not as HTTP/1 has it")]
    RequestLine,
    #[error("the request is not of HTTP/1.0 or HTTP/1.1")]
    Version,
    #[error("HTTP/2 without TLS is not followed; use HTTP/1.1")]
    Http2,
    #[error("the target of the request is not a path, an http URL, or what its method takes")]
    Target,
    #[error("a header field is malformed, folded, or has space before its colon")]
    Field,
    #[error("there are more than {MAX_FIELDS} header fields")]
    TooManyFields,
    #[error("the request has no Host")]
    NoHost,
    #[error("the request has more than one Host")]
    ManyHosts,
    #[error("the Host is not a name or address with an optional port")]
    Host,
    #[error("the URL names another server than the Host does")]
    OtherHost,
    #[error("the length of the body is not one plain number")]
    ContentLength,
    #[error("the body has a transfer encoding other than chunked, or that and a length")]
    TransferEncoding,
    #[error("a field that tells the length of the body, or the Host, is hidden or disguised")]
    Disguise,
    #[error("an upgrade to something other than WebSocket, or not on a new connection")]
    Upgrade,
    #[error("a chunk of the body does not start or end as it should")]
    Chunk,
    #[error("the body is followed by trailers that are malformed, too long, or meant for the head")]
    Trailer,
}
