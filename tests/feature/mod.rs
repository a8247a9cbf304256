//! What works inside as it does outside.

mod agents;
mod agreement;
mod bulk;
mod daemon;
mod dns;
mod errno;
mod examples;
mod eyeballs;
mod forge;
mod git;
mod hidden;
mod hosts_file;
mod named;
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
