//! Signals that the warden gets are for the command; dispositions and masks are the
//! caller's.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use crate::support::{Caller, WALLED, kill, output};

/// Starts a script behind the wall and waits until it says "up".
fn started(caller: &Caller, script: &str) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = caller
        .script(script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("up"));
    (child, lines)
}

#[test]
fn signals_to_the_warden_reach_the_command() {
    let caller = Caller::new();
    for signal in [
        "HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "ALRM", "WINCH",
    ] {
        let script = format!(
            "trap 'echo got {signal}; exit 3' {signal}; echo up; while :; do sleep 0.02; done"
        );
        let (mut child, mut lines) = started(&caller, &script);
        kill(signal, child.id());
        assert_eq!(lines.next(), Some(format!("got {signal}")));
        assert_eq!(child.wait().unwrap().code(), Some(3), "{signal}");
    }
}

#[test]
fn a_signal_that_the_command_does_not_handle_kills_it() {
    let caller = Caller::new();
    let (mut child, _lines) = started(&caller, "echo up; exec sleep 1000");
    kill("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_signal_by_kill_is_for_the_command_alone_not_its_children() {
    let caller = Caller::new();
    let script = "trap 'echo parent' USR1
        bash -c 'trap \"echo child\" USR1; echo up; for i in {1..50}; do sleep 0.01; done' &
        child=$!
        while ! wait $child; do :; done
        echo end";
    let (mut child, lines) = started(&caller, script);
    kill("USR1", child.id());
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines, ["parent", "end"]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_stopped_command_stops_the_warden_and_continues_with_it() {
    let caller = Caller::new();
    let (mut child, mut lines) = started(&caller, "echo up; kill -STOP $$; echo again");
    let stat = format!("/proc/{}/stat", child.id());
    crate::support::wait_until("the warden stops", || {
        std::fs::read_to_string(&stat).unwrap().contains(") T ")
    });
    kill("CONT", child.id());
    assert_eq!(lines.next().as_deref(), Some("again"));
    assert!(child.wait().unwrap().success());
}

#[test]
fn ignored_signals_stay_ignored() {
    let caller = Caller::new();
    let ignoring = |signals: &str, wall: &str| {
        let mut command = caller.command("bash");
        let script = format!("trap '' {signals}; exec {wall} grep SigIgn /proc/self/status");
        command.args(["-c", &script, WALLED]);
        let line = output(command);
        let bits = line.trim().strip_prefix("SigIgn:\t").unwrap();
        // Without the two signals that the C library keeps for itself.
        u64::from_str_radix(bits, 16).unwrap() & !(0b11 << 31)
    };
    let without_wall = ignoring("HUP USR2", "");
    assert_ne!(without_wall, ignoring("HUP", ""));
    assert_eq!(without_wall, ignoring("HUP USR2", "\"$0\" --"));
}

#[test]
fn blocked_signals_stay_blocked() {
    let caller = Caller::new();
    let mut command = caller.command("perl");
    let script = "use POSIX; \
        sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGUSR1, SIGCHLD)); exec @ARGV";
    command.args([
        "-e",
        script,
        WALLED,
        "--",
        "grep",
        "SigBlk",
        "/proc/self/status",
    ]);
    assert_eq!(output(command), "SigBlk:\t0000000000010200\n");
}

#[test]
fn a_caller_that_ignores_its_children_does_not_lose_ours() {
    let caller = Caller::new();
    let mut command = caller.command("perl");
    let script = "$SIG{CHLD} = 'IGNORE'; exec @ARGV";
    command.args(["-e", script, WALLED, "--", "sh", "-c", "exit 5"]);
    assert_eq!(command.status().unwrap().code(), Some(5));
}
