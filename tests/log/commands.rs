//! `stockade log` and `stockade ps`.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
};

use serde_json::Value;
use stockade_world::{Laptop, Running, Signal, Size, test};

use super::{lines, logs, of};
use crate::support::standard;

/// A session that is denied something for each line that it is given, and ends with its input.
const SCRIPT: &str = "echo ready; while read port; do
    curl -s --max-time 20 http://10.20.0.5:$port/; echo tried $port; done; exit 3";

fn session(laptop: &Laptop, options: &[&str]) -> Running {
    let command = laptop.stockade(["run", "--quiet"]).args(options);
    let session = command.args(["--", "sh", "-c", SCRIPT]).spawn();
    let session = session.expect("a session");
    session.expect("ready").expect("a session");
    session
}

fn run(laptop: &Laptop, words: &[&str]) -> String {
    let output = laptop.stockade(words).run().expect("run");
    output.expect_success().stdout()
}

fn json(laptop: &Laptop, words: &[&str]) -> Value {
    serde_json::from_str(&run(laptop, words)).expect("JSON")
}

#[test]
fn a_log_that_is_followed_shows_what_comes_and_ends_with_the_session() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let mut session = session(laptop, &[]);
        let follow = laptop.stockade(["log", "--follow"]).spawn().expect("log");
        let denials = laptop.stockade(["log", "-f", "--denied", "--json"]);
        let denials = denials.spawn().expect("log");
        let interrupted = laptop.stockade(["log", "-f"]).spawn().expect("log");
        follow.expect("start").expect("the start");
        session.write("81\n").expect("a denial");
        // While the session goes on.
        follow.expect("tcp://10.20.0.5:81").expect("the denial");
        denials
            .expect("\"what\":\"tcp://10.20.0.5:81\"}\n")
            .expect("the denial");
        interrupted.expect("start").expect("the start");
        interrupted.signal(Signal::INT).expect("Ctrl-C");
        let interrupted = interrupted.wait().expect("an end");
        assert_eq!(interrupted.stderr(), "");
        assert!(!follow.has_ended().expect("look"));

        session.close_stdin();
        session.wait().expect("an end").expect_code(3);
        let followed = follow.wait().expect("an end").expect_success();
        let last = followed.stdout().lines().last().map(str::to_owned);
        assert!(last.expect("a line").ends_with("exit code 3, 1 denial"));
        let denials = denials.wait().expect("an end").expect_success();
        assert_eq!(denials.stdout().lines().count(), 1, "{denials:?}");
    });
}

#[test]
fn the_latest_session_is_none_of_those_that_verify_makes() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let line = "curl -s --max-time 20 'http://10.20.0.5/?q=\"a\"'; true";
        run(laptop, &["run", "--quiet", "--", "sh", "-c", line]);
        // What it finds does not matter here.
        let verify = laptop.stockade(["verify"]).run().expect("verify ends");
        let shown = run(laptop, &["log"]);
        assert!(shown.contains("tcp://10.20.0.5:80"), "{verify:?}: {shown}");
        // Nothing is escaped that does nothing to a terminal.
        assert!(shown.contains("'http://10.20.0.5/?q=\"a\"'"), "{shown}");

        let listed = run(laptop, &["log", "--list"]);
        let last = listed.lines().last().expect("a line");
        assert!(last.ends_with("(stockade verify)"), "{listed}");
        let id = last.split_whitespace().next().expect("an identifier");
        assert!(run(laptop, &["log", id]).contains("verify-probe"));
    });
}

#[test]
fn sessions_are_found_from_a_directory_that_is_gone() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        run(laptop, &["run", "--", "true"]);
        let line = "mkdir gone && cd gone && rmdir ../gone
            stockade log && stockade log --list && stockade ps";
        let shell = laptop.command("sh").args(["-c", line]);
        let shown = shell.run().expect("an end").expect_success().stdout();
        assert!(shown.contains("exit code 0, 0 denials"), "{shown}");
        assert!(shown.contains("no session is running"), "{shown}");
    });
}

#[test]
fn a_log_that_is_followed_ends_when_the_session_is_killed_and_a_torn_line_is_told() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let mut session = session(laptop, &[]);
        session.write("81\n").expect("a denial");
        session.expect("tried 81").expect("a denial");
        let follow = laptop.stockade(["log", "--follow"]).spawn().expect("log");
        follow.expect("tcp://10.20.0.5:81").expect("the denial");
        session.signal(Signal::KILL).expect("kill");
        session.wait().expect("an end");
        let followed = follow.wait().expect("an end").expect_success();
        assert!(
            followed.stdout().contains("ended abnormally"),
            "{followed:?}"
        );

        let whole = lines(laptop).len();
        let file = fs::read_dir(logs(laptop)).expect("logs").flatten().next();
        let file = OpenOptions::new()
            .append(true)
            .open(file.expect("a log").path());
        let torn = b"{\"v\":1,\"event\":\"deny\",\"wh";
        file.expect("a log").write_all(torn).expect("half a line");
        let shown = run(laptop, &["log"]);
        assert!(shown.contains("25 bytes that are no line"), "{shown}");
        let shown = run(laptop, &["log", "--json"]);
        let shown: Vec<Value> = shown
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(shown.len(), whole + 1);
        assert_eq!(shown[whole]["event"], "unreadable");
    });
}

