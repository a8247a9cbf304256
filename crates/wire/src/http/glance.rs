//! The Host of a first request, for who trusts its sender but not its purpose.
//!
//! The sender is a browser: what it writes is well formed, and what is not comes from other
//! programs, which are not meant. So this reader takes the first Host that it finds.

use super::lines::is_token;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// It takes more bytes to know, of something that looks like a request or does not.
    Undecided { is_request: bool },
    /// No request, or one without a Host.
    Other,
    /// In lower case, as it stands there, without white space around it.
    Host(String),
}

pub fn open(bytes: &[u8]) -> Opened {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let method = first.iter().position(|byte| !is_token(*byte));
    let is_request = match method.map(|end| first.split_at(end)) {
        Some((method, rest)) => !method.is_empty() && rest.starts_with(b" "),
        None => false,
    };
    if !first.ends_with(b"\n") {
        // A word that goes on may become a method.
        let is_word = method.is_none() && !first.is_empty();
        return if is_request || is_word || first.is_empty() {
            Opened::Undecided { is_request }
        } else {
            Opened::Other
        };
    }
    let line = first.trim_ascii_end();
    let version = line.rsplit(|byte| *byte == b' ').next();
    let is_http = version.is_some_and(|version| version.starts_with(b"HTTP/1."));
    if !is_request || !is_http {
        return Opened::Other;
    }
    for line in lines {
        if !line.ends_with(b"\n") {
            break;
        }
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return Opened::Other;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(0);
        let (name, value) = line.split_at(colon);
        if name.trim_ascii().eq_ignore_ascii_case(b"host") {
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            return Opened::Host(String::from_utf8_lossy(value).to_ascii_lowercase());
        }
    }
    Opened::Undecided { is_request: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_request_is_seen_as_soon_as_its_line_is_there() {
        let request = b"GET /a?b HTTP/1.1\r\nAccept: */*\r\nHost:  Evil.Example:3000 \r\n";
        let host = Opened::Host("evil.example:3000".to_owned());
        assert_eq!(open(request), host);
        assert_eq!(open(&[&request[..], b"Cookie: x"].concat()), host);
        for end in 0..request.len() {
            let is_request = end > 3;
            assert_eq!(
                open(&request[..end]),
                Opened::Undecided { is_request },
                "{end}"
            );
        }
        let many = [
            b"GET / HTTP/1.1\r\n",
            &b"X: y\r\n".repeat(500)[..],
            b"Host: a\r\n",
        ]
        .concat();
        assert_eq!(open(&many), Opened::Host("a".to_owned()));
    }

    #[test]
    fn other_protocols_and_requests_without_a_host_are_nothing() {
        for other in [
            &b"GET / HTTP/1.0\r\n\r\n"[..],
            b"PRI * HTTP/2.0\r\n\r\n",
            b"\x16\x03\x01",
            b"*1\r\n$4\r\nPING\r\n",
            b"PING\r\n",
            b"hello there\n",
            b"\0\0\0\x08",
        ] {
            assert_eq!(open(other), Opened::Other, "{other:?}");
        }
    }
}
