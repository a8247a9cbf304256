//! The terminal itself: its size, its modes, and what may not be done to it (F8, F12).

use super::{MARK, processes_with, shell::Shell, test, wait_until};

#[test]
fn a_change_of_size_reaches_the_command() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        let script = "$SIG{WINCH} = sub { print qx(stty size </dev/tty) }; $| = 1; \
                  print qq(up\\n); sleep 1000 while 1";
        shell.type_line(&format!("stockade run -- perl -e '{script}'"));
        shell.expect("up");
        shell.resize(33, 99);
        shell.expect("33 99");
        shell.type_keys("\x03");
        // In a pipeline the command is not in the foreground, and is told all the same.
        shell.type_line(&format!("stockade run -- perl -e '{script}' | cat"));
        shell.expect("up");
        shell.resize(44, 88);
        shell.expect("44 88");
    });
}

#[test]
fn the_modes_of_a_killed_command_are_undone() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line("stockade run -- bash -c 'stty raw; kill -KILL $$'");
        assert_eq!(shell.last_code(), "137");
        shell.type_line("stty -a | grep -o -- '-\\?icanon'; echo end");
        assert_eq!(shell.expect("end").trim(), "icanon");
    });
}

#[test]
fn the_modes_that_a_command_leaves_on_purpose_stay() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line("stockade run -- stty intr ^T");
        assert_eq!(shell.last_code(), "0");
        shell.type_line("stty -a | grep -o 'intr = ..'; echo end");
        assert_eq!(shell.expect("end").trim(), "intr = ^T");
    });
}

#[test]
fn nothing_can_be_typed_into_the_callers_terminal() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        let attack = "perl -e 'ioctl(STDIN, 0x5412, $_) or print qq(refused-), 0+$! for split //, qq(echo typed\\n)'";
        // Positive control, where the kernel still has it: the shell runs what was "typed".
        let legacy = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
        if legacy.is_ok_and(|value| value == "1\n") {
            shell.type_line(attack);
            shell.expect("typed");
        } else {
            eprintln!("no positive control: this kernel has TIOCSTI switched off");
        }
        shell.type_line(&format!("stockade run -- {attack}; echo; echo end"));
        let screen = shell.expect("end");
        assert!(screen.contains("refused-1"), "{screen}");
        assert!(!screen.contains("typed"), "{screen}");
        assert_eq!(shell.last_code(), "0");
    });
}

#[test]
fn a_closed_terminal_ends_everything_inside() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line(&format!(
            "stockade run -- bash -c 'echo up; sleep 1000 & wait' {MARK}"
        ));
        shell.expect("up");
        assert!(processes_with(MARK).len() >= 4);
        drop(shell);
        wait_until("everything is gone", || processes_with(MARK).is_empty());
    });
}

#[test]
fn a_closed_terminal_ends_a_stopped_job_too() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        shell.type_line(&format!(
            "stockade run -- bash -c 'echo up; read line' {MARK}"
        ));
        shell.expect("up");
        shell.wait_for_foreground("bash");
        shell.stop();
        assert!(processes_with(MARK).len() >= 4);
        drop(shell);
        wait_until("everything is gone", || processes_with(MARK).is_empty());
    });
}
