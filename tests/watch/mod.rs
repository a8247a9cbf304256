//! `stockade watch` in windows of a real tmux, with real programs that wait for its keys; and
//! `stockade ps`, which counts them.
//!
//! Some of the screens stand in docs/live.md; `cargo xtask live --write` writes them anew.

mod agent;
mod page;
mod screen;
pub(crate) mod tmux;

use std::fs;

use stockade_world::{PATIENCE, Standard, eventually, test};

use crate::support::standard;
use tmux::Tmux;

const CURL: &str = "curl -sS --max-time 100";

/// A line that runs a script in a session that asks, and stays on the screen.
fn session(options: &str, script: &str) -> String {
    format!("stockade run --quiet --ask {options} -- bash -c '{script}'")
}

/// Waits until the question takes answers.
#[track_caller]
fn question(tmux: &Tmux<'_>, what: &str) -> String {
    tmux.expect_that("watch", what, |screen| {
        screen.contains(what) && screen.contains("o allow once")
    })
}

#[test]
fn curl_waits_for_a_key_and_goes_through_or_fails_as_usual() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let tmux = Tmux::start(world.laptop(), 80, 24);
        tmux.window("watch", "stockade watch");
        tmux.expect("watch", "no session is running");
        let device = format!("{CURL} http://192.168.10.21/; echo code $?");
        let other = "(: > /dev/tcp/192.168.10.21/7); echo code $?";
        let by_shell = "(: > /dev/tcp/192.168.10.21/80); echo code $?";
        let script = format!("{device}; {by_shell}; {other}; {other}; sleep 1000");
        tmux.window("work", &session("", &script));

        let screen = question(&tmux, "tcp://192.168.10.21:80, wanted by curl");
        assert!(
            screen.contains("allowing it opens: tcp://192.168.10.21:80"),
            "{screen}"
        );
        assert!(screen.contains("curl < bash"), "{screen}");
        assert!(!tmux.screen("work").contains("code"), "it waits");
        // Keys that mean something else answer nothing.
        for key in ["2", "1", "Tab", "Enter", "Escape", "x"] {
            tmux.press("watch", key);
        }
        question(&tmux, "tcp://192.168.10.21:80, wanted by curl");
        assert!(!tmux.screen("work").contains("code"), "it still waits");
        tmux.press("watch", "o");
        tmux.expect("work", "hello from device\ncode 0\n");

        // Once was once.
        question(&tmux, "tcp://192.168.10.21:80, wanted by bash");
        tmux.press("watch", "d");
        tmux.expect("watch", "answered: deny");
        let screen = tmux.expect("work", "code 1\n");
        assert!(screen.contains("No route to host"), "{screen}");

        // For the session: the second one is not asked about.
        question(&tmux, "tcp://192.168.10.21:7, wanted by bash");
        tmux.press("watch", "s");
        tmux.expect_that("work", "two more ends", |screen| {
            screen.matches("code 0\n").count() == 3
        });
        tmux.press("watch", "2");
        let screen = tmux.expect("watch", "192.168.10.21:80");
        assert!(screen.contains("1 denial"), "{screen}");
    });
}

#[test]
fn always_is_written_down_and_holds_without_anybody_who_watches() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let tmux = Tmux::start(laptop, 80, 24);
        tmux.window("watch", "stockade watch");
        let script = format!("{CURL} http://www.example.com/; echo code $?; sleep 1000");
        tmux.window("work", &session("--no-internet", &script));
        question(&tmux, "the name www.example.com");
        tmux.press("watch", "a");
        tmux.expect("work", "hello from web\ncode 0\n");
        tmux.expect("watch", "answered: always allow");
        let projects = laptop.home().join(".config/stockade/projects");
        let files = fs::read_dir(projects).expect("a directory").flatten();
        let texts: Vec<_> = files
            .map(|file| fs::read_to_string(file.path()).expect("a file"))
            .collect();
        assert!(
            texts.iter().any(|text| text.contains("www.example.com")),
            "{texts:?}"
        );
        tmux.press("watch", "q");
        let line = ["run", "--quiet", "--no-internet", "--", "bash", "-c"];
        let next = laptop
            .stockade(line)
            .arg(format!("{CURL} http://www.example.com/"));
        let next = next.run().expect("an end").expect_success();
        assert_eq!(next.stdout(), "hello from web\n");
    });
}

#[test]
fn who_quits_or_is_gone_answers_no_more() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let tmux = Tmux::start(world.laptop(), 80, 24);
        tmux.window("watch", "stockade watch");
        let attempt = format!("read; {CURL} http://192.168.10.21/; echo code $?");
        tmux.window("work", &session("", &format!("{attempt}; sleep 1000")));
        tmux.expect("watch", "1 session");
        tmux.press("watch", "q");
        tmux.expect_end("watch");
        tmux.press("work", "Enter");
        tmux.expect("work", "code 7\n");
    });
}

