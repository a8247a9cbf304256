//! Decisions, and how they change with the policy.

use std::net::{Ipv4Addr, SocketAddr};

use proptest::prelude::*;
use stockade_policy::{Evidence, Flow, Policy, Protocol, Reason, Rule, Scope, decide};

use crate::strategies::{
    any_address, any_evidence, any_flow, any_kernel_evidence, any_length, any_name, any_policy,
    any_port, any_ports, any_protocol, network, with_rules, write, write_name,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn removing_a_rule_never_allows_more(
        policy in any_policy(),
        removed in any::<prop::sample::Index>(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        let mut rules: Vec<Rule> = policy.rules.iter().cloned().collect();
        if !rules.is_empty() {
            rules.remove(removed.index(rules.len()));
        }
        let fewer = with_rules(&policy, rules);
        if decide(&fewer, &flow, &evidence.evidence()).is_allowed() {
            prop_assert!(decide(&policy, &flow, &evidence.evidence()).is_allowed());
        }
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        let mut rules: Vec<Rule> = policy.rules.iter().cloned().collect();
        rules.reverse();
        let turned = decide(&with_rules(&policy, rules), &flow, &evidence.evidence());
        let verdict = decide(&policy, &flow, &evidence.evidence());
        prop_assert_eq!(verdict.is_allowed(), turned.is_allowed());
        prop_assert_eq!(verdict.fix(), turned.fix());
        prop_assert_eq!(verdict.reason().name(), turned.reason().name());
    }

    #[test]
    fn turning_the_internet_off_never_allows_more(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        let off = Policy { internet: false, ..policy.clone() };
        if decide(&off, &flow, &evidence.evidence()).is_allowed() {
            let on = Policy { internet: true, ..policy };
            prop_assert!(decide(&on, &flow, &evidence.evidence()).is_allowed());
        }
    }

    #[test]
    fn an_ipv4_address_and_its_mapped_form_agree(
        policy in any_policy(),
        address in any::<Ipv4Addr>(),
        port in any_port(),
        evidence in any_evidence(),
    ) {
        let plain = Flow::tcp(SocketAddr::new(address.into(), port)).unwrap();
        let mapped = address.to_ipv6_mapped();
        let mapped = Flow::tcp(SocketAddr::new(mapped.into(), port)).unwrap();
        prop_assert_eq!(decide(&policy, &plain, &evidence.evidence()), decide(&policy, &mapped, &evidence.evidence()));
    }

    /// A narrower rule may allow what a wider one does not only where that one
    /// was refused for being too wide.
    #[test]
    fn narrowing_a_rule_never_allows_more(
        (address, wide, narrow) in (any_address(), any_length(), any_length()),
        protocol in any_protocol(),
        ports in any_ports(),
        internet in any::<bool>(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        let (wide, narrow) = (wide.min(narrow), wide.max(narrow));
        let parse = |text: String| text.parse::<Rule>().ok();
        let wide = parse(write(None, network(address, wide), None));
        let narrow = parse(write(protocol, network(address, narrow), ports.as_deref()));
        let (Some(wide), Some(narrow)) = (wide, narrow) else { return Ok(()) };

        let policy = Policy { internet, rules: [wide].into_iter().collect(), ..Policy::default() };
        let narrowed = with_rules(&policy, [narrow]);
        let before = decide(&policy, &flow, &evidence.evidence());
        if decide(&narrowed, &flow, &evidence.evidence()).is_allowed() && !before.is_allowed() {
            let too_wide = matches!(before.reason(), Reason::Restricted { too_wide: Some(_), .. });
            prop_assert!(too_wide, "{before} before");
        }
    }

    #[test]
    fn narrowing_a_rule_for_names_never_allows_more(
        name in any_name(),
        label in prop::sample::select(vec!["www", "a.www", "b"]),
        wildcard in any::<bool>(),
        protocol in any_protocol(),
        ports in any_ports(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        let below = format!("{label}.{name}").parse().unwrap();
        let parse = |text: String| text.parse::<Rule>().ok();
        let wide = parse(write_name(None, &name, true, None));
        let narrow = parse(write_name(protocol, &below, wildcard, ports.as_deref()));
        let (Some(wide), Some(narrow)) = (wide, narrow) else { return Ok(()) };

        let policy = Policy { internet: false, rules: [wide].into_iter().collect(), ..Policy::default() };
        let narrowed = with_rules(&policy, [narrow]);
        if decide(&narrowed, &flow, &evidence.evidence()).is_allowed() {
            prop_assert!(decide(&policy, &flow, &evidence.evidence()).is_allowed());
        }
    }

    #[test]
    fn the_fix_allows_the_flow_and_nothing_near_it(
        policy in any_policy(),
        flow in any_flow(),
        other in any_flow(),
        evidence in any_evidence(),
    ) {
        let verdict = decide(&policy, &flow, &evidence.evidence());
        let Some(fix) = verdict.fix() else { return Ok(()) };
        prop_assert!(!verdict.is_allowed());
        let text = fix.to_string();
        let parsed = if fix.is_near() { Rule::parse_near(&text) } else { text.parse() };
        prop_assert_eq!(&parsed.unwrap(), fix);

        let fixed = with_rules(&policy, policy.rules.iter().chain([fix]).cloned());
        let meant = match verdict.reason() {
            // What programs fall back to.
            Reason::Quic { .. } => Flow::tcp(SocketAddr::new(flow.destination(), 443)).unwrap(),
            _ => flow,
        };
        prop_assert!(decide(&fixed, &meant, &evidence.evidence()).is_allowed());
        let is_covered = match fix.scope() {
            Scope::Network(network) => {
                prop_assert_eq!(fix.to_string(), flow.to_string());
                network.contains(&other.destination())
            }
            // As every destination has the names of the evidence here.
            Scope::Name(_) | Scope::Near(_) => true,
        };
        if !(is_covered && other.protocol() == meant.protocol() && other.port() == meant.port()) {
            let (before, after) = (
                decide(&policy, &other, &evidence.evidence()),
                decide(&fixed, &other, &evidence.evidence()),
            );
            prop_assert_eq!(before.is_allowed(), after.is_allowed());
        }
    }

    #[test]
    fn worse_evidence_never_allows_more(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_kernel_evidence(),
        embedded in any_kernel_evidence(),
        through_proxy in any::<bool>(),
        stands_for_name in any::<bool>(),
    ) {
        // A proxy carries TCP alone. What is near does not go through it, so a rule may allow UDP
        // there that it cannot allow to the internet.
        let through_proxy = through_proxy && flow.protocol() == Protocol::Tcp;
        let is_allowed = |evidence: Evidence<'_>| {
            let address = flow.destination();
            let evidence = match through_proxy {
                true => evidence.through_proxy(address, stands_for_name),
                false => evidence,
            };
            decide(&policy, &flow, &evidence).is_allowed()
        };
        if is_allowed(evidence.evidence().also(embedded.evidence())) {
            prop_assert!(is_allowed(evidence.evidence()));
        }
    }
}
