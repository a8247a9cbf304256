//! What a program inside can do to whoever has the terminal after it (P4, P13).
//!
//! `terminal.py` is the terminal: it answers questions as well-known ones do, and keeps what is
//! typed into the shell after the session.

use std::fs;

use stockade_world::{Command, Laptop, Size, World, eventually, test};

use crate::support::standard;

const TERMINAL: &str = include_str!("terminal.py");

/// A question of each kind, the one with an answer of the program's choice last.
const QUESTIONS: &[u8] =
    b"\x1b[c\x1b[5n\x1b[6n\x1b[>q\x1b[?u\x1b]10;?\x1b\\\x1b]11;?\x07\x1bP$qm\x1b\\\
    \x1bP+q544e\x1b\\\x1b]52;c;\ntouch planted\n\x1b\\\x1b]52;c;?\x1b\\";

/// What became of a line at the terminal.
#[derive(Debug)]
struct Seen {
    /// What the shell was typed after it, as Python shows bytes.
    typed: String,
    /// What could be read.
    screen: String,
    /// Modes that are not the ordinary ones.
    modes: String,
    /// All that came to the terminal.
    raw: String,
}

const NOTHING: &str = "b''";

fn at_terminal(laptop: &Laptop, kind: &str, delay: u32, line: &str) -> Seen {
    at_named_terminal(laptop, kind, None, delay, line, "")
}

fn at_named_terminal(
    laptop: &Laptop,
    kind: &str,
    name: Option<&str>,
    delay: u32,
    line: &str,
    keys: &str,
) -> Seen {
    let mut terminal = terminal(laptop, kind, delay, line);
    if !keys.is_empty() {
        terminal = terminal.arg(keys);
    }
    if let Some(name) = name {
        terminal = terminal.env("KIND_TERM", name);
    }
    seen(terminal)
}

fn terminal(laptop: &Laptop, kind: &str, delay: u32, line: &str) -> Command {
    fs::write(laptop.workspace().join("questions"), QUESTIONS).expect("write");
    let _ = fs::remove_file(laptop.workspace().join("typed.bin"));
    laptop
        .command("/usr/bin/python3")
        .args(["-IS", "-c", TERMINAL, kind, &delay.to_string(), line])
}

fn seen(terminal: Command) -> Seen {
    let output = terminal.run().expect("the end").expect_success().stdout();
    let mut lines = output.lines().map(str::to_owned);
    let mut next = || lines.next().expect("a line");
    Seen {
        typed: next(),
        screen: next(),
        modes: next(),
        raw: next(),
    }
}

/// The kinds of terminals, with how long each takes to answer.
const TERMINALS: [(&str, u32); 5] = [
    ("xterm", 0),
    ("xterm", 150),
    ("foot", 50),
    ("kitty", 100),
    ("tmux", 150),
];

#[test]
fn p13_the_terminals_answers_are_not_typed_into_the_callers_shell() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (kind, delay) in TERMINALS {
            let bare = at_terminal(laptop, kind, delay, "cat questions");
            assert!(bare.typed.contains("touch planted"), "{kind}: {bare:?}");
            assert!(bare.typed.contains("\\x1b[0n"), "{kind}: {bare:?}");
            let line = "stockade run --quiet -- cat questions";
            let walled = at_terminal(laptop, kind, delay, line);
            assert_eq!(walled.typed, NOTHING, "{kind} {delay}: {walled:?}");
            let (_, end) = walled.raw.split_once("\\x18").expect("the reset");
            assert!(!end.contains("^["), "{kind}: an echo: {walled:?}");
        }
        // Much later, as over a bad network.
        let line = "stockade run --quiet -- cat questions";
        let slow = at_terminal(laptop, "xterm", 600, line);
        assert_eq!(slow.typed, NOTHING, "{slow:?}");
    });
}

