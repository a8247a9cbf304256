//! Which names are asked for, and what comes of the answers.
//!
//! With the internet closed, a name that no rule covers is answered here: not one packet goes
//! out for it, because the question itself could carry something. For a name that is covered,
//! every address in the answer is pinned to it before the answer leaves, so that a connection
//! straight after it is recognised. What was not asked for is taken out of the answer, and so
//! is what would hide the names of later connections (keys for encrypted hellos).
//!
//! With the internet open, answers pass as they come. Their addresses are pinned all the same:
//! a denial is easier to understand with a name in it.

pub(crate) mod host_file;
pub(crate) mod hosts;
pub(crate) mod pins;
mod tunnel;

use std::{
    net::{IpAddr, SocketAddr},
    rc::Rc,
    time::Instant,
};

use stockade_policy::{Hostname, NameReason, NameVerdict};
use stockade_wire::dns::{Answer, Class, ExtendedError, Name, Own, Query, Rcode, Type};

use crate::{
    audit::{
        denials::{Ruling, Subject, shown},
        events::Event,
    },
    dns::Upstream,
    judge::Judge,
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
    pub(crate) async fn resolve(&self, query: &Query, server: SocketAddr) -> Vec<u8> {
        let name = Hostname::from_labels(query.name().labels());
        let by = self.judge.name_server(server);
        if !by.is_named()
            && let Some(answer) = self.own_answer(query, name.as_ref())
        {
            return answer;
        }
        let open = self.judge.policy().internet;
        match &name {
            Some(name) => {
                if let Err(refusal) = self.admit(query, name) {
                    return refusal;
                }
            }
            None if !open => return self.refuse_malformed(query),
            None => {}
        }
        // No program needs another class, and what it means nobody knows.
        if !open && query.qclass() != Class::IN {
            return query.error(Rcode::Refused, None);
        }
        if query.qtype() == Type::AAAA && !self.ipv6 {
            return query.error(Rcode::NoError, None);
        }
        if !self.judge.may_be_logged() {
            return query.error(Rcode::ServFail, None);
        }
        let asked = Asked {
            judge: &self.judge,
            query,
            addresses: None,
        };
        let answer = match by.is_named() {
            true => self.upstream.ask_named(server, by, query).await,
            false => self.upstream.ask(query).await,
        };
        self.release(query, name.as_ref(), answer, asked)
    }

    /// Whether a name may be asked for, and else the answer.
    fn admit(&self, query: &Query, name: &Hostname) -> Result<(), Vec<u8>> {
        let verdict = self.judge.judge_name(name);
        if !verdict.is_allowed() {
            let note = verdict.note().unwrap_or_default();
            // Programs look up names of addresses for their logs; nobody misses those.
            if query.name().reversed_address().is_none() {
                self.judge
                    .denied(name.into(), Ruling::Name(Box::new(verdict)), None);
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
        let Some(name) = name.filter(|_| !self.judge.policy().internet) else {
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
    fn own_answer(&self, query: &Query, name: Option<&Hostname>) -> Option<Vec<u8>> {
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
        if let Err(refusal) = self.admit(query, name) {
            return Some(refusal);
        }
        let reachable = addresses
            .iter()
            .filter(|address| self.ipv6 || address.is_ipv4());
        let now = Instant::now();
        let known: Vec<_> = reachable
            .inspect(|address| self.judge.pins.pin(**address, name, HOSTS_TTL, now))
            .map(|address| Own::Address(*address))
            .collect();
        Some(query.answer(&known, HOSTS_TTL))
    }

    /// The name of an address, as far as the file of hosts has it.
    fn name_of(&self, address: IpAddr, query: &Query) -> Option<Vec<u8>> {
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

/// A question that left the machine. It is told when its answer has come, or when nobody waits
/// for that any more: the session has ended.
struct Asked<'a> {
    judge: &'a Judge,
    query: &'a Query,
    addresses: Option<Vec<IpAddr>>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
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
