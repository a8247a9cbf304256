//! The policy's word on a flow, given what the host's network is like at that moment.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use ipnet::IpNet;
use stockade_policy::{
    Evidence, Flow, Host, Hostname, InsideExplanation, NameReason, NameServer, NameVerdict, Policy,
    Protocol, ProxyAddress, Reason, Route, Rule, Target, Verdict, decide, decide_answer,
    decide_claim, decide_name, decide_quic, decide_search, explain_inside, is_on_internet,
};
use stockade_wire::packet::Unreachable;

use crate::{
    audit::{
        attribution::{Attributor, HeldClient},
        denials::{Denials, Novelty, Ruling, Subject},
        events::{Event, EventSender, Grounds},
    },
    dns::resolvers::{Resolvers, SplitResolvers},
    flows::{ActiveFlow, Admission, FlowTable, Traffic},
    names::host_file::HostFile,
    names::pins::{Pins, Standing},
    proxy::{Proxies, Upstream},
    questions::{Decision, Questions, Unknown, Waiting},
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
    /// The proxy, if the internet is reached through one.
    pub(crate) upstream: Option<Rc<Upstream>>,
    /// The proxies that programs inside may try.
    named_proxies: Vec<(&'static str, ProxyAddress)>,
    resolvers: HostFile<Resolvers>,
    split: HostFile<SplitResolvers>,
    questions: Rc<Questions>,
}

/// The word on a flow.
#[derive(Debug)]
pub(crate) enum Judgement {
    Admitted(Arc<ActiveFlow>),
    Refused(FlowRefusal),
    /// The user is asked.
    Held(Waiting),
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
        (questions, proxies): (Questions, Proxies),
    ) -> io::Result<Self> {
        let mut routes = Routes::open()?;
        let is_taken = |part: IpNet| {
            let mut networks = policy.rules.iter().filter_map(Rule::network);
            networks.any(|network| network.contains(&part) || part.contains(&network))
        };
        let upstream = proxies
            .used
            .map(|proxy| Upstream::new(proxy, &mut routes, is_taken).map(Rc::new))
            .transpose()?;
        Ok(Self {
            policy: RefCell::new(Rc::new(policy)),
            host_ports,
            routes: RefCell::new(routes),
            denials: RefCell::default(),
            attributor,
            events,
            flows: FlowTable::default(),
            pins: Pins::default(),
            upstream,
            named_proxies: proxies.named,
            resolvers: HostFile::default(),
            split: HostFile::default(),
            questions: Rc::new(questions),
        })
    }

    pub(crate) fn policy(&self) -> Rc<Policy> {
        Rc::clone(&self.policy.borrow())
    }

    /// Judges by another policy from now on, and ends the flows that it does not allow. What waits for
    /// an answer and is decided by it waits no more.
    pub(crate) fn change_policy(&self, policy: Policy, asks: bool) {
        // Each denial stands on its side of the change.
        self.tell_folded(Duration::ZERO);
        self.events.send(Event::Reloaded {
            internet: policy.internet,
            rules: policy.rules.len(),
        });
        let before = self.policy.replace(Rc::new(policy));
        // Another server than the host's resolvers may have given the addresses of what is near now
        // (`Names::resolve`), and a device's name may mean another one.
        let now = self.policy();
        let is_other = |name: &Hostname| before.rules.device(name) != now.rules.device(name);
        self.pins
            .forget(|name| is_other(name) || (now.is_near(name) && !before.is_near(name)));
        // What is near now is the company's own, and none of the proxy's.
        if let Some(upstream) = &self.upstream {
            upstream.pool.forget(|name| now.is_near(name));
        }
        self.flows.review(|flow| self.may_stay(flow));
        self.questions.review(asks, |subject| match subject {
            Subject::Flow(flow) => self.verdict(flow, None, None).is_allowed(),
            Subject::Name(name) => name
                .parse()
                .is_ok_and(|name| self.judge_name(&name).is_allowed()),
            Subject::Answer(_) | Subject::Claim(..) | Subject::HostPort(_) | Subject::Packet(_) => {
                false
            }
        });
    }

    /// How much the flows with these numbers have moved.
    pub(crate) fn traffic(&self, flows: &HashSet<u64>) -> HashMap<u64, Traffic> {
        self.flows.traffic(flows)
    }

    pub(crate) fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Whether the client's flow may pass, and else what the agent is told. It may wait for an answer.
    pub(crate) fn judge(&self, client: SocketAddr, flow: Flow) -> Judgement {
        match self.settle(client, flow, (None, None)) {
            Ok(admitted) => Judgement::Admitted(admitted),
            Err((why, None)) => Judgement::Refused(why.into()),
            Err((why, Some(verdict))) => match self.hold(client, flow, &verdict) {
                Some(waiting) => Judgement::Held(waiting),
                None => Judgement::Refused(self.refuse(client, flow, why, verdict)),
            },
        }
    }

    /// The same for a flow that has waited for its answer.
    pub(crate) fn judge_answered(
        &self,
        client: SocketAddr,
        flow: Flow,
        decision: Decision,
    ) -> Result<Arc<ActiveFlow>, FlowRefusal> {
        let once = match decision {
            Decision::Once(rule) => Some(rule),
            Decision::Judge | Decision::Deny => None,
        };
        self.settle_now(client, flow, (once, None))
    }

    /// The same for a flow that is there because the client sent something to many: a `search`.
    pub(crate) fn judge_search(
        &self,
        client: SocketAddr,
        flow: Flow,
        search: Flow,
    ) -> Result<Arc<ActiveFlow>, FlowRefusal> {
        self.settle_now(client, flow, (None, Some(search)))
    }

    /// Nothing waits for an answer.
    fn settle_now(
        &self,
        client: SocketAddr,
        flow: Flow,
        because: (Option<Rule>, Option<Flow>),
    ) -> Result<Arc<ActiveFlow>, FlowRefusal> {
        self.settle(client, flow, because)
            .map_err(|(why, verdict)| match verdict {
                Some(verdict) => self.refuse(client, flow, why, verdict),
                None => why.into(),
            })
    }

    fn hold(&self, client: SocketAddr, flow: Flow, verdict: &Verdict) -> Option<Waiting> {
        let names = self.names(&flow);
        let ruling = Ruling::Flow(Box::new(verdict.clone()));
        let ruling = self.at_proxy(&flow, &names, ruling);
        // Whoever reaches a proxy goes around the rules; there is a setting for it.
        if matches!(ruling, Ruling::ProxyVariable(..)) {
            return None;
        }
        let unknown = Unknown {
            subject: Subject::Flow(flow),
            ruling,
            rule: &verdict.question()?,
            names,
            socket: Some((flow, client)),
        };
        self.questions.hold(unknown, &self.attributor)
    }

    /// Has the user asked about a name. `socket` is that of whoever wants to know it.
    pub(crate) fn hold_name(
        &self,
        verdict: &NameVerdict,
        socket: Option<(Flow, SocketAddr)>,
    ) -> Option<Waiting> {
        let ruling = Ruling::Name(Box::new(verdict.clone()));
        let ruling = self.named_proxy(verdict.name(), ruling);
        if matches!(ruling, Ruling::ProxyVariable(..)) {
            return None;
        }
        let unknown = Unknown {
            subject: verdict.name().into(),
            ruling,
            rule: &verdict.fix()?,
            names: vec![verdict.name().clone()],
            socket,
        };
        self.questions.hold(unknown, &self.attributor)
    }

    /// Refuses a flow that is signed with a key. What the rules deny anyway is denied for their reason.
    pub(crate) fn refuse_signed(&self, client: SocketAddr, flow: Flow) -> FlowRefusal {
        let why = Unreachable::AdminProhibited;
        let verdict = self.verdict(&flow, None, None);
        if !verdict.is_allowed() && !self.is_host_port(&flow) {
            return self.refuse(client, flow, why, Box::new(verdict));
        }
        let text = "a connection that is signed with a key (TCP MD5, TCP-AO) cannot leave the jail";
        let ruling = Ruling::Malformed(text.to_owned());
        let held = self.denied(Subject::Flow(flow), ruling, Some(client));
        FlowRefusal { why, held }
    }

    fn refuse(
        &self,
        client: SocketAddr,
        flow: Flow,
        why: Unreachable,
        verdict: Box<Verdict>,
    ) -> FlowRefusal {
        let ruling = self.at_proxy(&flow, &self.names(&flow), Ruling::Flow(verdict));
        let held = self.denied(Subject::Flow(flow), ruling, Some(client));
        FlowRefusal { why, held }
    }

    /// Admits a flow, or says what the agent is told; with the verdict, if that is a denial. `once` is
    /// a rule that the user allowed this flow by, `search` what it is a copy of.
    fn settle(
        &self,
        client: SocketAddr,
        flow: Flow,
        (once, search): (Option<Rule>, Option<Flow>),
    ) -> Result<Arc<ActiveFlow>, (Unreachable, Option<Box<Verdict>>)> {
        if self.is_host_port(&flow) {
            if !self.may_be_logged() {
                return Err((Unreachable::Host, None));
            }
            let why = (Vec::new(), Grounds::HostPort);
            return Ok(self.admit((flow, client), why, Admission::LOCAL));
        }
        let names = self.names(&flow);
        let evidence = self.evidence(&flow, &names);
        let verdict = decide(&self.policy_with(once.as_ref()), &flow, &evidence);
        let near = !is_on_internet(&flow, &evidence);
        if verdict.is_allowed() {
            if !self.may_be_logged() {
                return Err((Unreachable::Host, None));
            }
            let by_name = verdict.rests_on_names();
            let destination = flow.destination();
            let pins = by_name.then(|| self.pins.hold(destination, Instant::now()));
            let pool = self.upstream.as_ref().map(|upstream| &upstream.pool);
            let pooled = pool.and_then(|pool| pool.hold(destination));
            let admission = Admission {
                by_name,
                near,
                once,
                proxied: (self.upstream.as_ref())
                    .filter(|_| evidence.route == Route::Proxied)
                    .map(|upstream| asked_of_proxy(upstream, &flow, &verdict, &names)),
                _pins: pooled.or(pins.flatten()),
            };
            let verdict = Box::new(verdict);
            let grounds = match search {
                Some(search) => Grounds::Search(verdict, search),
                None => Grounds::Policy(verdict),
            };
            return Ok(self.admit((flow, client), (names, grounds), admission));
        }
        // Without any route the attempt would fail outside the jail, too. That is not a
        // denial, and is told apart from one by its error.
        if matches!(verdict.reason(), Reason::NoRoute) {
            return Err((Unreachable::Network, None));
        }
        Err((Unreachable::AdminProhibited, Some(Box::new(verdict))))
    }

    /// The devices that a datagram to many goes to, if it is a search: by their addresses, and by their
    /// names. If there are none, this logs a denial. `None` if it is something else.
    pub(crate) fn search(
        &self,
        client: SocketAddr,
        flow: &Flow,
    ) -> Option<(Vec<SocketAddr>, Vec<Hostname>)> {
        let policy = self.policy();
        // Most policies have none, and most flows are no search.
        if !flow.port().is_some_and(|port| policy.discovers(port)) {
            return None;
        }
        let verdict = decide_search(&policy, flow, &self.evidence(flow, &[]))?;
        if let Reason::Search { devices, named } = verdict.reason() {
            return Some((devices.clone(), named.clone()));
        }
        self.denied(
            Subject::Flow(*flow),
            Ruling::Flow(Box::new(verdict)),
            Some(client),
        );
        Some((Vec::new(), Vec::new()))
    }

    /// Whether a datagram may come in that answers a search of the client's from somewhere that was
    /// not asked: a rule has to cover where it comes from. A denial is logged if it `may_be_told`,
    /// and else only counted.
    pub(crate) fn judge_answer(
        &self,
        client: SocketAddr,
        from: Flow,
        may_be_told: impl FnOnce() -> bool,
    ) -> Option<Arc<ActiveFlow>> {
        let names = self.names(&from);
        let verdict = decide_answer(&self.policy(), &from, &self.evidence(&from, &names));
        if verdict.is_allowed() {
            return self.judge_answered(client, from, Decision::Judge).ok();
        }
        if may_be_told() {
            let ruling = Ruling::Flow(Box::new(verdict));
            self.denied(Subject::Answer(from), ruling, None);
        } else {
            self.events.overlook();
        }
        None
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

    /// The same ruling, with what helps if the flow is for a proxy that a variable names.
    fn at_proxy(&self, flow: &Flow, names: &[Hostname], ruling: Ruling) -> Ruling {
        let is_proxy = |proxy: &ProxyAddress| {
            let is_host = match &proxy.host {
                Host::Address(address) => *address == flow.destination(),
                Host::Name(name) => self.is_meant_by(name, names),
            };
            is_host && flow.protocol() == Protocol::Tcp && flow.port() == Some(proxy.port)
        };
        self.with_variable(is_proxy, ruling)
    }

    /// The same for a question for its name.
    pub(crate) fn named_proxy(&self, name: &Hostname, ruling: Ruling) -> Ruling {
        let names = std::slice::from_ref(name);
        let is_proxy = |proxy: &ProxyAddress| match &proxy.host {
            Host::Address(_) => false,
            Host::Name(host) => self.is_meant_by(host, names),
        };
        self.with_variable(is_proxy, ruling)
    }

    /// Whether one of these names is what a variable says, maybe completed by a search domain.
    fn is_meant_by(&self, said: &Hostname, names: &[Hostname]) -> bool {
        names.contains(said) || self.completed(said, names).is_some()
    }

    fn with_variable(&self, is_proxy: impl Fn(&ProxyAddress) -> bool, ruling: Ruling) -> Ruling {
        let mut named = self.named_proxies.iter();
        match named.find(|(_, proxy)| is_proxy(proxy)) {
            Some((variable, _)) if self.upstream.is_none() => {
                Ruling::ProxyVariable(variable, Box::new(ruling))
            }
            _ => ruling,
        }
    }

    /// Whether a flow that was admitted for its names may show this one, and else why not.
    pub(crate) fn judge_claim(
        &self,
        active: &ActiveFlow,
        claimed: &Hostname,
    ) -> Result<(), Ruling> {
        let flow = &active.flow;
        let verdict = self.verdict(flow, Some(claimed), active.admission.once.as_ref());
        if verdict.is_allowed() {
            return Ok(());
        }
        let ruling = Ruling::Flow(Box::new(verdict));
        let subject = Subject::Claim(*flow, claimed.to_string());
        self.denied(subject, ruling.clone(), None);
        Err(ruling)
    }

    /// Whether a flow may not pass because a datagram of it is QUIC's. Tells of that. `once` is the
    /// rule that it was allowed by, if that is in no policy.
    pub(crate) fn denies_quic(&self, client: SocketAddr, flow: Flow, once: Option<&Rule>) -> bool {
        let policy = self.policy_with(once);
        if policy.internet && !policy.has_near_names() {
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
        let may = |flow: Option<Flow>| {
            flow.is_some_and(|flow| self.verdict(&flow, None, None).is_allowed())
        };
        NameServer {
            udp: named.udp && may(Flow::udp(server)),
            tcp: named.tcp && may(Flow::tcp(server)),
        }
    }

    /// Whether a name may be asked for.
    pub(crate) fn judge_name(&self, name: &Hostname) -> NameVerdict {
        decide_name(&self.policy(), name)
    }

    /// How much the rules mean a name. The user's answer is as good as a rule.
    pub(crate) fn standing(&self, name: &Hostname) -> Standing {
        let verdict = self.judge_name(name);
        let NameReason::Rule { index, .. } = verdict.reason() else {
            return match self.questions().was_allowed_once(name) {
                true => Standing::Named,
                false => Standing::Uncovered,
            };
        };
        let policy = self.policy();
        let mut patterns = policy.rules.iter().filter_map(Rule::name);
        match patterns.any(|it| !it.is_wildcard() && it.name() == name) {
            true => Standing::Named,
            false => Standing::Wildcard(*index),
        }
    }

    /// What a program inside may know of the decision on a target that has these addresses.
    pub(crate) fn explain(&self, target: &Target, addresses: &[IpAddr]) -> InsideExplanation {
        let known: Vec<_> = addresses
            .iter()
            .map(|address| {
                let flow = Flow::echo(*address);
                (flow, self.names(&flow))
            })
            .collect();
        let hosts = known
            .iter()
            .map(|(flow, names)| (flow.destination(), self.evidence(flow, names)));
        explain_inside(&self.policy(), target, hosts)
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
        let once = active.admission.once.as_ref();
        let verdict = self.verdict(flow, active.claimed().as_ref(), once);
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

    /// The policy, with a rule that was allowed for one flow.
    fn policy_with(&self, once: Option<&Rule>) -> Rc<Policy> {
        match once {
            Some(rule) => Rc::new(self.policy().with(rule.clone())),
            None => self.policy(),
        }
    }

    fn verdict(&self, flow: &Flow, claimed: Option<&Hostname>, once: Option<&Rule>) -> Verdict {
        let (policy, names) = (self.policy_with(once), self.names(flow));
        let evidence = self.evidence(flow, &names);
        match claimed {
            None => decide(&policy, flow, &evidence),
            Some(claimed) => {
                let meant = self.completed(claimed, &names);
                decide_claim(&policy, flow, &evidence, meant.as_ref().unwrap_or(claimed))
            }
        }
    }

    /// A short name in full, or a device's name that was written in full: which of the names of
    /// the destination is meant by one that the program says, if a search domain makes one of the
    /// other.
    fn completed(&self, claimed: &Hostname, names: &[Hostname]) -> Option<Hostname> {
        if names.contains(claimed) {
            return None;
        }
        let policy = self.policy();
        let is_device = |name: &Hostname| policy.rules.device(name).is_some();
        let (host, split) = (self.resolvers.current(), self.split.current());
        let mut domains = host.search.iter().chain(&split.0.search);
        domains.find_map(|domain| {
            let is_meant = |name: &&Hostname| {
                is_completion(name, claimed, domain)
                    || (is_device(name) && is_completion(claimed, name, domain))
            };
            names.iter().find(is_meant).cloned()
        })
    }

    fn names(&self, flow: &Flow) -> Vec<Hostname> {
        let destination = flow.destination();
        // An address of the gate's own stands for one name, whatever a resolver says.
        match &self.upstream {
            Some(upstream) if let Some(name) = upstream.pool.name(destination) => vec![name],
            _ => self.pins.names(destination, Instant::now()),
        }
    }

    fn evidence<'a>(&self, flow: &Flow, names: &'a [Hostname]) -> Evidence<'a> {
        let mut routes = self.routes.borrow_mut();
        let evidence = Evidence {
            names,
            ..routes.evidence(flow)
        };
        match &self.upstream {
            Some(upstream) => upstream.evidence(flow.destination(), evidence, &mut routes),
            None => evidence,
        }
    }
}

/// What the proxy is asked for: the name that the flow was admitted for, or the latest that its
/// destination was given for. A rule for the address means the address, and so does a name that
/// the proxy is not to choose an address for.
fn asked_of_proxy(upstream: &Upstream, flow: &Flow, verdict: &Verdict, names: &[Hostname]) -> Host {
    let name = match verdict.reason() {
        Reason::Name { name, .. } => Some(name),
        Reason::Rule { .. } => None,
        _ => names.first(),
    };
    let name = name.filter(|name| upstream.may_be_told(name));
    name.map_or(Host::Address(flow.destination()), |name| {
        Host::Name(name.clone())
    })
}

/// Whether `domain` makes `whole` of the one word `short`.
fn is_completion(whole: &Hostname, short: &Hostname, domain: &Hostname) -> bool {
    let rest = whole.as_str().strip_prefix(short.as_str());
    let rest = rest.and_then(|rest| rest.strip_prefix('.'));
    rest == Some(domain.as_str()) && !short.as_str().contains('.')
}
