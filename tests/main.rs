//! The built program against the real kernel, bubblewrap and clients, in closed worlds.
//!
//! * `feature/`: what works inside as it does outside;
//! * `attack/`: what a program inside must not be able to do. Every one has a positive
//!   control: the same probe succeeds where it should.

mod attack;
mod feature;
mod support;
