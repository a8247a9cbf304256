//! Which names are asked for, and what comes of the answers.
//!
//! With the internet closed, a name that no rule covers is answered here: not one packet goes
//! out for it, because the question itself could carry something. For a name that is covered,
//! every address in the answer is pinned to it before the answer leaves, so that a connection
//! straight after it is recognised. What was not asked for is taken out of the answer, and so
//! is what would hide the names of later connections (keys for encrypted hellos).
//!
//! With the internet open, answers pass as they come. Their addresses are pinned all the same:
//! a denial is easier to understand with a name in it. Only names that may lead to private
//! addresses are treated as if the internet were closed: their connections are looked into, too.

mod devices;
pub(crate) mod host_file;
pub(crate) mod hosts;
pub(crate) mod pins;
mod tunnel;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    rc::Rc,
    time::Instant,
};

use stockade_policy::{Flow, Hostname, NameReason, NameServer, NameVerdict, Protocol};
use stockade_wire::dns::{Answer, Class, ExtendedError, Name, Own, Query, Rcode, Type, is_unknown};

use crate::{
    audit::{
        denials::{Ruling, Subject, shown},
        events::Event,
    },
    dns::{Crowded, Upstream},
    judge::Judge,
    proxy::pool,
    questions::Decision,
};
use host_file::HostFile;
use tunnel::Budget;

/// How long an answer from the host's own file holds: the file may change.
const HOSTS_TTL: u32 = 10;

#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) judge: Rc<Judge>,
    hosts: HostFile<hosts::Table>,
    upstream: Upstream,
    budget: Budget,
    /// Whether the jail has IPv6. If not, no name has an IPv6 address there.
    ipv6: bool,
}

impl Names {
    pub(crate) fn new(judge: Rc<Judge>, ipv6: bool) -> Self {
        Self {
            judge,
            hosts: HostFile::default(),
            upstream: Upstream::default(),
            budget: Budget::default(),
            ipv6,
        }
    }

    /// The answer to a question that was sent to this server. If a rule names the server it is
    /// asked itself; it knows nothing of the host's file.
    pub(crate) async fn resolve(&self, query: &Query, from: &Asker) -> Result<Vec<u8>, Crowded> {
        let server = from.server;
        let name = Hostname::from_labels(query.name().labels());
        if let Some(device) = name.as_ref().and_then(|name| self.device(name, query)) {
            return Ok(self.resolve_device(query, &device).await);
        }
        // Whoever answers for a name of `near` chooses a private address. That is the host's resolvers
        // alone: a server that a rule names may serve anybody.
        let is_near = name.as_ref().is_some_and(|name| self.is_near(name));
        let by = match is_near {
            true => NameServer::default(),
            false => self.judge.name_server(server),
        };
        if !by.is_named()
            && let Some(answer) = self.own_answer(query, name.as_ref(), from).await
        {
            return Ok(answer);
        }
        let open = self.judge.policy().internet;
        match &name {
            Some(name) => {
                if let Err(refusal) = self.admit(query, name, from).await {
                    return Ok(refusal);
                }
            }
            None if !open => return Ok(self.refuse_malformed(query)),
            None => {}
        }
        // No program needs another class, and no line of the log would show it.
        if query.qclass() != Class::IN {
            return Ok(query.error(Rcode::Refused, None));
        }
        if query.qtype() == Type::AAAA && !self.ipv6 {
            return Ok(query.error(Rcode::NoError, None));
        }
        if !self.judge.may_be_logged() {
            return Ok(query.error(Rcode::ServFail, None));
        }
        let mut asked = Asked::new(&self.judge, query);
        // The proxy may know what the resolvers do not. A name of `near` is the company's own.
        let upstream = self.judge.upstream.as_ref();
        let may_be_proxied = !by.is_named() && !is_near;
        let by_proxy = upstream.zip(name.as_ref()).filter(|_| may_be_proxied);
        if let Some((upstream, name)) = by_proxy
            && let Some(address) = upstream.pool.fresh(name, Instant::now())
        {
            return Ok(stand_in(query, address, asked));
        }
        let answer = match by.is_named() {
            true => self.upstream.ask_named(server, by, query).await,
            false if is_near => self.upstream.ask_near(query).await,
            false => self.upstream.ask(query).await,
        };
        let answer = answer.inspect_err(|crowded| asked.withdraw_unless(crowded.has_left))?;
        let only_proxy = match by_proxy {
            Some((upstream, name)) if is_unknown(&answer) && upstream.may_know(name) => {
                self.is_unknown_here(query, name).await?
            }
            _ => false,
        };
        // The rules changed meanwhile: another server may have answered than the one to be asked now.
        if name.as_ref().is_some_and(|name| self.is_near(name)) != is_near {
            return Ok(query.error(Rcode::ServFail, None));
        }
        if let Some((upstream, name)) = by_proxy.filter(|_| only_proxy)
            && let Some(address) = upstream.pool.give(name, Instant::now())
        {
            return Ok(stand_in(query, address, asked));
        }
        Ok(self.release(query, name.as_ref(), answer, asked))
    }

