//! Devices: names of the user's own, which the gate answers itself.

use std::{net::IpAddr, time::Instant};

use stockade_policy::{Hostname, NamePattern};
use stockade_wire::dns::{Answer, Class, Name, Own, Query, Rcode, Type, is_failure};

use super::{Asked, HOSTS_TTL, Names, pins::Standing};

/// What is asked about zones. A device may have the name of one (`cam`), and is none.
const OF_ZONES: [Type; 4] = [Type::NS, Type::SOA, Type::DS, Type::DNSKEY];

impl Names {
    /// The device that is meant by a name: its own, or what a search domain makes of it.
    pub(super) fn device(&self, name: &Hostname, query: &Query) -> Option<Hostname> {
        if OF_ZONES.contains(&query.qtype()) {
            return None;
        }
        let policy = self.judge.policy();
        // Most people have none.
        policy.rules.devices().next()?;
        let is_device = |name: &Hostname| policy.rules.device(name).is_some();
        if is_device(name) {
            return Some(name.clone());
        }
        let first = name.labels().next()?;
        let device = Hostname::from_wire(first.as_bytes()).filter(is_device)?;
        let rest = name.as_str().get(first.len() + 1..)?;
        let mut search = self.upstream.search().into_iter();
        search
            .any(|domain| domain.as_str() == rest)
            .then_some(device)
    }

    /// A device's addresses, or those of the host name that it stands for.
    pub(super) async fn resolve_device(&self, query: &Query, device: &Hostname) -> Vec<u8> {
        let policy = self.judge.policy();
        let rules = policy.rules.device(device).unwrap_or_default();
        let of_rules = rules.iter().filter_map(|rule| rule.network());
        // A device has one host name, or addresses.
        let target = rules.iter().find_map(|rule| rule.name());
        let target = target.map(NamePattern::name);
        let known = match target {
            Some(target) => match self.look_up(query, target).await {
                Ok(found) => found,
                Err(failure) => return failure,
            },
            None => of_rules.map(|it| (it.addr(), HOSTS_TTL)).collect(),
        };
        // The rules changed meanwhile: the name may mean another device.
        if policy.rules.device(device) != self.judge.policy().rules.device(device) {
            return query.error(Rcode::ServFail, None);
        }
        let now = Instant::now();
        let mut lifetime = HOSTS_TTL;
        let mut addresses: Vec<IpAddr> = Vec::new();
        for (address, ttl) in known {
            if (self.ipv6 || address.is_ipv4()) && !addresses.contains(&address) {
                for name in [Some(device), target].into_iter().flatten() {
                    // A rule of the device says both.
                    let named = (name, Standing::Named);
                    self.judge.pins.pin(address, named, ttl, now);
                }
                lifetime = lifetime.min(ttl);
                addresses.push(address);
            }
        }
        let addresses: Vec<_> = addresses.into_iter().map(Own::Address).collect();
        query.answer(&addresses, lifetime)
    }

    /// Where a device is, of one family: the answer that a program inside gets for its name.
    pub(crate) async fn device_addresses(&self, device: &Hostname, is_ipv4: bool) -> Vec<IpAddr> {
        let kind = if is_ipv4 { Type::A } else { Type::AAAA };
        let query = Name::from_text(device.as_str()).and_then(|name| Query::of(&name, kind));
        let Some(query) = query else {
            return Vec::new();
        };
        let answer = self.resolve_device(&query, device).await;
        let found = Answer::open(&query, &answer).map(|answer| {
            let addresses = answer.addresses().map(|(address, _)| address);
            let is_of_family = |it: &IpAddr| it.to_canonical().is_ipv4() == is_ipv4;
            addresses.filter(is_of_family).collect()
        });
        found.unwrap_or_default()
    }

    /// The addresses of a host name that a device stands for, each with the time that it holds; or
    /// the answer that says why there are none.
    async fn look_up(
        &self,
        query: &Query,
        target: &Hostname,
    ) -> Result<Vec<(IpAddr, u32)>, Vec<u8>> {
        let table = self.hosts.current();
        let own = table.addresses(target);
        if !own.is_empty() {
            return Ok(own.iter().map(|address| (*address, HOSTS_TTL)).collect());
        }
        let failure = || query.error(Rcode::ServFail, None);
        // The class and other types would carry something out.
        if ![Type::A, Type::AAAA].contains(&query.qtype()) || query.qclass() != Class::IN {
            return Ok(Vec::new());
        }
        if !self.judge.may_be_logged() {
            return Err(failure());
        }
        let name = Name::from_text(target.as_str()).ok_or_else(failure)?;
        let query = &query.about(&name);
        let mut asked = Asked::new(&self.judge, query);
        let answer = self.upstream.ask_near(query).await;
        let answer = answer.inspect_err(|crowded| asked.withdraw_unless(crowded.has_left));
        let answer = answer.map_err(|_| failure())?;
        let opened = Answer::open(query, &answer).map_err(|_| failure())?;
        if is_failure(&answer) {
            return Err(failure());
        }
        let found: Vec<_> = opened.addresses().collect();
        asked.addresses = Some(found.iter().map(|(address, _)| *address).collect());
        Ok(found)
    }
}
