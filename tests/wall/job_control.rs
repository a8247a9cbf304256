//! Job control with a real shell at a real terminal: as without the wall (F12).

use super::{shell::Shell, test};

const CTRL_C: &str = "\x03";
const CTRL_BACKSLASH: &str = "\x1c";

/// Reads a line from the terminal, and says which.
const READ: &str = "stockade run -- bash -c 'echo up; read line; echo \"got<$line>\"'";

#[test]
fn ctrl_c_is_the_commands_to_handle() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line(
        "stockade run -- bash -c 'trap \"echo caught; exit 5\" INT; echo up; while :; do sleep 0.02; done'",
    );
        shell.expect("up");
        shell.type_keys(CTRL_C);
        shell.expect("caught");
        assert_eq!(shell.last_code(), "5");
    });
}

#[test]
fn ctrl_c_and_ctrl_backslash_kill_what_does_not_handle_them() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        for (keys, code) in [(CTRL_C, "130"), (CTRL_BACKSLASH, "131")] {
            shell.type_line("stockade run -- sh -c 'echo up; exec sleep 1000'");
            shell.expect("up");
            shell.type_keys(keys);
            assert_eq!(shell.last_code(), code);
        }
    });
}

#[test]
fn ctrl_z_stops_the_job_and_fg_continues_it() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line(READ);
        shell.expect("up");
        for _ in 0..3 {
            shell.wait_for_foreground("bash");
            shell.stop();
            // The shell has the terminal again.
            shell.type_line("read line; echo \"shell got<$line>\"");
            shell.type_line("to the shell");
            shell.expect("shell got<to the shell>");
            shell.foreground("stockade run --");
        }
        shell.type_line("to the command");
        shell.expect("got<to the command>");
        assert_eq!(shell.last_code(), "0");
    });
}

#[test]
fn ctrl_z_before_the_job_was_continued_stops_it_again() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line(READ);
        shell.expect("up");
        shell.wait_for_foreground("bash");
        shell.stop();
        // To the warden, as if in the moment between `fg` and its reaction: the kernel takes
        // a SIGCONT back when a SIGTSTP follows.
        shell.type_line("kill -CONT %1; kill -TSTP %1");
        shell.wait_for_stopped_job();
        shell.foreground("stockade run --");
        shell.type_line("to the command");
        shell.expect("got<to the command>");
        assert_eq!(shell.last_code(), "0");
    });
}

#[test]
fn bg_lets_the_job_run_and_input_stops_it_again() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line(
            "stockade run -- bash -c 'echo up; until test -e go; do sleep 0.02; done; echo went; \
         read line; echo \"got<$line>\"'",
        );
        shell.expect("up");
        shell.stop();
        shell.type_line("bg");
        shell.type_line("touch go");
        shell.expect("went");
        // It reads from the terminal, which is the shell's: the shell sees it stop.
        shell.wait_for_stopped_job();
        shell.foreground("stockade run --");
        shell.type_line("hello");
        shell.expect("got<hello>");
        assert_eq!(shell.last_code(), "0");
    });
}

#[test]
fn a_job_started_in_the_background_asks_for_the_terminal_like_any_other() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line("stockade run -- bash -c 'read line; echo \"got<$line>\"' &");
        shell.wait_for_stopped_job();
        shell.foreground("stockade run --");
        shell.type_line("hello");
        shell.expect("got<hello>");
    });
}

#[test]
fn a_background_job_that_ends_does_not_take_the_terminal_away() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line("stockade run -- bash -c 'until test -e go; do sleep 0.02; done' &");
        shell.type_line("touch go; wait; read line; echo \"shell got<$line>\"");
        shell.type_line("hello");
        shell.expect("shell got<hello>");
    });
}

#[test]
fn a_pipeline_leaves_the_terminal_to_who_reads_it() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        // As `stockade run -- git log | less`, with the command still running.
        shell.type_line(
            "stockade run -- bash -c 'echo data; sleep 1000' | \
         (read data; echo up; read key </dev/tty; echo \"$data, key<$key>\")",
        );
        shell.expect("up");
        shell.type_line("q");
        shell.expect("data, key<q>");
        shell.type_keys(CTRL_C);
        shell.type_line("echo \"code<${PIPESTATUS[0]}>\"");
        shell.expect("code<130>");
    });
}

#[test]
fn a_command_in_a_pipeline_gets_the_terminal_when_it_asks() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line("stockade run -- bash -c 'read line; echo \"got<$line>\"' | cat");
        shell.type_line("hello");
        shell.expect("got<hello>");
        shell.type_line(
            "echo x | stockade run -- bash -c 'read x; read line </dev/tty; echo \"$x<$line>\"'",
        );
        shell.type_line("again");
        shell.expect("x<again>");
        assert_eq!(shell.last_code(), "0");
    });
}

#[test]
fn ctrl_z_stops_a_whole_pipeline() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        // Before the command has asked for the terminal, and after it was given it.
        shell.type_line(
            "stockade run -- bash -c 'echo up; until test -e go; do sleep 0.02; done' | cat",
        );
        shell.expect("up");
        shell.stop();
        shell.type_line("touch go; fg");
        assert_eq!(shell.last_code(), "0");

        shell.type_line(
            "stockade run -- bash -c 'read x; echo up; read line; echo \"got<$line>\"' | cat",
        );
        shell.type_line("first");
        shell.expect("up");
        shell.stop();
        shell.foreground("stockade run --");
        shell.type_line("hello");
        shell.expect("got<hello>");
        assert_eq!(shell.last_code(), "0");
    });
}

