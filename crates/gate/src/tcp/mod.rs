//! TCP connections: held at their SYN, dialled, relayed.

pub(crate) mod carriers;
pub(crate) mod connection;
mod dial;
pub(crate) mod hold;
mod inspect;
mod pipes;
pub(crate) mod published;
mod rebinding;
pub(crate) mod relay;
