//! The company's proxy, through which the host reaches the internet: where it is, what goes
//! around it, and which names it may be asked for.
//!
//! A proxy that is given a name chooses the address itself, and the policy does not see it. So names
//! are kept from it that belong to the company or to nobody: see [`only_the_proxy_may_know`].

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use crate::name::Hostname;
use crate::target::Host;

/// Addresses that stand for names which only the proxy knows. They are for benchmarks of network
/// devices (RFC 2544), so that no network has them for its hosts, and no program takes them for the
/// LAN's.
pub const POOL: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);

pub fn is_in_pool(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if POOL.contains(&address))
}

/// Domains that are in the list of the internet's and have a use of their own (RFC 7686, RFC 3172).
const NOT_ON_THE_INTERNET: [&str; 2] = ["arpa", "onion"];

/// Whether a name that this machine's resolvers do not know may be one that the proxy does.
///
/// Never one of a single label, nor of a top-level domain that is nobody's on the internet
/// (`internal`, `corp`, `staging`, …: a proxy may complete it by a search domain of its own), nor one of
/// the company's own `domains`: there the resolvers have the last word. Otherwise a name that they
/// cannot answer for a moment would lead into the company's network through its proxy.
pub fn only_the_proxy_may_know(name: &Hostname, domains: &[Hostname]) -> bool {
    let mut labels = name.labels().rev();
    let top = labels.next().unwrap_or_default();
    let is_public = psl::suffix(name.as_str().as_bytes()).is_some_and(|suffix| suffix.is_known());
    labels.next().is_some()
        && is_public
        && !NOT_ON_THE_INTERNET.contains(&top)
        && !domains
            .iter()
            .any(|domain| name == domain || name.is_below(domain))
}

/// What the host reaches without its proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exemption {
    /// A host, and all names below it, as with other programs.
    Domain(Hostname),
    Network(IpNet),
    Everything,
}

/// `example.org`, `.example.org` or `*.example.org`; an address or a network; `*`.
impl FromStr for Exemption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Everything);
        }
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        let bare = bare.unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Self::Network(address.to_canonical().into()));
        }
        if text.contains('/') {
            let network: IpNet = text
                .parse()
                .map_err(|_| "expected an address, a network such as 10.0.0.0/8, or a name")?;
            return Ok(Self::Network(network.trunc()));
        }
        let domain = text.strip_prefix("*.").or_else(|| text.strip_prefix('.'));
        let domain: Hostname = domain
            .unwrap_or(text)
            .parse()
            .map_err(|error: crate::RuleError| error.problem().to_string())?;
        Ok(Self::Domain(domain))
    }
}

impl fmt::Display for Exemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(domain) => write!(f, "{domain}"),
            Self::Network(network) if network.prefix_len() == network.max_prefix_len() => {
                write!(f, "{}", network.addr())
            }
            Self::Network(network) => write!(f, "{network}"),
            Self::Everything => f.write_str("*"),
        }
    }
}

/// All that the host reaches without its proxy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exemptions(pub Vec<Exemption>);

impl Exemptions {
    pub fn cover(&self, address: IpAddr, names: &[Hostname]) -> bool {
        self.0.iter().any(|exemption| match exemption {
            Exemption::Network(network) => network.contains(&address.to_canonical()),
            Exemption::Everything => true,
            Exemption::Domain(domain) => names
                .iter()
                .any(|name| name == domain || name.is_below(domain)),
        })
    }

    /// The company's own, as far as they are named.
    pub fn domains(&self) -> impl Iterator<Item = &Hostname> {
        self.0.iter().filter_map(|exemption| match exemption {
            Exemption::Domain(domain) => Some(domain),
            _ => None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyScheme {
    /// CONNECT, in the clear.
    Http,
    /// CONNECT, in TLS.
    Https,
    Socks5,
}

impl ProxyScheme {
    fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }

    fn usual_port(self) -> NonZeroU16 {
        const HTTP: NonZeroU16 = NonZeroU16::new(80).unwrap();
        const HTTPS: NonZeroU16 = NonZeroU16::new(443).unwrap();
        const SOCKS: NonZeroU16 = NonZeroU16::new(1080).unwrap();
        match self {
            Self::Http => HTTP,
            Self::Https => HTTPS,
            Self::Socks5 => SOCKS,
        }
    }
}

/// Where the proxy is and what it speaks. It has no login, and can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    pub scheme: ProxyScheme,
    pub host: Host,
    pub port: NonZeroU16,
}

impl fmt::Display for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, port) = (self.scheme.word(), self.port);
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "{scheme}://[{address}]:{port}"),
            Host::Address(address) => write!(f, "{scheme}://{address}:{port}"),
            Host::Name(name) => write!(f, "{scheme}://{name}:{port}"),
        }
    }
}