#[test]
fn p13_a_terminal_that_has_much_to_draw_is_waited_for() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let line = |draws: u32| format!("bash -c 'printf \"\\e[{draws}b\"; cat questions'");
        let bare = at_terminal(laptop, "foot", 0, &line(1000));
        assert!(bare.typed.contains("touch planted"), "{bare:?}");
        // Longer than a terminal is given to answer.
        let line = format!("stockade run --quiet -- {}", line(2000));
        let walled = at_terminal(laptop, "foot", 0, &line);
        assert_eq!(walled.typed, NOTHING, "{walled:?}");
        assert!(!walled.screen.contains("WARNING"), "{walled:?}");
    });
}

#[test]
fn p13_a_terminal_that_still_answers_is_heard_out() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        // For three seconds, longer than a terminal is given to answer.
        let ask = |last: &str| {
            format!("bash -c 'for i in {{1..300}}; do printf \"\\e[5n\"; done; {last}'")
        };
        let typed = |line: &str| {
            let paced = terminal(laptop, "tmux", 0, line).env("PACE", "10");
            seen(paced)
        };
        let bare = typed(&ask("stty raw -echo"));
        assert!(bare.typed.contains("\\x1b[0n"), "{bare:?}");
        let walled = typed(&format!("stockade run --quiet -- {}", ask("true")));
        assert_eq!(walled.typed, NOTHING, "{walled:?}");
        assert!(!walled.screen.contains("WARNING"), "{walled:?}");
        // And the same of one that is suspended.
        let line = format!(
            "set -m; stockade run --quiet -- {}; kill -KILL %1",
            ask("kill -STOP $$")
        );
        let walled = typed(&line);
        assert_eq!(walled.typed, NOTHING, "{walled:?}");
    });
}

/// The command makes signals of what the user types next, or the terminal answers. In the end they
/// would be signals to the warden, which ends its search at the first and itself at the second.
#[test]
fn p13_the_end_is_not_interrupted_by_keys_that_the_command_chose() {
    const ATTACK: &str = "import os, subprocess, termios
subprocess.run('git init -q a/b && git -C a/b config core.fsmonitor /tmp/evil', shell=True)
for i in range(30):
    for j in range(1000): os.makedirs(f'many/{i}/{j}', exist_ok=True)
modes = termios.tcgetattr(0)
modes[3] &= ~(termios.ECHO | termios.ICANON)
modes[6][termios.VINTR], modes[6][termios.VQUIT], modes[6][termios.VSUSP] = b't', b's', b'u'
termios.tcsetattr(0, termios.TCSADRAIN, modes)
";
    test(&standard(), |world| {
        let laptop = world.laptop();
        fs::write(laptop.workspace().join("attack.py"), ATTACK).expect("write");
        let press = |keys: &str| {
            let line = "set -m; rm -rf a; stockade run -- python3 attack.py; \
                        stty -a; echo '<end>'";
            seen(terminal(laptop, "xterm", 10, line).env("PRESSED", keys))
        };
        let walled = press("status ");
        assert!(!walled.screen.contains("interrupted"), "{walled:?}");
        let settings = fs::read_to_string(laptop.workspace().join("a/b/.git/config"));
        let settings = settings.expect("a file");
        assert!(!settings.contains("fsmonitor"), "{settings}: {walled:?}");
        // What it left on purpose is there after, but for keys that everybody types.
        assert!(walled.screen.contains("intr = ^C;"), "{walled:?}");
        assert!(walled.screen.contains(" -icanon"), "{walled:?}");
        // The user's own key for that is heard at the same time.
        let is_heard = || press("\u{3}").screen.contains("interrupted");
        assert!((0..3).any(|_| is_heard()), "the user's key is not heard");
    });
}