    /// Whether the resolvers do not know a name either if they are asked as most programs ask. Of some
    /// questions they want to know nothing (a transfer, another class, one without recursion), and
    /// whoever asks those would have a name of the company's own left to the proxy.
    async fn is_unknown_here(&self, refused: &Query, name: &Hostname) -> Result<bool, Crowded> {
        let plain = Name::from_text(name.as_str()).and_then(|name| Query::of(&name, Type::A));
        Ok(match plain {
            Some(plain) if plain.key() == refused.key() => true,
            Some(plain) => is_unknown(&self.upstream.ask(&plain).await?),
            None => false,
        })
    }

    /// The addresses of a name that the gate itself looks up, by the host's file and resolvers.
    pub(crate) async fn addresses(&self, name: &Hostname) -> Vec<IpAddr> {
        let known = self.hosts.current().addresses(name).to_vec();
        if !known.is_empty() {
            return known;
        }
        let mut found = Vec::new();
        for kind in [Type::A, Type::AAAA] {
            let Some(query) =
                Name::from_text(name.as_str()).and_then(|name| Query::of(&name, kind))
            else {
                continue;
            };
            let Ok(answer) = self.upstream.ask(&query).await else {
                continue;
            };
            if let Ok(answer) = Answer::open(&query, &answer) {
                found.extend(answer.addresses().map(|(address, _)| address));
            }
        }
        found
    }

    /// Whether a name may be asked for, and else the answer. It may take the user's.
    async fn admit(&self, query: &Query, name: &Hostname, from: &Asker) -> Result<(), Vec<u8>> {
        let mut verdict = self.judge.judge_name(name);
        // Programs look up names of addresses for their logs; nobody is asked about that.
        if !verdict.is_allowed() && query.name().reversed_address().is_none() {
            if self.judge.questions().was_allowed_once(name) {
                return Ok(());
            }
            if let Some(waiting) = self.judge.hold_name(&verdict, from.socket()) {
                if let Decision::Once(_) = waiting.decision().await {
                    return Ok(());
                }
                verdict = self.judge.judge_name(name);
            }
        }
        if !verdict.is_allowed() {
            let note = verdict.note().unwrap_or_default();
            // Programs look up names of addresses for their logs; nobody misses those.
            if query.name().reversed_address().is_none() {
                let ruling = Ruling::Name(Box::new(verdict));
                let ruling = self.judge.named_proxy(name, ruling);
                self.judge.denied(name.into(), ruling, None);
            }
            return Err(refusal(query, note));
        }
        if self.affordable(query, &verdict) {
            return Ok(());
        }
        let why = "too much is said in names below a wildcard rule";
        let subject = Subject::Name(shown(name.as_str()));
        self.judge
            .denied(subject, Ruling::Malformed(why.to_owned()), None);
        Err(refusal(query, format!("Stockade: {why}")))
    }

    fn affordable(&self, query: &Query, verdict: &NameVerdict) -> bool {
        let NameReason::Rule { rule, .. } = verdict.reason() else {
            return true;
        };
        if self.judge.policy().internet {
            return true;
        }
        let wildcard = rule.name().filter(|pattern| pattern.is_wildcard());
        let suffix = wildcard.and_then(|pattern| Name::from_text(pattern.name().as_str()));
        let below = suffix.and_then(|suffix| query.name().below(&suffix));
        below.is_none_or(|below| {
            let asked = (query.name(), query.qtype());
            self.budget.spend(asked, below, Instant::now())
        })
    }

    /// Whether a name may lead to private addresses.
    fn is_near(&self, name: &Hostname) -> bool {
        self.judge.policy().is_near(name)
    }

    fn refuse_malformed(&self, query: &Query) -> Vec<u8> {
        let text = shown(&query.name().to_string());
        let why = "no rule can allow what is not a host name";
        self.judge
            .denied(Subject::Name(text), Ruling::Malformed(why.to_owned()), None);
        refusal(query, format!("Stockade: {why}"))
    }

    /// Pins the addresses of an answer, and gives what the client gets. What is no host name is
    /// asked for with the internet open only, and has no addresses that could be pinned.
    fn release(
        &self,
        query: &Query,
        name: Option<&Hostname>,
        answer: Vec<u8>,
        mut asked: Asked<'_>,
    ) -> Vec<u8> {
        let now = Instant::now();
        let opened = Answer::open(query, &answer);
        if let Ok(opened) = &opened {
            let mut addresses = Vec::new();
            let name = name.map(|name| (name, self.judge.standing(name)));
            for (address, ttl) in opened.addresses() {
                if let Some(name) = name {
                    self.judge.pins.pin(address, name, ttl, now);
                }
                addresses.push(address);
            }
            asked.addresses = Some(addresses);
        }
        // It is in the book before the client can act on it.
        drop(asked);
        let open = self.judge.policy().internet;
        let Some(name) = name.filter(|name| !open || self.is_near(name)) else {
            return answer;
        };
        let pins = &self.judge.pins;
        opened
            .and_then(|opened| opened.filtered(|hint| pins.is_pinned(hint, name, now)))
            .unwrap_or_else(|why| {
                let text = format!("Stockade: the answer is malformed: {why}");
                let code = ExtendedError::NETWORK_ERROR;
                query.error(Rcode::ServFail, Some(&ExtendedError { code, text }))
            })
    }

