//! What is said to a proxy, and what it answers: HTTP's CONNECT (RFC 9110 §9.3.6) and SOCKS5
//! (RFC 1928, RFC 1929).
//!
//! A proxy may be hostile, or no proxy at all. What it says of itself (the phrase behind a status,
//! the body) is not kept: only numbers and known words are.

use std::net::IpAddr;

use httparse::{EMPTY_HEADER, Response, Status};

/// The longest head of an answer to CONNECT that is read.
pub const LONGEST_HEAD: usize = 16 * 1024;
const HEADERS: usize = 100;
/// What every answer to CONNECT begins with.
const START: &[u8] = b"HTTP/1.";

/// Where a tunnel is to lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination<'a> {
    /// A name that the proxy resolves. Whoever makes one vouches that it has letters, digits,
    /// hyphens, underscores and dots alone, 255 at most.
    Name(&'a str),
    Address(IpAddr),
}

/// Why there is no tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it wants a login (407)")]
    LoginMissing,
    #[error("it does not accept the login")]
    LoginRefused,
    #[error("its rules forbid it{}", code(*.0))]
    Forbidden(Option<u16>),
    #[error("the destination refused the connection{}", code(*.0))]
    ConnectionRefused(Option<u16>),
    #[error("it cannot reach the destination{}", code(*.0))]
    Unreachable(Option<u16>),
    #[error("it has no network for the destination")]
    NetworkUnreachable,
    #[error("the destination did not answer it in time{}", code(*.0))]
    Timeout(Option<u16>),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("its answer is no answer of a proxy of this kind")]
    Malformed,
    #[error("its answer is too long")]
    TooLong,
}

fn code(status: Option<u16>) -> String {
    status.map_or_else(String::new, |status| format!(" ({status})"))
}

/// The request for a tunnel, with the user and the password.
pub fn connect(destination: Destination<'_>, port: u16, login: Option<(&str, &str)>) -> Vec<u8> {
    let authority = match destination {
        Destination::Name(name) => format!("{name}:{port}"),
        Destination::Address(IpAddr::V4(address)) => format!("{address}:{port}"),
        Destination::Address(IpAddr::V6(address)) => format!("[{address}]:{port}"),
    };
    let login = login.map(|(user, password)| {
        let text = base64(format!("{user}:{password}").as_bytes());
        format!("Proxy-Authorization: Basic {text}\r\n")
    });
    let login = login.unwrap_or_default();
    format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n").into_bytes()
}

/// What the head of an answer to CONNECT says; nothing while it is not complete.
///
/// # Errors
/// If there is no tunnel.
pub fn connected(head: &[u8]) -> Result<Option<()>, Refusal> {
    // Not one empty line before it: each would look like the end, and be read from the start again.
    if head.iter().zip(START).any(|(is, should)| is != should) {
        return Err(Refusal::Malformed);
    }
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut response = Response::new(&mut headers);
    match response.parse(head) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) if head.len() >= LONGEST_HEAD => return Err(Refusal::TooLong),
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLong),
        Err(_) => return Err(Refusal::Malformed),
    }
    let status = response.code.unwrap_or_default();
    let says = |name: &str, word: &str| {
        response.headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case(name)
                && String::from_utf8_lossy(header.value).contains(word)
        })
    };
    let refused = says("proxy-status", "error=connection_refused") || says("x-squid-error", " 111");
    let timed_out =
        says("proxy-status", "error=connection_timeout") || says("x-squid-error", " 110");
    Err(match status {
        200..=299 => return Ok(Some(())),
        407 => Refusal::LoginMissing,
        401 | 403 | 405 | 451 => Refusal::Forbidden(Some(status)),
        500.. if refused => Refusal::ConnectionRefused(Some(status)),
        504 => Refusal::Timeout(Some(status)),
        500.. if timed_out => Refusal::Timeout(Some(status)),
        404 | 410 | 500 | 502 | 503 => Refusal::Unreachable(Some(status)),
        other => Refusal::Status(other),
    })
}

/// The first message of SOCKS5: which ways to log in there are.
pub fn socks_greeting(has_login: bool) -> &'static [u8] {
    match has_login {
        true => &[5, 2, 0, 2],
        false => &[5, 1, 0],
    }
}

