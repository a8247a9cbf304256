//! Names that may lead to private addresses: what a rule of `near` opens, and what it never does.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::net::IpAddr;

use stockade_policy::{
    Evidence, Flow, Hostname, Policy, Problem, Route, Rule, Verdict, decide, decide_claim,
    decide_name, decide_quic,
};

const NAME: &str = "wiki.lab.example";

fn policy(internet: bool, allow: &[&str], near: &[&str]) -> Policy {
    let allow = allow.iter().map(|rule| rule.parse().unwrap());
    let near = near.iter().map(|rule| Rule::parse_near(rule).unwrap());
    Policy {
        internet,
        rules: allow.chain(near).collect(),
        ..Policy::default()
    }
}

fn name(text: &str) -> Hostname {
    text.parse().unwrap()
}

fn route(through: &str) -> Route {
    Route::through(through.parse().unwrap())
}

fn tcp(address: &str, port: u16) -> Flow {
    let address: IpAddr = address.parse().unwrap();
    Flow::tcp((address, port).into()).unwrap()
}

fn udp(address: &str, port: u16) -> Flow {
    let address: IpAddr = address.parse().unwrap();
    Flow::udp((address, port).into()).unwrap()
}

fn ping(address: &str) -> Flow {
    Flow::echo(address.parse().unwrap())
}

/// The verdict on a flow to what was given for the name.
fn verdict(policy: &Policy, flow: &Flow, route: Route) -> Verdict {
    let names = [name(NAME)];
    let evidence = Evidence {
        route,
        own: false,
        names: &names,
    };
    decide(policy, flow, &evidence)
}

#[test]
fn a_name_of_near_leads_to_private_addresses_with_the_internet_open_or_closed() {
    for internet in [false, true] {
        for rule in [NAME, "*.lab.example"] {
            let policy = policy(internet, &[], &[rule]);
            for (address, route) in [
                ("10.0.0.5", Route::Default),
                ("172.23.1.3", route("172.23.0.0/16")),
                ("192.168.1.5", route("192.168.1.0/24")),
                ("100.64.0.1", Route::Default),
                ("fd00::5", route("fd00::/64")),
                ("93.0.0.1", route("93.0.0.0/8")),
                ("2606::1", route("2606::/32")),
            ] {
                for flow in [tcp(address, 80), udp(address, 5064), ping(address)] {
                    let verdict = verdict(&policy, &flow, route);
                    assert!(verdict.is_allowed(), "{flow}: {verdict}");
                    assert!(verdict.rests_on_names());
                }
            }
        }
    }
    let allowed = verdict(
        &policy(true, &[], &["*.lab.example"]),
        &tcp("10.0.0.5", 80),
        Route::Default,
    );
    assert_eq!(
        allowed.to_string(),
        "near rule `*.lab.example` covers wiki.lab.example, which is at 10.0.0.5"
    );
    assert_eq!(
        allowed.decided_by().to_string(),
        "near rule `*.lab.example`"
    );
}

#[test]
fn a_name_of_near_leads_to_the_internet_as_well() {
    let policy = policy(false, &[], &[NAME]);
    let allowed = verdict(&policy, &tcp("93.184.215.14", 443), Route::Default);
    assert!(allowed.is_allowed() && allowed.rests_on_names());
}

#[test]
fn a_name_of_near_never_leads_to_the_machine_itself_or_to_what_is_sensitive() {
    for internet in [false, true] {
        let policy = policy(internet, &[], &["*.lab.example"]);
        for address in [
            "127.0.0.1",
            "127.8.8.8",
            "::1",
            "0.0.0.0",
            "::",
            "169.254.169.254",
            "169.254.7.7",
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
            "fe80::1",
            "224.0.0.251",
            "239.1.1.1",
            "ff02::1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.2.53",
            "198.18.0.1",
            "fec0::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.5",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::10.0.0.5",
            "2002:a00:5::1",
            "2001:0:a00:1::f7f7:f7f7",
            "fd00::5efe:10.0.0.5",
            "fd00::5efe:8.8.8.8",
        ] {
            for route in [Route::Default, route("10.0.0.0/8"), Route::None] {
                for flow in [tcp(address, 80), udp(address, 80), ping(address)] {
                    let verdict = verdict(&policy, &flow, route);
                    let opened = verdict.is_allowed() && verdict.rests_on_names();
                    assert!(!opened, "{flow}: {verdict}");
                    let by_name = verdict.fix().is_some_and(Rule::is_near);
                    assert!(!by_name, "{flow}: {verdict}");
                }
            }
        }
        // Whatever its number is.
        let names = [name(NAME)];
        for evidence in [
            (Route::Local, false),
            (Route::Default, true),
            (Route::Broadcast, false),
        ]
        .map(|(route, own)| Evidence {
            route,
            own,
            names: &names,
        }) {
            for address in ["192.168.1.5", "93.0.0.1", "fd00::5", "2606::1"] {
                let verdict = decide(&policy, &tcp(address, 80), &evidence);
                assert!(!verdict.is_allowed(), "{address}: {verdict}");
            }
        }
    }
}

#[test]
fn an_address_that_was_not_given_for_the_name_stays_closed() {
    let policy = policy(true, &[], &[NAME]);
    let other = [name("other.example")];
    for names in [&[][..], &other] {
        let evidence = Evidence {
            route: Route::Default,
            own: false,
            names,
        };
        assert!(!decide(&policy, &tcp("10.0.0.5", 80), &evidence).is_allowed());
    }
}

