//! Packets of odd shapes, as far as a program without privilege can make them (N17).

use std::time::Duration;

use stockade_world::{BLACK_HOLE, Protocol, Standard, World, test};

use super::probe::{Answers, INSIDE, INTERNET, PROBE, Place, Prober, Watch};
use crate::log::{lines, of};
use crate::support::standard;

const SHAPES: &str = include_str!("shapes.py");

const WEB: [&str; 2] = ["93.184.216.34", "2606:2800:220:1::34"];
const INTRANET: [&str; 2] = ["10.20.0.5", "fd00:20::5"];

/// What an ordinary network carries, and so does the jail.
const ORDINARY: [&str; 10] = [
    "stream plain",
    "datagram plain",
    "stream v6 plain",
    "datagram v6 plain",
    "stream of all service bits",
    "stream of tiny segments",
    "datagram of no bytes",
    "datagram of all bytes",
    "datagram that may be cut",
    "datagram v6 in fragments",
];

/// Sends every shape to `target`, and where the shape has a further hop, by way of `via`.
fn shapes(world: &World, place: Place<'_>, target: [&str; 2], via: [&str; 2]) -> Answers {
    let python = place.python(world.laptop(), SHAPES);
    let script = Prober::start(python.args(target).args(via));
    let answers = script.results();
    script.end();
    answers
}

#[test]
fn n17_odd_packets_pass_nothing_that_plain_ones_do_not() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let intranet = world.host("intranet");
        // One session for all: to what is denied by way of what is allowed, the other way
        // round, and then plainly, to see whether the gate still stands.
        let script = "$1 \"$2\" $4 $5 $6 $7; $1 \"$2\" $6 $7 $4 $5; exec $1 \"$3\"";
        let shell = INSIDE
            .command(world.laptop(), "bash")
            .args(["-c", script, "attack"])
            .args(["/usr/bin/python3 -IS -c", SHAPES, PROBE])
            .args(INTRANET)
            .args(WEB);
        let watch = Watch::on(&[intranet]);
        let mut session = Prober::start(shell);
        session.results().expect_none();
        let (_, ordinary) = session.results().without(&ORDINARY);
        ordinary.expect_answers();
        session.ask(&INTERNET).expect_answers();
        session.end();
        watch.expect_nothing();

        let (_, ordinary) = shapes(world, Place::Outside, INTRANET, WEB).without(&ORDINARY);
        ordinary.expect_answers();
        watch.expect_something();
        // Outside, a routed packet does reach its first hop.
        let capture = intranet.capture().expect("capture");
        shapes(world, Place::Outside, WEB, INTRANET);
        assert!(capture.to_port(Protocol::Udp, intranet.v6(), 7) > 0);
    });
}

/// Sends one datagram to a server in the name of another.
const FORGE: &str = r#"
import socket, sys, time
IPV6_FREEBIND = 78
target, other = sys.argv[1:]
forger = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
forger.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
forger.bind((other, 7007))
forger.sendto(b"once", (target, 7007))
forger.close()
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as honest:
    honest.settimeout(5)
    honest.sendto(b"honest", (target, 7007))
    print(honest.recv(64).decode(), flush=True)
sys.stdin.read()
"#;

#[test]
fn n17_a_forged_source_does_not_make_two_servers_talk_to_each_other() {
    test(&standard(), |world| {
        let [web, mirror] = ["web", "mirror"].map(|name| world.host(name));
        let [at_web, at_mirror] = [web, mirror].map(|host| host.udp_echo(7007).expect("listen"));
        let forger = INSIDE
            .python(world.laptop(), FORGE)
            .args([web.v6().to_string(), mirror.v6().to_string()])
            .spawn()
            .expect("start");
        forger.expect("honest").expect("an echo");
        // A loop has made hundreds of rounds by then.
        let loops = at_mirror
            .datagrams()
            .wait_until(Duration::from_millis(500), |seen| !seen.is_empty());
        assert!(loops.is_err(), "{loops:?}");
        // Only the honest one: the forged one reached nobody.
        assert_eq!(at_web.datagrams().count(), 1);
    });
}

/// Asks port 53 of a server, then another one, with so many bytes that they leave in fragments. Of
/// the later ones no filter can tell the port.
const QUERY: &str = r#"
import socket, sys
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as asker:
    asker.settimeout(10)
    for port in [53, 7007]:
        asker.sendto(b"x" * 65500, (sys.argv[1], port))
    answer, sender = asker.recvfrom(65535)
    print(len(answer), sender[1], flush=True)
"#;

