//! A session from its start to its end: streams, signals, exit code, and nothing left
//! behind. The details of terminals and signals are tests of the wall; here the whole
//! program is seen with a jail around.

use std::fs;

use stockade_world::{Login, PATIENCE, Shape, Signal, Size, Standard, World, eventually, test};

use super::place::Place;
use crate::support::standard;

const INSIDE: Place<'_> = Place::Inside(&[]);

#[test]
fn the_exit_code_is_the_commands() {
    test(&standard(), |world| {
        for (line, code) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 128 + 15)] {
            let output = INSIDE.shell(world.laptop(), line).run();
            output.expect("stockade ends").expect_code(code);
        }
        for (program, code) in [("/etc/passwd", 126), ("no-such-program", 127)] {
            let output = INSIDE.command(world.laptop(), program).run();
            let output = output.expect("stockade ends").expect_code(code);
            assert!(output.stderr().contains(program), "{output:?}");
        }
    });
}

#[test]
fn streams_are_the_callers() {
    test(&standard(), |world| {
        let megabyte = vec![b'x'; 1 << 20];
        let line = "cat; echo aside >&2";
        let command = INSIDE.shell(world.laptop(), line).input(megabyte.clone());
        let output = command.run().expect("stockade ends").expect_success();
        assert!(output.stdout == megabyte, "{} bytes", output.stdout.len());
        assert_eq!(output.stderr(), "aside\n");
    });
}

/// A command that tells when it is there and which signal it gets.
const LISTENER: &str = "
    trap 'echo caught INT; exit 7' INT
    trap 'echo caught TERM; exit 8' TERM
    echo ready
    while :; do sleep 0.1; done";

#[test]
fn ctrl_c_reaches_the_command() {
    test(&standard(), |world| {
        let command = INSIDE.shell(world.laptop(), LISTENER);
        let mut terminal = command.terminal(Size::default()).expect("a terminal");
        terminal.expect("ready").expect("the command runs");
        terminal.write("\x03").expect("Ctrl-C");
        terminal.expect("caught INT").expect("the signal arrives");
        assert_eq!(terminal.wait().expect("the end").code(), Some(7));
    });
}

#[test]
fn a_signal_to_stockade_reaches_the_command() {
    test(&standard(), |world| {
        let running = INSIDE.shell(world.laptop(), LISTENER).spawn();
        let running = running.expect("stockade starts");
        running.expect("ready").expect("the command runs");
        running.signal(Signal::TERM).expect("signal");
        let output = running.wait().expect("the end").expect_code(8);
        assert_eq!(output.stdout(), "ready\ncaught TERM\n");
    });
}

/// A command with children, open connections and flows, and files in every place that it
/// can write to.
const BUSY: &str = "
import os, signal, socket, subprocess, sys
# Python's own handler is not heard by a read that begins right after it.
signal.signal(signal.SIGINT, signal.SIG_DFL)
for place in ['/tmp', '/var/tmp', '/dev/shm', '/run', os.environ['HOME']]:
    try:
        open(place + '/left-behind', 'w').close()
    except OSError:
        pass
sleepers = [subprocess.Popen(['sleep', '1000'], start_new_session=True) for _ in range(3)]
stream = socket.create_connection(('93.184.216.34', 7))
datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagrams.sendto(b'hello', ('2606:2800:220:1::34', 7))
datagrams.recv(100)
print('busy', flush=True)
sys.stdin.readline()
";

/// Ends a busy session with `end`, and waits until nothing of it is left.
fn assert_nothing_left(world: &World, end: impl FnOnce(stockade_world::Running)) {
    let _net = Standard::serve(world).expect("servers");
    let before = world.snapshot().expect("a snapshot");
    let busy = INSIDE.python(world.laptop(), BUSY).spawn();
    let busy = busy.expect("stockade starts");
    busy.expect("busy").expect("the command runs");
    let during = world.snapshot().expect("a snapshot");
    let traces = before.differences(&during);
    assert!(traces.len() > 10, "the detector is blind: {traces:?}");
    end(busy);
    world
        .wait_until_restored(&before, PATIENCE)
        .expect("nothing is left");
}

#[test]
fn a_normal_end_leaves_nothing_behind() {
    test(&standard(), |world| {
        assert_nothing_left(world, |mut busy| {
            busy.write("\n").expect("let it end");
            busy.wait().expect("the end").expect_success();
        });
    });
}

#[test]
fn a_signal_leaves_nothing_behind() {
    test(&standard(), |world| {
        assert_nothing_left(world, |busy| {
            busy.signal(Signal::TERM).expect("signal");
            // Before `wait` closes its input, at which it would end by itself.
            eventually("it has ended", PATIENCE, || {
                busy.has_ended().expect("state")
            })
            .expect("an end");
            busy.wait().expect("the end").expect_code(128 + 15);
        });
    });
}

#[test]
fn the_wardens_violent_death_leaves_nothing_behind() {
    test(&standard(), |world| {
        assert_nothing_left(world, |busy| {
            busy.signal(Signal::KILL).expect("signal");
            busy.wait().expect("the end").expect_code(128 + 9);
        });
    });
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let before = world.snapshot().expect("a snapshot");
        let command = INSIDE.python(world.laptop(), BUSY);
        let mut terminal = command.terminal(Size::default()).expect("a terminal");
        terminal.expect("busy").expect("the command runs");
        terminal.write("\x03").expect("Ctrl-C");
        assert!(!terminal.wait().expect("the end").success());
        world
            .wait_until_restored(&before, PATIENCE)
            .expect("nothing is left");
    });
}

/// The web works and the intranet is denied.
fn assert_jailed(world: &World) {
    let _net = Standard::serve(world).expect("servers");
    let curl = |url: &str| {
        let command = INSIDE.command(world.laptop(), "curl");
        command.args(["-sS", url]).run().expect("curl ends")
    };
    for url in ["http://www.example.com/", "https://mirror.example.org/"] {
        assert!(
            curl(url)
                .expect_success()
                .stdout()
                .starts_with("hello from")
        );
    }
    for url in ["http://10.20.0.5/", "http://[fd00:20::5]/"] {
        let output = curl(url).expect_code(7);
        assert!(output.stderr().contains("to allow it: --allow tcp://"));
    }
}

#[test]
fn a_session_works_in_a_container() {
    test(&standard().shape(Shape::Container), |world| {
        assert_jailed(world);
    });
}

#[test]
fn a_session_works_for_root() {
    test(&standard().login(Login::Root), |world| assert_jailed(world));
}

#[test]
fn a_profile_with_a_slip_in_its_name_is_told_when_its_agent_starts() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let file = laptop.home().join(".config/stockade/config.toml");
        fs::write(file, "[profiles.claud.network]\ninternet = false\n").expect("a file");
        let told = |options: &[&str]| {
            let command = laptop.stockade(["run"]).args(options);
            let output = command.args(["--", "true"]).run().expect("stockade ends");
            let output = output.expect_success();
            output.stderr().contains("did you mean `claude`?")
        };
        assert!(told(&["--profile", "claude"]));
        // It may be meant as it is.
        assert!(!told(&[]));
        assert!(!told(&["--profile", "claud"]));
    });
}
