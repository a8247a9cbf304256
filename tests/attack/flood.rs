//! Floods from inside (N16): the gate stays up and small, and serves the others meanwhile.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stockade_world::{
    BLACK_HOLE, PATIENCE, Packet, Protocol, Running, Standard, World, eventually, test,
};

use super::probe::{INSIDE, INTERNET, PROBE, Place, Prober};
use crate::log::{logs, text_in};
use crate::support::standard;

const FLOOD: &str = include_str!("flood.py");
/// Takes all of something, then does what another program would do.
const FAIR: &str = include_str!("fair.py");

/// What the warden may use at most, however it is flooded.
const MEMORY_LIMIT: u64 = 64 << 20;

const PRIVATE: [&str; 2] = ["tcp://10.20.0.5:7", "udp://10.20.0.5:7"];
const WEB: &str = "93.184.216.34";

/// A session in which a flood stands.
fn flooded(world: &World, way: &str, count: u32, address: &str, port: u16) -> Prober {
    let python = "/usr/bin/python3 -IS -c";
    let script = format!("{python} \"$1\" {way} {count} {address} {port} & exec {python} \"$2\"");
    let shell = INSIDE.command(world.laptop(), "bash");
    let session = Prober::start(shell.args(["-c", &script, "flood", FLOOD, PROBE]));
    session.results();
    session
}

/// The most memory that the warden has used so far.
fn peak_memory(session: &Prober) -> u64 {
    let status = format!("/proc/{}/status", session.pid());
    let status = fs::read_to_string(status).expect("the warden's status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    kib.expect("a peak").parse::<u64>().expect("a number") << 10
}

/// The internet is there in the flooded session, the intranet is not, and the warden is small.
#[track_caller]
fn is_unimpressed(mut session: Prober) {
    // A datagram may be lost in the crowd, as datagrams may, and the servers have the crowd to serve, too.
    let is_served = (0..6).any(|_| {
        let answers = session.ask(&INTERNET);
        answers.expect("an answer", |outcome| {
            matches!(outcome, "answer" | "silence")
        });
        answers.iter().all(|(_, outcome)| outcome == "answer")
    });
    assert!(is_served, "something is never answered");
    session.ask(&PRIVATE).expect_denials();
    let peak = peak_memory(&session);
    assert!(
        peak < MEMORY_LIMIT,
        "the warden has used {} MiB",
        peak >> 20
    );
    session.end();
}

/// A session with attempts that get no answer, of which nearly all are tried outside.
fn attempts(world: &World, way: &str, count: u32) -> Prober {
    let capture = world.laptop().capture().expect("capture");
    let session = flooded(world, way, count, BLACK_HOLE, 80);
    let hole: IpAddr = BLACK_HOLE.parse().expect("address");
    let tried = || {
        let packets = capture.packets();
        let attempts = packets
            .iter()
            .filter(|packet| packet.destination == hole && packet.is_syn());
        let ports: HashSet<_> = attempts.map(|packet| packet.source_port).collect();
        u32::try_from(ports.len()).expect("a few thousand")
    };
    // A SYN that was lost in the crowd comes again.
    eventually("nearly all are tried", PATIENCE, || tried() > count - 100)
        .unwrap_or_else(|_| panic!("only {} were tried", tried()));
    session
}

#[test]
fn n16_attempts_that_get_no_answer_keep_nobody_out() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        is_unimpressed(attempts(world, "attempts", 2000));
        // More than there are places for.
        is_unimpressed(attempts(world, "attempts", 6000));
    });
}

#[test]
fn n16_data_in_first_packets_does_not_fill_the_memory() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        is_unimpressed(attempts(world, "first_data", 2500));
    });
}