/// Whether the proxy wants the login, by its answer to the greeting.
///
/// # Errors
/// If it wants something else.
pub fn socks_wants_login(answer: [u8; 2], has_login: bool) -> Result<bool, Refusal> {
    match answer {
        [5, 0] => Ok(false),
        [5, 2] if has_login => Ok(true),
        [5, 2 | 0xff] if !has_login => Err(Refusal::LoginMissing),
        [5, 0xff] => Err(Refusal::LoginRefused),
        _ => Err(Refusal::Malformed),
    }
}

/// The login (RFC 1929). None if it does not fit.
pub fn socks_login((user, password): (&str, &str)) -> Option<Vec<u8>> {
    let lengths = (
        u8::try_from(user.len()).ok()?,
        u8::try_from(password.len()).ok()?,
    );
    let user = [&[1, lengths.0], user.as_bytes()].concat();
    Some([&user, &[lengths.1][..], password.as_bytes()].concat())
}

/// # Errors
/// If the login is wrong.
pub fn socks_logged_in(answer: [u8; 2]) -> Result<(), Refusal> {
    match answer {
        [_, 0] => Ok(()),
        _ => Err(Refusal::LoginRefused),
    }
}

/// The request for a tunnel. None if the name is too long for it.
pub fn socks_request(destination: Destination<'_>, port: u16) -> Option<Vec<u8>> {
    let mut request = vec![5, 1, 0];
    match destination {
        Destination::Name(name) => {
            request.extend([3, u8::try_from(name.len()).ok()?]);
            request.extend(name.as_bytes());
        }
        Destination::Address(IpAddr::V4(address)) => {
            request.push(1);
            request.extend(address.octets());
        }
        Destination::Address(IpAddr::V6(address)) => {
            request.push(4);
            request.extend(address.octets());
        }
    }
    request.extend(port.to_be_bytes());
    Some(request)
}

