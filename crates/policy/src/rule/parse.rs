//! The grammar of rules: cuts the text into protocol, target and ports.

use super::address::{is_address, network};
use super::{Ports, Rule, Scope, scheme};
use crate::flow::{Protocol, QUIC};
use crate::name::NamePattern;
use crate::registry;
use crate::syntax::{Fault, Part, Problem, check_characters};

pub(super) fn rule(text: &str) -> Result<Rule, Fault> {
    let whole = Part::whole(text);
    if text.is_empty() {
        return Err(whole.fault(Problem::Empty));
    }
    check_characters(text)?;
    refuse_missing_slashes(whole)?;

    let (protocol, rest) = match whole.split_once("://") {
        Some((name, rest)) => (Some(protocol(name, rest)?), rest),
        None => (None, whole),
    };
    let cut = Cut::of(rest)?;
    let scope = scope(&cut)?;
    let ports = match cut.ports {
        Some(ports) => Some(self::ports(ports, protocol, &cut)?),
        None => None,
    };
    let rule = Rule {
        protocol,
        scope,
        ports,
        device: None,
    };
    refuse_what_has_no_effect(&rule, whole, &cut)?;
    Ok(rule)
}

/// A rule of the list `near`, which has names only.
pub(super) fn near(text: &str) -> Result<Rule, Fault> {
    let rule = rule(text)?;
    match rule.scope {
        Scope::Network(_) => Err(Part::whole(text).fault(Problem::NearAddress)),
        Scope::Name(_) | Scope::Near(_) => Ok(rule.into_near()),
    }
}

/// A rule of a device, which is one host.
pub(super) fn device(text: &str) -> Result<Rule, Fault> {
    let rule = rule(text)?;
    let several = match &rule.scope {
        Scope::Network(network) => network.prefix_len() != network.max_prefix_len(),
        Scope::Name(pattern) | Scope::Near(pattern) => pattern.is_wildcard(),
    };
    match several {
        true => Err(Part::whole(text).fault(Problem::SeveralHosts)),
        false => Ok(rule.into_near()),
    }
}

/// `tcp:/x`, `tcp:x`, `tcp/x`. A host may be called `redis`, so for the
/// schemes of URLs it takes a slash to be one.
pub(crate) fn refuse_missing_slashes(whole: Part<'_>) -> Result<(), Fault> {
    let (word, rest) = match whole.text.find([':', '/', '[']) {
        Some(at) => (whole.head(at), whole.tail(at)),
        None => return Ok(()),
    };
    let name = word.text.to_ascii_lowercase();
    let is_protocol = scheme::protocol(&name).is_some();
    let is_scheme = scheme::tcp_port(&name).is_some() && rest.text.starts_with([':', '/']);
    let with_slash = is_scheme && rest.text.trim_start_matches(':').starts_with('/');
    if rest.text.starts_with("://") || !(is_protocol || with_slash) {
        return Ok(());
    }
    let target = rest.text.trim_start_matches([':', '/']);
    let between = rest.text.len().saturating_sub(target.len());
    let fault = word.fault(Problem::Slashes(name));
    Err(fault.mend_at(rest.head(between).span(), "://"))
}

fn protocol(name: Part<'_>, rest: Part<'_>) -> Result<Protocol, Fault> {
    if let Some(protocol) = scheme::protocol(name.text) {
        return Ok(protocol);
    }
    let fault = name.fault(Problem::Protocol(name.text.to_owned()));
    let whole = 0..rest.span().end;
    let lower = name.text.to_ascii_lowercase();
    Err(if lower.is_empty() {
        fault.mend_at(whole, rest.text)
    } else if let Some(port) = scheme::tcp_port(&lower) {
        let host = without_path(rest.text);
        if host.contains(':') {
            fault.mend_at(whole, format!("tcp://{host}"))
        } else {
            fault.mend_at(whole, format!("tcp://{host}:{port}"))
        }
    } else if let Some(protocol) = scheme::meant_protocol(&lower) {
        fault.mend(protocol.to_string())
    } else {
        fault.mend(lower)
    })
}

/// Of a URL after its scheme, what a rule can say; a number is a prefix length.
fn without_path(text: &str) -> &str {
    match text.split_once('/') {
        Some((host, path))
            if path.is_empty() || !path.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            host
        }
        _ => text,
    }
}

/// The rule without its protocol, in pieces.
pub(crate) struct Cut<'a> {
    pub(crate) target: Part<'a>,
    /// The target with its brackets, if it has any.
    pub(crate) enclosed: Part<'a>,
    pub(crate) ports: Option<Part<'a>>,
}