#[test]
fn protocol_and_ports_of_a_near_rule_count() {
    let policy = policy(true, &[], &["tcp://wiki.lab.example:80"]);
    let to = |flow: &Flow| verdict(&policy, flow, Route::Default);
    assert!(to(&tcp("10.0.0.5", 80)).is_allowed());
    for flow in [tcp("10.0.0.5", 81), udp("10.0.0.5", 80), ping("10.0.0.5")] {
        assert!(!to(&flow).is_allowed(), "{flow}");
    }
}

#[test]
fn a_denial_of_a_private_address_with_a_name_proposes_the_name() {
    for (internet, allow) in [(true, &[][..]), (false, &["*.lab.example"])] {
        let policy = policy(internet, allow, &[]);
        let fix = |flow: Flow| {
            let verdict = verdict(&policy, &flow, Route::Default);
            assert!(!verdict.is_allowed());
            let fix = verdict.fix().expect("a fix").clone();
            (fix.is_near(), fix.to_string())
        };
        let near = |text: &str| (true, text.to_owned());
        assert_eq!(fix(tcp("10.0.0.5", 80)), near("tcp://wiki.lab.example:80"));
        assert_eq!(fix(ping("10.0.0.5")), near("icmp://wiki.lab.example"));
        // No name can open these, so it is the address.
        let address = |text: &str| (false, text.to_owned());
        assert_eq!(fix(tcp("169.254.7.7", 80)), address("tcp://169.254.7.7:80"));
        assert_eq!(fix(udp("10.0.0.5", 443)), address("udp://10.0.0.5:443"));
    }
}

#[test]
fn what_a_connection_shows_is_judged_as_for_other_names() {
    let names = [name("a.lab.example"), name(NAME)];
    for internet in [false, true] {
        let policy = policy(internet, &[], &[NAME]);
        let evidence = Evidence {
            route: Route::Default,
            own: false,
            names: &names,
        };
        let flow = tcp("10.0.0.5", 443);
        let claim = |text: &str| decide_claim(&policy, &flow, &evidence, &name(text));
        assert!(claim(NAME).is_allowed());
        assert!(!claim("a.lab.example").is_allowed());
        let other = claim("other.example");
        assert_eq!(other.reason().name(), "other-name");
        assert_eq!(
            other.fix().map(|fix| (fix.is_near(), fix.to_string())),
            Some((true, "tcp://other.example:443".to_owned()))
        );
    }
}

#[test]
fn quic_shows_no_name_and_is_denied_by_near_too() {
    for internet in [false, true] {
        for rule in [NAME, "udp://wiki.lab.example"] {
            let policy = policy(internet, &[], &[rule]);
            let denied = verdict(&policy, &udp("10.0.0.5", 443), Route::Default);
            assert_eq!(denied.reason().name(), "quic", "{denied}");
            let fix = denied.fix().map(|fix| (fix.is_near(), fix.to_string()));
            let tcp = (true, "tcp://wiki.lab.example:443".to_owned());
            assert_eq!(fix, (rule != NAME).then_some(tcp));
            let names = [name(NAME)];
            let evidence = Evidence {
                route: Route::Default,
                own: false,
                names: &names,
            };
            let flow = udp("10.0.0.5", 8443);
            assert!(decide(&policy, &flow, &evidence).is_allowed());
            assert!(!decide_quic(&policy, &flow, &evidence).is_allowed());
        }
    }
}

#[test]
fn a_near_name_may_be_asked_for_and_its_rule_is_not_idle() {
    let closed = policy(false, &[], &["*.lab.example:80"]);
    assert!(decide_name(&closed, &name(NAME)).is_allowed());
    assert!(!decide_name(&closed, &name("lab.example")).is_allowed());
    let open = policy(true, &["example.org"], &[NAME, NAME]);
    let idle: Vec<_> = open.idle_rules().map(|(index, _, _)| index).collect();
    assert_eq!(idle, [0, 2]);
    assert!(open.is_near(&name(NAME)) && !open.is_near(&name("example.org")));
}

#[test]
fn near_has_names_and_no_wildcard_over_strangers() {
    let problem = |text: &str| Rule::parse_near(text).unwrap_err().problem().clone();
    for address in ["10.0.0.5", "10.0.0.0/8", "tcp://[fd00::5]:80"] {
        assert_eq!(problem(address), Problem::NearAddress);
    }
    for suffix in ["com", "co.uk", "github.io", "ck"] {
        assert_eq!(
            problem(&format!("*.{suffix}")),
            Problem::PublicSuffix(suffix.to_owned())
        );
    }
    assert_eq!(problem("*"), Problem::StarAlone);
    assert!(matches!(problem("localhost"), Problem::Localhost(_)));
    let mended = Rule::parse_near("wiki.lab.example.").unwrap_err();
    assert_eq!(mended.suggestion(), Some(NAME));
    for good in ["*.lan", "nas", "tcp://*.lab.example:80,443"] {
        let rule = Rule::parse_near(good).unwrap();
        assert!(rule.is_near() && rule.to_string() == good);
        assert_ne!(rule, good.parse().unwrap());
    }
}
