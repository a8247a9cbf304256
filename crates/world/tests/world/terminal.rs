//! Programs on a terminal.

use stockade_world::{Builder, Size, test};

#[test]
fn a_shell_has_job_control_on_its_terminal() {
    test(&Builder::new(), |world| {
        let bash = world.laptop().command("bash").args(["--norc", "-i"]);
        let mut terminal = bash
            .env("PS1", "ready> ")
            .terminal(Size::default())
            .unwrap();
        terminal.expect("ready> ").unwrap();
        terminal.write("tty; stty size\n").unwrap();
        terminal.expect("/dev/pts/0").unwrap();
        terminal.expect("24 80").unwrap();
        // Not earlier: Ctrl-Z throws away what was typed ahead.
        terminal.expect("ready> ").unwrap();

        terminal.write("sleep 1000\n").unwrap();
        terminal.expect("sleep 1000").unwrap();
        terminal.expect_foreground("sleep").unwrap();
        terminal.write("\x1a").unwrap();
        terminal.expect("Stopped").unwrap();
        terminal.write("fg\n").unwrap();
        terminal.expect("sleep 1000").unwrap();
        terminal.expect_foreground("sleep").unwrap();
        terminal.write("\x03").unwrap();
        terminal.expect("ready> ").unwrap();
        terminal.write("echo $?; exit 5\n").unwrap();
        terminal.expect("130").unwrap();
        assert_eq!(terminal.wait().unwrap().code(), Some(5));
    });
}

#[test]
fn a_new_size_is_announced() {
    test(&Builder::new(), |world| {
        let line = "trap 'stty size' WINCH; echo up; while :; do sleep 0.01; done";
        let shell = world.laptop().command("bash").args(["-c", line]);
        let terminal = shell.terminal(Size::default()).unwrap();
        terminal.expect("up").unwrap();
        let size = Size {
            rows: 50,
            columns: 132,
        };
        terminal.resize(size).unwrap();
        terminal.expect("50 132").unwrap();
    });
}

#[test]
fn the_pid_is_the_programs_own() {
    test(&Builder::new(), |world| {
        let shell = world.laptop().shell("echo pid $$ end");
        let terminal = shell.terminal(Size::default()).unwrap();
        let pid = terminal.pid().as_raw_nonzero();
        terminal.expect(&format!("pid {pid} end")).unwrap();
    });
}

#[test]
fn without_one_there_is_no_terminal() {
    test(&Builder::new(), |world| {
        let output = world.laptop().shell("tty; : < /dev/tty").run().unwrap();
        assert!(output.stdout().contains("not a tty"), "{output:?}");
        assert!(output.stderr().contains("No such device"), "{output:?}");
    });
}
