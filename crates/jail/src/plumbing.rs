//! Plumbing J, in the jail thread: one straight sequence.

use std::{fs, io, net::IpAddr};

use stockade_sys::{
    namespace::Identity,
    packet::{Injector, Tap},
    rtnl::{Device, LOOPBACK, Routing},
    transparent::{self, AnyAddressUdp, Family},
};

use crate::{
    ADDRESS_V4, ADDRESS_V6, Error, Face, JailSettings, Sockets,
    filter::{self, DNS_PORT, LISTENER_PORT},
    socket_factory::SocketFactory,
};

/// Numbers of our own in a namespace of our own.
const TABLE: u32 = 100;
/// After the table of J's own addresses (0), before everything else.
const RULE_PRIORITY: u32 = 10;
/// Far from the low indices, which tunnel modules may have taken for their fallback
/// devices; the veth kind takes the next one, too.
const DEVICE_INDEX: u32 = 100;
const DEVICE_NAME: &str = "stockade0";

pub(crate) fn build(
    settings: &JailSettings,
    socket_factory: SocketFactory,
) -> Result<Sockets, Error> {
    let addresses = [
        Some(IpAddr::V4(ADDRESS_V4)),
        settings.ipv6.then_some(ADDRESS_V6.into()),
    ];
    let addresses = || addresses.into_iter().flatten();
    let mut routing = at("open a route socket", Routing::open())?;
    at("bring lo up", routing.set_up(LOOPBACK))?;
    let device = cosmetic_device(&mut routing)?;
    for own in addresses() {
        at("set the address", routing.add_address(device, own))?;
    }

    // The filter comes before the routes: at no time is there a way without it.
    filter::ruleset(&settings.host_ports)
        .install()
        .map_err(Error::Filter)?;

    // Sockets before routes, too, so that the gate's ports are taken.
    let v4 = face(ADDRESS_V4.into(), settings)?;
    let v6 = settings
        .ipv6
        .then(|| face(ADDRESS_V6.into(), settings))
        .transpose()?;
    let refusals = |family| at("tap refusals", Tap::refusals(family));
    let refusals = [refusals(Family::V4)?, refusals(Family::V6)?];
    let mut groups = vec![at("tap groups", Tap::groups_on_loopback())?];
    if device != LOOPBACK {
        groups.push(at("tap groups", Tap::groups_at_device(device))?);
    }
    let foreign = addresses().map(|own| at("tap other protocols", Tap::foreign(own)));
    let foreign = foreign.collect::<Result<_, _>>()?;
    let injector = at("open raw sockets", Injector::open())?;

    permit_ping();

    for own in addresses() {
        at("add the route", routing.add_everything_is_local(TABLE, own))?;
        if own.is_ipv6() {
            let prohibited = routing.add_link_local_is_prohibited(TABLE);
            at("prohibit link-local addresses", prohibited)?;
        }
        at("add the rule", routing.add_rule(own, RULE_PRIORITY, TABLE))?;
    }
    Ok(Sockets {
        v4,
        v6,
        refusals,
        groups,
        foreign,
        injector,
        socket_factory,
    })
}

fn face(own: IpAddr, settings: &JailSettings) -> Result<Face, Error> {
    let family = Family::of(own);
    let udp = |port| AnyAddressUdp::bind(family, port);
    Ok(Face {
        listener: at(
            "listen for connections",
            transparent::listen(family, LISTENER_PORT),
        )?,
        dns: at("listen for DNS", udp(DNS_PORT))?,
        datagrams: at("listen for datagrams", udp(LISTENER_PORT))?,
        syns: at(
            "tap connection attempts",
            Tap::syns(own, &settings.host_ports),
        )?,
        echoes: at("tap echo requests", Tap::echoes(own))?,
    })
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

/// Lets programs inside have ping sockets. Only a convenience: where `/proc/sys` is read-only
/// `ping` fails at once, with an error of its own.
fn permit_ping() {
    let gid = Identity::current().gid;
    let _ = fs::write(
        "/proc/sys/net/ipv4/ping_group_range",
        format!("{gid} {gid}"),
    );
}

fn at<T>(step: &'static str, result: io::Result<T>) -> Result<T, Error> {
    result.map_err(|error| Error::Plumbing { step, error })
}
