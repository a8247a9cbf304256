//! A day's work inside, with the real tools. Each works as it does outside, in the profile of every
//! agent.

mod dns;
mod git;
mod small;
mod workspace;
