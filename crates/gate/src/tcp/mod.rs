//! TCP connections, from the verdict to their end: dialled, let through, relayed.

pub(crate) mod accept;
pub(crate) mod carriers;
pub(crate) mod connection;
pub(crate) mod dial;
mod inspect;
mod pipes;
pub(crate) mod published;
mod rebinding;
pub(crate) mod relay;

use std::rc::Rc;

use crate::{dns::Resolution, judge::Judge};
use accept::Acceptor;
use carriers::Carriers;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub(crate) judge: Rc<Judge>,
    /// Finds the proxy.
    pub(crate) resolution: Rc<Resolution>,
    pub(crate) acceptor: Acceptor,
    pub(crate) carriers: Carriers,
}
