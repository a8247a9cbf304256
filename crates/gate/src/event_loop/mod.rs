//! How the gate's thread waits, and how its tasks take turns.

pub(crate) mod busy_poll;
mod turns;

pub(crate) use turns::Turns;
