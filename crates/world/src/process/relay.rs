//! A terminal of the world, shown on the caller's.
//!
//! The caller's terminal belongs to a session and a `/dev/pts` outside, of
//! which the world knows nothing. So an interactive program gets a terminal
//! inside, and bytes are carried between the two.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::termios::{
    OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use super::Command;
use super::terminal::{Size, pair, start_on};
use crate::error::{Doing, Result};

pub(super) fn run(command: &Command) -> Result<ExitStatus> {
    let stdin = io::stdin();
    if !isatty(&stdin) || !isatty(io::stdout()) {
        let mut plain = command.as_std(&command.program, &command.arguments);
        plain
            .stdin(Stdio::inherit())
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit());
        let mut child = command.start(plain)?;
        return child.wait().doing("wait for a process");
    }

    let (master, slave) = pair(Size::default()).doing("open a terminal")?;
    if let Ok(size) = tcgetwinsize(&stdin) {
        tcsetwinsize(&master, size).doing("size the terminal")?;
    }
    let mut child = start_on(command, slave)?;
    let _raw = Raw::set().doing("prepare your terminal")?;
    let keys = master.try_clone().doing("share the terminal")?;
    thread::spawn(move || copy_keys(keys));
    let sizes = master.try_clone().doing("share the terminal")?;
    thread::spawn(move || follow_size(&sizes));
    show(master);
    child.wait().doing("wait for a process")
}

fn copy_keys(mut master: File) {
    // Ends with the process: there is no way to take back a started read.
    let _ = io::copy(&mut io::stdin().lock(), &mut master);
}

/// Until the last program has closed the terminal, which reads as an error.
fn show(mut master: File) {
    let mut buffer = [0; 4096];
    let mut stdout = io::stdout();
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        let written = stdout.write_all(buffer.get(..count).unwrap_or_default());
        if written.and_then(|()| stdout.flush()).is_err() {
            return;
        }
    }
}

/// A changed size is announced by a signal, and catching one takes unsafe
/// code. Five looks per second serve a person as well.
fn follow_size(master: &File) {
    let mut last = None;
    while let Ok(size) = tcgetwinsize(io::stdin()) {
        if last.replace((size.ws_row, size.ws_col)) != Some((size.ws_row, size.ws_col))
            && tcsetwinsize(master, size).is_err()
        {
            return;
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// The caller's terminal in raw mode, as long as this lives.
struct Raw(Termios);

impl Raw {
    fn set() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
