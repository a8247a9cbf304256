//! Answers over the control socket.

use std::time::{Duration, Instant};

use stockade_world::{Standard, test};

use super::{Watcher, go, logged, project_file, session};
use crate::support::standard;

const CURL: &str = "curl -sS --max-time 100";

#[test]
fn a_connection_waits_for_the_answer_and_goes_through_or_fails_as_a_denied_one_does() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let device = format!("{CURL} http://192.168.10.21/; echo code $?");
        let bash = "exec 3<>/dev/tcp/192.168.10.21/80; echo code $?";
        let script = format!("{device}; {device}; ({bash}); echo done");
        let mut session = session(laptop, &["--ask"], &script);
        let mut watcher = Watcher::attends(laptop);
        go(&mut session);
        let question = watcher.question();
        assert_eq!(question["kind"], "flow", "{question}");
        assert_eq!(question["target"], "tcp://192.168.10.21:80");
        assert_eq!(question["rule"], "tcp://192.168.10.21:80");
        assert_eq!(question["address"], "192.168.10.21");
        let program = question["process"]["exe"].as_str().unwrap_or_default();
        assert!(program.ends_with("/curl"), "{question}");
        assert_eq!(question["process"]["parents"][0], "bash", "{question}");
        assert_eq!(session.stdout_so_far(), "", "it waits");
        watcher.says(&question, "once");
        session
            .expect("hello from device\ncode 0\n")
            .expect("a page");
        // Once is once.
        let again = watcher.question();
        assert_eq!(again["target"], question["target"]);
        assert_ne!(again["id"], question["id"]);
        watcher.says(&again, "deny");
        session.expect("code 7\n").expect("a denial");
        // What was refused is not asked again.
        session.expect("done\n").expect("a denial");
        let output = session.wait().expect("an end").expect_success();
        assert!(output.stderr().contains("No route to host"), "{output:?}");
        assert!(
            output.stderr().contains("--allow tcp://192.168.10.21:80"),
            "{output:?}"
        );
        assert_eq!(watcher.count(), 2);

        let asked = logged(laptop, "ask");
        assert_eq!(asked.len(), 2, "{asked:?}");
        assert_eq!(asked[0]["fix"], "tcp://192.168.10.21:80");
        let answers: Vec<_> = logged(laptop, "answer")
            .iter()
            .map(|it| {
                (
                    it["answer"].clone(),
                    it["from"].clone(),
                    it["question"].clone(),
                )
            })
            .collect();
        let text = format!("{answers:?}");
        assert_eq!(answers.len(), 2, "{text}");
        assert!(
            text.contains("once") && text.contains("deny") && text.contains("watch"),
            "{text}"
        );
        let denied = logged(laptop, "deny");
        let count: u64 = denied.iter().filter_map(|it| it["count"].as_u64()).sum();
        assert_eq!(count, 2, "{denied:?}");
    });
}

#[test]
fn where_nobody_attends_it_is_denied_at_once() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let script = format!("{CURL} http://192.168.10.21/; echo code $?");
        // Whoever only looks is nobody to ask.
        for ask in [true, false] {
            let options: &[&str] = if ask { &["--ask"] } else { &[] };
            let mut session = session(laptop, options, &script);
            let watcher = match ask {
                true => Watcher::only_looks(laptop),
                false => Watcher::attends(laptop),
            };
            let begin = Instant::now();
            go(&mut session);
            session.expect("code 7\n").expect("a denial");
            assert!(begin.elapsed() < Duration::from_secs(10), "{ask}");
            session.wait().expect("an end").expect_success();
            assert_eq!(watcher.count(), 0, "{ask}");
            assert!(logged(laptop, "ask").is_empty(), "{ask}");
        }
    });
}

#[test]
fn what_waits_is_denied_when_nobody_is_left_to_answer() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let script = format!("{CURL} http://192.168.10.21/; echo code $?");
        let mut session = session(laptop, &["--ask"], &script);
        let watcher = Watcher::attends(laptop);
        go(&mut session);
        watcher.question();
        assert_eq!(session.stdout_so_far(), "", "it waits");
        let begin = Instant::now();
        drop(watcher);
        session.expect("code 7\n").expect("a denial");
        assert!(begin.elapsed() < Duration::from_secs(20));
        session.wait().expect("an end").expect_success();
        let answers = logged(laptop, "answer");
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0]["answer"], "deny", "{answers:?}");
        assert_eq!(answers[0]["from"], "unattended", "{answers:?}");
    });
}

