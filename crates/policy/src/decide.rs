//! The one decision.
//!
//! # Theory of operation
//!
//! A flow passes these questions in order; the first that applies decides:
//!
//! 1. Can nothing inside reach the destination, whatever the network? Deny.
//!    (Loopback, multicast, broadcast: dialled from outside the jail they would
//!    be the *host's*. Which addresses are broadcast ones of a subnet, the routes
//!    tell. A search for devices is not dialled but passed on, see
//!    [`decide_search`](crate::decide_search).)
//! 2. Does a user's rule for addresses cover the flow? Allow. Sensitive
//!    destinations ask for a rule that means them ([`Restriction`]): a metadata
//!    service or the host itself is never covered by a network that happens to
//!    hold it.
//! 3. Is the destination sensitive? Deny.
//! 4. Does the host reach it through its proxy? That carries TCP alone: deny the rest, whatever
//!    rule there is. TCP goes on as if by a default route.
//! 5. Is it not on the internet: no global address, or not one that the host
//!    reaches through its default route? Allow it if it is an ordinary private
//!    address (or a global one of a network that the host knows) and was given to
//!    the program under a name that a rule of `near` covers; the rest is as in 7.
//!    Deny it otherwise, whatever names it has: who owns a name can make it point
//!    anywhere, and only `near` says that the user trusts the owner in that.
//! 6. Is the internet open? Allow.
//! 7. Was the destination given to the program under a name that a rule covers?
//!    Allow, unless it is QUIC, in which nobody sees whether that name is meant:
//!    by its port here, by what its datagrams look like in [`decide_quic`].
//!
//! So a name of `near` never leads to what the first three questions are about:
//! loopback, multicast, broadcast, metadata services, the host's own addresses and
//! addresses that carry another one inside. Link-local addresses are not private.
//!
//! Rules only allow, so their order means nothing and removing one never opens
//! anything. Every denial that a rule could turn carries the narrowest such rule.
//!
//! A flow that was admitted by names alone may show, once it stands, which one it
//! is for (TLS, HTTP). That claim is judged by [`decide_claim`]: as if the
//! destination had no other name.

use std::cmp::Reverse;
use std::net::IpAddr;

use crate::discovery;
use crate::evidence::{Evidence, Route};
use crate::flow::{Flow, Protocol};
use crate::name::{Hostname, NamePattern};
use crate::policy::Policy;
use crate::proxy::is_in_pool;
use crate::registry::{self, Class, Reach};
use crate::rule::Rule;
use crate::verdict::{Near, Reason, Restriction, Verdict};

pub fn decide(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    verdict(policy, flow, evidence)
        .at(policy)
        .known_as(evidence.names)
}

fn verdict(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    let destination = flow.destination();
    let class = registry::classify(destination);
    if let Some(denial) = discovery::unlisted(policy, flow, evidence) {
        return Verdict::new(flow, denial);
    }
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

    if evidence.route == Route::Proxied && flow.protocol() != Protocol::Tcp {
        return Verdict::new(flow, Reason::NotThroughProxy);
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
        (Class::Special(special), route) if route != Route::Proxied || !is_in_pool(destination) => {
            inward(policy, flow, evidence, Near::Special(special))
        }
        (_, Route::Proxied) if policy.internet => Verdict::new(flow, Reason::InternetByProxy),
        (_, Route::Proxied) => by_name(policy, flow, evidence),
        (_, Route::Specific(network)) => inward(policy, flow, evidence, Near::Known(network)),
        (_, Route::Default) if policy.internet => Verdict::new(flow, Reason::Internet),
        (_, Route::Default) => by_name(policy, flow, evidence),
        // All but `None` were decided above; without that they are as good as none.
        (_, Route::Local | Route::Broadcast | Route::ToProxy | Route::None) => {
            nowhere(policy, flow, evidence)
        }
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
    let is_unlisted = matches!(verdict.reason(), Reason::NotListed { .. } | Reason::Near(_));
    if named.is_none() && is_unlisted {
        let denial = Reason::OtherName {
            claimed: claimed.clone(),
        };
        let names = std::slice::from_ref(claimed);
        let count = Counting::at(flow, evidence);
        let said = Evidence { names, ..*evidence };
        let is_covered = covering_name(policy, flow, &said, count).is_some();
        let fix = rule_name(policy, names).and_then(|claimed| count.rule(claimed, flow));
        return Verdict::with_fix(flow, denial, fix.filter(|_| !is_covered)).at(policy);
    }
    verdict
}

/// May this flow pass, now that its datagrams show that it is QUIC, on whatever port?
///
/// Never more than without that.
pub fn decide_quic(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    let verdict = decide(policy, flow, evidence);
    match verdict.reason() {
        Reason::Name { name, .. } => quic(policy, flow, evidence, name)
            .at(policy)
            .known_as(evidence.names),
        _ => verdict,
    }
}

/// Whether a destination is on the internet, by all that is known of it.
pub fn is_on_internet(flow: &Flow, evidence: &Evidence<'_>) -> bool {
    let is_global = !matches!(registry::classify(flow.destination()), Class::Special(_));
    let is_there = match evidence.route {
        Route::Default => is_global,
        Route::Proxied => is_global || is_in_pool(flow.destination()),
        _ => false,
    };
    is_there && !evidence.own
}

/// On the internet, which is not open.
fn by_name(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    let name = evidence.names.iter().find(|name| !name.is_localhost());
    if flow.is_quic()
        && let Some(first) = name
    {
        return quic(policy, flow, evidence, first);
    }
    if let Some((name, index, rule)) = covering_name(policy, flow, evidence, Counting::All) {
        let (name, rule) = (name.clone(), rule.clone());
        return Verdict::new(flow, Reason::Name { name, index, rule });
    }
    listed_by_name_if_it_has_one(policy, flow, evidence)
}

/// The name that led to the destination, as a rule can have it: a device's own is in no rule.
fn rule_name<'a>(policy: &Policy, names: &'a [Hostname]) -> Option<&'a Hostname> {
    let is_device = |name: &Hostname| policy.rules.device(name).is_some();
    names
        .iter()
        .find(|name| !name.is_localhost() && !is_device(name))
}

