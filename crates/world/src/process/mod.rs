//! Programs on the laptop.
//!
//! A program is started from a thread that has moved to the laptop's network
//! and has given up its capabilities, and inherits both. There is no wrapper
//! in between: the pid that a test signals is the program's own.

mod output;
mod relay;
mod running;
mod terminal;
mod transcript;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

pub use output::Output;
pub use running::Running;
pub use terminal::{Size, Terminal};

use crate::error::{Doing, Result};
use crate::net::Host;

/// How long a program may run when the test names no limit.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// With which capabilities programs start.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credentials {
    /// None at all, as for any user.
    Nothing,
    /// None, and none to be had from a file either: a container.
    NothingBounded,
    /// All that uid 0 has in the world.
    Root,
}

/// A program to be run on the laptop, in the manner of `std::process::Command`.
#[derive(Clone, Debug)]
pub struct Command {
    host: Host,
    credentials: Credentials,
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
    input: Option<Vec<u8>>,
    limit: Duration,
}

impl Command {
    pub(crate) fn new(
        host: Host,
        credentials: Credentials,
        program: &OsStr,
        environment: Vec<(String, String)>,
        directory: PathBuf,
    ) -> Self {
        Self {
            host,
            credentials,
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: environment
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            directory,
            input: None,
            limit: LIMIT,
        }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(
            arguments
                .into_iter()
                .map(|argument| argument.as_ref().to_owned()),
        );
        self
    }

    pub fn env(self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let mut command = self.env_remove(&name);
        command
            .environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        command
    }

    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.retain(|(known, _)| known != name.as_ref());
        self
    }

    pub fn env_clear(mut self) -> Self {
        self.environment.clear();
        self
    }

    /// The working directory, instead of the workspace.
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = directory.as_ref().to_owned();
        self
    }

    /// What [`Command::run`] feeds to standard input, which is empty otherwise.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Kill the program, and fail, after this time.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the program to its end.
    pub fn run(mut self) -> Result<Output> {
        let input = self.input.take().unwrap_or_default();
        let mut running = self.spawn()?;
        running.feed(input);
        running.wait()
    }

    /// Starts the program with pipes for its streams, in a process group of
    /// its own, without a terminal.
    pub fn spawn(self) -> Result<Running> {
        let mut command = self.as_std(&self.program, &self.arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let child = self.start(command)?;
        Ok(Running::new(child, self.to_string(), self.limit))
    }

    /// Starts the program in a session of its own on a new terminal.
    pub fn terminal(self, size: Size) -> Result<Terminal> {
        terminal::open(&self, size)
    }

    /// Runs the program for the person at the caller's terminal, or with the
    /// caller's streams if there is none. Without a time limit.
    pub fn attached(self) -> Result<ExitStatus> {
        relay::run(&self)
    }

    fn as_std(&self, program: &OsStr, arguments: &[OsString]) -> std::process::Command {
        let mut command = std::process::Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory);
        command
    }

    fn start(&self, mut command: std::process::Command) -> Result<Child> {
        self.host
            .enter(|| {
                self.credentials.take_on()?;
                command.spawn()
            })
            .doing(format_args!("start `{self}`"))
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.program.to_string_lossy())?;
        for argument in &self.arguments {
            write!(f, " {}", argument.to_string_lossy())?;
        }
        Ok(())
    }
}

impl Credentials {
    /// Changes the calling thread, which can never go back.
    fn take_on(self) -> io::Result<()> {
        clear_ambient_capability_set()?;
        match self {
            // uid 0 gets its capabilities at exec, out of the bounding set.
            Self::Root => return Ok(()),
            Self::Nothing => {}
            Self::NothingBounded => {
                for bit in 0..u64::BITS {
                    match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(
                        1 << bit,
                    )) {
                        Ok(()) => {}
                        // Past the last capability that this kernel knows.
                        Err(rustix::io::Errno::INVAL) => break,
                        Err(errno) => return Err(errno.into()),
                    }
                }
            }
        }
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        Ok(set_capabilities(None, none)?)
    }
}

/// Waits for a child to end without reaping it.
pub(crate) fn exits_within(child: &Child, limit: Duration) -> Result<bool> {
    let wait = || {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pidfd = pidfd_open(pid.ok_or(rustix::io::Errno::SRCH)?, PidfdFlags::empty())?;
        let limit = Timespec::try_from(limit).map_err(|_| rustix::io::Errno::INVAL)?;
        let mut ready = [PollFd::new(&pidfd, PollFlags::IN)];
        // An interrupted wait would only cut the limit short, and no signal
        // handler is installed that could interrupt it.
        Ok::<_, rustix::io::Errno>(poll(&mut ready, Some(&limit))? > 0)
    };
    wait().doing("wait for a process")
}

/// Ends a child and its process group, if it has not ended by itself.
fn kill(child: &mut Child) {
    if matches!(child.try_wait(), Ok(None)) {
        // The group first: once the child is reaped, its number may go to
        // somebody else. A child that has not become a leader yet is alone.
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
        let _ = child.kill();
        let _ = child.wait();
    }
}
