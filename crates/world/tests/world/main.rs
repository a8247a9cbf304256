//! The world proves itself: every facility is used once with a real client.
//!
//! One binary for all of it, a module for each facility.

mod capture;
mod dns;
mod entry;
mod guard;
mod laptop;
mod leftovers;
mod net;
mod process;
mod servers;
mod shape;
mod terminal;
mod web;
