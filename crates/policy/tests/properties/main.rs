//! What holds for every policy, flow and host.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod decisions;
mod disclosure;
mod explanations;
mod index;
mod names;
mod strategies;
mod syntax;
