//! The one decision.
//!
//! # Theory of operation
//!
//! A flow passes these questions in order; the first that applies decides:
//!
//! 1. Can nothing inside reach the destination, whatever the network? Deny.
//!    (Loopback, multicast, broadcast: dialled from outside the jail they would
//!    be the *host's*. Which addresses are broadcast ones of a subnet, the routes
//!    tell.)
//! 2. Does a user's rule for addresses cover the flow? Allow. Sensitive
//!    destinations ask for a rule that means them ([`Restriction`]): a metadata
//!    service or the host itself is never covered by a network that happens to
//!    hold it.
//! 3. Is the destination sensitive? Deny.
//! 4. Is it not on the internet: no global address, or not one that the host
//!    reaches through its default route? Deny, whatever names it has: who owns a
//!    name can make it point anywhere.
//! 5. Is the internet open? Allow.
//! 6. Was the destination given to the program under a name that a rule covers?
//!    Allow, unless it is QUIC, in which nobody sees whether that name is meant:
//!    by its port here, by what its datagrams look like in [`decide_quic`].
//!
//! Rules only allow, so their order means nothing and removing one never opens
//! anything. Every denial that a rule could turn carries the narrowest such rule.
//!
//! A flow that was admitted by names alone may show, once it stands, which one it
//! is for (TLS, HTTP). That claim is judged by [`decide_claim`]: as if the
//! destination had no other name.

use std::cmp::Reverse;
use std::net::IpAddr;

use crate::evidence::{Evidence, Route};
use crate::flow::Flow;
use crate::name::{Hostname, NamePattern};
use crate::policy::Policy;
use crate::registry::{self, Class, Reach};
use crate::rule::Rule;
use crate::verdict::{Near, Reason, Restriction, Verdict};

pub fn decide(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    let destination = flow.destination();
    let class = registry::classify(destination);
    if let Class::Special(special) = class
        && special.entry.reach == Reach::Never
    {
        return Verdict::new(flow, Reason::NeverReachable(special));
    }

    if evidence.route == Route::Broadcast {
        let idle = policy.rules.for_address(flow);
        let idle = idle.map(|(_, rule)| rule.clone());
        return Verdict::new(flow, Reason::Broadcast { idle });
    }

    let restriction = restriction(destination, class, evidence);
    let floor = restriction.map_or(0, |restriction| restriction.floor(destination));
    // The most specific rule: if this one is too wide, all are.
    let covering = policy.rules.for_address(flow);
    if let Some((index, rule)) = covering
        && rule
            .network()
            .is_some_and(|network| network.prefix_len() >= floor)
    {
        let rule = rule.clone();
        return Verdict::new(flow, Reason::Rule { index, rule });
    }
    if let Some(restriction) = restriction {
        let denial = Reason::Restricted {
            restriction,
            too_wide: covering.map(|(_, rule)| rule.clone()),
        };
        return Verdict::with_fix(flow, denial, Rule::exactly(flow));
    }

    match (class, evidence.route) {
        (Class::Special(special), _) => inward(policy, flow, evidence, Near::Special(special)),
        (_, Route::Specific(network)) => inward(policy, flow, evidence, Near::Known(network)),
        (_, Route::Default) if policy.internet => Verdict::new(flow, Reason::Internet),
        (_, Route::Default) => by_name(policy, flow, evidence),
        // `Local` and `Broadcast` were decided above; without that they are as good as none.
        (_, Route::Local | Route::Broadcast | Route::None) => nowhere(policy, flow, evidence),
    }
}

/// May this flow pass, now that the program says which name it is for?
///
/// Never more than without the claim. A name that the destination was not given
/// for counts as none.
pub fn decide_claim(
    policy: &Policy,
    flow: &Flow,
    evidence: &Evidence<'_>,
    claimed: &Hostname,
) -> Verdict {
    let named = evidence.names.iter().position(|name| name == claimed);
    let names = match named {
        Some(_) => std::slice::from_ref(claimed),
        None => &[],
    };
    let verdict = decide(policy, flow, &Evidence { names, ..*evidence });
    // That no rule covers it is not the point then. Who wants the name allows the name: the address
    // may be that of a whole CDN, and the program alone says what it is for.
    if named.is_none() && matches!(verdict.reason(), Reason::NotListed { .. }) {
        let denial = Reason::OtherName {
            claimed: claimed.clone(),
        };
        let names = std::slice::from_ref(claimed);
        let is_covered = covering_name(policy, flow, &Evidence { names, ..*evidence }).is_some();
        let fix = Rule::of_name(claimed, Some(flow.protocol()), flow.port());
        return Verdict::with_fix(flow, denial, fix.filter(|_| !is_covered));
    }
    verdict
}

