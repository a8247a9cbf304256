//! What a program inside must not be able to do.
//!
//! Tests are named by the number of the attack (`n01` … `n20`, `f01` … `f13`, `p01` … `p17`). Each asserts on both sides:
//! the program inside got no answer, and nothing arrived where it wanted to go.

mod addresses;
mod answers;
mod ask;
mod calls;
mod change;
mod covers;
mod datagrams;
mod death;
mod dns;
mod empty;
mod exhaustion;
mod f_files;
mod f_launch;
mod f_planted;
mod f_process;
mod f_tools;
mod fields;
mod flood;
mod hello;
mod host;
mod http;
mod keeper;
mod lateral;
mod notation;
mod others;
mod p_accept;
mod p_advice;
mod p_baseline;
mod p_bulk;
mod p_fight;
mod p_files;
mod p_git;
mod p_given;
mod p_launch;
mod p_nested;
mod p_older;
mod p_programs;
mod p_remotes;
mod p_shims;
mod p_small;
mod p_streams;
mod p_suspend;
mod p_terminal;
mod pins;
pub(crate) mod probe;
mod questions;
mod rebinding;
mod resolver;
mod say;
mod setup;
mod shapes;
mod tls;
mod unlogged;
mod upgrades;
