//! Names, and what programs say they are.

use ipnet::IpNet;
use proptest::prelude::*;
use stockade_policy::{
    LONGEST_NOTE, NameReason, Policy, Reason, Route, decide, decide_claim, decide_name,
};

use crate::strategies::{any_evidence, any_flow, any_name, any_policy, with_rules};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_claim_never_allows_more(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_evidence(),
        claimed in any_name(),
    ) {
        let verdict = decide(&policy, &flow, &evidence.evidence());
        let claim = decide_claim(&policy, &flow, &evidence.evidence(), &claimed);
        if claim.is_allowed() {
            prop_assert!(verdict.is_allowed());
        }
        if claim.rests_on_names() {
            prop_assert!(evidence.names.contains(&claimed));
            let covers = policy.rules.iter().filter_map(|rule| rule.name());
            prop_assert!(covers.into_iter().any(|pattern| pattern.covers(&claimed)));
        }
        // Only names are checked against claims.
        if verdict.is_allowed() && !verdict.rests_on_names() {
            prop_assert_eq!(claim, verdict);
        }
    }

    #[test]
    fn a_flow_that_rests_on_names_stands_under_one_of_them(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        let verdict = decide(&policy, &flow, &evidence.evidence());
        if let Reason::Name { name, .. } = verdict.reason() {
            let claim = decide_claim(&policy, &flow, &evidence.evidence(), name);
            prop_assert_eq!(claim.reason(), verdict.reason());
            prop_assert_eq!(claim.device(), verdict.device());
        }
    }

    #[test]
    fn names_open_the_internet_and_by_near_rules_private_addresses(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        let verdict = decide(&policy, &flow, &evidence.evidence());
        let Reason::Name { rule, .. } = verdict.reason() else { return Ok(()) };
        let open = Policy { internet: true, ..Policy::default() };
        if !decide(&open, &flow, &evidence.evidence()).is_allowed() {
            prop_assert!(rule.is_near());
            prop_assert!(!evidence.own);
            prop_assert!(!matches!(evidence.route, Route::Local | Route::Broadcast));
            let private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];
            let is_in = |block: &&str| {
                block.parse::<IpNet>().unwrap().contains(&flow.destination())
            };
            let is_known = matches!(evidence.route, Route::Specific(_));
            prop_assert!(private.iter().any(is_in) || is_known);
            prop_assert!(flow.embedded().next().is_none());
            let metadata = ["100.100.100.200", "168.63.129.16", "fd00:ec2::254"];
            prop_assert!(!metadata.contains(&flow.destination().to_string().as_str()));
        }
    }

    #[test]
    fn a_name_is_resolved_if_and_only_if_a_rule_covers_it(
        policy in any_policy(),
        name in any_name(),
    ) {
        let verdict = decide_name(&policy, &name);
        let covered = policy.rules.iter().filter_map(|rule| rule.name()).any(|p| p.covers(&name));
        prop_assert_eq!(verdict.is_allowed(), policy.internet || covered);
        if let NameReason::Rule { index, rule } = verdict.reason() {
            prop_assert_eq!(policy.rules.get(*index), Some(rule));
            prop_assert!(rule.name().unwrap().covers(&name));
        }
        prop_assert_eq!(verdict.note().is_some(), !verdict.is_allowed());
        if let Some(note) = verdict.note() {
            prop_assert!(note.len() <= LONGEST_NOTE);
        }
        if let Some(fix) = verdict.fix() {
            let fixed = with_rules(&policy, policy.rules.iter().cloned().chain([fix]));
            prop_assert!(decide_name(&fixed, &name).is_allowed());
        }
    }

    /// Whatever may be reached by a name may be asked for.
    #[test]
    fn the_names_of_an_allowed_flow_are_resolved(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        if let Reason::Name { name, .. } = decide(&policy, &flow, &evidence.evidence()).reason() {
            prop_assert!(decide_name(&policy, name).is_allowed());
        }
    }

    #[test]
    fn idle_rules_can_be_left_out(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        let idle: Vec<usize> = policy.idle_rules().map(|(index, _, _)| index).collect();
        let rules = policy.rules.iter().enumerate();
        let others = rules.filter(|(index, _)| !idle.contains(index)).map(|(_, rule)| rule.clone());
        let without = with_rules(&policy, others);
        let (before, after) = (
            decide(&policy, &flow, &evidence.evidence()),
            decide(&without, &flow, &evidence.evidence()),
        );
        prop_assert_eq!(before.is_allowed(), after.is_allowed());
    }
}