/// How many bytes of address and port follow the first five of an answer to the request.
///
/// # Errors
/// If there is no tunnel.
pub fn socks_connected(start: [u8; 5]) -> Result<usize, Refusal> {
    let [version, reply, _, kind, first] = start;
    if version != 5 {
        return Err(Refusal::Malformed);
    }
    match reply {
        0 => {}
        2 => return Err(Refusal::Forbidden(None)),
        3 => return Err(Refusal::NetworkUnreachable),
        5 => return Err(Refusal::ConnectionRefused(None)),
        6 => return Err(Refusal::Timeout(None)),
        1 | 4 | 7 | 8 => return Err(Refusal::Unreachable(None)),
        _ => return Err(Refusal::Malformed),
    }
    // Of the address, one byte has been read.
    match kind {
        1 => Ok(3 + 2),
        4 => Ok(15 + 2),
        3 => Ok(usize::from(first).saturating_add(2)),
        _ => Err(Refusal::Malformed),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (place, shift) in [18_u32, 12, 6, 0].into_iter().enumerate() {
            let digit = usize::try_from(bits >> shift & 63).ok();
            let digit = digit.and_then(|digit| DIGITS.get(digit)).copied();
            let is_there = place <= chunk.len();
            text.push(digit.filter(|_| is_there).map_or('=', char::from));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_destination_and_its_login() {
        let text = |request: Vec<u8>| String::from_utf8(request).expect("text");
        assert_eq!(
            text(connect(Destination::Name("www.example.com"), 443, None)),
            "CONNECT www.example.com:443 HTTP/1.1\r\nHost: www.example.com:443\r\n\r\n"
        );
        let six = Destination::Address("2606:2800::1".parse().expect("an address"));
        assert_eq!(
            text(connect(six, 22, Some(("Aladdin", "open sesame")))),
            "CONNECT [2606:2800::1]:22 HTTP/1.1\r\nHost: [2606:2800::1]:22\r\n\
             Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"
        );
        for (bytes, digits) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(bytes.as_bytes()), digits);
        }
    }

    #[test]
    fn answers_mean_what_they_say() {
        for (head, meant) in [
            ("HTTP/1.0 200 Connection established\r\n\r\n", Ok(Some(()))),
            ("HTTP/1.1 200 OK\r\nX: y\r\n\r\n", Ok(Some(()))),
            ("HTTP/1.1 200 OK\r\nX: y\r\n", Ok(None)),
            ("", Ok(None)),
            ("HTTP/1.1 407 x\r\n\r\n", Err(Refusal::LoginMissing)),
            ("HTTP/1.1 403 x\r\n\r\n", Err(Refusal::Forbidden(Some(403)))),
            (
                "HTTP/1.1 502 x\r\n\r\n",
                Err(Refusal::Unreachable(Some(502))),
            ),
            (
                "HTTP/1.1 503 x\r\n\r\n",
                Err(Refusal::Unreachable(Some(503))),
            ),
            (
                "HTTP/1.1 503 x\r\nX-Squid-Error: ERR_CONNECT_FAIL 111\r\n\r\n",
                Err(Refusal::ConnectionRefused(Some(503))),
            ),
            (
                "HTTP/1.1 502 x\r\nProxy-Status: p; error=connection_refused\r\n\r\n",
                Err(Refusal::ConnectionRefused(Some(502))),
            ),
            ("HTTP/1.1 504 x\r\n\r\n", Err(Refusal::Timeout(Some(504)))),
            ("HTTP/1.1 302 x\r\n\r\n", Err(Refusal::Status(302))),
            ("HTTP/1.1 100 x\r\n\r\n", Err(Refusal::Status(100))),
            ("SSH-2.0-x\r\n\r\n", Err(Refusal::Malformed)),
            ("\n\nHTTP/1.1 200 OK\r\n\r\n", Err(Refusal::Malformed)),
            ("\x16\x03\x01", Err(Refusal::Malformed)),
        ] {
            assert_eq!(connected(head.as_bytes()), meant, "{head:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(LONGEST_HEAD));
        assert_eq!(connected(endless.as_bytes()), Err(Refusal::TooLong));
        let many = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(HEADERS + 1));
        assert_eq!(connected(many.as_bytes()), Err(Refusal::TooLong));
    }

    /// Every prefix of an answer is incomplete, and no bytes panic.
    #[test]
    fn a_part_of_an_answer_is_none() {
        let whole = b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n";
        for length in 0..whole.len() {
            assert_eq!(connected(&whole[..length]), Ok(None), "{length}");
        }
        assert_eq!(connected(whole), Ok(Some(())));
        for byte in 0..=255 {
            let _ = connected(&[byte; 64]);
            let _ = socks_connected([byte; 5]);
        }
    }

    #[test]
    fn socks_messages_are_as_the_standard_has_them() {
        assert_eq!(socks_greeting(false), [5, 1, 0]);
        assert_eq!(socks_wants_login([5, 2], true), Ok(true));
        assert_eq!(socks_wants_login([5, 0], true), Ok(false));
        assert_eq!(
            socks_wants_login([5, 0xff], false),
            Err(Refusal::LoginMissing)
        );
        assert_eq!(socks_wants_login([5, 2], false), Err(Refusal::LoginMissing));
        assert_eq!(socks_wants_login([72, 84], true), Err(Refusal::Malformed));
        assert_eq!(
            socks_login(("ab", "c")),
            Some(vec![1, 2, b'a', b'b', 1, b'c'])
        );
        assert_eq!(socks_logged_in([1, 1]), Err(Refusal::LoginRefused));
        assert_eq!(
            socks_request(Destination::Name("a.b"), 258),
            Some(vec![5, 1, 0, 3, 3, b'a', b'.', b'b', 1, 2])
        );
        assert_eq!(socks_connected([5, 0, 0, 1, 9]), Ok(5));
        assert_eq!(socks_connected([5, 0, 0, 3, 9]), Ok(11));
        for (reply, meant) in [
            (1, Refusal::Unreachable(None)),
            (2, Refusal::Forbidden(None)),
            (3, Refusal::NetworkUnreachable),
            (4, Refusal::Unreachable(None)),
            (5, Refusal::ConnectionRefused(None)),
            (6, Refusal::Timeout(None)),
            (9, Refusal::Malformed),
        ] {
            assert_eq!(socks_connected([5, reply, 0, 1, 0]), Err(meant), "{reply}");
        }
        assert_eq!(socks_connected([4, 0, 0, 1, 0]), Err(Refusal::Malformed));
    }
}
