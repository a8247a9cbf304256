//! How the gate's thread waits, and how its tasks take turns.

pub(crate) mod busy_poll;
mod input;

pub(crate) use input::{for_each_packet, for_each_packet_after};
