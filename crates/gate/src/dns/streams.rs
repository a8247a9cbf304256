//! Connections for queries, of which there is a bound. One too many takes the place of the one that
//! has been idle longest, so whoever opens many and says nothing keeps nobody out.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Instant,
};

use tokio::sync::Notify;

const STREAMS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Streams(RefCell<Vec<Rc<Stream>>>);

#[derive(Debug)]
struct Stream {
    /// Nothing while a question is under way.
    idle_since: Cell<Option<Instant>>,
    needed: Notify,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat<'a> {
    streams: &'a Streams,
    stream: Rc<Stream>,
}

impl Streams {
    pub(super) fn enter(&self) -> Option<Seat<'_>> {
        let mut all = self.0.borrow_mut();
        if all.len() >= STREAMS {
            let idle = all.iter().enumerate();
            let idle = idle.filter_map(|(index, it)| Some((index, it.idle_since.get()?)));
            let (longest, _) = idle.min_by_key(|(_, since)| *since)?;
            all.swap_remove(longest).needed.notify_one();
        }
        let stream = Rc::new(Stream {
            idle_since: Cell::new(Some(Instant::now())),
            needed: Notify::new(),
        });
        all.push(Rc::clone(&stream));
        Some(Seat {
            streams: self,
            stream,
        })
    }
}

impl Seat<'_> {
    /// A question is under way.
    pub(super) fn is_busy(&self) {
        self.stream.idle_since.set(None);
    }

    /// It is answered. A client that does not read the answer is idle.
    pub(super) fn is_idle(&self) {
        self.stream.idle_since.set(Some(Instant::now()));
    }

    /// Returns when another has taken the place.
    pub(super) async fn until_needed(&self) {
        self.stream.needed.notified().await;
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut all = self.streams.0.borrow_mut();
        all.retain(|it| !Rc::ptr_eq(it, &self.stream));
    }
}
