//! The warden's death, whole or in part, at any time (N18): everything inside dies with it, and
//! nothing is left behind or open.

use std::fs;
use std::thread;
use std::time::Duration;

use stockade_world::{PATIENCE, Running, Signal, Standard, World, test};

use super::probe::{INSIDE, PROBE, Watch};
use crate::support::standard;

/// A command with a child in another session that ignores what it can, and both of them busy
/// asking the internet.
const BUSY: &str = r#"
ask() { while :; do (exec 3<>/dev/tcp/93.184.216.34/7) 2>/dev/null; done; }
(trap '' HUP INT TERM; ask) &
setsid sleep 1000 &
echo up; ask"#;

fn busy(world: &World) -> Running {
    let command = INSIDE.command(world.laptop(), "bash").args(["-c", BUSY]);
    let running = command.spawn().expect("start");
    running.expect("up").expect("up");
    running
}

/// The warden's threads: number and name.
fn threads(warden: &Running) -> Vec<(String, String)> {
    let tasks = format!("/proc/{}/task", warden.pid().as_raw_nonzero());
    let named = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).expect("name");
        (
            task.file_name().to_string_lossy().into_owned(),
            name.trim().to_owned(),
        )
    };
    fs::read_dir(tasks)
        .expect("tasks")
        .map(|task| named(task.expect("task")))
        .collect()
}

/// Nothing of the session is there any more, and no packet comes.
fn is_over(world: &World, before: &stockade_world::Snapshot) {
    world
        .wait_until_restored(before, PATIENCE)
        .expect("nothing left");
    let watch = Watch::on(&[world.host("web")]);
    thread::sleep(Duration::from_millis(50));
    watch.expect_nothing();
}

#[test]
fn n18_with_the_warden_everything_inside_dies() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let before = world.snapshot().expect("snapshot");
        let warden = busy(world);
        net.web_echo.connections().wait_for(1).expect("it is busy");
        warden.signal(Signal::KILL).expect("kill");
        warden.wait().expect("end").expect_code(128 + 9);
        is_over(world, &before);
    });
}

#[test]
fn n18_with_any_thread_of_the_warden_everything_inside_dies() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let before = world.snapshot().expect("snapshot");
        for name in ["stockade", "jail", "gate"] {
            let warden = busy(world);
            net.web_echo.connections().clear();
            net.web_echo.connections().wait_for(1).expect("it is busy");
            let (thread, _) = threads(&warden)
                .into_iter()
                .find(|(_, known)| known == name)
                .expect(name);
            let pid = warden.pid().as_raw_nonzero();
            let kill = format!("import ctypes; ctypes.CDLL(None).tgkill({pid}, {thread}, 9)");
            let python = world
                .laptop()
                .command("/usr/bin/python3")
                .args(["-IS", "-c", &kill]);
            python.run().expect("run").expect_success();
            warden.wait().expect("end").expect_code(128 + 9);
            is_over(world, &before);
        }
    });
}

#[test]
fn n18_a_death_at_any_moment_of_the_start_leaves_nothing_behind() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let before = world.snapshot().expect("snapshot");
        for milliseconds in (0..60).step_by(5) {
            let command = INSIDE.command(world.laptop(), "bash").args(["-c", BUSY]);
            let warden = command.spawn().expect("start");
            // Not to wait for something: the moment is what varies.
            thread::sleep(Duration::from_millis(milliseconds));
            warden.signal(Signal::KILL).expect("kill");
            warden.wait().expect("end").expect_code(128 + 9);
            world
                .wait_until_restored(&before, PATIENCE)
                .expect("nothing left");
        }
    });
}

/// A gate that has died by itself, of an error that it cannot go on with, closes the jail.
#[test]
fn n18_without_the_gate_nothing_is_reachable() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let watch = Watch::on(&[world.host("web"), world.host("intranet")]);
        let questions = "tcp://93.184.216.34:7 udp://93.184.216.34:7 tcp://10.20.0.5:7\n";
        let probe = |injected: &[&str]| {
            let strace = world
                .laptop()
                .command("strace")
                .args(["-qq", "-f", "--seccomp-bpf", "-o", "/dev/null"])
                .args(["-e", "trace=epoll_wait"])
                .args(injected)
                .args(["/run/world/bin/stockade", "run", "--quiet", "--"])
                .args(["/usr/bin/python3", "-IS", "-c", PROBE]);
            strace.input(questions).run().expect("strace")
        };
        // Only the gate waits with this call. Whether the session goes on without it or ends is
        // the same here.
        let without = probe(&["-e", "inject=epoll_wait:error=EBADF:when=1+"]);
        assert!(without.stderr().contains("gate"), "{without:?}");
        assert!(!without.stdout().contains("answer"), "{without:?}");
        watch.expect_nothing();
        let with = probe(&[]);
        assert_eq!(with.stdout().matches("answer").count(), 2, "{with:?}");
    });
}
