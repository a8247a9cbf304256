//! The warden: what goes on around a running session.

mod attribution;
mod control;
mod journal;
mod publish;
mod sessions;

pub use attribution::{Attribution, Process};
pub use control::{ControlError, Reply, Request, ask, serve};
pub use journal::{Directory, End, InForce, Journal, Lost, Opening, Start, VERSION};
pub use publish::{PublishError, local};
pub use sessions::{all, connect, identifier, listen, process_of, sort};
