//! The wall: what the command sees of the machine, and how it is run there.
//!
//! # Theory of operation
//! Data goes one way, and each step has a type, so that a wrong order does not compile:
//!
//! ```text
//! Facts::gather   reads the machine: the only input
//! Plan::build     pure: facts + configuration -> steps, each with its reason, or a refusal
//! Plan::prepare   opens what the plan needs: descriptors, the control socket
//! Launch::spawn   opens and lays out what the plan shows, and starts bubblewrap
//! Running::supervise   waits, forwards signals, shares the terminal -> Outcome
//! ```
//!
//! Bubblewrap carries the plan out and then becomes the *inner stage* ([`Inner`]): this
//! same program, as process 1 of the sandbox. Bubblewrap's exit code alone could not say
//! whether the command failed or bubblewrap did, nor whether the command stopped, nor
//! could it take orders. The inner stage starts the command, reports what becomes of it,
//! and passes signals on.
//!
//! When the warden dies, however it does, the kernel closes the control socket. The inner
//! stage sees that, exits, and the kernel kills everything inside (docs/architecture.md, "A launch").
//!
//! ```text
//!  caller's process group │ a group of its own       │ a group of its own
//!  warden ────────────────┼─► bwrap ─► inner (pid 1) ─┼─► command ─► …
//!         ◄──── control socket ────────►              │
//! ```
//!
//! Rooms, in the order of a launch: `config` and `facts` go into the `plan` (with the `tables` of known
//! paths), `launch` carries it out, `inner` runs inside and talks to `supervise` over `control`,
//! `terminal` is shared with the caller, and `leftovers` compares what is left, with `git` for git's
//! own files.
//!
//! The three process groups are the reason why `kill(0, …)` inside reaches nobody
//! outside, why Ctrl-C does not kill bubblewrap, and why Ctrl-Z stops the command and
//! not what keeps it. See [`supervise`](Running::supervise) for who has the terminal when.

mod caches;
mod config;
mod control;
mod discarded;
mod encoding;
mod error;
mod facts;
mod git;
mod inner;
mod launch;
mod leftovers;
mod nofollow;
mod plan;
#[cfg_attr(sabotage, path = "../../../sabotage/wall/hooks.rs")]
mod sabotage;
mod supervise;
mod tables;
mod terminal;

pub use caches::{CacheOfWorkspace, CacheStore, Cleared, Housekeeping};
pub use config::{
    Agent, Asked, CacheMode, Config, Forge, ForgeLogin, ForgeTool, GitSettings, Hardening, Limits,
    MovedState, Nested, Network, PathRequest, Root, Secret, Starter,
};
pub use discarded::{Discarded, DiscardedPlace, PrivateHome};
pub use error::Error;
pub use facts::{
    CachePlace, Caches, EarlierSessions, Environments, EtcFile, EtcSecret, Facts, Found, Git,
    GitRefusal, Guarded, Guards, Installation, Kind, Limit, Mounts, Place, Procfs, Resource,
    SharedFiles, SystemForm, SystemPlace, Toolchains, behind_shim, behind_shim_in,
    is_led_from_inside, mounted_elsewhere, repository_around, way,
};
pub use inner::Inner;
pub use launch::{Bubblewrap, Cancel, CommandLine, Launch, Version};
pub use leftovers::{Alarm, Change, Finding, Keeping, Kept, Live, Watch, accept_tracked, folded};
pub use plan::{
    Fallback, Guard, INNER_STAGE, Isolation, Layer, LayerState, Operation, PathRefusal, Plan,
    Protection, Reason, SESSION_SOCKET, Step, Variable,
};
pub use supervise::{FAILED, NOT_FOUND, NotFound, Outcome, Running, Signals, Supervised};
pub use tables::{AGENTS_STATE, known_places};
pub use terminal::foreground::LeftModes;
