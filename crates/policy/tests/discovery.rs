//! Whom a search for devices goes to, and who may answer.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::net::IpAddr;

use stockade_policy::{
    Evidence, Flow, MOST_DEVICES, Policy, Reason, Route, Rule, Verdict, decide, decide_answer,
    decide_search,
};

fn policy(internet: bool, rules: &[&str], discovery: &[&str]) -> Policy {
    Policy {
        internet,
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        discovery: discovery
            .iter()
            .map(|entry| entry.parse().unwrap())
            .collect(),
    }
}

fn udp(to: &str) -> Flow {
    Flow::udp(to.parse().unwrap()).unwrap()
}

fn by(route: Route) -> Evidence<'static> {
    Evidence {
        route,
        own: false,
        names: &[],
    }
}

fn devices(verdict: Option<Verdict>) -> Option<Vec<String>> {
    let verdict = verdict?;
    match verdict.reason() {
        Reason::Search { devices, .. } => {
            assert!(verdict.is_allowed());
            Some(devices.iter().map(ToString::to_string).collect())
        }
        _ => {
            assert!(!verdict.is_allowed());
            Some(Vec::new())
        }
    }
}

/// Where searches go to, and how the host would get there.
const TO_MANY: [(&str, Route); 3] = [
    ("255.255.255.255:5064", Route::Broadcast),
    ("192.168.10.255:5064", Route::Broadcast),
    ("224.0.0.128:5064", Route::Default),
];

#[test]
fn a_search_goes_to_single_addresses_that_rules_name_for_its_port() {
    let rules = [
        "192.168.10.31",
        "udp://10.0.0.1:5060-5070",
        "tcp://10.0.0.2",
        "udp://10.0.0.3:5076",
        "10.1.0.0/31",
        "icmp://10.0.0.4",
        "fd00::1",
        "example.org",
        "udp://192.168.10.31:5064",
        "93.184.216.34",
    ];
    let policy = policy(true, &rules, &["epics"]);
    for (to, route) in TO_MANY {
        let asked = devices(decide_search(&policy, &udp(to), &by(route)));
        let wanted = ["192.168.10.31:5064", "10.0.0.1:5064", "93.184.216.34:5064"];
        assert_eq!(asked.unwrap(), wanted, "{to}");
    }
    let group = udp("[ff02::42:1]:5076");
    let asked = devices(decide_search(&policy, &group, &by(Route::Broadcast)));
    assert_eq!(asked.unwrap(), ["[fd00::1]:5076"]);
}

#[test]
fn every_device_that_a_search_goes_to_is_allowed_by_itself() {
    let rules = ["10.0.0.1", "udp://10.0.0.2:5064", "169.254.169.254"];
    for internet in [false, true] {
        let policy = policy(internet, &rules, &["epics", "udp://7"]);
        let search = decide_search(&policy, &udp(TO_MANY[0].0), &by(TO_MANY[0].1));
        for device in devices(search).unwrap() {
            let verdict = decide(&policy, &udp(&device), &by(Route::Default));
            assert!(verdict.is_allowed(), "{device}");
        }
    }
}

