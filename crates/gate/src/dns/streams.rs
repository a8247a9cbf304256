//! Connections for queries, of which there is a bound. One too many takes the place of the one that
//! has been idle longest, or, if none is, of the one whose question is the oldest. So whoever opens many
//! keeps nobody out.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::sync::Notify;

const STREAMS: usize = 256;
/// A client has so long to ask before it counts as idle.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Streams(RefCell<Vec<Rc<Stream>>>);

#[derive(Debug)]
struct Stream {
    /// A question is under way.
    is_busy: Cell<bool>,
    /// When it became busy or idle.
    since: Cell<Instant>,
    needed: Notify,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat<'a> {
    streams: &'a Streams,
    stream: Rc<Stream>,
}

impl Streams {
    pub(super) fn enter(&self) -> Seat<'_> {
        let mut all = self.0.borrow_mut();
        if all.len() >= STREAMS {
            let of_use = |(_, it): &(usize, &Rc<Stream>)| {
                let since = it.since.get();
                (it.is_busy.get() || since.elapsed() < GRACE, since)
            };
            if let Some((least, _)) = all.iter().enumerate().min_by_key(of_use) {
                all.swap_remove(least).needed.notify_one();
            }
        }
        let stream = Rc::new(Stream {
            is_busy: Cell::new(false),
            since: Cell::new(Instant::now()),
            needed: Notify::new(),
        });
        all.push(Rc::clone(&stream));
        Seat {
            streams: self,
            stream,
        }
    }
}

impl Seat<'_> {
    /// A question is under way.
    pub(super) fn is_busy(&self) {
        self.is_now(true);
    }

    /// It is answered. A client that does not read the answer is idle.
    pub(super) fn is_idle(&self) {
        self.is_now(false);
    }

    fn is_now(&self, busy: bool) {
        self.stream.is_busy.set(busy);
        self.stream.since.set(Instant::now());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n16_connections_whose_questions_wait_keep_nobody_out() {
        let streams = Streams::default();
        let seats: Vec<_> = (0..STREAMS).map(|_| streams.enter()).collect();
        seats.iter().for_each(Seat::is_busy);
        seats[7].is_idle();
        seats[7].stream.since.set(Instant::now() - 2 * GRACE);
        let is_in = |seat: &Seat<'_>| {
            let all = streams.0.borrow();
            all.iter().any(|it| Rc::ptr_eq(it, &seat.stream))
        };
        // One that is idle goes first, then the one that has waited longest.
        let newcomers = [streams.enter(), streams.enter()];
        assert!(newcomers.iter().all(is_in));
        let gone: Vec<_> = (0..STREAMS).filter(|at| !is_in(&seats[*at])).collect();
        assert_eq!(gone, [0, 7]);
    }
}
