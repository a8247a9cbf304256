//! The configuration: files, environment and command line → one value.
//!
//! # Theory of operation
//! ```text
//! files/     a path          → a text, if nobody else can have written it
//! parse/     a text          → a layer: changes, each with its place; or all mistakes
//! flags, environment         → layers of the same kind
//! merge      layers          → Effective: every setting, each value with its origin
//! load       all of this, for this user, workspace and moment
//! ```
//!
//! The rest of the program is made from [`Effective`]: the gate's policy, the
//! wall's plan, the log. Everything between a text and it is pure; `files`, `load`,
//! `trust`, `logins` and `edit` alone touch the disk.
//!
//! Nothing is ever open because something is missing: an empty file, section or list changes
//! nothing, and [`Effective::default`] applies. An invalid file, or one that somebody else could
//! have written, refuses the launch.

#![forbid(unsafe_code)]

#[macro_use]
mod define;

mod check;
mod compare;
mod diagnostic;
mod edit;
mod effective;
mod environment;
mod files;
mod flags;
mod follow;
mod keys;
mod layer;
mod load;
mod logins;
mod merge;
mod parse;
mod profiles;
mod proposal;
mod proxy;
mod render;
mod schema;
mod setting;
mod source;
mod starter;
mod text;
mod trust;
mod value;
mod workspace;

pub use check::{Checked, check_file, foreign_file, others_can_write};
pub use compare::{Difference, differences, wider};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use edit::{EditedFile, NetworkEdit, NewPort, NewRule};
pub use environment::layer as environment_layer;
pub use files::{Places, resolved};
pub use flags::{Flags, answered};
pub use follow::{LOGIN, moved_state};
pub use keys::{
    Effective, Files, Forge as ForgeSettings, Key, Kind, Limits, Network, SECTIONS, Section, Spec,
    Widens,
};
pub use layer::{Layer, LayerKind};
pub use load::{Loaded, Loader, WorkspaceFile};
pub use logins::{ForgeKind, Login, Logins, Token, host_option, is_user};
pub use merge::{Choice, merge};
pub use parse::{keys_in, parse, table as toml_table};
pub use profiles::{BUILT_IN, CLAUDE_SANDBOX, GENERIC, STATE_VARIABLES, StateVariable, agents};
pub use proposal::{Effect, Proposal};
pub use proxy::{CompanyProxy, ProxyInUse, proxy_variables};
pub use schema::schema;
pub use setting::{Shown, literal};
pub use source::{Origin, Place, Source, SourceKind, Sourced};
pub use starter::starter;
pub use text::{meant, shown, shown_path};
pub use trust::{Record, Trust};
pub use value::{
    Caches, Count, DeviceTable, GitSettings, Hardening, HostName, LoginFile, Memory, Mode,
    NearRule, Notify, Port, ProxySetting, Published, Root, Roots, Seconds, Size, Unknown,
    VariableName,
};
