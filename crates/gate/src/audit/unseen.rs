//! Packets that the gate has not seen yet, or never will: they found a queue full.
//!
//! A program inside can send faster than anybody looks. Nothing of that passes, since what is not
//! looked at is not let out; but among it may be what somebody would have wanted to know. So at
//! least it is told how much there was.

use std::{cell::RefCell, fmt, os::fd::AsFd, rc::Rc};

use rustix::net::{RecvFlags, recv};
use stockade_sys::socket::dropped;

use crate::audit::events::{Event, EventSender};

pub(crate) struct Unseen {
    events: EventSender,
    /// Where packets arrive, each with how many of its drops were told.
    sockets: RefCell<Vec<(Rc<dyn AsFd>, u32)>>,
}

impl fmt::Debug for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unseen").finish_non_exhaustive()
    }
}

impl Unseen {
    pub(crate) fn new(events: EventSender) -> Self {
        Self {
            events,
            sockets: RefCell::default(),
        }
    }

    pub(crate) fn add(&self, socket: Rc<impl AsFd + 'static>) {
        self.sockets.borrow_mut().push((socket, 0));
    }

    /// Whether some wait to be seen.
    pub(crate) fn are_waiting(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let is_waiting =
            |(socket, _): &(Rc<dyn AsFd>, u32)| recv(socket, &mut [0_u8; 1], flags).is_ok();
        self.sockets.borrow().iter().any(is_waiting)
    }

    /// Tells of those that nobody will see, since the last time.
    pub(crate) fn tell(&self) {
        let mut count = self.events.take_overlooked();
        for (socket, told) in self.sockets.borrow_mut().iter_mut() {
            // The kernel knows of every socket.
            let so_far = dropped(socket).unwrap_or(*told);
            count += u64::from(so_far.wrapping_sub(*told));
            *told = so_far;
        }
        if count > 0 {
            self.events.send(Event::Unseen { count });
        }
    }
}
