//! The only room with `unsafe` in it: thin, safe wrappers around the kernel.
#![expect(
    unsafe_code,
    reason = "this crate exists to hold every unsafe block of the project"
)]

