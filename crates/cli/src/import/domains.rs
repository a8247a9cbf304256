//! Hosts as other sandboxes write them, and what a denial of theirs limits. Pure.
//!
//! `*.x` means all names below `x`, and not `x`, in all of these programs and in Stockade.

use std::{
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU16,
};

use stockade_policy::{
    Rule, Scope,
    registry::{Class, classify},
};

/// A rule for what another program allows, by `protocol` (`tcp://`, or nothing for all of them).
///
/// # Errors
/// Why there is none.
pub(super) fn allowed(protocol: &str, text: &str) -> Result<Rule, String> {
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let target = bare.unwrap_or(text);
    if target.contains("://") {
        return Err("it is not a host".to_owned());
    }
    let dotted = |c: char| c.is_ascii_digit() || c == '.';
    if target.contains('.') && target.chars().all(dotted) && target.parse::<IpAddr>().is_err() {
        return Err("not an IP address".to_owned());
    }
    let rule = format!("{protocol}{target}").parse::<Rule>();
    rule.map_err(|error| error.to_string())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Denied {
    host: Host,
    /// None: all ports.
    port: Option<NonZeroU16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    /// Everything; also what is not understood.
    Any,
    Below(String),
    Name(String),
    Address(IpAddr),
}

impl Denied {
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim().to_ascii_lowercase();
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            let host = Host::Address(IpAddr::from(address).to_canonical());
            return Self { host, port: None };
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => match port.parse() {
                Ok(port) => (host.to_owned(), Some(port)),
                Err(_) => (text, None),
            },
            None => (text, None),
        };
        let host = host.trim_matches(['[', ']']).trim_end_matches('.');
        let plain = |name: &str| {
            let letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            !name.is_empty() && name.chars().all(letter)
        };
        let host = if let Ok(address) = host.parse::<IpAddr>() {
            Host::Address(address.to_canonical())
        } else if let Some(below) = host.strip_prefix("*.").filter(|below| plain(below)) {
            Host::Below(below.to_owned())
        } else if plain(host) {
            Host::Name(host.to_owned())
        } else {
            return Self {
                host: Host::Any,
                port: None,
            };
        };
        Self { host, port }
    }

    /// Whether it takes something away from what the rule allows.
    pub(super) fn limits(&self, rule: &Rule) -> bool {
        if let (Some(port), Some(ports)) = (self.port, rule.ports())
            && !ports.contains(port)
        {
            return false;
        }
        match (&self.host, rule.scope()) {
            (Host::Any, _) => true,
            (Host::Address(address), Scope::Network(network)) => network.contains(address),
            (Host::Name(name), Scope::Name(pattern)) => {
                let of_rule = pattern.name().as_str();
                match pattern.is_wildcard() {
                    true => is_below(name, of_rule),
                    false => name == of_rule,
                }
            }
            (Host::Below(domain), Scope::Name(pattern)) => {
                let of_rule = pattern.name().as_str();
                // `*.a.x` and `*.x` have names in common whichever is the denied one.
                is_below(of_rule, domain)
                    || (pattern.is_wildcard() && (of_rule == domain || is_below(domain, of_rule)))
            }
            _ => false,
        }
    }

    /// It denies an internet address, which any allowed name can lead to.
    pub(super) fn is_reached_by_names(&self) -> bool {
        match self.host {
            Host::Address(address) => classify(address) == Class::Global,
            _ => false,
        }
    }
}

fn is_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain)
        .is_some_and(|rest| rest.ends_with('.'))
}

/// Whether no name leads there in Stockade, because all of these addresses are special.
pub(super) fn is_special(range: &str) -> bool {
    let (address, length) = range.split_once('/').unwrap_or((range, "128"));
    let (Ok(address), Ok(length)) = (address.parse::<IpAddr>(), length.parse::<u8>()) else {
        return false;
    };
    match classify(address) {
        Class::Global => false,
        Class::Special(special) => {
            special.via.is_none() && length >= special.entry.block.prefix_len()
        }
    }
}

/// Whether it may allow more than an open internet does. Names never lead to private addresses. Any
/// address may be this machine's own, or a neighbour's.
pub(super) fn reaches_private(rule: &Rule) -> bool {
    rule.network().is_some() || rule.is_near() || rule.device().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_limits_what_has_a_host_and_a_port_in_common_with_it() {
        for (denied, rule, limits) in [
            ("*", "tcp://a.example", true),
            ("gist.github.com", "tcp://*.github.com", true),
            ("*.github.com", "tcp://gist.github.com", true),
            ("*.github.com", "tcp://*.api.github.com", true),
            ("*.api.github.com", "tcp://*.github.com", true),
            ("*.github.com", "tcp://*.github.com", true),
            ("*.github.com", "tcp://github.com", false),
            ("github.com", "tcp://*.github.com", false),
            ("hub.com", "tcp://github.com", false),
            ("*.hub.com", "tcp://github.com", false),
            ("GitHub.com.", "tcp://github.com", true),
            ("github.com:22", "tcp://github.com", true),
            ("github.com:22", "tcp://github.com:443", false),
            ("github.com:443", "tcp://github.com:443", true),
            ("10.0.0.5", "10.0.0.0/8", true),
            ("10.0.0.5", "10.0.0.6", false),
            ("[fd00::5]:80", "[fd00::5]:80", true),
            ("fd00::5", "fd00::/16", true),
            ("::ffff:10.0.0.5", "10.0.0.5", true),
            // What is not understood denies all.
            ("api-*.example.org", "tcp://unrelated.example", true),
            ("", "tcp://unrelated.example", true),
            (
                "a.m\u{fc}nchen.example",
                "tcp://*.xn--mnchen-3ya.example",
                true,
            ),
        ] {
            let rule: Rule = rule.parse().expect(rule);
            assert_eq!(
                Denied::parse(denied).limits(&rule),
                limits,
                "{denied}, {rule}"
            );
        }
    }

    #[test]
    fn names_lead_to_no_special_address() {
        for (range, special) in [
            ("10.0.0.0/8", true),
            ("10.1.2.3", true),
            ("169.254.169.254", true),
            ("fc00::/7", true),
            ("127.0.0.0/8", true),
            ("10.0.0.0/7", false),
            ("8.8.8.8", false),
            ("0.0.0.0/0", false),
            ("::/0", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_special(range), special, "{range}");
        }
        assert!(Denied::parse("8.8.8.8").is_reached_by_names());
        assert!(!Denied::parse("10.0.0.1").is_reached_by_names());
    }
}
