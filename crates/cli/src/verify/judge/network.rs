//! What can be reached, heard and changed.

use std::{net::IpAddr, path::Path};

use rustix::io::Errno;
use stockade_config::Mode;
use stockade_jail::NAME_SERVER;

use super::{Case, Controls};
use crate::verify::{
    destinations::{is_allowed, is_metadata},
    messages::{Target, Transport, Tried},
    outside::Role,
    report::{Check, Finding},
};

pub(super) fn findings(case: &Case<'_>) -> Vec<Finding> {
    vec![
        jail(case),
        control(case),
        unreached(
            case,
            Check::new("network.loopback", "the host's loopback is unreachable"),
            |role, address| role == Role::Loopback && address.is_ipv4(),
        ),
        unreached(
            case,
            Check::new(
                "network.addresses",
                "the host's own addresses are unreachable",
            ),
            |role, address| role == Role::Address && address.is_ipv4(),
        ),
        ipv6(case),
        denied(
            case,
            Check::new("network.lateral", "private networks are unreachable"),
            |address| !is_metadata(address),
        ),
        denied(
            case,
            Check::new(
                "network.metadata",
                "metadata services of clouds are unreachable",
            ),
            is_metadata,
        ),
        names(case),
        changes(case),
        listeners(case),
    ]
}

fn ipv6(case: &Case<'_>) -> Finding {
    let check = Check::new("network.ipv6", "nor is any of them reachable by IPv6");
    if !case.outside.has_ipv6 {
        return check.pass("this machine's kernel has no IPv6");
    }
    unreached(case, check, |role, address| {
        role != Role::Control && address.is_ipv6()
    })
}

fn jail(case: &Case<'_>) -> Finding {
    let check = Check::new("network.jail", "the network is another one than the host's");
    match (case.mode(), case.is_apart("net")) {
        (Mode::Host, _) => check.fail(format!(
            "there is no jail ({}): the command has the network of this machine",
            case.effective.network.mode.origin
        )),
        (_, Some(false)) => check.fail("it is the host's own"),
        (Mode::Jail, Some(true)) => {
            check.pass("another one than the host's; a veth pair joins it to the gatehouse")
        }
        (Mode::None, Some(true)) => {
            check.pass("another one than the host's; nothing leads out of it")
        }
        (_, None) => check.inconclusive("it cannot be told"),
    }
}

/// Whether a listener of this kind that the session may reach was reached.
fn is_alive(case: &Case<'_>, transport: Transport) -> Option<bool> {
    let listeners = case.outside.listeners.0.iter().zip(&case.seen.targets);
    let mut controls = listeners
        .filter(|(it, _)| it.role == Role::Control && it.target.transport == transport && it.works);
    controls.next().map(|(_, tried)| tried.worked())
}

fn control(case: &Case<'_>) -> Finding {
    let check = Check::new("network.control", "what is allowed can be reached");
    if case.mode() != Mode::Jail {
        return check.inconclusive("there is no jail that could allow something");
    }
    if case.controls == Controls::Locked {
        return check.inconclusive("the network is locked, so nothing can be allowed for control");
    }
    match (
        is_alive(case, Transport::Tcp),
        is_alive(case, Transport::Udp),
    ) {
        (Some(true), Some(false)) => check.inconclusive("by TCP it can, by UDP it cannot"),
        (Some(true), _) => check.pass("a listener of this machine's, given for control, answered"),
        _ => check.inconclusive("nothing can be reached at all, so denials prove nothing"),
    }
}

/// Whether it would show if something could be reached: a dead network proves nothing. Having
/// none is what was asked for, where it was.
fn would_show(case: &Case<'_>) -> bool {
    case.mode() != Mode::Jail || is_alive(case, Transport::Tcp) == Some(true)
}

fn unreached(case: &Case<'_>, check: Check, which: fn(Role, IpAddr) -> bool) -> Finding {
    let listeners = case.outside.listeners.0.iter().zip(&case.seen.targets);
    let chosen: Vec<_> = listeners
        .filter(|(it, _)| it.works && which(it.role, it.target.address.ip()))
        .collect();
    if chosen.is_empty() {
        return check.inconclusive("this machine has no such address");
    }
    let said = |tried: &Tried| *tried == Tried::Worked(case.outside.token.clone());
    let reached = chosen
        .iter()
        .filter(|(it, tried)| said(tried) || it.was_reached());
    let (given, leaked): (Vec<Target>, Vec<Target>) = reached
        .map(|(it, _)| it.target)
        .partition(|target| is_allowed(case.effective, target));
    let faults: Vec<String> = leaked
        .iter()
        .map(|target| {
            let (at, by) = (target.address.ip(), target.transport.name());
            format!("a listener at {at} was reached by {by}")
        })
        .collect();
    if faults.is_empty() && !would_show(case) {
        return check.inconclusive("nothing can be reached at all, so this proves nothing");
    }
    let note = match given.as_slice() {
        [] => "no listener there was reached, though all can be from outside".to_owned(),
        [first, ..] => format!("none but what a rule allows, as {}", first.address.ip()),
    };
    check.unless(&faults, note)
}