    /// What the host knows without asking: `localhost`, and its file of hosts.
    async fn own_answer(
        &self,
        query: &Query,
        name: Option<&Hostname>,
        from: &Asker,
    ) -> Option<Vec<u8>> {
        if let Some(address) = query.name().reversed_address() {
            return self.name_of(address, query);
        }
        let name = name?;
        if name.is_localhost() {
            let loopback = ["127.0.0.1", "::1"].map(|text| text.parse().map(Own::Address));
            let known: Vec<_> = loopback.into_iter().filter_map(Result::ok).collect();
            return Some(query.answer(&known, HOSTS_TTL));
        }
        let table = self.hosts.current();
        let addresses = table.addresses(name);
        if addresses.is_empty() {
            return None;
        }
        if let Err(refusal) = self.admit(query, name, from).await {
            return Some(refusal);
        }
        let reachable = addresses
            .iter()
            .filter(|address| self.ipv6 || address.is_ipv4());
        let now = Instant::now();
        let name = (name, self.judge.standing(name));
        let known: Vec<_> = reachable
            .inspect(|address| self.judge.pins.pin(**address, name, HOSTS_TTL, now))
            .map(|address| Own::Address(*address))
            .collect();
        Some(query.answer(&known, HOSTS_TTL))
    }

    /// The name of an address, if it is a device's or the file of hosts has it.
    fn name_of(&self, address: IpAddr, query: &Query) -> Option<Vec<u8>> {
        let policy = self.judge.policy();
        if let Some(device) = policy.rules.device_at(address) {
            let device = Name::from_text(device.as_str())?;
            return Some(query.answer(&[Own::Name(device)], HOSTS_TTL));
        }
        let table = self.hosts.current();
        let name = table.name(address)?;
        // What may not be asked for is not told either.
        if !self.judge.judge_name(name).is_allowed() {
            return None;
        }
        let name = Name::from_text(name.as_str())?;
        Some(query.answer(&[Own::Name(name)], HOSTS_TTL))
    }
}

/// The answer for a name that only the proxy knows: an address of the gate's own, which is one of
/// IPv4.
fn stand_in(query: &Query, address: Ipv4Addr, mut asked: Asked<'_>) -> Vec<u8> {
    let is_asked = query.qtype() == Type::A;
    asked.addresses = Some(is_asked.then_some(address.into()).into_iter().collect());
    drop(asked);
    let ttl = u32::try_from(pool::TTL.as_secs()).unwrap_or_default();
    query.answer(&[Own::Address(address.into())], ttl)
}

/// Who asks for a name, and which server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) protocol: Protocol,
}

impl Asker {
    /// The flow of the question itself, by which the program is found.
    fn socket(&self) -> Option<(Flow, SocketAddr)> {
        let flow = match self.protocol {
            Protocol::Udp => Flow::udp(self.server),
            Protocol::Tcp => Flow::tcp(self.server),
            Protocol::Icmp => None,
        };
        Some((flow?, self.client))
    }
}

/// A question that left the machine. It is told when its answer has come, or when nobody waits
/// for that any more: the session has ended.
struct Asked<'a> {
    judge: &'a Judge,
    query: &'a Query,
    addresses: Option<Vec<IpAddr>>,
    /// There was no place for it, so nobody was asked.
    is_withdrawn: bool,
}

impl<'a> Asked<'a> {
    fn new(judge: &'a Judge, query: &'a Query) -> Self {
        judge.events.promise_question();
        Self {
            judge,
            query,
            addresses: None,
            is_withdrawn: false,
        }
    }

    fn withdraw_unless(&mut self, has_left: bool) {
        if !has_left {
            self.is_withdrawn = true;
            self.judge.events.withdraw_question();
        }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.is_withdrawn {
            return;
        }
        self.judge.events.send(Event::Asked {
            name: self.query.name().to_string(),
            kind: self.query.qtype().to_string(),
            addresses: self.addresses.take(),
        });
    }
}

/// "No such name": programs take it for final, where they would try again after a refusal.
/// The reason stands beside it.
fn refusal(query: &Query, text: String) -> Vec<u8> {
    let code = ExtendedError::FILTERED;
    query.error(Rcode::NxDomain, Some(&ExtendedError { code, text }))
}
