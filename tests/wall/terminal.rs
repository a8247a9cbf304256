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

/// Starts a program on a kernel that has no Landlock, by its own account. Only Landlock keeps signals
/// of this kind in, where there is no filter for them.
const WITHOUT_LANDLOCK: &str = r#"import ctypes, os, struct, sys
filter = b''.join(struct.pack('HBBI', *step) for step in [
    (0x20, 0, 0, 0), (0x15, 0, 1, 444), (6, 0, 0, 0x50026), (6, 0, 0, 0x7fff0000)])
libc = ctypes.CDLL(None)
kept = ctypes.create_string_buffer(filter)
program = struct.pack('HxxxxxxP', 4, ctypes.addressof(kept))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"#;

/// The kernel signals the foreground group of the terminal whenever it can take output again.
const NEWS: &str = r#"import fcntl, os, sys, time
terminal = os.open('/dev/tty', os.O_RDWR | os.O_NONBLOCK)
flags = fcntl.fcntl(terminal, fcntl.F_GETFL)
for ask in [lambda: fcntl.fcntl(terminal, 10, 9),
            lambda: fcntl.fcntl(terminal, fcntl.F_SETFL, flags | fcntl.FASYNC),
            lambda: fcntl.ioctl(terminal, 0x5452, b'\1\0\0\0')]:
    try: ask()
    except OSError as error: print('refused', error.errno, flush=True)
end = time.monotonic() + 1
while time.monotonic() < end:
    try: os.write(terminal, b'\0' * 4096)
    except BlockingIOError: time.sleep(0.01)
print('survived', flush=True)
"#;

#[test]
fn news_of_the_terminal_signal_nobody_outside() {
    test(|caller| {
        let project = caller.project();
        caller.write(project.join("old.py"), WITHOUT_LANDLOCK);
        caller.write(project.join("news.py"), NEWS);
        let mut shell = Shell::start(caller);
        // Positive control: without the sandbox, it kills whatever has the foreground.
        shell.type_line("sh -c 'python3 news.py </dev/null >out; true'");
        assert_eq!(shell.last_code(), "137");
        for start in ["python3 old.py ", ""] {
            shell.type_line(&format!(
                "{start}stockade run -- python3 news.py </dev/null >out 2>err"
            ));
            assert_eq!(shell.last_code(), "0", "{start}");
            let out = std::fs::read_to_string(project.join("out")).unwrap();
            assert_eq!(out, "refused 1\nrefused 1\nsurvived\n");
        }
    });
}

#[test]
fn the_callers_terminal_is_not_left_with_flags_that_refuse() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        let mut code = |line: &str| {
            shell.type_line(line);
            shell.last_code()
        };
        let set = "python3 -c 'import fcntl, os; fcntl.fcntl(1, 4, fcntl.fcntl(1, 3) | os.O_APPEND | os.O_NONBLOCK)'";
        let ask = "python3 -c 'import fcntl, os; exit(bool(fcntl.fcntl(1, 3) & (os.O_APPEND | os.O_NONBLOCK)))'";
        assert_eq!(code(&format!("stockade run -- {set}")), "0");
        assert_eq!(code(ask), "0");
        // Positive control: without Stockade they stay.
        assert_eq!(code(set), "0");
        assert_eq!(code(ask), "1");
    });
}

/// Who owns the device of the terminal can let everybody open it.
#[test]
fn the_callers_terminal_is_not_opened_to_others() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        let mut code = |line: &str| {
            shell.type_line(line);
            shell.last_code()
        };
        let has = |mode: &str| format!("test $(stat -c %a $(tty)) = {mode}");
        let open = "python3 -c 'import os; os.fchmod(0, 0o666)'";
        assert_eq!(code("chmod 600 $(tty)"), "0");
        assert_eq!(code(&format!("stockade run -- {open}")), "0");
        assert_eq!(code(&has("600")), "0");
        // Positive control: without Stockade it stays.
        assert_eq!(code(open), "0");
        assert_eq!(code(&has("666")), "0");
    });
}

/// A terminal without a size is taken for one that nobody uses, by the next session.
#[test]
fn the_callers_terminal_keeps_a_size() {
    test(|caller| {
        let mut shell = Shell::start(caller);
        let mut code = |line: &str| {
            shell.type_line(line);
            shell.last_code()
        };
        let has = |size: &str| format!("test \"$(stty size)\" = '{size}'");
        assert_eq!(code("stty rows 30 cols 90"), "0");
        for none in ["rows 0 cols 0", "rows 0", "cols 0"] {
            assert_eq!(code(&format!("stockade run -- stty {none}")), "0");
            assert_eq!(code(&has("30 90")), "0");
        }
        // Positive control: another size stays, and so does none without Stockade.
        assert_eq!(code("stockade run -- stty rows 40 cols 100"), "0");
        assert_eq!(code(&has("40 100")), "0");
        assert_eq!(code("stty rows 0 cols 0"), "0");
        assert_eq!(code(&has("0 0")), "0");
    });
}

/// Asks for news of the terminal that the shell gave it, and there is some.
const LISTENER: &str = r#"import fcntl, os, signal, time
signal.signal(signal.SIGIO, lambda *_: print('heard', flush=True))
fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
# One that was killed has left it on.
flags = fcntl.fcntl(0, fcntl.F_GETFL) & ~fcntl.FASYNC
fcntl.fcntl(0, fcntl.F_SETFL, flags | fcntl.FASYNC | os.O_NONBLOCK)
end = time.monotonic() + 1
while time.monotonic() < end:
    try: os.write(0, b'\0' * 4096)
    except BlockingIOError: time.sleep(0.01)
fcntl.fcntl(0, fcntl.F_SETFL, flags)
"#;

#[test]
fn nobody_inside_chooses_the_signal_for_news_of_the_callers_terminal() {
    test(|caller| {
        let project = caller.project();
        caller.write(project.join("listener.py"), LISTENER);
        let choose = |signal: u8| format!("perl -e 'fcntl(STDIN, 10, {signal}) or exit 3'");
        let mut shell = Shell::start(caller);
        let mut code = |line: &str| {
            shell.type_line(line);
            shell.last_code()
        };
        const LISTEN: &str = "sh -c 'python3 listener.py >out; exit $?'";
        assert_eq!(code(LISTEN), "0");
        let out = std::fs::read_to_string(project.join("out")).unwrap();
        assert!(out.contains("heard"), "{out}");
        // Positive control: who has the terminal later gets the signal that another one chose.
        assert_eq!(code(&choose(9)), "0");
        assert_eq!(code(LISTEN), "137");
        assert_eq!(code(&choose(0)), "0");
        assert_eq!(code(&format!("stockade run -- {}", choose(9))), "3");
        assert_eq!(code(LISTEN), "0");
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
