//! A few pipes for all flows that move bulk.

use std::{
    cell::{Cell, RefCell},
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::pipe::{self, PipeFlags, SpliceFlags};

use crate::descriptors::spare;

/// Pipes at a time, of each thread. The kernel gives a user 64 MiB of pipe buffers before it
/// shrinks them.
const LIMIT: usize = 24;
const SIZE: usize = 512 * 1024;

thread_local! {
    static IDLE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
    static MADE: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug)]
pub(crate) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

/// An empty pipe, if there is one left.
pub(crate) fn borrow() -> Option<Pipe> {
    IDLE.with_borrow_mut(Vec::pop).or_else(|| {
        let made = MADE.get();
        let pipe = (made < LIMIT).then(Pipe::new)?.ok()?;
        MADE.set(made + 1);
        Some(pipe)
    })
}

/// Only for pipes that are empty: what is in one would come out in another flow.
pub(crate) fn give_back(pipe: Pipe) {
    IDLE.with_borrow_mut(|idle| idle.push(pipe));
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let (reader, writer) = pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (reader, writer) = (spare(reader)?, spare(writer)?);
        // A smaller pipe only takes more turns.
        let _ = pipe::fcntl_setpipe_size(&writer, SIZE);
        Ok(Self { reader, writer })
    }

    pub(crate) fn fill_from(&self, from: impl AsFd) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        Ok(pipe::splice(
            from,
            None,
            &self.writer,
            None,
            1 << 20,
            flags,
        )?)
    }

    pub(crate) fn drain_to(&self, to: impl AsFd, length: usize) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        Ok(pipe::splice(&self.reader, None, to, None, length, flags)?)
    }
}

/// A pipe that is dropped instead of given back makes room for a new one.
impl Drop for Pipe {
    fn drop(&mut self) {
        // At the end of the thread the counter may be gone before the pipes.
        let _ = MADE.try_with(|made| made.set(made.get().saturating_sub(1)));
    }
}