#[test]
fn p13_no_way_to_end_lets_an_answer_through() {
    const FOREGROUND: &str = "import os, signal
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
terminal = os.open('/dev/tty', os.O_RDWR)
os.tcsetpgrp(terminal, os.getpgrp())
os.write(terminal, open('questions', 'rb').read())
";
    test(&standard(), |world| {
        let laptop = world.laptop();
        fs::write(laptop.workspace().join("foreground.py"), FOREGROUND).expect("write");
        for inside in [
            // Killed, with the terminal in a mode of its own; with output to elsewhere.
            "bash -c 'stty raw; cat questions; kill -KILL $$'",
            "bash -c 'cat questions > /dev/tty; exit 3' > out 2>&1 < /dev/null",
            // By somebody who outlives the command, and never stops asking.
            "bash -c '(while :; do cat questions; done) & sleep 0.1'",
            // The same answers as a plain question of the warden's own would get, first.
            "bash -c 'for i in {1..200}; do printf \"\\e[5n\\e[6n\"; done; cat questions'",
            // In an unfinished sequence, and where nobody else is understood.
            "bash -c 'cat questions; printf \"\\e]52;c;?\"'",
            "bash -c 'cat questions; printf \"\\e[3;4r\\e[?6h\\e[?1049h\\eP\"'",
            // Through the pipe nothing comes back, but the terminal is there all the same.
            "bash -c 'cat questions > /dev/tty' | cat",
            // By a command that makes its own group the foreground, which it was not given.
            "python3 foreground.py | cat",
            "python3 foreground.py < /dev/null",
            "python3 foreground.py < /dev/null > out 2>&1",
        ] {
            let line = format!("stockade run --quiet -- {inside}");
            let seen = at_terminal(laptop, "xterm", 50, &line);
            assert_eq!(seen.typed, NOTHING, "{inside}: {seen:?}");
        }
        // In a session that the terminal does not control, as after `su -c`.
        let line = "setsid --wait stockade run --quiet -- cat questions";
        let seen = at_terminal(laptop, "xterm", 50, line);
        assert_eq!(seen.typed, NOTHING, "{seen:?}");
    });
}

#[test]
fn p13_a_suspended_session_leaves_no_answer_to_the_shell() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let stop = |prefix: &str| {
            format!("set -m; {prefix}bash -c 'cat questions; kill -STOP $$'; kill -KILL %1")
        };
        let bare = at_terminal(laptop, "foot", 100, &stop(""));
        assert!(bare.typed.contains("touch planted"), "{bare:?}");
        let walled = at_terminal(laptop, "foot", 100, &stop("stockade run --quiet -- "));
        assert_eq!(walled.typed, NOTHING, "{walled:?}");
    });
}

/// The whole attack: the shell that the user types at next runs what the terminal answered.
#[test]
fn p13_an_answer_is_not_run_by_an_interactive_shell() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let planted = laptop.workspace().join("planted");
        at_terminal(
            laptop,
            "xterm",
            50,
            "-i stockade run --quiet -- cat questions",
        );
        assert!(!planted.exists());
        at_terminal(laptop, "xterm", 50, "-i cat questions");
        assert!(planted.exists());
    });
}

#[test]
fn p04_the_receipt_cannot_be_kept_from_the_screen() {
    const RECEIPT: &str = "stockade: denied tcp://10.20.0.5:80";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let flow = "python3 -c \"import termios; termios.tcflow(1, termios.TCOOFF)\"";
        let exclusive = "python3 -c \"import fcntl, termios; fcntl.ioctl(1, termios.TIOCEXCL)\"";
        let discipline = "python3 -c \"import fcntl, struct; \
                          fcntl.ioctl(1, 0x5423, struct.pack(chr(105), 27))\"";
        for attack in [
            "printf \"\\e[8m\"",
            "printf \"\\e[5i\"",
            "printf \"\\e[?2026h\"",
            "printf \"\\e]0;\"",
            "printf \"\\eP\"",
            "printf \"\\e[?1049h\\e[8m\"",
            flow,
            exclusive,
            discipline,
            "printf \"\\e[?1003h\\e[8m\"; stty opost olcuc",
        ] {
            let hide = format!("(exec 3<>/dev/tcp/10.20.0.5/80) 2>/dev/null; {attack}");
            let line = format!("stockade run -- bash -c '{hide}'; echo '<end>' > /dev/tty");
            let seen = at_terminal(laptop, "xterm", 10, &line);
            assert!(seen.screen.contains(RECEIPT), "{attack}: {seen:?}");
            // And the terminal can be opened and written to after.
            assert!(seen.screen.contains("<end>"), "{attack}: {seen:?}");
            assert_eq!(seen.modes, "[]", "{attack}");
        }
        // What hides a line there hides it without a sandbox.
        let line = "printf '\\e[8m'; echo hidden";
        let control = at_terminal(laptop, "xterm", 10, line);
        assert_eq!(control.screen, NOTHING, "{control:?}");
    });
}