#[test]
fn sessions_are_listed_with_how_they_ended_and_what_was_denied() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        assert!(run(laptop, &["log", "--list"]).contains("there are no logs"));
        assert_eq!(run(laptop, &["ps"]), "no session is running\n");

        let mut ended = session(laptop, &[]);
        for _ in 0..2 {
            ended.write("81\n").expect("a denial");
            ended.expect("tried 81").expect("a denial");
        }
        ended.close_stdin();
        ended.wait().expect("an end").expect_code(3);
        let killed = session(laptop, &[]);
        killed.signal(Signal::KILL).expect("kill");
        killed.wait().expect("an end");
        // Without a jail there is no socket by which it could be found.
        let without = session(laptop, &["--mode", "none"]);
        let running = session(laptop, &[]);

        let list = json(laptop, &["log", "--list", "--json"]);
        let states: Vec<_> = list.as_array().expect("a list").iter().collect();
        let state = |n: usize| states[n]["state"].as_str().expect("a state");
        assert_eq!(
            [state(0), state(1), state(2), state(3)],
            ["ended", "lost", "running", "running"]
        );
        assert_eq!(
            (&list[0]["code"], &list[0]["denied"]),
            (&3.into(), &2.into())
        );
        assert_eq!(list[0]["workspace"], "/home/dev/project");
        let ps = json(laptop, &["ps", "--json"]);
        let ids = |all: &[Value]| -> Vec<Value> {
            all.iter().map(|one| one["session"].clone()).collect()
        };
        let all = ids(list.as_array().expect("a list"));
        assert_eq!(ids(ps.as_array().expect("a list")), all[2..]);
        assert_eq!(ps[1]["pid"], running.pid().as_raw_nonzero().get());

        for (words, column) in [(&["log", "--list"][..], "DENIED"), (&["ps"], "PID")] {
            let text = run(laptop, words);
            let mut rows = text.lines();
            let place = rows
                .next()
                .expect("a heading")
                .find(column)
                .expect("a column");
            assert!(text.lines().count() > 2);
            for row in rows {
                let (before, cell) = row.split_at(place);
                assert!(
                    before.ends_with("  ") && cell.starts_with(|c: char| c.is_ascii_digit()),
                    "{text}"
                );
            }
        }

        let first = all[0].as_str().expect("a name");
        // No more of it than tells it from the others; all of it, if another begins so, too.
        let is_unique = |length: &usize| {
            let begins = |id: &&Value| {
                id.as_str()
                    .is_some_and(|id| id.starts_with(&first[..*length]))
            };
            all.iter().filter(begins).count() == 1
        };
        let length = (1..first.len()).find(is_unique);
        let unique = &first[..length.unwrap_or(first.len())];
        assert!(run(laptop, &["log", unique]).contains("exit code 3, 2 denials"));
        let unknown = laptop.stockade(["log", "none-such"]).run().expect("run");
        let unknown = unknown.expect_code(125).stderr();
        assert!(
            unknown.contains("there is no log of a session none-such"),
            "{unknown}"
        );
        assert!(unknown.contains("fix: `stockade log --list`"), "{unknown}");
        let many = laptop.stockade(["log", &first[..3]]).run().expect("run");
        let many = many.expect_code(125).stderr();
        assert!(
            many.contains("4 sessions begin with") && many.contains(first),
            "{many}"
        );
        drop((without, running));
    });
}

#[test]
fn old_logs_make_way_but_none_of_a_session_that_runs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let oldest = session(laptop, &[]);
        let id = json(laptop, &["ps", "--json"])[0]["session"].clone();
        let id = id.as_str().expect("a name");
        for number in 0..150 {
            let name = format!("9000000000-{number}.jsonl");
            fs::write(logs(laptop).join(name), "{}\n").expect("a log");
        }
        laptop
            .stockade(["run", "--", "true"])
            .run()
            .expect("run")
            .expect_success();
        let left = fs::read_dir(logs(laptop)).expect("logs").count();
        // The latest of those from the future, the one that runs, and the new one.
        assert_eq!(left, 98 + 1 + 1);
        assert!(logs(laptop).join(format!("{id}.jsonl")).exists());
        drop(oldest);
    });
}

#[test]
fn colours_are_for_terminals_of_people_who_want_them() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let mut session = session(laptop, &[]);
        session.write("81\n").expect("a denial");
        session.close_stdin();
        session.wait().expect("an end");
        assert_eq!(of(&lines(laptop), "deny").len(), 1);
        let screen = |no_color: &str| {
            let command = laptop
                .stockade(["log"])
                .env("TERM", "xterm")
                .env("NO_COLOR", no_color);
            let terminal = command.terminal(Size::default()).expect("a terminal");
            terminal.expect("exit code").expect("the log");
            let screen = terminal.screen();
            terminal.wait().expect("an end");
            screen
        };
        assert!(screen("").contains("\u{1b}[31mdeny"));
        assert!(!screen("1").contains('\u{1b}'));
        assert!(!run(laptop, &["log"]).contains('\u{1b}'));
    });
}
