//! What holds for every policy, flow and host.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use proptest::prelude::*;
use stockade_policy::{Evidence, Flow, Policy, Protocol, Reason, Route, Rule, decide};

/// Addresses that sit close together and on the edges of every class, so that
/// rules and flows meet.
fn any_address() -> impl Strategy<Value = IpAddr> {
    let near = prop::sample::select(vec![
        "0.0.0.0",
        "8.8.8.8",
        "10.0.0.1",
        "10.0.0.2",
        "10.0.1.1",
        "93.0.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "168.63.129.16",
        "169.254.169.254",
        "192.168.1.5",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "::ffff:0:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::8.8.8.8",
        "64:ff9b:1::10.0.0.1",
        "2001:0:a00:1::1",
        "2002:a00:1::1",
        "2002:808:808::1",
        "2606::1",
        "fd00::5",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
    ]);
    prop_oneof![
        4 => near.prop_map(|text| text.parse().unwrap()),
        1 => any::<Ipv4Addr>().prop_map(IpAddr::from),
        1 => any::<Ipv6Addr>().prop_map(IpAddr::from),
        1 => any::<Ipv4Addr>().prop_map(|address| address.to_ipv6_mapped().into()),
    ]
}

fn any_port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(80), Just(443), Just(65535), 1..=u16::MAX]
}

fn any_flow() -> impl Strategy<Value = Flow> {
    (any_address(), any_port(), 0..3).prop_map(|(address, port, kind)| match kind {
        0 => Flow::tcp(SocketAddr::new(address, port)).unwrap(),
        1 => Flow::udp(SocketAddr::new(address, port)).unwrap(),
        _ => Flow::echo(address),
    })
}

fn any_protocol() -> impl Strategy<Value = Option<Protocol>> {
    prop::sample::select(vec![
        None,
        Some(Protocol::Tcp),
        Some(Protocol::Udp),
        Some(Protocol::Icmp),
    ])
}

fn any_ports() -> impl Strategy<Value = Option<Vec<(u16, u16)>>> {
    let range = (any_port(), any_port()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop::option::of(prop::collection::vec(range, 1..4))
}

/// Writes a rule from its parts; not every combination is one.
fn write(protocol: Option<Protocol>, network: IpNet, ports: Option<&[(u16, u16)]>) -> String {
    let protocol = protocol.map_or(String::new(), |protocol| format!("{protocol}://"));
    let Some(ports) = ports else {
        return format!("{protocol}{network}");
    };
    let ports: Vec<_> = ports.iter().map(|(a, b)| format!("{a}-{b}")).collect();
    let ports = ports.join(",");
    match network {
        IpNet::V4(_) => format!("{protocol}{network}:{ports}"),
        IpNet::V6(_) => format!("{protocol}[{network}]:{ports}"),
    }
}

fn network(address: IpAddr, length: u8) -> IpNet {
    let address = address.to_canonical();
    let max = IpNet::from(address).max_prefix_len();
    IpNet::new(address, length.min(max)).unwrap().trunc()
}

fn any_length() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0), Just(128), 0..=128_u8]
}

fn any_rule() -> impl Strategy<Value = Rule> {
    (any_protocol(), any_address(), any_length(), any_ports()).prop_filter_map(
        "not a rule",
        |(protocol, address, length, ports)| {
            write(protocol, network(address, length), ports.as_deref())
                .parse()
                .ok()
        },
    )
}

fn any_policy() -> impl Strategy<Value = Policy> {
    (any::<bool>(), prop::collection::vec(any_rule(), 0..5)).prop_map(|(internet, rules)| Policy {
        internet,
        rules: rules.into_iter().collect(),
    })
}

fn any_evidence() -> impl Strategy<Value = Evidence<'static>> {
    let route = prop_oneof![
        3 => Just(Route::Default),
        1 => Just(Route::Specific("93.0.0.0/8".parse().unwrap())),
        1 => Just(Route::Local),
        1 => Just(Route::None),
    ];
    (route, prop::bool::weighted(0.2)).prop_map(|(route, own)| Evidence {
        route,
        own,
        names: &[],
    })
}

