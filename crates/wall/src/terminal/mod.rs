//! The controlling terminal, which the command shares with its caller.

mod fence;
pub(crate) mod foreground;

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, getpgrp},
    termios::{Termios, isatty, tcgetattr, tcgetpgrp, tcsetpgrp},
};

use self::fence::{Fence, Users};

/// The controlling terminal of this session.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Opened here, so that what is set for it is set for nobody else.
    fd: OwnedFd,
    modes: Option<Termios>,
    fence: Fence,
    /// Whether the kernel knows it as this session's, and does job control for it.
    is_controlling: bool,
}

impl Terminal {
    /// The terminal, if the session has one.
    pub(crate) fn controlling() -> Option<Self> {
        Self::open("/dev/tty", true)
    }

    /// The terminal that a standard stream is, if the session has none of its own (`setsid`,
    /// `su -c`). It is the caller's, who reads its answers.
    pub(crate) fn of_streams() -> Option<Self> {
        let streams = [
            rustix::stdio::stdin(),
            rustix::stdio::stdout(),
            rustix::stdio::stderr(),
        ];
        let stream = streams.into_iter().find(|stream| isatty(stream))?;
        Self::open(&format!("/proc/self/fd/{}", stream.as_raw_fd()), false)
    }

    fn open(path: &str, is_controlling: bool) -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let modes = tcgetattr(&fd).ok();
        let fence = Fence::for_terminal(&fd);
        Some(Self {
            fd,
            modes,
            fence,
            is_controlling,
        })
    }

    pub(crate) fn is_controlling(&self) -> bool {
        self.is_controlling
    }

    /// Whether our process group is the one that the terminal listens to. A terminal of another
    /// session listens to whoever uses it.
    pub(crate) fn is_ours(&self) -> bool {
        !self.is_controlling || tcgetpgrp(&self.fd) == Ok(getpgrp())
    }

    /// Whether the other end is gone: a window that was closed, a line that broke.
    pub(crate) fn is_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::empty())];
        let now = Timespec::default();
        poll(&mut fds, Some(&now)).is_err() || fds[0].revents().contains(PollFlags::HUP)
    }

    /// Makes our process group the one that the terminal listens to. SIGTTOU has to be
    /// blocked. Fails if the terminal is gone: then it needs nothing any more.
    pub(crate) fn take(&self) {
        self.give_to(getpgrp());
    }

    pub(crate) fn give_to(&self, group: Pid) {
        let _ = tcsetpgrp(&self.fd, group);
    }

    /// Puts the terminal in order, and discards its answers to what was asked before. With
    /// `restore`, its modes are those that it had when this was made, otherwise those of now.
    pub(crate) fn give_back(&self, users: Users, restore: bool) {
        let modes = self.modes.as_ref().filter(|_| restore);
        self.fence.raise(&self.fd, users, modes);
    }
}

/// Whether a descriptor is this session's controlling terminal.
pub(crate) fn is_controlling(fd: impl AsFd) -> bool {
    // Any other terminal has no foreground group that we could ask for.
    tcgetpgrp(fd).is_ok()
}
