//! Why something can be reached, or not: the decision on a [`Target`].
//!
//! A target may leave open the protocol, the port, and, as a name, the address.
//! Each is then asked about in all its values: [`decide`] is called for every
//! stretch of ports within which the rules do not differ, and what it says is
//! gathered. So an explanation is nothing but decisions, and cannot disagree with
//! them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::ops::RangeInclusive;

use crate::decide::decide;
use crate::discovery::decide_search;
use crate::evidence::{Evidence, Route};
use crate::flow::{Flow, Protocol, QUIC};
use crate::name::Hostname;
use crate::names::{NameVerdict, decide_name};
use crate::policy::Policy;
use crate::rule::{Ports, Rule};
use crate::target::{Host, Target};
use crate::verdict::{Decider, Reason, Verdict};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub target: Target,
    pub outcome: Outcome,
    /// Whether the name may be asked for, if the target is a name.
    pub name: Option<NameVerdict>,
    /// Empty if the name may not be asked for or has no address.
    pub hosts: Vec<HostAnswers>,
    /// The narrowest rules that would allow all that was asked about.
    pub fixes: Vec<Rule>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Allowed,
    Denied,
    /// It depends on what the target leaves open.
    Unclear,
}

/// What is decided for one address, and the facts behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAnswers {
    pub address: IpAddr,
    pub route: Route,
    pub own: bool,
    pub names: Vec<Hostname>,
    pub answers: Vec<Answer>,
}

/// One decision, and all it holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub protocol: Protocol,
    /// None for a protocol without ports.
    pub ports: Option<RangeInclusive<u16>>,
    pub verdict: Verdict,
}

/// Explains what [`decide`] says of the target. `hosts` are the addresses that it
/// has, each with the host's evidence: for an address just that one, for a name
/// those to which it resolves. A name counts as if the program had asked for it.
/// Of loopback the ports that are given from the host are not known here.
pub fn explain<'a>(
    policy: &Policy,
    target: &Target,
    hosts: impl IntoIterator<Item = (IpAddr, Evidence<'a>)>,
) -> Explanation {
    let mut explanation = Explanation {
        target: target.clone(),
        outcome: Outcome::Unclear,
        name: None,
        hosts: Vec::new(),
        fixes: Vec::new(),
    };
    if target.is_loopback() {
        explanation.hosts.push(loopback(policy, target));
        explanation.outcome = outcome(&explanation.hosts);
        return explanation;
    }
    if let Host::Name(name) = target.host() {
        let verdict = decide_name(policy, name);
        if !verdict.is_allowed() {
            explanation.outcome = Outcome::Denied;
            explanation.fixes.extend(fix_for_name(target, name));
            explanation.name = Some(verdict);
            return explanation;
        }
        explanation.name = Some(verdict);
    }
    for (address, evidence) in hosts {
        let evidence = match target.host() {
            Host::Name(name) => Evidence {
                names: std::slice::from_ref(name),
                ..evidence
            },
            Host::Address(_) => evidence,
        };
        let host = ask(policy, target, address, &evidence);
        add_fixes(target, &host.answers, &mut explanation.fixes);
        explanation.hosts.push(host);
    }
    explanation.outcome = outcome(&explanation.hosts);
    if explanation.outcome == Outcome::Allowed {
        explanation.fixes.clear();
    }
    explanation
}

/// `localhost` is no name to be asked for, and what routes say of loopback is known.
fn loopback(policy: &Policy, target: &Target) -> HostAnswers {
    let address = match target.host() {
        Host::Address(address) => *address,
        Host::Name(_) => Ipv4Addr::LOCALHOST.into(),
    };
    let evidence = Evidence {
        route: Route::Local,
        own: true,
        names: &[],
    };
    ask(policy, target, address, &evidence)
}

fn ask(policy: &Policy, target: &Target, address: IpAddr, evidence: &Evidence<'_>) -> HostAnswers {
    let mut answers: Vec<Answer> = Vec::new();
    for protocol in target.protocols() {
        for ports in stretches(policy, target, *protocol, address, evidence) {
            let first = ports
                .as_ref()
                .and_then(|ports| NonZeroU16::new(*ports.start()));
            let Some(flow) = flow(*protocol, address, first) else {
                continue;
            };
            let search = decide_search(policy, &flow, evidence);
            let verdict = search.unwrap_or_else(|| decide(policy, &flow, evidence));
            match answers.last_mut() {
                Some(last) if last.protocol == *protocol && is_alike(&last.verdict, &verdict) => {
                    if let (Some(all), Some(more)) = (&mut last.ports, &ports) {
                        *all = *all.start()..=*more.end();
                    }
                }
                _ => answers.push(Answer {
                    protocol: *protocol,
                    ports,
                    verdict,
                }),
            }
        }
    }
    HostAnswers {
        address: address.to_canonical(),
        route: evidence.route,
        own: evidence.own,
        names: evidence.names.to_vec(),
        answers,
    }
}

