//! From the plan to a running process.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Seek, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::Command,
};

use rustix::fs::MemfdFlags;
use stockade_sys::process::Descent;

use crate::{
    arguments::arguments,
    bubblewrap::Bubblewrap,
    control::{Control, Order, Start},
    error::Error,
    job::Job,
    plan::{INNER_STAGE, Plan},
    signals::Signals,
    supervise::Running,
};

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    pub program: OsString,
    pub arguments: Vec<OsString>,
}

/// A sandbox that is ready to start.
#[derive(Debug)]
pub struct Launch {
    bubblewrap: Command,
    control: Control,
    signals: Signals,
    job: Job,
    program: OsString,
}

impl Plan {
    /// Opens all that the sandbox needs. Nothing is written to disk.
    ///
    /// # Errors
    /// If bubblewrap is too old, or the process has no descriptors left.
    pub fn prepare(
        &self,
        command: CommandLine,
        bubblewrap: Bubblewrap,
        signals: Signals,
    ) -> Result<Launch, Error> {
        let (control, inner) = Control::pair().map_err(failed("the control socket"))?;
        let mut job = Job::new();
        let start = Start {
            foreground: job.lend(),
            blocked: signals.blocked,
            ignored: signals.ignored,
            limits: self.limits.iter().map(|(limit, _)| *limit).collect(),
        };
        // It waits in the socket until the inner stage is there to read it.
        control
            .order(&Order::Start(start))
            .map_err(failed("the first order"))?;

        let program = command.program.clone();
        let bubblewrap = self.command(command, bubblewrap.checked()?, inner, &signals)?;
        Ok(Launch {
            bubblewrap,
            control,
            signals,
            job,
            program,
        })
    }

    /// The call of bubblewrap: `bwrap --args FD -- INNER_STAGE FD PROGRAM ARGUMENT…`
    fn command(
        &self,
        command: CommandLine,
        path: PathBuf,
        control: OwnedFd,
        signals: &Signals,
    ) -> Result<Command, Error> {
        let mut keep = Vec::new();
        let options = arguments(self, |text| {
            let file = in_memory(text.as_bytes())?;
            let number = file.as_raw_fd();
            keep.push(file);
            Ok(number)
        })
        .map_err(failed("the sandbox's own files"))?;
        let options = in_memory(&options).map_err(failed("bubblewrap's arguments"))?;

        let mut bubblewrap = Command::new(path);
        bubblewrap
            .arg0("bwrap")
            .arg("--args")
            .arg(options.as_raw_fd().to_string())
            .args(["--", INNER_STAGE])
            .arg(control.as_raw_fd().to_string())
            .arg(command.program)
            .args(command.arguments)
            .env_clear();
        keep.push(options);
        keep.push(control);
        Descent {
            keep,
            mask: signals.mask_for_keepers(),
        }
        .prepare(&mut bubblewrap);
        Ok(bubblewrap)
    }
}

impl Launch {
    /// Starts the sandbox, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If bubblewrap cannot be started.
    pub fn spawn(self) -> Result<Running, Error> {
        let mut bubblewrap = self.bubblewrap;
        let child = bubblewrap.spawn().map_err(failed("starting bubblewrap"))?;
        // Its descriptors go with it: the sandbox's end of the socket must be open in
        // the sandbox only, or its closing would say nothing.
        drop(bubblewrap);
        Running::new(child, self.control, self.signals, self.job, self.program)
    }
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Prepare { what, error }
}

/// A file without a name, with these contents, ready to be read.
fn in_memory(contents: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("stockade", MemfdFlags::CLOEXEC)?);
    file.write_all(contents)?;
    file.rewind()?;
    Ok(file.into())
}
