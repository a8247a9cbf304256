//! The smallest rules that would have admitted what was seen, with the internet closed.
//!
//! # Theory of operation
//! Each flow becomes a service (protocol and port) of a host: of every name that the program was
//! given the address for, or of the address if there is no name, or if a rule for addresses admitted
//! it. A name stands before an address, as others are at the same address. A flow shows which of
//! several names it is for only once it stands, so each of them gets the service.
//!
//! Services of three or more names right below one domain become those of `*.domain`, unless
//! strangers can have names there. A name that was only asked for gets the least that lets it be
//! resolved: ping.
//!
//! Nothing of this is trusted: [`replay`] gives every flow and name to [`decide`] and
//! [`decide_name`] again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::decide::{decide, decide_claim};
use crate::evidence::{Evidence, Route};
use crate::flow::{Flow, Protocol};
use crate::name::Hostname;
use crate::names::decide_name;
use crate::policy::Policy;
use crate::proxy::is_in_pool;
use crate::rule::Rule;
use crate::verdict::{Decider, Reason, Verdict};

/// Names right below one domain that become a wildcard.
const SIBLINGS: usize = 3;

/// A flow that was admitted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SeenFlow {
    pub flow: Flow,
    /// The names that the program was given its address for.
    pub names: Vec<Hostname>,
    /// A rule for addresses admitted it, so it may be anywhere: near, or on the host itself. If not,
    /// it was on the internet.
    pub by_address: bool,
}

impl SeenFlow {
    /// The names by which a rule could admit it.
    fn usable_names(&self) -> impl Iterator<Item = &Hostname> {
        let names = self.names.iter().filter(|_| !self.by_address);
        names.filter(|name| !name.is_localhost())
    }