fn with_rules(policy: &Policy, rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy {
        rules: rules.into_iter().collect(),
        ..policy.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_canonical_form_of_a_rule_is_the_rule(rule in any_rule()) {
        let written = rule.to_string();
        prop_assert_eq!(&written.parse::<Rule>().unwrap(), &rule);
        prop_assert_eq!(written.parse::<Rule>().unwrap().to_string(), written);
    }

    #[test]
    fn any_text_is_a_rule_or_an_error_with_a_place(text in "\\PC{0,40}") {
        check(&text);
    }

    /// Text from the alphabet of rules gets deeper into the parser.
    #[test]
    fn text_like_rules_is_a_rule_or_an_error_with_a_place(
        text in "((tcp|udp|icmp|https|TCP)?:?(//)?)?[]\\[0-9a-fx.:/%*, \u{0}１-]{0,25}",
    ) {
        check(&text);
    }

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
        if decide(&fewer, &flow, &evidence).is_allowed() {
            prop_assert!(decide(&policy, &flow, &evidence).is_allowed());
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
        let turned = decide(&with_rules(&policy, rules), &flow, &evidence);
        let verdict = decide(&policy, &flow, &evidence);
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
        if decide(&off, &flow, &evidence).is_allowed() {
            let on = Policy { internet: true, ..policy };
            prop_assert!(decide(&on, &flow, &evidence).is_allowed());
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
        prop_assert_eq!(decide(&policy, &plain, &evidence), decide(&policy, &mapped, &evidence));
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

        let policy = Policy { internet, rules: [wide].into_iter().collect() };
        let narrowed = with_rules(&policy, [narrow]);
        let before = decide(&policy, &flow, &evidence);
        if decide(&narrowed, &flow, &evidence).is_allowed() && !before.is_allowed() {
            let too_wide = matches!(before.reason(), Reason::Restricted { too_wide: Some(_), .. });
            prop_assert!(too_wide, "{} before", before.reason());
        }
    }

    #[test]
    fn the_fix_allows_the_flow_and_nothing_near_it(
        policy in any_policy(),
        flow in any_flow(),
        other in any_flow(),
        evidence in any_evidence(),
    ) {
        let verdict = decide(&policy, &flow, &evidence);
        let Some(fix) = verdict.fix() else { return Ok(()) };
        prop_assert!(!verdict.is_allowed());
        prop_assert_eq!(fix.to_string(), flow.to_string());
        prop_assert_eq!(&fix.to_string().parse::<Rule>().unwrap(), fix);

        let fixed = with_rules(&policy, policy.rules.iter().chain([fix]).cloned());
        prop_assert!(decide(&fixed, &flow, &evidence).is_allowed());
        if other != flow {
            let (before, after) = (decide(&policy, &other, &evidence), decide(&fixed, &other, &evidence));
            prop_assert_eq!(before.is_allowed(), after.is_allowed());
        }
    }

    #[test]
    fn worse_evidence_never_allows_more(
        policy in any_policy(),
        flow in any_flow(),
        evidence in any_evidence(),
        embedded in any_evidence(),
    ) {
        if decide(&policy, &flow, &evidence.also(embedded)).is_allowed() {
            prop_assert!(decide(&policy, &flow, &evidence).is_allowed());
        }
    }
}

/// A refused text has a caret inside it, a message without control characters,
/// and a suggestion that is a rule.
fn check(text: &str) {
    let Err(error) = text.parse::<Rule>() else {
        return;
    };
    assert!(text.get(error.span()).is_some());
    assert!(!error.to_string().contains(char::is_control));
    if let Some(suggestion) = error.suggestion() {
        assert!(suggestion.parse::<Rule>().is_ok(), "{suggestion}");
    }
}
