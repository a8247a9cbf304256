//! Decisions by names: what rules for names open, and what they never do.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::net::IpAddr;

use stockade_policy::{
    Decider, Evidence, Flow, Hostname, Idle, LONGEST_NOTE, Policy, Reason, Route, Verdict, decide,
    decide_claim, decide_name, decide_quic,
};

const PUBLIC: &str = "93.184.215.14";

fn policy(internet: bool, rules: &[&str]) -> Policy {
    Policy {
        internet,
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        ..Policy::default()
    }
}

fn name(text: &str) -> Hostname {
    text.parse().unwrap()
}

fn names(texts: &[&str]) -> Vec<Hostname> {
    texts.iter().map(|text| name(text)).collect()
}

fn by_default_route(names: &[Hostname]) -> Evidence<'_> {
    Evidence {
        route: Route::Default,
        own: false,
        names,
    }
}

fn tcp(address: &str, port: u16) -> Flow {
    let address: IpAddr = address.parse().unwrap();
    Flow::tcp((address, port).into()).unwrap()
}

fn udp(address: &str, port: u16) -> Flow {
    let address: IpAddr = address.parse().unwrap();
    Flow::udp((address, port).into()).unwrap()
}

/// The verdict on a flow to an address that was given for these names, while the
/// internet is closed.
fn verdict(rules: &[&str], flow: &Flow, of: &[&str]) -> Verdict {
    decide(&policy(false, rules), flow, &by_default_route(&names(of)))
}

fn fix(verdict: &Verdict) -> Option<String> {
    let fix = verdict.fix().filter(|fix| !fix.is_near());
    fix.map(ToString::to_string)
}

fn near_fix(verdict: &Verdict) -> Option<String> {
    let fix = verdict.fix().filter(|fix| fix.is_near());
    fix.map(ToString::to_string)
}

#[test]
fn an_address_is_open_under_the_names_it_was_given_for() {
    let https = tcp(PUBLIC, 443);
    let allowed = verdict(&["example.org"], &https, &["example.org"]);
    assert!(allowed.is_allowed() && allowed.rests_on_names());
    assert_eq!(
        allowed.to_string(),
        "rule `example.org` covers example.org, which is at 93.184.215.14"
    );
    // A hard-coded address gets nowhere, and neither does another name.
    assert!(!verdict(&["example.org"], &https, &[]).is_allowed());
    assert!(!verdict(&["example.org"], &https, &["example.net"]).is_allowed());
    assert!(verdict(&["example.org"], &https, &["example.net", "example.org"]).is_allowed());
    // A rule for the address does without names.
    let allowed = verdict(&[PUBLIC, "example.org"], &https, &["example.org"]);
    assert!(allowed.is_allowed() && !allowed.rests_on_names());
}

#[test]
fn a_wildcard_covers_what_is_below_and_not_the_domain() {
    let https = tcp(PUBLIC, 443);
    for (of, allowed) in [
        ("www.example.org", true),
        ("a.b.example.org", true),
        ("example.org", false),
        ("badexample.org", false),
        ("example.org.evil.example", false),
    ] {
        let verdict = verdict(&["*.example.org"], &https, &[of]);
        assert_eq!(verdict.is_allowed(), allowed, "{of}");
    }
}

#[test]
fn protocol_and_ports_of_a_rule_for_a_name_count() {
    let of = &["example.org"];
    let ping = Flow::echo(PUBLIC.parse().unwrap());
    for (rule, flow, allowed) in [
        ("tcp://example.org:443", tcp(PUBLIC, 443), true),
        ("tcp://example.org:443", tcp(PUBLIC, 80), false),
        ("tcp://example.org:443", udp(PUBLIC, 80), false),
        ("udp://example.org", udp(PUBLIC, 53), true),
        ("example.org:80", udp(PUBLIC, 80), true),
        ("example.org:80", ping, false),
        ("example.org", ping, true),
        ("icmp://example.org", ping, true),
    ] {
        assert_eq!(verdict(&[rule], &flow, of).is_allowed(), allowed, "{rule}");
    }
}

#[test]
fn the_most_specific_rule_is_reported() {
    let rules = [
        "*.example.org",
        "*.www.example.org",
        "a.www.example.org:80",
        "a.www.example.org",
    ];
    for (of, port, index) in [
        (&["a.www.example.org"][..], 80, 2),
        (&["a.www.example.org"], 81, 3),
        (&["b.www.example.org"], 80, 1),
        (&["x.example.org"], 80, 0),
        (&["x.example.org", "b.www.example.org"], 80, 1),
    ] {
        let allowed = verdict(&rules, &tcp(PUBLIC, port), of);
        let Decider::Rule { index: found, .. } = allowed.decided_by() else {
            panic!("{allowed}")
        };
        assert_eq!(found, index, "{of:?} {port}");
    }
}

