//! An attempt fails inside with the error it fails with outside, and a denied one with an
//! error of its own, at once.

use std::io;

use stockade_world::{Builder, DeadEnd, Laptop, Standard, Stream, World, test};

use super::place::Place;
use crate::support::standard;

const ATTEMPTS: &str = include_str!("probes/attempts.py");

/// Attempts, each with its outcome. A line that starts with `#` says what the next ones are.
struct Cases<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Cases<'a> {
    fn of(table: &'a str) -> Self {
        let lines = table.lines().map(str::trim);
        let cases = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(
            cases
                .map(|line| line.split_once("  ").expect("two columns"))
                .map(|(attempt, outcome)| (attempt, outcome.trim()))
                .collect(),
        )
    }

    fn attempts(&self) -> Vec<&'a str> {
        self.0.iter().map(|(attempt, _)| *attempt).collect()
    }

    /// Those that did not end as they should have.
    fn mistaken(&self, place: &str, outcomes: &[Outcome]) -> Vec<String> {
        let pairs = self.0.iter().zip(outcomes);
        pairs
            .filter(|((_, expected), outcome)| outcome.text != *expected)
            .map(|((attempt, expected), outcome)| {
                format!(
                    "{attempt} {place}: expected {expected}, got {}",
                    outcome.text
                )
            })
            .collect()
    }
}

struct Outcome {
    text: String,
    milliseconds: u64,
}

/// The outcome of each attempt, all made at the same time.
fn attempt(world: &World, place: Place<'_>, attempts: &[&str]) -> Vec<Outcome> {
    let output = place
        .python(world.laptop(), ATTEMPTS)
        .args(attempts)
        .run()
        .expect("the probe ends")
        .expect_success();
    let stdout = output.stdout();
    let fields = stdout.lines().filter_map(|line| line.split_once('\t'));
    let outcomes: Vec<Outcome> = fields
        .map(|(text, milliseconds)| Outcome {
            text: text.to_owned(),
            milliseconds: milliseconds.parse().expect("a number"),
        })
        .collect();
    assert_eq!(outcomes.len(), attempts.len(), "{output:?}");
    outcomes
}

/// Fails unless every attempt ends as it should, outside and inside alike.
fn compare(world: &World, rules: &[&str], table: &str) {
    let cases = Cases::of(table);
    let outside = attempt(world, Place::Outside, &cases.attempts());
    let inside = attempt(world, Place::Inside(rules), &cases.attempts());
    let mut mistaken = cases.mistaken("outside", &outside);
    mistaken.extend(cases.mistaken("inside", &inside));
    assert!(mistaken.is_empty(), "{}", mistaken.join("\n"));
}

fn with_dead_ends() -> Builder {
    standard()
        .dead_end("2a00:1450:4001::66", DeadEnd::BlackHole)
        .dead_end("2a00:1450:4001::67", DeadEnd::Unreachable)
        .dead_end("198.51.44.68", DeadEnd::Prohibited)
        .dead_end("2a00:1450:4001::68", DeadEnd::Prohibited)
}

/// Ends a connection with what the client has sent unread, which resets it.
fn hang_up(stream: &mut Stream) -> io::Result<()> {
    stream.socket.peek(&mut [0]).map(drop)
}

const TCP: &str = "
    # a server that answers
    tcp/93.184.216.34/7                 received hello
    tcp/2606:2800:220:1::34/7           received hello
    # a closed port
    tcp/93.184.216.34/81                connect ECONNREFUSED
    tcp/2606:2800:220:1::34/81          connect ECONNREFUSED
    # no such network
    tcp/45.76.1.1/80                    connect ENETUNREACH
    tcp/2600:3c00::1/80                 connect ENETUNREACH
    # no such host; a Linux router has another word for it in IPv6
    tcp/198.51.44.67/80                 connect EHOSTUNREACH
    tcp/2a00:1450:4001::67/80           connect ENETUNREACH
    # a firewall that says so
    tcp/198.51.44.68/80                 connect EHOSTUNREACH
    tcp/2a00:1450:4001::68/80           connect EACCES
    # a firewall that is silent
    tcp-brief/198.51.44.66/80           connect ETIMEDOUT
    tcp-brief/2a00:1450:4001::66/80     connect ETIMEDOUT
    # a server that hangs up
    tcp/93.184.216.34/9                 receive ECONNRESET
    tcp/2606:2800:220:1::34/9           receive ECONNRESET