#[test]
fn questions_of_all_sessions_are_on_top_and_of_one_if_that_is_asked_for() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let other = laptop.home().join("other");
        fs::create_dir_all(&other).expect("a directory");
        let tmux = Tmux::start(laptop, 80, 24);
        tmux.window("watch", "stockade watch");
        let attempt = format!("{CURL} http://192.168.10.21/; echo code $?; sleep 1000");
        tmux.window("one", &session("", &attempt));
        let line = session("", &attempt).replace("stockade run", "stockade run -C ~/other");
        tmux.window("two", &line);
        let screen = tmux.expect("watch", "2 QUESTIONS");
        assert!(
            screen.contains("project: tcp://192.168.10.21:80"),
            "{screen}"
        );
        assert!(screen.contains("other: tcp://192.168.10.21:80"), "{screen}");
        // ps counts them.
        let ps = laptop.stockade(["ps", "--json"]).run().expect("an end");
        let ps: serde_json::Value =
            serde_json::from_str(&ps.expect_success().stdout()).expect("JSON");
        let sessions = ps.as_array().expect("a list");
        let counts: Vec<_> = sessions
            .iter()
            .map(|it| [&it["open"], &it["denied"], &it["questions"]])
            .collect();
        assert_eq!(
            format!("{counts:?}"),
            "[[Number(0), Number(0), Number(1)], [Number(0), Number(0), Number(1)]]"
        );

        let is_other = |it: &&serde_json::Value| {
            it["workspace"]
                .as_str()
                .is_some_and(|it| it.ends_with("/other"))
        };
        let id = sessions.iter().find(is_other).expect("a session")["session"]
            .as_str()
            .expect("a name");
        tmux.window("third", &format!("stockade watch {id}"));
        let screen = tmux.expect_that("third", "its question", |screen| {
            screen.contains("o allow once")
        });
        assert!(screen.contains("1 question, 1 session"), "{screen}");
        tmux.press("third", "o");
        tmux.expect("two", "code 0\n");
        // What was answered elsewhere is gone here.
        tmux.expect("watch", " QUESTION\n");
        assert!(!tmux.screen("one").contains("code"));
        question(&tmux, "project: tcp");
        tmux.press("watch", "d");
        tmux.expect("one", "code 7\n");
        // The end of a session is told.
        tmux.press("two", "C-c");
        tmux.expect("third", "0 sessions");
        let unknown = laptop
            .stockade(["ps"])
            .run()
            .expect("an end")
            .expect_success()
            .stdout();
        assert_eq!(unknown.lines().count(), 2, "{unknown}");
    });
}

#[test]
fn connections_are_counted_while_they_are_open() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let tmux = Tmux::start(laptop, 100, 24);
        tmux.window("watch", "stockade watch");
        let script = "exec 3<> /dev/tcp/192.168.10.21/7; echo hello >&3; head -n 1 <&3; sleep 1000 3>&-; true";
        tmux.window("work", &session("--allow 192.168.10.21", script));
        tmux.expect("work", "hello");
        let screen = tmux.expect("watch", "1 connection,");
        let row = screen
            .lines()
            .find(|line| line.contains("tcp://192.168.10.21:7"))
            .expect("a row");
        let words: Vec<_> = row.split_whitespace().collect();
        assert_eq!(words[2..5], ["bash", "6", "6"], "{row}");
        tmux.press("watch", "Enter");
        let screen = tmux.expect("watch", "allowed by");
        for detail in [
            "rule `192.168.10.21` (--allow)",
            "/bash [",
            "sent        6 bytes",
        ] {
            assert!(screen.contains(detail), "{detail}: {screen}");
        }
        let ps = laptop
            .stockade(["ps"])
            .run()
            .expect("an end")
            .expect_success()
            .stdout();
        let heads = [
            "SESSION",
            "SINCE (UTC)",
            "PID",
            "OPEN",
            "DENIED",
            "ASKS",
            "WORKSPACE",
            "COMMAND",
        ];
        assert!(heads.iter().all(|head| ps.contains(head)), "{ps}");
        let row: Vec<_> = ps
            .lines()
            .nth(1)
            .expect("a row")
            .split_whitespace()
            .collect();
        assert_eq!(row[4..7], ["1", "0", "0"], "{ps}");
        tmux.press("work", "C-c");
        tmux.expect("watch", "0 connections");
    });
}

/// Neither keeps anybody waiting.
#[test]
fn a_suspended_session_is_shown_and_counted_as_far_as_its_log_goes() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let session = laptop
            .stockade(["run", "--quiet", "--", "sleep", "1000"])
            .spawn()
            .expect("a session");
        let ps = || {
            laptop
                .stockade(["ps", "--json"])
                .run()
                .expect("an end")
                .expect_success()
                .stdout()
        };
        eventually("a session", PATIENCE, || ps().contains("\"open\": 0")).expect("a session");
        session
            .signal(rustix::process::Signal::STOP)
            .expect("a signal");
        let said = ps();
        assert!(
            said.contains("\"session\"") && !said.contains("\"open\""),
            "{said}"
        );
        let tmux = Tmux::start(laptop, 80, 24);
        tmux.window("watch", "stockade watch");
        tmux.expect("watch", "1 session");
        tmux.press("watch", "q");
        tmux.expect_end("watch");
        session
            .signal(rustix::process::Signal::KILL)
            .expect("a signal");
    });
}
