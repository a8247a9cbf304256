//! The laptop: the host on which the product runs, and the person's life on
//! it that the product has to keep from the agent.

mod accounts;
mod environment;
mod home;
mod sockets;

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Path, PathBuf};

pub use environment::DecoyVariable;
pub use home::Decoy;
use rustix::system::sethostname;
pub use sockets::{DecoySocket, SocketName};

use crate::builder::{Builder, Resolver};
use crate::entry::Login;
use crate::error::{Doing, Result};
use crate::fs::{BIN, bind_over, replace_program, write_etc};
use crate::net::Host;
use crate::process::{Command, Credentials};
use crate::shape::Shape;
use crate::wait::Seen;

/// What is called a secret contains this and a number, and nothing else in the
/// world does: a test greps for it.
pub const DECOY: &str = "DECOY-SECRET-";

pub struct Laptop {
    host: Host,
    home: PathBuf,
    login: Login,
    credentials: Credentials,
    decoys: Vec<Decoy>,
    sockets: Vec<DecoySocket>,
    socket_connections: Seen<SocketName>,
}

/// The laptop is a host like any other: servers, captures, `enter`.
impl Deref for Laptop {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl Laptop {
    pub(crate) fn furnish(builder: &Builder, host: Host) -> Result<Self> {
        let home = PathBuf::from(match builder.login {
            Login::Dev => "/home/dev",
            Login::Root => "/root",
        });
        sethostname(host.name().as_bytes()).doing("name the laptop")?;
        crate::fs::make_etc(&accounts::files(builder, &host))?;
        let decoys = home::furnish(&home)?;
        let (sockets, socket_connections) = sockets::listen(&host, uid(builder.login))?;
        let credentials = match (builder.login, builder.shape) {
            (_, Shape::Container) => Credentials::NothingBounded,
            (Login::Dev, Shape::Desktop) => Credentials::Nothing,
            (Login::Root, Shape::Desktop) => Credentials::Root,
        };
        Ok(Self {
            host,
            home,
            login: builder.login,
            credentials,
            decoys,
            sockets,
            socket_connections,
        })
    }

    /// The user's home directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A small git repository, in which commands start.
    pub fn workspace(&self) -> PathBuf {
        self.home.join("project")
    }

    pub fn uid(&self) -> u32 {
        uid(self.login)
    }

    /// Files that no agent should ever read.
    pub fn decoys(&self) -> &[Decoy] {
        &self.decoys
    }

    /// Variables of the login environment that no agent should ever see.
    pub fn decoy_variables(&self) -> Vec<DecoyVariable> {
        environment::decoys(self.login, &self.home)
    }

    /// Listening sockets that no agent should ever reach.
    pub fn sockets(&self) -> &[DecoySocket] {
        &self.sockets
    }

    /// Every connection that reached one of the decoy sockets.
    pub fn socket_connections(&self) -> &Seen<SocketName> {
        &self.socket_connections
    }

    /// A program in the environment of a desktop login, in the workspace,
    /// without capabilities (but see [`Login::Root`]).
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let environment = environment::of_login(self.login, &self.home);
        Command::new(
            self.host.clone(),
            self.credentials,
            program.as_ref(),
            environment,
            self.workspace(),
        )
    }

    /// The product, given to the builder by [`Builder::product`].
    ///
    /// Panics if there was none.
    #[track_caller]
    pub fn stockade<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let path = Path::new(BIN).join("stockade");
        assert!(
            path.exists(),
            "this world was built without the product: use Builder::product"
        );
        self.command(path).args(arguments)
    }

    /// A shell command line.
    pub fn shell(&self, line: &str) -> Command {
        self.command("/bin/sh").args(["-c", line])
    }

    /// Lays an executable with these contents over a program of the machine.
    pub fn replace_program(&self, path: impl AsRef<Path>, contents: &str) -> Result<()> {
        replace_program(path.as_ref(), contents)
    }

    /// Takes a program of the machine away: what is left at its path is no file.
    pub fn remove_program(&self, path: impl AsRef<Path>) -> Result<()> {
        bind_over(Path::new("/dev/null"), path.as_ref())
    }

    /// Writes a file below `/etc`, which is read-only for the laptop's user.
    pub fn write_etc(&self, path: &str, contents: &str) -> Result<()> {
        write_etc(path, contents)
    }
}

fn uid(login: Login) -> u32 {
    match login {
        Login::Dev => 1000,
        Login::Root => 0,
    }
}

/// The resolver's address as programs on the laptop see it.
fn nameserver(resolver: Resolver) -> &'static str {
    match resolver {
        Resolver::Routable | Resolver::SearchDomain => crate::builder::DNS_ADDRESS,
        Resolver::LoopbackStub => crate::builder::STUB_ADDRESS,
    }
}
