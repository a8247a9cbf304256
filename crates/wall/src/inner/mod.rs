//! The inner stage: process 1 of the sandbox.
//!
//! It is this same program, run by bubblewrap as the last step of building the sandbox.
//! It has no capability and no descriptor but the caller's standard three and the control
//! socket. It starts one command, reports what becomes of it, obeys the warden's orders,
//! and collects the processes that lose their parent. When it exits, the kernel kills
//! everything that is left inside.
//!
//! It shares the user with hostile processes. They cannot signal it (it is process 1 of
//! their namespace and has no handlers), nor look into it (it is not dumpable), nor write
//! to its file (which is shown read-only).

mod command;
mod syscalls;

use std::{
    ffi::{CString, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd, RawFd},
        unix::ffi::OsStringExt,
    },
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, FdFlags},
    process::{DumpableBehavior, Pid, WaitOptions, WaitStatus},
};
use stockade_sys::{
    process,
    signals::{self, Recipient, Signal, SignalReader, SignalSet},
};

use crate::{
    control::{Control, Heard, Order, Report, Target},
    outcome::FAILED,
    plan::INNER_STAGE,
    terminal::Terminal,
};

/// This process is the inner stage.
#[derive(Debug)]
pub struct Inner(Option<Call>);

/// How the inner stage was called.
#[derive(Debug)]
struct Call {
    control: OwnedFd,
    command: Vec<CString>,
}

impl Inner {
    /// Looks whether this process was started as the inner stage. To be called first of
    /// all in `main`.
    ///
    /// Nothing is to be won by calling the program like that by hand: it runs a command
    /// for whoever holds the other end of the socket, with the rights that the caller has.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let mut arguments = std::env::args_os();
        if arguments.next()? != INNER_STAGE || rustix::process::getpid() != Pid::INIT {
            return None;
        }
        Some(Self(Call::parse(arguments)))
    }

    /// Runs the command. Never returns.
    pub fn run(self) -> ! {
        let served = self.0.ok_or(Errno::INVAL.into()).and_then(Call::serve);
        // If not, there is nobody to tell: without the control socket there is no warden.
        process::exit(if served.is_ok() { 0 } else { FAILED })
    }
}

impl Call {
    fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let control: RawFd = arguments.next()?.to_str()?.parse().ok()?;
        Some(Self {
            control: process::adopt_descriptor(control).ok()?,
            command: arguments.map(c_string).collect::<Option<_>>()?,
        })
    }

    fn serve(self) -> io::Result<()> {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        rustix::io::fcntl_setfd(&self.control, FdFlags::CLOEXEC)?;
        process::close_others_on_exec()?;

        let children = SignalSet::EMPTY.with(Signal::CHLD);
        signals::block(children)?;
        let mut stage = Stage {
            control: Control::from_descriptor(self.control),
            children: SignalReader::new(children)?,
            command: Command::Waiting(self.command),
        };
        while stage.turn()? {}
        Ok(())
    }
}

/// An argument that came from the kernel has no NUL in it.
fn c_string(argument: OsString) -> Option<CString> {
    CString::new(argument.into_vec()).ok()
}

struct Stage {
    control: Control,
    /// Tells when a child has ended or stopped.
    children: SignalReader,
    command: Command,
}

enum Command {
    Waiting(Vec<CString>),
    /// Its process, which is also its process group.
    Running(Pid),
}

impl Stage {
    /// Waits for something to do and does it. Says whether to go on.
    fn turn(&mut self) -> io::Result<bool> {
        let mut fds = [
            PollFd::from_borrowed_fd(self.control.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.children.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        let [ordered, bereaved] = fds.map(|fd| !fd.revents().is_empty());
        if bereaved && !self.reap()? {
            return Ok(false);
        }
        if ordered {
            return match self.control.hear_order()? {
                Heard::Message(order) => self.obey(order),
                Heard::Silence => Ok(true),
                Heard::Gone | Heard::Nonsense => Ok(false),
            };
        }
        Ok(true)
    }

    fn obey(&mut self, order: Order) -> io::Result<bool> {
        match (&self.command, order) {
            (Command::Waiting(command), Order::Start(start)) => {
                self.control.report(Report::Ready)?;
                match command::start(command, &start) {
                    Ok(pid) => self.command = Command::Running(pid),
                    Err(report) => {
                        self.control.report(report)?;
                        return Ok(false);
                    }
                }
            }
            (Command::Running(pid), Order::Signal { signal, target }) => {
                let recipient = match target {
                    Target::Command => Recipient::Process(*pid),
                    Target::Group => Recipient::Group(*pid),
                };
                // Fails if the group is empty, since its members have moved to others.
                let _ = signals::send(signal, recipient);
            }
            (Command::Running(pid), Order::Continue { foreground }) => {
                if foreground && let Some(terminal) = Terminal::controlling() {
                    terminal.give_to(*pid);
                }
                let _ = signals::send(Signal::CONT, Recipient::Group(*pid));
            }
            // The warden is this same program and does not say that.
            (Command::Waiting(_), _) | (Command::Running(_), Order::Start(_)) => {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Collects children that have ended. Says whether to go on.
    fn reap(&mut self) -> io::Result<bool> {
        while self.children.read()?.is_some() {}
        loop {
            let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
            let (pid, status) = match rustix::process::wait(options) {
                Ok(Some(changed)) => changed,
                Ok(None) | Err(Errno::CHILD) => return Ok(true),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let is_command = matches!(self.command, Command::Running(command) if command == pid);
            if is_command && let Some(report) = fate(status) {
                self.control.report(report)?;
                if !matches!(report, Report::Stopped(_)) {
                    return Ok(false);
                }
            }
        }
    }
}

/// What a change of the command's state is to the warden.
fn fate(status: WaitStatus) -> Option<Report> {
    if let Some(code) = status.exit_status() {
        // The kernel keeps only these eight bits.
        u8::try_from(code).ok().map(Report::Exited)
    } else if let Some(signal) = status.terminating_signal() {
        Signal::new(signal).map(Report::Killed)
    } else {
        let signal = status.stopping_signal()?;
        Signal::new(signal).map(Report::Stopped)
    }
}