#[test]
fn n16_abandoned_attempts_and_denied_ones_keep_nobody_out() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let mut session = flooded(world, "abandoned", 20_000, "10.20.0.99", 81);
        let peak = peak_memory(&session);
        assert!(
            peak < MEMORY_LIMIT,
            "the warden has used {} MiB",
            peak >> 20
        );
        // Those that were abandoned could still have their places, for longer than this is tried.
        session.ask(&["tcp://93.184.216.34:7"]).expect_answers();
        is_unimpressed(session);
    });
}

#[test]
fn n16_idle_connections_keep_nobody_out() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        is_unimpressed(flooded(world, "connections", 1000, WEB, 80));
        net.web
            .tcp()
            .connections()
            .wait_for(1000)
            .expect("they all came");
    });
}

#[test]
fn n16_a_flood_of_datagrams_keeps_nobody_out() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let web = world.host("web");
        let capture = web.capture().expect("capture");
        is_unimpressed(flooded(world, "datagrams", 5000, WEB, 10_000));
        let arrived = capture.count(|packet| {
            packet.protocol == Protocol::Udp
                && packet.destination == web.v4()
                && packet.destination_port.is_some_and(|port| port >= 10_000)
        });
        assert!(arrived > 1000, "only {arrived} flows were made");
        // And as many hosts that are denied.
        is_unimpressed(flooded(world, "hosts", 5000, "10.99.0.0", 9));
    });
}

#[test]
fn n16_slow_readers_do_not_fill_the_memory() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let source = world.host("web").tcp_source(9000, 1 << 20).expect("listen");
        is_unimpressed(flooded(world, "readers", 300, WEB, 9000));
        assert_eq!(source.connections().count(), 300);
    });
}

#[test]
fn n16_peers_that_do_not_read_do_not_fill_the_memory() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        is_unimpressed(flooded(world, "writers", 1500, WEB, 7));
        let came = net.web_echo.connections().count();
        assert!(came >= 1500, "only {came} connections were made");
    });
}

#[test]
fn n16_flows_that_are_opened_without_a_pause_keep_nobody_out() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let capture = world.laptop().capture().expect("capture");
        let mut session = flooded(world, "flows", 0, "8.0.0.0", 9);
        let is_flood = |packet: &Packet| packet.destination_port == Some(9);
        capture.wait_for(2000, is_flood).expect("the flood stands");
        for _ in 0..3 {
            session.ask(&["tcp://93.184.216.34:7"]).expect_answers();
        }
        session.end();
    });
}

#[test]
fn n16_unfinished_queries_do_not_fill_the_memory() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        is_unimpressed(flooded(world, "unfinished_queries", 1500, "8.8.8.8", 53));
    });
}

#[test]
fn n16_a_fast_flow_does_not_starve_a_slow_one() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let sent = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&sent);
        let endless = move |stream: &mut stockade_world::Stream| loop {
            stream.write_all(&[0; 64 * 1024])?;
            counter.fetch_add(64 * 1024, Ordering::SeqCst);
        };
        world.host("web").tcp(9000, endless).expect("listen");

        let mut session = flooded(world, "bulk", 4, WEB, 9000);
        let before = sent.load(Ordering::SeqCst);
        let start = Instant::now();
        let mut took = [0; 10].map(|_| {
            let asked = Instant::now();
            session.ask(&INTERNET).expect_answers();
            asked.elapsed()
        });
        // Half of them: on a busy machine, something else may hold up one or two.
        took.sort_unstable();
        assert!(took[5] < Duration::from_secs(1), "{took:?}");
        let carried = sent.load(Ordering::SeqCst) - before;
        let per_second = carried as f64 / start.elapsed().as_secs_f64();
        assert!(
            per_second > 10e6,
            "the bulk was not fast: {per_second} bytes per second"
        );
        is_unimpressed(session);
    });
}

/// Is denied once, then opens flows faster than anybody can serve them, and ends.
const LAST: &str = r#"
import socket, time
try:
    socket.create_connection(("10.20.0.5", 7), 5)
except OSError as error:
    print(error)
