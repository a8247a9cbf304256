//! The plan: what the sandbox will be, as data.
//!
//! [`Plan::build`] is pure. Its result can be printed, compared and tested without
//! running anything; `staging` and `arguments` carry it out, step by step in the order
//! given here. The order matters: a later step covers an earlier one.

mod caches;
pub(crate) mod environment;
mod files;
mod git;
mod home;
mod indexes;
mod layers;
mod layout;
mod logins;
mod names;
mod notes;
mod process;
mod requests;
mod search_path;
mod show;
#[cfg(test)]
mod tests;
mod words;
pub(crate) mod workspace;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

pub use self::{
    environment::Variable,
    layers::{Layer, LayerState, Protection},
    workspace::PathRefusal,
};
pub(crate) use self::{
    git::GIT_CONFIG,
    layers::LANDLOCK_SCOPES,
    layout::{enclosing, laid_over, writable_around},
};
use crate::{
    config::{Asked, CacheMode, Config, Hardening, Secret},
    error::Error,
    facts::{Facts, Limit, Resource, is_in},
    tables::credentials,
};

/// Where the inner stage, which is this same program, lies in the sandbox.
pub const INNER_STAGE: &str = "/run/stockade/init";

/// What Stockade itself shows of its own. Nobody inside can change or rename it.
pub(crate) const OWN: &str = "/run/stockade";

/// The socket at which the warden answers questions from inside.
pub const SESSION_SOCKET: &str = "/run/stockade/session.sock";

/// What is at a path of the sandbox, or is done there, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The path inside.
    pub at: PathBuf,
    pub operation: Operation,
    pub reason: Reason,
}

impl Step {
    pub fn new(at: impl Into<PathBuf>, operation: Operation, reason: impl Into<Reason>) -> Self {
        Self {
            at: at.into(),
            operation,
            reason: reason.into(),
        }
    }
}

/// Why something is in a plan.
pub type Reason = Cow<'static, str>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Show a file or directory of the host, unchangeable.
    ReadOnly { source: PathBuf },
    /// Show a file or directory of the host, as writable as the user finds it outside.
    Writable { source: PathBuf },
    /// Show a directory of the host; changes are seen inside only, and gone at the end.
    Scratch {
        source: PathBuf,
        /// Paths below it that do not exist now, and do not show if they appear outside.
        reserved: Vec<PathBuf>,
        fallback: Fallback,
    },
    /// A directory of the workspace's own, which is kept from session to session.
    Kept(&'static str),
    /// Show a device, or a directory of devices, of the host.
    Device { source: PathBuf },
    /// Protect something in a directory that is writable.
    Guard(Guard),
    /// A link with this text.
    Link { text: PathBuf },
    /// An empty directory in memory, the user's own.
    Empty { mode: u32 },
    /// A file with this text, unchangeable.
    Text(String),
    /// A socket at which the warden listens.
    Socket,
    /// A file with this text, unchangeable, that a plan does not show.
    Login(Secret),
    /// Nothing can be read here: a file that cannot be opened.
    HiddenFile,
    /// Nothing can be read here: an empty directory.
    HiddenDirectory,
    /// What the host has here does not exist inside. Only below a [`Self::Scratch`].
    Absent,
    /// The few devices that programs need, and terminals of the sandbox's own.
    Devices,
    /// A view of the sandbox's own processes.
    Processes,
    /// Make what is mounted here, but nothing below, unchangeable.
    Freeze,
}

/// What is in the place of a [`Operation::Scratch`] where the kernel cannot overlay it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// An empty directory: nobody knows which secrets and sockets the host's holds.
    Empty,
    /// The host's, read-only: it was asked for by name.
    ReadOnly,
    /// A directory of the workspace's own. Otherwise changes are kept, under this name: the
    /// next session in this workspace has them.
    Kept(&'static str),
}

/// How something in a writable directory is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// It can be read, but neither changed nor replaced.
    ReadOnly,
    /// It cannot be read either.
    Hidden,
}

