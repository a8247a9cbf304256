//! The warden: a session, from its plan to its end.
//!
//! # Theory of operation
//! Each phase of a launch is a type, and the way to the next one consumes it. A step needs what
//! the phase before made, so a wrong order does not compile:
//!
//! ```text
//! Planned       files, environment and processes are planned; signals are blocked
//!   └ launch    [`launch`] goes through these, each with the reason for its steps:
//!       Prepared       everything that can refuse has been asked
//!       OwnerOfA       the process is in user namespace A, which will own the jail
//!       JailBuilt      the network is closed; the sandbox is being built in it
//!       GateServing    the network is open as far as the policy says
//! SandboxReady  all of it is built; the command waits
//!   └ run       records the session, starts the command, waits for it
//! Ended         what became of it: data, for the caller to print
//! ```
//!
//! Any error on the way ends what was built. Everything that runs a command goes this way:
//! `stockade run`, the session that `stockade doctor` tries, and through `run` the one that
//! `stockade verify` probes. The last is a session like any other. The one of the doctor has no
//! [`Listing`]: it leaves no log, and other commands do not find it.
//!
//! Beside a running session the warden keeps a record ([`record`]): it writes the log ([`journal`]), looks for the program behind
//! a connection ([`attribution`]), and answers other commands of the same user ([`control`]) and
//! programs inside ([`questions`]). It
//! prints nothing: what people should know at once it hands to [`Listing::notify`].

mod attribution;
mod command;
mod control;
mod error;
mod interruption;
mod journal;
mod launch;
pub mod live;
mod plan;
mod publish;
mod questions;
mod record;
mod reload;
mod sandbox;
mod sessions;

pub use attribution::{Process, program_name};
pub use command::{Ended, SandboxReady};
pub use control::{ControlError, Reply, ask_to_reload};
pub use error::SessionError;
pub use journal::{JournalEnd, LOG_VERSION, LogDirectory, LogItem, LogReader, LostEvents};
pub use launch::StartSandbox;
pub use plan::{Listing, Notice, Planned, SessionRequest};
pub use publish::PublishError;
pub use questions::{
    DenialInside, DenialsInside, Explained, Inside, NotInside, ask_denials, ask_explain, ask_inside,
};
pub use reload::Reloaded;
pub use sessions::{all, begun, connect, hear_of_sessions, identifier, process_of, running, sort};
