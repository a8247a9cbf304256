//! Starting the command.
//!
//! The child tells through a pipe what went wrong before it became the command. The pipe
//! closes on exec, so its silent end is the news of success.

use std::{
    convert::Infallible,
    ffi::CStr,
    fs::File,
    io::{self, IoSlice, IoSliceMut, Read},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{Access, AtFlags},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    },
    pipe::{PipeFlags, pipe_with},
    process::{Pid, getpid},
};
use stockade_sys::{confine, notify::Listener, process, signals};

use super::{Task, broker, syscalls};
use crate::{
    config::Hardening,
    control::{Failure, Report, Start},
    encoding::{decode, encode},
    sabotage,
    supervise::FAILED,
    terminal::Terminal,
};

/// The end of the pipe at which the news of the start arrives.
pub(super) struct News(File);

impl News {
    /// Hears the news. To be called when there is some.
    pub(super) fn read(mut self) -> Option<Report> {
        let mut message = [0; 256];
        // A pipe that cannot be read tells nothing; then the child's end will.
        let length = self.0.read(&mut message).unwrap_or(0);
        decode(message.get(..length)?)
    }
}

impl AsFd for News {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The end of a socket at which the listener for the broker arrives.
pub(super) struct Handover(OwnedFd);

impl Handover {
    /// Takes the listener. To be called when there is one, or the child is gone.
    pub(super) fn take(self) -> Option<Listener> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut into = [IoSliceMut::new(&mut byte)];
        recvmsg(&self.0, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
        let listener = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        listener.map(Listener::from_descriptor)
    }
}

impl AsFd for Handover {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A command that was started.
pub(super) struct Started {
    /// Its process, which is also its process group.
    pub(super) pid: Pid,
    /// Until it is known whether it has become the command.
    pub(super) news: Option<News>,
    /// If the broker is wanted, until it has what it listens at.
    pub(super) handover: Option<Handover>,
}

/// Starts the command, as the leader of a process group of its own.
pub(super) fn start(task: &Task, start: &Start) -> Result<Started, Report> {
    let (news, teller) = pipe_with(PipeFlags::CLOEXEC).map_err(failed(Failure::Fork))?;
    let (handover, giver) = match task.settings.nested {
        false => (None, None),
        true => {
            let flags = SocketFlags::CLOEXEC;
            let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
            let (handover, giver) = pair.map_err(failed(Failure::Fork))?;
            (Some(Handover(handover)), Some(giver))
        }
    };
    let pid = process::fork(|| {
        let Err(failure) = become_command(task, start, giver.as_ref());
        // It opens nothing: that the limit of open files is too low is told, too. So little is
        // written at once, or not.
        let _ = encode(&failure).map(|failure| rustix::io::write(&teller, &failure));
        FAILED
    })
    .map_err(failed(Failure::Fork))?;
    // The child does the same. Whoever comes first: an order for the group may be next.
    let _ = rustix::process::setpgid(Some(pid), Some(pid));
    Ok(Started {
        pid,
        news: Some(News(File::from(news))),
        handover,
    })
}

/// Has process 1 asked about every call that takes away a name.
fn hold_names(giver: &OwnedFd) -> io::Result<()> {
    let listener = broker::hold()?;
    let listener = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&listener));
    sendmsg(
        giver,
        &[IoSlice::new(b"x")],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// The report that a step failed.
fn failed<E: Into<io::Error>>(what: Failure) -> impl Fn(E) -> Report {
    move |error| Report::Failed {
        what,
        errno: error.into().raw_os_error().unwrap_or_default(),
    }
}

/// Turns this process, a child of the inner stage, into the command.
fn become_command(
    task: &Task,
    start: &Start,
    giver: Option<&OwnedFd>,
) -> Result<Infallible, Report> {
    let Task { command, settings } = task;
    // Its own group: `kill(0, …)` reaches the processes of the command and no others.
    let _ = rustix::process::setpgid(None, None);
    // The terminal before anything can read from it. All job control signals are blocked
    // here, as in the inner stage.
    if start.foreground
        && let Some(terminal) = Terminal::controlling()
    {
        terminal.give_to(getpid());
    }
    for limit in &start.limits {
        limit.apply().map_err(failed(Failure::Limits))?;
    }
    // Nothing but the standard three: the pipe above goes with exec, too.
    process::close_others_on_exec().map_err(failed(Failure::Descriptors))?;
    sabotage::leak_descriptor(&settings.environment);
    let writable = match settings.hardening {
        Hardening::Default => None,
        Hardening::Strict => Some(settings.writable.as_slice()),
    };
    confine::command(settings.scopes, writable).map_err(failed(Failure::Landlock))?;
    // Process 1 has one, for the broker.
    if !sabotage::keeps_capabilities(&settings.environment) {
        confine::drop_capabilities().map_err(failed(Failure::Capabilities))?;
    }
    syscalls::install(settings).map_err(failed(Failure::Filter))?;
    if let Some(giver) = giver.filter(|_| !sabotage::removes_broker(&settings.environment)) {
        hold_names(giver).map_err(failed(Failure::Filter))?;
    }
    signals::reset_dispositions(start.ignored);
    // Last, since a signal that waits may end us here: as it would have the command.
    signals::set_mask(start.blocked).map_err(failed(Failure::Signals))?;
    let error = process::exec(command, sabotage::environment(&settings.environment));
    let what = match error.kind() {
        io::ErrorKind::NotFound if command.first().is_some_and(|path| exists(path)) => {
            // The program is there; what it needs (an interpreter, a loader) is not.
            Failure::NotExecutable
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::NotFound,
        _ => Failure::NotExecutable,
    };
    Err(failed(what)(error))
}

/// Whether a program named by a path exists. (One named without a slash was searched for.)
fn exists(program: &CStr) -> bool {
    program.to_bytes().contains(&b'/')
        && rustix::fs::accessat(rustix::fs::CWD, program, Access::EXISTS, AtFlags::empty()).is_ok()
}
