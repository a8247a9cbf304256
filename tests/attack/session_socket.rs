//! Whether the session's socket can be faked, flooded or asked by others (F15).

use stockade_world::test;

use super::probe::{INSIDE, Place};
use crate::support::standard;

/// The built program, by the path that it has outside and inside.
const STOCKADE: &str = "/run/world/bin/stockade";

/// A session's answer by whoever runs this, at a path.
const FAKE: &str = "
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print('listening', flush=True)
while True:
    peer, _ = listener.accept()
    peer.recv(4096)
    peer.sendall(b'{\"protocol\":1,\"session\":\"1-2-3\"}\\n')
    peer.close()
";

/// Connects again and again, asks nonsense, and keeps connections open, as many as it may have.
const FLOOD: &str = "
import os, socket, sys, threading, time
def flood(number):
    kept = []
    while True:
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(5)
        try:
            peer.connect('/run/stockade/session.sock')
            if number % 3 == 0:
                peer.sendall(b'[' * 100000)
            elif number % 3 == 1:
                peer.sendall(b'{\"ask\":')
                kept.append(peer)
        except OSError:
            pass
        del kept[:-200]
for number in range(8):
    threading.Thread(target=flood, args=(number,), daemon=True).start()
print('flooding', flush=True)
time.sleep(3600)
";

#[test]
fn f15_neither_a_variable_nor_a_file_nor_a_server_of_ones_own_is_a_session() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let ask = format!("{STOCKADE} inside");
        let claim = laptop
            .shell(&ask)
            .env("STOCKADE", "1")
            .env("STOCKADE_SESSION", "1-2-3");
        let output = claim.run().expect("it ends").expect_code(1);
        assert!(output.stdout().contains("no session socket"), "{output:?}");

        // In namespaces of one's own anybody can have that path.
        let apart = |then: &str| {
            let line = format!(
                "cp {STOCKADE} /tmp/stockade && rm -rf /tmp/run && mkdir -p /tmp/run/stockade && \
                 mount --bind /tmp/run /run && {{ {then}; }}"
            );
            let unshare = laptop
                .command("unshare")
                .args(["-Urm", "bash", "-c", &line, "x", FAKE]);
            unshare.run().expect("it ends")
        };
        let empty = "touch /run/stockade/session.sock /run/stockade/init; /tmp/stockade inside";
        assert!(apart(empty).stdout().contains("no session socket"));
        let serve = "exec 3< <(python3 -c \"$1\" /run/stockade/session.sock); read -u 3 line";
        let beside = apart(&format!("{serve}; /tmp/stockade inside"));
        assert!(
            beside
                .stdout()
                .contains("which is not outside, listens there"),
            "{beside:?}"
        );
        // In a process namespace below, where nobody sees who listens: but nothing confines the
        // process, as a session does.
        let below = apart(&format!("{serve}; unshare -p --fork /tmp/stockade inside"));
        assert!(
            below.stdout().contains("no system call filter"),
            "{below:?}"
        );

        // Positive control.
        let inside = laptop.stockade(["run", "--", STOCKADE, "inside"]);
        let said = inside.run().expect("it ends").expect_success().stdout();
        assert!(said.starts_with("inside session "), "{said}");
    });
}

#[test]
fn f15_a_program_inside_cannot_stand_in_for_the_session() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let attack = format!(
            "rm -f /run/stockade/session.sock; mv /run/stockade /run/old; touch /run/stockade/x && echo made
            mv /run/stockade/session.sock /tmp; ln -sf /tmp/fake /run/stockade/session.sock
            {STOCKADE} inside"
        );
        let said = INSIDE
            .command(laptop, "bash")
            .args(["-c", &attack])
            .run()
            .expect("it ends");
        assert!(said.stdout().starts_with("inside session "), "{said:?}");
        // With mounts of one's own the path can be another's; who asks there is told no.
        let attack = format!(
            "mkdir -p /tmp/own; exec 3< <(python3 -c \"$1\" /tmp/own/session.sock); read -u 3 line
            unshare -Urm bash -c 'mount --bind /tmp/own /run/stockade && {STOCKADE} inside'
            unshare -Urmp --fork bash -c 'mount --bind /tmp/own /run/stockade && {STOCKADE} inside'"
        );
        let nested = Place::Nested
            .command(laptop, "bash")
            .args(["-c", &attack, "x", FAKE]);
        let said = nested.run().expect("it ends").stdout();
        assert!(
            said.contains("which is not outside, listens there"),
            "{said}"
        );
    });
}

#[test]
fn f15_whoever_is_not_of_the_session_gets_no_answer() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let line = "echo \"pid $$\"; exec sleep 60";
        let session = laptop
            .stockade(["run", "--", "bash", "-c", line])
            .spawn()
            .expect("spawn");
        session.expect("pid").expect("a session");
        // The user's own programs outside see the socket through /proc.
        let ask = "import os, socket
for number in os.listdir('/proc'):
    try:
        if open(f'/proc/{number}/comm').read() != 'sleep\\n': continue
        peer = socket.socket(socket.AF_UNIX)
        os.chdir(f'/proc/{number}/root/run/stockade')
        peer.connect('session.sock')
        print('connected')
        peer.sendall(b'{\"ask\":\"inside\"}\\n')
        print('said', peer.recv(4096))
    except (OSError, BrokenPipeError) as error: print(type(error).__name__)
";
        let asked = laptop.command("/usr/bin/python3").args(["-IS", "-c", ask]);
        let said = asked.run().expect("it ends").stdout();
        assert!(
            said.contains("connected"),
            "the socket is not found: {said}"
        );
        assert!(!said.contains("protocol"), "{said}");
        // Positive control: the same bytes, from inside.
        let ask = "import socket
peer = socket.socket(socket.AF_UNIX)
peer.connect('/run/stockade/session.sock')
peer.sendall(b'{\"ask\":\"inside\"}\\n')
print('said', peer.recv(4096))";
        let said = INSIDE.python(laptop, ask).run().expect("it ends").stdout();
        assert!(said.contains("protocol"), "{said}");
    });
}

#[test]
fn f15_a_flood_of_the_sessions_socket_keeps_nobody_from_asking() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let script = format!(
            "exec 3< <(python3 -c \"$1\"); read -u 3 line
            for number in 1 2 3 4 5 6 7 8; do {STOCKADE} inside --quiet && echo answered; done
            exit 7"
        );
        let flooded = INSIDE
            .command(laptop, "bash")
            .args(["-c", &script, "x", FLOOD]);
        let output = flooded.run().expect("it ends").expect_code(7);
        assert_eq!(output.stdout().matches("answered").count(), 8, "{output:?}");
    });
}