#[test]
fn a_script_stops_and_continues_with_the_command_it_called() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line(
        "sh -c 'stockade run -- bash -c \"echo up; read line; echo got-\\$line\"; echo script-end'",
    );
        shell.expect("up");
        shell.stop();
        shell.foreground("sh -c");
        shell.type_line("hello");
        shell.expect("got-hello");
        shell.expect("script-end");
    });
}

#[test]
fn a_shell_inside_has_job_control_of_its_own() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line("stockade run -- bash --norc --noprofile --noediting -i");
        shell.type_line("bash -c 'echo up; read line; echo \"got<$line>\"'");
        shell.expect("up");
        shell.stop();
        shell.type_line("echo \"inside<$STOCKADE>\"");
        shell.expect("inside<1>");
        shell.foreground("bash -c");
        shell.type_line("hello");
        shell.expect("got<hello>");
        // The inner shell suspends itself; the outer one takes over, and hands back.
        shell.type_line("suspend -f");
        shell.expect("Stopped");
        shell.type_line("echo \"outside<$STOCKADE>\"");
        shell.expect("outside<>");
        shell.foreground("stockade run --");
        shell.type_line("echo \"inside again<$STOCKADE>\"; exit 6");
        shell.expect("inside again<1>");
        assert_eq!(shell.last_code(), "6");
    });
}

#[test]
fn a_suspended_job_takes_along_what_it_runs_in_the_background() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line(
            "stockade run -- bash -c 'setsid bash -c \"while :; do echo x >> ticks; sleep 0.02; done\" & \
             until test -e ticks; do sleep 0.02; done; echo up; until test -e go; do sleep 0.02; done'",
        );
        shell.expect("up");
        shell.wait_for_foreground("bash");
        shell.stop();
        shell.type_line(
            "before=$(wc -l < ticks); sleep 0.3; echo \"more<$(($(wc -l < ticks) - before))>\"",
        );
        shell.expect("more<0>");
        shell.type_line("fg");
        shell.expect("stockade run --");
        shell.wait_for_foreground("bash");
        shell.stop();
        // Continued without the terminal: so are they.
        shell
            .type_line("bg; until test $(wc -l < ticks) -gt $((before + 10)); do sleep 0.02; done");
        shell.type_line("echo \"it goes on\"");
        shell.expect("it goes on");
        shell.type_line("touch go; wait; echo \"the end<$?>\"");
        shell.expect("the end<0>");
    });
}

#[test]
fn jobs_of_a_shell_inside_are_after_a_suspension_what_they_were_before() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line("stockade run -- bash --norc --noprofile --noediting -i");
        shell.type_line("sleep 1001 & sleep 1002 & kill -STOP %1; echo \"started<$STOCKADE>\"");
        shell.expect("started<1>");
        shell.type_line("until jobs -s | grep 1001; do sleep 0.02; done; echo ready");
        shell.expect("ready");
        // A shell with job control that waits for a child all the time, at a terminal of its own.
        shell.type_line(
            "python3 -c 'import pty; \
             pty.spawn([\"bash\", \"--norc\", \"-ic\", \"while :; do sleep 0.5; done\"])' \
             > other < /dev/null & sleep 0.5; echo \"also<ready>\"",
        );
        shell.expect("also<ready>");
        for _ in 0..10 {
            shell.type_line("suspend -f");
            shell.expect("Stopped");
            shell.type_line("fg; echo \"code<$?>\"");
            shell.expect("stockade run --");
            shell.type_line("echo \"inside<$STOCKADE>\"");
            let seen = shell.expect("inside<1>");
            assert!(!seen.contains("Stopped"), "{seen}");
        }
        shell.type_line("jobs; cat other; echo end");
        let jobs = shell.expect("end");
        assert_eq!(jobs.matches("Stopped").count(), 1, "{jobs}");
        assert_eq!(jobs.matches("Running").count(), 2, "{jobs}");
        shell.type_line(
            "cut -d' ' -f3 /proc/$(jobs -p %1)/stat /proc/$(jobs -p %2)/stat | paste -sd,",
        );
        shell.expect("T,S");
        // A shell with stopped jobs does not end.
        shell.type_line(
            "kill -KILL %1 %2 %3; while jobs -s | grep -q .; do sleep 0.02; done; wait; exit 7",
        );
        shell.expect("code<7>");
    });
}

#[test]
fn a_stopped_job_whose_shell_is_killed_ends_as_any_other() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        let job = "sh -c 'echo up; exec sleep 1000'";
        for job in [job.to_owned(), format!("stockade run -- {job}")] {
            shell.type_line("bash --norc --noprofile --noediting -i");
            shell.type_line(&job);
            shell.expect("up");
            shell.stop();
            shell.type_line("jobs -p > job; kill -KILL $$");
            shell.expect("Killed");
            shell.type_line(
                "while kill -0 $(cat job) 2> job.error; do sleep 0.02; done; echo ended",
            );
            shell.expect("ended");
        }
    });
}
