//! What verify and its prober tell each other: one line of JSON each way, twice.
//!
//! The prober only looks and tries. What to make of it is decided outside, by `judge`, which
//! knows what was to be expected.

use std::{collections::BTreeMap, fmt, io, net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

/// What is looked at first. Nothing of it can do harm, or leave the machine, in a session
/// that is not protected at all either.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Assignment {
    /// What a listener outside says, and what the prober's own says.
    pub(super) token: String,
    /// Files and directories to read from.
    pub(super) reads: Vec<PathBuf>,
    pub(super) texts: Vec<PathBuf>,
    pub(super) lists: Vec<PathBuf>,
    /// Places to be told from those outside.
    pub(super) identities: Vec<PathBuf>,
    /// Files to open for writing, and directories to make a file in.
    pub(super) writes: Vec<PathBuf>,
    /// A file to be made, and left.
    pub(super) leaves: PathBuf,
    /// Files that are sockets, to connect to.
    pub(super) sockets: Vec<PathBuf>,
    /// A name in the abstract space, to connect to.
    pub(super) abstract_socket: String,
    /// Listeners of this machine.
    pub(super) targets: Vec<Target>,
}

/// What is done only where the first observations say that there is a jail.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SecondAssignment {
    /// Whether there is a network of the session's own that could be changed.
    pub(super) change: bool,
    pub(super) denied: Vec<Target>,
    /// A file that is hidden, in a directory that can be written.
    pub(super) covered: Option<PathBuf>,
    /// A name server to ask for `localhost`.
    pub(super) name_server: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Target {
    pub(super) transport: Transport,
    pub(super) address: SocketAddr,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = self.transport.name().to_lowercase();
        write!(f, "{transport}://{}", self.address)
    }
}

impl Transport {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Tried {
    /// It worked; what was got by it.
    Worked(String),
    Refused(i32),
    /// Neither, for as long as was waited.
    #[default]
    Silence,
}

impl Tried {
    pub(super) fn from_error(error: &io::Error) -> Self {
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock, None) => Self::Silence,
            (io::ErrorKind::WouldBlock, _) => Self::Silence,
            (_, Some(number)) => Self::Refused(number),
            (_, None) => Self::Refused(0),
        }
    }

    pub(super) fn worked(&self) -> bool {
        matches!(self, Self::Worked(_))
    }

    pub(super) fn is_refused_with(&self, errors: &[rustix::io::Errno]) -> bool {
        match self {
            Self::Refused(number) => errors.iter().any(|it| it.raw_os_error() == *number),
            _ => false,
        }
    }
}

impl From<io::Result<()>> for Tried {
    fn from(result: io::Result<()>) -> Self {
        match result {
            Ok(()) => Self::Worked(String::new()),
            Err(error) => Self::from_error(&error),
        }
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worked(_) => f.write_str("it worked"),
            Self::Refused(number) => {
                let text = io::Error::from_raw_os_error(*number).to_string();
                let text = text.split(" (os error").next().unwrap_or_default();
                f.write_str(text)
            }
            Self::Silence => f.write_str("no answer"),
        }
    }
}

/// What the prober saw, for the first assignment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Observations {
    /// By kind: what the kernel calls each.
    pub(super) namespaces: BTreeMap<String, String>,
    pub(super) status: BTreeMap<String, String>,
    pub(super) environment: BTreeMap<String, String>,
    /// What descriptors beyond the standard three lead to.
    pub(super) descriptors: Vec<String>,
    pub(super) core_limit: Option<u64>,
    /// `/proc` has this process under the number that it has for itself.
    pub(super) own_proc: bool,
    pub(super) mounts: Vec<Mount>,
    pub(super) reads: BTreeMap<PathBuf, Tried>,
    pub(super) texts: BTreeMap<PathBuf, String>,
    pub(super) lists: BTreeMap<PathBuf, Vec<String>>,
    pub(super) identities: BTreeMap<PathBuf, String>,
    pub(super) writes: BTreeMap<PathBuf, Tried>,
    pub(super) left: Option<Tried>,
    pub(super) sockets: BTreeMap<PathBuf, Tried>,
    pub(super) abstract_socket: Option<Tried>,
    pub(super) calls: BTreeMap<String, i32>,
    /// A signal without effect, to process 1, which is outside of the own Landlock domain.
    pub(super) signal: Option<Tried>,
    /// The standard error stream, a named pipe outside, opened again to write to it.
    pub(super) reopened: Option<Tried>,
    /// In the order of the targets.
    pub(super) targets: Vec<Tried>,
    /// Where the prober listens, on all its addresses, and whether it heard itself there.
    pub(super) listener: Option<(u16, Tried)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    pub(super) writable: bool,
}

/// What the prober saw, for the second.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SecondObservations {
    /// In the order of the destinations.
    pub(super) denied: Vec<Tried>,
    /// By UDP and by TCP.
    pub(super) names: Vec<Tried>,
    pub(super) changes: Option<Changes>,
    pub(super) nested: Option<Nested>,
}

/// Attempts to change the network, or to get around its rules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Changes {
    pub(super) link: Tried,
    pub(super) address: Tried,
    pub(super) route: Tried,
    pub(super) filter: Tried,
    pub(super) raw: Tried,
    pub(super) transparent: Tried,
}

impl Changes {
    pub(super) fn each(&self) -> [(&'static str, &Tried); 6] {
        [
            ("a link", &self.link),
            ("an address", &self.address),
            ("a route", &self.route),
            ("the packet filter", &self.filter),
            ("a raw socket", &self.raw),
            ("a transparent socket", &self.transparent),
        ]
    }
}

/// The same with all capabilities of a user namespace of one's own.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Nested {
    /// Whether such a namespace can be had.
    pub(super) user: Tried,
    /// Nothing of this is tried if not.
    pub(super) changes: Option<Changes>,
    /// A directory of the system made writable.
    pub(super) remount: Option<Tried>,
    /// The control: the same link and filter in a network of one's own.
    pub(super) own_network: Option<Tried>,
    pub(super) lift: Option<Lift>,
}

/// An attempt to take away the name of what is covered, and so the cover.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Lift {
    /// A mount namespace of one's own, in which nothing is mounted any more.
    pub(super) apart: Tried,
    /// How it could be taken away, if it could.
    pub(super) taken: Tried,
    /// The control: the same with a file that is not covered.
    pub(super) control: Tried,
}
