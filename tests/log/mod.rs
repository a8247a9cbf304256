//! The audit log, and the commands that show it.
//!
//! * here: what is in it; `order`: in which order;
//! * `disk`: what becomes of it where it cannot be written;
//! * `who`: the programs in it;
//! * `floods`: of more than can be written;
//! * `commands`: `stockade log`, `stockade ps`.

mod commands;
pub(crate) mod disk;
mod floods;
mod order;
mod who;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::Value;
use stockade_world::{Laptop, PATIENCE, Signal, Standard, eventually, test};

use crate::support::standard;

/// Where the logs are.
pub(crate) fn logs(laptop: &Laptop) -> PathBuf {
    laptop.home().join(".local/state/stockade/sessions")
}

/// The lines of the latest session's log.
pub(crate) fn lines(laptop: &Laptop) -> Vec<Value> {
    lines_in(&logs(laptop))
}

pub(crate) fn lines_in(directory: &Path) -> Vec<Value> {
    let text = text_in(directory);
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

/// What is read while a session writes may end within a line.
pub(crate) fn text_in(directory: &Path) -> String {
    let mut files: Vec<_> = fs::read_dir(directory)
        .expect("logs")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let latest = files.last().expect("a log");
    let mode = fs::metadata(latest).expect("a file").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    fs::read_to_string(latest).expect("a log")
}

pub(crate) fn of<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

#[test]
fn what_happened_is_in_the_log_with_its_rule_and_its_program() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        // Who has an allowed connection is looked up while it stands. So the first one stands
        // for a while.
        let script = "echo a line that comes back |
                curl -s -o /dev/null telnet://www.example.com:7 --max-time 2
            curl -s --max-time 20 http://10.20.0.5/
            curl -s --max-time 20 http://10.20.0.5/
            curl -s --max-time 20 http://nope.example/
            exit 3";
        let options = ["run", "--internet=false", "--allow", "www.example.com"];
        world
            .laptop()
            .stockade(options)
            .args(["--", "sh", "-c", script])
            .run()
            .expect("run")
            .expect_code(3);
        let lines = lines(world.laptop());
        let described = include_str!("../../docs/log.md");
        for line in &lines {
            let fields = line.as_object().expect("an object").keys();
            for field in fields.map(String::as_str).chain(line["event"].as_str()) {
                assert!(described.contains(&format!("`{field}`")), "{field}");
            }
            assert_eq!(line["v"], 1);
            assert!(
                line["time"]
                    .as_str()
                    .is_some_and(|time| time.ends_with('Z'))
            );
        }
        let [start] = of(&lines, "start")[..] else {
            panic!("{lines:?}");
        };
        assert_eq!(start["internet"], false);
        assert_eq!(start["policy"].as_str().map(str::len), Some(64));
        assert_eq!(start["layers"]["system call filter"], "active");
        // What is known only when the sandbox stands.
        let late = &start["layers"]["changes to ~/.local/share stay inside"];
        assert!(late.is_string(), "{start}");
        let version = start["bubblewrap"].as_str().expect("a version");
        assert_eq!(version.split('.').count(), 3, "{version}");

        let [open] = of(&lines, "open")[..] else {
            panic!("{lines:?}");
        };
        assert_eq!(open["names"][0], "www.example.com");
        assert_eq!(open["by"], "rule `www.example.com`");
        assert_eq!(open["at"], "--allow");
        assert_eq!(open["process"]["exe"], "/usr/bin/curl");
        assert_eq!(open["process"]["argv"][4], "telnet://www.example.com:7");
        assert_eq!(open["process"]["argv"][3], "/dev/null");
        assert_eq!(open["process"]["parents"], serde_json::json!(["sh"]));
        let [close] = of(&lines, "close")[..] else {
            panic!("{lines:?}");
        };
        for field in ["flow", "to", "names", "by", "at"] {
            assert_eq!(close[field], open[field], "{field}");
        }
        assert!(close["sent"].as_u64() > Some(20) && close["received"].as_u64() > Some(10));

        let denied = of(&lines, "deny");
        let flow = |line: &&&Value| line["what"] == "tcp://10.20.0.5:80";
        let counted: u64 = denied
            .iter()
            .filter(flow)
            .filter_map(|line| line["count"].as_u64())
            .sum();
        assert_eq!(counted, 2);
        let first = denied.iter().find(flow).expect("a denial");
        assert_eq!(first["process"]["exe"], "/usr/bin/curl");
        assert_eq!(first["fix"], "tcp://10.20.0.5:80");
        assert_eq!(first["at"], "--internet");
        assert!(denied.iter().any(|line| line["what"] == "nope.example"));
        assert_eq!(of(&lines, "end")[0]["code"], 3);

        let shown = world
            .laptop()
            .stockade(["log", "--denied"])
            .run()
            .expect("run")
            .expect_success();
        assert!(shown.stdout().contains("tcp://10.20.0.5:80"), "{shown:?}");
        assert!(!shown.stdout().contains("  open  "), "{shown:?}");
    });
}