#[test]
fn a_name_waits_with_the_internet_closed_and_a_rule_for_the_session_covers_its_connections() {
    test(&standard(), |world| {
        let servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let page = format!("{CURL} -k https://www.example.com/; echo code $?");
        let foreign = format!("{CURL} http://xn--80ak6aa92e.com/; echo code $?");
        let script =
            format!("{page}; {page}; {foreign}; {CURL} http://mirror.example.org/; echo code $?");
        let mut session = session(laptop, &["--ask", "--no-internet"], &script);
        let mut watcher = Watcher::attends(laptop);
        go(&mut session);
        let question = watcher.question();
        assert_eq!(question["kind"], "name", "{question}");
        assert_eq!(question["target"], "www.example.com");
        let program = question["process"]["exe"].as_str().unwrap_or_default();
        assert!(program.ends_with("/curl"), "{question}");
        // The name was not asked for outside.
        assert_eq!(session.stdout_so_far(), "");
        watcher.says(&question, "session");
        for _ in 0..2 {
            session.expect("hello from web\ncode 0\n").expect("a page");
        }
        // Another name is another question, which is refused: there is no such name. Letters of other
        // scripts are shown as they are in DNS, and beside that as they look.
        let other = watcher.question();
        assert_eq!(other["target"], "xn--80ak6aa92e.com", "{other}");
        assert_eq!(other["rule"], "xn--80ak6aa92e.com", "{other}");
        assert_eq!(other["unicode"][0], "аррӏе.com", "{other}");
        watcher.says(&other, "deny");
        session.expect("code 6\n").expect("no such name");
        let other = watcher.question();
        assert_eq!(other["target"], "mirror.example.org");
        assert_eq!(other["unicode"], serde_json::json!([]), "{other}");
        watcher.says(&other, "deny");
        session.expect("code 6\n").expect("no such name");
        session.wait().expect("an end").expect_success();
        assert_eq!(watcher.count(), 3);
        assert!(servers.mirror.requests().all().is_empty());
        let opened = logged(laptop, "open");
        assert!(
            opened.iter().all(|it| it["at"] == "your answer"),
            "{opened:?}"
        );
        assert!(project_file(laptop).is_none());
    });
}

#[test]
fn what_is_allowed_once_by_name_is_that_connection_and_what_it_shows() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        // The second one shows another name at the same address.
        let page = format!("{CURL} -k https://www.example.com/; echo code $?");
        let other = format!(
            "{CURL} -k --connect-to ::www.example.com: https://other.example/; echo code $?"
        );
        let script = format!("{page}; {other}");
        let mut session = session(laptop, &["--ask", "--no-internet"], &script);
        let mut watcher = Watcher::attends(laptop);
        go(&mut session);
        let name = watcher.question();
        assert_eq!(name["rule"], "www.example.com", "{name}");
        watcher.says(&name, "once");
        let flow = watcher.question();
        assert_eq!(flow["kind"], "flow", "{flow}");
        assert_eq!(flow["rule"], "tcp://www.example.com:443", "{flow}");
        assert_eq!(flow["names"][0], "www.example.com");
        watcher.says(&flow, "once");
        session.expect("hello from web\ncode 0\n").expect("a page");
        // The name was allowed a moment ago; its connection is asked about again.
        let again = watcher.question();
        assert_eq!(again["rule"], "tcp://www.example.com:443", "{again}");
        watcher.says(&again, "once");
        session
            .expect("code 35\n")
            .expect("the other name is refused");
        session.wait().expect("an end").expect_success();
    });
}

