//! A sandbox that is being built while its network is.

use std::{sync::mpsc, thread};

use stockade_wall::{Cancel, Launch, Running};

use crate::{error::SessionError, launch::StartSandbox};

/// A sandbox that is being built. Dropped before it is finished, it is taken down again, and waited
/// for: otherwise processes could stay that nobody ends.
#[derive(Debug)]
pub(crate) struct SandboxUnderway {
    built: mpsc::Receiver<Result<Running, stockade_wall::Error>>,
    /// Until it is finished.
    cancel: Option<Cancel>,
}

impl SandboxUnderway {
    /// What starts to build it on a thread of its own, to be called in the jail.
    pub(crate) fn of(launch: Launch) -> Result<(Self, StartSandbox), SessionError> {
        let (done, built) = mpsc::channel();
        let cancel = Some(launch.cancel()?);
        let start = move || {
            let thread = thread::Builder::new().name("stage".to_owned());
            let thread = thread.spawn(move || {
                // The receiver waits for it.
                let _ = done.send(launch.spawn_here());
            });
            // Without a thread there is no sender either, and the receiver knows.
            drop(thread);
        };
        Ok((Self { built, cancel }, Box::new(start)))
    }

    pub(crate) fn wait(mut self) -> Result<Running, SessionError> {
        let built = self.built.recv();
        self.cancel = None;
        Ok(built.map_err(|_| SessionError::StageThread)??)
    }
}

impl Drop for SandboxUnderway {
    fn drop(&mut self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
            drop(self.built.recv());
        }
    }
}
