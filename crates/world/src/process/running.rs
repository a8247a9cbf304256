//! A program that runs with pipes.

use std::io::Write;
use std::process::{Child, ChildStdin};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::transcript::Transcript;
use super::{Output, exits_within, kill};
use crate::error::{Doing, Error, Result};
use crate::wait::PATIENCE;

/// A running program. Killed, with its process group, when dropped.
pub struct Running {
    child: Child,
    name: String,
    stdin: Option<ChildStdin>,
    stdout: Option<Transcript>,
    stderr: Option<Transcript>,
    started: Instant,
    limit: Duration,
}

impl Running {
    pub(super) fn new(mut child: Child, name: String, limit: Duration) -> Self {
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(Transcript::of),
            stderr: child.stderr.take().map(Transcript::of),
            child,
            name,
            started: Instant::now(),
            limit,
        }
    }

    /// The program's own process id, as seen everywhere in the world.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the program itself.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid(), signal).doing(format_args!("signal `{}`", self.name))
    }

    /// Writes to standard input, which stays open.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        match &mut self.stdin {
            Some(stdin) => stdin
                .write_all(bytes.as_ref())
                .doing(format_args!("write to `{}`", self.name)),
            None => Ok(()),
        }
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Writes everything and closes, without waiting for the program to read.
    pub(super) fn feed(&mut self, input: Vec<u8>) {
        if let Some(mut stdin) = self.stdin.take() {
            // A program may end without reading its input; that is its affair.
            thread::spawn(move || drop(stdin.write_all(&input)));
        }
    }

    /// Waits for `text` on standard output, after what was expected before.
    pub fn expect(&self, text: &str) -> Result<String> {
        self.expect_within(text, PATIENCE)
    }

    /// The same with a limit of the caller's.
    pub fn expect_within(&self, text: &str, limit: Duration) -> Result<String> {
        match &self.stdout {
            Some(stdout) => stdout.expect(text, limit).map_err(|error| match error {
                Error::Overdue { what, limit, seen } => Error::Overdue {
                    what: format!("`{}`: {what}", self.name),
                    limit,
                    seen: format!("{seen}\nstderr was:\n{}", self.stderr_so_far()),
                },
                other => other,
            }),
            None => Ok(String::new()),
        }
    }

    pub fn stdout_so_far(&self) -> String {
        self.stdout
            .as_ref()
            .map(Transcript::text)
            .unwrap_or_default()
    }

    pub fn stderr_so_far(&self) -> String {
        self.stderr
            .as_ref()
            .map(Transcript::text)
            .unwrap_or_default()
    }

    /// Has the program ended?
    pub fn has_ended(&self) -> Result<bool> {
        exits_within(&self.child, Duration::ZERO)
    }

    /// Closes standard input and waits for the end of the program *and* of its
    /// output: something it left behind that holds the pipe is an error.
    pub fn wait(mut self) -> Result<Output> {
        self.close_stdin();
        let deadline = self.started + self.limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        if !exits_within(&self.child, left())? {
            return Err(self.overdue("the end"));
        }
        let status = self.child.wait().doing("wait for a process")?;
        let mut streams = Vec::new();
        for transcript in [self.stdout.take(), self.stderr.take()]
            .into_iter()
            .flatten()
        {
            if !transcript.ends_within(left()) {
                return Err(self.overdue("the end of the output after the program's own"));
            }
            streams.push(transcript.bytes());
        }
        let stderr = streams.pop().unwrap_or_default();
        let stdout = streams.pop().unwrap_or_default();
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }

    fn overdue(&self, what: &str) -> Error {
        Error::Overdue {
            what: format!("`{}`: {what}", self.name),
            limit: self.limit,
            seen: format!(
                "stdout was:\n{}\nstderr was:\n{}",
                self.stdout_so_far(),
                self.stderr_so_far()
            ),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}
