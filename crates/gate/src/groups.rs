//! Datagrams to many: groups of multicast, and everybody.
//!
//! The jail's kernel sends them nowhere, and gives the gate none of them. A program that looks for
//! a device that way (mDNS, EPICS) hears nothing, and nobody would learn why. So the gate has
//! copies, and tells of them like of any denial; the program itself is not answered, as nobody
//! answers such datagrams anywhere.
//!
//! They are hints: a program can send any number of them, so only so many are looked at in a
//! while. The rest are lost in a short queue, which costs the gate nothing.

use std::{io, rc::Rc, time::Duration};

use stockade_jail::is_inside;
use stockade_policy::Flow;
use stockade_sys::{packet::GroupTap, watch};
use stockade_wire::packet::Sent;
use tokio::{io::unix::AsyncFd, task::LocalSet, time::sleep};

use crate::judge::Judge;

/// As many are looked at before there is a pause.
const AT_A_TIME: u32 = 32;
const PAUSE: Duration = Duration::from_millis(200);
const LARGEST: usize = 65_535;

#[derive(Debug)]
pub(crate) struct Groups {
    judge: Rc<Judge>,
    taps: Vec<Rc<AsyncFd<GroupTap>>>,
}

impl Groups {
    pub(crate) fn new(judge: Rc<Judge>, taps: Vec<GroupTap>) -> io::Result<Self> {
        let taps = taps.into_iter().map(|tap| watch::watch(tap).map(Rc::new));
        Ok(Self {
            judge,
            taps: taps.collect::<io::Result<_>>()?,
        })
    }

    /// Looks at what has come and was not looked at yet: a command may end with it.
    pub(crate) fn catch_up(&self) {
        let mut buffer = vec![0; LARGEST];
        for tap in &self.taps {
            for _ in 0..AT_A_TIME {
                let Ok(length) = tap.get_ref().receive(&mut buffer) else {
                    break;
                };
                self.arrived(buffer.get(..length).unwrap_or_default());
            }
        }
    }

    fn arrived(&self, packet: &[u8]) {
        let Ok(Sent {
            client,
            destination,
        }) = Sent::parse(packet)
        else {
            return;
        };
        if let Some(flow) = Flow::udp(destination)
            && is_inside(client.ip())
        {
            // No rule allows it; that it is told is all that comes of this.
            drop(self.judge.judge(client, flow));
        }
    }
}

pub(crate) fn watch_all(groups: &Rc<Groups>, tasks: &LocalSet) {
    for tap in &groups.taps {
        tasks.spawn_local(watch(Rc::clone(groups), Rc::clone(tap)));
    }
}

async fn watch(groups: Rc<Groups>, tap: Rc<AsyncFd<GroupTap>>) {
    let mut buffer = vec![0; LARGEST];
    loop {
        for _ in 0..AT_A_TIME {
            let Ok(mut ready) = tap.readable().await else {
                return;
            };
            if let Ok(Ok(length)) = ready.try_io(|tap| tap.get_ref().receive(&mut buffer)) {
                groups.arrived(buffer.get(..length).unwrap_or_default());
            }
        }
        sleep(PAUSE).await;
    }
}
