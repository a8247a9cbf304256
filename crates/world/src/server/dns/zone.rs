//! What the resolver knows, and for which names it misbehaves.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use simple_dns::rdata::{CNAME, RData, TXT};
use simple_dns::{Name, QTYPE, RCODE, TYPE};

/// A way to be a bad resolver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Misbehaviour {
    /// The right answer under another id.
    WrongId,
    /// An answer to a question that was not asked.
    WrongQuestion,
    /// By UDP always truncated and empty; by TCP the whole answer.
    Truncated,
    /// The right answer, late.
    Slow(Duration),
    /// No answer.
    Silent,
    /// These bytes after the right id, whatever was asked.
    Raw(&'static [u8]),
    /// An empty answer with this code.
    Code(RCODE),
    /// The right answer with addresses that nobody asked for: the first among the answers,
    /// for another name; the second beside them, for the same.
    Unasked(IpAddr, IpAddr),
}

#[derive(Debug, Default)]
pub(super) struct Zone {
    names: BTreeMap<String, Entry>,
    misbehaviours: BTreeMap<String, Misbehaviour>,
}

/// Sets of records to answer with in turn. Most names have just one.
#[derive(Debug, Default)]
struct Entry {
    ttl: u32,
    sets: Vec<Vec<RData<'static>>>,
    /// How often each record type was asked for.
    asked: BTreeMap<u16, usize>,
}

impl Zone {
    pub(super) fn add(&mut self, name: &str, ttl: u32, data: Vec<RData<'static>>) {
        let entry = self.names.entry(normal(name)).or_default();
        entry.ttl = ttl;
        match entry.sets.first_mut() {
            Some(set) => set.extend(data),
            None => entry.sets.push(data),
        }
    }

    pub(super) fn rotate(&mut self, name: &str, sets: Vec<Vec<RData<'static>>>) {
        let entry = Entry {
            sets,
            ..Entry::default()
        };
        self.names.insert(normal(name), entry);
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.names.remove(&normal(name));
    }

    pub(super) fn misbehave(&mut self, name: &str, how: Misbehaviour) {
        self.misbehaviours.insert(normal(name), how);
    }

    pub(super) fn behave(&mut self) {
        self.misbehaviours.clear();
    }

    pub(super) fn misbehaviour(&self, name: &str) -> Option<Misbehaviour> {
        patterns(name).find_map(|pattern| self.misbehaviours.get(&pattern).copied())
    }

    /// TTL and records of a name that are of this type, or its alias.
    /// `None`: there is no such name.
    pub(super) fn look_up(
        &mut self,
        name: &str,
        kind: QTYPE,
    ) -> Option<(u32, Vec<RData<'static>>)> {
        let pattern = patterns(name).find(|pattern| self.names.contains_key(pattern))?;
        let entry = self.names.get_mut(&pattern)?;
        let asked = entry.asked.entry(kind.into()).or_default();
        let turn = *asked % entry.sets.len().max(1);
        *asked += 1;
        let set = entry.sets.get(turn).map(Vec::as_slice).unwrap_or_default();
        let matching = set
            .iter()
            .filter(|data| {
                let own = data.type_code();
                own == TYPE::CNAME || kind == QTYPE::ANY || kind == QTYPE::TYPE(own)
            })
            .cloned()
            .collect();
        Some((entry.ttl, matching))
    }
}

/// The name itself, then `*.` patterns from the closest on, then `*`.
fn patterns(name: &str) -> impl Iterator<Item = String> {
    let name = normal(name);
    let parents: Vec<String> = name
        .match_indices('.')
        .filter_map(|(dot, _)| name.get(dot + 1..))
        .map(|parent| format!("*.{parent}"))
        .collect();
    std::iter::once(name).chain(parents).chain(["*".to_owned()])
}

/// Lower case without the final dot.
pub(super) fn normal(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

pub(super) fn address(address: IpAddr) -> RData<'static> {
    match address {
        IpAddr::V4(v4) => RData::A(v4.into()),
        IpAddr::V6(v6) => RData::AAAA(v6.into()),
    }
}

pub(super) fn cname(target: &str) -> RData<'static> {
    match Name::new(target) {
        Ok(name) => RData::CNAME(CNAME(name.into_owned())),
        Err(error) => panic!("`{target}` cannot be an alias's target: {error}"),
    }
}

pub(super) fn txt(text: &str) -> RData<'static> {
    match TXT::new().with_string(text) {
        Ok(txt) => RData::TXT(txt.into_owned()),
        Err(error) => panic!("`{text}` cannot be a TXT record: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_pattern_comes_first() {
        let found: Vec<_> = patterns("A.b.Example.").collect();
        assert_eq!(found, ["a.b.example", "*.b.example", "*.example", "*"]);
    }
}
