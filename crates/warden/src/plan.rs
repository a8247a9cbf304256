//! The first phase: what a session is to be. Nothing has been built, and the caller can show it.

use std::{
    io,
    path::{Path, PathBuf},
};

use stockade_config::{Effective, Loader};
use stockade_gate::Proxies;
use stockade_policy::Policy;
use stockade_wall::{
    Bubblewrap, CommandLine, Config, Error, Facts, Finding, Keeping, Plan, Signals,
};

/// The plan of files, environment and processes, with what it was made from.
#[derive(Debug)]
pub struct Planned {
    pub facts: Facts,
    pub plan: Plan,
    /// Places for the settings and login of an agent that runs for the first time, and how making
    /// them went.
    pub created_state: Vec<(PathBuf, io::Result<()>)>,
    pub(crate) bubblewrap: Bubblewrap,
    pub(crate) signals: Signals,
}

/// What to run, and by which rules.
#[derive(Debug)]
pub struct SessionRequest {
    pub command: CommandLine,
    pub effective: Effective,
    /// What the gate judges by until the configuration is reloaded.
    pub policy: Policy,
    /// The proxy that the gate uses, and those that the command may try.
    pub proxies: Proxies,
    /// None for a session that leaves no trace.
    pub listing: Option<Listing>,
}

/// What makes a session known: other commands list it, show its log and have it reload, and what
/// it leaves behind is looked at.
#[derive(Debug)]
pub struct Listing {
    pub id: String,
    /// Reads the configuration again.
    pub loader: Loader,
    /// What the session was planned by.
    pub config: Config,
    /// Where what is put back is kept.
    pub keeping: Keeping,
    /// Tells the user at once.
    pub notify: fn(Notice),
}

/// Something that does not work. The session goes on all the same.
#[derive(Debug)]
pub enum Notice {
    NotLogged {
        directory: PathBuf,
        error: io::Error,
    },
    /// The log has no room in this directory, and nothing passes before it has.
    NoRoom(PathBuf),
    /// Other commands cannot find the session.
    NotReloadable(io::Error),
    /// Settings of git are looked at only when the session ends.
    WatchedAtEndOnly(io::Error),
    /// What the session had left when it was suspended.
    Suspended { id: String, findings: Vec<Finding> },
    /// A configuration that a signal asked for is not in force, and why.
    ReloadRefused(String),
}

impl Planned {
    /// Plans a session. Call it while the process has one thread.
    ///
    /// # Errors
    /// If bubblewrap is missing, or what the configuration asks for cannot be.
    pub fn new(config: &Config, workspace: Option<&Path>) -> Result<Self, Error> {
        // Each thread inherits what is blocked. One without would take signals for the command.
        let signals = Signals::block()?;
        let bubblewrap = Bubblewrap::find()?;
        let mut facts = Facts::gather(config, workspace)?;
        let mut plan = Plan::build(config, &facts)?;
        // Only if there can be a session. What the agent stores elsewhere is gone at the end.
        let created_state = config.agent.create_missing_state(&facts);
        if !created_state.is_empty() {
            // What could not be made stays missing.
            let mut config = config.clone();
            config.agent.keeps_state = false;
            facts = Facts::gather(&config, workspace)?;
            plan = Plan::build(&config, &facts)?;
        }
        Ok(Self {
            facts,
            plan,
            created_state,
            bubblewrap,
            signals,
        })
    }
}
