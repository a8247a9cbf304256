//! Answers of the host's resolvers, for as long as they say they hold.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use stockade_wire::dns::{Aging, Query};

const LIMIT: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: HashMap<Vec<u8>, Entry>,
}

#[derive(Debug)]
struct Entry {
    answer: Aging,
    /// The identifier that stands in the answer.
    id: u16,
    since: Instant,
}

impl Entry {
    fn age(&self, now: Instant) -> u32 {
        u32::try_from(now.duration_since(self.since).as_secs()).unwrap_or(u32::MAX)
    }

    fn holds(&self, now: Instant) -> bool {
        now.duration_since(self.since) < Duration::from_secs(self.answer.lifetime().into())
    }
}

impl Cache {
    /// `key` is the query's.
    pub(crate) fn get(&self, key: &[u8], query: &Query, now: Instant) -> Option<Vec<u8>> {
        let entry = self.entries.get(key).filter(|entry| entry.holds(now))?;
        // Puts this client's identifier and letter case in place.
        query
            .accept(&entry.answer.after(entry.age(now)), entry.id)
            .ok()
    }

    pub(crate) fn put(&mut self, key: Vec<u8>, query: &Query, answer: &[u8], now: Instant) {
        let Some(answer) = Aging::new(answer) else {
            return;
        };
        if self.entries.len() >= LIMIT {
            self.entries.retain(|_, entry| entry.holds(now));
        }
        // Still full of answers that hold: a program asks for very many names. Forgetting
        // costs questions, nothing else.
        if self.entries.len() >= LIMIT {
            self.entries.clear();
        }
        let entry = Entry {
            answer,
            id: query.id(),
            since: now,
        };
        self.entries.insert(key, entry);
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query for `name`, type A.
    fn query(id: u16, name: &str) -> Query {
        let mut bytes = id.to_be_bytes().to_vec();
        bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        for label in name.split('.') {
            bytes.push(u8::try_from(label.len()).expect("short"));
            bytes.extend(label.as_bytes());
        }
        bytes.extend([0, 0, 1, 0, 1]);
        Query::parse(&bytes).expect("a query")
    }

    /// Its answer, 192.0.2.7, which holds for `ttl` seconds.
    fn answer(query: &Query, ttl: u32) -> Vec<u8> {
        let mut bytes = query.to_upstream(query.id());
        bytes[2] |= 0x80;
        bytes[7] = 1;
        bytes.extend([0xc0, 12, 0, 1, 0, 1]);
        bytes.extend(ttl.to_be_bytes());
        bytes.extend([0, 4, 192, 0, 2, 7]);
        bytes
    }

    fn ttl(answer: &[u8]) -> u32 {
        let field = &answer[answer.len() - 10..answer.len() - 6];
        u32::from_be_bytes(field.try_into().expect("four bytes"))
    }

    #[test]
    fn an_answer_is_given_again_older_and_under_the_new_identifier() {
        let (mut cache, start) = (Cache::default(), Instant::now());
        let first = query(1, "www.example.com");
        cache.put(first.key(), &first, &answer(&first, 60), start);
        let again = query(2, "WWW.example.COM");
        let given = cache
            .get(&again.key(), &again, start + Duration::from_secs(20))
            .expect("kept");
        assert_eq!(given[..2], [0, 2]);
        assert_eq!(ttl(&given), 40);
        assert!(given.windows(3).any(|bytes| bytes == b"WWW"));
    }

    #[test]
    fn an_answer_is_forgotten_when_its_time_is_over() {
        let (mut cache, start) = (Cache::default(), Instant::now());
        let asked = query(1, "www.example.com");
        cache.put(asked.key(), &asked, &answer(&asked, 60), start);
        assert!(
            cache
                .get(&asked.key(), &asked, start + Duration::from_secs(59))
                .is_some()
        );
        assert!(
            cache
                .get(&asked.key(), &asked, start + Duration::from_secs(60))
                .is_none()
        );
    }

    #[test]
    fn an_answer_without_a_lifetime_and_another_name_are_not_kept() {
        let (mut cache, start) = (Cache::default(), Instant::now());
        let asked = query(1, "www.example.com");
        cache.put(asked.key(), &asked, &answer(&asked, 0), start);
        assert!(cache.get(&asked.key(), &asked, start).is_none());
        cache.put(asked.key(), &asked, &answer(&asked, 60), start);
        let other = query(1, "example.com");
        assert!(cache.get(&other.key(), &other, start).is_none());
    }
}
