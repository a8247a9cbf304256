//! Logs that a session could have made to mislead whoever learns from them.

use std::fs;

use serde_json::{Value, json};
use stockade_world::{Laptop, Output, test};

use super::stockade;
use crate::support::standard;

const SESSION: &str = "1700000000-7-abcd";

/// Makes a log of these lines after its first one.
fn log(laptop: &Laptop, lines: &[Value]) {
    let directory = laptop.home().join(".local/state/stockade/sessions");
    fs::create_dir_all(&directory).expect("a directory");
    let workspace = laptop.workspace().display().to_string();
    let start = json!({ "v": 1, "event": "start", "session": SESSION, "mode": "jail",
        "workspace": workspace, "command": ["bash"] });
    let end = json!({ "v": 1, "event": "end", "code": 0 });
    let lines = [&[start], lines, &[end]].concat();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(directory.join(format!("{SESSION}.jsonl")), text).expect("a log");
}

fn open(to: &str, names: &[&str], reason: &str) -> Value {
    json!({ "event": "open", "time": "2026-01-02T03:04:05.678Z", "to": to, "names": names,
        "reason": reason, "process": { "exe": "/usr/bin/curl" } })
}

fn name(name: &str, addresses: &[&str]) -> Value {
    json!({ "event": "name", "time": "2026-01-02T03:04:05.678Z", "name": name, "type": "A",
        "addresses": addresses })
}

fn suggest(laptop: &Laptop, arguments: &[&str]) -> Output {
    stockade(laptop, &[&["suggest"], arguments].concat())
}

#[test]
fn a_session_that_attacked_or_left_something_is_no_example_unless_the_user_says_so() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let deny = |kind: &str, reason: &str, what: &str| json!({ "event": "deny", "kind": kind, "reason": reason, "what": what, "count": 1 });
        let scan: Vec<Value> = (0..16)
            .map(|n| {
                deny(
                    "flow",
                    "special-address",
                    &format!("tcp://192.168.10.{n}:80"),
                )
            })
            .collect();
        let closed = scan.iter().cloned().map(|mut line| {
            line["reason"] = json!("internet-off");
            line
        });
        let closed: Vec<Value> = closed.collect();
        let cases = [
            (
                vec![deny("flow", "metadata-service", "tcp://169.254.169.254:80")],
                "metadata service",
            ),
            (
                vec![deny("flow", "own-address", "tcp://192.168.10.1:22")],
                "this machine itself",
            ),
            (
                vec![deny("claim", "other-name", "evil.example at x")],
                "a name that it may not",
            ),
            (
                vec![json!({ "event": "found", "text": ".envrc is new" })],
                "it left .envrc is new",
            ),
            (
                vec![json!({ "event": "lost", "count": 3 })],
                "events are missing",
            ),
            (
                vec![json!({ "event": "part", "removed": 9 })],
                "lines were removed",
            ),
            (scan.clone(), "it tried 16 addresses"),
            (closed, "it tried 16 addresses"),
        ];
        let good = open("tcp://93.184.216.34:80", &["www.example.com"], "internet");
        for (mut lines, why) in cases {
            lines.push(good.clone());
            log(laptop, &lines);
            for write in [&[][..], &["--write"]] {
                let refused = suggest(laptop, write).expect_code(125).stderr();
                assert!(
                    refused.contains(why) && refused.contains("--even-so"),
                    "{refused}"
                );
            }
            let even_so = suggest(laptop, &["--even-so"]).expect_success();
            assert!(
                even_so.stdout().contains("tcp://www.example.com:80"),
                "{even_so:?}"
            );
            assert!(even_so.stderr().contains("WARNING: session"), "{even_so:?}");
        }
        assert!(!laptop.home().join(".config/stockade/projects").exists());
        // Positive control: mistakes are no attack.
        log(laptop, &[&scan[..15], &[good]].concat());
        suggest(laptop, &[]).expect_success();
    });
}

#[test]
fn odd_names_and_programs_break_no_file_and_open_nothing() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let mut hostile = open("tcp://93.184.216.34:80", &["www.example.com"], "internet");
        hostile["process"]["exe"] = json!("/tmp/x\"]\ninternet = true\n# \u{1b}[2J\u{202e}");
        hostile["time"] = json!("2026\n[network]\ninternet = true");
        let wide = [
            "*.com",
            "*",
            "a\"b.example",
            "x\n.example",
            "0.0.0.0/0",
            "\u{202e}.example",
        ];
        let mut named = open("tcp://93.184.216.34:443", &wide, "internet");
        named["names"] = json!(wide);
        log(laptop, &[hostile, named]);
        let output = suggest(laptop, &["--write"]).expect_success();
        let text = super::project_file(laptop);
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        let show = stockade(laptop, &["config", "show", "--json"])
            .expect_success()
            .stdout();
        let show: Value = serde_json::from_str(&show).expect("JSON");
        let all = show.to_string();
        assert!(all.contains("tcp://www.example.com:80"), "{output:?} {all}");
        assert!(all.contains("tcp://93.184.216.34:443"), "{all}");
        for rule in ["*.com", "0.0.0.0/0", "\"a\\\"b"] {
            assert!(!text.contains(rule), "{rule}: {text}");
        }
        let denied = stockade(laptop, &["explain", "tcp://151.101.1.69:80"]);
        assert!(denied.stdout().contains("denied"), "{denied:?}");
        denied.expect_code(1);
    });
}

