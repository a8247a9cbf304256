//! Why there is no session, or none any more.

use std::io;

use crate::publish::PublishError;

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Wall(#[from] stockade_wall::Error),
    #[error(transparent)]
    Jail(#[from] stockade_jail::Error),
    #[error(transparent)]
    Gate(#[from] stockade_gate::Error),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("cannot give up capabilities")]
    Capabilities(#[source] io::Error),
    #[error("cannot answer questions from inside")]
    Questions(#[source] io::Error),
    #[error("the thread that builds the sandbox died or could not be started")]
    StageThread,
}

impl SessionError {
    /// The smallest change that would help, where the message does not say it already.
    #[must_use]
    pub fn fix(&self) -> Option<String> {
        match self {
            Self::Jail(error) => Some(error.fix()),
            Self::Publish(error) => Some(error.fix()),
            Self::Wall(_)
            | Self::Gate(_)
            | Self::Capabilities(_)
            | Self::Questions(_)
            | Self::StageThread => None,
        }
    }
}
