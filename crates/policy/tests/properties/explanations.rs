//! Explanations, against the decisions that they are about.

use std::net::SocketAddr;

use proptest::prelude::*;
use stockade_policy::{
    Flow, Outcome, Policy, Protocol, Reason, Target, Verdict, decide, decide_name, explain,
};

use crate::strategies::{
    any_address, any_evidence, any_flow, any_name, any_policy, any_port, with_rules,
};

fn target(protocol: Option<Protocol>, host: &str, port: Option<u16>) -> Target {
    let protocol = protocol.map_or(String::new(), |protocol| format!("{protocol}://"));
    match port {
        Some(port) if host.contains(':') => format!("{protocol}[{host}]:{port}"),
        Some(port) => format!("{protocol}{host}:{port}"),
        None => format!("{protocol}{host}"),
    }
    .parse()
    .unwrap()
}

fn is_dispensable(verdict: &Verdict) -> bool {
    matches!(
        verdict.reason(),
        Reason::Quic { .. } | Reason::NoRoute | Reason::NotThroughProxy
    )
}

fn any_protocol_and_port() -> impl Strategy<Value = (Option<Protocol>, Option<u16>)> {
    let protocol = prop::sample::select(vec![None, Some(Protocol::Tcp), Some(Protocol::Udp)]);
    prop_oneof![
        (protocol, prop::option::of(any_port())),
        Just((Some(Protocol::Icmp), None)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_full_question_is_answered_as_the_flow_is_decided(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_evidence(),
    ) {
        let host = flow.destination().to_string();
        let asked = target(Some(flow.protocol()), &host, flow.port().map(u16::from));
        let explanation = explain(&policy, &asked, [(flow.destination(), evidence.evidence())]);
        let verdict = decide(&policy, &flow, &evidence.evidence());
        let outcome = if verdict.is_allowed() { Outcome::Allowed } else { Outcome::Denied };
        prop_assert_eq!(explanation.outcome, outcome);
        prop_assert_eq!(&explanation.hosts[0].answers[0].verdict, &verdict);
        let fixes: Vec<_> = verdict.fix().into_iter().cloned().collect();
        prop_assert_eq!(explanation.fixes, fixes);
    }

    #[test]
    fn an_open_question_is_answered_as_each_flow_is_decided(
        policy in any_policy(),
        address in any_address(),
        port in any_port(),
        evidence in any_evidence(),
    ) {
        let address = address.to_canonical();
        let asked = target(None, &address.to_string(), None);
        let explanation = explain(&policy, &asked, [(address, evidence.evidence())]);
        let destination = SocketAddr::new(address, port);
        for flow in [
            Flow::tcp(destination).unwrap(),
            Flow::udp(destination).unwrap(),
            Flow::echo(address),
        ] {
            let mut about = explanation.hosts[0].answers.iter().filter(|answer| {
                answer.protocol == flow.protocol()
                    && answer.ports.as_ref().is_none_or(|ports| ports.contains(&port))
            });
            let answer = about.next().unwrap();
            prop_assert!(about.next().is_none());
            let verdict = decide(&policy, &flow, &evidence.evidence());
            prop_assert_eq!(answer.verdict.is_allowed(), verdict.is_allowed());
            prop_assert_eq!(answer.verdict.decided_by(), verdict.decided_by());
            match explanation.outcome {
                Outcome::Allowed => prop_assert!(verdict.is_allowed() || is_dispensable(&verdict)),
                Outcome::Denied => prop_assert!(!verdict.is_allowed()),
                Outcome::Unclear => {}
            }
        }
    }

    #[test]
    fn the_fixes_of_an_explanation_allow_what_was_asked_about(
        policy in any_policy(),
        address in any_address(),
        question in any_protocol_and_port(),
        evidence in any_evidence(),
    ) {
        let address = address.to_canonical();
        let asked = target(question.0, &address.to_string(), question.1);
        let explain = |policy: &Policy| explain(policy, &asked, [(address, evidence.evidence())]);
        let before = explain(&policy);
        let fixed = with_rules(&policy, policy.rules.iter().chain(&before.fixes).cloned());
        let after = explain(&fixed);
        let answers = || before.hosts.iter().flat_map(|host| &host.answers);
        let is_hopeless = answers().any(|answer| {
            !answer.verdict.is_allowed() && answer.verdict.fix().is_none()
        });
        let only_quic = question.0 == Some(Protocol::Udp)
            && answers().any(|answer| matches!(answer.verdict.reason(), Reason::Quic { .. }));
        if !is_hopeless && !only_quic {
            prop_assert_eq!(after.outcome, Outcome::Allowed);
        }
    }

    #[test]
    fn a_name_that_may_not_be_asked_for_is_denied_with_a_rule_that_changes_that(
        policy in any_policy(),
        name in any_name(),
        question in any_protocol_and_port(),
        address in any_address(),
        evidence in any_evidence(),
    ) {
        if name.is_localhost() {
            return Ok(());
        }
        let asked = target(question.0, name.as_str(), question.1);
        let explanation = explain(&policy, &asked, [(address, evidence.evidence())]);
        if decide_name(&policy, &name).is_allowed() {
            prop_assert_eq!(explanation.hosts.len(), 1);
            return Ok(());
        }
        prop_assert_eq!(explanation.outcome, Outcome::Denied);
        let fixed = with_rules(&policy, policy.rules.iter().chain(&explanation.fixes).cloned());
        prop_assert!(decide_name(&fixed, &name).is_allowed());
    }
}
