//! An interactive shell at a terminal.

use std::fs;

use stockade_world::{Size, Terminal};

use super::{Caller, wait_until};

/// bash with job control. It echoes nothing, so that what is on the screen is output.
pub(super) struct Shell(Terminal);

impl Shell {
    pub(super) fn start(caller: &Caller<'_>) -> Self {
        let bash = caller
            .command("bash")
            .args(["--norc", "--noprofile", "--noediting", "-i"]);
        let bash = bash.env("PS1", "").env("TERM", "dumb");
        let mut shell = Self(bash.terminal(Size::default()).unwrap());
        shell.type_line("stty -echo; PS2=; echo 'shell '\"is\"' ready'");
        shell.expect("shell is ready");
        shell
    }

    pub(super) fn type_keys(&mut self, keys: &str) {
        self.0.write(keys).unwrap();
    }

    pub(super) fn type_line(&mut self, line: &str) {
        self.type_keys(&format!("{line}\n"));
    }

    /// Waits for a text on the screen. Returns what came before it.
    #[track_caller]
    pub(super) fn expect(&mut self, text: &str) -> String {
        self.0.expect(text).unwrap()
    }

    /// The exit code of the last command in the shell.
    pub(super) fn last_code(&mut self) -> String {
        self.type_line("echo \"code<$?>\"");
        self.expect("code<");
        self.expect(">")
    }

    /// Types Ctrl-Z, which stops the job in the foreground.
    #[track_caller]
    pub(super) fn stop(&mut self) {
        self.type_keys("\x1a");
        self.expect("Stopped");
    }

    /// Continues the job in the foreground. The shell shows its line.
    #[track_caller]
    pub(super) fn foreground(&mut self, line: &str) {
        self.type_line("fg");
        self.expect(line);
    }

    /// Waits until a job in the background has stopped.
    #[track_caller]
    pub(super) fn wait_for_stopped_job(&mut self) {
        self.type_line("until jobs -s | grep Stopped; do sleep 0.02; done; echo seen");
        self.expect("seen");
    }

    /// Waits until the terminal listens to a group whose leader is `program`, and it runs.
    pub(super) fn wait_for_foreground(&self, program: &str) {
        wait_until("the terminal is the command's", || {
            let group = self.0.foreground().unwrap();
            let stat = format!("/proc/{}/stat", group.as_raw_nonzero());
            let stat = fs::read_to_string(stat).unwrap_or_default();
            group != self.0.pid()
                && stat.contains(&format!(" ({program}) "))
                && !stat.contains(") T ")
        });
    }

    pub(super) fn resize(&self, rows: u16, columns: u16) {
        self.0.resize(Size { rows, columns }).unwrap();
    }
}