    /// The worst that the host can have known of it.
    fn evidence(&self) -> Evidence<'_> {
        Evidence {
            route: match self.by_address {
                true => Route::Local,
                false if is_in_pool(self.flow.destination()) => Route::Proxied,
                false => Route::Default,
            },
            own: self.by_address,
            names: &self.names,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Name(Hostname),
    Below(Hostname),
    Address(IpAddr),
}

/// In the order of their text: `icmp` is first.
type Service = (&'static str, Option<u16>);

fn service(flow: &Flow) -> Service {
    let port = flow.port().map(std::num::NonZeroU16::get);
    match flow.protocol() {
        Protocol::Tcp => ("tcp", port),
        Protocol::Udp => ("udp", port),
        Protocol::Icmp => PING,
    }
}

const PING: Service = ("icmp", None);

/// The rules for these flows and names, each with all ports of one protocol and host. What no rule
/// can say is left out, which [`replay`] then shows.
pub fn suggest<'a>(
    flows: impl IntoIterator<Item = &'a SeenFlow>,
    names: impl IntoIterator<Item = &'a Hostname>,
) -> Vec<Rule> {
    let mut services: BTreeMap<Place, BTreeSet<Service>> = BTreeMap::new();
    for seen in flows {
        let mut is_named = false;
        for name in seen.usable_names() {
            is_named = true;
            // QUIC hides its name: what programs fall back to is admitted instead.
            let flow = match seen.flow.is_quic() {
                true => seen.flow.without_quic(),
                false => seen.flow,
            };
            let place = Place::Name(name.clone());
            services.entry(place).or_default().insert(service(&flow));
        }
        // An address of the gate's own means another name tomorrow.
        let is_lent = !seen.by_address && is_in_pool(seen.flow.destination());
        if !is_named && !is_lent {
            let place = Place::Address(seen.flow.destination());
            services
                .entry(place)
                .or_default()
                .insert(service(&seen.flow));
        }
    }
    fold(&mut services);
    let covered = policy(rules(&services));
    for name in names {
        if !name.is_localhost() && !decide_name(&covered, name).is_allowed() {
            let place = Place::Name(name.clone());
            services.entry(place).or_default().insert(PING);
        }
    }
    fold(&mut services);
    rules(&services)
}

/// A policy with these rules and nothing else.
#[must_use]
pub fn policy(rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy {
        rules: rules.into_iter().collect(),
        ..Policy::default()
    }
}

/// Turns siblings that have a service in common into a wildcard that has it.
fn fold(services: &mut BTreeMap<Place, BTreeSet<Service>>) {
    let mut families: BTreeMap<(Hostname, Service), usize> = BTreeMap::new();
    for (place, of_place) in &*services {
        let Place::Name(name) = place else { continue };
        let Some(parent) = parent(name) else { continue };
        for service in of_place {
            let count = families.entry((parent.clone(), *service)).or_default();
            *count = count.saturating_add(1);
        }
    }
    families.retain(|_, count| *count >= SIBLINGS);
    let folded: Vec<_> = families.into_keys().collect();
    for (domain, service) in &folded {
        for (place, of_place) in &mut *services {
            if matches!(place, Place::Name(name) | Place::Below(name) if name.is_below(domain)) {
                of_place.remove(service);
            }
        }
        // A wildcard covers those of all domains below its own.
        let covers =
            |(above, same): &(Hostname, Service)| same == service && domain.is_below(above);
        if !folded.iter().any(covers) {
            let below = services.entry(Place::Below(domain.clone())).or_default();
            below.insert(*service);
        }
    }
    services.retain(|_, of_place| !of_place.is_empty());
}

/// The domain right above a name, if a wildcard may stand for all names below it.
fn parent(name: &Hostname) -> Option<Hostname> {
    let (_, parent) = name.as_str().split_once('.')?;
    // A domain of one label has strangers below it, or a whole network.
    let is_wide = !parent.contains('.');
    let rule: Option<Rule> = format!("*.{parent}").parse().ok();
    let pattern = rule.as_ref().and_then(Rule::name)?;
    let has_one_owner = !is_wide && !pattern.holds_strangers();
    has_one_owner.then(|| parent.parse().ok()).flatten()
}

fn rules(services: &BTreeMap<Place, BTreeSet<Service>>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (place, services) in services {
        let mut ports: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
        for (protocol, port) in services {
            ports.entry(protocol).or_default().extend(port);
        }
        for (protocol, ports) in ports {
            rules.extend(rule(place, protocol, &ports));
        }
    }
    rules
}

fn rule(place: &Place, protocol: &str, ports: &[u16]) -> Option<Rule> {
    let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
    let ports = match ports.is_empty() {
        true => String::new(),
        false => format!(":{}", ports.join(",")),
    };
    let host = match place {
        Place::Name(name) => name.to_string(),
        Place::Below(domain) => format!("*.{domain}"),
        Place::Address(IpAddr::V6(address)) if !ports.is_empty() => format!("[{address}]"),
        Place::Address(address) => address.to_string(),
    };
    format!("{protocol}://{host}{ports}").parse().ok()
}

/// What a policy makes of something that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    /// It is admitted, by the rules of these numbers.
    Admitted(Vec<usize>),
    /// It is QUIC, which no rule for a name admits. The TCP connection that programs fall back to is
    /// admitted, by the rules of these numbers.
    FallsBack(Vec<usize>),
    /// It is denied.
    Denied(Box<Verdict>),
}

/// What a policy makes of a flow, whichever of its names the flow turns out to be for.
#[must_use]
pub fn replay(policy: &Policy, seen: &SeenFlow) -> Replayed {
    let judged = |flow: &Flow| -> Result<Vec<usize>, Box<Verdict>> {
        let evidence = seen.evidence();
        let whole = decide(policy, flow, &evidence);
        let verdicts = match whole.rests_on_names() {
            true => {
                let claims = seen.usable_names();
                let claim = |name| decide_claim(policy, flow, &evidence, name);
                claims.map(claim).collect()
            }
            false => vec![whole],
        };
        let mut by = BTreeSet::new();
        for verdict in verdicts {
            match verdict.decided_by() {
                Decider::Rule { index, .. } if verdict.is_allowed() => by.insert(index),
                _ => return Err(Box::new(verdict)),
            };
        }
        Ok(by.into_iter().collect())
    };
    match judged(&seen.flow) {
        Ok(by) => Replayed::Admitted(by),
        Err(denial) if matches!(denial.reason(), Reason::Quic { .. }) => {
            match judged(&seen.flow.without_quic()) {
                Ok(by) => Replayed::FallsBack(by),
                Err(_) => Replayed::Denied(denial),
            }
        }
        Err(denial) => Replayed::Denied(denial),
    }
}

