//! The built program against the real kernel, bubblewrap and clients, in closed worlds.
//!
//! * `feature/`: what works inside as it does outside;
//! * `attack/`: what a program inside must not be able to do. Every one has a positive
//!   control: the same probe succeeds where it should;
//! * `auth/`: logins for forges;
//! * `company/`: the internet through a proxy;
//! * `daily/`: ordinary development, with the real tools;
//! * `denials`: from what is printed to what works;
//! * `doctor`: what is said of machines that lack something; `verify`: what is found of sessions;
//! * `laboratory/`: servers and clients of EPICS, and a device that must stay out of reach;
//! * `log`: what is written down; `typed`: completions and manual;
//! * `wall`: files, environment, processes and the terminal, as a command sees them;
//! * `local`: the two loopbacks; `warden`: what the program itself may still do; `watch`: its screen.

mod attack;
mod auth;
mod company;
mod daily;
mod denials;
mod doctor;
mod ending;
mod exposed;
pub(crate) mod feature;
mod laboratory;
mod local;
mod log;
mod suggest;
mod support;
mod typed;
mod verify;
mod wall;
mod warden;
mod watch;