#[test]
fn there_is_a_limit_to_the_devices_of_a_search() {
    let rules: Vec<String> = (0..200).map(|number| format!("10.0.0.{number}")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let policy = policy(true, &rules, &["epics"]);
    let search = decide_search(&policy, &udp(TO_MANY[0].0), &by(TO_MANY[0].1));
    assert_eq!(devices(search).unwrap().len(), MOST_DEVICES);
    assert_eq!(policy.unasked_devices(), 200 - MOST_DEVICES);
}

/// With these rules, and a device `ioc` of these.
fn with_device(rules: &[&str], device: &[&str]) -> Policy {
    let ioc = "ioc".parse().unwrap();
    let device = device.iter().map(|rule| Rule::parse_device(&ioc, rule));
    let plain = policy(false, rules, &["epics"]);
    let rules = plain.rules.iter().cloned();
    Policy {
        rules: rules.chain(device.map(Result::unwrap)).collect(),
        ..plain
    }
}

#[test]
fn a_search_goes_to_a_device_by_its_host_name_and_to_no_other_name() {
    let named = |policy: &Policy, to: &str| {
        let verdict = decide_search(policy, &udp(to), &by(Route::Broadcast)).unwrap();
        match verdict.reason() {
            Reason::Search { named, .. } => named.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    };
    let rule = "udp://ioc1.lab.example:5064";
    let policy = with_device(&["example.org"], &[rule, "tcp://ioc1.lab.example"]);
    // Of both families: what the name has is not known here.
    for to in ["255.255.255.255:5064", "[ff02::42:1]:5064"] {
        assert_eq!(named(&policy, to), ["ioc"], "{to}");
    }
    assert!(named(&policy, "255.255.255.255:5076").is_empty());
    let by_address = with_device(&[], &["10.0.0.1"]);
    assert!(named(&by_address, "255.255.255.255:5064").is_empty());
    let mut near = with_device(&[], &[]);
    near.rules = ["*.lab.example", "ioc1.lab.example"]
        .iter()
        .map(|rule| Rule::parse_near(rule).unwrap())
        .collect();
    let verdict = decide_search(&near, &udp(TO_MANY[0].0), &by(TO_MANY[0].1)).unwrap();
    assert_eq!(
        verdict.to_string(),
        "no rule names a device for searches at UDP port 5064; near rule `*.lab.example` is for names, \
         which are not searched: allow each device by its address, or name it in `[devices]`"
    );
    // A name counts as one device.
    let many: Vec<String> = (0..63).map(|number| format!("10.0.0.{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let full = with_device(&many, &["ioc1.lab.example"]);
    assert_eq!(named(&full, "255.255.255.255:5064"), ["ioc"]);
    assert_eq!(full.unasked_devices(), 0);
    let over = full.with("10.0.1.1".parse().unwrap());
    assert!(named(&over, "255.255.255.255:5064").is_empty());
    assert_eq!(over.unasked_devices(), 1);
}

#[test]
fn a_device_by_its_host_name_answers_from_what_its_rules_cover() {
    let near = by(Route::Specific("10.0.0.0/8".parse().unwrap()));
    let names = ["ioc1.lab.example", "ioc"].map(|name| name.parse().unwrap());
    let policy = with_device(&[], &["udp://ioc1.lab.example:4000,5064"]);
    let answer = |policy: &Policy, from: &str, names| {
        let evidence = Evidence { names, ..near };
        decide_answer(policy, &udp(from), &evidence).is_allowed()
    };
    assert!(answer(&policy, "10.0.0.1:4000", &names));
    assert!(!answer(&policy, "10.0.0.1:4001", &names));
    assert!(!answer(&policy, "10.0.0.1:4000", &[]));
    assert!(!answer(&policy, "169.254.169.254:4000", &names));
    // A host that only a rule of `near` names is no device.
    let mut other = with_device(&[], &[]);
    other.rules = [Rule::parse_near("*.lab.example").unwrap()]
        .into_iter()
        .collect();
    assert!(!answer(&other, "10.0.0.1:4000", &names[..1]));
}

#[test]
fn what_is_no_search_is_none() {
    let policy = policy(true, &["0.0.0.0/0", "192.168.10.31"], &["udp://5064"]);
    for (flow, route) in [
        (udp("192.168.10.31:5064"), Route::Default),
        (udp("255.255.255.255:5076"), Route::Broadcast),
        (udp("[::ffff:127.0.0.1]:5064"), Route::Local),
        (
            Flow::tcp("255.255.255.255:5064".parse().unwrap()).unwrap(),
            Route::Broadcast,
        ),
        (
            Flow::echo("255.255.255.255".parse::<IpAddr>().unwrap()),
            Route::Broadcast,
        ),
    ] {
        assert_eq!(decide_search(&policy, &flow, &by(route)), None, "{flow}");
    }
}

/// Whoever dials what was decided never dials many.
#[test]
fn the_decision_on_a_connection_never_allows_many() {
    let rules = ["192.168.10.255", "0.0.0.0/0", "::/0"];
    for discovery in [&[][..], &["epics"]] {
        let policy = policy(true, &rules, discovery);
        for (to, route) in TO_MANY {
            let verdict = decide(&policy, &udp(to), &by(route));
            assert!(!verdict.is_allowed(), "{to}");
        }
    }
}

#[test]
fn a_search_that_is_not_passed_on_says_what_it_takes() {
    let told = |rules: &[&str], discovery: &[&str], to: &str| {
        let policy = policy(true, rules, discovery);
        let (flow, evidence) = (udp(to), by(Route::Broadcast));
        let verdict = decide_search(&policy, &flow, &evidence);
        verdict.unwrap_or_else(|| decide(&policy, &flow, &evidence))
    };
    for (to, entry) in [
        ("255.255.255.255:5064", Some("epics")),
        ("224.0.0.128:5076", Some("epics")),
        ("239.255.255.250:3702", Some("udp://3702")),
        ("224.0.0.251:5353", None),
        ("255.255.255.255:7", None),
    ] {
        let verdict = told(&[], &[], to);
        let proposed = verdict.discovery().map(|entry| entry.to_string());
        assert_eq!(proposed.as_deref(), entry, "{to}");
        assert_eq!(verdict.fix(), None);
    }
    let wide = told(
        &["tcp://10.0.0.1", "10.0.0.0/8"],
        &["epics"],
        "255.255.255.255:5064",
    );
    assert_eq!(wide.discovery(), None);
    assert_eq!(
        wide.to_string(),
        "no rule names a device for searches at UDP port 5064; rule `10.0.0.0/8` is for a network, \
         which is not searched: allow each device by its address, or name it in `[devices]`"
    );
    let none = told(&["tcp://10.0.0.1"], &["epics"], "255.255.255.255:5064");
    assert_eq!(
        none.to_string(),
        "no rule names a device for searches at UDP port 5064: allow each device by its address, \
         or name it in `[devices]`"
    );
}

#[test]
fn an_answer_from_elsewhere_takes_a_rule_for_addresses() {
    let rules = ["udp://10.0.0.1:5064", "10.1.0.0/16", "example.org"];
    let near = by(Route::Specific("10.0.0.0/8".parse().unwrap()));
    for internet in [false, true] {
        let policy = policy(internet, &rules, &["epics"]);
        let answer = |from: &str, evidence| decide_answer(&policy, &udp(from), &evidence);
        assert!(answer("10.0.0.1:5064", near).is_allowed());
        assert!(answer("10.1.2.3:4000", near).is_allowed());
        let other = answer("10.0.0.1:5065", near);
        assert!(!other.is_allowed());
        assert_eq!(other.fix().unwrap().to_string(), "udp://10.0.0.1:5065");
        // That the internet is open lets programs inside begin, and nobody else.
        assert!(!answer("93.184.216.34:5064", by(Route::Default)).is_allowed());
        // Nothing that the host is, or that hands out logins, is proposed.
        for (from, evidence) in [
            ("169.254.169.254:5064", near),
            ("10.0.0.9:5064", by(Route::Local)),
        ] {
            let verdict = answer(from, evidence);
            assert!(!verdict.is_allowed() && verdict.fix().is_none(), "{from}");
        }
    }
}
