//! Tests of the wall against the real kernel and the real bubblewrap, without a jail.
//!
//! They run as root and as an ordinary user, with the program `walled` as the warden.
//! Each attack has a positive control: the same probe succeeds where it should.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod agent;
mod containment;
mod ends;
mod environment;
mod files;
mod forge;
mod guards;
mod hardening;
mod home;
mod job_control;
mod leftovers;
mod limits;
mod pty;
mod repository;
mod requests;
mod signals;
mod stdio;
mod support;
mod terminal;
