//! Decisions that users and attackers would ask for, one by one.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::net::IpAddr;

use stockade_policy::{
    Decider, Evidence, Flow, Hostname, Policy, Reason, Restriction, Route, Verdict, decide,
};

const OPEN: Evidence<'static> = Evidence {
    route: Route::Default,
    own: false,
    names: &[],
};

fn policy(internet: bool, rules: &[&str]) -> Policy {
    Policy {
        internet,
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        ..Policy::default()
    }
}

fn tcp(address: &str, port: u16) -> Flow {
    let address: IpAddr = address.parse().unwrap();
    Flow::tcp((address, port).into()).unwrap()
}

/// The verdict on TCP to port 80, the host's default route leading there.
fn verdict(internet: bool, rules: &[&str], address: &str) -> Verdict {
    decide(&policy(internet, rules), &tcp(address, 80), &OPEN)
}

fn through(network: &str) -> Evidence<'static> {
    Evidence {
        route: Route::through(network.parse().unwrap()),
        ..OPEN
    }
}

#[test]
fn the_internet_is_open_and_what_is_near_is_not() {
    for address in ["93.184.215.14", "2606:2800:21f::1", "64:ff9b::8.8.8.8"] {
        assert!(verdict(true, &[], address).is_allowed(), "{address}");
    }
    for address in [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.5",
        "100.64.0.1",
        "169.254.1.1",
        "192.0.0.1",
        "198.18.0.1",
        "240.0.0.1",
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "4000::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b:1::8.8.8.8",
        "2002:a00:1::1",
        "2001:0:a00:1::1",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "64:ff9b::168.63.129.16",
        "2002:a83f:8110::1",
    ] {
        assert!(!verdict(true, &[], address).is_allowed(), "{address}");
    }
}

#[test]
fn without_internet_only_rules_allow() {
    assert!(!verdict(false, &[], "93.184.215.14").is_allowed());
    assert!(!verdict(false, &[], "10.0.0.1").is_allowed());
    assert!(verdict(false, &["93.184.215.14"], "93.184.215.14").is_allowed());
    assert!(!verdict(false, &["tcp://93.184.215.14:443"], "93.184.215.14").is_allowed());
}

#[test]
fn a_public_address_of_a_known_network_is_not_the_internet() {
    let flow = tcp("93.0.0.1", 80);
    let denied = decide(&policy(true, &[]), &flow, &through("93.0.0.0/8"));
    assert_eq!(
        denied.to_string(),
        "93.0.0.1 is reached through 93.0.0.0/8, not through the host's default route"
    );
    assert_eq!(denied.fix().unwrap().to_string(), "tcp://93.0.0.1:80");
    assert!(
        decide(
            &policy(true, &["93.0.0.0/8"]),
            &flow,
            &through("93.0.0.0/8")
        )
        .is_allowed()
    );
    assert!(decide(&policy(true, &[]), &flow, &through("0.0.0.0/1")).is_allowed());
}

#[test]
fn an_address_without_a_route_gets_no_advice() {
    let nowhere = Evidence {
        route: Route::None,
        ..OPEN
    };
    let denied = decide(&policy(true, &[]), &tcp("93.0.0.1", 80), &nowhere);
    assert_eq!(denied.to_string(), "the host has no route to 93.0.0.1");
    assert_eq!(denied.fix(), None);
}

#[test]
fn the_host_itself_needs_a_rule_of_exactly_its_address() {
    let own = |route| Evidence {
        route,
        own: true,
        ..OPEN
    };
    let local = Evidence {
        route: Route::Local,
        ..OPEN
    };
    for (address, wide) in [
        ("192.168.1.10", "192.168.1.0/24"),
        ("93.0.0.1", "0.0.0.0/0"),
    ] {
        for evidence in [own(Route::Default), own(Route::Local), local] {
            let flow = tcp(address, 80);
            let denied = decide(&policy(true, &[]), &flow, &evidence);
            assert!(!denied.is_allowed());
            let denied = decide(&policy(true, &[wide]), &flow, &evidence);
            assert_eq!(
                denied.to_string(),
                format!(
                    "{address} is an address of the host itself; rule `{wide}` is too wide to cover that"
                )
            );
            assert!(decide(&policy(false, &[address]), &flow, &evidence).is_allowed());
        }
    }
}

