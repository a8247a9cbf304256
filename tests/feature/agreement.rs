//! What `stockade explain` says and what happens are the same.

use std::collections::BTreeMap;

use stockade_world::{Standard, World, test};

use crate::attack::probe::{Answers, PROBE, Prober};
use crate::support::standard;

/// With and without the internet, rules of every kind.
const SETTINGS: [&[&str]; 8] = [
    &[],
    &["--internet=false"],
    &["--allow", "10.0.0.0/8"],
    &[
        "--allow",
        "tcp://10.20.0.5:80",
        "--allow",
        "udp://[fd00:20::5]:7",
    ],
    &["--internet=false", "--allow", "www.example.com"],
    &[
        "--internet=false",
        "--allow",
        "tcp://www.example.com:80",
        "--allow",
        "icmp://10.20.0.5",
    ],
    &[
        "--internet=false",
        "--allow",
        "*.example.org:7,80",
        "--allow",
        "fd00::/8",
    ],
    &[
        "--internet=false",
        "--allow",
        "near.corp.example",
        "--allow",
        "169.254.0.0/16",
        "--allow",
        "93.184.216.34",
    ],
];

const TARGETS: [&str; 19] = [
    "tcp://www.example.com:80",
    "tcp://www.example.com:7",
    "udp://www.example.com:7",
    "udp://www.example.com:443",
    "tcp://mirror.example.org:80",
    "tcp://near.corp.example:80",
    "udp://near.corp.example:7",
    "tcp://device.lan:80",
    "tcp://10.20.0.5:80",
    "tcp://10.20.0.5:7",
    "udp://10.20.0.5:7",
    "icmp://10.20.0.5",
    "tcp://[fd00:20::5]:80",
    "udp://[fd00:20::5]:7",
    "tcp://169.254.169.254:80",
    "tcp://[fd00:ec2::254]:80",
    "tcp://192.168.10.5:7",
    "tcp://151.101.1.69:80",
    "udp://192.168.10.21:7",
];

/// What the program says of each target, all asked at once.
fn explained(world: &World, settings: &[&str]) -> BTreeMap<String, bool> {
    let ask = |target: &str| {
        let explain = world.laptop().stockade(["explain", target]).args(settings);
        (target.to_owned(), explain.spawn().expect("explain"))
    };
    let running: Vec<_> = TARGETS.iter().map(|target| ask(target)).collect();
    let answer = |(target, running): (String, stockade_world::Running)| {
        let output = running.wait().expect("explain ends");
        let allowed = match output.code() {
            0 => true,
            1 => false,
            _ => panic!("{target}: {output:?}"),
        };
        (target, allowed)
    };
    running.into_iter().map(answer).collect()
}

#[test]
fn what_is_explained_is_what_happens() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        world.host("web").udp_echo(443).expect("listen");
        world.laptop().tcp_echo(7).expect("listen");
        // One address: of two, one may be allowed.
        world.dns().record("near.corp.example", [10, 20, 0, 5]);
        let (named, plain): (Vec<&str>, Vec<&str>) = TARGETS
            .into_iter()
            .partition(|target| target.contains(".example") || target.contains(".lan"));
        let mut allowed = 0;
        for settings in SETTINGS {
            let explained = explained(world, settings);
            let python = ["--", "/usr/bin/python3", "-IS", "-c", PROBE];
            let session = world.laptop().stockade(["run"]).args(settings).args(python);
            let mut prober = Prober::start(session);
            // Addresses before the names that lead to them.
            let happened = [&plain, &named].map(|targets| prober.ask(targets));
            prober.end();
            for (target, outcome) in happened.iter().flat_map(Answers::iter) {
                let answers = outcome == "answer";
                assert_eq!(
                    answers, explained[target],
                    "{settings:?} {target}: {outcome}"
                );
                allowed += usize::from(answers);
            }
        }
        // Neither all nor none.
        let all = SETTINGS.len() * TARGETS.len();
        assert!(
            (all / 6..all * 5 / 6).contains(&allowed),
            "{allowed} of {all}"
        );
    });
}
