//! The rule that covers a flow, against a search that only counts.

use std::cmp::Reverse;

use proptest::prelude::*;
use stockade_policy::{Evidence, Flow, Policy, Reason, Route, Rule, RuleSet, decide};

use crate::strategies::{any_flow, any_name, any_name_rule, any_names, any_policy};

/// What a rule covers, read from its parts.
pub(crate) fn is_for(rule: &Rule, flow: &Flow) -> bool {
    rule.protocol()
        .is_none_or(|protocol| protocol == flow.protocol())
        && rule
            .ports()
            .is_none_or(|ports| flow.port().is_some_and(|port| ports.contains(port)))
}

/// The rule for addresses that is to be reported.
fn reference(rules: &RuleSet, flow: &Flow) -> Option<usize> {
    let covering = rules.iter().enumerate().filter_map(|(index, rule)| {
        let network = rule.network()?;
        (network.contains(&flow.destination()) && is_for(rule, flow))
            .then_some((network.prefix_len(), Reverse(index)))
    });
    covering.max().map(|(_, Reverse(index))| index)
}

/// Networks around one address with ports from a small set, some with many.
fn nested_rules() -> impl Strategy<Value = Vec<Rule>> {
    let ports = prop_oneof![
        4 => prop::collection::btree_set(1..100_u16, 1..3),
        1 => prop::collection::btree_set(1..100_u16, 30..60),
    ];
    let protocol = prop::sample::select(vec!["", "tcp://", "udp://"]);
    let rule = (0..=32_u8, ports, protocol, prop::bool::weighted(0.1)).prop_map(
        |(length, ports, protocol, all)| {
            let network = ipnet::Ipv4Net::new([10, 11, 12, 13].into(), length)
                .unwrap()
                .trunc();
            let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
            let ports = if all {
                String::new()
            } else {
                format!(":{}", ports.join(","))
            };
            format!("{protocol}{network}{ports}").parse().unwrap()
        },
    );
    prop::collection::vec(rule, 0..60)
}

/// None if no rule was asked, for the address alone decides.
fn decided_by(rules: &RuleSet, flow: &Flow) -> Option<Option<usize>> {
    let policy = Policy {
        internet: false,
        rules: rules.clone(),
        ..Policy::default()
    };
    let evidence = Evidence {
        route: Route::Default,
        own: false,
        names: &[],
    };
    match decide(&policy, flow, &evidence).reason() {
        Reason::Rule { index, rule, .. } => {
            assert_eq!(Some(rule), rules.get(*index));
            Some(Some(*index))
        }
        Reason::NotListed { .. } => Some(None),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_most_specific_rule_is_found_and_of_these_the_first(
        policy in any_policy(),
        flow in any_flow(),
    ) {
        if let Some(decided_by) = decided_by(&policy.rules, &flow) {
            prop_assert_eq!(decided_by, reference(&policy.rules, &flow));
        }
    }

    #[test]
    fn names_are_searched_as_if_one_by_one(
        rules in prop::collection::vec(any_name_rule(), 0..12),
        names in any_names(),
        name in any_name(),
        flow in any_flow(),
    ) {
        let policy = Policy { internet: false, rules: rules.iter().cloned().collect(), ..Policy::default() };
        let names = [names, vec![name]].concat();
        let evidence = Evidence { route: Route::Default, own: false, names: &names };
        let verdict = decide(&policy, &flow, &evidence);
        let best = names.iter().flat_map(|name| {
            rules.iter().enumerate().filter_map(move |(index, rule)| {
                let pattern = rule.name()?;
                let text = pattern.to_string();
                let is_covered = match text.strip_prefix('*') {
                    Some(dot_and_domain) => name.as_str().ends_with(dot_and_domain),
                    None => name.as_str() == text,
                };
                (is_covered && is_for(rule, &flow))
                    .then_some((!pattern.is_wildcard(), text.len(), Reverse(index)))
            })
        });
        let best = best.max().map(|(_, _, Reverse(index))| index);
        match verdict.reason() {
            Reason::Name { index, name, .. } => {
                prop_assert_eq!(Some(*index), best);
                prop_assert!(names.contains(name));
            }
            Reason::NotListed { .. } => prop_assert_eq!(best, None),
            Reason::Quic { .. } => prop_assert_eq!(flow.port().map(u16::from), Some(443)),
            // Judged by the address alone.
            _ => {}
        }
    }
}

proptest! {
    // Each with many rules.
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nested_networks_are_searched_as_if_one_by_one(
        rules in nested_rules(),
        address in prop::sample::select(vec!["10.11.12.13", "10.11.12.15", "10.11.80.1", "10.200.0.1", "9.9.9.9"]),
        port in 1..110_u16,
        udp in any::<bool>(),
    ) {
        let destination = format!("{address}:{port}").parse().unwrap();
        let flow = if udp { Flow::udp(destination) } else { Flow::tcp(destination) }.unwrap();
        let rules: RuleSet = rules.into_iter().collect();
        prop_assert_eq!(decided_by(&rules, &flow), Some(reference(&rules, &flow)));
    }
}
