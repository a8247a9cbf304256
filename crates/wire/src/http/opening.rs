//! The first line of a connection: whether it is meant as HTTP.
//!
//! The question is not whether the line is right but whether any server would
//! serve it, because what is not HTTP is not looked at any more. So this reader is
//! as lax as the laxest server: RFC 9112 §3 lets words be separated by any white
//! space, a bare CR included, and old servers take any third word for a version.

use super::lines::is_token;
use super::{Broken, MAX_HEAD};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant {
    Undecided,
    Http,
    NotHttp,
    Broken(Broken),
}

#[derive(Debug, Default)]
pub(super) struct Opening {
    /// Bytes that need no second look.
    seen: usize,
    /// Where the first word ends, once that is known.
    method_end: Option<usize>,
}

impl Opening {
    pub(super) fn look(&mut self, held: &[u8]) -> Meant {
        let held = held.get(..MAX_HEAD).unwrap_or(held);
        let method_end = match self.method_end {
            Some(end) => end,
            None => match self.first_word(held) {
                Ok(end) => *self.method_end.insert(end),
                Err(meant) => return meant,
            },
        };
        let method = held.get(..method_end).unwrap_or_default();
        let fresh = held.get(self.seen..).unwrap_or_default();
        let Some(offset) = fresh.iter().position(|byte| b"\n\0".contains(byte)) else {
            self.seen = held.len();
            return undecided(held);
        };
        let (line, end) = held.split_at(self.seen.saturating_add(offset));
        let rest = line.get(method_end..).unwrap_or_default();
        match end.first() {
            // The protocol of git has the shape of a request line up to here, but its
            // first word is a number.
            Some(0) if is_method(method) || names_http(rest, is_space) => {
                Meant::Broken(Broken::Nul)
            }
            Some(0) => Meant::NotHttp,
            _ if is_request(method, rest) => Meant::Http,
            _ => Meant::NotHttp,
        }
    }

    /// Whether a line that ends with the connection is meant for something else.
    /// No server serves it either way, but some could try.
    pub(super) fn is_foreign(&self, held: &[u8]) -> bool {
        self.method_end.is_none_or(|end| {
            let (method, rest) = held.split_at(end.min(held.len()));
            !is_request(method, rest)
        })
    }

    fn first_word(&mut self, held: &[u8]) -> Result<usize, Meant> {
        let fresh = held.get(self.seen..).unwrap_or_default();
        let Some(offset) = fresh.iter().position(|byte| !is_token(*byte)) else {
            self.seen = held.len();
            return Err(undecided(held));
        };
        self.seen = self.seen.saturating_add(offset);
        match (self.seen, fresh.get(offset..).unwrap_or_default()) {
            // Servers skip that, and find a request behind it.
            (0, [byte, ..]) if is_space(*byte) || *byte == b'\n' => {
                Err(Meant::Broken(Broken::LeadingSpace))
            }
            (0, _) => Err(Meant::NotHttp),
            // A line of one word is no request.
            (_, [b'\r', b'\n', ..] | [b'\n', ..]) => Err(Meant::NotHttp),
            (_, [b'\r']) => Err(undecided(held)),
            (end, [byte, ..]) if is_space(*byte) => Ok(end),
            _ => Err(Meant::NotHttp),
        }
    }
}

fn undecided(held: &[u8]) -> Meant {
    if held.len() < MAX_HEAD {
        Meant::Undecided
    } else {
        Meant::Broken(Broken::HeadTooLong)
    }
}

/// White space between words, to somebody.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r')
}

fn is_request(method: &[u8], rest: &[u8]) -> bool {
    names_http(rest, is_space)
        || METHODS.contains(&method)
        || (is_any_method(method) && leads_somewhere(rest))
}

/// A word in capitals, or what some servers take for a method in whatever letters.
fn is_any_method(word: &[u8]) -> bool {
    is_method(word) || METHODS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// What servers know without looking further: some take any target after it, in the form
/// that HTTP/0.9 had. The last one is no method but a line that proxies put before the first
/// request, and that servers may be told to expect.
const METHODS: [&[u8]; 10] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH",
    b"PROXY",
];

fn is_method(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_uppercase)
}

/// Whether a word starts with the name of the protocol.
fn names_http(rest: &[u8], is_space: impl Fn(u8) -> bool) -> bool {
    rest.windows(6).any(|place| match place {
        [space, word @ ..] => is_space(*space) && word.eq_ignore_ascii_case(b"HTTP/"),
        [] => false,
    })
}

/// The first line of what a client sends, for who lets it pass unread: whether a server that
/// minds nothing else could take it for a request by its last word. Lines that begin like a
/// request are [`Opening`]'s; this is for those that do not, and costs their clients no time.
#[derive(Debug, Default)]
pub struct FirstLine {
    seen: usize,
    is_over: bool,
    names_http: bool,
    /// The last bytes, in which the name of the protocol may have begun.
    last: Vec<u8>,
}

impl FirstLine {
    /// Looks at the next bytes, before they leave.
    pub fn pass(&mut self, bytes: &[u8]) {
        if self.is_over {
            return;
        }
        let room = MAX_HEAD.saturating_sub(self.seen);
        let bytes = bytes.get(..room).unwrap_or(bytes);
        self.seen = self.seen.saturating_add(bytes.len());
        // Some servers end a line at CR LF only.
        let before = self.last.last().into_iter().chain(bytes);
        let mut pairs = before.zip(
            bytes
                .get(usize::from(self.last.is_empty())..)
                .unwrap_or_default(),
        );
        let end = pairs.position(|pair| pair == (&b'\r', &b'\n'));
        let line = end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
        self.last.extend_from_slice(line);
        // Some servers take any byte that does not show for white space.
        self.names_http |= names_http(&self.last, |byte| !byte.is_ascii_graphic());
        self.is_over = end.is_some() || self.seen >= MAX_HEAD;
        let old = if self.is_over { 0 } else { 5 };
        self.last.drain(..self.last.len().saturating_sub(old));
    }

    /// Whether it names HTTP, as far as it was seen.
    pub fn names_http(&self) -> bool {
        self.names_http
    }
}

/// Whether what follows the method is a path or a URL.
fn leads_somewhere(rest: &[u8]) -> bool {
    let start = rest.iter().position(|byte| !is_space(*byte));
    let target = start.and_then(|at| rest.get(at..)).unwrap_or_default();
    let is_scheme = |scheme: &[u8]| {
        let start = target.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    target.starts_with(b"/")
        || is_scheme(b"http:")
        || is_scheme(b"https:")
        || target.windows(3).any(|place| place == b"://")
}
