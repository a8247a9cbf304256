//! The terminal itself: its size, its modes, and what may not be done to it (F8, F12).

use crate::{
    pty::Pty,
    support::{Caller, mark, processes_with, wait_until},
};

#[test]
fn a_change_of_size_reaches_the_command() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    let script = "$SIG{WINCH} = sub { print qx(stty size </dev/tty) }; $| = 1; \
                  print qq(up\\n); sleep 1000 while 1";
    pty.type_line(&format!("$W -- perl -e '{script}'"));
    pty.expect("up");
    pty.resize(33, 99);
    pty.expect("33 99");
    pty.type_keys("\x03");
    // In a pipeline the command is not in the foreground, and is told all the same.
    pty.type_line(&format!("$W -- perl -e '{script}' | cat"));
    pty.expect("up");
    pty.resize(44, 88);
    pty.expect("44 88");
}

#[test]
fn the_modes_of_a_killed_command_are_undone() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line("$W -- bash -c 'stty raw; kill -KILL $$'");
    assert_eq!(pty.last_code(), "137");
    pty.type_line("stty -a | grep -o -- '-\\?icanon'; echo end");
    assert_eq!(pty.expect("end").trim(), "icanon");
}

#[test]
fn the_modes_that_a_command_leaves_on_purpose_stay() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    pty.type_line("$W -- stty intr ^T");
    assert_eq!(pty.last_code(), "0");
    pty.type_line("stty -a | grep -o 'intr = ..'; echo end");
    assert_eq!(pty.expect("end").trim(), "intr = ^T");
}

#[test]
fn nothing_can_be_typed_into_the_callers_terminal() {
    let caller = Caller::new();
    let mut pty = Pty::shell(&caller);
    let attack = "perl -e 'ioctl(STDIN, 0x5412, $_) or print qq(refused-), 0+$! for split //, qq(echo typed\\n)'";
    // Positive control, where the kernel still has it: the shell runs what was "typed".
    let legacy = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    if legacy.is_ok_and(|value| value == "1\n") {
        pty.type_line(attack);
        pty.expect("typed");
    } else {
        eprintln!("no positive control: this kernel has TIOCSTI switched off");
    }
    pty.type_line(&format!("$W -- {attack}; echo; echo end"));
    let screen = pty.expect("end");
    assert!(screen.contains("refused-1"), "{screen}");
    assert!(!screen.contains("typed"), "{screen}");
    assert_eq!(pty.last_code(), "0");
}

#[test]
fn a_closed_terminal_ends_everything_inside() {
    let caller = Caller::new();
    let mark = mark("hangup");
    let mut pty = Pty::shell(&caller);
    pty.type_line(&format!(
        "$W -- bash -c 'echo up; sleep 1000 & wait' {mark}"
    ));
    pty.expect("up");
    assert!(processes_with(&mark).len() >= 4);
    drop(pty);
    wait_until("everything is gone", || processes_with(&mark).is_empty());
}

#[test]
fn a_closed_terminal_ends_a_stopped_job_too() {
    let caller = Caller::new();
    let mark = mark("hangup-stopped");
    let mut pty = Pty::shell(&caller);
    pty.type_line(&format!("$W -- bash -c 'echo up; read line' {mark}"));
    pty.expect("up");
    pty.wait_for_foreground("bash");
    pty.type_keys("\x1a");
    pty.expect("Stopped");
    assert!(processes_with(&mark).len() >= 4);
    drop(pty);
    wait_until("everything is gone", || processes_with(&mark).is_empty());
}
