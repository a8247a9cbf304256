//! Resource limits of the command.

use rustix::process::{Rlimit, getrlimit};
use serde::{Deserialize, Serialize};

/// A resource that can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resource {
    /// Bytes of a core dump.
    Core,
    /// Open descriptors.
    OpenFiles,
    /// Processes and threads, of all together: the kernel counts them by user and user
    /// namespace (Linux 5.14), and the sandbox has one of its own.
    Processes,
    /// Bytes of private memory that can be written to, of each process. Reserved addresses
    /// do not count, of which some language runtimes take terabytes.
    Data,
    /// Seconds of processor time, of each process.
    ProcessorTime,
}

impl Resource {
    fn kernel(self) -> rustix::process::Resource {
        match self {
            Self::Core => rustix::process::Resource::Core,
            Self::OpenFiles => rustix::process::Resource::Nofile,
            Self::Processes => rustix::process::Resource::Nproc,
            Self::Data => rustix::process::Resource::Data,
            Self::ProcessorTime => rustix::process::Resource::Cpu,
        }
    }
}

/// A limit; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    pub resource: Resource,
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

impl Limit {
    /// At most so much, for good.
    #[must_use]
    pub fn new(resource: Resource, most: u64) -> Self {
        Self {
            resource,
            soft: Some(most),
            hard: Some(most),
        }
    }

    /// What this process is limited to now.
    #[must_use]
    pub fn current(resource: Resource) -> Self {
        let Rlimit { current, maximum } = getrlimit(resource.kernel());
        Self {
            resource,
            soft: current,
            hard: maximum,
        }
    }

    /// Puts this process, and what it starts, under the limit, or under the one that it
    /// is under already, where that is lower.
    pub(crate) fn apply(self) -> rustix::io::Result<()> {
        let hard = Self::current(self.resource).hard;
        let at_most = |limit: Option<u64>| match (limit, hard) {
            (Some(limit), Some(hard)) => Some(limit.min(hard)),
            (limit, hard) => limit.or(hard),
        };
        rustix::process::setrlimit(
            self.resource.kernel(),
            Rlimit {
                current: at_most(self.soft),
                maximum: at_most(self.hard),
            },
        )
    }
}