#[test]
fn no_rule_opens_the_broadcast_address_of_a_subnet() {
    let broadcast = Evidence {
        route: Route::Broadcast,
        ..OPEN
    };
    let said = "192.168.10.255 is a broadcast address; broadcasts do not leave the jail: \
                name the device's own address";
    for (rules, aside) in [
        (&[][..], ""),
        (
            &["192.168.10.0/24"],
            "; rule `192.168.10.0/24` does not change that",
        ),
        (
            &["192.168.10.255"],
            "; rule `192.168.10.255` does not change that",
        ),
    ] {
        for internet in [true, false] {
            let policy = policy(internet, rules);
            let denied = decide(&policy, &tcp("192.168.10.255", 80), &broadcast);
            assert!(!denied.is_allowed(), "{rules:?}");
            assert_eq!(denied.to_string(), format!("{said}{aside}"));
            assert_eq!(denied.reason().name(), "broadcast-address");
            assert_eq!(denied.fix(), None);
        }
    }
}

#[test]
fn what_would_speak_to_many_is_told_to_speak_to_one() {
    for address in ["224.0.0.251", "255.255.255.255", "ff02::fb"] {
        let denied = verdict(true, &[], address);
        let said = denied.to_string();
        let advice = "which nothing inside can reach: name the device's own address";
        assert!(said.ends_with(advice), "{said}");
        assert_eq!(denied.fix(), None);
    }
}

#[test]
fn a_metadata_service_needs_a_rule_of_exactly_its_address() {
    for (address, wide) in [
        ("169.254.169.254", "169.254.0.0/16"),
        ("169.254.169.254", "169.254.169.254/31"),
        ("168.63.129.16", "0.0.0.0/0"),
        ("fd00:ec2::254", "fd00::/8"),
        ("64:ff9b::a9fe:a9fe", "64:ff9b::/96"),
        ("2002:a9fe:a9fe::1", "2002:a9fe:a9fe::/48"),
    ] {
        assert!(!verdict(true, &[wide], address).is_allowed(), "{address}");
        assert!(
            verdict(false, &[address], address).is_allowed(),
            "{address}"
        );
    }
    assert_eq!(
        verdict(true, &[], "64:ff9b::a9fe:a9fe").to_string(),
        "64:ff9b::a9fe:a9fe carries 169.254.169.254 (NAT64), \
         which is a cloud metadata service (AWS, Azure, Google Cloud and others)"
    );
}

#[test]
fn what_is_out_of_reach_stays_so_under_any_rule() {
    for address in [
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
    ] {
        let denied = verdict(true, &["0.0.0.0/0", "::/0", "64:ff9b::/96"], address);
        assert!(!denied.is_allowed(), "{address}");
        assert_eq!(denied.fix(), None, "{address}");
    }
}

#[test]
fn a_short_prefix_does_not_cover_an_address_in_disguise() {
    for (address, short, meant) in [
        ("64:ff9b::10.0.0.1", "::/0", "64:ff9b::/96"),
        ("64:ff9b:1::10.0.0.1", "64::/16", "64:ff9b:1::/48"),
        ("2002:a00:1::1", "2000::/3", "2002::/16"),
        ("2001:0:a00:1::1", "2001::/23", "2001::/32"),
        ("::10.0.0.1", "::/8", "::/96"),
    ] {
        assert!(!verdict(true, &[short], address).is_allowed(), "{address}");
        assert!(verdict(false, &[meant], address).is_allowed(), "{address}");
    }
    assert!(verdict(false, &["::/0"], "fd00::5").is_allowed());
}