impl<'a> Cut<'a> {
    pub(crate) fn of(rest: Part<'a>) -> Result<Self, Fault> {
        if let Some((user, host)) = rest.split_once("@") {
            let with_sign = user.span().start..host.span().start;
            return Err(Fault::new(Problem::User, with_sign.clone()).mend_at(with_sign, ""));
        }
        if rest.text.contains(['[', ']']) {
            return Self::bracketed(rest);
        }
        let (target, ports) = match rest.split_once(":") {
            // More colons: an IPv6 address, whose colons are its own.
            Some((first, more)) if more.text.contains(':') && is_hexadecimal(first.text) => {
                refuse_ports_without_brackets(rest)?;
                (rest, None)
            }
            Some((target, ports)) => (target, Some(ports)),
            None => (rest, None),
        };
        if target.text.is_empty() {
            return Err(target.fault(Problem::NoTarget));
        }
        Ok(Self {
            target,
            enclosed: target,
            ports,
        })
    }

    fn bracketed(rest: Part<'a>) -> Result<Self, Fault> {
        let cut = rest.strip_prefix("[").and_then(|open| open.split_once("]"));
        let Some((target, after)) = cut else {
            return Err(rest.fault(Problem::Brackets));
        };
        let enclosed = rest.up_to(after);
        if target.text.is_empty() {
            return Err(enclosed.fault(Problem::NoTarget));
        }
        // `[fd00::]/64:80`, as other programs have it.
        if let Some(length) = after.strip_prefix("/") {
            let (length, ports) = match length.split_once(":") {
                Some((length, ports)) => (length.text, format!(":{}", ports.text)),
                None => (length.text, String::new()),
            };
            let mended = format!("[{}/{length}]{ports}", target.text);
            return Err(rest.fault(Problem::Brackets).mend(mended));
        }
        if !target.text.contains(':') {
            let fault = enclosed.fault(Problem::NeedlessBrackets);
            return Err(fault.mend(target.text));
        }
        let ports = match after.strip_prefix(":") {
            Some(ports) => Some(ports),
            None if after.text.is_empty() => None,
            None => return Err(after.fault(Problem::Brackets)),
        };
        Ok(Self {
            target,
            enclosed,
            ports,
        })
    }

    /// For corrections that leave out the ports: they, with their colon.
    fn ports_with_colon(&self, ports: Part<'_>) -> std::ops::Range<usize> {
        self.enclosed.span().end..ports.span().end
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Tells a missing pair of brackets from a plain mistake in an address: with
/// the last number taken for a port, the rest makes sense. (A third colon in a
/// row is more likely a slip than the port of an address that ends in zeros.)
fn refuse_ports_without_brackets(rest: Part<'_>) -> Result<(), Fault> {
    let Some((target, ports)) = rest.rsplit_once(":") else {
        return Ok(());
    };
    let is_target =
        target.text.contains(':') && network(target, target).is_ok() && !target.text.ends_with(':');
    if (is_target || target.text.contains('/'))
        && Ports::parse(ports).is_ok()
        && network(rest, rest).is_err()
    {
        let mended = format!("[{}]:{}", target.text, ports.text);
        return Err(rest.fault(Problem::MissingBrackets).mend(mended));
    }
    Ok(())
}

pub(crate) fn scope(cut: &Cut<'_>) -> Result<Scope, Fault> {
    if is_address(cut.target.text) {
        return network(cut.target, cut.enclosed).map(Scope::Network);
    }
    if let Some((name, path)) = cut.target.split_once("/") {
        if name.text.is_empty() {
            return Err(name.fault(Problem::NoTarget));
        }
        let with_slash = name.span().end..path.span().end;
        return Err(Fault::new(Problem::Path, with_slash.clone()).mend_at(with_slash, ""));
    }
    NamePattern::parse(cut.target).map(Scope::Name)
}

fn ports(ports: Part<'_>, protocol: Option<Protocol>, cut: &Cut<'_>) -> Result<Ports, Fault> {
    let leave_out = cut.ports_with_colon(ports);
    if protocol == Some(Protocol::Icmp) {
        return Err(ports.fault(Problem::IcmpPorts).mend_at(leave_out, ""));
    }
    if matches!(ports.text, "" | "*") {
        let problem = Problem::Port(ports.text.to_owned());
        return Err(ports.fault(problem).mend_at(leave_out, ""));
    }
    Ports::parse(ports)
}

fn refuse_what_has_no_effect(rule: &Rule, whole: Part<'_>, cut: &Cut<'_>) -> Result<(), Fault> {
    match &rule.scope {
        Scope::Network(network) => match registry::never_reachable(*network) {
            Some(special) => {
                let target = cut.target.text.to_owned();
                Err(cut
                    .enclosed
                    .fault(Problem::NeverReachable { target, special }))
            }
            None => Ok(()),
        },
        Scope::Name(name) | Scope::Near(name) => {
            let port = rule.ports.as_ref().and_then(Ports::single);
            if rule.protocol == Some(Protocol::Udp) && port.is_some_and(|port| port == QUIC) {
                let mended = format!("tcp://{name}:{QUIC}");
                return Err(whole.fault(Problem::Quic).mend(mended));
            }
            Ok(())
        }
    }
}