/// Which rules for names count for a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counting {
    All,
    /// Those of `near`: it is not on the internet.
    Near,
}

impl Counting {
    fn at(flow: &Flow, evidence: &Evidence<'_>) -> Self {
        let is_special = matches!(registry::classify(flow.destination()), Class::Special(_));
        match evidence.route {
            Route::Proxied => Self::All,
            Route::Specific(_) => Self::Near,
            _ if is_special => Self::Near,
            _ => Self::All,
        }
    }

    /// The narrowest rule that would count for this flow.
    fn rule(self, name: &Hostname, flow: &Flow) -> Option<Rule> {
        let rule = Rule::of_name(name, Some(flow.protocol()), flow.port());
        match self {
            Self::All => rule,
            Self::Near => rule.map(Rule::into_near),
        }
    }
}

/// Denied, and what would allow it. An address that has a name is never proposed by its number:
/// others are at the same address.
fn listed_by_name_if_it_has_one(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    let denial = not_listed(evidence);
    let fix = match rule_name(policy, evidence.names) {
        Some(name) => Counting::All.rule(name, flow),
        None => Some(Rule::exactly(flow)),
    };
    Verdict::with_fix(flow, denial, fix)
}

/// A rule that covers the TCP connection instead is all that it takes.
fn quic(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>, first: &Hostname) -> Verdict {
    let (tcp, count) = (flow.without_quic(), Counting::at(flow, evidence));
    if let Some((name, _, _)) = covering_name(policy, &tcp, evidence, count) {
        let name = name.clone();
        return Verdict::new(flow, Reason::Quic { name });
    }
    let name = first.clone();
    let denial = Reason::Quic { name };
    let fix = rule_name(policy, std::slice::from_ref(first));
    Verdict::with_fix(flow, denial, fix.and_then(|name| count.rule(name, &tcp)))
}

/// Not on the internet: of names, only those of `near` count there.
fn inward(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>, near: Near) -> Verdict {
    let is_open_to_names = near.is_open_to_names(flow.destination());
    if is_open_to_names {
        let covered = |flow: &Flow| covering_name(policy, flow, evidence, Counting::Near);
        if flow.is_quic() {
            let any = covered(&flow.without_quic()).or_else(|| covered(flow));
            if let Some((name, _, _)) = any {
                return quic(policy, flow, evidence, name);
            }
        } else if let Some((name, index, rule)) = covered(flow) {
            let (name, rule) = (name.clone(), rule.clone());
            return Verdict::new(flow, Reason::Name { name, index, rule });
        }
    }
    let covered = covering_name(policy, flow, evidence, Counting::All);
    let denial = match covered {
        Some((name, index, rule)) => Reason::Inward {
            near,
            name: name.clone(),
            index,
            rule: rule.clone(),
        },
        None if policy.internet => Reason::Near(near),
        None => not_listed(evidence),
    };
    // A name that led here is what the program means. Its address may change.
    let name = covered
        .map(|(name, _, _)| name)
        .or_else(|| rule_name(policy, evidence.names))
        .filter(|_| is_open_to_names);
    let fix = name.and_then(|name| Counting::Near.rule(name, flow));
    Verdict::with_fix(flow, denial, fix.unwrap_or_else(|| Rule::exactly(flow)))
}

/// The host cannot get there either. Where a rule for addresses is all that
/// counts, one is missing nevertheless.
fn nowhere(policy: &Policy, flow: &Flow, evidence: &Evidence<'_>) -> Verdict {
    if policy.internet || covering_name(policy, flow, evidence, Counting::All).is_some() {
        return Verdict::new(flow, Reason::NoRoute);
    }
    let denial = not_listed(evidence);
    if rule_name(policy, evidence.names).is_some() {
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
    count: Counting,
) -> Option<(&'a Hostname, usize, &'a Rule)> {
    let covered = evidence.names.iter().filter_map(|name| {
        let (index, rule) = match count {
            Counting::All => policy.rules.for_name(name, flow)?,
            Counting::Near => policy.rules.for_near_name(name, flow)?,
        };
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
    if evidence.route == Route::ToProxy {
        return Some(Restriction::Proxy);
    }
    match class {
        Class::Special(special) if special.via.is_some() => Some(Restriction::Disguised(special)),
        _ => None,
    }
}
