//! Signals while the end of a session looks at what it left behind: the first ends the search, the
//! second the program, even if the search hangs.

use std::{
    os::fd::AsFd as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stockade_sys::{
    message,
    signals::{self, Recipient, Signal, SignalReader, SignalSet},
};

/// Dropped, it leaves signals alone again.
pub(crate) struct Interruption(Arc<Shared>);

#[derive(Default)]
struct Shared {
    came: AtomicUsize,
    /// Somebody has asked: what matters most is settled, and the program may end.
    is_asked: AtomicBool,
    is_over: AtomicBool,
}

impl Interruption {
    pub(crate) fn begin() -> Self {
        let shared = Arc::new(Shared::default());
        let signals = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];
        if let Ok(reader) = SignalReader::new(signals.into_iter().collect()) {
            // Those that were meant for the command have done their work.
            while matches!(reader.read(), Ok(Some(_))) {}
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name("interruption".to_owned());
            // Without it, the search ends when its time is over.
            let _ = thread.spawn(move || shared.serve(&reader));
        }
        Self(shared)
    }

    /// Whether a signal came. To be asked when the program may end.
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_asked.store(true, Ordering::Relaxed);
        self.0.came.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn serve(&self, reader: &SignalReader) {
        let moment = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        let mut last = None;
        while !self.is_over.load(Ordering::Relaxed) {
            let mut fds = [PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)];
            let _ = poll(&mut fds, Some(&moment));
            while let Ok(Some(received)) = reader.read() {
                last = Some(received.signal);
                self.came.fetch_add(1, Ordering::Relaxed);
            }
            let is_twice = self.came.load(Ordering::Relaxed) > 1;
            if let Some(signal) = last.filter(|_| is_twice && self.is_asked.load(Ordering::Relaxed))
            {
                die(signal);
            }
        }
    }
}

/// Ends the program as if nobody had caught the signal.
fn die(signal: Signal) {
    message::tell("stockade: interrupted: not all that the session left behind was looked at\n");
    signals::set_default(signal);
    let _ = signals::set_mask(SignalSet::EMPTY);
    let _ = signals::send(signal, Recipient::Process(rustix::process::getpid()));
}