";

#[test]
fn a_connection_fails_inside_as_it_fails_outside() {
    test(&with_dead_ends(), |world| {
        let _net = Standard::serve(world).expect("servers");
        world.host("web").tcp(9, hang_up).expect("server");
        compare(world, &[], TCP);
    });
}

const UDP: &str = "
    # a server that answers
    udp/93.184.216.34/7                 received hello
    udp/2606:2800:220:1::34/7           received hello
    # a closed port
    udp/93.184.216.34/81                receive ECONNREFUSED
    udp/2606:2800:220:1::34/81          receive ECONNREFUSED
    # a firewall that says so
    udp/198.51.44.68/80                 receive EHOSTUNREACH
    udp/2a00:1450:4001::68/80           receive EACCES
";

#[test]
fn a_datagram_fails_inside_as_it_fails_outside() {
    test(&with_dead_ends(), |world| {
        let _net = Standard::serve(world).expect("servers");
        compare(world, &[], UDP);
    });
}

/// Errors that the kernel tells only to who asks for them.
const STRICT_UDP: &str = "
    # no such network
    udp-strict/45.76.1.1/80             receive ENETUNREACH
    udp-strict/2600:3c00::1/80          receive ENETUNREACH
    # no such host
    udp-strict/198.51.44.67/80          receive EHOSTUNREACH
    udp-strict/2a00:1450:4001::67/80    receive ENETUNREACH
    # a closed port
    udp-strict/93.184.216.34/81         receive ECONNREFUSED
    udp-strict/2606:2800:220:1::34/81   receive ECONNREFUSED
";

#[test]
fn a_client_that_asks_for_every_error_gets_those_it_gets_outside() {
    test(&with_dead_ends(), |world| compare(world, &[], STRICT_UDP));
}

const ABSENT: &str = "
    tcp/192.168.10.99/80                connect EHOSTUNREACH
    tcp/2a0a:5c40:10::99/80             connect EHOSTUNREACH
    udp-strict/192.168.10.99/80         receive EHOSTUNREACH
    udp-strict/2a0a:5c40:10::99/80      receive EHOSTUNREACH
";

#[test]
fn an_absent_device_of_the_lan_is_unreachable_inside_as_outside() {
    test(&standard(), |world| {
        compare(world, &["192.168.10.99", "2a0a:5c40:10::99"], ABSENT);
    });
}

#[test]
fn without_ipv6_there_is_no_route_inside_either() {
    let table = "
        tcp/2606:2800:220:1::34/7       connect ENETUNREACH
        udp/2606:2800:220:1::34/7       connect ENETUNREACH
        tcp/93.184.216.34/7             received hello
    ";
    test(&standard().without_ipv6(), |world| {
        let _net = Standard::serve(world).expect("servers");
        compare(world, &[], table);
    });
}

/// Longer than a denial ever takes, shorter than the second SYN.
const AT_ONCE: u64 = 900;

const DENIED: &str = "
    # the intranet
    tcp/10.20.0.5/7                     connect EHOSTUNREACH
    tcp/fd00:20::5/7                    connect EACCES
    udp/10.20.0.5/7                     receive EHOSTUNREACH
    udp/fd00:20::5/7                    receive EACCES
    # a device of the LAN
    tcp/192.168.10.21/7                 connect EHOSTUNREACH
    udp/192.168.10.21/7                 receive EHOSTUNREACH
    # the laptop itself
    tcp/192.168.10.5/7                  connect EHOSTUNREACH
    udp/192.168.10.5/7                  receive EHOSTUNREACH
";