#[test]
fn n17_a_query_in_fragments_reaches_no_server() {
    test(&standard(), |world| {
        let mirror = world.host("mirror");
        let [queries, others] = [53, 7007].map(|port| mirror.udp_echo(port).expect("listen"));
        let ask = |place: Place<'_>| {
            let asker = place
                .python(world.laptop(), QUERY)
                .arg(mirror.v6().to_string());
            let said = asker.run().expect("the script ends").expect_success();
            said.stdout()
        };
        // Datagrams keep their order: the query was there before the other one.
        assert_eq!(ask(INSIDE), "65500 7007\n");
        assert_eq!(
            (queries.datagrams().count(), others.datagrams().count()),
            (0, 1)
        );
        // Two servers answer outside, in whatever order.
        assert!(ask(Place::Outside).starts_with("65500 "));
        queries
            .datagrams()
            .wait_until(Duration::from_secs(10), |seen| !seen.is_empty())
            .expect("the query reaches the server");
    });
}

/// Connects to port 7 of an address with a key that nobody else has, and then without one.
const SIGNED: &str = r#"
import errno, socket, struct, sys
address = (sys.argv[1], 7)
key = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(sys.argv[1]))
key += struct.pack("=BBHi80s", 0, 0, 3, 0, b"key")
for option in [key, None]:
    with socket.socket() as signed:
        signed.settimeout(5)
        if option:
            signed.setsockopt(socket.IPPROTO_TCP, 14, option)
        try:
            signed.connect(address)
            print("open")
        except OSError as error:
            print(errno.errorcode.get(error.errno, error))
    if "once" in sys.argv:
        break
"#;

/// Its connection outside would stand, and the one inside never.
#[test]
fn n16_a_signed_connection_takes_no_place() {
    test(&standard(), |world| {
        let web = world.host("web");
        let _echo = web.tcp_echo(7).expect("listen");
        let connect = |place: Place<'_>| {
            let asker = place
                .python(world.laptop(), SIGNED)
                .arg(web.v4().to_string());
            asker.run().expect("an end").stdout()
        };
        assert_eq!(connect(INSIDE), "EHOSTUNREACH\nopen\n");
        // Outside, nothing answers but the time that it takes.
        assert_eq!(connect(Place::Outside), "timed out\nopen\n");
    });
}

#[test]
fn p14_a_signed_attempt_is_denied_in_the_log_and_in_the_receipt() {
    test(&standard(), |world| {
        for (address, is_allowed) in [
            ("93.184.216.34", true),
            // The rules' own reason says more, and how dangerous it is.
            ("169.254.169.254", false),
            ("192.168.10.5", false),
        ] {
            let asker = INSIDE
                .python(world.laptop(), SIGNED)
                .args([address, "once"]);
            let output = asker.run().expect("an end");
            assert_eq!(output.stdout(), "EHOSTUNREACH\n");
            let told = output.stderr();
            let flow = format!("tcp://{address}:7");
            assert!(told.contains(&format!("denied {flow}")), "{told}");
            let lines = lines(world.laptop());
            let denied = of(&lines, "deny");
            let line = denied.iter().find(|line| line["what"] == flow.as_str());
            let line = line.unwrap_or_else(|| panic!("{flow}: {lines:?}"));
            let is_for_key = line.to_string().contains("signed with a key");
            assert_eq!(is_for_key, is_allowed, "{line}");
        }
    });
}

/// Signs an attempt that nobody answers after it has begun, and tells when it fails.
const SIGNED_LATER: &str = r#"
import errno, select, socket, struct, sys
address = (sys.argv[1], 7)
key = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(sys.argv[1]))
key += struct.pack("=BBHi80s", 0, 0, 3, 0, b"key")
plain, signed = socket.socket(), socket.socket()
outcomes = select.poll()
for attempt in plain, signed:
    attempt.setblocking(False)
    attempt.connect_ex(address)
    outcomes.register(attempt, select.POLLOUT)
signed.setsockopt(socket.IPPROTO_TCP, 14, key)
failed = [descriptor for descriptor, _ in outcomes.poll(20000)]
print("signed" if failed == [signed.fileno()] else failed)
print(errno.errorcode.get(signed.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)))
"#;

#[test]
fn n16_an_attempt_that_is_signed_later_gives_its_place_up() {
    test(&standard(), |world| {
        let attempts = |place: Place<'_>| {
            let asker = place.python(world.laptop(), SIGNED_LATER).arg(BLACK_HOLE);
            asker.run().expect("an end").stdout()
        };
        assert_eq!(attempts(INSIDE), "signed\nEHOSTUNREACH\n");
        // Outside, both wait.
        assert_eq!(attempts(Place::Outside), "[]\nNone\n");
    });
}
