//! The policy's word on a flow, given what the host's network is like at that moment.

use std::{
    cell::RefCell,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use stockade_policy::{
    Evidence, Flow, Hostname, NameServer, NameVerdict, Policy, Protocol, Reason, Verdict, decide,
    decide_claim, decide_name, decide_quic, is_on_internet,
};
use stockade_wire::packet::Unreachable;

use crate::{
    audit::{
        attribution::{Attributor, HeldClient},
        denials::{Denials, Novelty, Ruling, Subject},
        events::{Event, EventSender, Grounds},
    },
    flows::{ActiveFlow, Admission, FlowTable},
    names::pins::Pins,
    routes::Routes,
};

const LOCALHOST_V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LOCALHOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

#[derive(Debug)]
pub(crate) struct Judge {
    policy: RefCell<Rc<Policy>>,
    /// Ports of loopback that stand for the host's.
    host_ports: Vec<u16>,
    routes: RefCell<Routes>,
    denials: RefCell<Denials>,
    attributor: Attributor,
    pub(crate) events: EventSender,
    flows: FlowTable,
    pub(crate) pins: Pins,
}

/// What the agent is told instead.
#[derive(Debug)]
pub(crate) struct FlowRefusal {
    pub(crate) why: Unreachable,
    /// Before that, somebody finds out who was denied.
    pub(crate) held: Option<HeldClient>,
}

impl From<Unreachable> for FlowRefusal {
    fn from(why: Unreachable) -> Self {
        Self { why, held: None }
    }
}

impl Judge {
    pub(crate) fn new(
        policy: Policy,
        host_ports: Vec<u16>,
        events: EventSender,
        attributor: Attributor,
    ) -> io::Result<Self> {
        Ok(Self {
            policy: RefCell::new(Rc::new(policy)),
            host_ports,
            routes: RefCell::new(Routes::open()?),
            denials: RefCell::default(),
            attributor,
            events,
            flows: FlowTable::default(),
            pins: Pins::default(),
        })
    }

    pub(crate) fn policy(&self) -> Rc<Policy> {
        Rc::clone(&self.policy.borrow())
    }

    /// Judges by another policy from now on, and ends the flows that it does not allow.
    pub(crate) fn change_policy(&self, policy: Policy) {
        // Each denial stands on its side of the change.
        self.tell_folded(Duration::ZERO);
        self.events.send(Event::Reloaded {
            internet: policy.internet,
            rules: policy.rules.len(),
        });
        self.policy.replace(Rc::new(policy));
        self.flows.review(|flow| self.may_stay(flow));
    }

    /// Whether the client's flow may pass, and else what the agent is told.
    pub(crate) fn judge(
        &self,
        client: SocketAddr,
        flow: Flow,
    ) -> Result<Arc<ActiveFlow>, FlowRefusal> {
        if self.is_host_port(&flow) {
            if !self.may_be_logged() {
                return Err(Unreachable::Host.into());
            }
            let why = (Vec::new(), Grounds::HostPort);
            return Ok(self.admit((flow, client), why, Admission::LOCAL));
        }
        let names = self.names(&flow);
        let evidence = self.evidence(&flow, &names);
        let verdict = decide(&self.policy(), &flow, &evidence);
        let near = !is_on_internet(&flow, &evidence);
        if verdict.is_allowed() {
            if !self.may_be_logged() {
                return Err(Unreachable::Host.into());
            }
            let by_name = verdict.rests_on_names();
            let pins = by_name.then(|| self.pins.hold(flow.destination(), Instant::now()));
            let admission = Admission {
                by_name,
                near,
                _pins: pins.flatten(),
            };
            let grounds = Grounds::Policy(Box::new(verdict));
            return Ok(self.admit((flow, client), (names, grounds), admission));
        }
        // Without any route the attempt would fail outside the jail, too. That is not a
        // denial, and is told apart from one by its error.
        if matches!(verdict.reason(), Reason::NoRoute) {
            return Err(Unreachable::Network.into());
        }
        let ruling = Ruling::Flow(Box::new(verdict));
        Err(FlowRefusal {
            why: Unreachable::AdminProhibited,
            held: self.denied(Subject::Flow(flow), ruling, Some(client)),
        })
    }

    fn admit(
        &self,
        who: (Flow, SocketAddr),
        why: (Vec<Hostname>, Grounds),
        admission: Admission,
    ) -> Arc<ActiveFlow> {
        let flow = ActiveFlow::open(&self.events, who, why, admission);
        // From this moment on, so that a change of the policy finds it whatever it waits for.
        self.flows.enter(&flow);
        flow
    }

    /// Whether a flow that was admitted for its names may show this one, and else why not.
    pub(crate) fn judge_claim(&self, flow: &Flow, claimed: &Hostname) -> Result<(), Ruling> {
        let verdict = self.verdict(flow, Some(claimed));
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
        let names = self.names(&flow);
        let verdict = decide_quic(&policy, &flow, &self.evidence(&flow, &names));
        let denies = matches!(verdict.reason(), Reason::Quic { .. });
        if denies {
            let ruling = Ruling::Flow(Box::new(verdict));
            self.denied(Subject::Flow(flow), ruling, Some(client));
        }
        denies
    }

    /// How a name server can be asked itself: a rule names it, and it may be reached.
    pub(crate) fn name_server(&self, server: SocketAddr) -> NameServer {
        let named = self.policy().name_server(server.ip().to_canonical());
        let may =
            |flow: Option<Flow>| flow.is_some_and(|flow| self.verdict(&flow, None).is_allowed());
        NameServer {
            udp: named.udp && may(Flow::udp(server)),
            tcp: named.tcp && may(Flow::tcp(server)),
        }
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
    ) -> Option<HeldClient> {
        let mut denials = self.denials.borrow_mut();
        let novelty = denials.record(&subject, &ruling, &self.events);
        if novelty == Novelty::Folded {
            return None;
        }
        let asked = match (&subject, client) {
            (Subject::Flow(flow), Some(client)) => self.attributor.ask(*flow, client),
            _ => None,
        };
        let (program, held) = asked.unzip();
        self.events.send(Event::Denied {
            subject,
            ruling,
            program,
        });
        held.filter(|_| novelty == Novelty::First)
    }

    /// Tells the log of denials that were folded for so long.
    pub(crate) fn tell_folded(&self, age: Duration) {
        self.denials.borrow_mut().tell_folded(age, &self.events);
    }

    /// Whether what passes now can be logged. Else it must not pass, and is counted.
    pub(crate) fn may_be_logged(&self) -> bool {
        self.events.have_room()
    }

    /// A program of the host connects to one inside.
    pub(crate) fn published(
        &self,
        flow: Flow,
        client: SocketAddr,
        outside: u16,
    ) -> Arc<ActiveFlow> {
        let why = (Vec::new(), Grounds::Published { outside });
        // Not in the table: it is the user's own side that connects.
        ActiveFlow::open(&self.events, (flow, client), why, Admission::LOCAL)
    }

    /// Whether a flow that stands would be admitted again, and be looked at no more than it
    /// is. Tells nobody.
    fn may_stay(&self, active: &ActiveFlow) -> bool {
        let flow = &active.flow;
        if self.is_host_port(flow) {
            return true;
        }
        let verdict = self.verdict(flow, active.claimed().as_ref());
        verdict.is_allowed() && (active.admission.by_name || !verdict.rests_on_names())
    }

    pub(crate) fn take_denials(&self) -> Denials {
        self.tell_folded(Duration::ZERO);
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

    fn verdict(&self, flow: &Flow, claimed: Option<&Hostname>) -> Verdict {
        let (policy, names) = (self.policy(), self.names(flow));
        let evidence = self.evidence(flow, &names);
        match claimed {
            None => decide(&policy, flow, &evidence),
            Some(claimed) => decide_claim(&policy, flow, &evidence, claimed),
        }
    }

    fn names(&self, flow: &Flow) -> Vec<Hostname> {
        self.pins.names(flow.destination(), Instant::now())
    }

    fn evidence<'a>(&self, flow: &Flow, names: &'a [Hostname]) -> Evidence<'a> {
        Evidence {
            names,
            ..self.routes.borrow_mut().evidence(flow)
        }
    }
}
