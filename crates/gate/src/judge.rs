//! The policy's word on a flow, given what the host's network is like at that moment.

use std::{
    cell::RefCell,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    rc::Rc,
    time::{Duration, Instant},
};

use ipnet::IpNet;
use stockade_policy::{
    Evidence, Flow, Hostname, NameVerdict, Policy, Protocol, Reason, Route, Verdict, decide,
    decide_claim, decide_name, decide_quic, is_on_internet,
};
use stockade_sys::rtnl::{RouteKind, Routing};
use stockade_wire::packet::Unreachable;
use tokio::{sync::oneshot, time::timeout};

use crate::{
    audit::denials::{Denials, Ruling, Subject},
    audit::events::{Entry, Event, Events, Grounds},
    names::pins::Pins,
};

const LOCALHOST_V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LOCALHOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

#[derive(Debug)]
pub(crate) struct Judge {
    policy: RefCell<Rc<Policy>>,
    /// Ports of loopback that stand for the host's.
    host_ports: Vec<u16>,
    routing: RefCell<Routing>,
    denials: RefCell<Denials>,
    events: Events,
    pub(crate) pins: Pins,
}

/// The right of a flow to pass.
#[derive(Debug)]
pub(crate) struct Admission {
    /// It may pass for the names of its destination only: those that it shows are to be
    /// judged.
    pub(crate) by_name: bool,
    /// Its destination is near, and a rule names it.
    pub(crate) near: bool,
    /// Its place in the book.
    pub(crate) entry: Entry,
}

/// What the agent is told instead.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) why: Unreachable,
    pub(crate) noted: Option<Noted>,
}

impl From<Unreachable> for Refusal {
    fn from(why: Unreachable) -> Self {
        Self { why, noted: None }
    }
}

/// Somebody wants to see who is denied before that one is told, and goes on.
#[derive(Debug)]
pub(crate) struct Noted(oneshot::Receiver<()>);

impl Noted {
    /// Returns when that has been done, or takes too long.
    pub(crate) async fn wait(self) {
        const PATIENCE: Duration = Duration::from_millis(30);
        let _ = timeout(PATIENCE, self.0).await;
    }
}

impl Judge {
    pub(crate) fn new(policy: Policy, host_ports: Vec<u16>, events: Events) -> io::Result<Self> {
        Ok(Self {
            policy: RefCell::new(Rc::new(policy)),
            host_ports,
            routing: RefCell::new(Routing::open()?),
            denials: RefCell::default(),
            events,
            pins: Pins::default(),
        })
    }

    pub(crate) fn policy(&self) -> Rc<Policy> {
        Rc::clone(&self.policy.borrow())
    }

    pub(crate) fn change_policy(&self, policy: Policy) {
        self.events.tell(Event::Reloaded {
            internet: policy.internet,
            rules: policy.rules.len(),
        });
        self.policy.replace(Rc::new(policy));
    }

    /// Whether the client's flow may pass, and else what the agent is told.
    pub(crate) fn judge(&self, client: SocketAddr, flow: Flow) -> Result<Admission, Refusal> {
        if self.is_host_port(&flow) {
            return Ok(Admission {
                by_name: false,
                near: true,
                entry: self
                    .events
                    .opened(flow, client, Vec::new(), Grounds::HostPort),
            });
        }
        let names = self.pins.names(flow.destination(), Instant::now());
        let evidence = Evidence {
            names: &names,
            ..self.evidence(&flow)
        };
        let verdict = decide(&self.policy(), &flow, &evidence);
        let near = !is_on_internet(&flow, &evidence);
        if verdict.is_allowed() {
            return Ok(Admission {
                by_name: verdict.rests_on_names(),
                near,
                entry: self
                    .events
                    .opened(flow, client, names, Grounds::Policy(Box::new(verdict))),
            });
        }
        // Without any route the attempt would fail outside the jail, too. That is not a
        // denial, and is told apart from one by its error.
        if matches!(verdict.reason(), Reason::NoRoute { .. }) {
            return Err(Unreachable::Network.into());
        }
        let ruling = Ruling::Flow(Box::new(verdict));
        Err(Refusal {
            why: Unreachable::AdminProhibited,
            noted: self.denied(Subject::Flow(flow), ruling, Some(client)),
        })
    }

    /// Whether a flow that was admitted for its names may show this one, and else why not.
    pub(crate) fn judge_claim(&self, flow: &Flow, claimed: &Hostname) -> Result<(), Ruling> {
        let names = self.pins.names(flow.destination(), Instant::now());
        let verdict = self.verdict(flow, &names, Some(claimed));
        if verdict.is_allowed() {
            return Ok(());
        }
        let ruling = Ruling::Flow(Box::new(verdict));
        let subject = Subject::Claim(*flow, claimed.to_string());
        self.denied(subject, ruling.clone(), None);
        Err(ruling)
    }

