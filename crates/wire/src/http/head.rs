//! A complete head: whom it is for, and how long its body is.

use super::{Authority, Broken, Kind, MAX_FIELDS};

const HTTP_PORT: u16 = 80;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) authority: Option<Authority>,
    pub(super) kind: Kind,
    pub(super) body: Body,
}

/// How the end of the body is found (RFC 9112 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
}

/// Refuses other versions by the request line: their heads may never be complete.
pub(super) fn check_version(line: &[u8]) -> Result<(), Broken> {
    if line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0") {
        Ok(())
    } else if line.starts_with(b"PRI * HTTP/2") {
        Err(Broken::Http2)
    } else {
        Err(Broken::Version)
    }
}

/// Reads a head from its first byte to the empty line. Its lines are known to end
/// with CR LF, and to have neither of them, nor zero bytes, inside.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, Broken> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        Err(httparse::Error::HeaderName | httparse::Error::HeaderValue) => {
            return Err(Broken::Field);
        }
        Err(httparse::Error::TooManyHeaders) => return Err(Broken::TooManyFields),
        _ => return Err(Broken::RequestLine),
    }
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version)
    else {
        return Err(Broken::RequestLine);
    };
    let fields = Fields::read(request.headers)?;
    let body = fields.body(minor)?;
    let authority = authority(method, target, minor, fields.host)?;
    let is_websocket = |protocol: &[u8]| protocol.eq_ignore_ascii_case(b"websocket");
    let kind = match (method, fields.upgrade, body) {
        ("CONNECT", None, Body::Length(0)) => Kind::Connect,
        ("CONNECT", None, _) => return Err(Broken::ContentLength),
        (_, None, _) => Kind::Plain,
        ("GET", Some(protocol), Body::Length(0)) if is_websocket(protocol) => Kind::WebSocket,
        (_, Some(_), _) => return Err(Broken::Upgrade),
    };
    Ok(Parsed {
        authority,
        kind,
        body,
    })
}

/// The fields that matter, each at most once.
#[derive(Debug, Default)]
struct Fields<'a> {
    host: Option<&'a [u8]>,
    length: Option<&'a [u8]>,
    encoding: Option<&'a [u8]>,
    upgrade: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    fn read(fields: &[httparse::Header<'a>]) -> Result<Self, Broken> {
        let mut found = Self::default();
        for field in fields {
            let (place, repeated) = match field.name.to_ascii_lowercase().as_str() {
                "host" => (&mut found.host, Broken::ManyHosts),
                "content-length" => (&mut found.length, Broken::ContentLength),
                "transfer-encoding" => (&mut found.encoding, Broken::TransferEncoding),
                "upgrade" => (&mut found.upgrade, Broken::Upgrade),
                "connection" if hides_a_field(field.value) => return Err(Broken::Disguise),
                // Servers that hand fields to programs as variables lose the difference.
                "content_length" | "transfer_encoding" => return Err(Broken::Disguise),
                _ => continue,
            };
            if place.replace(field.value).is_some() {
                return Err(repeated);
            }
        }
        Ok(found)
    }

    fn body(&self, minor: u8) -> Result<Body, Broken> {
        match (self.encoding, self.length) {
            (None, None) => Ok(Body::Length(0)),
            (None, Some(text)) => plain_number(text)
                .map(Body::Length)
                .ok_or(Broken::ContentLength),
            // HTTP/1.0 does not know encodings: a server may go by the end of the
            // connection.
            (Some(encoding), None) if minor == 1 && encoding.eq_ignore_ascii_case(b"chunked") => {
                Ok(Body::Chunked)
            }
            (Some(_), _) => Err(Broken::TransferEncoding),
        }
    }
}

/// Whether a Connection field asks proxies to take away what this reader goes by.
fn hides_a_field(connection: &[u8]) -> bool {
    let mut options = connection.split(|byte| *byte == b',');
    options.any(|option| is_framing(option.trim_ascii()))
}

/// Whether a field by this name tells whom a request is for or where it ends.
pub(super) fn is_framing(name: &[u8]) -> bool {
    [&b"host"[..], b"content-length", b"transfer-encoding"]
        .iter()
        .any(|framing| name.eq_ignore_ascii_case(framing))
}

/// Digits and nothing else, of a size that no reader overflows at.
fn plain_number(text: &[u8]) -> Option<u64> {
    if !(1..=18).contains(&text.len()) || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}

/// The server that a request is for, by its target and Host, which must agree.
fn authority(
    method: &str,
    target: &str,
    minor: u8,
    host: Option<&[u8]>,
) -> Result<Option<Authority>, Broken> {
    let host = match host {
        None if minor == 0 => None,
        None => return Err(Broken::NoHost),
        Some(text) => {
            let text = str::from_utf8(text).map_err(|_| Broken::Host)?;
            Some(Authority::parse(text).ok_or(Broken::Host)?)
        }
    };
    if method == "CONNECT" {
        let tunnel = Authority::parse(target).ok_or(Broken::Target)?;
        let port = tunnel.port().ok_or(Broken::Target)?;
        return agreed(tunnel, host.as_ref(), port).map(Some);
    }
    if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        return Ok(host);
    }
    let named = url_authority(target).ok_or(Broken::Target)?;
    agreed(named, host.as_ref(), HTTP_PORT).map(Some)
}

fn agreed(named: Authority, host: Option<&Authority>, default: u16) -> Result<Authority, Broken> {
    match host {
        Some(host) if !named.agrees(host, default) => Err(Broken::OtherHost),
        _ => Ok(named),
    }
}

/// Only a slash ends it: about other ends readers of URLs disagree.
fn url_authority(target: &str) -> Option<Authority> {
    let (scheme, rest) = target.split_once("://")?;
    let (authority, _) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = Authority::parse(authority)?;
    scheme.eq_ignore_ascii_case("http").then_some(authority)
}
