//! What a program inside is told says nothing of the host that an attempt does not.

use proptest::prelude::*;
use stockade_policy::{
    Protocol, Reason, Target, Verdict, decide, disclose, explain, explain_inside,
};

use super::strategies::*;

/// What a program sees of an attempt: success, or one of two errors.
fn attempt(verdict: &Verdict) -> (bool, bool) {
    let has_no_route = matches!(verdict.reason(), Reason::NoRoute);
    (verdict.is_allowed(), has_no_route)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, max_global_rejects: 8192, ..ProptestConfig::default() })]

    #[test]
    fn hosts_that_an_attempt_does_not_tell_apart_are_described_alike(
        policy in any_policy(),
        flow in any_flow(),
        one in any_evidence(),
        mut other in any_evidence(),
    ) {
        other.names.clone_from(&one.names);
        let one = decide(&policy, &flow, &one.evidence());
        let other = decide(&policy, &flow, &other.evidence());
        prop_assume!(attempt(&one) == attempt(&other));
        prop_assert_eq!(disclose(&policy, &one), disclose(&policy, &other));
    }

    /// If every attempt to the address ends in the same way, the whole answer is the same.
    #[test]
    fn an_explanation_is_the_same_for_hosts_that_no_attempt_tells_apart(
        policy in any_policy(),
        flow in any_flow(),
        has_port in any::<bool>(),
        one in any_evidence(),
        mut other in any_evidence(),
    ) {
        other.names.clone_from(&one.names);
        let target = match (has_port, flow.port()) {
            (true, Some(_)) => flow.to_string(),
            _ => flow.destination().to_string(),
        };
        let target: Target = target.parse().unwrap();
        prop_assume!(!target.is_loopback());
        let address = flow.destination();
        let attempts = |known: &Known| {
            let explained = explain(&policy, &target, [(address, known.evidence())]);
            let mut steps: Vec<(Protocol, u16, u16, (bool, bool))> = Vec::new();
            for answer in explained.hosts.into_iter().flat_map(|host| host.answers) {
                let (first, last) = answer.ports.map_or((0, 0), |it| (*it.start(), *it.end()));
                let attempt = attempt(&answer.verdict);
                match steps.last_mut() {
                    Some((protocol, _, end, same))
                        if *protocol == answer.protocol && *same == attempt =>
                    {
                        *end = last;
                    }
                    _ => steps.push((answer.protocol, first, last, attempt)),
                }
            }
            steps
        };
        prop_assume!(attempts(&one) == attempts(&other));
        let told = |known: &Known| explain_inside(&policy, &target, [(address, known.evidence())]);
        prop_assert_eq!(told(&one), told(&other));
    }

    #[test]
    fn what_is_told_agrees_with_the_decision(
        policy in any_policy(),
        flow in any_flow(),
        known in any_evidence(),
    ) {
        let verdict = decide(&policy, &flow, &known.evidence());
        let told = disclose(&policy, &verdict);
        prop_assert_eq!(told.allowed, verdict.is_allowed());
        prop_assert!(!told.allowed || told.fix.is_none());
        prop_assert!(!told.text.is_empty());
        // A network of the host's is in no text.
        let is_rules = policy.rules.iter().any(|rule| told.text.contains(&rule.to_string()));
        prop_assert!(is_rules || !told.text.contains("93.0.0.0/8"));
        // A fix is a rule, and never one for what hands out credentials.
        if let Some(fix) = &told.fix {
            prop_assert!(fix.parse::<stockade_policy::Rule>().is_ok(), "{fix}");
            prop_assert!(!fix.contains("169.254.169.254"), "{fix}");
        }
    }
}
