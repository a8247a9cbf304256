//! Limits of resources that the command starts under.

use rustix::process::{Rlimit, getrlimit};

/// A resource that can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Bytes of a core dump.
    Core,
    /// Open descriptors.
    OpenFiles,
}

impl Resource {
    const ALL: [Self; 2] = [Self::Core, Self::OpenFiles];

    pub(crate) fn tag(self) -> u8 {
        match self {
            Self::Core => 0,
            Self::OpenFiles => 1,
        }
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.tag() == tag)
    }

    fn kernel(self) -> rustix::process::Resource {
        match self {
            Self::Core => rustix::process::Resource::Core,
            Self::OpenFiles => rustix::process::Resource::Nofile,
        }
    }
}

/// A limit; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub resource: Resource,
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

impl Limit {
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

    /// Puts this process, and what it starts, under the limit.
    pub(crate) fn apply(self) -> rustix::io::Result<()> {
        rustix::process::setrlimit(
            self.resource.kernel(),
            Rlimit {
                current: self.soft,
                maximum: self.hard,
            },
        )
    }
}
