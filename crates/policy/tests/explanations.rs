//! Explanations as people and programs read them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::net::IpAddr;

use stockade_policy::{Evidence, Explanation, Outcome, Policy, Route, Target, explain};

fn policy(internet: bool, rules: &[&str]) -> Policy {
    Policy {
        internet,
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        ..Policy::default()
    }
}

/// Asks about a target that is at these addresses, each reached so.
fn ask(policy: &Policy, target: &str, hosts: &[(&str, Route)]) -> Explanation {
    let target: Target = target.parse().unwrap();
    let hosts = hosts.iter().map(|(address, route)| {
        let evidence = Evidence {
            route: *route,
            own: false,
            names: &[],
        };
        (address.parse::<IpAddr>().unwrap(), evidence)
    });
    explain(policy, &target, hosts)
}

fn text(explanation: &Explanation) -> String {
    let origin = |index: usize| Some(format!("config.toml:{}", index + 7));
    explanation.text(&origin)
}

fn through(network: &str) -> Route {
    Route::through(network.parse().unwrap())
}

#[test]
fn a_device_is_explained_by_its_rule() {
    let policy = policy(true, &["udp://172.23.1.3:5064-5065"]);
    let lab = [("172.23.1.3", through("172.23.0.0/16"))];
    let explanation = ask(&policy, "udp://172.23.1.3:5064", &lab);
    assert_eq!(explanation.outcome, Outcome::Allowed);
    assert_eq!(
        text(&explanation),
        "udp://172.23.1.3:5064: allowed
  172.23.1.3 is in 172.16.0.0/12 (private use, RFC 1918)
    the host reaches it through 172.23.0.0/16
    udp 5064: allowed: rule `udp://172.23.1.3:5064-5065` covers 172.23.1.3 (config.toml:7)
"
    );
}

#[test]
fn without_a_port_the_answer_may_be_unclear() {
    let policy = policy(true, &["udp://172.23.1.3:5064-5065"]);
    let lab = [("172.23.1.3", through("172.23.0.0/16"))];
    let explanation = ask(&policy, "172.23.1.3", &lab);
    assert_eq!(explanation.outcome, Outcome::Unclear);
    assert_eq!(
        text(&explanation),
        "172.23.1.3: unclear
  172.23.1.3 is in 172.16.0.0/12 (private use, RFC 1918)
    the host reaches it through 172.23.0.0/16
    tcp 1-65535: denied: 172.23.1.3 is in 172.16.0.0/12 (private use, RFC 1918)
    udp 1-5063: denied: 172.23.1.3 is in 172.16.0.0/12 (private use, RFC 1918)
    udp 5064-5065: allowed: rule `udp://172.23.1.3:5064-5065` covers 172.23.1.3 (config.toml:7)
    udp 5066-65535: denied: 172.23.1.3 is in 172.16.0.0/12 (private use, RFC 1918)
    icmp: denied: 172.23.1.3 is in 172.16.0.0/12 (private use, RFC 1918)
  to allow it: \"172.23.1.3\"
"
    );
}

#[test]
fn a_name_without_a_rule_is_explained_by_that() {
    let explanation = ask(&policy(false, &[]), "https://api.x.com/v1", &[]);
    assert_eq!(explanation.outcome, Outcome::Denied);
    assert_eq!(
        text(&explanation),
        "tcp://api.x.com:443: denied
  name: denied: the internet is closed, and no rule covers api.x.com
  to allow it: \"tcp://api.x.com:443\"
"
    );
}

#[test]
fn a_name_with_a_rule_is_allowed_with_all_it_is_used_for() {
    let policy = policy(false, &["api.x.com"]);
    // QUIC is not missed, and neither is a family that the host has no route for.
    let hosts = [
        ("93.184.215.14", Route::Default),
        ("2606:2800:21f::1", Route::None),
    ];
    assert_eq!(ask(&policy, "api.x.com", &hosts).outcome, Outcome::Allowed);
    assert_eq!(
        ask(&policy, "api.x.com:443", &hosts).outcome,
        Outcome::Allowed
    );
    let quic = ask(&policy, "udp://api.x.com:443", &hosts);
    assert_eq!(quic.outcome, Outcome::Denied);
    // Nothing is known of its connections without an address.
    let unknown = ask(&policy, "api.x.com", &[]);
    assert_eq!(unknown.outcome, Outcome::Unclear);
    assert_eq!(
        text(&unknown),
        "api.x.com: unclear
  name: allowed: rule `api.x.com` covers api.x.com (config.toml:7)
    no address is known for it, so its connections are not judged
"
    );
}

