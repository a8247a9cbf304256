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
    /// The server spoke before anything was asked.
    is_greeted: bool,
    /// Blank bytes before the line. Only after a greeting they are not refused at once: binary
    /// protocols begin with any byte.
    blank: usize,
    /// Bytes of the line that need no second look.
    seen: usize,
    /// Where the first word ends, once that is known.
    method_end: Option<usize>,
    /// The line to servers that end one at a carriage return was looked at.
    is_cut: bool,
}

impl Opening {
    /// From now on, only a line that names HTTP is a request: clients whose servers speak first
    /// may begin like a sloppy one.
    pub(super) fn greeted(&mut self) {
        self.is_greeted = true;
    }

    pub(super) fn look(&mut self, held: &[u8]) -> Meant {
        let held = held.get(..MAX_HEAD).unwrap_or(held);
        if self.is_greeted {
            // A proxy's binary header before the first request is none of a client's.
            if held.starts_with(b"\r\n\r\n\0") {
                return Meant::Broken(Broken::LeadingSpace);
            }
            while held.get(self.blank).is_some_and(|byte| is_blank(*byte)) {
                self.blank = self.blank.saturating_add(1);
            }
        }
        match self.look_at_line(held.get(self.blank..).unwrap_or_default()) {
            Meant::Undecided if held.len() >= MAX_HEAD => Meant::Broken(Broken::HeadTooLong),
            Meant::Http if self.blank > 0 => Meant::Broken(Broken::LeadingSpace),
            meant => meant,
        }
    }

    fn look_at_line(&mut self, held: &[u8]) -> Meant {
        let method_end = match self.method_end {
            Some(end) => end,
            None => match self.first_word(held) {
                Ok(end) => *self.method_end.insert(end),
                Err(meant) => return meant,
            },
        };
        let method = held.get(..method_end).unwrap_or_default();
        let fresh = held.get(self.seen..).unwrap_or_default();
        let end = fresh.iter().position(|byte| b"\n\0".contains(byte));
        let line = end.and_then(|end| fresh.get(..=end)).unwrap_or(fresh);
        if let Some(offset) = bare_return(line)
            && !std::mem::replace(&mut self.is_cut, true)
        {
            let rest = held.get(method_end..self.seen.saturating_add(offset));
            if self.is_request(method, rest.unwrap_or_default()) {
                return Meant::Broken(Broken::BareCr);
            }
        }
        let Some(offset) = end else {
            // A carriage return at the end is looked at again, with what follows.
            self.seen = match held {
                [before @ .., b'\r'] => before.len(),
                _ => held.len(),
            };
            return Meant::Undecided;
        };
        let (line, end) = held.split_at(self.seen.saturating_add(offset));
        let rest = line.get(method_end..).unwrap_or_default();
        match end.first() {
            // The protocol of git has the shape of a request line up to here, but its
            // first word is a number.
            Some(0) if names_http(rest, is_space) || (is_method(method) && !self.is_greeted) => {
                Meant::Broken(Broken::Nul)
            }
            Some(0) => Meant::NotHttp,
            _ if self.is_request(method, rest) => Meant::Http,
            _ => Meant::NotHttp,
        }
    }

    /// Whether a line that ends with the connection is meant for something else.
    /// No server serves it either way, but some could try.
    pub(super) fn is_foreign(&self, held: &[u8]) -> bool {
        let line = held.get(self.blank..).unwrap_or_default();
        self.method_end.is_none_or(|end| {
            let (method, rest) = line.split_at(end.min(line.len()));
            !self.is_request(method, rest)
        })
    }

    fn is_request(&self, method: &[u8], rest: &[u8]) -> bool {
        if self.is_greeted {
            return names_http(rest, is_space) || is_of_other_protocol(rest) || method == PROXY;
        }
        is_request(method, rest)
    }

    fn first_word(&mut self, held: &[u8]) -> Result<usize, Meant> {
        let fresh = held.get(self.seen..).unwrap_or_default();
        let Some(offset) = fresh.iter().position(|byte| !is_token(*byte)) else {
            self.seen = held.len();
            return Err(Meant::Undecided);
        };
        self.seen = self.seen.saturating_add(offset);
        match (self.seen, fresh.get(offset..).unwrap_or_default()) {
            // Servers skip that, and find a request behind it.
            (0, [byte, ..]) if is_blank(*byte) => Err(Meant::Broken(Broken::LeadingSpace)),
            (0, _) => Err(Meant::NotHttp),
            // A line of one word is no request.
            (_, [b'\r', b'\n', ..] | [b'\n', ..]) => Err(Meant::NotHttp),
            (_, [b'\r']) => Err(Meant::Undecided),
            (end, [byte, ..]) if is_space(*byte) => Ok(end),
            _ => Err(Meant::NotHttp),
        }
    }
}