/// Errors of the kernel where there is no IPv6 in the jail, or none at all.
const NO_IPV6: [Errno; 3] = [Errno::NETUNREACH, Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT];

/// Errors that the gate's denial makes.
const DENIALS: [Errno; 4] = [
    Errno::HOSTUNREACH,
    Errno::NETUNREACH,
    Errno::ACCESS,
    Errno::PERM,
];

fn denied(case: &Case<'_>, check: Check, which: fn(IpAddr) -> bool) -> Finding {
    match case.mode() {
        Mode::Host => return check.fail("not tried: there is no jail that would deny them"),
        Mode::None => return check.pass("there is no network at all"),
        Mode::Jail => {}
    }
    let tried: Vec<_> = case
        .second
        .denied
        .iter()
        .zip(&case.then.denied)
        .filter(|(target, _)| which(target.address.ip()))
        .collect();
    if case.is_apart("net") != Some(true) {
        return check.fail("not tried: there is no jail that would deny them");
    }
    if tried.is_empty() {
        return check.inconclusive("rules open everything that could be tried");
    }
    let faults: Vec<String> = tried
        .iter()
        .filter_map(|(target, tried)| fault(case, target, tried))
        .collect();
    if faults.is_empty() && !would_show(case) {
        return check.inconclusive("nothing can be reached at all, so this proves nothing");
    }
    let opened = case.opened.iter().filter(|address| which(**address));
    let opened: Vec<String> = opened.map(ToString::to_string).collect();
    let by = if case.log.is_some() {
        "by error and log"
    } else {
        "by error"
    };
    let mut note = format!("{} of them, {by}", tried.len());
    if !opened.is_empty() {
        note += &format!("; rules open {}", opened.join(", "));
    }
    check.unless(&faults, note)
}

fn fault(case: &Case<'_>, target: &Target, tried: &Tried) -> Option<String> {
    let address = target.address.ip();
    match tried {
        Tried::Worked(_) => return Some(format!("{address} was reached")),
        Tried::Silence => return Some(format!("{address} was not denied at once")),
        Tried::Refused(_) => {}
    }
    let name = target.to_string();
    // Without IPv6 in the jail its own kernel refuses, and the gate hears nothing of it.
    let by_kernel = address.is_ipv6() && tried.is_refused_with(&NO_IPV6);
    match &case.log {
        Some(log) if log.opened.contains(&name) => Some(format!(
            "{address} was let pass, by the log, and failed ({tried})"
        )),
        Some(log) if !log.denied.contains(&name) && !by_kernel => Some(format!(
            "{address} was not denied, by the log, and failed ({tried})"
        )),
        Some(_) => None,
        None if by_kernel || tried.is_refused_with(&DENIALS) => None,
        None => Some(format!("{address} was not denied: {tried}")),
    }
}

fn names(case: &Case<'_>) -> Finding {
    let check = Check::new("network.names", "names are asked for at the gate alone");
    match case.mode() {
        Mode::Host => return check.fail("there is no gate"),
        Mode::None => return check.pass("there is no network at all"),
        Mode::Jail => {}
    }
    let text = case.seen.texts.get(Path::new("/etc/resolv.conf"));
    let text = text.map(String::as_str).unwrap_or_default();
    let servers: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver"))
        .map(str::trim)
        .collect();
    let own = NAME_SERVER.to_string();
    if servers != [own.as_str()] {
        return check.fail(format!(
            "resolv.conf names other servers: {}",
            servers.join(", ")
        ));
    }
    let answered = |tried: &Tried| *tried == Tried::Worked("127.0.0.1".to_owned());
    match case.then.names.as_slice() {
        [udp, tcp] if answered(udp) && answered(tcp) => {
            check.pass("resolv.conf names it alone, and it answers by UDP and TCP")
        }
        [udp, tcp] => check.inconclusive(format!("it does not answer: {udp}; by TCP: {tcp}")),
        _ => check.inconclusive("it was not asked"),
    }
}

fn changes(case: &Case<'_>) -> Finding {
    let check = Check::new(
        "network.immutable",
        "routes and packet filter cannot be changed",
    );
    let Some(changes) = &case.then.changes else {
        return check.fail("not tried: the network is the host's");
    };
    let faults: Vec<String> = changes
        .each()
        .into_iter()
        .filter(|(_, tried)| tried.worked())
        .map(|(what, _)| format!("{what} could be had or changed"))
        .collect();
    let nested = case.then.nested.as_ref();
    let control = nested.and_then(|nested| nested.own_network.as_ref());
    let note = match control {
        Some(Tried::Worked(_)) => "the same works in a network of its own",
        _ => "each attempt was refused",
    };
    check.unless(&faults, note)
}

fn listeners(case: &Case<'_>) -> Finding {
    let check = Check::new(
        "network.listeners",
        "what listens inside is not seen outside",
    );
    match &case.seen.listener {
        _ if case.listener_was_reached => check.fail("it was reached from outside"),
        Some((_, Tried::Worked(_))) => check.pass("it was reached from inside only"),
        _ => check.inconclusive("nothing could listen inside"),
    }
}
