//! What a running session shows to the user's other commands while it runs, and how they answer
//! what it asks.
//!
//! # Protocol
//! Over the session's control socket ([`control`](crate::control)), one line of JSON each way, as
//! often as wanted over one connection:
//!
//! ```text
//! {"live-1":{"attends":true}}                                   → {"Ok":LiveSnapshot}
//! {"answer-1":{"question":3,"answer":"session","by":"watch"}}   → {"Ok":null} or {"Err":"why"}
//! ```
//! A connection that asked with `attends` counts as a person who watches, until it ends.
//!
//! Texts are as programs inside made them, apart from names and rules, which have one form. Whoever
//! shows them escapes them first ([`escaped`]).

mod client;
mod prompts;
mod session;
mod state;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use client::LiveConnection;
pub(crate) use prompts::Prompts;
pub(crate) use session::LiveSession;
pub(crate) use state::{OpenQuestion, SharedLive};
pub use stockade_gate::Answer;
use stockade_gate::AnsweredBy;

use crate::attribution::Process;

/// Flows of a snapshot. The newest come first; how many more there are stands beside them.
pub const MOST_FLOWS: usize = 500;

/// A session at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveSnapshot {
    pub session: String,
    pub workspace: String,
    pub command: Vec<String>,
    /// `jail`, `none` or `host`.
    pub mode: String,
    pub internet: bool,
    /// Whether it asks about what no rule covers.
    pub ask: bool,
    /// RFC 3339, in UTC.
    pub started: String,
    pub counts: LiveCounts,
    /// The newest first, at most [`MOST_FLOWS`].
    pub flows: Vec<LiveFlow>,
    /// Open flows that are not in `flows`.
    pub flows_left_out: usize,
    /// The oldest first.
    pub questions: Vec<HeldQuestion>,
    /// So many were refused that nothing is asked for as many more seconds.
    pub paused: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveCounts {
    /// Flows that are open now.
    pub open: usize,
    /// Flows that were opened since the start.
    pub opened: u64,
    /// Attempts that were denied since the start.
    pub denied: u64,
}

/// A flow that is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveFlow {
    /// As in the log.
    pub id: u64,
    /// As in the log: `tcp://192.0.2.7:443`.
    pub to: String,
    /// `tcp`, `udp` or `icmp`.
    pub protocol: String,
    /// A device's own name comes first.
    pub names: Vec<String>,
    /// What let it pass, as `by` in the log.
    pub rule: String,
    /// Where that stands.
    pub at: Option<String>,
    pub sent: u64,
    pub received: u64,
    /// In seconds.
    pub age: f64,
    pub process: Option<Process>,
}

/// Something that waits for the user's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldQuestion {
    pub id: u64,
    pub kind: QuestionKind,
    /// What is asked about: `tcp://192.0.2.7:443`, or a name as it is in DNS.
    pub target: String,
    /// Of a flow: `tcp`, `udp` or `icmp`.
    pub protocol: Option<String>,
    pub port: Option<u16>,
    /// Of a flow.
    pub address: Option<IpAddr>,
    /// The names under which the program was given the address, or the name that it asks for: as they
    /// are in DNS, with `xn--` where they are not ASCII.
    pub names: Vec<String>,
    /// Those of `names` that are not ASCII, as a browser would show them. Letters of other scripts may
    /// look like those of a name that the user knows.
    pub unicode: Vec<String>,
    pub process: Option<Process>,
    /// The rule that an answer of `session` or `always` adds.
    pub rule: String,
    /// Why it is not allowed, as a sentence.
    pub why: String,
    /// Flows, or questions for the name, that wait for this answer.
    pub held: usize,
    /// Seconds since the first of them.
    pub waiting: u64,
    /// Seconds until the answer is no.
    pub left: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionKind {
    Flow,
    Name,
}

/// By what means an answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Means {
    Watch,
    Tmux,
    Desktop,
}

impl From<Means> for AnsweredBy {
    fn from(means: Means) -> Self {
        match means {
            Means::Watch => Self::Watch,
            Means::Tmux => Self::Tmux,
            Means::Desktop => Self::Desktop,
        }
    }
}

/// A text for a terminal: what does not show as what it is, is escaped.
#[must_use]
pub fn escaped(text: &str) -> String {
    let shows = |c: char| {
        if c.is_ascii() {
            !c.is_control()
        } else {
            c.escape_debug().eq([c])
        }
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if shows(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
    }
    shown
}
