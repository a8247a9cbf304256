//! Every other way to connect and send (N15): system calls and socket options that a filter
//! for plain `connect()` might not think of.

use std::collections::BTreeSet;

use stockade_world::{Standard, World, test};

use super::probe::{Answers, INSIDE, Place, Prober, Watch};
use crate::support::standard;

const CALLS: &str = include_str!("calls.py");

const WEB: &str = "93.184.216.34";
const INTRANET: &str = "10.20.0.5";

/// What becomes of all ways to reach `target`.
fn attempts(world: &World, place: Place<'_>, target: &str, harmless: &str) -> Answers {
    let python = place.python(world.laptop(), CALLS).args([target, harmless]);
    let script = Prober::start(python);
    let answers = script.results();
    script.end();
    answers
}

fn is_reached(outcome: &str) -> bool {
    matches!(outcome, "answer" | "unsupported")
}

#[test]
fn n15_no_other_call_reaches_what_a_plain_connect_does_not() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let mirror = world.host("mirror");
        mirror.tcp_echo(7).expect("listen");
        mirror.udp_echo(7).expect("listen");

        let watch = Watch::on(&[world.host("intranet")]);
        attempts(world, INSIDE, INTRANET, WEB).expect("a denial", |outcome| {
            matches!(outcome, "EHOSTUNREACH" | "unsupported")
        });
        watch.expect_nothing();

        // The same calls work, inside to where they may go, and outside.
        let mirror = mirror.v4().to_string();
        attempts(world, INSIDE, &mirror, WEB).expect("an answer", is_reached);
        attempts(world, Place::Outside, INTRANET, WEB).expect("an answer", is_reached);
        watch.expect_something();
    });
}

/// Opens a socket of each family by number, and tells which could be opened.
const FAMILIES: &str = r#"
import socket, sys
for number in map(int, sys.argv[1:]):
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW]:
        try:
            socket.socket(number, kind).close()
            print(number)
        except OSError:
            pass
"#;

/// AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: what programs need.
const NEEDED_FAMILIES: [u32; 4] = [1, 2, 10, 16];

/// Beyond the last that any kernel has. Some of them lead to devices, coprocessors or the
/// hypervisor (Bluetooth, NFC, VSOCK, QRTR), which no network namespace keeps apart.
const FAMILIES_OF_ALL: std::ops::Range<u32> = 0..64;

#[test]
fn n15_families_that_no_namespace_contains_are_refused() {
    test(&standard(), |world| {
        let opened = |place: Place<'_>| -> BTreeSet<u32> {
            let families = FAMILIES_OF_ALL.map(|number| number.to_string());
            let python = place.python(world.laptop(), FAMILIES).args(families);
            let output = python.run().expect("run").expect_success().stdout();
            let numbers = output.lines().map(|line| line.parse().expect("a number"));
            numbers.collect()
        };
        let needed = BTreeSet::from(NEEDED_FAMILIES);
        assert_eq!(opened(INSIDE), needed);
        // Outside there are others, as far as this kernel has any that a user may open.
        let outside = opened(Place::Outside);
        assert!(outside.is_superset(&needed), "{outside:?}");
        if outside == needed {
            eprintln!("this kernel has none of them for users, so nothing was shown");
        }

        // A pair is refused like a single one, and by the same answer as an absent family.
        let pair = "import socket, sys\ntry: socket.socketpair(int(sys.argv[1]))
except OSError as error: print(error.errno)";
        let paired = |place: Place<'_>, family: &str| {
            let python = place.python(world.laptop(), pair).arg(family);
            python.run().expect("run").expect_success().stdout()
        };
        assert_eq!(paired(INSIDE, "1"), "");
        assert_eq!(paired(INSIDE, "30"), "97\n");
    });
}
