//! What the host's kernel says about the way to an address.
//!
//! An answer is kept until the kernel says that a route, a rule, an address or a link has
//! changed. The gate looks for such messages before it uses an answer, so a network that
//! appears is known from the first packet to it. Some changes come without a message (a route
//! that a router announced runs out), so an answer is also not kept for long.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};

use ipnet::IpNet;
use stockade_policy::{Evidence, Flow, Hostname, Route, is_in_pool};
use stockade_sys::{
    rtnl::{RouteChanges, RouteKind, RouteMatch, Routing},
    transparent::Family,
};

use crate::proxy::{KnownDestination, Proxy};

const KEPT: Duration = Duration::from_secs(1);
/// No table has this number.
const NONE: u32 = 0;
/// Addresses. A program inside chooses them, so there may be very many.
const LIMIT: usize = 1024;

#[derive(Debug)]
pub(crate) struct Routes {
    // Heard before the first question is asked.
    changes: RouteChanges,
    routing: Routing,
    /// When the oldest answer was given.
    since: Instant,
    answers: HashMap<IpAddr, Evidence<'static>>,
    /// See [`Routes::usual_table`].
    usual: HashMap<Family, u32>,
}

impl Routes {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            changes: RouteChanges::open()?,
            routing: Routing::open()?,
            since: Instant::now(),
            answers: HashMap::new(),
            usual: HashMap::new(),
        })
    }

    /// What the kernel knows of the destination, and of the addresses that it carries inside.
    pub(crate) fn evidence(&mut self, flow: &Flow) -> Evidence<'static> {
        let is_old = self.since.elapsed() >= KEPT;
        if self.changes.any() || is_old || self.answers.len() >= LIMIT {
            self.since = Instant::now();
            self.answers.clear();
            self.usual.clear();
        }
        let direct = self.look_up(flow.destination());
        flow.embedded()
            .map(|embedded| self.look_up(embedded))
            .fold(direct, Evidence::also)
    }

    /// Whether the host itself has a network or an address there.
    pub(crate) fn knows(&mut self, address: IpAddr) -> bool {
        let route = self.look_up(address).route;
        matches!(route, Route::Specific(_) | Route::Local | Route::Broadcast)
    }

    /// Whether the host has a default route for this family of addresses.
    pub(crate) fn have_default(&mut self, family_of: IpAddr) -> bool {
        self.usual_table(family_of) != NONE
    }

    fn look_up(&mut self, destination: IpAddr) -> Evidence<'static> {
        if let Some(answer) = self.answers.get(&destination) {
            return *answer;
        }
        // If the kernel cannot be asked, there is no evidence for a way to the internet, and
        // only rules admit.
        let found = self.routing.lookup(destination);
        let answer = match &found {
            Ok(Some(found)) => self.evidence_of(destination, found),
            Ok(None) | Err(_) => evidence(Route::None, false),
        };
        if found.is_ok() {
            self.answers.insert(destination, answer);
        }
        answer
    }

    fn evidence_of(&mut self, destination: IpAddr, found: &RouteMatch) -> Evidence<'static> {
        let prefix = IpNet::new(found.prefix, found.prefix_length);
        match (found.kind, prefix) {
            (RouteKind::Local, _) => evidence(Route::Local, true),
            (RouteKind::Unicast, Ok(prefix)) => match Route::through(prefix) {
                // A table that a rule of the host reserves for some destinations may have a
                // default route of its own. The rule's prefix is not told, only the table.
                Route::Default if found.table != self.usual_table(destination) => {
                    evidence(Route::Specific(destination.into()), false)
                }
                route => evidence(route, false),
            },
            (RouteKind::Many, _) => evidence(Route::Broadcast, false),
            // Rather too much of the host's own than too little.
            (RouteKind::Other | RouteKind::Unicast, _) => evidence(Route::Local, false),
        }
    }

    /// The table in which the host finds its way to addresses that no rule and no route can
    /// mean, because nobody has them: those of documentation.
    fn usual_table(&mut self, family_of: IpAddr) -> u32 {
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
        let routing = &mut self.routing;
        let ask = || {
            nobody
                .into_iter()
                .filter_map(|address| routing.lookup(address).ok().flatten())
                .find(|found| found.kind == RouteKind::Unicast)
                .map_or(NONE, |found| found.table)
        };
        *self.usual.entry(Family::of(family_of)).or_insert_with(ask)
    }
}

fn evidence(route: Route, own: bool) -> Evidence<'static> {
    Evidence {
        route,
        own,
        names: &[],
    }
}

/// What the host's kernel knows of an address, as the gate would ask it. Without names.
///
/// # Errors
/// If the kernel cannot be asked.
pub fn host_evidence(address: IpAddr) -> io::Result<Evidence<'static>> {
    Ok(Routes::open()?.evidence(&Flow::echo(address)))
}

/// The same for an address that was given for these names, on a host that has a proxy at `located`.
/// One of the pool stands for its name.
///
/// # Errors
/// If the kernel cannot be asked.
pub fn host_evidence_by_proxy<'a>(
    address: IpAddr,
    names: &'a [Hostname],
    (proxy, located): (&Proxy, &[IpAddr]),
) -> io::Result<Evidence<'a>> {
    let mut routes = Routes::open()?;
    let evidence = Evidence {
        names,
        ..routes.evidence(&Flow::echo(address))
    };
    let known = KnownDestination {
        address,
        is_proxy: located.contains(&address),
        stands_for_name: !names.is_empty() && is_in_pool(address),
    };
    Ok(proxy.evidence(&known, evidence, &mut routes))
}

/// Whether the host has a default route for IPv6, so that offering it inside is no lie.
/// Any global address will do for the question.
#[must_use]
pub fn host_has_ipv6() -> bool {
    const GLOBAL: Ipv6Addr = Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1);
    host_evidence(GLOBAL.into()).is_ok_and(|evidence| evidence.route == Route::Default)
}