v4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
number, end = 0, time.monotonic() + 3
while time.monotonic() < end:
    number += 1
    v4.sendto(b"flood", (f"8.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 9))
    v6.sendto(b"flood", (f"2600::{number >> 16:x}:{number & 65535:x}", 9))
"#;

#[test]
fn n16_a_flood_at_the_end_keeps_no_denial_from_the_receipt() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let capture = laptop.capture().expect("capture");
        let session = laptop.stockade(["run", "--", "python3", "-c", LAST]);
        let output = session.run().expect("it ends");
        let told = output.stderr();
        assert!(told.contains("denied tcp://10.20.0.5:7"), "{output:?}");
        output.expect_success();
        let is_flood = |packet: &Packet| packet.destination_port == Some(9);
        let flows = capture.count(is_flood);
        assert!(flows > 1000, "only {flows} flows were made");
    });
}

/// All tries of another program succeed, whatever was taken before.
#[track_caller]
fn is_fair(world: &World, place: Place<'_>, way: &str, count: u32) {
    let python = place.python(world.laptop(), FAIR);
    let session = Prober::start(python.args([way, &count.to_string()]));
    let answers = session.results();
    answers.expect_answers();
    assert!(answers.iter().count() >= 3, "{answers:?}");
    let spent = processor_time(&session);
    assert!(spent < WORK_LIMIT, "the warden has worked for {spent:?}");
    session.end();
}

/// What the warden may spend until others are served. The gate works on one thread, so its work is what keeps
/// them waiting. Unlike their time, it is the same on a machine that is busy with something else.
const WORK_LIMIT: Duration = Duration::from_secs(10);

/// For how long the warden has had a processor.
fn processor_time(session: &Prober) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", session.pid())).expect("its times");
    // The name before them is in parentheses.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|it| it.parse::<u64>().expect("a number")).sum();
    // Of a hundredth of a second, on all architectures that Stockade is built for.
    Duration::from_millis(10 * ticks)
}

#[test]
fn n16_idle_connections_for_names_keep_nobody_out() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        is_fair(world, INSIDE, "streams", 300);
    });
}

#[test]
fn n16_ping_sockets_keep_nobody_out() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        is_fair(world, INSIDE, "pings", 300);
    });
}

#[test]
fn n16_unfinished_requests_keep_nobody_out() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let closed = Place::Closed(&["www.example.com"]);
        is_fair(world, closed, "heads", 330);
    });
}

#[test]
fn n16_what_is_hard_to_read_keeps_nobody_waiting() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let closed = Place::Closed(&["www.example.com"]);
        is_fair(world, closed, "lines", 4);
        is_fair(world, closed, "words", 60);
        is_fair(world, closed, "hellos", 40);
    });
}

/// Sends over many connections, without a pause, and reads what comes back.
const WITHOUT_A_PAUSE: &str = r#"
import os, select, socket, sys, threading
begin, port, more = {
    # Each byte could begin a long record.
    "starts": (b"x\n", 7, b"\xbf" * 65536),
    "requests": (b"", 80, b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n" * 1000),
    "chunks": (
        b"POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n", 7, b"1\r\nx\r\n" * 10000
    ),
}[sys.argv[1]]
address = socket.gethostbyname("www.example.com")
opened = [socket.create_connection((address, port), 100) for _ in range(12)]
for it in opened:
    it.sendall(begin)
    if begin:
        it.recv(100)
def send(it):
    try:
        while True:
            it.sendall(more)
    except OSError:
        pass
for it in opened:
    threading.Thread(target=send, args=[it], daemon=True).start()
print("sent", flush=True)
while sys.stdin not in (ready := select.select([sys.stdin, *opened], [], [])[0]):
    for it in ready:
        try:
            ended = not it.recv(65536)
        except OSError:
            ended = True
        if ended:
            opened.remove(it)
os._exit(7)
"#;

#[test]
fn n16_who_sends_without_a_pause_keeps_neither_a_reload_nor_the_end_waiting() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        for way in ["starts", "requests", "chunks"] {
            let closed = Place::Closed(&["www.example.com"]);
            let python = closed.python(laptop, WITHOUT_A_PAUSE).args([way]);
            let mut session = python.spawn().expect("start");
            session.expect("sent\n").expect("connections");
            for _ in 0..3 {
                let reloaded = laptop.stockade(["reload"]).run().expect("it ends");
                reloaded.expect_success();
            }
            session.write("end\n").expect("write");
            session.wait().expect("end").expect_code(7);
        }
    });
}

