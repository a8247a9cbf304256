//! ICMP: `ping`, and the errors that the agent gets.

pub(crate) mod echo;
pub(crate) mod icmp_error;