#[test]
fn a_denial_says_why_and_what_would_help() {
    let denied = verdict(true, &["tcp://192.168.1.5:443"], "192.168.1.5");
    assert_eq!(
        denied.to_string(),
        "192.168.1.5 is in 192.168.0.0/16 (private use, RFC 1918)"
    );
    assert_eq!(denied.fix().unwrap().to_string(), "tcp://192.168.1.5:80");
    assert_eq!(
        denied.decided_by().to_string(),
        "built-in rule special-address"
    );

    let denied = verdict(false, &[], "fd00::5");
    assert_eq!(
        denied.to_string(),
        "the internet is closed, and no rule covers tcp://[fd00::5]:80"
    );
    assert_eq!(denied.fix().unwrap().to_string(), "tcp://[fd00::5]:80");

    let ping = Flow::echo("10.0.0.1".parse().unwrap());
    let denied = decide(&policy(true, &[]), &ping, &OPEN);
    assert_eq!(denied.fix().unwrap().to_string(), "icmp://10.0.0.1");
}

#[test]
fn an_approval_names_the_rule() {
    let allowed = verdict(true, &["10.1.0.0/16", "192.168.0.0/16"], "192.168.1.5");
    assert!(matches!(
        allowed.decided_by(),
        Decider::Rule { index: 1, .. }
    ));
    assert_eq!(
        allowed.to_string(),
        "rule `192.168.0.0/16` covers 192.168.1.5"
    );
    assert_eq!(allowed.fix(), None);

    let allowed = verdict(true, &[], "93.0.0.1");
    assert_eq!(allowed.decided_by().to_string(), "built-in rule internet");
}

/// Of all denials only those have a question for which merely nobody has written a rule.
#[test]
fn only_what_nobody_spoke_about_can_be_asked_and_the_rule_would_allow_it() {
    let name: Hostname = "a.example".parse().unwrap();
    let names = [name];
    let near = Route::Specific("192.168.0.0/16".parse().unwrap());
    let flow = |text: &str| Flow::tcp(text.parse().unwrap()).unwrap();
    let evidence = |route, names| Evidence {
        route,
        own: false,
        names,
    };
    let open = policy(true, &[]);
    let closed = policy(false, &[]);
    let named = policy(false, &["a.example"]);
    for (policy, flow, evidence, question) in [
        (
            &open,
            flow("192.168.0.5:80"),
            evidence(near, &[][..]),
            Some("tcp://192.168.0.5:80"),
        ),
        (
            &open,
            flow("192.168.0.5:80"),
            evidence(near, &names),
            Some("tcp://192.168.0.5:80"),
        ),
        (
            &closed,
            flow("9.9.9.9:443"),
            evidence(Route::Default, &[]),
            Some("tcp://9.9.9.9:443"),
        ),
        (
            &closed,
            flow("9.9.9.9:443"),
            evidence(Route::Default, &names),
            Some("tcp://a.example:443"),
        ),
        // A name that is allowed points inward.
        (&named, flow("192.168.0.5:80"), evidence(near, &names), None),
        // What needs a rule that means it.
        (
            &open,
            flow("169.254.169.254:80"),
            evidence(Route::Default, &[]),
            None,
        ),
        (
            &closed,
            flow("169.254.169.254:80"),
            evidence(Route::Default, &[]),
            None,
        ),
        (
            &open,
            flow("192.168.0.5:80"),
            evidence(Route::Local, &[]),
            None,
        ),
        (
            &open,
            flow("127.0.0.1:80"),
            evidence(Route::Local, &[]),
            None,
        ),
        (
            &open,
            flow("224.0.0.1:80"),
            evidence(Route::Default, &[]),
            None,
        ),
        (
            &open,
            flow("192.168.0.255:80"),
            evidence(Route::Broadcast, &[]),
            None,
        ),
        // What is allowed, or leads nowhere.
        (
            &open,
            flow("9.9.9.9:443"),
            evidence(Route::Default, &[]),
            None,
        ),
        (&open, flow("9.9.9.9:443"), evidence(Route::None, &[]), None),
    ] {
        let verdict = decide(policy, &flow, &evidence);
        let asked = verdict.question();
        assert_eq!(
            asked.as_ref().map(ToString::to_string).as_deref(),
            question,
            "{verdict}"
        );
        if let Some(rule) = asked {
            let with = policy.with(rule.clone());
            let now = decide(&with, &flow, &evidence);
            assert!(now.is_allowed(), "{now}");
            // Nor does it open another private address that the name has tomorrow.
            let other = decide(&with, &tcp("192.168.0.6", 80), &evidence);
            assert!(evidence.route != near || !other.is_allowed(), "{other}");
        }
    }
}