#[test]
fn the_log_is_there_after_a_violent_death_and_nowhere_inside() {
    test(&standard(), |world| {
        let script = "ls -A ~/.local/state; curl -s --max-time 20 http://10.20.0.5/; echo tried
            exec sleep 60";
        let session = world
            .laptop()
            .stockade(["run", "--", "sh", "-c", script])
            .spawn()
            .expect("a session");
        let before = session.expect("tried").expect("a session");
        assert_eq!(before, "", "the state directory is not empty inside");
        let listed = world.laptop().stockade(["ps"]).run().expect("run");
        assert!(listed.stdout().contains("sh -c ls -A"), "{listed:?}");
        eventually("the denial is logged", PATIENCE, || {
            of(&lines(world.laptop()), "deny").len() == 1
        })
        .expect("a line");
        session.signal(Signal::KILL).expect("kill");
        session.wait().expect("an end");
        let lines = lines(world.laptop());
        assert_eq!(of(&lines, "deny").len(), 1);
        assert!(of(&lines, "end").is_empty());
        let listed = world.laptop().stockade(["ps"]).run().expect("run");
        assert!(listed.stdout().contains("no session"), "{listed:?}");
    });
}

#[test]
fn denials_can_be_left_out_and_only_they() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let script = "curl -s -o /dev/null http://www.example.com/
            curl -s --max-time 20 http://10.20.0.5/; true";
        let output = world
            .laptop()
            .stockade(["run", "--log-denials=false", "--", "sh", "-c", script])
            .run()
            .expect("run")
            .expect_success();
        assert_eq!(output.stderr(), "");
        let lines = lines(world.laptop());
        assert!(of(&lines, "deny").is_empty());
        assert_eq!(of(&lines, "open").len(), 1);
        assert_eq!(of(&lines, "end")[0]["denied"], 1);
    });
}

#[test]
fn what_a_program_made_up_does_nothing_to_the_terminal_that_shows_it() {
    test(&standard(), |world| {
        let script = "import socket, sys
try:
    socket.create_connection(('10.20.0.5', 80), 2)
except OSError:
    pass";
        let bell = "\u{1b}]0;owned\u{7}\u{202e}\u{9b}2J\n";
        world
            .laptop()
            .stockade(["run", "--", "python3", "-I", "-c", script, bell])
            .run()
            .expect("run")
            .expect_success();
        for words in [&["log"][..], &["log", "--json"], &["log", "--list"]] {
            let shown = world.laptop().stockade(words).run().expect("run");
            assert!(shown.stdout().contains("python3"), "{shown:?}");
            let harmful = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            assert!(!shown.stdout().contains(harmful), "{shown:?}");
        }
        // For programs it is what it was.
        let lines = lines(world.laptop());
        let deny = of(&lines, "deny")[0];
        let words = deny["process"]["argv"].as_array().expect("words");
        assert_eq!(words.last().expect("a word"), bell);
    });
}

#[test]
fn a_session_that_cannot_be_logged_says_so() {
    test(&standard(), |world| {
        let state = world.laptop().home().join(".local/state/stockade");
        fs::create_dir_all(&state).expect("a directory");
        fs::write(state.join("sessions"), "").expect("a file in the way");
        let output = world
            .laptop()
            .stockade(["run", "--", "echo", "ran"])
            .run()
            .expect("run")
            .expect_success();
        assert_eq!(output.stdout(), "ran\n");
        assert!(output.stderr().contains("not logged"), "{output:?}");
    });
}

/// Begins like a request, which the gate holds, and waits until all of it has come back.
const HESITATES: &str = r#"
import socket
peer = socket.create_connection(("www.example.com", 7), 30)
peer.sendall(b"GET /" + b"A" * 60000)
left = 60005
while left:
    left -= len(peer.recv(left))
"#;

#[test]
fn what_leaves_while_the_gate_holds_it_is_counted() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let options = ["run", "--no-internet", "--allow", "www.example.com", "--"];
        let session = world.laptop().stockade(options);
        let session = session.args(["/usr/bin/python3", "-IS", "-c", HESITATES]);
        session.run().expect("run").expect_success();
        let lines = lines(world.laptop());
        let [close] = of(&lines, "close")[..] else {
            panic!("{lines:?}");
        };
        assert_eq!([&close["sent"], &close["received"]], [60_005, 60_005]);
    });
}