#[test]
fn a_denial_is_an_error_at_once() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let cases = Cases::of(DENIED);
        let inside = attempt(world, Place::Inside(&[]), &cases.attempts());
        let mistaken = cases.mistaken("inside", &inside);
        assert!(mistaken.is_empty(), "{}", mistaken.join("\n"));
        let slowest = inside.iter().map(|outcome| outcome.milliseconds).max();
        assert!(slowest < Some(AT_ONCE), "took {slowest:?} ms");
        // The same attempt succeeds where it may.
        let allowed = attempt(world, Place::Inside(&["10.20.0.5"]), &["tcp/10.20.0.5/7"]);
        assert_eq!(allowed[0].text, "received hello");
    });
}

/// Prints how often each outcome came, and the longest time in milliseconds. Every other
/// attempt blocks in `connect()`, the rest wait for it by `poll()`.
///
/// The kernel wakes a poller a moment before it tells the error that an ICMP message
/// brought, so one that is quick finds neither an error nor a peer, outside as well.
const IN_A_ROW: &str = r"
import collections, errno, signal, socket, sys, time
address, port = sys.argv[1], int(sys.argv[2])
outcomes, longest = collections.Counter(), 0
signal.alarm(15)
for number in range(2000):
    start = time.monotonic()
    with socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET) as s:
        s.settimeout(15 if number % 2 else None)
        error = s.connect_ex((address, port))
        if error == 0:
            try:
                s.getpeername()
            except OSError:
                error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        outcomes[errno.errorcode.get(error, 'connected')] += 1
    longest = max(longest, time.monotonic() - start)
print(dict(outcomes), int(longest * 1000), sep='\t')
";

/// Fails unless 2000 attempts, one after the other, all end with this error at once.
fn two_thousand_times(world: &World, address: &str, port: u16, error: &str) {
    let probe = Place::Inside(&[]).python(world.laptop(), IN_A_ROW);
    let output = probe.args([address, &port.to_string()]).run();
    let stdout = output.expect("the probe ends").expect_success().stdout();
    let (outcomes, longest) = stdout.trim().split_once('\t').expect("two fields");
    assert_eq!(outcomes, format!("{{'{error}': 2000}}"), "{address}");
    let longest: u64 = longest.parse().expect("milliseconds");
    assert!(longest < AT_ONCE, "{address}: {longest} ms");
}

#[test]
fn two_thousand_denials_in_a_row_are_all_the_same_error_at_once() {
    test(&standard(), |world| {
        two_thousand_times(world, "10.20.0.5", 80, "EHOSTUNREACH");
        two_thousand_times(world, "fd00:20::5", 80, "EACCES");
    });
}

#[test]
fn two_thousand_refusals_in_a_row_are_all_the_same_error_at_once() {
    test(&standard(), |world| {
        two_thousand_times(world, "93.184.216.34", 81, "ECONNREFUSED");
        two_thousand_times(world, "2606:2800:220:1::34", 81, "ECONNREFUSED");
    });
}

/// How many segments a program that tries to connect sent again, in a session of its own.
fn sent_again(laptop: &Laptop, address: &str) -> u32 {
    let attempt = "(: 3<>/dev/tcp/$0/81) 2>/dev/null; cat /proc/self/net/snmp";
    let place = Place::Inside(&["192.168.10.250"]);
    let output = place.command(laptop, "bash").args(["-c", attempt, address]);
    let output = output.run().expect("the attempt ends").expect_success();
    let stdout = output.stdout();
    let mut lines = stdout.lines().filter(|line| line.starts_with("Tcp:"));
    let mut field = || lines.next().expect("a line").split(' ');
    let mut fields = field().zip(field());
    let (_, again) = fields.find(|(name, _)| *name == "RetransSegs").expect("it");
    again.parse().expect("a number")
}

#[test]
fn the_first_attempt_of_a_session_is_answered_at_once() {
    test(&standard(), |world| {
        for session in 0..20 {
            let again = sent_again(world.laptop(), "93.184.216.34");
            assert_eq!(again, 0, "session {session}");
        }
        // Nobody has this address.
        assert_ne!(sent_again(world.laptop(), "192.168.10.250"), 0);
    });
}
