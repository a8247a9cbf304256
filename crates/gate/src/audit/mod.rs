//! What the user learns: events for the log, denials for the receipt, and packets that are only
//! looked at to explain why they went nowhere.

pub(crate) mod denials;
pub(crate) mod events;
pub(crate) mod foreign;
pub(crate) mod groups;
pub(crate) mod hints;
pub(crate) mod refusals;
pub(crate) mod unseen;
