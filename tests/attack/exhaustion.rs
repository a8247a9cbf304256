//! What a session uses up, so that nothing is left for who watches it (P1, P14).

use std::fs;
use std::time::Duration;

use stockade_world::{Standard, World, eventually, test};

use super::f_files::said;
use super::p_git::REPOSITORY;
use super::probe::Place;
use crate::support::standard;

/// Opens flows until no more are given, then plants a setting by which git runs a program. At most
/// so many, counted in the argument.
const HOLD: &str = r#"
import select, socket, sys
kind, most = sys.argv[1], int(sys.argv[2])
held, refused = [], 0
while len(held) < most and refused < 3:
    flow = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    flow.settimeout(2)
    try:
        flow.connect(("93.184.216.34", 7))
        flow.send(b"hold")
        flow.recv(4)
        held.append(flow)
    except OSError:
        refused += 1
with open(".git/config", "a") as settings:
    settings.write("[core]\n\tfsmonitor = touch /home/dev/ran\n")
print("holds", len(held), "planted", flush=True)
sys.stdin.readline()
"#;

/// How many flows were held while the setting was put back.
fn put_back_while_flows_are_held(world: &World, kind: &str, most: &str) -> usize {
    let laptop = world.laptop();
    said(laptop, Place::Outside, REPOSITORY);
    let line = "ulimit -n 512; exec stockade run -- python3 -c \"$0\" \"$@\"";
    let mut session = laptop
        .shell(line)
        .args([HOLD, kind, most])
        .spawn()
        .expect("a session");
    let told = session.expect("planted\n").expect("a plant");
    let settings = laptop.workspace().join(".git/config");
    eventually("the setting is undone", Duration::from_secs(10), || {
        let settings = fs::read_to_string(&settings);
        settings.is_ok_and(|settings| !settings.contains("fsmonitor"))
    })
    .expect("nothing keeps it from being undone");
    session.write("end\n").expect("end");
    session.wait().expect("an end").expect_success();
    let held = told.split("holds ").nth(1).expect("a number");
    let held = held.split(' ').next().and_then(|held| held.parse().ok());
    held.expect("a number")
}

#[test]
fn p01_flows_that_a_session_holds_do_not_keep_settings_from_being_put_back() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        assert_eq!(put_back_while_flows_are_held(world, "tcp", "0"), 0);
        for kind in ["tcp", "udp"] {
            let held = put_back_while_flows_are_held(world, kind, "600");
            // It did hold as many as it could have.
            assert!((80..300).contains(&held), "{kind}: {held}");
        }
    });
}
