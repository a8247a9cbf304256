//! The inner stage: process 1 of the sandbox.
//!
//! It is this same program, run by bubblewrap as the last step of building the sandbox.
//! It has no capability (but one, see `broker`) and no descriptor but the caller's standard three and the control
//! socket. It starts one command, reports what becomes of it, obeys the warden's orders,
//! and collects the processes that lose their parent. When it exits, the kernel kills
//! everything that is left inside. It exits when the warden is gone, whatever else there
//! would be to do: so it never waits for anything but all of its descriptors together.
//!
//! It shares the user with hostile processes. They cannot signal it (it is process 1 of
//! their namespace and has no handlers), nor look into it (it is not dumpable), nor write
//! to its file (which is shown read-only).

mod broker;
mod command;
mod covers;
mod settings;
mod stage;
mod suspension;
mod syscalls;

use std::{
    ffi::{CString, OsString},
    io,
    os::{
        fd::{OwnedFd, RawFd},
        unix::ffi::OsStringExt,
    },
};

use rustix::{
    io::{Errno, FdFlags},
    process::{DumpableBehavior, Pid, Signal as NamedSignal},
};
use stockade_sys::process;

pub(crate) use self::settings::InnerSettings;
use self::stage::Stage;
use crate::{control::Control, plan::INNER_STAGE, supervise::FAILED};

/// This process is the inner stage.
#[derive(Debug)]
pub struct Inner(Option<Call>);

/// How the inner stage was called.
#[derive(Debug)]
struct Call {
    control: OwnedFd,
    settings: OwnedFd,
    command: Vec<CString>,
}

/// What is to be run, and how.
#[derive(Debug)]
struct Task {
    command: Vec<CString>,
    settings: InnerSettings,
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
        let mut descriptor = || {
            let number: RawFd = arguments.next()?.to_str()?.parse().ok()?;
            process::adopt_descriptor(number).ok()
        };
        Some(Self {
            control: descriptor()?,
            settings: descriptor()?,
            command: arguments.map(c_string).collect::<Option<_>>()?,
        })
    }

    fn serve(self) -> io::Result<()> {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        // Bubblewrap's death is the warden's to notice; this is quicker.
        rustix::process::set_parent_process_death_signal(Some(NamedSignal::KILL))?;
        rustix::io::fcntl_setfd(&self.control, FdFlags::CLOEXEC)?;
        process::close_others_on_exec()?;

        let task = Task {
            command: self.command,
            settings: InnerSettings::read(self.settings)?,
        };
        let mut stage = Stage::new(Control::from_descriptor(self.control), task)?;
        while stage.turn()? {}
        Ok(())
    }
}

/// An argument that came from the kernel has no NUL in it.
fn c_string(argument: OsString) -> Option<CString> {
    CString::new(argument.into_vec()).ok()
}
