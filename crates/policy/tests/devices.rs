//! Devices: rules of one host that has a name of the user's own.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::net::IpAddr;

use stockade_policy::{
    Evidence, Flow, Hostname, Outcome, Policy, Problem, Route, Rule, Target, decide, decide_claim,
    decide_name, explain,
};

fn name(text: &str) -> Hostname {
    text.parse().unwrap()
}

fn policy(internet: bool, devices: &[(&str, &str)]) -> Policy {
    let rule = |(device, rule): &(&str, &str)| {
        Rule::parse_device(&Hostname::parse_device(device).unwrap(), rule).unwrap()
    };
    Policy {
        internet,
        rules: devices.iter().map(rule).collect(),
        ..Policy::default()
    }
}

fn lab(internet: bool) -> Policy {
    policy(
        internet,
        &[
            ("pmac", "tcp://172.23.1.7:1025"),
            ("ioc", "172.23.1.3"),
            ("ioc", "[fd00::3]:5064"),
            ("cam", "tcp://cam1.lab.example:80"),
            ("psu", "icmp://172.23.1.8"),
        ],
    )
}

fn evidence(names: &[Hostname]) -> Evidence<'_> {
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

#[test]
fn a_device_is_open_for_the_protocols_and_ports_of_its_rules() {
    for internet in [false, true] {
        let policy = lab(internet);
        let ping = |address: &str| Flow::echo(address.parse().unwrap());
        for (flow, is_open) in [
            (tcp("172.23.1.7", 1025), true),
            (tcp("172.23.1.7", 22), false),
            (ping("172.23.1.7"), false),
            (tcp("172.23.1.3", 9), true),
            (ping("172.23.1.3"), true),
            (tcp("fd00::3", 5064), true),
            (tcp("fd00::3", 80), false),
            (tcp("172.23.1.4", 9), false),
            (ping("172.23.1.8"), true),
            (tcp("172.23.1.8", 9), false),
        ] {
            let verdict = decide(&policy, &flow, &evidence(&[]));
            assert_eq!(verdict.is_allowed(), is_open, "{flow}: {verdict}");
            assert!(!verdict.rests_on_names());
        }
    }
}

#[test]
fn verdicts_call_a_device_by_its_name() {
    let policy = lab(true);
    let allowed = decide(&policy, &tcp("172.23.1.7", 1025), &evidence(&[]));
    assert_eq!(allowed.device(), Some(&name("pmac")));
    assert_eq!(
        allowed.to_string(),
        "rule `tcp://172.23.1.7:1025` covers 172.23.1.7 (device pmac)"
    );
    assert_eq!(
        allowed.decided_by().to_string(),
        "rule `tcp://172.23.1.7:1025` of device pmac"
    );
    let pmac = [name("pmac")];
    let denied = decide(&policy, &tcp("172.23.1.7", 22), &evidence(&pmac));
    assert_eq!(
        denied.to_string(),
        "172.23.1.7 (device pmac) is in 172.16.0.0/12 (private use, RFC 1918)"
    );
    // The name is no host name, so no rule can have it.
    assert_eq!(denied.fix().unwrap().to_string(), "tcp://172.23.1.7:22");
    assert!(!denied.fix().unwrap().is_near());
    let other = decide(&policy, &tcp("172.23.1.4", 22), &evidence(&[]));
    assert_eq!(other.device(), None);
}

#[test]
fn a_device_with_a_host_name_is_open_under_both_names() {
    for internet in [false, true] {
        let policy = lab(internet);
        let both = [name("cam"), name("cam1.lab.example")];
        let flow = tcp("10.0.0.5", 80);
        for names in [&both[..1], &both[1..], &both] {
            let verdict = decide(&policy, &flow, &evidence(names));
            assert!(verdict.is_allowed() && verdict.rests_on_names());
            assert_eq!(verdict.device(), Some(&name("cam")));
        }
        for claimed in &both {
            assert!(decide_claim(&policy, &flow, &evidence(&both), claimed).is_allowed());
        }
        assert!(
            !decide_claim(&policy, &flow, &evidence(&both), &name("x.lab.example")).is_allowed()
        );
        // As for any near name.
        for never in [
            "127.0.0.1",
            "169.254.169.254",
            "fe80::1",
            "64:ff9b::10.0.0.5",
        ] {
            assert!(!decide(&policy, &tcp(never, 80), &evidence(&both)).is_allowed());
        }
        let denied = decide(&policy, &tcp("10.0.0.5", 81), &evidence(&both));
        let fix = denied.fix().unwrap();
        assert_eq!(fix.to_string(), "tcp://cam1.lab.example:81");
        assert!(fix.is_near());
    }
}

/// As after a reload that gave the name to another address.
#[test]
fn the_name_of_a_device_alone_opens_no_address() {
    for internet in [false, true] {
        let pmac = [name("pmac")];
        let verdict = decide(&lab(internet), &tcp("172.23.1.9", 1025), &evidence(&pmac));
        assert!(!verdict.is_allowed(), "{verdict}");
        assert!(!verdict.fix().is_some_and(Rule::is_near));
    }
}

