//! A thread that stays in a network namespace, and works there for others.

use std::{sync::mpsc, thread};

use rustix::thread::CapabilitySet;
use stockade_sys::confine::{hide_files, keep_capabilities};

use crate::Error;

pub(crate) enum Order {
    Run(Box<dyn FnOnce() + Send>),
    End,
}

pub(crate) type Orders = mpsc::Sender<Order>;

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) orders: Orders,
    thread: Option<thread::JoinHandle<()>>,
}

impl Worker {
    /// `begin` goes first, in the network of the caller, and tells whether there is more to do.
    pub(crate) fn start(
        name: &str,
        begin: impl FnOnce(Orders) -> bool + Send + 'static,
    ) -> Result<Self, Error> {
        let (orders, queue) = mpsc::channel();
        let given = orders.clone();
        let work = move || {
            if !begin(given) {
                return;
            }
            for order in queue {
                match order {
                    Order::Run(job) => job(),
                    Order::End => return,
                }
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
        let thread = thread.map_err(|error| Error::Plumbing {
            step: "start a thread of the jail",
            error,
        })?;
        Ok(Self {
            orders,
            thread: Some(thread),
        })
    }

    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (done, result) = mpsc::sync_channel(1);
        let job = move || {
            // The receiver waits below; it can only be gone together with this process.
            let _ = done.send(job());
        };
        let order = Order::Run(Box::new(job));
        self.orders.send(order).map_err(|_| Error::Thread)?;
        result.recv().map_err(|_| Error::Thread)
    }

    /// Leaves the thread these capabilities, and no files.
    pub(crate) fn confine(&self, capabilities: CapabilitySet) -> Result<(), Error> {
        let confined = self.run(move || {
            keep_capabilities(capabilities)?;
            hide_files([])?;
            Ok(())
        })?;
        confined.map_err(|error| Error::Plumbing {
            step: "confine a thread of the jail",
            error,
        })
    }

    pub(crate) fn end(&self) {
        // If it is gone already, so much the better.
        let _ = self.orders.send(Order::End);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already, and there is nothing to
            // clean up after it.
            let _ = thread.join();
        }
    }
}
