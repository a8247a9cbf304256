//! Questions are an attack on the human: few wait, what must never be asked is not, and the rest is
//! denied. Whoever is not asked about is served meanwhile.

use std::time::{Duration, Instant};

use stockade_world::{Standard, test};

use crate::{
    feature::ask::{Watcher, go, logged, session},
    support::standard,
};

/// Tries very many destinations at the same time, and tells when each attempt ends.
const FLOOD: &str = "import socket, threading, time
denied = threading.Semaphore(0)
def attempt(port):
    s = socket.socket()
    s.settimeout(200)
    try:
        s.connect(('192.168.10.21', port))
        print('open', port, flush=True)
    except OSError as error:
        print('errno', error.errno, port, flush=True)
        denied.release()
def name(name):
    try:
        socket.getaddrinfo(name, 80)
    except OSError as error:
        print('no name', flush=True)
for i in range(40):
    threading.Thread(target=attempt, args=(1000 + i,), daemon=True).start()
for _ in range(32):
    denied.acquire()
for i in range(40):
    threading.Thread(target=name, args=('a' * 50 + f'{i}.example',), daemon=True).start()
time.sleep(200)
";

#[test]
fn n16_at_most_8_questions_wait_and_the_others_are_served() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        std::fs::write(laptop.workspace().join("flood.py"), FLOOD).expect("a file");
        let options = [
            "--ask",
            "--no-internet",
            "--allow",
            "www.example.com",
            "--allow",
            "10.20.0.5",
        ];
        let script = "python3 flood.py < /dev/null &
            read served
            for i in 1 2 3; do
                curl -sS --max-time 10 http://www.example.com/ && curl -sS --max-time 10 http://10.20.0.5/
            done; echo served $?; wait";
        let mut session = session(laptop, &options, script);
        let mut watcher = Watcher::attends(laptop);
        go(&mut session);
        for _ in 0..32 {
            session.expect("errno 113").expect("denied at once");
        }
        for _ in 0..8 {
            watcher.question();
        }
        assert_eq!(
            watcher.live()["questions"].as_array().map(Vec::len),
            Some(8)
        );
        // Names, too, are denied at once then.
        for _ in 0..40 {
            session.expect("no name\n").expect("denied at once");
        }
        session.write("served\n").expect("a line");
        let begin = Instant::now();
        session.expect("served 0\n").expect("others are served");
        assert!(begin.elapsed() < Duration::from_secs(15));
        assert!(
            session
                .stdout_so_far()
                .contains("hello from web\nhello from intranet\n")
        );
        assert_eq!(watcher.count(), 8);

        // Five refusals, and nothing more is asked for a while: one notice says so.
        let questions = watcher.live()["questions"].clone();
        for question in questions.as_array().expect("a list").iter().take(5) {
            watcher.says(question, "deny");
        }
        for _ in 0..5 {
            session.expect("errno 113").expect("a denial");
        }
        drop(session);
        drop(watcher);
    });
}

/// Has as many questions for names wait as can: eight names, each asked for very often.
const NAMES: &str = "import socket, time
def query(name):
    labels = b''.join(bytes([len(label)]) + label for label in name.encode().split(b'.'))
    return b'\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0' + labels + b'\\0\\0\\x01\\0\\x01'
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for name in range(8):
    for again in range(70):
        s.sendto(query(f'n{name}.example.org'), ('192.0.2.53', 53))
        time.sleep(0.001)
print('asked', flush=True)
time.sleep(200)
";

#[test]
fn n16_names_that_wait_for_an_answer_keep_no_other_name_waiting() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        std::fs::write(laptop.workspace().join("names.py"), NAMES).expect("a file");
        let options = ["--ask", "--no-internet", "--allow", "www.example.com"];
        let script = "python3 names.py < /dev/null &
            read served; curl -sS --max-time 10 http://www.example.com/; echo served $?; wait";
        let mut session = session(laptop, &options, script);
        let mut watcher = Watcher::attends(laptop);
        go(&mut session);
        session.expect("asked\n").expect("all are asked for");
        // The control: they do wait, all that may.
        let live = watcher.live();
        let questions = live["questions"].as_array().expect("a list");
        let held: Vec<_> = questions.iter().map(|it| it["held"].as_u64()).collect();
        assert_eq!(held, [Some(64); 8]);
        session.write("served\n").expect("a line");
        session.expect("served 0\n").expect("others are served");
        assert!(session.stdout_so_far().contains("hello from web\n"));
    });
}

#[test]
fn n16_after_five_refusals_nothing_is_asked_and_that_is_said_once() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let script = "for port in 1 2 3 4 5 6 7 8 9 10; do
                curl -sS --max-time 20 http://192.168.10.21:$port/ 2> err; echo code $?
            done; echo done";
        let mut session = session(laptop, &["--ask"], script);
        let mut watcher = Watcher::attends(laptop);
        go(&mut session);
        for _ in 0..5 {
            let question = watcher.question();
            watcher.says(&question, "deny");
        }
        let begin = Instant::now();
        session
            .expect("done\n")
            .expect("the rest is denied at once");
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert!(
            watcher.live()["paused"]
                .as_u64()
                .is_some_and(|left| left > 30)
        );
        session.wait().expect("an end").expect_success();
        assert_eq!(watcher.count(), 5);
        assert_eq!(logged(laptop, "pause").len(), 1);
        let denied: u64 = logged(laptop, "deny")
            .iter()
            .filter_map(|it| it["count"].as_u64())
            .sum();
        assert_eq!(denied, 10);
    });
}

