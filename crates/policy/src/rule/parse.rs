//! The grammar of rules: cuts the text into protocol, target and ports.

use super::address::network;
use super::error::{Fault, Part, Problem};
use super::{Ports, Rule};
use crate::flow::Protocol;
use crate::registry;

pub(super) fn rule(text: &str) -> Result<Rule, Fault> {
    let whole = Part::whole(text);
    if text.is_empty() {
        return Err(whole.fault(Problem::Empty));
    }
    refuse_odd_characters(text)?;

    let (protocol, rest) = match whole.split_once("://") {
        Some((name, rest)) => (Some(protocol(name, rest)?), rest),
        None => (None, whole),
    };
    let (target, enclosed, ports) = target_and_ports(rest)?;
    let network = network(target, enclosed)?;
    if let (Some(Protocol::Icmp), Some(ports)) = (protocol, ports) {
        let with_colon = enclosed.span().end..ports.span().end;
        return Err(ports.fault(Problem::IcmpPorts).mend_at(with_colon, ""));
    }
    let ports = match ports {
        Some(ports) if matches!(ports.text, "" | "*") => {
            let with_colon = enclosed.span().end..ports.span().end;
            let problem = Problem::Port(ports.text.to_owned());
            return Err(ports.fault(problem).mend_at(with_colon, ""));
        }
        Some(ports) => Some(Ports::parse(ports)?),
        None => None,
    };
    if let Some(special) = registry::never_reachable(network) {
        let target = target.text.to_owned();
        return Err(enclosed.fault(Problem::NeverReachable { target, special }));
    }
    Ok(Rule {
        protocol,
        network,
        ports,
    })
}

/// Rules are visible ASCII. What looks like a digit or a dot in another script
/// is not one, and what cannot be seen hides something.
fn refuse_odd_characters(text: &str) -> Result<(), Fault> {
    let Some((start, odd)) = text.char_indices().find(|(_, c)| !c.is_ascii_graphic()) else {
        return Ok(());
    };
    let span = start..start.saturating_add(odd.len_utf8());
    let seen = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    let seen: String = seen.chars().map(as_ascii).collect();
    Err(Fault::new(Problem::Character(odd), span).mend_at(0..text.len(), seen))
}

/// The ASCII character that a full-width form, or a digit of a script in wide
/// use, stands for.
fn as_ascii(c: char) -> char {
    const DIGIT_ZEROS: [char; 3] = ['\u{660}', '\u{6f0}', '\u{966}'];
    let full_width = u32::from(c).checked_sub(0xfee0).and_then(char::from_u32);
    let digit = DIGIT_ZEROS.iter().find_map(|zero| {
        let value = u32::from(c).checked_sub(u32::from(*zero))?;
        char::from_digit(value, 10)
    });
    full_width
        .filter(char::is_ascii_graphic)
        .or(digit)
        .unwrap_or(c)
}

fn protocol(name: Part<'_>, rest: Part<'_>) -> Result<Protocol, Fault> {
    match name.text {
        "tcp" => return Ok(Protocol::Tcp),
        "udp" => return Ok(Protocol::Udp),
        "icmp" => return Ok(Protocol::Icmp),
        _ => {}
    }
    let fault = name.fault(Problem::Protocol(name.text.to_owned()));
    let whole = 0..rest.span().end;
    let host = rest.text.trim_end_matches('/');
    Err(match name.text.to_ascii_lowercase().as_str() {
        "" => fault.mend_at(whole, rest.text),
        "icmp6" | "icmpv6" | "ping" => fault.mend("icmp"),
        "http" if !host.contains(':') => fault.mend_at(whole, format!("tcp://{host}:80")),
        "https" if !host.contains(':') => fault.mend_at(whole, format!("tcp://{host}:443")),
        "http" | "https" => fault.mend_at(whole, format!("tcp://{host}")),
        lower => fault.mend(lower),
    })
}

/// The target, the same with its brackets if it has any, and the ports.
type Cut<'a> = (Part<'a>, Part<'a>, Option<Part<'a>>);

fn target_and_ports(rest: Part<'_>) -> Result<Cut<'_>, Fault> {
    if rest.text.contains(['[', ']']) {
        return bracketed(rest);
    }
    let (target, ports) = match rest.text.matches(':').count() {
        0 => (rest, None),
        1 => match rest.split_once(":") {
            Some((target, ports)) => (target, Some(ports)),
            None => (rest, None),
        },
        // An IPv6 address, whose colons are its own.
        _ => {
            refuse_ports_without_brackets(rest)?;
            (rest, None)
        }
    };
    if target.text.is_empty() {
        return Err(target.fault(Problem::NoTarget));
    }
    if let (Some(ports), "tcp" | "udp" | "icmp") = (ports, target.text) {
        let slashes = target.span().end..ports.span().start;
        let fault = target.fault(Problem::HostName(target.text.to_owned()));
        return Err(fault.mend_at(slashes, "://"));
    }
    Ok((target, target, ports))
}

fn bracketed(rest: Part<'_>) -> Result<Cut<'_>, Fault> {
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
        let fault = enclosed.fault(Problem::BracketedIpv4);
        return Err(fault.mend(target.text));
    }
    match after.strip_prefix(":") {
        Some(ports) => Ok((target, enclosed, Some(ports))),
        None if after.text.is_empty() => Ok((target, enclosed, None)),
        None => Err(after.fault(Problem::Brackets)),
    }
}

/// Tells a missing pair of brackets from a plain mistake in an address: with
/// the last number taken for a port, the rest makes sense. (A third colon in a
/// row is more likely a slip than the port of an address that ends in zeros.)
fn refuse_ports_without_brackets(rest: Part<'_>) -> Result<(), Fault> {
    let Some((target, ports)) = rest.rsplit_once(":") else {
        return Ok(());
    };
    let is_target = network(target, target).is_ok() && !target.text.ends_with(':');
    if (is_target || target.text.contains('/'))
        && Ports::parse(ports).is_ok()
        && network(rest, rest).is_err()
    {
        let mended = format!("[{}]:{}", target.text, ports.text);
        return Err(rest.fault(Problem::MissingBrackets).mend(mended));
    }
    Ok(())
}
