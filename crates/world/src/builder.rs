//! The description of a world: plain data, the same in every stage of entry.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::entry::{Inside, Login};
use crate::error::Result;
use crate::net::{DeadEnd, HostSpec};
use crate::shape::Shape;
use crate::world::World;

/// Where the world's resolver lives.
pub(crate) const DNS_ADDRESS: &str = "8.8.8.8";
pub(crate) const DNS_ADDRESS_V6: &str = "2001:4860:4860::8888";
/// Where the laptop's stub listens, if it has one.
pub(crate) const STUB_ADDRESS: &str = "127.0.0.53";
/// What is appended to short names, with [`Resolver::SearchDomain`].
pub const SEARCH_DOMAIN: &str = "corp.example";

/// How the laptop finds its resolver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolver {
    /// Directly, at 8.8.8.8.
    #[default]
    Routable,
    /// Through a stub on 127.0.0.53, as with systemd.
    LoopbackStub,
    /// Directly, and short names are completed with [`SEARCH_DOMAIN`].
    SearchDomain,
}

/// A world to be built. What it has without asking: the laptop on its LAN, the
/// router, and a resolver.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) login: Login,
    pub(crate) shape: Shape,
    pub(crate) resolver: Resolver,
    pub(crate) ipv6: bool,
    pub(crate) ping: bool,
    pub(crate) hosts: Vec<HostSpec>,
    pub(crate) dead_ends: Vec<(String, DeadEnd)>,
    pub(crate) programs: Vec<(String, PathBuf)>,
    pub(crate) directories: Vec<(PathBuf, PathBuf)>,
    pub(crate) limit: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            login: Login::default(),
            shape: Shape::default(),
            resolver: Resolver::default(),
            ipv6: true,
            ping: true,
            hosts: Vec::new(),
            dead_ends: Vec::new(),
            programs: Vec::new(),
            directories: Vec::new(),
            limit: Duration::from_secs(180),
        }
    }
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn login(mut self, login: Login) -> Self {
        self.login = login;
        self
    }

    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    pub fn resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// The laptop has no IPv6 address but link-local, and no IPv6 route.
    pub fn without_ipv6(mut self) -> Self {
        self.ipv6 = false;
        self
    }

    /// The laptop lets no user send pings without privilege, as servers do.
    pub fn without_ping(mut self) -> Self {
        self.ping = false;
        self
    }

    pub fn host(mut self, spec: HostSpec) -> Self {
        self.hosts.push(spec);
        self
    }

    /// An address or prefix where packets end in the router.
    pub fn dead_end(mut self, prefix: &str, kind: DeadEnd) -> Self {
        self.dead_ends.push((prefix.to_owned(), kind));
        self
    }

    /// The product: `env!("CARGO_BIN_EXE_stockade")` in an integration test.
    pub fn product(self, path: impl AsRef<Path>) -> Self {
        self.program("stockade", path)
    }

    /// Puts an executable on the laptop's PATH. Nothing else of the machine's
    /// home or temporary directories is visible in the world.
    pub fn program(mut self, name: &str, path: impl AsRef<Path>) -> Self {
        self.programs
            .push((name.to_owned(), path.as_ref().to_owned()));
        self
    }

    /// Shows a directory of the machine at a place of the laptop, read-only: what is too
    /// large to be written by a test, such as an installation.
    pub fn directory(mut self, at: impl AsRef<Path>, source: impl AsRef<Path>) -> Self {
        self.directories
            .push((at.as_ref().to_owned(), source.as_ref().to_owned()));
        self
    }

    /// Kills the test after this time.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Builds the world, if the namespace is closed.
    pub fn build(&self, inside: Inside) -> Result<World> {
        World::build(self, inside)
    }
}
