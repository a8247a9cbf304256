//! What the warden and the inner stage hold cannot be had from inside (N20): their descriptors,
//! the control socket, their sockets in the jail, their memory.

use std::fs;

use stockade_world::{Standard, test};

use super::probe::{INSIDE, INTERNET, PROBE, Place, Prober};
use crate::support::standard;

const KEEPER: &str = include_str!("keeper.py");

#[test]
fn n20_process_1_cannot_be_looked_into() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let refused = |outcome: &str| matches!(outcome, "EPERM" | "EACCES");
        let look = Prober::start(INSIDE.python(laptop, KEEPER).arg("1"));
        look.results().expect("a refusal", refused);
        look.end();
        let nested = INSIDE
            .command(laptop, "unshare")
            .args(["--user", "--map-root-user"]);
        let nested = nested.args(["/usr/bin/python3", "-IS", "-c", KEEPER, "1"]);
        Prober::start(nested).results().expect("a refusal", refused);
        // A child of one's own can be: inside and outside.
        for place in [INSIDE, Place::Outside] {
            let look = Prober::start(place.python(laptop, KEEPER).arg("child"));
            look.results().expect("success", |outcome| outcome == "ok");
            look.end();
        }
    });
}

#[test]
fn n20_the_command_has_no_descriptor_but_the_standard_three() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        fs::write(laptop.home().join("secret"), "secret\n").expect("write");
        // The caller's shell holds a file and a connection, too.
        let list = "for fd in /proc/self/fd/*; do [ -e $fd ] && echo ${fd##*/}; done; true";
        let held = |command: &str| {
            let script = format!("exec 8<~/secret 9<>/dev/tcp/93.184.216.34/7; {command}");
            laptop
                .command("bash")
                .args(["-c", &script, "held", list])
                .run()
                .expect("run")
                .expect_success()
                .stdout()
        };
        let _net = Standard::serve(world).expect("servers");
        assert_eq!(held("stockade run -- bash -c \"$1\""), "0\n1\n2\n");
        assert_eq!(held("bash -c \"$1\""), "0\n1\n2\n8\n9\n");
    });
}

#[test]
fn n20_nobody_of_outside_is_to_be_seen_and_no_socket_has_a_name() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        // Process 1 and the shell itself.
        let processes =
            "for process in /proc/[0-9]*; do read -r name < $process/comm && echo $name; done";
        let inside = |script: &str| {
            let shell = INSIDE.command(laptop, "bash").args(["-c", script]);
            shell.run().expect("run").expect_success().stdout()
        };
        let seen = inside(processes);
        assert_eq!(seen.lines().count(), 2, "{seen}");
        let outside = laptop
            .command("bash")
            .args(["-c", processes])
            .run()
            .expect("run")
            .stdout();
        assert!(outside.lines().count() > 2, "{outside}");
        // Abstract names and paths of Unix sockets, after the header.
        let sockets = "while read -r line; do echo \"$line\"; done < /proc/net/unix";
        let seen = inside(sockets);
        assert!(!seen.contains(['/', '@']), "{seen}");
        let outside = laptop
            .command("bash")
            .args(["-c", sockets])
            .run()
            .expect("run")
            .stdout();
        assert!(outside.contains('@'), "{outside}");
    });
}

/// Says "destroyed" when its socket is.
const VICTIM: &str = r#"
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as victim:
    victim.bind(("127.0.0.1", 9))
    victim.settimeout(10)
    try:
        victim.recv(1)
    except ConnectionAbortedError:
        print("destroyed")
"#;

#[test]
fn n20_the_gates_sockets_cannot_be_destroyed_from_inside() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let script = "ss -K -tuan; unshare --user --map-root-user ss -K -tuan
            exec /usr/bin/python3 -IS -c \"$1\"";
        let shell = INSIDE.command(laptop, "bash");
        let mut session = Prober::start(shell.args(["-c", script, "kill", PROBE]));
        session.ask(&INTERNET).expect_answers();
        session
            .ask(&["tcp://10.20.0.5:7", "udp://10.20.0.5:7"])
            .expect_denials();
        session.end();
        // Where one has authority, the same destroys them.
        let own = "ip link set lo up; /usr/bin/python3 -IS -c \"$1\" &
            until ss -uan | grep -q 127.0.0.1:9; do :; done; ss -K -uan; wait";
        let unshare = laptop
            .command("unshare")
            .args(["--user", "--map-root-user", "--net"])
            .args(["bash", "-c", own, "kill", VICTIM]);
        let output = unshare.run().expect("run");
        assert!(output.stdout().contains("destroyed"), "{output:?}");
    });
}