#[test]
fn a_name_that_points_inward_opens_nothing() {
    for internet in [false, true] {
        let policy = policy(internet, &["*.example.org"]);
        let of = names(&["www.example.org"]);
        for address in [
            "10.0.0.5",
            "192.168.1.5",
            "100.64.0.1",
            "fd00::5",
            "169.254.169.254",
            "127.0.0.1",
            "::1",
            "::ffff:10.0.0.5",
            "64:ff9b::10.0.0.5",
        ] {
            let denied = decide(&policy, &tcp(address, 443), &by_default_route(&of));
            assert!(!denied.is_allowed(), "{address}");
        }
        let denied = decide(&policy, &tcp("10.0.0.5", 443), &by_default_route(&of));
        assert_eq!(denied.reason().name(), "name-points-inward");
        assert_eq!(
            denied.to_string(),
            "www.example.org points inward: 10.0.0.5 is in 10.0.0.0/8 (private use, RFC 1918); \
             rule `*.example.org` covers the name, but only rules of `near` open private \
             addresses by a name"
        );
        assert_eq!(
            near_fix(&denied),
            Some("tcp://www.example.org:443".to_owned())
        );
    }
}

#[test]
fn a_name_on_a_network_that_the_host_knows_opens_nothing() {
    let of = names(&["example.org"]);
    let vpn = Evidence {
        route: Route::through("93.0.0.0/8".parse().unwrap()),
        ..by_default_route(&of)
    };
    let policy = policy(false, &["example.org"]);
    let denied = decide(&policy, &tcp("93.0.0.1", 443), &vpn);
    assert_eq!(
        denied.to_string(),
        "example.org points inward: 93.0.0.1 is reached through 93.0.0.0/8, not through the \
         host's default route; rule `example.org` covers the name, but only rules of `near` open \
         private addresses by a name"
    );
    assert_eq!(near_fix(&denied), Some("tcp://example.org:443".to_owned()));
    let own = Evidence {
        own: true,
        ..by_default_route(&of)
    };
    let denied = decide(&policy, &tcp("93.0.0.1", 443), &own);
    assert_eq!(denied.reason().name(), "own-address");
}

#[test]
fn quic_is_denied_to_what_is_open_by_name_only() {
    let quic = udp(PUBLIC, 443);
    let denied = verdict(&["example.org"], &quic, &["example.org"]);
    assert_eq!(
        denied.to_string(),
        "QUIC to 93.184.215.14 hides whether it is for example.org, so no rule for a name admits \
         it; programs fall back to TCP"
    );
    // TCP is open already; or it is what to open.
    assert_eq!(fix(&denied), None);
    let denied = verdict(&["tcp://example.org:443"], &quic, &["example.org"]);
    assert_eq!((denied.reason().name(), fix(&denied)), ("quic", None));
    let denied = verdict(&["example.org:80"], &quic, &["example.org"]);
    assert_eq!(fix(&denied).as_deref(), Some("tcp://example.org:443"));
    // By address, or with the internet open, it passes.
    assert!(verdict(&[PUBLIC], &quic, &["example.org"]).is_allowed());
    let of = names(&["example.org"]);
    assert!(decide(&policy(true, &[]), &quic, &by_default_route(&of)).is_allowed());
    // Other ports of UDP are no QUIC.
    assert!(verdict(&["example.org"], &udp(PUBLIC, 444), &["example.org"]).is_allowed());
}

#[test]
fn what_shows_as_quic_is_denied_at_every_port_that_is_open_by_name_only() {
    let flow = udp(PUBLIC, 8443);
    let of = names(&["example.org"]);
    let shown = |internet, rules: &[&str]| {
        decide_quic(&policy(internet, rules), &flow, &by_default_route(&of))
    };
    let denied = shown(false, &["example.org"]);
    assert_eq!((denied.reason().name(), fix(&denied)), ("quic", None));
    let denied = shown(false, &["udp://example.org:8443"]);
    assert_eq!(fix(&denied).as_deref(), Some("tcp://example.org:8443"));
    assert!(shown(false, &[PUBLIC]).is_allowed() && shown(true, &[]).is_allowed());
    assert_eq!(shown(false, &[]).reason().name(), "internet-off");
}

