//! The policy's word on a flow, given what the host's network is like at that moment.

use std::{
    cell::RefCell,
    io,
    net::{IpAddr, Ipv6Addr},
};

use ipnet::IpNet;
use stockade_policy::{Evidence, Flow, Policy, Protocol, Reason, Route, decide};
use stockade_sys::rtnl::{RouteKind, Routing};
use stockade_wire::packet::Unreachable;

use crate::denials::Denials;

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
            && flow.destination().is_loopback()
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
    fn evidence(&self, flow: &Flow) -> Evidence {
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
fn look_up(routing: &mut Routing, destination: IpAddr) -> Evidence {
    let Ok(Some(found)) = routing.lookup(destination) else {
        return Evidence {
            route: Route::None,
            own: false,
        };
    };
    let prefix = IpNet::new(found.prefix, found.prefix_length);
    match (found.kind, prefix) {
        (RouteKind::Local, _) => Evidence {
            route: Route::Local,
            own: true,
        },
        (RouteKind::Unicast, Ok(prefix)) => Evidence {
            route: Route::through(prefix),
            own: false,
        },
        // Broadcast and multicast, which no flow can go to.
        (RouteKind::Other | RouteKind::Unicast, _) => Evidence {
            route: Route::Local,
            own: false,
        },
    }
}
