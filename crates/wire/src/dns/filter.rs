//! What a client inside may see of an answer where names are enforced.
//!
//! An upstream resolver, or whoever speaks through it, can add addresses that
//! nobody asked for, and keys with which clients hide the names that the gate has
//! to see. The answer is therefore written anew, record by record, from what was
//! understood of it; the names in it are compressed against each other again.
//! (Cutting the message short would leave everything else as it was, but records
//! in the middle cannot be cut out: later ones point into them.)
//!
//! What remains: the answer section without addresses that do not belong to the
//! question, and without records of another class; of the rest, the SOA record, by which clients know how long a "no"
//! holds, and the OPT record. Signatures over changed records do not hold any more,
//! so a changed answer does not claim to be verified.

use std::collections::HashMap;
use std::net::IpAddr;

use super::message::{AD, Header};
use super::{Answer, Data, Malformed, Name, Resource};

/// A length of 16 bits has to hold every message.
const MAX_MESSAGE: usize = 65_535;
/// How far a pointer reaches.
const MAX_TARGET: usize = 0x3fff;

impl Answer<'_> {
    /// The answer for the client. Of the addresses that HTTPS and SVCB records hint
    /// at, those stay that `keep` is true for.
    pub fn filtered(&self, mut keep: impl FnMut(IpAddr) -> bool) -> Result<Vec<u8>, Malformed> {
        let belonging = |record: &&Resource| record.address().is_none() || self.belongs(record);
        let mut writer = Writer::new(self);
        let mut changed = false;
        let mut count = 0_u16;
        for record in self.records.iter().filter(belonging) {
            let filtered = match &record.data {
                Data::Service(service) => Some(service.filtered(&mut keep)),
                _ => None,
            };
            let data = filtered.as_ref().unwrap_or(&record.data_wire);
            changed |= *data != record.data_wire;
            count = count.saturating_add(1);
            writer.record(record, data)?;
        }
        changed |= count != self.header.answers;
        if let Some(record) = &self.authority {
            writer.record(record, &record.data_wire)?;
        }
        let opt = self.opt.filter(|_| self.query.edns.is_some());
        writer.append(opt.map_or(&[], |opt| opt.wire))?;

        let header = Header {
            id: self.query.id(),
            flags: if changed {
                self.header.flags & !AD
            } else {
                self.header.flags
            },
            questions: 1,
            answers: count,
            authorities: self.authority.is_some().into(),
            additionals: opt.is_some().into(),
        };
        Ok(writer.finish(header))
    }
}

struct Writer {
    body: Vec<u8>,
    /// Where names stand that can be pointed at.
    places: HashMap<Name, u16>,
}

const HEADER: usize = 12;

impl Writer {
    fn new(answer: &Answer<'_>) -> Self {
        let mut writer = Self {
            body: Vec::new(),
            places: HashMap::new(),
        };
        writer.remember(answer.query.name());
        writer.body.extend(&answer.query.question_wire);
        writer
    }

    /// Notes that a name will be written next.
    fn remember(&mut self, name: &Name) {
        let at = self.body.len().saturating_add(HEADER);
        if at <= MAX_TARGET
            && !name.is_root()
            && let Ok(at) = u16::try_from(at)
        {
            self.places.entry(name.clone()).or_insert(at);
        }
    }

    fn record(&mut self, record: &Resource, data: &[u8]) -> Result<(), Malformed> {
        match self.places.get(&record.owner) {
            Some(place) => self.body.extend((0xc000 | place).to_be_bytes()),
            None => {
                self.remember(&record.owner);
                self.body.extend(&record.owner_wire);
            }
        }
        self.body.extend(record.rtype.0.to_be_bytes());
        self.body.extend(record.class.0.to_be_bytes());
        self.body.extend(record.ttl.to_be_bytes());
        let length = u16::try_from(data.len()).map_err(|_| Malformed::TooLong)?;
        self.body.extend(length.to_be_bytes());
        if let Data::Cname(target) = &record.data {
            self.remember(target);
        }
        self.append(data)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.body.extend(bytes);
        if self.body.len() > MAX_MESSAGE.saturating_sub(HEADER) {
            return Err(Malformed::TooLong);
        }
        Ok(())
    }

    fn finish(self, header: Header) -> Vec<u8> {
        header.bytes().chain(self.body).collect()
    }
}
