//! The controlling terminal, which the command shares with its caller.

mod fence;
pub(crate) mod foreground;
mod modes;

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, getpgrp},
    termios::{
        Action, OptionalActions, Termios, Winsize, ioctl_tiocnxcl, isatty, tcflow, tcgetattr,
        tcgetpgrp, tcgetwinsize, tcsetattr, tcsetpgrp, tcsetwinsize,
    },
};
use stockade_sys::tty;

use self::fence::{Fence, Users};

/// The controlling terminal of this session.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Opened here, so that what is set for it is set for nobody else.
    fd: OwnedFd,
    /// Its modes from before the session.
    modes: Option<Termios>,
    size: Option<Winsize>,
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
        let size = tcgetwinsize(&fd).ok();
        let fence = Fence::for_terminal(&fd);
        Some(Self {
            fd,
            modes,
            size,
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

    /// Puts the terminal in order, makes it listen to us if it is to be taken, and discards its
    /// answers to what was asked before. Its modes are then those from before the session. Returns
    /// those that the command left, if somebody may want them.
    pub(crate) fn give_back(&self, users: Users, restore: bool, take: bool) -> Option<Termios> {
        // Each of these fails only if the terminal is gone, and then nothing is left to be done.
        let _ = tty::use_ordinary_line_discipline(&self.fd);
        let Ok(found) = tcgetattr(&self.fd) else {
            if take {
                self.take();
            }
            return None;
        };
        let before = self.modes.as_ref().unwrap_or(&found);
        let has_readers = matches!(users, Users::Reader | Users::Pager);
        let meanwhile = match restore {
            true => before.clone(),
            false => modes::meanwhile(&found, before, users),
        };
        // Before we take it: what the command made a signal is one to nobody of ours.
        let is_fenced = self.fence.is_for(users);
        match is_fenced {
            true => self.set_modes(&modes::silent(meanwhile.clone())),
            false => self.set_modes(&meanwhile),
        }
        if take {
            self.take();
        }
        let _ = ioctl_tiocnxcl(&self.fd);
        let _ = tcflow(&self.fd, Action::OOn);
        // Without a size it would seem to have no user, and the next session would hardly wait for its answers.
        if let Some(size) = self.size.filter(fence::has_size)
            && tcgetwinsize(&self.fd).is_ok_and(|size| !fence::has_size(&size))
        {
            let _ = tcsetwinsize(&self.fd, size);
        }
        self.fence.raise(&self.fd, users);
        // Without a fence they are set already. A pager may have chosen its own since.
        if is_fenced {
            self.set_modes(&meanwhile);
        }
        (!restore && !has_readers).then(|| modes::left(found.clone(), before))
    }

    pub(crate) fn set_modes(&self, modes: &Termios) {
        let _ = tcsetattr(&self.fd, OptionalActions::Now, modes);
    }
}

/// Whether a descriptor is this session's controlling terminal.
pub(crate) fn is_controlling(fd: impl AsFd) -> bool {
    // Any other terminal has no foreground group that we could ask for.
    tcgetpgrp(fd).is_ok()
}