    /// Whether a flow may not pass because a datagram of it is QUIC's. Tells of that.
    pub(crate) fn denies_quic(&self, client: SocketAddr, flow: Flow) -> bool {
        let policy = self.policy();
        if policy.internet {
            return false;
        }
        let names = self.pins.names(flow.destination(), Instant::now());
        let evidence = Evidence {
            names: &names,
            ..self.evidence(&flow)
        };
        let verdict = decide_quic(&policy, &flow, &evidence);
        let denies = matches!(verdict.reason(), Reason::Quic { .. });
        if denies {
            let ruling = Ruling::Flow(Box::new(verdict));
            self.denied(Subject::Flow(flow), ruling, Some(client));
        }
        denies
    }

    /// Whether a name may be asked for.
    pub(crate) fn judge_name(&self, name: &Hostname) -> NameVerdict {
        decide_name(&self.policy(), name)
    }

    pub(crate) fn denied(
        &self,
        subject: Subject,
        ruling: Ruling,
        client: Option<SocketAddr>,
    ) -> Option<Noted> {
        let (sender, noted) = oneshot::channel();
        let mut denials = self.denials.borrow_mut();
        let first = denials.record(subject.clone(), ruling.clone());
        let waits = first && client.is_some();
        self.events.tell(Event::Denied {
            subject,
            ruling,
            client,
            noted: waits.then_some(sender),
        });
        waits.then_some(Noted(noted))
    }

    /// Something was not even judged, for want of room.
    pub(crate) fn overlooked(&self) {
        self.events.overlook();
    }

    /// A question for a name was sent on, and answered, or is given up.
    pub(crate) fn asked(&self, name: String, kind: String, addresses: Option<Vec<IpAddr>>) {
        self.events.tell(Event::Asked {
            name,
            kind,
            addresses,
        });
    }

    /// A program of the host connects to one inside.
    pub(crate) fn published(&self, flow: Flow, client: SocketAddr, outside: u16) -> Entry {
        let grounds = Grounds::Published { outside };
        self.events.opened(flow, client, Vec::new(), grounds)
    }

    /// Whether a flow that stands would be admitted again, and be looked at no more than it
    /// is. Tells nobody.
    pub(crate) fn may_stay(&self, flow: &Flow, by_name: bool, claimed: Option<&Hostname>) -> bool {
        if self.is_host_port(flow) {
            return true;
        }
        let names = self.pins.names(flow.destination(), Instant::now());
        let verdict = self.verdict(flow, &names, claimed);
        verdict.is_allowed() && (by_name || !verdict.rests_on_names())
    }

    pub(crate) fn take_denials(&self) -> Denials {
        self.denials.take()
    }

    /// Whether this port of loopback stands for the host's.
    pub(crate) fn has_host_port(&self, port: u16) -> bool {
        self.host_ports.contains(&port)
    }

    /// Of loopback only these ever come here: all other loopback is the jail's own.
    fn is_host_port(&self, flow: &Flow) -> bool {
        flow.protocol() == Protocol::Tcp
            && [LOCALHOST_V4, LOCALHOST_V6].contains(&flow.destination())
            && flow
                .port()
                .is_some_and(|port| self.has_host_port(port.get()))
    }

    fn verdict(&self, flow: &Flow, names: &[Hostname], claimed: Option<&Hostname>) -> Verdict {
        let policy = self.policy();
        let evidence = Evidence {
            names,
            ..self.evidence(flow)
        };
        match claimed {
            None => decide(&policy, flow, &evidence),
            Some(claimed) => decide_claim(&policy, flow, &evidence, claimed),
        }
    }

    /// What the host's kernel knows of the destination, and of the addresses that it
    /// carries inside.
    fn evidence(&self, flow: &Flow) -> Evidence<'static> {
        evidence(&mut self.routing.borrow_mut(), flow)
    }
}

fn evidence(routing: &mut Routing, flow: &Flow) -> Evidence<'static> {
    let direct = look_up(routing, flow.destination());
    flow.embedded()
        .map(|embedded| look_up(routing, embedded))
        .fold(direct, Evidence::also)
}

/// What the host's kernel knows of an address, as the gate would ask it. Without names.
///
/// # Errors
/// If the kernel cannot be asked.
pub fn host_evidence(address: IpAddr) -> io::Result<Evidence<'static>> {
    Ok(evidence(&mut Routing::open()?, &Flow::echo(address)))
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
        (RouteKind::Many, _) => (Route::Broadcast, false),
        // Rather too much of the host's own than too little.
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