pub(crate) fn flow(protocol: Protocol, address: IpAddr, port: Option<NonZeroU16>) -> Option<Flow> {
    match protocol {
        Protocol::Tcp => Flow::tcp(SocketAddr::new(address, port?.get())),
        Protocol::Udp => Flow::udp(SocketAddr::new(address, port?.get())),
        Protocol::Icmp => Some(Flow::echo(address)),
    }
}

/// The ports that are asked about, cut wherever a rule may begin or end.
pub(crate) fn stretches(
    policy: &Policy,
    target: &Target,
    protocol: Protocol,
    address: IpAddr,
    evidence: &Evidence<'_>,
) -> Vec<Option<RangeInclusive<u16>>> {
    if protocol == Protocol::Icmp {
        return vec![None];
    }
    if let Some(port) = target.port() {
        return vec![Some(port.get()..=port.get())];
    }
    let concerns = |rule: &&Rule| match (rule.network(), rule.name()) {
        (Some(network), _) => network.contains(&address.to_canonical()),
        (_, Some(pattern)) => evidence
            .names
            .iter()
            .any(|name| pattern.covers(name) || rule.device() == Some(name)),
        (None, None) => false,
    };
    let mut starts = vec![1, QUIC.get(), QUIC.get().saturating_add(1)];
    let ports = policy.rules.iter().filter(concerns).filter_map(Rule::ports);
    for range in ports.flat_map(Ports::ranges) {
        starts.push(*range.start());
        starts.extend(range.end().checked_add(1));
    }
    for port in policy.ports_of_searches() {
        starts.push(port);
        starts.extend(port.checked_add(1));
    }
    starts.sort_unstable();
    starts.dedup();
    let ends = starts.iter().skip(1).map(|next| next.saturating_sub(1));
    let ends = ends.chain([u16::MAX]);
    let ranges = starts.iter().zip(ends);
    ranges.map(|(start, end)| Some(*start..=end)).collect()
}

/// Whether two decisions are the same but for the port they were made for.
fn is_alike(a: &Verdict, b: &Verdict) -> bool {
    let rule = |verdict: &Verdict| match verdict.decided_by() {
        Decider::Rule { index, .. } => Some(index),
        Decider::BuiltIn(_) => None,
    };
    a.is_allowed() == b.is_allowed()
        && a.reason().name() == b.reason().name()
        && rule(a) == rule(b)
        && a.fix().is_some() == b.fix().is_some()
}

/// What was asked about is allowed if nothing of it is denied but what programs
/// do without: QUIC, addresses of a family that the host has no route for, and what no
/// proxy carries.
fn outcome(hosts: &[HostAnswers]) -> Outcome {
    let answers = hosts.iter().flat_map(|host| &host.answers);
    let (mut allowed, mut denied, mut dispensable) = (false, false, false);
    for Answer { verdict, .. } in answers {
        match verdict.reason() {
            _ if verdict.is_allowed() => allowed = true,
            Reason::Quic { .. } | Reason::NoRoute | Reason::NotThroughProxy => dispensable = true,
            _ => denied = true,
        }
    }
    Outcome::of(allowed, denied, dispensable)
}

impl Outcome {
    /// Of all decisions together: whether something is allowed, is denied, or is denied and not
    /// needed.
    pub(crate) fn of(allowed: bool, denied: bool, dispensable: bool) -> Self {
        match (allowed, denied, dispensable) {
            (true, false, _) => Outcome::Allowed,
            (false, true, _) | (false, _, true) => Outcome::Denied,
            (true, true, _) | (false, false, false) => Outcome::Unclear,
        }
    }
}

/// Adds each decision's fix, widened from the port that it was made for to what was asked about.
fn add_fixes(target: &Target, answers: &[Answer], fixes: &mut Vec<Rule>) {
    for answer in answers {
        let Some(fix) = answer.verdict.fix() else {
            continue;
        };
        let fix = match answer.verdict.reason() {
            Reason::Quic { .. } => fix.clone(),
            _ => fix.with_services(target.protocol(), target.port()),
        };
        if !fixes.contains(&fix) {
            fixes.push(fix);
        }
    }
}

fn fix_for_name(target: &Target, name: &Hostname) -> Option<Rule> {
    let as_asked = Rule::of_name(name, target.protocol(), target.port());
    as_asked.or_else(|| Rule::of_name(name, Some(Protocol::Tcp), target.port()))
}