/// Others have so many files open that a search for a program never gets through. Behind them, one is denied
/// datagrams without a pause. Another begins as many flows as it is told.
const HARD_TO_FIND: &str = r#"
import os, resource, socket, sys, threading, time
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
most = min(hard, 20000) - 100
for _ in range(-(-int(sys.argv[1]) // most)):
    ready, tell = os.pipe()
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDONLY)
        for _ in range(most):
            os.dup(null)
        os.write(tell, b"x")
        time.sleep(3600)
    os.read(ready, 1)
    os.close(ready)
    os.close(tell)
if os.fork():
    os.wait()
    sys.exit(0)
number = 0
def denied():
    global number
    attempt = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    attempt.bind(("", 40000))
    while True:
        number += 1
        try:
            attempt.sendto(b"x", ("10.66.%d.%d" % (number >> 8 & 255, number & 255), 81))
        except OSError:
            pass
        time.sleep(0.02)
threading.Thread(target=denied, daemon=True).start()
print("ready", flush=True)
flows = []
for line in sys.stdin:
    if line == "sent\n":
        print("sent", number, "denials", flush=True)
        continue
    for flow in range(int(line)):
        flows.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        flows[-1].sendto(b"x", ("93.184.216.34", 7))
        if flow % 20 == 0:
            time.sleep(0.01)
    try:
        peer = socket.create_connection(("93.184.216.34", 7), 10)
        peer.sendall(b"hello")
        print("begun:", peer.recv(5).decode(), flush=True)
    except OSError as error:
        print("begun:", error, flush=True)
os._exit(0)
"#;

#[test]
fn n16_denials_whose_program_is_hard_to_find_do_not_stop_the_log() {
    const FLOWS: usize = 1500;
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        // First without those who are in the way, as a positive control.
        for files in ["0", "400000"] {
            let mut session = INSIDE
                .python(laptop, HARD_TO_FIND)
                .arg(files)
                .spawn()
                .expect("a session");
            session.expect("ready").expect("it begins");
            let count = |event: &str, field: &str| {
                let (text, event) = (text_in(&logs(laptop)), format!("\"event\":\"{event}\""));
                let lines = text.lines().filter(|line| line.contains(&event));
                lines.filter(|line| line.contains(field)).count()
            };
            let sent = |session: &mut Running| -> usize {
                session.write("sent\n").expect("a question");
                let said = session.expect(" denials").expect("a number");
                let number = said.rsplit(' ').next().map(str::parse);
                number.and_then(Result::ok).expect("a number")
            };
            eventually("many are denied", PATIENCE, || sent(&mut session) > 500).expect("denials");
            session.write(format!("{FLOWS}\n")).expect("go");
            session
                .expect("begun: hello")
                .expect("somebody else connects");
            // Denials go on meanwhile. Where each is waited for, the log is always some hundred behind.
            eventually("the log is up to date", PATIENCE, || {
                let written = count("deny", "");
                count("open", "") == FLOWS + 1 && sent(&mut session) < written + 100
            })
            .unwrap_or_else(|_| {
                let (opened, denied) = (count("open", ""), count("deny", ""));
                let sent = sent(&mut session);
                panic!("{opened} of {FLOWS} flows and {denied} of {sent} denials have a line")
            });
            let found = count("deny", "\"process\"");
            assert_eq!(found == 0, files != "0", "{found} programs were found");
            drop(session);
        }
    });
}
