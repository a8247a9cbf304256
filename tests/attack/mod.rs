//! What a program inside must not be able to do.
//!
//! Tests are named by the number of the attack (`n01` … `n20`, `f01` … `f13`). Each asserts on both sides:
//! the program inside got no answer, and nothing arrived where it wanted to go.

mod addresses;
mod calls;
mod change;
mod datagrams;
mod death;
mod dns;
mod f_files;
mod f_launch;
mod f_process;
mod flood;
mod host;
mod keeper;
mod lateral;
mod notation;
mod probe;
mod rebinding;
mod resolver;
mod setup;
mod shapes;
