//! The controlling terminal, which the command shares with its caller.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, getpgrp},
    termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp},
};

/// The controlling terminal of this session.
#[derive(Debug)]
pub(crate) struct Terminal {
    fd: OwnedFd,
    modes: Option<Termios>,
}

impl Terminal {
    /// The terminal, if the session has one.
    pub(crate) fn controlling() -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
        let modes = tcgetattr(&fd).ok();
        Some(Self { fd, modes })
    }

    /// Whether our process group is the one that the terminal listens to.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.fd) == Ok(getpgrp())
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

    /// Puts the modes back to what they were when this was made.
    pub(crate) fn restore_modes(&self) {
        if let Some(modes) = &self.modes {
            // Not after the output has drained: the user may have it held by Ctrl-S.
            let _ = tcsetattr(&self.fd, OptionalActions::Now, modes);
        }
    }
}

/// Whether a descriptor is this session's controlling terminal.
pub(crate) fn is_controlling(fd: impl AsFd) -> bool {
    // Any other terminal has no foreground group that we could ask for.
    tcgetpgrp(fd).is_ok()
}
