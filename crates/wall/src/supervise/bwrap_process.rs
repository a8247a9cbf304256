//! The process of bubblewrap, from the warden's side.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::{Child, ExitStatus},
    thread,
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, WaitOptions, pidfd_open, set_child_subreaper, waitpgid},
};
use stockade_sys::{
    closing::SlowToClose,
    signals::{self, Recipient, Signal},
};

use crate::launch::cgroup::Cgroup;

/// Bubblewrap, while it runs. Dropping it ends everything inside.
#[derive(Debug)]
pub(crate) struct BwrapProcess {
    child: Child,
    /// Its process group: bubblewrap, the child that it sets the sandbox up in, and what
    /// that child becomes, the inner stage, with which everything inside ends.
    group: Pid,
    /// Readable when bubblewrap has ended.
    end: OwnedFd,
    /// Set when it has been waited for. From then on the group's number can be anybody's.
    status: Option<ExitStatus>,
    /// Its control group, removed after all that is in it has ended.
    _limits: Option<Cgroup>,
    /// The mount namespace that it was started in.
    _mounts: Option<SlowToClose<File>>,
}

impl BwrapProcess {
    /// Takes charge of bubblewrap, which leads its own process group.
    pub(crate) fn new(
        mut child: Child,
        limits: Option<Cgroup>,
        mounts: Option<SlowToClose<File>>,
    ) -> io::Result<Self> {
        // If bubblewrap is killed, the inner stage becomes our child, and can be waited for.
        let _ = set_child_subreaper(Some(Pid::INIT));
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
                _mounts: mounts,
            }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.child.id()
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
        self.wait_for_inner_stage();
        self.status = Some(status);
        Ok(status)
    }

    /// Bubblewrap ends after the inner stage, and that after everything inside, unless somebody
    /// killed bubblewrap. A process that hangs in the kernel is not waited for.
    fn wait_for_inner_stage(&self) {
        for doubled in 0..14 {
            match waitpgid(self.group, WaitOptions::NOHANG) {
                Ok(None) => thread::sleep(Duration::from_micros(50 << doubled)),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

/// Readable when bubblewrap has ended.
impl AsFd for BwrapProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

impl Drop for BwrapProcess {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