impl Operation {
    /// The path outside that it shows, if it does.
    #[must_use]
    pub fn source(&self) -> Option<&Path> {
        match self {
            Self::ReadOnly { source, .. }
            | Self::Writable { source, .. }
            | Self::Scratch { source, .. }
            | Self::Device { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether nothing can be read there.
    fn hides(&self) -> bool {
        use Operation::{Absent, HiddenDirectory, HiddenFile};
        let guard = Self::Guard(Guard::Hidden);
        matches!(self, HiddenFile | HiddenDirectory | Absent) || *self == guard
    }

    /// Whether the command can write there.
    fn is_writable(&self) -> bool {
        matches!(
            self,
            Self::Writable { .. }
                | Self::Scratch { .. }
                | Self::Kept(_)
                | Self::Empty { .. }
                | Self::Device { .. }
        )
    }
}

/// What the sandbox does not share with the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    Users,
    Processes,
    Ipc,
    HostName,
    /// Where the kernel has it.
    Cgroups,
    /// By a network without anything in it; a jail's is made by others.
    Network,
    Capabilities,
}

/// Whose caches are kept, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Stockade's own directory.
    pub(crate) state: PathBuf,
    pub(crate) workspace: PathBuf,
}

/// The whole sandbox.
#[derive(Debug, Clone)]
pub struct Plan {
    pub files: Vec<Step>,
    pub environment: Vec<Variable>,
    pub isolation: Vec<(Isolation, &'static str)>,
    pub limits: Vec<(Limit, Reason)>,
    /// The most bytes that all places in memory take together.
    pub memory: Option<Asked<u64>>,
    pub hardening: Hardening,
    /// Programs inside can have mount namespaces; what they rename and remove is renamed and
    /// removed by process 1.
    pub nested: bool,
    /// The command's user is root, and is refused more for it.
    pub(crate) is_root: bool,
    /// The kernel can keep signals and abstract sockets inside, so it has to.
    pub(crate) scopes: bool,
    /// Where the workspace's own changes to caches are kept.
    pub(crate) kept: Option<Keep>,
    /// Protections that not every kernel has. What the plan counts on is there, or the
    /// command is not started.
    pub layers: Vec<Layer>,
    pub working_directory: PathBuf,
    /// The home, which is private.
    pub(crate) home: PathBuf,
    /// The file to run in place of the command's name, where that must not be looked up
    /// in the workspace.
    pub program: Option<PathBuf>,
    /// What the user gives away by asking for paths, each a sentence.
    pub given: Vec<String>,
    /// What the user should know, each a sentence.
    pub notes: Vec<String>,
    /// Those of the notes that are told also to who asked for quiet: a session may be the cause.
    pub warnings: Vec<String>,
}

impl Plan {
    /// Makes the plan, or refuses to.
    ///
    /// # Errors
    /// If the workspace, the home directory or what configuration asks for is something
    /// that cannot be walled off, or does not exist.
    pub fn build(config: &Config, facts: &Facts) -> Result<Self, Error> {
        let homes = requests::homes(facts);
        let mut refusals = homes
            .iter()
            .filter_map(|home| workspace::refusal(&facts.workspace, home));
        if let Some(refusal) = refusals.next() {
            return Err(Error::WorkspaceRefused {
                path: facts.workspace.clone(),
                refusal,
            });
        }
        if let Some(link) = facts.shared.astray.first() {
            return Err(Error::LinkAstray(link.clone()));
        }
        let inside = facts.current_directory.starts_with(&facts.workspace);
        let working_directory = if inside {
            &facts.current_directory
        } else {
            &facts.workspace
        };
        let files = files::steps(config, facts)?;
        check_launcher(facts, &files)?;
        let mut notes = notes::notes(config, facts);
        notes.extend(search_path::note(config, facts, &files));
        let environment = environment::environment(config, facts, &files)?;
        Ok(Self {
            files,
            environment,
            isolation: process::isolation(config),
            limits: process::limits(config, facts),
            memory: config.limits.tmpfs.clone(),
            hardening: config.hardening,
            nested: process::nested(config, facts)?,
            is_root: facts.is_root,
            scopes: facts.landlock >= LANDLOCK_SCOPES,
            kept: match &config.caches {
                CacheMode::Keep(state) => Some(Keep {
                    state: state.clone(),
                    workspace: facts.workspace.clone(),
                }),
                CacheMode::Scratch | CacheMode::Empty => None,
            },
            layers: process::layers(config, facts),
            working_directory: working_directory.clone(),
            home: facts.home.real.clone(),
            program: process::program(config, facts)?,
            given: credentials::given(config, facts),
            notes,
            warnings: notes::nested_by_file(config, facts).into_iter().collect(),
        })
    }

