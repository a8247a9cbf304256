//! ssh, with a real server. The client's key lies in the workspace, as a key that is meant
//! for the agent does: those of the home directory are not there.

use std::fs;

use stockade_world::{Size, World, test};

use super::daemon::Daemon;
use super::place::Place;
use crate::support::standard;

/// The command line of a client that starts in the workspace.
pub(super) const SSH: &str = "ssh -p 2222 -i deploy-key -o BatchMode=yes \
    -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=known-hosts";

/// A server on the host `web`, port 2222, which lets the owner of `deploy-key` in.
pub(super) fn serve(world: &World) -> Daemon {
    serve_on(world, "web")
}

/// The same on another host.
pub(super) fn serve_on(world: &World, host: &str) -> Daemon {
    let laptop = world.laptop();
    let make = |line: &str| {
        let output = laptop.shell(line).run().expect("the tool ends");
        output.expect_success();
    };
    make("ssh-keygen -q -t ed25519 -N '' -f deploy-key");
    make("dropbearkey -t ed25519 -f /tmp/host-key");
    let public = laptop.workspace().join("deploy-key.pub");
    fs::copy(public, laptop.home().join(".ssh/authorized_keys")).expect("authorize the key");
    // An ordinary user cannot give a terminal to the group `tty`, and without such a group
    // the server does not try.
    laptop
        .write_etc("group", "dev:x:1000:\n")
        .expect("write /etc/group");
    let arguments = ["-F", "-E", "-s", "-p", "2222", "-r", "/tmp/host-key"];
    let arguments = [&arguments[..], &["-P", "/tmp/dropbear.pid"]].concat();
    Daemon::start(world.host(host), 2222, "dropbear", &arguments)
}

#[test]
fn ssh_runs_a_command_with_its_input_output_and_exit_code() {
    test(&standard(), |world| {
        let _server = serve(world);
        let line = format!("{SSH} dev@www.example.com 'tr a-z A-Z; echo aside >&2; exit 3'");
        let command = Place::Inside(&[]).shell(world.laptop(), &line);
        let output = command.input("hello\n").run().expect("ssh ends");
        let output = output.expect_code(3);
        assert_eq!(output.stdout(), "HELLO\n");
        assert!(output.stderr().contains("aside\n"), "{output:?}");
    });
}

#[test]
fn ssh_opens_a_shell_on_a_terminal_of_the_right_size() {
    test(&standard(), |world| {
        let _server = serve(world);
        let line = format!("{SSH} dev@www.example.com");
        let size = Size {
            rows: 33,
            columns: 77,
        };
        let command = Place::Inside(&[]).shell(world.laptop(), &line);
        let mut terminal = command.terminal(size).expect("a terminal");
        terminal.write("stty size; tty\r").expect("type");
        terminal.expect("33 77").expect("the size");
        terminal.expect("/dev/pts/").expect("a terminal");
        // Ctrl-C before the command has started would be the shell's, and lost.
        terminal
            .write("sh -c 'echo sta\"\"rted; exec sleep 100'\r")
            .expect("type");
        terminal.expect("started\r\n").expect("it runs");
        terminal.write("\x03").expect("Ctrl-C");
        terminal.write("echo $((40 + 2))\r").expect("type");
        terminal.expect("42").expect("the shell is still there");
        terminal.write("exit 5\r").expect("type");
        assert_eq!(terminal.wait().expect("the end").code(), Some(5));
    });
}
