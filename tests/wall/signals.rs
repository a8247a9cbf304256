//! Signals that the warden gets are for the command; dispositions and masks are the
//! caller's.

use stockade_world::{Running, Signal};

use super::{Caller, output, run, test, wait_until};

/// Starts a script behind the wall and waits until it says "up".
fn started(caller: &Caller<'_>, options: &[&str], script: &str) -> Running {
    let session = caller.with(options, script).spawn().unwrap();
    session.expect("up\n").unwrap();
    session
}

#[test]
fn signals_to_the_warden_reach_the_command() {
    test(|caller| {
        for (name, signal) in [
            ("HUP", Signal::HUP),
            ("INT", Signal::INT),
            ("QUIT", Signal::QUIT),
            ("USR1", Signal::USR1),
            ("USR2", Signal::USR2),
            ("TERM", Signal::TERM),
            ("ALRM", Signal::ALARM),
            ("WINCH", Signal::WINCH),
        ] {
            let script = format!(
                "trap 'echo got {name}; exit 3' {name}; echo up; while :; do sleep 0.02; done"
            );
            // With a jail, SIGHUP asks for the configuration to be read again.
            let mode = if name == "HUP" { "none" } else { "jail" };
            let session = started(caller, &["--mode", mode], &script);
            session.signal(signal).unwrap();
            let output = session.wait().unwrap();
            assert_eq!(output.stdout(), format!("up\ngot {name}\n"));
            assert_eq!(output.code(), 3, "{name}");
        }
    });
}

#[test]
fn a_signal_that_the_command_does_not_handle_kills_it() {
    test(|caller| {
        let session = started(caller, &[], "echo up; exec sleep 1000");
        session.signal(Signal::TERM).unwrap();
        assert_eq!(session.wait().unwrap().code(), 143);
    });
}

#[test]
fn a_signal_by_kill_is_for_the_command_alone_not_its_children() {
    test(|caller| {
        let script = "trap 'echo parent' USR1
            bash -c 'trap \"echo child\" USR1; echo up; for i in {1..50}; do sleep 0.01; done' &
            child=$!
            while ! wait $child; do :; done
            echo end";
        let session = started(caller, &[], script);
        session.signal(Signal::USR1).unwrap();
        let output = session.wait().unwrap().expect_success();
        assert_eq!(output.stdout(), "up\nparent\nend\n");
    });
}

#[test]
fn a_stopped_command_stops_the_warden_and_continues_with_it() {
    test(|caller| {
        let session = started(caller, &[], "echo up; kill -STOP $$; echo again");
        let stat = format!("/proc/{}/stat", session.pid().as_raw_nonzero());
        wait_until("the warden stops", || {
            std::fs::read_to_string(&stat).unwrap().contains(") T ")
        });
        session.signal(Signal::CONT).unwrap();
        let output = session.wait().unwrap().expect_success();
        assert_eq!(output.stdout(), "up\nagain\n");
    });
}

#[test]
fn ignored_signals_stay_ignored() {
    test(|caller| {
        let ignoring = |signals: &str, wall: &str| {
            let script = format!("trap '' {signals}; exec {wall} grep SigIgn /proc/self/status");
            let line = output(caller.command("bash").args(["-c", &script]));
            let bits = line.trim().strip_prefix("SigIgn:\t").unwrap();
            // Without the two signals that the C library keeps for itself.
            u64::from_str_radix(bits, 16).unwrap() & !(0b11 << 31)
        };
        let without_wall = ignoring("HUP USR2", "");
        assert_ne!(without_wall, ignoring("HUP", ""));
        assert_eq!(without_wall, ignoring("HUP USR2", "stockade run --"));
    });
}

#[test]
fn blocked_signals_stay_blocked() {
    test(|caller| {
        let script = "use POSIX; \
            sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGUSR1, SIGCHLD)); exec @ARGV";
        let command = caller.command("perl").args(["-e", script]);
        let command = command.args(["stockade", "run", "--", "grep", "SigBlk"]);
        let blocked = output(command.arg("/proc/self/status"));
        assert_eq!(blocked, "SigBlk:\t0000000000010200\n");
    });
}

#[test]
fn a_caller_that_ignores_its_children_does_not_lose_ours() {
    test(|caller| {
        let script = "$SIG{CHLD} = 'IGNORE'; exec @ARGV";
        let command = caller.command("perl").args(["-e", script]);
        let command = command.args(["stockade", "run", "--", "sh", "-c", "exit 5"]);
        assert_eq!(run(command).0, 5);
    });
}
