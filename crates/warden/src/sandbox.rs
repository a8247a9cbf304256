//! A sandbox that is being built while its network is.

use std::{io, sync::mpsc, thread};

use stockade_sys::namespace::Network;
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
    /// Starts to build it on a thread of its own. Its processes start when what is returned is called
    /// in the jail, in the network of the thread that calls it.
    pub(crate) fn of(launch: Launch) -> Result<(Self, StartSandbox), SessionError> {
        let (done, built) = mpsc::channel();
        let (jail, networks) = mpsc::channel::<io::Result<Network>>();
        let cancel = Some(launch.cancel()?);
        let enter = move || {
            let network = networks.recv().map_err(io::Error::other)??;
            network.enter()
        };
        let thread = thread::Builder::new().name("stage".to_owned());
        let thread = thread.spawn(move || {
            // The receiver waits for it.
            let _ = done.send(launch.spawn_here(enter));
        });
        // Without a thread there is no sender either, and the receiver knows.
        drop(thread);
        // Likewise: without a receiver there is no sandbox.
        let start = move || drop(jail.send(Network::current()));
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
