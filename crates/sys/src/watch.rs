//! Readiness of our own sockets in tokio's event loop.

use std::{io, os::fd::AsRawFd};

use tokio::io::{Interest, unix::AsyncFd};

use crate::{packet::Tap, transparent::AnyAddressUdp};

/// A type that owns one descriptor, the same from its making to its end.
///
/// Sealed, because [`watch`] relies on it: implemented only for types of this crate, whose
/// descriptor is private and never replaced.
pub trait Steady: AsRawFd + sealed::Sealed {}

impl Steady for Tap {}
impl Steady for AnyAddressUdp {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Tap {}
    impl Sealed for super::AnyAddressUdp {}
}

/// Waits for input on `inner` in the current runtime.
///
/// # Panics
/// Outside a tokio runtime.
pub fn watch<T: Steady>(inner: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: the descriptor must stay open and the same for as long as the AsyncFd owns
    // `inner`. Each `Steady` type is a tuple struct around one socket2::Socket that is
    // private to its module, where no method replaces or closes it; the AsyncFd gives out
    // only shared references to it, or drops both together.
    let watched = unsafe { AsyncFd::register_with_interest(inner, Interest::READABLE) };
    watched.map_err(Into::into)
}