/// Who asks the proxy. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyLogin {
    user: String,
    password: String,
}

impl fmt::Debug for ProxyLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyLogin(…)")
    }
}

impl ProxyLogin {
    /// The longest user and the longest password that SOCKS5 can carry.
    const LONGEST: usize = 255;

    /// # Errors
    /// If no proxy can be told it. The reason does not repeat it.
    pub fn new(user: &str, password: &str) -> Result<Self, &'static str> {
        let is_odd = |text: &str| text.chars().any(char::is_control);
        if user.is_empty() {
            Err("the user is empty")
        } else if user.contains(':') {
            Err("the user has a colon")
        } else if is_odd(user) || is_odd(password) {
            Err("the login has a control character")
        } else if user.len() > Self::LONGEST || password.len() > Self::LONGEST {
            Err("user and password can have 255 bytes each")
        } else {
            Ok(Self {
                user: user.to_owned(),
                password: password.to_owned(),
            })
        }
    }

    /// `user:password`, as a file has it.
    ///
    /// # Errors
    /// As [`new`](Self::new), or if there is no colon.
    pub fn from_text(text: &str) -> Result<Self, &'static str> {
        let (user, password) = text.split_once(':').ok_or("expected USER:PASSWORD")?;
        Self::new(user, password)
    }

    /// For whoever sends it to the proxy.
    pub fn reveal(&self) -> (&str, &str) {
        (&self.user, &self.password)
    }
}

/// Why a text is no proxy. It does not repeat the text, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyAddressError {
    #[error("the proxy is empty")]
    Empty,
    #[error("unknown kind of proxy: expected http://, https:// or socks5://")]
    Scheme,
    #[error("a proxy has no path, only a host and a port")]
    Path,
    #[error("the proxy has no valid host: {0}")]
    Host(String),
    #[error("the proxy has no valid port: expected 1 to 65535")]
    Port,
    #[error("the login in the proxy cannot be used: {0}")]
    Login(&'static str),
}

impl ProxyAddress {
    /// Reads the address of a proxy, and the login in it.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<(Self, Option<ProxyLogin>), ProxyAddressError> {
        if text.is_empty() {
            return Err(ProxyAddressError::Empty);
        }
        // Up to the last `@`: programs differ in what they take for a part of a password.
        let (login, place) = match text.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, text),
        };
        let (scheme, login, place) = match login {
            Some(login) => {
                let (scheme, login) = login.split_once("://").unwrap_or(("http", login));
                (scheme, Some(login), place)
            }
            None => {
                let (scheme, place) = place.split_once("://").unwrap_or(("http", place));
                (scheme, None, place)
            }
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => ProxyScheme::Http,
            "https" => ProxyScheme::Https,
            // Names are always left to the proxy, which the second one says.
            "socks5" | "socks5h" => ProxyScheme::Socks5,
            _ => return Err(ProxyAddressError::Scheme),
        };
        let place = place.strip_suffix('/').unwrap_or(place);
        if place.contains(['/', '?', '#']) {
            return Err(ProxyAddressError::Path);
        }
        let (host, port) = split_port(place)?;
        let host = match host.parse::<IpAddr>() {
            Ok(address) => Host::Address(address.to_canonical()),
            Err(_) => Host::Name(host.parse().map_err(|error: crate::RuleError| {
                ProxyAddressError::Host(error.problem().to_string())
            })?),
        };
        let port = match port {
            Some(port) => port.parse().map_err(|_| ProxyAddressError::Port)?,
            None => scheme.usual_port(),
        };
        let login = login.map(login_of).transpose()?;
        Ok((Self { scheme, host, port }, login))
    }
}

fn split_port(place: &str) -> Result<(&str, Option<&str>), ProxyAddressError> {
    if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or(ProxyAddressError::Port)?;
        host.parse::<Ipv6Addr>()
            .map_err(|_| ProxyAddressError::Host("expected an IPv6 address in brackets".into()))?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(ProxyAddressError::Port),
        };
    }
    Ok(match place.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (place, None),
    })
}

