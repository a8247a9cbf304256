//! Taps whose packets are no more than hints.
//!
//! A program inside can cause any number of them, so only so many are looked at in a while. The
//! rest are lost in a short queue, which costs the gate nothing.

use std::{fmt, io, rc::Rc, time::Duration};

use stockade_sys::{packet::Tap, watch::watch};
use tokio::{io::unix::AsyncFd, task::LocalSet, time::sleep};

/// As many of a tap are looked at before there is a pause.
const AT_A_TIME: u32 = 32;
const PAUSE: Duration = Duration::from_millis(200);
/// The MTU of a loopback device.
const LARGEST: usize = 65_536;

/// Who hears a packet.
type Hear = Rc<dyn Fn(&[u8])>;

/// Taps, and who hears what they copy.
pub(crate) struct Hints {
    taps: Vec<Rc<AsyncFd<Tap>>>,
    hear: Hear,
}

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hints").finish_non_exhaustive()
    }
}

impl Hints {
    pub(crate) fn new(
        taps: impl IntoIterator<Item = Tap>,
        hear: impl Fn(&[u8]) + 'static,
    ) -> io::Result<Self> {
        let taps = taps.into_iter().map(|tap| watch(tap).map(Rc::new));
        Ok(Self {
            taps: taps.collect::<io::Result<_>>()?,
            hear: Rc::new(hear),
        })
    }

    /// Looks at what comes, until the gate ends.
    pub(crate) fn watch(&self, tasks: &LocalSet) {
        for tap in &self.taps {
            tasks.spawn_local(look(Rc::clone(tap), Rc::clone(&self.hear)));
        }
    }

    /// Looks at what has come and was not looked at yet. A command may cause a hint and end the
    /// session with it before the gate had its turn.
    pub(crate) fn catch_up(&self) {
        let mut buffer = vec![0; LARGEST];
        for tap in &self.taps {
            for _ in 0..AT_A_TIME {
                let Ok(length) = tap.get_ref().receive(&mut buffer) else {
                    break;
                };
                (self.hear)(buffer.get(..length).unwrap_or_default());
            }
        }
    }
}

async fn look(tap: Rc<AsyncFd<Tap>>, hear: Hear) {
    let mut buffer = vec![0; LARGEST];
    loop {
        for _ in 0..AT_A_TIME {
            let Ok(mut ready) = tap.readable().await else {
                return;
            };
            if let Ok(Ok(length)) = ready.try_io(|tap| tap.get_ref().receive(&mut buffer)) {
                hear(buffer.get(..length).unwrap_or_default());
            }
        }
        sleep(PAUSE).await;
    }
}
