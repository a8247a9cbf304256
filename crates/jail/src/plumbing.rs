//! Building J, in the jail thread: one straight sequence.

use std::{io, net::IpAddr};

use stockade_sys::{
    namespace,
    packet::{Injector, SynTap},
    rtnl::{Device, LOOPBACK, Routing},
    transparent::{self, AnyAddressUdp},
};

use crate::{ADDRESS, Error, Sockets, filter};

/// Numbers of our own in a namespace of our own.
const TABLE: u32 = 100;
/// After the table of J's own addresses (0), before everything else.
const RULE_PRIORITY: u32 = 10;
/// Far from the low indices, which tunnel modules may have taken for their fallback
/// devices; the veth kind takes the next one, too.
const DEVICE_INDEX: u32 = 100;
const DEVICE_NAME: &str = "stockade0";

pub(crate) fn build() -> Result<Sockets, Error> {
    let own = IpAddr::V4(ADDRESS);
    namespace::enter_network_namespace().map_err(Error::NetworkNamespace)?;

    let mut routing = at("open a route socket", Routing::open())?;
    at("bring lo up", routing.set_up(LOOPBACK))?;
    let device = cosmetic_device(&mut routing)?;
    at("set the address", routing.add_address(device, own))?;

    // The filter comes before the routes: at no time is there a way without it.
    filter::ruleset().install().map_err(Error::Filter)?;

    // Sockets before routes, too, so that the listener's port is taken.
    let sockets = Sockets {
        listener: at(
            "listen for connections",
            transparent::listen_ipv4(filter::LISTENER_PORT),
        )?,
        dns: at("listen for DNS", AnyAddressUdp::bind_ipv4(filter::DNS_PORT))?,
        syns: at("tap connection attempts", SynTap::open(ADDRESS))?,
        injector: at("open a raw socket", Injector::open())?,
    };

    at("add the route", routing.add_everything_is_local(TABLE, own))?;
    at("add the rule", routing.add_rule(own, RULE_PRIORITY, TABLE))?;
    Ok(sockets)
}

/// A device that carries the address, so that programs which look for one believe that
/// they are online. No packet ever leaves through it. Not every kernel has each kind;
/// `lo` will do.
fn cosmetic_device(routing: &mut Routing) -> Result<u32, Error> {
    for kind in [Device::Dummy, Device::VethPair, Device::Bridge] {
        match routing.add_device(kind, DEVICE_NAME, DEVICE_INDEX) {
            Ok(()) => return Ok(DEVICE_INDEX),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(error) => return at("add a device", Err(error)),
        }
    }
    Ok(LOOPBACK)
}

fn at<T>(step: &'static str, result: io::Result<T>) -> Result<T, Error> {
    result.map_err(|error| Error::Plumbing { step, error })
}
