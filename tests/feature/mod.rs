//! What works inside as it does outside.

mod bulk;
mod daemon;
mod dns;
mod errno;
mod eyeballs;
mod place;
mod resolvers;
mod smoke;
mod tcp;
mod tools;
mod udp;
mod web;
