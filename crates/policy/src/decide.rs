//! The one decision.
//!
//! # Theory of operation
//!
//! A flow passes these questions in order; the first that applies decides:
//!
//! 1. Can nothing inside reach the destination, whatever the network? Deny.
//!    (Loopback, multicast, broadcast: dialled from outside the jail they would
//!    be the *host's*.)
//! 2. Does a user's rule cover the flow? Allow. Sensitive destinations ask for
//!    a rule that means them ([`Restriction`]): a metadata service or the host
//!    itself is never covered by a network that happens to hold it.
//! 3. Is the destination sensitive, or the internet off? Deny.
//! 4. Is it on the internet: a global address, which the host reaches through
//!    its default route? Allow, else deny.
//!
//! Rules only allow, so their order means nothing and removing one never opens
//! anything. Every denial that a rule could turn carries the narrowest such rule.

use std::net::IpAddr;

use crate::evidence::{Evidence, Route};
use crate::flow::Flow;
use crate::registry::{self, Class, Reach};
use crate::rule::Rule;
use crate::verdict::{Reason, Restriction, Verdict};

/// What the user wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Whether the internet is open. If not, only the rules are.
    pub internet: bool,
    pub rules: RuleSet,
}

/// The user's rules. None allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// In the order in which they were given, which numbers them.
    rules: Vec<Rule>,
}

impl RuleSet {
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The first rule that covers the flow with a prefix of at least `floor` bits.
    fn find(&self, flow: &Flow, floor: u8) -> Option<(usize, &Rule)> {
        self.rules
            .iter()
            .enumerate()
            .find(|(_, rule)| rule.network().prefix_len() >= floor && rule.covers(flow))
    }
}

impl FromIterator<Rule> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self {
            rules: rules.into_iter().collect(),
        }
    }
}

pub fn decide(policy: &Policy, flow: &Flow, evidence: &Evidence) -> Verdict {
    let destination = flow.destination();
    let class = registry::classify(destination);
    if let Class::Special(special) = class
        && special.entry.reach == Reach::Never
    {
        return Verdict::new(Reason::NeverReachable {
            destination,
            special,
        });
    }

    let restriction = restriction(destination, class, evidence);
    let floor = restriction.map_or(0, |restriction| restriction.floor(destination));
    if let Some((index, rule)) = policy.rules.find(flow, floor) {
        return Verdict::new(Reason::Rule {
            destination,
            index,
            rule: rule.clone(),
        });
    }

    let denial = if let Some(restriction) = restriction {
        let too_wide = policy.rules.find(flow, 0);
        Reason::Restricted {
            destination,
            restriction,
            too_wide: too_wide.map(|(_, rule)| rule.clone()),
        }
    } else if !policy.internet {
        Reason::NotListed { flow: *flow }
    } else if let Class::Special(special) = class {
        Reason::Special {
            destination,
            special,
        }
    } else {
        match evidence.route {
            Route::Default => return Verdict::new(Reason::Internet { destination }),
            Route::Specific(network) => Reason::Routed {
                destination,
                network,
            },
            // `Local` was a restriction, above; without one it is as good as none.
            Route::Local | Route::None => return Verdict::new(Reason::NoRoute { destination }),
        }
    };
    Verdict::with_fix(denial, Rule::exactly(flow))
}

/// Whether a destination needs a rule that means it.
fn restriction(destination: IpAddr, class: Class, evidence: &Evidence) -> Option<Restriction> {
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