/// `user:password` in a URL, where `%40` stands for `@`.
fn login_of(text: &str) -> Result<ProxyLogin, ProxyAddressError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let decoded = |text| decoded(text).ok_or("it has a percent sign that escapes nothing");
    let login = decoded(user).and_then(|user| {
        let password = decoded(password)?;
        ProxyLogin::new(&user, &password)
    });
    login.map_err(ProxyAddressError::Login)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Hostname {
        text.parse().expect("a name")
    }

    #[test]
    fn proxies_are_read_as_variables_have_them() {
        for (text, address, login) in [
            ("http://proxy.corp:3128", "http://proxy.corp:3128", None),
            ("HTTP://Proxy.Corp:3128/", "http://proxy.corp:3128", None),
            ("proxy:3128", "http://proxy:3128", None),
            ("http://proxy.corp", "http://proxy.corp:80", None),
            ("socks5h://10.0.0.5", "socks5://10.0.0.5:1080", None),
            ("https://proxy.corp", "https://proxy.corp:443", None),
            ("http://[fd00::5]:8080", "http://[fd00::5]:8080", None),
            ("ada:pw@proxy:1", "http://proxy:1", Some(("ada", "pw"))),
            (
                "http://ada:p%40w:x@proxy:1",
                "http://proxy:1",
                Some(("ada", "p@w:x")),
            ),
            (
                "http://ada:p@w@proxy:1",
                "http://proxy:1",
                Some(("ada", "p@w")),
            ),
            (
                "socks5://ada@proxy",
                "socks5://proxy:1080",
                Some(("ada", "")),
            ),
        ] {
            let (read, found) = ProxyAddress::parse(text).expect(text);
            assert_eq!(read.to_string(), address, "{text}");
            assert_eq!(found.as_ref().map(ProxyLogin::reveal), login, "{text}");
        }
    }

    #[test]
    fn what_is_no_proxy_is_refused_and_its_password_not_repeated() {
        for text in [
            "",
            "ftp://p:DECOY@x:1",
            "http://u:DECOY@",
            "http://u:DECOY@x:0",
            "http://u:DECOY@x:99999",
            "http://u:DECOY@x:1/path",
            "http://u:DECOY@a b:1",
            "http://u:DECOY@0x7f.1:1",
            "http://u:DECOY%@x:1",
            "http://u:DECOY%0a@x:1",
            "http://:DECOY@x:1",
            "http://u:DECOY@[fd00::5:1",
            "http://u:DECOY@x\r\nHost: y:1",
        ] {
            let error = ProxyAddress::parse(text).expect_err(text);
            assert!(!format!("{error} {error:?}").contains("DECOY"), "{error}");
        }
        let (_, login) = ProxyAddress::parse("http://u:DECOY@x:1").expect("a proxy");
        assert!(!format!("{login:?}").contains("DECOY"));
    }

    #[test]
    fn names_of_the_company_and_of_nobody_are_not_left_to_the_proxy() {
        let domains = [name("corp.example"), name("ad.acme.com")];
        for known in ["www.example.com", "example.com", "acme.com", "a.b.c.org"] {
            assert!(only_the_proxy_may_know(&name(known), &domains), "{known}");
        }
        for kept in [
            "intranet",
            "corp.example",
            "wiki.corp.example",
            "x.ad.acme.com",
            "printer.local",
            "x.localhost",
            "metadata.google.internal",
            "x.onion",
            "x.invalid",
            "5.0.20.10.in-addr.arpa",
            "nas.home.arpa",
            "wiki.corp",
            "router.lan",
            "x.home",
            "x.intranet",
            "x.private",
            "x.localdomain",
            "x.alt",
            "db1.staging",
            "kubernetes.default.svc",
        ] {
            assert!(!only_the_proxy_may_know(&name(kept), &domains), "{kept}");
        }
    }

    #[test]
    fn exemptions_cover_what_they_say() {
        let all = |texts: &[&str]| {
            Exemptions(
                texts
                    .iter()
                    .map(|text| text.parse().expect("one"))
                    .collect(),
            )
        };
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let some = all(&[
            "corp.example",
            ".lab.example",
            "*.x.example",
            "10.0.0.0/8",
            "93.1.2.3",
        ]);
        let at = |names: &[&str]| names.iter().map(|text| name(text)).collect::<Vec<_>>();
        for names in [
            ["corp.example"],
            ["a.corp.example"],
            ["lab.example"],
            ["y.x.example"],
        ] {
            assert!(some.cover(address("1.1.1.1"), &at(&names)), "{names:?}");
        }
        for covered in ["10.1.2.3", "::ffff:10.1.2.3", "93.1.2.3"] {
            assert!(some.cover(address(covered), &[]), "{covered}");
        }
        assert!(!some.cover(address("93.1.2.4"), &at(&["xcorp.example"])));
        assert!(all(&["*"]).cover(address("93.1.2.4"), &[]));
        assert!(!Exemptions::default().cover(address("10.1.2.4"), &[]));
        for odd in ["", "a b", "10.0.0.0/99", "<local>", "a/b", "x:80"] {
            assert!(odd.parse::<Exemption>().is_err(), "{odd}");
        }
        for text in ["corp.example", "10.0.0.0/8", "93.1.2.3", "*"] {
            assert_eq!(all(&[text]).0[0].to_string(), text);
        }
    }
}
