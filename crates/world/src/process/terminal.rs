//! A program on a terminal.
//!
//! The world has terminals of its own (`/dev/pts` is private). util-linux'
//! `setsid --ctty` makes the program the leader of a session that the terminal
//! controls, and becomes the program: its pid stays.

use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetpgrp, tcsetwinsize};

use super::transcript::Transcript;
use super::{Command, exits_within, kill};
use crate::error::{Doing, Error, Result};
use crate::tool;
use crate::wait::{PATIENCE, eventually};

/// A terminal's size in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub rows: u16,
    pub columns: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            rows: 24,
            columns: 80,
        }
    }
}

/// A terminal with a program on it. When this is dropped, the program is killed and the terminal
/// hangs up, as when its window is closed.
pub struct Terminal {
    child: Child,
    name: String,
    master: File,
    screen: Transcript,
    /// Held while the screen is read.
    _open: PipeWriter,
    started: Instant,
    limit: Duration,
}

pub(super) fn open(command: &Command, size: Size) -> Result<Terminal> {
    let (master, slave) = pair(size).doing("open a terminal")?;
    let (closed, open) = io::pipe().doing("open a pipe")?;
    let screen = Transcript::of(Screen {
        master: master.try_clone().doing("share the terminal")?,
        closed,
    });
    Ok(Terminal {
        child: start_on(command, slave)?,
        name: command.to_string(),
        master,
        screen,
        _open: open,
        started: Instant::now(),
        limit: command.limit,
    })
}

/// What appears on the terminal, until nobody wants to see it. The kernel hangs a terminal up when
/// the last descriptor of its master is closed, and a thread that reads from one holds one.
struct Screen {
    master: File,
    closed: PipeReader,
}

impl Read for Screen {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut fds = [
            PollFd::new(&self.master, PollFlags::IN),
            PollFd::new(&self.closed, PollFlags::IN),
        ];
        poll(&mut fds, None)?;
        if !fds[1].revents().is_empty() {
            return Ok(0);
        }
        self.master.read(buffer)
    }
}

/// Starts a command as the leader of a session controlled by `terminal`.
pub(super) fn start_on(command: &Command, terminal: File) -> Result<Child> {
    let setsid = tool::find("setsid")?;
    let mut arguments = vec!["--ctty".into(), "--".into(), command.program.clone()];
    arguments.extend_from_slice(&command.arguments);
    let mut leader = command.as_std(setsid.as_os_str(), &arguments);
    leader
        .stdin(terminal.try_clone().doing("share the terminal")?)
        .stdout(terminal.try_clone().doing("share the terminal")?)
        .stderr(terminal);
    command.start(leader)
}

pub(super) fn pair(size: Size) -> io::Result<(File, File)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&master)?;
    let path = ptsname(&master, Vec::new())?;
    let noctty = i32::try_from(OFlags::NOCTTY.bits()).unwrap_or_default();
    let slave = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(noctty)
        .open(path.to_string_lossy().as_ref())?;
    tcsetwinsize(&master, size.into())?;
    Ok((File::from(master), slave))
}

impl From<Size> for Winsize {
    fn from(size: Size) -> Self {
        Self {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    }
}

impl Terminal {
    /// The program's own process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Types. `"\x03"` is Ctrl-C, `"\x1a"` Ctrl-Z, `"\x04"` the end of input.
    pub fn write(&mut self, text: impl AsRef<[u8]>) -> Result<()> {
        self.master
            .write_all(text.as_ref())
            .doing(format_args!("type into `{}`", self.name))
    }

    /// Waits until `text` appears after what was expected before. Mind the
    /// echo: what is typed appears, too.
    pub fn expect(&self, text: &str) -> Result<String> {
        self.screen.expect(text, PATIENCE)
    }

    /// Everything that appeared so far.
    pub fn screen(&self) -> String {
        self.screen.text()
    }

    /// Changes the size; the foreground process group gets SIGWINCH.
    pub fn resize(&self, size: Size) -> Result<()> {
        tcsetwinsize(&self.master, size.into()).doing("resize the terminal")
    }

    /// The process group that the terminal's keys reach.
    pub fn foreground(&self) -> Result<Pid> {
        tcgetpgrp(&self.master).doing("ask for the foreground process group")
    }

    /// Waits until a program of this name leads the foreground process group.
    /// Between its fork and its exec, a shell's child still ignores the keys.
    pub fn expect_foreground(&self, program: &str) -> Result<()> {
        eventually(&format!("{program} in the foreground"), PATIENCE, || {
            self.foreground().is_ok_and(|leader| {
                fs::read_to_string(format!("/proc/{}/comm", leader.as_raw_nonzero()))
                    .is_ok_and(|name| name.trim() == program)
            })
        })
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid(), signal).doing(format_args!("signal `{}`", self.name))
    }

    pub fn has_ended(&self) -> Result<bool> {
        exits_within(&self.child, Duration::ZERO)
    }

    /// Waits for the end of the program.
    pub fn wait(mut self) -> Result<ExitStatus> {
        let deadline = self.started + self.limit;
        let left = deadline.saturating_duration_since(Instant::now());
        if !exits_within(&self.child, left)? {
            return Err(Error::Overdue {
                what: format!("`{}`: the end", self.name),
                limit: self.limit,
                seen: format!("the screen was:\n{}", self.screen()),
            });
        }
        self.child.wait().doing("wait for a process")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}