/// What resets the terminal has to wait until the terminal takes it.
#[test]
fn p04_a_full_terminal_gets_its_reset_too() {
    // The terminal draws for some seconds and reads nothing. Then all that the kernel keeps is full.
    const FILL: &str = "import os, socket, time
if os.environ.get('STOCKADE'): socket.socket().connect_ex(('10.20.0.5', 80))
os.write(1, b'\\x1b[?1003h\\x1b[?1006h\\x1b[>31u\\x1b[8m\\x1b[5000b')
time.sleep(0.1)
terminal = os.open('/dev/tty', os.O_WRONLY | os.O_NONBLOCK)
for again in range(100):
    try:
        while True: os.write(terminal, bytes(1))
    except BlockingIOError: time.sleep(0.002)
";
    test(&standard(), |world| {
        let laptop = world.laptop();
        fs::write(laptop.workspace().join("fill.py"), FILL).expect("write");
        let bare = at_terminal(laptop, "kitty", 10, "python3 fill.py; echo hidden");
        assert_eq!(bare.screen, NOTHING, "{bare:?}");
        assert!(bare.modes.contains("1003"), "{bare:?}");
        let walled = at_terminal(laptop, "kitty", 10, "stockade run -- python3 fill.py");
        let receipt = "stockade: denied tcp://10.20.0.5:80";
        assert!(walled.screen.contains(receipt), "{walled:?}");
        assert_eq!(walled.modes, "[]", "{walled:?}");
    });
}

#[test]
fn p04_modes_that_a_session_leaves_are_put_back() {
    const MODES: &str = "printf \"\\e[?1049h\\e[?1000h\\e[?1003h\\e[?1006h\\e[?1004h\\e[?2004h\\e[?25l\
        \\e[?7l\\e[?1h\\e=\\e[>31u\\e[>4;2m\\e[?2031h\\e[?2048h\\e[?9001h\\e[1\\047z\\e[4h\\e[3;9r\\e]8;;file:///\\e\\\\\\\\\
        \\e[12l\\e[?8l\\e[?1046l\\e G\\eV\\e[>1;3m\\e[>2;3m\"";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let bare = at_terminal(laptop, "kitty", 10, &format!("bash -c '{MODES}'"));
        for mode in [
            "1000",
            "1003",
            "1004",
            "1049",
            "2004",
            "25",
            "7",
            "kitty",
            "keys",
            "keypad",
            "link",
            "margins",
            "'-4'",
            "9001",
            "locator",
            "'-12'",
            "'8'",
            "1046",
            "8-bit",
            "guarded",
            "cursor keys",
            "function keys",
        ] {
            assert!(bare.modes.contains(mode), "{mode}: {bare:?}");
        }
        let line = format!("stockade run --quiet -- bash -c '{MODES}'");
        let walled = at_terminal(laptop, "kitty", 10, &line);
        assert_eq!(walled.modes, "[]", "{walled:?}");
        // A reader of the output may have a screen of its own.
        let line = format!(
            "printf '\\e[?1049h\\e='; stockade run --quiet -- bash -c '{MODES} >/dev/tty' | cat"
        );
        let piped = at_terminal(laptop, "kitty", 10, &line);
        assert_eq!(piped.modes, "['1', '1049', 'keypad']");
    });
}

#[test]
fn nothing_is_printed_for_a_terminal_that_is_dumb_or_used_by_others() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let line = "stockade run --quiet -- true";
        let dumb = at_named_terminal(laptop, "xterm", Some("dumb"), 0, line, "");
        assert_eq!(dumb.raw, NOTHING);
        // In the background of a shell with job control.
        let line = "set -m; stockade run --quiet -- true & wait $!";
        let background = at_terminal(laptop, "xterm", 0, line);
        assert!(!background.raw.contains("\\x1b"), "{background:?}");
        // The control: it is printed otherwise.
        let line = "stockade run --quiet -- true";
        assert!(
            at_terminal(laptop, "xterm", 0, line)
                .raw
                .contains("\\x1b[6n")
        );
    });
}