/// An address that the gate lent to a name of the proxy's is no rule, and a near name none for others.
#[test]
fn what_went_through_a_proxy_becomes_a_name_and_what_a_near_name_led_to_an_address() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let near = ["device.lan", "evil.example"];
        log(
            laptop,
            &[
                open("tcp://198.18.0.7:443", &["a.example"], "internet"),
                open("tcp://198.18.0.8:443", &["b.example"], "name"),
                open("tcp://192.168.10.21:80", &near, "name"),
                open("udp://192.168.10.21:3702", &[], "discovery"),
            ],
        );
        let said = suggest(laptop, &["--json"]).expect_success().stdout();
        let said: Value = serde_json::from_str(&said).expect("JSON");
        let rules = said["allow"].as_array().expect("rules").iter();
        let rules: Vec<_> = rules.filter_map(|it| it["rule"].as_str()).collect();
        assert_eq!(
            rules,
            [
                "tcp://a.example:443",
                "tcp://b.example:443",
                "tcp://192.168.10.21:80",
                "udp://192.168.10.21:3702",
            ]
        );
    });
}

/// Also where a rule for the address would have let the same connections pass.
#[test]
fn every_line_has_the_evidence_of_what_it_is_for() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        log(
            laptop,
            &[
                open("tcp://93.184.216.34:80", &[], "internet"),
                name("www.example.com", &["93.184.216.34"]),
                open("tcp://93.184.216.34:80", &["www.example.com"], "internet"),
                open("tcp://127.0.0.1:5432", &[], "host-port"),
            ],
        );
        let said = suggest(laptop, &[]).expect_success().stdout();
        let seen = |count: &str| format!("# curl: {count}, last 2026-01-02 03:04");
        let (one, two) = (seen("1 connection"), seen("2 connections"));
        let expected = format!(
            "[network]\ninternet = false\nallow = [\n    {one}\n    \"tcp://www.example.com:80\",\n    \
             {two}\n    \"tcp://93.184.216.34:80\",\n]\nhost_ports = [\n    {one}\n    5432,\n]\n"
        );
        assert_eq!(said, expected);
    });
}

/// Rules stand in three places.
#[test]
fn a_rule_that_nothing_used_is_listed_wherever_it_stands() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let config = laptop.home().join(".config/stockade/config.toml");
        fs::create_dir_all(config.parent().expect("a directory")).expect("a directory");
        let in_force = "[network]\ninternet = false\nnear = [\"wiki.example.com\", \"device.lan:80\"]\n\
            host_ports = [5432, 6379]\n\
            [devices]\npmac = \"tcp://172.23.1.7:1025\"\nscope = \"tcp://172.23.1.8:5025\"\n";
        fs::write(&config, in_force).expect("a file");
        log(
            laptop,
            &[
                open("tcp://192.168.10.21:80", &["device.lan"], "name"),
                open("tcp://172.23.1.8:5025", &["scope"], "rule"),
                open("tcp://127.0.0.1:5432", &[], "host-port"),
                open("tcp://127.0.0.1:8080", &[], "host-port"),
            ],
        );
        let diff = suggest(laptop, &["--diff"]).expect_code(1).stdout();
        let lines: Vec<_> = diff
            .lines()
            .map(|line| line.split("  #").next().unwrap_or(line))
            .collect();
        assert_eq!(
            lines,
            [
                "- near = \"wiki.example.com\"",
                "  near = \"device.lan:80\"",
                "- pmac = \"tcp://172.23.1.7:1025\"",
                "  scope = \"tcp://172.23.1.8:5025\"",
                "+ \"tcp://192.168.10.21:80\"",
                "  host_ports = 5432",
                "- host_ports = 6379",
                "+ host_ports = 8080",
            ],
            "{diff}"
        );
        let json = suggest(laptop, &["--diff", "--json"])
            .expect_code(1)
            .stdout();
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let ports = json!({ "unused": [6379], "used": [5432], "new": [8080] });
        assert_eq!(json["host_ports"], ports, "{json}");
    });
}

#[test]
fn what_no_rule_can_say_fails_and_too_much_is_refused() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for line in [
            open("tcp://not-an-address:80", &[], "internet"),
            open("udp://255.255.255.255:9", &[], "internet"),
            open("tcp://127.0.0.1:9", &[], "rule"),
            name("odd\\255.example", &["93.184.216.34"]),
        ] {
            let good = open("tcp://93.184.216.34:80", &[], "internet");
            log(laptop, &[good, line.clone()]);
            let failed = suggest(laptop, &["--write"]).expect_code(1);
            assert!(
                failed.stderr().contains("no rules admit all"),
                "{line} {failed:?}"
            );
            assert_eq!(failed.stdout(), "");
        }
        let hosts = |count: usize| -> Vec<Value> {
            let to = |n: usize| format!("tcp://93.1.{}.{}:80", n / 256, n % 256);
            (0..count).map(|n| open(&to(n), &[], "internet")).collect()
        };
        for (count, why) in [(300, "nobody reviews so many"), (3000, "are no policy")] {
            log(laptop, &hosts(count));
            let refused = suggest(laptop, &["--write"]).expect_code(125).stderr();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(!laptop.home().join(".config/stockade/projects").exists());
        // Positive control.
        log(laptop, &hosts(30));
        suggest(laptop, &["--write"]).expect_success();
        let elsewhere = laptop.home().join("elsewhere");
        fs::create_dir(&elsewhere).expect("a directory");
        let elsewhere = elsewhere.display().to_string();
        let other = stockade(laptop, &["-C", &elsewhere, "suggest", "--write", SESSION]);
        let refused = other.expect_code(125).stderr();
        assert!(refused.contains("another workspace"), "{refused}");
    });
}