    /// The limit of a resource.
    pub(crate) fn limit(&self, resource: Resource) -> Option<u64> {
        let mut limits = self.limits.iter();
        let (limit, _) = limits.find(|(limit, _)| limit.resource == resource)?;
        limit.hard
    }

    /// What is covered, so that it can be seen no more or not be changed.
    pub(crate) fn covers(&self) -> impl Iterator<Item = &Path> {
        let is_cover = |it: &Operation| it.hides() || matches!(it, Operation::Guard(_));
        let emptied = self.emptied().map(|(step, _)| step.at.as_path());
        self.paths(is_cover).chain(emptied)
    }

    /// The directories of the host that are covered by empty ones in what can be written, and where
    /// they are outside.
    pub(crate) fn emptied(&self) -> impl Iterator<Item = (&Step, PathBuf)> {
        let steps = self.files.iter().enumerate();
        let empty = steps.filter(|(_, step)| matches!(step.operation, Operation::Empty { .. }));
        empty.filter_map(|(number, step)| {
            let around = self.files.get(writable_around(&self.files, number)?)?;
            let below = step.at.strip_prefix(&around.at).ok()?;
            Some((step, around.operation.source()?.join(below)))
        })
    }

    /// The directories on the way to what is laid over parts of writable ones. If one is moved, what is
    /// then in its place has no overlay. The overlays themselves are not among them: users remove and install dependencies
    /// while a session runs.
    pub(crate) fn anchors(&self) -> BTreeSet<&Path> {
        let mut anchors = BTreeSet::new();
        for (number, step) in self.files.iter().enumerate() {
            if matches!(step.operation, Operation::Writable { .. }) {
                for laid in laid_over(&self.files, number) {
                    let above = laid.ancestors().skip(1);
                    anchors.extend(above.take_while(|it| *it != step.at));
                }
            }
        }
        anchors
    }

    /// Where the command can write.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &Path> {
        self.paths(Operation::is_writable)
    }

    fn paths(&self, is_meant: impl Fn(&Operation) -> bool) -> impl Iterator<Item = &Path> {
        let steps = self.files.iter();
        let steps = steps.filter(move |step| is_meant(&step.operation));
        steps.map(|step| step.at.as_path())
    }
}

/// Refuses to be started from where the command can write, and to leave there what shims and guards
/// start outside: the command would decide what the next session is, or that there is none.
fn check_launcher(facts: &Facts, files: &[Step]) -> Result<(), Error> {
    let places = files.iter().filter_map(|step| match &step.operation {
        Operation::Writable { source } => Some(source),
        _ => None,
    });
    for place in places {
        let names = facts.mounts.all_names(place);
        let mut ways = facts.launched_by.iter().chain([&facts.executable]);
        if let Some(path) = ways.find(|path| is_in(path, &names)) {
            return Err(Error::LauncherWritable {
                path: path.clone(),
                place: place.clone(),
            });
        }
        for (starter, way) in &facts.starters {
            if let Some(path) = way.iter().find(|path| is_in(path, &names)) {
                return Err(Error::StarterWritable {
                    name: starter.name.clone(),
                    path: path.clone(),
                    place: place.clone(),
                    renewal: starter.renewal.clone(),
                });
            }
        }
    }
    for (starter, way) in &facts.starters {
        if let Some(path) = way.last().filter(|path| facts.hard_linked.contains(*path)) {
            return Err(Error::StarterLinked {
                name: starter.name.clone(),
                path: path.clone(),
                renewal: starter.renewal.clone(),
            });
        }
    }
    Ok(())
}
