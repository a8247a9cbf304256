//! What works inside as it does outside.

mod smoke;
