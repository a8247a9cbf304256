//! A closed world for tests: hosts, wires, servers, and a laptop on which the
//! product runs. No packet leaves the machine.
//!
//! ```no_run
//! use stockade_world::{Builder, Standard, test};
//!
//! // #[test]
//! fn the_web_answers() {
//!     test(&Builder::standard(), |world| {
//!         let net = Standard::serve(world).unwrap();
//!         let output = world.laptop().command("curl").arg("http://www.example.com/").run();
//!         assert_eq!(output.unwrap().expect_success().stdout(), "hello from web\n");
//!         net.web.requests().wait_for(1).unwrap();
//!     });
//! }
//! ```
//!
//! [`test()`] runs the calling test again inside fresh namespaces (see `entry`),
//! where the [`guard`] makes sure that nothing leads out before anything else
//! happens. Hosts may carry any address there is: it exists in the world only.
//! Root is not needed; started by root, the world gives it up first.
//!
//! Inside, the machine's disk is read-only and its home, run and temporary
//! directories are gone: give executables to [`Builder::program`], and embed
//! fixtures with `include_str!`.
//!
//! Needed on the machine: Linux 5.11 or later with user namespaces, veth,
//! bridge and overlayfs; `ip`; `bash`; util-linux' `unshare`, `setpriv`
//! and `setsid`.

mod builder;
mod capture;
mod entry;
mod error;
mod fs;
pub mod guard;
mod laptop;
mod leftovers;
mod net;
mod process;
mod real_root;
mod server;
mod shape;
mod standard;
mod tool;
mod wait;
mod world;

pub use builder::{Builder, Resolver, SEARCH_DOMAIN};
pub use capture::{Capture, Packet, Protocol};
pub use entry::{Inside, Login, Verdict, is_inside, open, test, test_inside};
pub use error::{Error, Result};
pub use laptop::{DECOY, Decoy, DecoySocket, DecoyVariable, Laptop, SocketName};
pub use leftovers::Snapshot;
pub use net::{DeadEnd, Host, HostSpec, lan};
pub use process::{Command, Output, Running, Size, Terminal};
pub use real_root::is_real_root;
pub use rustix::process::{Pid, Signal};
pub use server::{
    Authority, Connection, Datagram, DnsServer, Endpoint, HttpServer, Misbehaviour, Page, Query,
    Request, ServerIdentity, Site, Stream, TcpServer, Transport, UdpServer,
};
pub use shape::Shape;
pub use simple_dns as dns_messages;
pub use standard::{BLACK_HOLE, Standard, UNREACHABLE};
pub use wait::{PATIENCE, Seen, eventually};
pub use world::World;
