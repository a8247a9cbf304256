//! What somebody asks about: "may it reach this?"
//!
//! A question is written as people know the thing: like a rule
//! (`udp://172.23.1.3:5064`), as a URL (`https://host/path`), as `host:443`, or as a
//! plain name or address. What is left open, protocol or port, is asked about as
//! a whole.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::str::FromStr;

use crate::flow::Protocol;
use crate::name::{Hostname, hostname};
use crate::rule::parse::{Cut, refuse_missing_slashes, scope};
use crate::rule::{Ports, Scope, is_address, scheme};
use crate::syntax::{Fault, Part, Problem, RuleError, check_characters};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    host: Host,
    /// None: all of them.
    protocol: Option<Protocol>,
    /// None: all of them. Never with ICMP.
    port: Option<NonZeroU16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    Name(Hostname),
    Address(IpAddr),
}

impl Target {
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// None: all protocols are asked about.
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// None: all ports are asked about.
    pub fn port(&self) -> Option<NonZeroU16> {
        self.port
    }

    /// Whether it is the loopback of whoever asks: inside the jail's own, but for
    /// the ports that are given from the host.
    pub fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Name(name) => name.is_localhost(),
            Host::Address(address) => address.is_loopback(),
        }
    }

    /// The protocols that are asked about: ping has no ports.
    pub(crate) fn protocols(&self) -> &'static [Protocol] {
        match (self.protocol, self.port) {
            (Some(Protocol::Tcp), _) => &[Protocol::Tcp],
            (Some(Protocol::Udp), _) => &[Protocol::Udp],
            (Some(Protocol::Icmp), _) => &[Protocol::Icmp],
            (None, Some(_)) => &[Protocol::Tcp, Protocol::Udp],
            (None, None) => &[Protocol::Tcp, Protocol::Udp, Protocol::Icmp],
        }
    }
}

impl FromStr for Target {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        parse(text).map_err(|fault| fault.explain(text, parse))
    }
}

fn parse(text: &str) -> Result<Target, Fault> {
    let whole = Part::whole(text);
    if text.is_empty() {
        return Err(whole.fault(Problem::NothingAsked));
    }
    check_characters(text)?;
    refuse_missing_slashes(whole)?;
    let (protocol, usual_port, rest) = match whole.split_once("://") {
        None => (None, None, whole),
        Some((name, rest)) => {
            if let Some(protocol) = scheme::protocol(name.text) {
                (Some(protocol), None, rest)
            } else {
                let port = url_port(name)?;
                (Some(Protocol::Tcp), Some(port), authority(rest))
            }
        }
    };
    let cut = Cut::of(rest)?;
    let host = host(&cut)?;
    let port = match cut.ports {
        Some(part) => Some(one_port(part, protocol)?),
        None => usual_port,
    };
    Ok(Target {
        host,
        protocol,
        port,
    })
}

fn url_port(name: Part<'_>) -> Result<NonZeroU16, Fault> {
    let scheme = name.text.to_ascii_lowercase();
    scheme::tcp_port(&scheme).ok_or_else(|| {
        let fault = name.fault(Problem::Scheme(name.text.to_owned()));
        match scheme::meant_protocol(&scheme) {
            Some(protocol) => fault.mend(protocol.to_string()),
            None => fault,
        }
    })
}

