//! From the plan to a running process: descriptors, mounts, control group, then bubblewrap.

pub(crate) mod agent_state;
mod arguments;
pub(crate) mod bubblewrap;
pub(crate) mod cgroup;
mod devices;
mod kept;
mod protection;
mod questions;
mod scope;
mod spelling;
mod staging;
pub(crate) mod streams;

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::Command,
    sync::{Arc, OnceLock},
    thread,
};

use stockade_sys::{
    closing::SlowToClose,
    helper,
    namespace::{Identity, enter_user_namespace, has_authority},
    process::Descent,
};

pub use self::bubblewrap::{Bubblewrap, Version};
use self::{
    arguments::arguments,
    cgroup::Cgroup,
    staging::Staging,
    streams::{CommandStreams, Streams, WardenStreams},
};
use crate::{
    config::Hardening,
    control::{Control, Order, Start},
    discarded::{Changes, HomePlan},
    encoding::encode,
    error::Error,
    facts::Resource,
    inner::InnerSettings,
    plan::{INNER_STAGE, Layer, LayerState, Plan, Protection},
    supervise::{Achieved, Held, Running, Signals, bwrap_process::BwrapProcess, outcome::Sought},
    terminal::foreground::Foreground,
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
    bubblewrap: Bubblewrap,
    call: Command,
    /// What the call starts, if it is not bubblewrap's own file.
    _copy: Option<OwnedFd>,
    staging: Staging,
    streams: Streams,
    /// The limit for all processes together.
    memory: Option<u64>,
    /// What bubblewrap joins when it is started.
    join: Arc<OnceLock<OwnedFd>>,
    layers: Vec<Layer>,
    home: HomePlan,
    held: Held,
}

impl Plan {
    /// Opens all that the sandbox needs. Nothing is written to disk but directories: those in
    /// which changes to caches are kept, and those of agents' scripts that are covered.
    ///
    /// # Errors
    /// If the process has no descriptors left, or a standard stream is nothing to be given to a
    /// command.
    pub fn prepare(
        &self,
        command: CommandLine,
        bubblewrap: Bubblewrap,
        signals: Signals,
    ) -> Result<Launch, Error> {
        let streams = Streams::look()?;
        for (_, path) in self.emptied() {
            agent_state::make_scripts(&path)
                .map_err(|error| Error::ScriptsUnmade { path, error })?;
        }
        let (control, inner) = Control::pair().map_err(failed("the control socket"))?;
        let mut foreground = Foreground::new();
        let start = Order::Start(Start {
            foreground: foreground.lend(),
            blocked: signals.blocked,
            ignored: signals.ignored,
            limits: self.limits.iter().map(|(limit, _)| *limit).collect(),
        });
        let path = self.environment.iter().find(|it| it.name == "PATH");
        let sought = Sought {
            program: command.program.clone(),
            search_path: path.map(|path| path.value.clone()).unwrap_or_default(),
        };
        let join = Arc::new(OnceLock::new());
        let descent = Descent {
            keep: Vec::new(),
            mask: signals.mask_for_bwrap(),
            group: Arc::clone(&join),
        };
        // Where there are no user namespaces inside, nothing is lost by a profile for them.
        let has_user_namespaces = self.hardening == Hardening::Default && !self.is_root;
        let copy = has_user_namespaces.then(|| bubblewrap.copy()).flatten();
        let in_memory = copy
            .as_ref()
            .map(|copy| format!("/proc/self/fd/{}", copy.as_raw_fd()));
        let path = in_memory.as_ref().map_or(bubblewrap.path(), Path::new);
        let call = self.command(command, path, inner, descent)?;
        let caches = kept::open(self);
        let kept = kept::state(caches.as_ref());
        let caches = caches.and_then(Result::ok);
        Ok(Launch {
            bubblewrap,
            call,
            _copy: copy,
            staging: Staging::of(self, caches.as_ref()),
            streams,
            memory: self.limit(Resource::Data),
            join,
            layers: {
                let (protection, state) = (Protection::Caches, kept);
                let mut layers = self.layers.clone();
                layers.push(Layer { protection, state });
                layers
            },
            home: HomePlan::of(self),
            held: Held {
                control,
                signals,
                foreground,
                sought,
                start,
                streams: WardenStreams::default(),
                caches,
                home: None,
                questions: None,
            },
        })
    }

    /// The call of bubblewrap: `bwrap --args FD -- INNER_STAGE FD FD PROGRAM ARGUMENT…`
    fn command(
        &self,
        command: CommandLine,
        path: &Path,
        control: OwnedFd,
        mut descent: Descent,
    ) -> Result<Command, Error> {
        let options = helper::input(&arguments(self)).map_err(failed("bubblewrap's arguments"))?;
        let settings =
            encode(&InnerSettings::of(self)).and_then(|settings| helper::input(&settings));
        let settings = settings.map_err(failed("the command's environment"))?;
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
        descent
            .keep
            .extend([options.into(), settings.into(), control]);
        descent.prepare(&mut bubblewrap);
        Ok(bubblewrap)
    }
}

/// Ends a launch that is not wanted any more, at whatever step it is.
#[derive(Debug)]
pub struct Cancel(Control);

impl Cancel {
    /// To the inner stage it is as if the warden had died.
    pub fn cancel(&self) {
        self.0.end();
    }
}

