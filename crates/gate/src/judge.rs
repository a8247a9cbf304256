//! The policy's word on a flow, given what the host's network is like at that moment.

use std::{
    cell::RefCell,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use ipnet::IpNet;
use stockade_policy::{Evidence, Flow, Policy, Protocol, Reason, Route, decide};
use stockade_sys::rtnl::{RouteKind, Routing};
use stockade_wire::packet::Unreachable;

use crate::denials::Denials;

const LOCALHOST_V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LOCALHOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

#[derive(Debug)]
pub(crate) struct Judge {
    policy: Policy,
    /// Ports of loopback that stand for the host's.
    host_ports: Vec<u16>,
    routing: RefCell<Routing>,
    denials: RefCell<Denials>,
}

impl Judge {
    pub(crate) fn new(policy: Policy, host_ports: Vec<u16>) -> io::Result<Self> {
        Ok(Self {
            policy,
            host_ports,
            routing: RefCell::new(Routing::open()?),
            denials: RefCell::default(),
        })
    }

    /// Whether the flow may pass, and else what the agent is told.
    pub(crate) fn judge(&self, flow: Flow) -> Result<(), Unreachable> {
        // Only these ever come here: all other loopback is the jail's own.
        if flow.protocol() == Protocol::Tcp
            && [LOCALHOST_V4, LOCALHOST_V6].contains(&flow.destination())
            && flow
                .port()
                .is_some_and(|port| self.host_ports.contains(&port.get()))
        {
            return Ok(());
        }
        let verdict = decide(&self.policy, &flow, &self.evidence(&flow));
        if verdict.is_allowed() {
            return Ok(());
        }
        // Without any route the attempt would fail outside the jail, too. That is not a
        // denial, and is told apart from one by its error.
        if matches!(verdict.reason(), Reason::NoRoute { .. }) {
            return Err(Unreachable::Network);
        }
        self.denials.borrow_mut().record(flow, verdict);
        Err(Unreachable::AdminProhibited)
    }

    pub(crate) fn take_denials(&self) -> Denials {
        self.denials.take()
    }

    /// What the host's kernel knows of the destination, and of the addresses that it
    /// carries inside.
    fn evidence(&self, flow: &Flow) -> Evidence<'static> {
        let mut routing = self.routing.borrow_mut();
        let direct = look_up(&mut routing, flow.destination());
        flow.embedded()
            .map(|embedded| look_up(&mut routing, embedded))
            .fold(direct, Evidence::also)
    }
}

/// Whether the host has a default route for IPv6, so that offering it inside is no lie.
/// Any global address will do for the question.
#[must_use]
pub fn host_has_ipv6() -> bool {
    const GLOBAL: Ipv6Addr = Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1);
    Routing::open()
        .is_ok_and(|mut routing| look_up(&mut routing, GLOBAL.into()).route == Route::Default)
}

/// If the kernel cannot be asked, there is no evidence for a way to the internet, and only
/// rules admit.
fn look_up(routing: &mut Routing, destination: IpAddr) -> Evidence<'static> {
    let Ok(Some(found)) = routing.lookup(destination) else {
        return Evidence {
            route: Route::None,
            own: false,
            names: &[],
        };
    };
    let prefix = IpNet::new(found.prefix, found.prefix_length);
    let (route, own) = match (found.kind, prefix) {
        (RouteKind::Local, _) => (Route::Local, true),
        (RouteKind::Unicast, Ok(prefix)) => match Route::through(prefix) {
            // A table that a rule of the host reserves for some destinations may have a
            // default route of its own. The rule's prefix is not told, only the table.
            Route::Default if found.table != usual_table(routing, destination) => {
                (Route::Specific(destination.into()), false)
            }
            route => (route, false),
        },
        // Broadcast and multicast, which no flow can go to.
        (RouteKind::Other | RouteKind::Unicast, _) => (Route::Local, false),
    };
    Evidence {
        route,
        own,
        names: &[],
    }
}

/// The table in which the host finds its way to addresses that no rule and no route can
/// mean, because nobody has them: those of documentation.
fn usual_table(routing: &mut Routing, family_of: IpAddr) -> u32 {
    let nobody: [IpAddr; 2] = match family_of {
        IpAddr::V4(_) => [
            Ipv4Addr::new(198, 51, 100, 1).into(),
            Ipv4Addr::new(203, 0, 113, 1).into(),
        ],
        IpAddr::V6(_) => [
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
            Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 1).into(),
        ],
    };
    const NONE: u32 = 0;
    nobody
        .into_iter()
        .filter_map(|address| routing.lookup(address).ok().flatten())
        .find(|found| found.kind == RouteKind::Unicast)
        .map_or(NONE, |found| found.table)
}
