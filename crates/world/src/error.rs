//! What can go wrong while a world is built or used.
//!
//! Tests mostly unwrap these, so every message has to stand on its own: it
//! says what was being done, not only which system call failed.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use crate::guard::Refusal;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },

    #[error("the world refuses to open: {0}")]
    Refused(#[from] Refusal),

    #[error("`{program}` is needed to build a world and was not found in {}", directories.join(", "))]
    ProgramMissing {
        program: &'static str,
        directories: Vec<&'static str>,
    },

    #[error("`{command}` failed ({status}): {stderr}")]
    Program {
        command: String,
        status: String,
        stderr: String,
    },

    #[error("{what} did not happen within {limit:?}; {seen}")]
    Overdue {
        what: String,
        limit: Duration,
        seen: String,
    },

    #[error("certificate for {names}: {reason}")]
    Certificate { names: String, reason: String },

    #[error("the laptop has no bridge `{0}`: World::add_bridge makes one")]
    NoBridge(String),
}

/// Says what was being done when a system call failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl Display) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T> {
        self.map_err(|source| Error::Io {
            what: what.to_string(),
            source: source.into(),
        })
    }
}
