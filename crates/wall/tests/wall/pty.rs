//! A terminal, with an interactive shell at it.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::Child,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcgetpgrp, tcsetwinsize},
};

use crate::support::{Caller, PATIENCE, WALLED, wait_until};

/// The keyboard and the screen.
pub(crate) struct Pty {
    master: File,
    shell: Child,
    /// What came to the screen and was not yet expected.
    screen: String,
    /// All that came to the screen, for the message of a failure.
    transcript: String,
}

impl Pty {
    /// An interactive bash, with job control, in which `$W` is the warden. It echoes
    /// nothing, so that what is on the screen is output.
    pub(crate) fn shell(caller: &Caller) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a terminal");
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave: OwnedFd = rustix::fs::open(&name, flags, Mode::empty()).unwrap();

        let mut command = caller.command("setsid");
        command
            .args([
                "--ctty",
                "bash",
                "--norc",
                "--noprofile",
                "--noediting",
                "-i",
            ])
            .env("PS1", "")
            .env("W", WALLED)
            .env("TERM", "dumb")
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave);
        let shell = command.spawn().unwrap();
        drop(command);
        let mut pty = Self {
            master: File::from(master),
            shell,
            screen: String::new(),
            transcript: String::new(),
        };
        pty.type_line("stty -echo; PS2=; echo 'shell '\"is\"' ready'");
        pty.expect("shell is ready");
        pty
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        self.type_keys(&format!("{line}\n"));
    }

    /// Waits for a text on the screen. Returns what came before it.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.screen.find(text) {
                let before = self.screen[..at].to_owned();
                self.screen.drain(..at + text.len());
                return before;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                self.read(left),
                "{text:?} did not come; the screen was:\n{}",
                self.transcript
            );
        }
    }

    /// The exit code of the last command in the shell.
    pub(crate) fn last_code(&mut self) -> String {
        self.type_line("echo \"code<$?>\"");
        self.expect("code<");
        self.expect(">")
    }

    /// Waits until the terminal listens to a group whose leader is `program`, and it runs.
    pub(crate) fn wait_for_foreground(&self, program: &str) {
        wait_until("the terminal is the command's", || {
            let group = tcgetpgrp(&self.master).unwrap().as_raw_nonzero().get();
            let stat = fs::read_to_string(format!("/proc/{group}/stat")).unwrap_or_default();
            group.unsigned_abs() != self.shell.id()
                && stat.contains(&format!(" ({program}) "))
                && !stat.contains(") T ")
        });
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.master, size).unwrap();
    }

    /// Reads what comes within `patience`. Says whether anything did.
    fn read(&mut self, patience: Duration) -> bool {
        let patience = Timespec::try_from(patience).unwrap();
        let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
        if poll(&mut fds, Some(&patience)).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        let Ok(length) = self.master.read(&mut buffer) else {
            // The terminal is closed.
            return false;
        };
        let text = String::from_utf8_lossy(&buffer[..length]);
        self.screen.push_str(&text);
        self.transcript.push_str(&text);
        length > 0
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // Closing the terminal hangs up its session; the shell is ours to collect.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