/// May this flow pass, now that its datagrams show that it is QUIC, on whatever port?
///
/// Never more than without that.
pub fn decide_quic(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    let verdict = decide(policy, flow, evidence);
    match verdict.reason() {
        Reason::Name { name, .. } => quic(policy, flow, evidence, name),
        _ => verdict,
    }
}

/// Whether a destination is on the internet, by all that is known of it.
pub fn is_on_internet(flow: &Flow, evidence: &Evidence<'_>) -> bool {
    let is_global = !matches!(registry::classify(flow.destination()), Class::Special(_));
    is_global && evidence.route == Route::Default && !evidence.own
}

/// On the internet, which is not open.
fn by_name(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    let name = evidence.names.iter().find(|name| !name.is_localhost());
    if flow.is_quic()
        && let Some(first) = name
    {
        return quic(policy, flow, evidence, first);
    }
    if let Some((name, index, rule)) = covering_name(policy, flow, evidence) {
        let (name, rule) = (name.clone(), rule.clone());
        return Verdict::new(flow, Reason::Name { name, index, rule });
    }
    listed_by_name_if_it_has_one(flow, evidence)
}

/// Denied, and what would allow it. An address that has a name is never proposed by its number:
/// others are at the same address.
fn listed_by_name_if_it_has_one(flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    let denial = not_listed(evidence);
    let fix = match evidence.names.iter().find(|name| !name.is_localhost()) {
        Some(name) => Rule::of_name(name, Some(flow.protocol()), flow.port()),
        None => Some(Rule::exactly(flow)),
    };
    Verdict::with_fix(flow, denial, fix)
}

/// A rule that covers the TCP connection instead is all that it takes.
fn quic(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>, first: &Hostname) -> Verdict {
    let tcp = flow.without_quic();
    if let Some((name, _, _)) = covering_name(policy, &tcp, evidence) {
        let name = name.clone();
        return Verdict::new(flow, Reason::Quic { name });
    }
    let name = first.clone();
    let denial = Reason::Quic { name };
    let fix = Rule::of_name(first, Some(tcp.protocol()), tcp.port());
    Verdict::with_fix(flow, denial, fix)
}

/// Not on the internet: names count for nothing there.
fn inward(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>, near: Near) -> Verdict {
    let denial = match covering_name(policy, flow, evidence) {
        Some((name, index, rule)) => Reason::Inward {
            near,
            name: name.clone(),
            index,
            rule: rule.clone(),
        },
        None if policy.internet => Reason::Near(near),
        None => not_listed(evidence),
    };
    Verdict::with_fix(flow, denial, Rule::exactly(flow))
}

/// The host cannot get there either. Where a rule for addresses is all that
/// counts, one is missing nevertheless.
fn nowhere(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    if policy.internet || covering_name(policy, flow, evidence).is_some() {
        return Verdict::new(flow, Reason::NoRoute);
    }
    let denial = not_listed(evidence);
    if evidence.names.iter().any(|name| !name.is_localhost()) {
        // A rule for the name would not make a route, and one for the address opens others.
        return Verdict::new(flow, denial);
    }
    Verdict::with_fix(flow, denial, Rule::exactly(flow))
}

fn not_listed(evidence: &Evidence<'_>) -> Reason {
    Reason::NotListed {
        name: evidence.names.first().cloned(),
    }
}

/// Of the destination's names, the one with the most specific rule.
fn covering_name<'a>(
    policy: &'a Policy,
    flow: &Flow,
    evidence: &Evidence<'a>,
) -> Option<(&'a Hostname, usize, &'a Rule)> {
    let covered = evidence.names.iter().filter_map(|name| {
        let (index, rule) = policy.rules.for_name(name, flow)?;
        Some((name, index, rule))
    });
    covered.min_by_key(|(_, index, rule)| {
        let specificity = rule.name().map(NamePattern::specificity);
        (Reverse(specificity), *index)
    })
}

/// Whether a destination needs a rule that means it.
fn restriction(destination: IpAddr, class: Class, evidence: &Evidence<'_>) -> Option<Restriction> {
    if let Some(service) = registry::metadata(destination) {
        return Some(Restriction::Metadata { service, via: None });
    }
    let inside = registry::embedded(destination).find_map(|embedding| {
        let service = registry::metadata(embedding.address.into())?;
        Some(Restriction::Metadata {
            service,
            via: Some(embedding),
        })
    });
    if inside.is_some() {
        return inside;
    }
    if evidence.own || evidence.route == Route::Local {
        return Some(Restriction::Own);
    }
    match class {
        Class::Special(special) if special.via.is_some() => Some(Restriction::Disguised(special)),
        _ => None,
    }
}
