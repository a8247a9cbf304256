//! The warden's signals: blocked for the process, and read one by one, so that each can be
//! passed on to the command.

use std::os::fd::{AsFd, BorrowedFd};

use stockade_sys::signals::{self, Received, Signal, SignalReader, SignalSet};

use crate::error::Error;

/// Signals that mean the command, not the warden.
const FORWARDED: &[Signal] = &[
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALRM,
    Signal::TERM,
    Signal::CONT,
    Signal::TSTP,
    Signal::URG,
    Signal::WINCH,
    Signal::IO,
    Signal::PWR,
];

/// Signals that the terminal sends to a process group that is not in its foreground. The
/// warden lends the foreground to the command, and still has to be able to take it back
/// and to write messages.
const TERMINAL: &[Signal] = &[Signal::TTIN, Signal::TTOU];

/// The signals' state that the caller left us, and the reader of those that come.
#[derive(Debug)]
pub struct Signals {
    pub(crate) reader: SignalReader,
    /// What the caller had blocked.
    pub(crate) blocked: SignalSet,
    /// What the caller ignored.
    pub(crate) ignored: SignalSet,
}

impl Signals {
    /// Blocks the signals that will be passed on. To be called before any other thread
    /// exists: each inherits the block, and a thread without it would take the signals.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn block() -> Result<Self, Error> {
        let failed = |error| Error::Prepare {
            what: "blocking signals",
            error,
        };
        // The Rust runtime ignores SIGPIPE before `main`: that was not the caller.
        let ignored = signals::ignored().without(Signal::PIPE);
        // A caller that ignores SIGCHLD would have our children vanish unseen.
        signals::set_default(Signal::CHLD);
        let taken = FORWARDED.iter().chain(TERMINAL).copied().collect();
        Ok(Self {
            blocked: signals::block(taken).map_err(failed)?,
            ignored,
            reader: SignalReader::new(taken).map_err(failed)?,
        })
    }

    /// The next signal that came, if one did.
    pub(crate) fn next(&self) -> std::io::Result<Option<Received>> {
        self.reader.read()
    }

    /// What bubblewrap and the inner stage have blocked: signals are for the command.
    pub(crate) fn mask_for_bwrap(&self) -> SignalSet {
        let taken = FORWARDED.iter().chain(TERMINAL);
        taken.copied().fold(self.blocked, SignalSet::with)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// Whether the terminal sends this signal to a whole process group.
pub(crate) fn is_for_groups(received: Received) -> bool {
    received.from_kernel
        && matches!(
            received.signal,
            Signal::HUP | Signal::INT | Signal::QUIT | Signal::TSTP | Signal::WINCH
        )
}

/// Whether the usual effect of this signal is that a program ends.
pub(crate) fn is_request_to_end(signal: Signal) -> bool {
    matches!(
        signal,
        Signal::HUP | Signal::INT | Signal::QUIT | Signal::TERM
    )
}