/// The first carriage return that no line feed follows.
fn bare_return(line: &[u8]) -> Option<usize> {
    line.windows(2)
        .position(|pair| pair.first() == Some(&b'\r') && pair.get(1) != Some(&b'\n'))
}

/// White space between words, to somebody.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r')
}

fn is_blank(byte: u8) -> bool {
    is_space(byte) || byte == b'\n'
}

fn is_request(method: &[u8], rest: &[u8]) -> bool {
    names_http(rest, is_space)
        || ends_like_a_request(rest)
        || METHODS.contains(&method)
        || (is_any_method(method) && leads_somewhere(rest))
        // Some servers take any word for a method, and the site from the URL.
        || is_url(rest)
}

fn is_url(rest: &[u8]) -> bool {
    let target = words(rest).next().unwrap_or_default();
    target.windows(3).any(|place| place == b"://")
}

/// Whether a first line ends with a version, of whatever protocol: some servers of HTTP serve RTSP's and
/// ICE's requests, and the JDK's serves all.
fn ends_like_a_request(rest: &[u8]) -> bool {
    let mut words = words(rest);
    let last = words.next_back();
    words.next().is_some() && last.is_some_and(|word| version(word).is_some())
}

/// The same where people also write names of files.
fn is_of_other_protocol(rest: &[u8]) -> bool {
    let mut words = words(rest);
    let (target, last) = (words.next(), words.next_back());
    target.is_some_and(may_be_target) && last.is_some_and(ends_with_full_version)
}

fn may_be_target(word: &[u8]) -> bool {
    word.starts_with(b"*") || leads_somewhere(word)
}

/// What follows `NAME/` in a word, if it begins with a digit. A network (`192.0.2.0/24`) is none.
fn version(word: &[u8]) -> Option<&[u8]> {
    let end = word.iter().position(|byte| *byte == b'/')?;
    let (name, version) = (word.get(..end)?, word.get(end.saturating_add(1)..)?);
    let is_version = name.first().is_some_and(u8::is_ascii_alphabetic)
        && name.iter().all(|byte| is_token(*byte))
        && version.first().is_some_and(u8::is_ascii_digit);
    is_version.then_some(version)
}

/// `NAME/1.0`.
fn ends_with_full_version(word: &[u8]) -> bool {
    let mut numbers = version(word)
        .unwrap_or_default()
        .split(|byte| *byte == b'.');
    let mut is_number = || {
        let number = numbers.next().unwrap_or_default();
        !number.is_empty() && number.iter().all(u8::is_ascii_digit)
    };
    is_number() && is_number() && numbers.next().is_none()
}

/// A word in capitals, or what some servers take for a method in whatever letters.
fn is_any_method(word: &[u8]) -> bool {
    is_method(word) || METHODS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// What servers know without looking further: some take any target after it, in the form
/// that HTTP/0.9 had. The last one is no method but a line that proxies put before the first
/// request, and that servers may be told to expect.
const METHODS: [&[u8]; 10] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", PROXY,
];
const PROXY: &[u8] = b"PROXY";

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
    is_greeted: bool,
    is_over: bool,
    names_http: bool,
    /// And not as a hello does, which has its length before it.
    names_http_in_text: bool,
    /// The last bytes, in which the name of the protocol may have begun.
    last: Vec<u8>,
}

impl FirstLine {
    /// The server has spoken. If the client has not, its line also ends at a line feed or a zero
    /// byte, since binary protocols may have no other end; else nothing more is looked at.
    pub fn greeted(&mut self) {
        self.is_over |= self.seen > 0 && !self.is_greeted;
        self.is_greeted = true;
    }

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
        let end = match self.is_greeted {
            true => bytes.iter().position(|byte| b"\n\0".contains(byte)),
            false => pairs.position(|pair| pair == (&b'\r', &b'\n')),
        };
        let line = end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
        self.last.extend_from_slice(line);
        // Some servers take any byte that does not show for white space.
        let is_space = |byte: u8| !byte.is_ascii_graphic();
        self.names_http |= names_http(&self.last, is_space);
        self.names_http_in_text |= names_http(&self.last, |byte| is_space(byte) && byte != ALPN);
        self.is_over = end.is_some() || self.seen >= MAX_HEAD;
        let old = if self.is_over { 0 } else { 5 };
        self.last.drain(..self.last.len().saturating_sub(old));
    }

    /// Whether it names HTTP, as far as it was seen.
    pub fn names_http(&self) -> bool {
        self.names_http
    }

    /// The same for what begins like a hello of TLS, which may name the protocols of its client.
    pub fn names_http_in_hello(&self) -> bool {
        self.names_http_in_text
    }
}

