//! From the plan to a running process.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Seek, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::Command,
    thread,
};

use rustix::fs::MemfdFlags;
use stockade_sys::process::Descent;

use crate::{
    arguments::arguments,
    bubblewrap::Bubblewrap,
    control::{Control, Order, Start},
    error::Error,
    inner::Settings,
    job::Job,
    layers::{Layer, State},
    plan::{INNER_STAGE, Plan},
    signals::Signals,
    staging::Staging,
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
    staging: Staging,
    layers: Vec<Layer>,
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
            staging: Staging::of(self),
            layers: self.layers.clone(),
            control,
            signals,
            job,
            program,
        })
    }

    /// The call of bubblewrap: `bwrap --args FD -- INNER_STAGE FD FD PROGRAM ARGUMENT…`
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
        let settings = Settings::of(self).encode();
        let settings = in_memory(&settings).map_err(failed("the command's environment"))?;
        let program = match &self.program {
            Some(path) => path.into(),
            None => command.program,
        };

        let mut bubblewrap = Command::new(path);
        bubblewrap
            .arg0("bwrap")
            .arg("--args")
            .arg(options.as_raw_fd().to_string())
            .args(["--", INNER_STAGE])
            .arg(control.as_raw_fd().to_string())
            .arg(settings.as_raw_fd().to_string())
            .arg(program)
            .args(command.arguments)
            .env_clear();
        keep.extend([options, settings, control]);
        Descent {
            keep,
            mask: signals.mask_for_keepers(),
        }
        .prepare(&mut bubblewrap);
        Ok(bubblewrap)
    }
}

impl Launch {
    /// Starts the sandbox, in the network namespace of the calling thread. The process has
    /// to be in a user namespace of its own, over which it has authority.
    ///
    /// # Errors
    /// If a place that the plan shows has changed, or bubblewrap cannot be started.
    pub fn spawn(self) -> Result<Running, Error> {
        let Self {
            mut bubblewrap,
            staging,
            mut layers,
            control,
            signals,
            job,
            program,
        } = self;
        // A thread of its own, since it moves into another mount namespace. It may end: none
        // of those that it starts is bound to it.
        let start = move || {
            layers.extend(build(staging)?);
            let child = bubblewrap.spawn().map_err(failed("starting bubblewrap"))?;
            // Its descriptors go with it: the sandbox's end of the socket must be open in
            // the sandbox only, or its closing would say nothing.
            drop(bubblewrap);
            Ok((child, layers))
        };
        let thread = thread::Builder::new()
            .name("stage".to_owned())
            .spawn(start)
            .map_err(failed("a thread"))?;
        let (child, layers) = thread
            .join()
            .unwrap_or_else(|_| Err(failed("a thread")(io::ErrorKind::Other.into())))?;
        Running::new(child, control, signals, job, program, layers)
    }
}

/// Builds the stage, and says what came of what could not be known before.
fn build(staging: Staging) -> Result<[Layer; 2], Error> {
    let built = staging.build()?;
    let state = |is_active, otherwise| {
        if is_active {
            State::Active
        } else {
            State::Absent(otherwise)
        }
    };
    Ok([
        Layer {
            name: "changes to ~/.cache and ~/.local/share stay inside",
            state: state(
                built.scratch,
                "the kernel cannot lay a file system over them, so they are read-only",
            ),
        },
        Layer {
            name: "no control groups inside",
            state: state(
                close_cgroup_namespaces(),
                "/proc/sys/user is read-only here",
            ),
        },
    ])
}

/// Lets nobody below this user namespace make another cgroup namespace than the one that
/// bubblewrap makes. With one, a nested user namespace could mount the control groups, and
/// kill or freeze the terminal's own where the user may do so.
fn close_cgroup_namespaces() -> bool {
    fs::write("/proc/sys/user/max_cgroup_namespaces", "1").is_ok()
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
