//! A day's work inside, with the real tools.

mod agents;
