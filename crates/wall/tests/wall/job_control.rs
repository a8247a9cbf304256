//! Job control with a real shell at a real terminal: as without the wall (F12).

use crate::{pty::Pty, support::Caller};

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";
const CTRL_BACKSLASH: &str = "\x1c";

#[test]
fn ctrl_c_is_the_commands_to_handle() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line(
        "$W -- bash -c 'trap \"echo caught; exit 5\" INT; echo up; while :; do sleep 0.02; done'",
    );
    pty.expect("up");
    pty.type_keys(CTRL_C);
    pty.expect("caught");
    assert_eq!(pty.last_code(), "5");
}

#[test]
fn ctrl_c_and_ctrl_backslash_kill_what_does_not_handle_them() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    for (keys, code) in [(CTRL_C, "130"), (CTRL_BACKSLASH, "131")] {
        pty.type_line("$W -- sh -c 'echo up; exec sleep 1000'");
        pty.expect("up");
        pty.type_keys(keys);
        assert_eq!(pty.last_code(), code);
    }
}

#[test]
fn ctrl_z_stops_the_job_and_fg_continues_it() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line("$W -- bash -c 'echo up; read line; echo \"got<$line>\"'");
    pty.expect("up");
    for _ in 0..3 {
        pty.wait_for_foreground("bash");
        pty.type_keys(CTRL_Z);
        pty.expect("Stopped");
        // The shell has the terminal again.
        pty.type_line("read line; echo \"shell got<$line>\"");
        pty.type_line("to the shell");
        pty.expect("shell got<to the shell>");
        pty.type_line("fg");
        pty.expect("$W --");
    }
    pty.type_line("to the command");
    pty.expect("got<to the command>");
    assert_eq!(pty.last_code(), "0");
}

#[test]
fn ctrl_z_before_the_job_was_continued_stops_it_again() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line("$W -- bash -c 'echo up; read line; echo \"got<$line>\"'");
    pty.expect("up");
    pty.wait_for_foreground("bash");
    pty.type_keys(CTRL_Z);
    pty.expect("Stopped");
    // To the warden, as if in the moment between `fg` and its reaction: the kernel takes
    // a SIGCONT back when a SIGTSTP follows.
    pty.type_line("kill -CONT %1; kill -TSTP %1");
    pty.type_line("until jobs -s | grep Stopped; do sleep 0.02; done; echo seen");
    pty.expect("seen");
    pty.type_line("fg");
    pty.expect("$W --");
    pty.type_line("to the command");
    pty.expect("got<to the command>");
    assert_eq!(pty.last_code(), "0");
}

#[test]
fn bg_lets_the_job_run_and_input_stops_it_again() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line(
        "$W -- bash -c 'echo up; until test -e go; do sleep 0.02; done; echo went; \
         read line; echo \"got<$line>\"'",
    );
    pty.expect("up");
    pty.type_keys(CTRL_Z);
    pty.expect("Stopped");
    pty.type_line("bg");
    pty.type_line("touch go");
    pty.expect("went");
    // It reads from the terminal, which is the shell's: the shell sees it stop.
    pty.type_line("until jobs -s | grep Stopped; do sleep 0.02; done; echo seen");
    pty.expect("seen");
    pty.type_line("fg");
    pty.expect("$W --");
    pty.type_line("hello");
    pty.expect("got<hello>");
    assert_eq!(pty.last_code(), "0");
}

#[test]
fn a_job_started_in_the_background_asks_for_the_terminal_like_any_other() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line("$W -- bash -c 'read line; echo \"got<$line>\"' &");
    pty.type_line("until jobs -s | grep Stopped; do sleep 0.02; done; echo seen");
    pty.expect("seen");
    pty.type_line("fg");
    pty.expect("$W --");
    pty.type_line("hello");
    pty.expect("got<hello>");
}

#[test]
fn a_background_job_that_ends_does_not_take_the_terminal_away() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line("$W -- bash -c 'until test -e go; do sleep 0.02; done' &");
    pty.type_line("touch go; wait; read line; echo \"shell got<$line>\"");
    pty.type_line("hello");
    pty.expect("shell got<hello>");
}

#[test]
fn a_pipeline_leaves_the_terminal_to_who_reads_it() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    // As `stockade run -- git log | less`, with the command still running.
    pty.type_line(
        "$W -- bash -c 'echo data; sleep 1000' | \
         (read data; echo up; read key </dev/tty; echo \"$data, key<$key>\")",
    );
    pty.expect("up");
    pty.type_line("q");
    pty.expect("data, key<q>");
    pty.type_keys(CTRL_C);
    pty.type_line("echo \"code<${PIPESTATUS[0]}>\"");
    pty.expect("code<130>");
}

#[test]
fn a_command_in_a_pipeline_gets_the_terminal_when_it_asks() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line("$W -- bash -c 'read line; echo \"got<$line>\"' | cat");
    pty.type_line("hello");
    pty.expect("got<hello>");
    pty.type_line("echo x | $W -- bash -c 'read x; read line </dev/tty; echo \"$x<$line>\"'");
    pty.type_line("again");
    pty.expect("x<again>");
    assert_eq!(pty.last_code(), "0");
}