/// The numbers of the rules that admit a flow, wherever its destination is: those that are in use.
#[must_use]
pub fn rules_used(policy: &Policy, seen: &SeenFlow) -> BTreeSet<usize> {
    let routes = [
        (Route::Default, false),
        (Route::Specific(seen.flow.destination().into()), false),
        (Route::Local, true),
    ];
    let mut used = BTreeSet::new();
    for (route, own) in routes {
        let names = &seen.names;
        let evidence = Evidence { route, own, names };
        let whole = decide(policy, &seen.flow, &evidence);
        let claims = seen.names.iter();
        let claims = claims.map(|name| decide_claim(policy, &seen.flow, &evidence, name));
        for verdict in claims.chain([whole]) {
            if let Decider::Rule { index, .. } = verdict.decided_by()
                && verdict.is_allowed()
            {
                used.insert(index);
            }
        }
    }
    used
}

/// The number of the rule by which a name may be asked for; none if it may not.
#[must_use]
pub fn replay_name(policy: &Policy, name: &Hostname) -> Option<usize> {
    match decide_name(policy, name).decided_by() {
        Decider::Rule { index, .. } => Some(index),
        Decider::BuiltIn(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(to: &str, names: &[&str], by_address: bool) -> SeenFlow {
        let (protocol, rest) = to.split_once("://").unwrap();
        let flow = match protocol {
            "tcp" => Flow::tcp(rest.parse().unwrap()).unwrap(),
            "udp" => Flow::udp(rest.parse().unwrap()).unwrap(),
            _ => Flow::echo(rest.parse().unwrap()),
        };
        SeenFlow {
            flow,
            names: names.iter().map(|name| name.parse().unwrap()).collect(),
            by_address,
        }
    }

    fn suggested(flows: &[SeenFlow], names: &[&str]) -> Vec<String> {
        let names: Vec<Hostname> = names.iter().map(|name| name.parse().unwrap()).collect();
        let rules = suggest(flows, &names);
        let policy = policy(rules.clone());
        for flow in flows {
            let replayed = replay(&policy, flow);
            assert!(!matches!(replayed, Replayed::Denied(_)), "{replayed:?}");
        }
        for name in &names {
            assert!(replay_name(&policy, name).is_some(), "{name}");
        }
        rules.iter().map(Rule::to_string).collect()
    }

    #[test]
    fn names_stand_before_addresses_and_devices_are_addresses() {
        let flows = [
            seen("tcp://93.184.216.34:443", &["www.example.com"], false),
            seen("tcp://93.184.216.34:80", &["www.example.com"], false),
            seen("tcp://[2606::1]:443", &["www.example.com"], false),
            seen("icmp://93.184.216.34", &["example.com"], false),
            seen("tcp://1.1.1.1:853", &[], false),
            seen("tcp://192.168.10.21:80", &["device.lan"], true),
            seen("udp://192.168.10.21:5064", &[], true),
            seen("tcp://[fd00::5]:22", &[], true),
        ];
        let rules = suggested(&flows, &["www.example.com", "asked.example.net"]);
        assert_eq!(
            rules,
            [
                "icmp://asked.example.net",
                "icmp://example.com",
                "tcp://www.example.com:80,443",
                "tcp://1.1.1.1:853",
                "tcp://192.168.10.21:80",
                "udp://192.168.10.21:5064",
                "tcp://[fd00::5]:22",
            ]
        );
    }

    #[test]
    fn an_address_that_stands_for_a_name_at_the_proxy_becomes_that_name_alone() {
        let flows = [seen("tcp://198.18.0.7:443", &["a.example"], false)];
        assert_eq!(suggested(&flows, &[]), ["tcp://a.example:443"]);
        let unnamed = seen("tcp://198.18.0.7:443", &[], false);
        let rules = suggest([&unnamed], []);
        assert_eq!(rules, []);
        let replayed = replay(&policy(rules), &unnamed);
        assert!(matches!(replayed, Replayed::Denied(_)), "{replayed:?}");
        // Positive control: a rule for such an address was somebody's own.
        let own = [seen("tcp://198.18.0.7:443", &["a.example"], true)];
        assert_eq!(suggested(&own, &[]), ["tcp://198.18.0.7:443"]);
    }

    #[test]
    fn three_siblings_become_a_wildcard_and_never_at_a_public_suffix() {
        let at = |name: &str, port: u16| seen(&format!("tcp://9.9.9.9:{port}"), &[name], false);
        let two = [at("a.example.org", 443), at("b.example.org", 443)];
        let rules = suggested(&two, &[]);
        assert_eq!(
            rules,
            ["tcp://a.example.org:443", "tcp://b.example.org:443"]
        );
        let three = [
            &two[..],
            &[at("c.example.org", 443), at("c.example.org", 80)],
        ]
        .concat();
        let rules = suggested(&three, &["x.y.example.org"]);
        assert_eq!(rules, ["tcp://c.example.org:80", "tcp://*.example.org:443"]);
        for domain in [
            "co.uk",
            "github.io",
            "lan",
            "ck",
            "s3.amazonaws.com",
            "amazonaws.com",
            "storage.googleapis.com",
            "r2.cloudflarestorage.com",
            "oss-cn-hangzhou.aliyuncs.com",
            "cos.ap-beijing.myqcloud.com",
            "myqcloud.com",
            "windows.net",
        ] {
            let names = ["a", "b", "c", "d"].map(|host| format!("{host}.{domain}"));
            let flows: Vec<_> = names.iter().map(|name| at(name, 443)).collect();
            let rules = suggested(&flows, &[]);
            assert_eq!(rules.len(), 4, "{rules:?}");
            assert!(rules.iter().all(|rule| !rule.contains('*')), "{rules:?}");
        }
        // A wildcard above another one is enough, whichever comes first.
        for deeper in ["b.example.org", "z.example.org"] {
            let names = ["a", "c", "d"].map(|host| format!("{host}.{deeper}"));
            let flows: Vec<_> = names.iter().map(|name| at(name, 443)).collect();
            let both = [&three[..3], &flows].concat();
            assert_eq!(suggested(&both, &[]), ["tcp://*.example.org:443"]);
            let alone = suggested(&flows, &[]);
            assert_eq!(alone, [format!("tcp://*.{deeper}:443")]);
        }
        // Services are not mixed.
        let mixed = [
            at("a.example.org", 1),
            at("b.example.org", 2),
            at("c.example.org", 3),
        ];
        assert_eq!(suggested(&mixed, &[]).len(), 3);
    }

    #[test]
    fn each_name_of_an_address_may_be_the_one_that_is_meant() {
        let flows = [seen(
            "tcp://9.9.9.9:443",
            &["a.example", "b.example"],
            false,
        )];
        let rules = suggested(&flows, &[]);
        assert_eq!(rules, ["tcp://a.example:443", "tcp://b.example:443"]);
        // With one of them alone, the flow might not pass.
        let one = policy(["tcp://a.example:443".parse().unwrap()]);
        assert!(matches!(replay(&one, &flows[0]), Replayed::Denied(_)));
    }

    #[test]
    fn quic_falls_back_to_tcp_and_says_so() {
        let flows = [seen("udp://9.9.9.9:443", &["a.example"], false)];
        let rules = suggest(&flows, []);
        assert_eq!(rules, ["tcp://a.example:443".parse().unwrap()]);
        let replayed = replay(&policy(rules), &flows[0]);
        assert_eq!(replayed, Replayed::FallsBack(vec![0]));
    }

    #[test]
    fn a_rule_is_in_use_if_it_admits_something_that_was_seen() {
        let rules = ["10.0.0.0/8", "b.example", "*.example.org", "192.168.0.0/16"];
        let policy = policy(rules.map(|rule| rule.parse().unwrap()));
        let near = seen("tcp://10.0.0.5:80", &["b.example"], true);
        assert_eq!(rules_used(&policy, &near), [0].into());
        let far = seen("tcp://9.9.9.9:80", &["x.example.org", "b.example"], false);
        assert_eq!(rules_used(&policy, &far), [1, 2].into());
    }

    #[test]
    fn what_a_policy_does_not_admit_is_seen_in_the_replay() {
        let far = seen("tcp://9.9.9.9:443", &["a.example"], false);
        for rules in ["a.example:80", "b.example", "udp://9.9.9.9:443"] {
            let policy = policy([rules.parse().unwrap()]);
            assert!(
                matches!(replay(&policy, &far), Replayed::Denied(_)),
                "{rules}"
            );
        }
        // It may have been the host's own address: a network is too wide for that.
        let near = seen("tcp://10.0.0.5:80", &["a.example"], true);
        for rules in ["10.0.0.0/8", "a.example"] {
            let policy = policy([rules.parse().unwrap()]);
            assert!(
                matches!(replay(&policy, &near), Replayed::Denied(_)),
                "{rules}"
            );
        }
        // Broadcast and loopback cannot be said.
        let never = seen("udp://255.255.255.255:9", &[], true);
        let policy = policy(suggest([&never], []));
        assert!(matches!(replay(&policy, &never), Replayed::Denied(_)));
    }
}
