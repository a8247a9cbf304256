//! The worked examples of the documentation, as they stand there.

use std::{fs, path::PathBuf};

use stockade_config::{Choice, Effective, LayerKind, Roots, Source, VariableName, merge, parse};
use stockade_policy::Rule;

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/examples")
        .join(name);
    fs::read_to_string(&path).expect("an example")
}

fn load(text: &str) -> Effective {
    let roots = Roots {
        home: "/home/ada".into(),
        workspace: None,
    };
    let layer = parse(
        LayerKind::User,
        &Source::file("/example.toml", text),
        &roots,
    );
    let effective = layer.and_then(|layer| merge(&[layer], &Choice::None));
    effective.unwrap_or_else(|problems| panic!("{problems}"))
}

fn rules(effective: &Effective) -> Vec<String> {
    effective
        .policy()
        .rules
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn the_lateral_jail_is_the_internet_and_the_devices() {
    let effective = load(&example("lateral-jail.toml"));
    assert!(effective.policy().internet);
    assert_eq!(
        rules(&effective),
        [
            "udp://172.23.1.3:5064-5065",
            "tcp://172.23.1.3:5064",
            "tcp://192.168.10.21:1025",
            "192.168.10.30"
        ]
    );
    let variables: Vec<&str> = effective.env.set.keys().map(VariableName::as_str).collect();
    assert_eq!(variables, ["EPICS_CA_ADDR_LIST", "EPICS_CA_AUTO_ADDR_LIST"]);
}

#[test]
fn the_host_allowlist_is_its_hosts_and_networks() {
    let text = example("host-allowlist.toml");
    let expected = [
        "api.anthropic.com:443",
        "github.com:22,443",
        "*.packages.example:443",
        "packages.example:443",
        "10.0.0.0/8",
        "*.corp.example",
    ];
    // A policy that has no rules for names yet takes the rest.
    let known = |rule: &str| rule.parse::<Rule>().is_ok();
    let unknown = |line: &&str| {
        expected
            .iter()
            .any(|rule| line.contains(rule) && !known(rule))
    };
    let text: Vec<&str> = text.lines().filter(|line| !unknown(line)).collect();
    let effective = load(&text.join("\n"));
    assert!(!effective.policy().internet);
    assert!(effective.network.log_denials.value);
    let expected: Vec<&str> = expected.into_iter().filter(|rule| known(rule)).collect();
    assert_eq!(rules(&effective), expected);
    assert!(expected.contains(&"10.0.0.0/8"));
}