/// The byte before the name of HTTP/1 in a hello: how long the name is.
const ALPN: u8 = 8;

/// What a client says after the server has spoken, for who lets it pass unread: whether it begins
/// with a request line there. Elsewhere such a line may be part of a mail or of a record.
///
/// The client may begin anew anywhere in a line, so a line can hold many requests. Each word is read
/// as it comes, for all of them at once, since the bytes are the client's to choose.
#[derive(Debug, Default)]
pub struct LateRequest {
    /// The last word of the line, as far as it has come.
    word: Vec<u8>,
    is_in_word: bool,
    /// The word has more bytes than when a line last ended.
    is_new: bool,
    /// The client has begun anew, and sent nothing but blanks since.
    is_fresh: bool,
    /// What came of the word since the client began anew may be a method.
    is_method: bool,
    /// The word is the first or the second behind a method.
    is_second: bool,
    is_third: bool,
    /// Before the word, behind a method, stands something that leads somewhere, or may be a target.
    leads_somewhere: bool,
    has_target: bool,
    /// How much came since the client began anew.
    length: usize,
}

impl LateRequest {
    /// The server has said something.
    pub fn turn(&mut self) {
        self.is_fresh = true;
        self.length = 0;
    }

    /// Looks at the next bytes, before they leave. Whether they complete a request line.
    pub fn pass(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.split_inclusive(|byte| b"\r\n\0".contains(byte)) {
            if !self.may_become_one() {
                return false;
            }
            piece.iter().for_each(|byte| self.take(*byte));
            self.length = self.length.saturating_add(piece.len());
            // To some servers, a line ends at a carriage return.
            let is_end = matches!(piece, [.., b'\r' | b'\n']);
            if is_end && std::mem::take(&mut self.is_new) && self.is_complete() {
                return true;
            }
            match piece.last() {
                // Servers skip empty lines.
                Some(b'\n') => {
                    let is_fresh = self.is_fresh;
                    *self = Self::default();
                    self.is_fresh = is_fresh;
                }
                Some(0) => *self = Self::default(),
                _ if self.length >= MAX_HEAD => *self = Self::default(),
                _ => {}
            }
        }
        false
    }

    /// How many bytes are kept.
    pub fn kept(&self) -> usize {
        self.word.capacity()
    }

    fn may_become_one(&self) -> bool {
        self.is_fresh
            || self.is_method
            || self.is_second
            || self.is_third
            || self.leads_somewhere
            || self.has_target
    }

    fn take(&mut self, byte: u8) {
        if is_blank(byte) {
            self.is_in_word = false;
            return;
        }
        if !std::mem::replace(&mut self.is_in_word, true) {
            self.begin_word();
        }
        self.is_new = true;
        // Of several beginnings in a word, the last one has the fewest bytes that no method has.
        self.is_method |= std::mem::take(&mut self.is_fresh);
        self.is_method &= is_token(byte);
        if self.word.len() < MAX_HEAD {
            self.word.push(byte);
        }
    }

    fn begin_word(&mut self) {
        if self.is_second {
            self.leads_somewhere |= leads_somewhere(&self.word);
            self.has_target |= may_be_target(&self.word);
        }
        self.is_third = self.is_second;
        self.is_second = std::mem::take(&mut self.is_method);
        self.word.clear();
    }

    /// Whether a line that ends here is a request. Narrower than a first line: people write ` HTTP/1.1`
    /// in chats, too.
    fn is_complete(&self) -> bool {
        let is_http = match self.word.split_at_checked(5) {
            Some((name, [digit, ..])) => {
                name.eq_ignore_ascii_case(b"HTTP/") && digit.is_ascii_digit()
            }
            _ => false,
        };
        (is_http && (self.is_third || self.leads_somewhere))
            || (self.has_target && ends_with_full_version(&self.word))
    }
}

fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(|byte| is_blank(*byte))
        .filter(|word| !word.is_empty())
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
