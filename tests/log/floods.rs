//! Floods of what is denied: each attempt is logged, or at least counted.

use stockade_world::test;

use super::{lines, of};
use crate::support::standard;

/// Many attempts at one destination, and among them one each at twenty others.
const FLOOD: &str = "
import socket, sys
def attempt(address, port):
    with socket.socket() as s:
        s.setblocking(False)
        try:
            s.connect((address, port))
        except OSError:
            pass
for _ in range(int(sys.argv[1])):
    attempt('10.66.66.66', 1024)
for last in range(1, 21):
    attempt('10.77.77.%d' % last, 777)
    for _ in range(20):
        attempt('10.66.66.66', 1024)
";

#[test]
fn a_flood_hides_no_attempt_without_a_trace() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (noise, all_are_seen) in [(1_000, true), (40_000, false)] {
            let line = ["run", "--quiet", "--", "python3", "-I", "-c", FLOOD];
            let flood = laptop.stockade(line).arg(noise.to_string());
            flood.run().expect("a session").expect_success();
            let lines = lines(laptop);
            let number = |event: &str, field: &str| -> u64 {
                let counts = of(&lines, event).into_iter();
                counts.filter_map(|line| line[field].as_u64()).sum()
            };
            let (denied, lost) = (number("end", "denied"), number("lost", "count"));
            assert!(denied + lost >= noise + 420, "{denied} and {lost}");
            if all_are_seen {
                let others = of(&lines, "deny").into_iter();
                let what = others.filter_map(|line| line["what"].as_str());
                let others = what.filter(|what| what.starts_with("tcp://10.77.77."));
                assert_eq!(others.count(), 20);
                assert_eq!(lost, 0);
            }
        }
    });
}
