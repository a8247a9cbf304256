//! The plan: what the sandbox will be, as data.
//!
//! [`Plan::build`] is pure. Its result can be printed, compared and tested without
//! running anything; `arguments` turns it into bubblewrap's language, step by step in
//! the order given here. The order matters: a later step covers an earlier one.

mod files;
mod show;

use std::path::PathBuf;

use crate::{
    env::{self, Variable},
    error::Error,
    facts::Facts,
    limits::{Limit, Resource},
    workspace,
};

/// Where the inner stage lies in the sandbox.
pub(crate) const INNER_STAGE: &str = "/run/stockade/init";

/// What the caller decides.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The text of `/etc/resolv.conf` inside; the host's file if there is none.
    pub resolv_conf: Option<String>,
}

/// One thing that is done to the sandbox's files, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub operation: Operation,
    pub reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Show a file or directory of the host, unchangeable.
    ReadOnly { source: PathBuf, at: PathBuf },
    /// Show a directory of the host, as writable as the user finds it outside.
    Writable { source: PathBuf, at: PathBuf },
    /// A link with this text.
    Link { text: PathBuf, at: PathBuf },
    /// An empty directory in memory, the user's own.
    Empty { at: PathBuf, mode: u32 },
    /// A file with this text, unchangeable.
    Text { at: PathBuf, text: String },
    /// Nothing can be read here: a file that cannot be opened.
    HiddenFile { at: PathBuf },
    /// Nothing can be read here: an empty directory.
    HiddenDirectory { at: PathBuf },
    /// The few devices that programs need, and terminals of the sandbox's own.
    Devices { at: PathBuf },
    /// A view of the sandbox's own processes.
    Processes { at: PathBuf },
    /// Make what is mounted here, but nothing below, unchangeable.
    Freeze { at: PathBuf },
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
    Capabilities,
}

/// The whole sandbox.
#[derive(Debug, Clone)]
pub struct Plan {
    pub files: Vec<Step>,
    pub environment: Vec<Variable>,
    pub isolation: Vec<(Isolation, &'static str)>,
    pub limits: Vec<(Limit, &'static str)>,
    pub working_directory: PathBuf,
}

impl Plan {
    /// Makes the plan, or refuses to.
    ///
    /// # Errors
    /// If the workspace or the home directory is one that cannot be walled off, or there
    /// is no place for the sandbox's `resolv.conf`.
    pub fn build(config: &Config, facts: &Facts) -> Result<Self, Error> {
        if let Some(refusal) = workspace::refusal(&facts.workspace, &facts.home) {
            return Err(Error::WorkspaceRefused {
                path: facts.workspace.clone(),
                refusal,
            });
        }
        let inside = facts.current_directory.starts_with(&facts.workspace);
        let working_directory = if inside {
            &facts.current_directory
        } else {
            &facts.workspace
        };
        Ok(Self {
            files: files::steps(config, facts)?,
            environment: env::environment(facts),
            isolation: isolation(),
            limits: limits(facts),
            working_directory: working_directory.clone(),
        })
    }
}

fn isolation() -> Vec<(Isolation, &'static str)> {
    vec![
        (
            Isolation::Users,
            "no capability inside counts outside; needed for all the others",
        ),
        (
            Isolation::Processes,
            "outer processes can neither be seen nor signalled; all inside die together",
        ),
        (
            Isolation::Ipc,
            "no shared memory or message queues of other programs",
        ),
        (Isolation::HostName, "the host's name cannot be changed"),
        (
            Isolation::Cgroups,
            "the host's hierarchy of control groups is not shown",
        ),
        (Isolation::Capabilities, "the command needs none"),
    ]
}

fn limits(facts: &Facts) -> Vec<(Limit, &'static str)> {
    vec![
        (
            Limit {
                resource: Resource::Core,
                soft: Some(0),
                hard: Some(0),
            },
            "a core dump is handled outside, by a program of the host",
        ),
        (
            facts.open_files,
            "as for the caller; the warden raises its own",
        ),
    ]
}
