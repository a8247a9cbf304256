//! What works inside as it does outside.

mod bulk;
mod daemon;
mod dns;
mod errno;
mod eyeballs;
mod git;
mod place;
mod refusals;
mod requests;
mod resolvers;
mod smoke;
mod ssh;
mod tcp;
mod tools;
mod udp;
mod web;
