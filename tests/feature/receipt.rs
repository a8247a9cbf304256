//! What stockade says at the end about what it denied.

use stockade_world::{Output, Standard, World, test};

use crate::support::standard;

fn run(world: &World, options: &[&str], line: &str) -> Output {
    let command = world.laptop().stockade(["run"]).args(options);
    let output = command.args(["--", "sh", "-c", line]).run();
    output.expect("stockade ends")
}

/// Says nothing itself, and waits for nobody.
const CURL: &str = "curl -s -o /dev/null --max-time 20";

#[test]
fn every_denied_destination_is_named_with_its_count_and_the_rule_to_add() {
    test(&standard(), |world| {
        let line = format!(
            "{CURL} http://10.20.0.5/; {CURL} http://10.20.0.5/; {CURL} http://10.20.0.5/
            {CURL} 'http://[fd00:20::5]:8080/'; {CURL} 'http://[fd00:20::5]:8080/'
            {CURL} http://169.254.169.254/latest/
            echo done"
        );
        let output = run(world, &[], &line).expect_success();
        assert_eq!(output.stdout(), "done\n");
        // The last line names the session.
        let receipt = output.stderr();
        let (receipt, session) = receipt.split_once("`stockade log ").expect("a session");
        let session = session.strip_suffix("` shows the whole session\n");
        let log = world.laptop().stockade(["log", session.expect("the end")]);
        log.run().expect("its end").expect_success();
        // The most dangerous first.
        assert_eq!(
            receipt,
            "\
stockade: denied tcp://169.254.169.254:80 (curl): 169.254.169.254 is a cloud metadata service (AWS, Azure, Google Cloud and others)
stockade:   to allow it: --allow tcp://169.254.169.254:80 (WARNING: it hands out this machine's login at its cloud)
stockade: denied tcp://10.20.0.5:80 (curl, 3 times): 10.20.0.5 is in 10.0.0.0/8 (private use, RFC 1918)
stockade:   to allow it: --allow tcp://10.20.0.5:80
stockade: denied tcp://[fd00:20::5]:8080 (curl, 2 times): fd00:20::5 is in fc00::/7 (unique local, RFC 4193)
stockade:   to allow it: --allow tcp://[fd00:20::5]:8080
stockade: to allow any of it always:
stockade:   stockade allow tcp://10.20.0.5:80
stockade:   stockade allow 'tcp://[fd00:20::5]:8080'
stockade: "
        );
    });
}

#[test]
fn the_suggested_rule_is_all_that_it_takes() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for url in [
            "http://10.20.0.5/",
            "http://[fd00:20::5]/",
            "http://192.168.10.21/",
            "http://169.254.169.254/latest/meta-data/iam/security-credentials/role",
        ] {
            let line = format!("curl -sS -f --max-time 20 '{url}'");
            let denied = run(world, &[], &line).expect_code(7);
            let stderr = denied.stderr();
            let suggestion = stderr.split("to allow it: ").nth(1).expect("a suggestion");
            let options: Vec<_> = suggestion.split_whitespace().take(2).collect();
            assert_eq!(options[0], "--allow");
            let allowed = run(world, &options, &line).expect_success();
            assert_eq!(allowed.stderr(), "");
            assert!(!allowed.stdout().is_empty());
        }
    });
}

/// The address may be another one tomorrow, so the advice is the name.
#[test]
fn a_name_that_points_inward_is_to_be_allowed_as_a_near_one() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let line = "curl -sS -f --max-time 20 http://device.lan/";
        let closed = ["--internet=false", "--allow", "device.lan"];
        for options in [&closed[..], &[]] {
            let denied = run(world, options, line).expect_code(7).stderr();
            let advice = "stockade:   to allow it: --near tcp://device.lan:80\n";
            assert!(denied.contains(advice), "{denied}");
            assert!(
                denied.contains("always: stockade allow --near tcp://device.lan:80\n"),
                "{denied}"
            );
            let options = [options, &["--near", "tcp://device.lan:80"]].concat();
            let allowed = run(world, &options, line).expect_success();
            assert_eq!(allowed.stdout(), "hello from device\n");
            assert_eq!(allowed.stderr(), "");
        }
    });
}

#[test]
fn a_session_without_denials_ends_without_a_word() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let output = run(world, &[], "curl -s http://www.example.com/; true");
        assert_eq!(output.expect_success().stderr(), "");
    });
}

#[test]
fn what_fails_outside_too_is_no_denial() {
    test(&standard(), |world| {
        let line = format!("{CURL} http://93.184.216.34:81/; {CURL} http://45.76.1.1/; true");
        assert_eq!(run(world, &[], &line).expect_success().stderr(), "");
    });
}

#[test]
fn a_limit_that_killed_the_command_is_named_with_how_to_raise_it() {
    test(&standard(), |world| {
        let burn = "while :; do :; done";
        let hungry = "exec python3 -c 'import os; x = b\"x\" * (512 << 20); os.abort()'";
        let killed = "kill -KILL $$";
        for (limit, line, code, said) in [
            (
                "cpu_time=1s",
                burn,
                152,
                "processor time, 1s (--limit), is the cause; to raise it: --limit cpu_time=2s\n",
            ),
            (
                "memory=64M",
                killed,
                137,
                "memory, 64M (--limit), may be the cause; to raise it: --limit memory=128M\n",
            ),
        ] {
            let output = run(world, &["--limit", limit], line).expect_code(code);
            assert!(output.stderr().ends_with(said), "{output:?}");
            let quiet = run(world, &["--quiet", "--limit", limit], line).expect_code(code);
            assert_eq!(quiet.stderr(), "");
        }
        // A limit that was not set is no cause.
        assert_eq!(run(world, &[], killed).expect_code(137).stderr(), "");
        // A program that says itself what it lacks.
        let output = run(world, &["--limit", "memory=64M"], hungry).expect_code(1);
        assert!(!output.stderr().contains("may be the cause"), "{output:?}");
    });
}

#[test]
fn quiet_is_quiet() {
    test(&standard(), |world| {
        let line = format!("{CURL} http://10.20.0.5/; echo aside >&2");
        for option in ["--quiet", "-q"] {
            let output = run(world, &[option], &line).expect_success();
            assert_eq!(output.stderr(), "aside\n");
        }
    });
}

#[test]
fn a_flood_of_denials_makes_a_short_receipt() {
    test(&standard(), |world| {
        let script = "python3 -c '
import socket
for port in range(1000, 1300):
    socket.socket().connect_ex((\"10.20.0.5\", port))
'";
        let output = run(world, &[], script).expect_success();
        let stderr = output.stderr();
        assert!(stderr.lines().count() < 24, "{stderr}");
        let more = "stockade: denied 292 more attempts to other destinations\n";
        assert!(stderr.contains(more), "{stderr}");
    });
}