#[test]
fn devices_may_be_asked_for() {
    let policy = lab(false);
    for device in ["pmac", "ioc", "cam", "cam1.lab.example"] {
        assert!(decide_name(&policy, &name(device)).is_allowed(), "{device}");
    }
    for other in ["pmac2", "x.pmac", "lab.example"] {
        assert!(!decide_name(&policy, &name(other)).is_allowed(), "{other}");
    }
    let ioc = policy.rules.device(&name("ioc")).unwrap();
    assert_eq!(ioc.len(), 2);
    assert_eq!(
        policy.rules.device_at("fd00::3".parse().unwrap()),
        Some(&name("ioc"))
    );
    let all: Vec<String> = policy
        .rules
        .devices()
        .map(|(name, _)| name.to_string())
        .collect();
    assert_eq!(all, ["cam", "ioc", "pmac", "psu"]);
}

#[test]
fn a_device_is_explained_by_its_name() {
    let policy = lab(true);
    let ask = |target: &str, address: &str| {
        let target: Target = target.parse().unwrap();
        explain(
            &policy,
            &target,
            [(address.parse().unwrap(), evidence(&[]))],
        )
    };
    assert_eq!(
        ask("tcp://pmac:1025", "172.23.1.7").outcome,
        Outcome::Allowed
    );
    assert_eq!(ask("tcp://cam:80", "10.0.0.5").outcome, Outcome::Allowed);
    assert_eq!(ask("tcp://cam", "10.0.0.5").outcome, Outcome::Unclear);
    let denied = ask("tcp://pmac:22", "172.23.1.7");
    assert_eq!(denied.outcome, Outcome::Denied);
    let text = denied.text(&|_| None);
    assert!(text.contains("172.23.1.7 (device pmac)"), "{text}");
    assert!(
        text.contains("to allow it: \"tcp://172.23.1.7:22\""),
        "{text}"
    );
}

#[test]
fn a_device_is_one_host_with_a_name_of_its_own() {
    let pmac = name("pmac");
    for several in ["172.23.1.0/24", "*.lab.example", "tcp://[fd00::]/64:80"] {
        let error = Rule::parse_device(&pmac, several).unwrap_err();
        assert!(
            matches!(error.problem(), Problem::SeveralHosts | Problem::Brackets),
            "{several}: {error}"
        );
    }
    let problem = |text: &str| Hostname::parse_device(text).unwrap_err().problem().clone();
    for reserved in ["localhost", "local", "arpa", "onion", "invalid", "test"] {
        assert_eq!(
            problem(reserved),
            Problem::ReservedDevice(reserved.to_owned())
        );
    }
    assert_eq!(problem("pmac.lab"), Problem::DottedDevice);
    assert_eq!(problem("com.").clone(), Problem::DottedDevice);
    assert_eq!(problem(""), Problem::NoTarget);
    for number in ["7", "0x7f", "127"] {
        assert!(
            matches!(problem(number), Problem::NumericName(_)),
            "{number}"
        );
    }
    for odd in ["-a", "a b", "a/b", "*", "a\u{e9}", "a\nb", &"x".repeat(64)] {
        assert!(Hostname::parse_device(odd).is_err(), "{odd:?}");
    }
    let capital = Hostname::parse_device("PMAC").unwrap_err();
    assert_eq!(capital.suggestion(), Some("pmac"));
    for good in ["pmac", "bl04i-mo-ioc_01", "cam", "x1"] {
        assert_eq!(Hostname::parse_device(good).unwrap().as_str(), good);
    }
}

#[test]
fn flows_to_one_host_make_few_rules_that_allow_them() {
    let udp = |port: u16| {
        let address: IpAddr = "172.23.1.3".parse().unwrap();
        Flow::udp((address, port).into()).unwrap()
    };
    let ping = Flow::echo("172.23.1.3".parse().unwrap());
    let (a, b) = (tcp("172.23.1.3", 5064), tcp("172.23.1.3", 80));
    for (flows, rules) in [
        (&[][..], &[][..]),
        (&[a], &["tcp://172.23.1.3:5064"]),
        (&[a, b, a], &["tcp://172.23.1.3:80,5064"]),
        (&[udp(5064)], &["172.23.1.3:5064"]),
        (&[udp(5064), a, udp(5065)], &["172.23.1.3:5064-5065"]),
        (&[ping], &["icmp://172.23.1.3"]),
        (&[ping, a], &["tcp://172.23.1.3:5064", "icmp://172.23.1.3"]),
    ] {
        let made = Rule::for_flows(flows);
        let texts: Vec<String> = made.iter().map(ToString::to_string).collect();
        assert_eq!(texts, rules);
        let policy = Policy {
            internet: false,
            rules: made.into_iter().collect(),
            ..Policy::default()
        };
        for flow in flows {
            assert!(decide(&policy, flow, &evidence(&[])).is_allowed(), "{flow}");
        }
    }
}