#[test]
fn a_name_that_points_inward_is_explained_with_the_near_rule_to_add() {
    let policy = policy(false, &["*.corp"]);
    let hosts = [("10.0.0.5", through("10.0.0.0/8"))];
    let explanation = ask(&policy, "http://wiki.corp", &hosts);
    assert_eq!(explanation.outcome, Outcome::Denied);
    assert_eq!(
        text(&explanation),
        "tcp://wiki.corp:80: denied
  name: allowed: rule `*.corp` covers wiki.corp (config.toml:7)
  10.0.0.5 is in 10.0.0.0/8 (private use, RFC 1918)
    the host reaches it through 10.0.0.0/8
    names: wiki.corp
    tcp 80: denied: wiki.corp points inward: 10.0.0.5 is in 10.0.0.0/8 (private use, RFC 1918); \
         rule `*.corp` covers the name, but only rules of `near` open private addresses by a name
  to allow it: near = [\"tcp://wiki.corp:80\"]
"
    );
    let report = explanation.json(&|_| None);
    assert_eq!(report["fixes"], serde_json::json!([]));
    assert_eq!(report["near"], serde_json::json!(["tcp://wiki.corp:80"]));
    let answer = &report["hosts"][0]["answers"][0];
    assert_eq!(answer["near"], "tcp://wiki.corp:80");
    assert_eq!(answer.get("fix"), None);
}

#[test]
fn loopback_is_explained_with_what_opens_it() {
    let local = [("127.0.0.1", Route::Local)];
    let explanation = ask(&policy(true, &[]), "127.0.0.1:5432", &local);
    assert_eq!(explanation.outcome, Outcome::Denied);
    assert!(text(&explanation).contains("`host_ports` opens single ports of the host's loopback"));
    for internet in [false, true] {
        let explanation = ask(&policy(internet, &[]), "localhost:5432", &[]);
        assert_eq!(explanation.outcome, Outcome::Denied);
        assert!(text(&explanation).contains("`host_ports`"));
    }
    assert!("localhost:5432".parse::<Target>().unwrap().is_loopback());
    assert!("[::1]:5432".parse::<Target>().unwrap().is_loopback());
    assert!(!"10.0.0.1".parse::<Target>().unwrap().is_loopback());
}

#[test]
fn the_report_is_data_as_well() {
    let policy = policy(false, &["*.x.com:443"]);
    let hosts = [("93.184.215.14", Route::Default)];
    let explanation = ask(&policy, "tcp://api.x.com:443", &hosts);
    let report = explanation.json(&|index| Some(format!("config.toml:{}", index + 7)));
    let rule = serde_json::json!({
        "rule": "*.x.com:443", "index": 0, "origin": "config.toml:7",
    });
    assert_eq!(
        report,
        serde_json::json!({
            "target": "tcp://api.x.com:443",
            "outcome": "allowed",
            "name": {
                "allowed": true,
                "reason": "rule",
                "text": "rule `*.x.com:443` covers api.x.com",
                "rule": rule,
            },
            "hosts": [{
                "address": "93.184.215.14",
                "facts": {
                    "registry": "is a global address",
                    "route": "through its default route",
                    "own": false,
                    "names": ["api.x.com"],
                },
                "answers": [{
                    "protocol": "tcp",
                    "ports": "443",
                    "allowed": true,
                    "reason": "name",
                    "text": "rule `*.x.com:443` covers api.x.com, which is at 93.184.215.14",
                    "rule": rule,
                }],
            }],
            "fixes": [],
        })
    );
}