fn udp(address: &str, port: u16) -> Flow {
    let address: IpAddr = address.parse().unwrap();
    Flow::udp((address, port).into()).unwrap()
}

fn proxied(address: &str, evidence: Evidence<'static>) -> Evidence<'static> {
    evidence.through_proxy(address.parse().unwrap(), false)
}

const NOWHERE: Evidence<'static> = Evidence {
    route: Route::None,
    ..OPEN
};

#[test]
fn with_a_proxy_the_internet_is_what_is_global_and_has_no_route_of_its_own() {
    let open = policy(true, &[]);
    for evidence in [OPEN, NOWHERE] {
        let through = proxied("93.184.216.34", evidence);
        assert_eq!(through.route, Route::Proxied);
        let verdict = decide(&open, &tcp("93.184.216.34", 443), &through);
        assert_eq!(verdict.reason(), &Reason::InternetByProxy);
        // Closed, it is by rules alone.
        let closed = decide(&policy(false, &[]), &tcp("93.184.216.34", 443), &through);
        assert!(!closed.is_allowed());
        // What is not global never goes, with or without a route.
        for near in [
            "10.20.0.5",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "fd00::5",
            "fe80::1",
            "64:ff9b::a14:5",
            "127.0.0.1",
        ] {
            let through = proxied(near, evidence);
            assert_ne!(through.route, Route::Proxied, "{near}");
            // And if somebody said so all the same.
            let forced = Evidence {
                route: Route::Proxied,
                ..evidence
            };
            if near != "198.18.0.1" {
                assert!(
                    !decide(&open, &tcp(near, 80), &forced).is_allowed(),
                    "{near}"
                );
            }
        }
    }
    // A network that the host knows is near, whatever its addresses are.
    let known = through("93.0.0.0/8");
    assert_eq!(proxied("93.184.216.34", known), known);
    let own = Evidence { own: true, ..OPEN };
    assert_eq!(proxied("93.184.216.34", own), own);
}

#[test]
fn an_address_of_the_pool_is_open_only_while_it_stands_for_a_name() {
    let pooled: IpAddr = "198.18.0.7".parse().unwrap();
    let flow = tcp("198.18.0.7", 443);
    let names = ["www.example.com".parse().unwrap()];
    let named = Evidence {
        names: &names,
        ..NOWHERE
    };
    let standing = named.through_proxy(pooled, true);
    assert!(decide(&policy(true, &[]), &flow, &standing).is_allowed());
    let closed = policy(false, &["www.example.com:443"]);
    assert!(decide(&closed, &flow, &standing).rests_on_names());
    let other = policy(false, &["example.org"]);
    assert!(!decide(&other, &flow, &standing).is_allowed());
    for evidence in [named.through_proxy(pooled, false), named] {
        assert!(!decide(&policy(true, &[]), &flow, &evidence).is_allowed());
    }
    // Somebody has the network after all.
    let known = through("198.18.0.0/16");
    assert_eq!(known.through_proxy(pooled, true), known);
}

#[test]
fn a_proxy_carries_tcp_alone_and_is_itself_out_of_reach() {
    let through = proxied("93.184.216.34", OPEN);
    let open = policy(true, &["udp://93.184.216.34:53"]);
    for flow in [udp("93.184.216.34", 53), udp("93.184.216.34", 443)] {
        let verdict = decide(&open, &flow, &through);
        assert_eq!(verdict.reason(), &Reason::NotThroughProxy);
        assert_eq!(verdict.fix(), None);
    }
    let proxy = Evidence {
        route: Route::ToProxy,
        ..OPEN
    };
    let flow = tcp("10.20.0.9", 3128);
    let wide = decide(&policy(true, &["10.0.0.0/8"]), &flow, &proxy);
    assert!(matches!(
        wide.reason(),
        Reason::Restricted {
            restriction: Restriction::Proxy,
            too_wide: Some(_)
        }
    ));
    assert!(decide(&policy(true, &["tcp://10.20.0.9:3128"]), &flow, &proxy).is_allowed());
}