#[test]
fn ctrl_z_stops_a_whole_pipeline() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    // Before the command has asked for the terminal, and after it was given it.
    pty.type_line("$W -- bash -c 'echo up; until test -e go; do sleep 0.02; done' | cat");
    pty.expect("up");
    pty.type_keys(CTRL_Z);
    pty.expect("Stopped");
    pty.type_line("touch go; fg");
    assert_eq!(pty.last_code(), "0");

    pty.type_line("$W -- bash -c 'read x; echo up; read line; echo \"got<$line>\"' | cat");
    pty.type_line("first");
    pty.expect("up");
    pty.type_keys(CTRL_Z);
    pty.expect("Stopped");
    pty.type_line("fg");
    pty.expect("$W --");
    pty.type_line("hello");
    pty.expect("got<hello>");
    assert_eq!(pty.last_code(), "0");
}

#[test]
fn a_script_stops_and_continues_with_the_command_it_called() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line(
        "sh -c '$W -- bash -c \"echo up; read line; echo got-\\$line\"; echo script-end'",
    );
    pty.expect("up");
    pty.type_keys(CTRL_Z);
    pty.expect("Stopped");
    pty.type_line("fg");
    pty.expect("sh -c");
    pty.type_line("hello");
    pty.expect("got-hello");
    pty.expect("script-end");
}

#[test]
fn a_shell_inside_has_job_control_of_its_own() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line("$W -- bash --norc --noprofile --noediting -i");
    pty.type_line("bash -c 'echo up; read line; echo \"got<$line>\"'");
    pty.expect("up");
    pty.type_keys(CTRL_Z);
    pty.expect("Stopped");
    pty.type_line("echo \"inside<$STOCKADE>\"");
    pty.expect("inside<1>");
    pty.type_line("fg");
    pty.expect("bash -c");
    pty.type_line("hello");
    pty.expect("got<hello>");
    // The inner shell suspends itself; the outer one takes over, and hands back.
    pty.type_line("suspend -f");
    pty.expect("Stopped");
    pty.type_line("echo \"outside<$STOCKADE>\"");
    pty.expect("outside<>");
    pty.type_line("fg");
    pty.expect("$W --");
    pty.type_line("echo \"inside again<$STOCKADE>\"; exit 6");
    pty.expect("inside again<1>");
    assert_eq!(pty.last_code(), "6");
}

#[test]
fn a_suspended_job_takes_along_what_it_runs_in_the_background() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line(
        "$W -- bash -c 'setsid bash -c \"while :; do echo x >> ticks; sleep 0.02; done\" & \
         until test -e ticks; do sleep 0.02; done; echo up; until test -e go; do sleep 0.02; done'",
    );
    pty.expect("up");
    pty.wait_for_foreground("bash");
    pty.type_keys(CTRL_Z);
    pty.expect("Stopped");
    pty.type_line(
        "before=$(wc -l < ticks); sleep 0.3; echo \"more<$(($(wc -l < ticks) - before))>\"",
    );
    pty.expect("more<0>");
    pty.type_line("fg");
    pty.expect("$W --");
    pty.wait_for_foreground("bash");
    pty.type_keys(CTRL_Z);
    pty.expect("Stopped");
    // Continued without the terminal: so are they.
    pty.type_line("bg; until test $(wc -l < ticks) -gt $((before + 10)); do sleep 0.02; done");
    pty.type_line("echo \"it goes on\"");
    pty.expect("it goes on");
    pty.type_line("touch go; wait; echo \"the end<$?>\"");
    pty.expect("the end<0>");
}

#[test]
fn jobs_of_a_shell_inside_are_after_a_suspension_what_they_were_before() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line("$W -- bash --norc --noprofile --noediting -i");
    pty.type_line("sleep 1001 & sleep 1002 & kill -STOP %1; echo \"started<$STOCKADE>\"");
    pty.expect("started<1>");
    pty.type_line("until jobs -s | grep 1001; do sleep 0.02; done; echo ready");
    pty.expect("ready");
    // A shell with job control that waits for a child all the time, at a terminal of its own.
    pty.type_line(
        "python3 -c 'import pty; \
         pty.spawn([\"bash\", \"--norc\", \"-ic\", \"while :; do sleep 0.5; done\"])' \
         > other < /dev/null & sleep 0.5; echo \"also<ready>\"",
    );
    pty.expect("also<ready>");
    for _ in 0..10 {
        pty.type_line("suspend -f");
        pty.expect("Stopped");
        pty.type_line("fg; echo \"code<$?>\"");
        pty.expect("$W --");
        pty.type_line("echo \"inside<$STOCKADE>\"");
        let seen = pty.expect("inside<1>");
        assert!(!seen.contains("Stopped"), "{seen}");
    }
    pty.type_line("jobs; cat other; echo end");
    let jobs = pty.expect("end");
    assert_eq!(jobs.matches("Stopped").count(), 1, "{jobs}");
    assert_eq!(jobs.matches("Running").count(), 2, "{jobs}");
    pty.type_line("cut -d' ' -f3 /proc/$(jobs -p %1)/stat /proc/$(jobs -p %2)/stat | paste -sd,");
    pty.expect("T,S");
    pty.type_line("kill -KILL %1 %2 %3; wait; exit 7");
    pty.expect("code<7>");
}
