//! Server and port, as in a Host field or a URL.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

const MAX_NAME: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    host: String,
    port: Option<u16>,
}

impl Authority {
    /// Nothing for what is no name or address of plain characters with an optional
    /// port: user names, percent signs and lists among them.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, rest) = if text.starts_with('[') {
            let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
            inner.parse::<Ipv6Addr>().ok()?;
            (text.strip_suffix(rest)?, rest)
        } else {
            let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
                return None;
            }
            (name, rest)
        };
        let port = match rest {
            "" => None,
            _ => Some(port(rest.strip_prefix(':')?)?),
        };
        Some(Self {
            host: host.to_ascii_lowercase(),
            port,
        })
    }

    /// The server in lower case: letters, digits, hyphens, underscores and dots, or
    /// an IPv6 address in brackets. Whether that is a host name is for the caller to
    /// judge.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The address, if one is given in its usual form.
    pub fn address(&self) -> Option<IpAddr> {
        let bare = self
            .host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        bare.unwrap_or(&self.host).parse().ok()
    }

    /// Whether both mean the same, if a port that is missing is `default`.
    pub(super) fn agrees(&self, other: &Self, default: u16) -> bool {
        self.host == other.host && self.port.unwrap_or(default) == other.port.unwrap_or(default)
    }
}

fn port(text: &str) -> Option<u16> {
    let plain = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| *number > 0);
    number.filter(|_| plain)
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}
