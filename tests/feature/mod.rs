//! What works inside as it does outside.

mod bulk;
mod daemon;
mod dns;
mod errno;
mod eyeballs;
mod git;
mod hidden;
mod place;
mod receipt;
mod refusals;
mod reload;
mod requests;
mod resolvers;
mod session;
mod smoke;
mod ssh;
mod tcp;
mod tools;
mod udp;
mod web;
