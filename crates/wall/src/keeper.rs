//! The process that keeps the sandbox: bubblewrap, from the warden's side.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::{Child, ExitStatus},
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use stockade_sys::signals::{self, Recipient, Signal};

use crate::group::Group;

/// Bubblewrap, while it runs. Dropping it ends everything inside.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    /// Its process group: bubblewrap, the child that it sets the sandbox up in, and what
    /// that child becomes, the inner stage, with which everything inside ends.
    group: Pid,
    /// Readable when bubblewrap has ended.
    end: OwnedFd,
    /// Set when it has been waited for. From then on the group's number can be anybody's.
    status: Option<ExitStatus>,
    /// Its control group, removed after all that is in it has ended.
    _limits: Option<Group>,
}

impl Keeper {
    /// Takes charge of bubblewrap, which leads its own process group.
    pub(crate) fn new(mut child: Child, limits: Option<Group>) -> io::Result<Self> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = pid
            .ok_or(Errno::SRCH)
            .and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)));
        match opened {
            Ok((group, end)) => Ok(Self {
                child,
                group,
                end,
                status: None,
                _limits: limits,
            }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    /// Kills bubblewrap and everything inside, unless it has ended already. Says how it
    /// has ended.
    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        // Fails only if nobody is left in the group.
        let _ = signals::send(Signal::KILL, Recipient::Group(self.group));
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }
}

/// Readable when bubblewrap has ended.
impl AsFd for Keeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