#[test]
fn two_flows_to_one_target_are_one_question_and_datagrams_and_pings_wait_as_well() {
    const ATTEMPT: &str = "import socket, sys
kind, port = (socket.SOCK_DGRAM, 7) if sys.argv[1] == 'udp' else (socket.SOCK_STREAM, 7)
s = socket.socket(socket.AF_INET, kind)
s.settimeout(100)
try:
    s.connect(('192.168.10.21', port))
    s.send(b'first')
    print(sys.argv[1], s.recv(9).decode(), flush=True)
except OSError as error:
    print(sys.argv[1], error.errno, flush=True)
";
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        std::fs::write(laptop.workspace().join("attempt.py"), ATTEMPT).expect("a file");
        let script = "
            python3 attempt.py tcp & python3 attempt.py tcp & wait
            python3 attempt.py udp; python3 attempt.py udp
            ping -c 1 -W 100 192.168.10.21 > out; echo ping $?";
        let mut session = session(laptop, &["--ask"], script);
        let mut watcher = Watcher::attends(laptop);
        go(&mut session);
        let tcp = watcher.question();
        stockade_world::eventually("both wait", stockade_world::PATIENCE, || {
            watcher.live()["questions"][0]["held"] == 2
        })
        .expect("two flows");
        watcher.says(&tcp, "once");
        for _ in 0..2 {
            session.expect("tcp first\n").expect("an echo");
        }
        let udp = watcher.question();
        assert_eq!(udp["rule"], "udp://192.168.10.21:7", "{udp}");
        watcher.says(&udp, "once");
        session.expect("udp first\n").expect("an echo");
        let udp = watcher.question();
        watcher.says(&udp, "deny");
        // As for any datagram that is denied.
        session.expect("udp 113\n").expect("a denial");
        let ping = watcher.question();
        assert_eq!(ping["rule"], "icmp://192.168.10.21", "{ping}");
        watcher.says(&ping, "session");
        session.expect("ping 0\n").expect("an answer");
        session.wait().expect("an end").expect_success();
        assert_eq!(watcher.count(), 4);
    });
}

#[test]
fn always_writes_the_file_for_this_project_and_holds_in_the_next_session() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let script = format!("{CURL} http://192.168.10.21/; {CURL} http://192.168.10.21/");
        let mut first = session(laptop, &["--ask"], &script);
        let mut watcher = Watcher::attends(laptop);
        go(&mut first);
        let question = watcher.question();
        watcher.says(&question, "always");
        for _ in 0..2 {
            first.expect("hello from device\n").expect("a page");
        }
        first.wait().expect("an end").expect_success();
        assert_eq!(watcher.count(), 1);
        let file = project_file(laptop).expect("a file");
        assert!(file.contains("tcp://192.168.10.21:80"), "{file}");
        let workspace = laptop.workspace();
        assert!(file.contains(&format!("{}", workspace.display())), "{file}");

        // Nobody is there to ask, and nobody has to be.
        let mut next = session(laptop, &[], &script);
        go(&mut next);
        next.expect("hello from device\n").expect("a page");
        next.wait().expect("an end").expect_success();
    });
}

#[test]
fn a_reload_decides_what_waits_and_the_end_of_the_session_releases_it() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let directory = laptop.home().join(".config/stockade");
        let configure = |text: &str| {
            std::fs::create_dir_all(&directory).expect("a directory");
            std::fs::write(directory.join("config.toml"), text).expect("a file");
        };
        configure("[network]\nunknown = \"ask\"\n");
        let script = format!(
            "{CURL} http://192.168.10.21/; echo code $?; {CURL} http://10.20.0.5/; echo code $?
             {CURL} http://10.20.0.5:7/ & sleep 1"
        );
        let mut session = session(laptop, &[], &script);
        let watcher = Watcher::attends(laptop);
        go(&mut session);
        assert_eq!(watcher.question()["target"], "tcp://192.168.10.21:80");
        let reload = || {
            let reload = laptop.stockade(["reload"]).run().expect("run");
            reload.expect_success();
        };
        configure("[network]\nunknown = \"ask\"\nallow = [\"192.168.10.21\"]\n");
        reload();
        session
            .expect("hello from device\ncode 0\n")
            .expect("a page");
        assert_eq!(watcher.question()["target"], "tcp://10.20.0.5:80");
        configure("[network]\nunknown = \"deny\"\nallow = [\"192.168.10.21\"]\n");
        reload();
        session.expect("code 7\n").expect("a denial");
        configure("[network]\nunknown = \"ask\"\n");
        reload();
        session.wait().expect("an end").expect_success();
        let from: Vec<_> = logged(laptop, "answer")
            .iter()
            .map(|it| format!("{} {}", it["answer"], it["from"]))
            .collect();
        assert_eq!(
            from[..2],
            ["\"session\" \"reload\"", "\"deny\" \"reload\""],
            "{from:?}"
        );
    });
}