/// Of a URL after its scheme, the host and its port.
fn authority(rest: Part<'_>) -> Part<'_> {
    let end = rest.text.find(['/', '?', '#']);
    let authority = end.map_or(rest, |end| rest.head(end));
    match authority.rsplit_once("@") {
        Some((_user, host)) => host,
        None => authority,
    }
}

fn host(cut: &Cut<'_>) -> Result<Host, Fault> {
    // As no rule is made of it, a name may be one that no rule could be for.
    if !is_address(cut.target.text) && !cut.target.text.contains(['*', '/']) {
        return hostname(cut.target).map(Host::Name);
    }
    if cut.target.text.starts_with("*.") {
        let fault = cut
            .target
            .fault(Problem::NotOneName(cut.target.text.to_owned()));
        return Err(fault.mend(cut.target.text.replacen('*', "www", 1)));
    }
    match scope(cut)? {
        Scope::Network(network) if network.prefix_len() == network.max_prefix_len() => {
            Ok(Host::Address(network.addr()))
        }
        _ => Err(cut.target.fault(Problem::NotOneHost)),
    }
}

fn one_port(part: Part<'_>, protocol: Option<Protocol>) -> Result<NonZeroU16, Fault> {
    if protocol == Some(Protocol::Icmp) {
        return Err(part.fault(Problem::IcmpPorts));
    }
    let ports = Ports::parse(part)?;
    ports
        .single()
        .ok_or_else(|| part.fault(Problem::NotOnePort))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => write!(f, "{name}"),
            Host::Address(address) => write!(f, "{address}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(protocol) = self.protocol {
            write!(f, "{protocol}://")?;
        }
        match (&self.host, self.port) {
            (host, None) => write!(f, "{host}"),
            (Host::Name(name), Some(port)) => write!(f, "{name}:{port}"),
            (Host::Address(address), Some(port)) => {
                write!(f, "{}", SocketAddr::new(*address, port.get()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_people_write_it() {
        for (text, meant) in [
            ("udp://172.23.1.3:5064", "udp://172.23.1.3:5064"),
            ("api.x.com", "api.x.com"),
            ("API.x.com:443", "api.x.com:443"),
            ("https://host/path?query", "tcp://host:443"),
            ("https://host:8443/a:b@c", "tcp://host:8443"),
            ("https://user:secret@host/", "tcp://host:443"),
            ("HTTP://host?q", "tcp://host:80"),
            ("ssh://git@forge.example/x.git", "tcp://forge.example:22"),
            ("wss://[fd00::5]/socket", "tcp://[fd00::5]:443"),
            ("redis:6379", "redis:6379"),
            ("localhost:5432", "localhost:5432"),
            ("127.0.0.1", "127.0.0.1"),
            ("fd00::5", "fd00::5"),
            ("[fd00::5]:80", "[fd00::5]:80"),
            ("icmp://10.0.0.1", "icmp://10.0.0.1"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), meant);
            assert_eq!(meant.parse(), Ok(target));
        }
    }

    #[test]
    fn what_is_no_target_is_refused_with_advice() {
        for (text, message) in [
            (
                "",
                "there is nothing to ask about: name an address, a host or a URL",
            ),
            ("https:///path", "there is no address and no name"),
            (
                "https:/host",
                "`https` is a protocol: `://` comes between it and the target; write `https://host`",
            ),
            (
                "10.0.0.0/8",
                "the question is about one host: name an address of the network",
            ),
            (
                "*.example.org:443",
                "the question is about one host: name one that `*.example.org` may stand for; \
                 write `www.example.org:443`",
            ),
            (
                "*.x",
                "the question is about one host: name one that `*.x` may stand for; write `www.x`",
            ),
            (
                "10.0.0.1:80-90",
                "the question is about one port, or about all if none is given",
            ),
            ("icmp://10.0.0.1:80", "icmp has no ports"),
            (
                "gopher://host",
                "`gopher` is no scheme that says which port is meant: name protocol and port, \
                 as in `tcp://example.org:8443`",
            ),
            (
                "ping://10.0.0.1",
                "`ping` is no scheme that says which port is meant: name protocol and port, \
                 as in `tcp://example.org:8443`; write `icmp://10.0.0.1`",
            ),
            (
                "0x7f.1",
                "`0x7f` is a hexadecimal number: an IPv4 address is four decimal numbers; \
                 write `127.0.0.1`",
            ),
            (
                "example.org.",
                "a dot at the end is left out: every host name is a full one; write `example.org`",
            ),
            (
                "https://host%00.example/",
                "percent escapes are not decoded in rules",
            ),
        ] {
            assert_eq!(text.parse::<Target>().unwrap_err().to_string(), message);
        }
    }
}
