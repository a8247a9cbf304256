//! What works inside as it does outside.

mod bulk;
mod daemon;
mod errno;
mod eyeballs;
mod place;
mod smoke;
mod tcp;
mod udp;