/// As long as the user has: a minute. libc waits for a name as long.
#[test]
fn after_a_minute_the_answer_is_no() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let script = format!(
            "({CURL} http://192.168.10.21/; echo flow $?) &
             getent hosts www.example.com; echo name $?; wait"
        );
        let mut session = session(laptop, &["--ask", "--no-internet"], &script);
        let watcher = Watcher::attends(laptop);
        let begin = Instant::now();
        go(&mut session);
        let minute = Duration::from_secs(80);
        session.expect_within("\n", minute).expect("an answer");
        assert!(begin.elapsed() > Duration::from_secs(55));
        assert!(begin.elapsed() < Duration::from_secs(70));
        let output = session.wait().expect("an end").expect_success();
        assert!(output.stdout().contains("flow 7\n"), "{output:?}");
        assert!(output.stdout().contains("name 2\n"), "{output:?}");
        assert_eq!(watcher.count(), 2);
        let answers = logged(laptop, "answer");
        assert!(
            answers.iter().all(|it| it["from"] == "time-out"),
            "{answers:?}"
        );
        assert_eq!(answers.len(), 2);
    });
}

#[test]
fn a_session_shows_its_open_connections_with_what_they_moved() {
    const CLIENT: &str = "import socket, sys
s = socket.create_connection(('192.168.10.21', 7), 20)
s.sendall(b'first')
assert s.recv(9) == b'first'
try:
    socket.create_connection(('10.20.0.5', 80), 20)
except OSError:
    print('connected', flush=True)
sys.stdin.readline()
";
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        std::fs::write(laptop.workspace().join("client.py"), CLIENT).expect("a file");
        let script = "python3 client.py; read end";
        let options = ["--allow", "192.168.10.21"];
        let mut session = session(laptop, &options, script);
        let mut watcher = Watcher::only_looks(laptop);
        go(&mut session);
        session.expect("connected\n").expect("a connection");
        let mut live = watcher.live();
        stockade_world::eventually("it is shown", stockade_world::PATIENCE, || {
            live = watcher.live();
            live["flows"][0]["process"].is_object() && live["counts"]["denied"] == 1
        })
        .unwrap_or_else(|error| panic!("{error} {live}"));
        assert_eq!(live["mode"], "jail", "{live}");
        assert_eq!(live["internet"], true);
        assert_eq!(live["ask"], false);
        assert_eq!(live["command"][0], "bash");
        let workspace = laptop.workspace();
        assert_eq!(live["workspace"], workspace.to_string_lossy().as_ref());
        let flow = &live["flows"][0];
        assert_eq!(flow["to"], "tcp://192.168.10.21:7");
        assert_eq!(flow["rule"], "rule `192.168.10.21`");
        assert_eq!(flow["at"], "--allow");
        assert_eq!(
            (&flow["sent"], &flow["received"]),
            (&5.into(), &5.into()),
            "{flow}"
        );
        assert_eq!(flow["process"]["argv"][1], "client.py", "{flow}");
        assert_eq!(
            live["counts"],
            serde_json::json!({"open": 1, "opened": 1, "denied": 1})
        );
        // It is gone when it has ended.
        session.write("end\n").expect("a line");
        stockade_world::eventually("it is gone", stockade_world::PATIENCE, || {
            live = watcher.live();
            live["flows"].as_array().is_some_and(Vec::is_empty)
        })
        .unwrap_or_else(|error| panic!("{error} {live}"));
        session.write("end\n").expect("a line");
        session.wait().expect("an end").expect_success();
    });
}