#[test]
fn n16_what_only_a_deliberate_rule_opens_is_never_asked() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let own =
            laptop.shell("ip -4 -o address show scope global | awk '{print $4}' | cut -d/ -f1");
        let own = own.run().expect("run").expect_success().stdout();
        let own = own.lines().next().expect("an address").to_owned();
        let script = format!(
            "for host in 169.254.169.254 [fd00:ec2::254] {own} 127.0.0.1:9 192.168.10.255 224.0.0.251; do
                curl -sS --max-time 5 http://$host/ 2> err; echo $host $?
            done; echo done; curl -sS --max-time 60 http://192.168.10.21/"
        );
        for options in [&["--ask"][..], &["--ask", "--no-internet"][..]] {
            let mut session = session(laptop, options, &script);
            let mut watcher = Watcher::attends(laptop);
            go(&mut session);
            session.expect("done\n").expect("denied at once");
            let said = session.stdout_so_far();
            assert!(
                said.lines()
                    .all(|line| line == "done" || line.ends_with(" 7")),
                "{said}"
            );
            // Positive control: another neighbour is asked about.
            let question = watcher.question();
            assert_eq!(question["target"], "tcp://192.168.10.21:80", "{question}");
            watcher.says(&question, "once");
            session.expect("hello from device").expect("a page");
            session.wait().expect("an end").expect_success();
            assert_eq!(watcher.count(), 1);
        }
    });
}

/// The question shows one address. Who owns the name chooses others, at once or later.
#[test]
fn n13_a_question_opens_the_private_address_that_it_shows_and_none_that_the_name_has_later() {
    const NAME: &str = "wiki.example.com";
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        world.dns().rotate(NAME, &[&[world.host("device").v4()]]);
        let script = "curl -sS --max-time 60 http://wiki.example.com/; read go;
            curl -sS --max-time 60 http://wiki.example.com/; echo code $?";
        for answer in ["once", "session"] {
            world.dns().rotate(NAME, &[&[world.host("device").v4()]]);
            let mut session = session(laptop, &["--ask"], script);
            let mut watcher = Watcher::attends(laptop);
            go(&mut session);
            let question = watcher.question();
            assert_eq!(question["names"][0], NAME, "{question}");
            assert_eq!(question["rule"], "tcp://192.168.10.21:80", "{question}");
            watcher.says(&question, answer);
            // Positive control.
            session.expect("hello from device").expect("a page");
            world.dns().rotate(NAME, &[&[world.host("intranet").v4()]]);
            go(&mut session);
            let question = watcher.question();
            assert_eq!(question["rule"], "tcp://10.20.0.5:80", "{question}");
            watcher.says(&question, "deny");
            session.expect("code 7\n").expect("a denial");
            session.wait().expect("an end").expect_success();
        }
    });
}

/// Answers a question, if it gets at the control socket whose name it reads.
const INTRUDER: &str = "import json, socket, sys
name = sys.stdin.readline().strip()
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(chr(0) + name)
    for number in range(1, 9):
        answer = {'question': number, 'answer': 'session', 'by': 'watch'}
        s.sendall(json.dumps({'answer-1': answer}).encode() + b'\\n')
        print('reached', s.recv(4096), flush=True)
except OSError as error:
    print('refused', flush=True)
";

#[test]
fn n20_a_program_inside_cannot_answer_what_it_is_asked() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        std::fs::write(laptop.workspace().join("intruder.py"), INTRUDER).expect("a file");
        let script = "curl -sS --max-time 100 http://192.168.10.21/ & python3 intruder.py; wait";
        let mut session = session(laptop, &["--ask"], script);
        let watcher = Watcher::attends(laptop);
        go(&mut session);
        watcher.question();
        let find = "sed -n 's/.*@\\(stockade\\/.*\\)/\\1/p' /proc/net/unix | head -n 1";
        let name = laptop.shell(find).run().expect("run").stdout();
        assert!(name.contains("stockade/"), "{name}");
        session.write(&name).expect("the name");
        session.expect("refused\n").expect("no answer from inside");
        assert!(!session.stdout_so_far().contains("hello"));
        // Positive control: outside, the same program answers.
        let outside = laptop
            .command("python3")
            .args(["-I", "intruder.py"])
            .input(name);
        let output = outside.run().expect("run").expect_success();
        assert!(output.stdout().contains("\"Ok\":null"), "{output:?}");
        session.expect("hello from device").expect("a page");
        session.wait().expect("an end").expect_success();
    });
}