impl Launch {
    /// What cancels this launch, from any thread.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn cancel(&self) -> Result<Cancel, Error> {
        let control = self.held.control.duplicate();
        control.map(Cancel).map_err(failed("the control socket"))
    }

    /// Starts the sandbox, in the network namespace of the calling thread. The command waits in
    /// it for [`Running::supervise`]. A process that has not entered a user namespace of its
    /// own does so now, while it has one thread.
    ///
    /// # Errors
    /// If the kernel lets this user make no user namespace, a place that the plan shows has
    /// changed, or bubblewrap is too old or cannot be started.
    pub fn spawn(self) -> Result<Running, Error> {
        if !has_authority() {
            enter_user_namespace(Identity::current())
                .map_err(|error| failed("a user namespace")(io::Error::other(error)))?;
        }
        let thread = thread::Builder::new()
            .name("stage".to_owned())
            .spawn(|| self.spawn_here(|| Ok(())))
            .map_err(failed("a thread"))?;
        let died = |_| Err(failed("a thread")(io::ErrorKind::Other.into()));
        thread.join().unwrap_or_else(died)
    }

    /// The same, by a thread that has authority over mounts and is wanted for nothing else: it
    /// moves into another mount namespace, and by `enter` into the sandbox's network. It may end,
    /// since none of those that it starts is bound to it.
    ///
    /// # Errors
    /// Those of [`Self::spawn`], and that of `enter`.
    pub fn spawn_here(self, enter: impl FnOnce() -> io::Result<()>) -> Result<Running, Error> {
        let Self {
            bubblewrap,
            mut call,
            _copy,
            staging,
            streams,
            memory,
            join,
            mut layers,
            home,
            mut held,
        } = self;
        let surroundings = surroundings(staging, &streams, memory, home.home())?;
        for layer in surroundings.layers {
            layers.retain(|other| other.protection != layer.protection);
            layers.push(layer);
        }
        if let Some(group) = &surroundings.group {
            let list = group.processes().map_err(failed("a control group"))?;
            // Nobody else has set it.
            let _ = join.set(list);
        }
        let dependencies = surroundings.dependencies;
        held.home = (surroundings.home).map(|handle| home.with(handle, dependencies));
        held.streams = surroundings.given.give(&mut call);
        held.questions = surroundings.questions;
        let (path, version) = bubblewrap.identify()?;
        enter().map_err(failed("the sandbox's network"))?;
        let child = match call.spawn() {
            Ok(child) => child,
            // If it cannot be started at all, that is why. Else the kernel refused a step before.
            Err(error) => {
                bubblewrap::asked_of(&path)?;
                return Err(failed("starting bubblewrap")(error));
            }
        };
        // Its descriptors go with it: the sandbox's end of the socket, and of the pipes for its
        // output, must be open in the sandbox only, or their closing would say nothing.
        drop(call);
        let bwrap = BwrapProcess::new(child, surroundings.group, own_mounts());
        let bwrap = bwrap.map_err(failed("taking charge of bubblewrap"))?;
        Ok(Running::new(bwrap, held, Achieved { layers, version }))
    }
}

/// What there is beyond the plan.
struct Surroundings {
    group: Option<Cgroup>,
    layers: Vec<Layer>,
    given: CommandStreams,
    home: Option<OwnedFd>,
    questions: Option<OwnedFd>,
    dependencies: Vec<Changes>,
}

/// What is said if neither the caller's control group nor systemd counts the memory.
const NO_MEMORY_LIMIT: &str = "no control group here counts memory, so the limit holds for each \
    process on its own; for all together, start `systemd-run --user --scope -p MemoryMax=SIZE \
    stockade …` in a login session of systemd";

const NO_CACHE_OVERLAY: &str = "the kernel cannot overlay them here, so they have only what earlier \
    sessions in this workspace left";

/// Builds the stage and the control group, and says what came of what could not be known
/// before.
fn surroundings(
    staging: Staging,
    streams: &Streams,
    memory: Option<u64>,
    home: &Path,
) -> Result<Surroundings, Error> {
    let layer = |protection, holds: bool, otherwise| Layer {
        protection,
        state: match holds {
            true => LayerState::Active,
            false => LayerState::Absent(otherwise),
        },
    };
    let built = staging.build(streams, home)?;
    let no_overlay = "the kernel cannot overlay it, so it is empty inside";
    let limited = memory.and_then(|bytes| Cgroup::with_memory_limit(bytes).unwrap_or_default());
    let is_limited = limited.is_some();
    let made = limited.map_or_else(Cgroup::make, |group| Ok(Some(group)));
    let no_group = "control groups cannot be mounted or made here";
    let mut layers = vec![
        layer(Protection::Scratch, built.scratch, no_overlay),
        layer(Protection::Group, made.is_ok(), no_group),
    ];
    if !built.caches {
        layers.push(layer(Protection::Caches, false, NO_CACHE_OVERLAY));
    }
    if memory.is_some() {
        layers.push(layer(Protection::Memory, is_limited, NO_MEMORY_LIMIT));
    }
    let group = made.unwrap_or_default();
    Ok(Surroundings {
        group,
        layers,
        given: built.given,
        home: built.home,
        questions: built.questions,
        dependencies: built.dependencies,
    })
}

/// What keeps the calling thread's mounts until the kernel has time for them. Otherwise they would go
/// with bubblewrap, whose end would take as long as their unmounting. Without it, it does.
fn own_mounts() -> Option<SlowToClose<File>> {
    let namespace = File::open("/proc/thread-self/ns/mnt").ok()?;
    SlowToClose::new(namespace).ok()
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Prepare { what, error }
}
