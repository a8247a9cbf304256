//! The only room with `unsafe` in it: thin, safe wrappers around the kernel.
#![expect(
    unsafe_code,
    reason = "this crate exists to hold every unsafe block of the project"
)]

pub mod apparmor;
pub mod attempt;
pub mod batch;
pub mod closing;
pub mod confine;
pub mod deadline;
pub mod diag;
pub mod helper;
pub mod interfaces;
pub mod mark;
pub mod message;
pub mod mount;
pub mod namespace;
mod netlink;
pub mod nft;
pub mod notify;
pub mod packet;
pub mod process;
pub mod rtnl;
pub mod seccomp;
pub mod shortage;
pub mod signals;
pub mod socket;
pub mod transparent;
pub mod tty;
pub mod watch;