#[test]
fn a_denial_is_to_be_mended_by_name_where_that_helps() {
    let https = tcp(PUBLIC, 443);
    let denied = verdict(&[], &https, &["api.example.org", "cdn.example.net"]);
    assert_eq!(
        denied.to_string(),
        "the internet is closed, and no rule covers tcp://93.184.215.14:443 (api.example.org)"
    );
    assert_eq!(fix(&denied).as_deref(), Some("tcp://api.example.org:443"));

    let denied = verdict(&[], &https, &[]);
    assert_eq!(fix(&denied).as_deref(), Some("tcp://93.184.215.14:443"));
    let denied = verdict(&[], &tcp("10.0.0.5", 443), &["printer.lan"]);
    assert_eq!(near_fix(&denied).as_deref(), Some("tcp://printer.lan:443"));
    let ping = Flow::echo(PUBLIC.parse().unwrap());
    let denied = verdict(&[], &ping, &["example.org"]);
    assert_eq!(fix(&denied).as_deref(), Some("icmp://example.org"));
}

#[test]
fn a_claim_must_be_a_name_of_the_destination_that_a_rule_covers() {
    let policy = policy(false, &["a.example", "c.example", "tcp://203.0.113.1"]);
    let of = names(&["a.example", "b.example"]);
    let evidence = by_default_route(&of);
    let https = tcp(PUBLIC, 443);
    let claim = |claimed: &str| decide_claim(&policy, &https, &evidence, &name(claimed));

    assert!(claim("a.example").is_allowed());
    // Two names on one address, one of them allowed.
    let denied = claim("b.example");
    assert_eq!(denied.reason().name(), "internet-off");
    assert_eq!(fix(&denied).as_deref(), Some("tcp://b.example:443"));
    // An allowed name at an address that was given for another.
    let denied = claim("c.example");
    assert_eq!(
        denied.to_string(),
        "the program asks for c.example at 93.184.215.14, which it was given under other names"
    );
    // The rule is there. One for the address would open whatever else is at it.
    assert_eq!(fix(&denied), None);
    let denied = claim("d.example");
    assert_eq!(denied.reason().name(), "other-name");
    assert_eq!(fix(&denied).as_deref(), Some("tcp://d.example:443"));
    // What a rule for the address admits may claim anything.
    let by_address = decide_claim(
        &policy,
        &tcp("203.0.113.1", 443),
        &evidence,
        &name("x.example"),
    );
    assert!(matches!(by_address.reason(), Reason::Rule { .. }));
}

#[test]
fn only_names_that_rules_cover_are_resolved() {
    let rules = policy(
        false,
        &["tcp://api.example.org:443", "*.example.net", "10.0.0.1"],
    );
    for (text, allowed) in [
        ("api.example.org", true),
        ("example.org", false),
        ("www.api.example.org", false),
        ("a.b.example.net", true),
        ("example.net", false),
    ] {
        assert_eq!(
            decide_name(&rules, &name(text)).is_allowed(),
            allowed,
            "{text}"
        );
    }
    assert!(!decide_name(&policy(false, &[]), &name("example.org")).is_allowed());
    assert!(decide_name(&policy(true, &[]), &name("example.org")).is_allowed());
}

#[test]
fn a_name_that_is_not_resolved_says_why_in_one_line() {
    let closed = policy(false, &[]);
    let denied = decide_name(&closed, &name("example.org"));
    assert_eq!(
        denied.note().as_deref(),
        Some("Stockade: no rule allows example.org; to allow: \"example.org\"")
    );
    assert_eq!(denied.fix().unwrap().to_string(), "example.org");

    let label = "a".repeat(60);
    for labels in 1..5 {
        let long = format!("{}example.org", format!("{label}.").repeat(labels));
        let Some(long) = Hostname::from_wire(long.as_bytes()) else {
            continue;
        };
        let note = decide_name(&closed, &long).note().unwrap();
        assert!(note.len() <= LONGEST_NOTE, "{note}");
        assert!(note.contains("example.org"), "{note}");
    }
    assert_eq!(decide_name(&closed, &name("localhost")).fix(), None);
}

#[test]
fn rules_that_change_nothing_are_found() {
    let rules = ["10.0.0.1", "example.org", "10.0.0.1", "tcp://10.0.0.1"];
    let idle = |internet| {
        let policy = policy(internet, &rules);
        let idle = policy.idle_rules().map(|(index, _, idle)| (index, idle));
        idle.collect::<Vec<_>>()
    };
    let repeated = (2, Idle::Repeated { first: 0 });
    assert_eq!(idle(false), [repeated]);
    assert_eq!(idle(true), [(1, Idle::InternetOpen), repeated]);
}