/// Runs a line in a window of tmux, and returns what the window shows when the line is done.
fn in_tmux(world: &World, line: &str) -> (String, String) {
    let laptop = world.laptop();
    let directory = tempfile::tempdir().expect("a directory");
    // Its own, since a server that was told to end may still be there.
    let socket = directory.path().join("tmux");
    let done = laptop.workspace().join("done");
    let _ = fs::remove_file(&done);
    let tmux = |arguments: &[&str]| {
        let command = laptop.command("tmux").args(["-f", "/dev/null", "-S"]);
        let command = command.arg(&socket).args(arguments.iter().copied());
        command.run().expect("tmux").expect_success().stdout()
    };
    let script = format!(
        "{line}; stty raw -echo; timeout --foreground 1.5 cat > typed.bin; touch done; sleep 1000"
    );
    tmux(&[
        "new-session",
        "-d",
        "-x",
        "60",
        "-y",
        "12",
        "bash",
        "-c",
        &script,
    ]);
    eventually("the line has run", stockade_world::PATIENCE, || {
        done.exists()
    })
    .expect("the end");
    let screen = tmux(&["capture-pane", "-p", "-e"]);
    let cursor = tmux(&[
        "display-message",
        "-p",
        "#{cursor_x} #{cursor_y} #{alternate_on}",
    ]);
    tmux(&["kill-server"]);
    let typed = fs::read(laptop.workspace().join("typed.bin")).expect("a file");
    (
        String::from_utf8_lossy(&typed).into_owned(),
        format!("{screen}{cursor}"),
    )
}

#[test]
fn p13_in_a_real_tmux_no_answer_is_typed_and_the_screen_stays() {
    test(&standard(), |world| {
        fs::write(world.laptop().workspace().join("questions"), QUESTIONS).expect("write");
        let (typed, _) = in_tmux(world, "cat questions");
        assert!(typed.contains("\u{1b}[0n"), "{typed:?}");
        let (typed, _) = in_tmux(world, "stockade run --quiet -- cat questions");
        assert_eq!(typed, "");
        // As without the sandbox: colours, the cursor in the middle of a line, a full window.
        for before in [
            "printf 'one\\ntwo \\e[31mred\\e[0m and'",
            "seq 40; printf x",
            "printf '\\e[5;20Hhere\\e[9;3H'",
            // A program has used the other screen before.
            "printf '\\e[?1049h\\e[9;9Hx\\e[?1049l'; seq 7",
        ] {
            let (_, bare) = in_tmux(world, &format!("{before}; true"));
            let (_, walled) = in_tmux(world, &format!("{before}; stockade run --quiet -- true"));
            assert_eq!(walled, bare, "{before}");
        }
        // A pager in the pipeline has the terminal to itself.
        let (_, bare) = in_tmux(
            world,
            "(sleep 2; tmux send-keys q) & seq 100 | less -X; true",
        );
        let (_, walled) = in_tmux(
            world,
            "(sleep 2; tmux send-keys q) & stockade run --quiet -- seq 100 | less -X; true",
        );
        assert_eq!(walled, bare);
        // What a program that draws the whole screen leaves, killed.
        let (_, walled) = in_tmux(
            world,
            "echo before; stockade run --quiet -- bash -c 'printf \"\\e[?1049h\\e[2J\\e[3;5r\\e[4;4Hx\"; kill -KILL $$'; echo after",
        );
        assert!(walled.starts_with("before\nafter\n"), "{walled}");
        assert!(walled.ends_with("0 2 0\n"), "{walled}");
    });
}

#[test]
fn p13_who_types_after_the_end_is_heard() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        // The fence is down when the line goes on.
        let line = "stockade run --quiet -- cat questions; echo type!";
        let seen = at_named_terminal(laptop, "kitty", None, 50, line, "hello");
        assert_eq!(seen.typed, "b'hello'", "{seen:?}");
        let vim = laptop
            .stockade(["run", "--quiet", "--", "vim", "-u", "NONE", "-i", "NONE"])
            .terminal(Size::default())
            .expect("a terminal");
        vim.expect("VIM").expect("the screen");
    });
}
