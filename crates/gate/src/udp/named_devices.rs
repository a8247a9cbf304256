//! Searches for devices that the user named by a host name.
//!
//! Where such a device is, the gate asks as if a program inside had asked for its name: by the same
//! look-up, which pins what it finds. A copy of the search to each address is then judged as any
//! flow. What was found holds for some seconds, so that many searches are few questions; searches
//! that come before the answer wait for it.

use std::{
    cell::RefCell,
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    time::Duration,
};

use stockade_policy::{Hostname, MOST_DEVICES, Policy};
use tokio::{task::spawn_local, time::Instant};

use super::Datagrams;
use crate::flows::FlowKey;

/// How long an answer holds, and a failure. Within this time a pin does not end.
const KEPT: Duration = Duration::from_secs(5);
/// Searches that wait for one look-up. More are lost, as on any network.
const MOST_WAITING: usize = 16;

/// Where devices are, for searches of IPv4 (true) or of IPv6.
#[derive(Debug, Default)]
pub(super) struct NamedDevices(RefCell<HashMap<(Hostname, bool), Place>>);

#[derive(Debug)]
struct Place {
    /// The policy that it was looked up under. By another one the name may mean another device, or
    /// searches may not pass.
    policy: Rc<Policy>,
    found: Found,
}

#[derive(Debug)]
enum Found {
    Asking(Vec<Search>),
    At(Vec<IpAddr>, Instant),
}

/// A search that waits.
#[derive(Debug)]
struct Search {
    key: FlowKey,
    datagram: Rc<[u8]>,
    /// The devices that have their copies.
    asked: Rc<RefCell<Vec<SocketAddr>>>,
}

impl Datagrams {
    /// Passes a search on to devices with these names, besides those that were `asked` already.
    pub(super) fn search_named(
        self: &Rc<Self>,
        key: FlowKey,
        datagram: &[u8],
        named: &[Hostname],
        asked: Vec<SocketAddr>,
    ) {
        let (datagram, asked) = (Rc::from(datagram), Rc::new(RefCell::new(asked)));
        let (policy, now) = (self.judge.policy(), Instant::now());
        self.named_devices.0.borrow_mut().retain(|_, place| {
            let is_old = matches!(place.found, Found::At(_, since) if now >= since + KEPT);
            !is_old && Rc::ptr_eq(&place.policy, &policy)
        });
        for device in named {
            let search = Search {
                key,
                datagram: Rc::clone(&datagram),
                asked: Rc::clone(&asked),
            };
            if let Some((addresses, search)) = self.locate(device, search) {
                self.pass_on(&search, &addresses);
            }
        }
    }

    /// Where a device is. If that is not known yet, the search waits until it is, or is lost.
    fn locate(self: &Rc<Self>, device: &Hostname, search: Search) -> Option<(Vec<IpAddr>, Search)> {
        let policy = self.judge.policy();
        let mut places = self.named_devices.0.borrow_mut();
        let which = (device.clone(), search.key.destination.is_ipv4());
        match places.get_mut(&which).map(|place| &mut place.found) {
            Some(Found::At(addresses, _)) => return Some((addresses.clone(), search)),
            Some(Found::Asking(waiting)) if waiting.len() < MOST_WAITING => waiting.push(search),
            Some(Found::Asking(_)) => self.judge.events.overlook(),
            None => {
                let found = Found::Asking(vec![search]);
                let asking = Rc::clone(self).look_up(which.clone(), Rc::clone(&policy));
                places.insert(which, Place { policy, found });
                spawn_local(asking);
            }
        }
        None
    }

    async fn look_up(self: Rc<Self>, which: (Hostname, bool), policy: Rc<Policy>) {
        let (device, is_ipv4) = &which;
        let found = self.resolution.device_addresses(device, *is_ipv4).await;
        // Another policy asks anew.
        if !Rc::ptr_eq(&policy, &self.judge.policy()) {
            return;
        }
        let place = Place {
            policy,
            found: Found::At(found.clone(), Instant::now()),
        };
        let before = self.named_devices.0.borrow_mut().insert(which, place);
        if let Some(Found::Asking(waiting)) = before.map(|place| place.found) {
            for search in &waiting {
                self.pass_on(search, &found);
            }
        }
    }

    fn pass_on(self: &Rc<Self>, search: &Search, addresses: &[IpAddr]) {
        let Search { key, datagram, .. } = search;
        let port = key.destination.port();
        let mut asked = search.asked.borrow_mut();
        let mut devices = Vec::new();
        for address in addresses {
            let device = SocketAddr::new(*address, port);
            if asked.len() < MOST_DEVICES && !asked.contains(&device) {
                asked.push(device);
                devices.push(device);
            }
        }
        self.copy_to(*key, datagram, &devices);
    }
}
