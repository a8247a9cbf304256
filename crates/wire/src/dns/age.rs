//! Answers that grow older: how long one may be kept, and what it says later.

use super::message::{Header, Opening, Record, TC};
use super::{Rcode, Type};
use crate::cursor::Cursor;

/// An answer that may be given again for a while.
#[derive(Debug, Clone)]
pub struct Aging {
    bytes: Vec<u8>,
    lifetime: u32,
    /// Where the times to live stand.
    fields: Vec<usize>,
}

impl Aging {
    /// Nothing for an answer that must not be kept: one that is cut short, that reports
    /// trouble, that says nothing about its lifetime, or whose lifetime is zero.
    pub fn new(answer: &[u8]) -> Option<Self> {
        let header = Header::read(&mut Cursor::new(answer)).ok()?;
        let rcode = header.flags & 0x000f;
        if header.flags & TC != 0
            || (rcode != Rcode::NoError as u16 && rcode != Rcode::NxDomain as u16)
        {
            return None;
        }
        let records = Opening::read(answer).ok()?.records().ok()?;
        let positive = rcode == Rcode::NoError as u16 && header.answers > 0;
        // RFC 2308 §5: that there is nothing may be kept as long as the SOA record says.
        if !positive && !records.iter().any(|record| record.rtype == Type::SOA) {
            return None;
        }
        let kept = || records.iter().filter(|record| record.rtype != Type::OPT);
        let lifetime = kept().map(Record::lifetime).min()?;
        (lifetime > 0).then(|| Self {
            bytes: answer.to_vec(),
            lifetime,
            fields: kept().map(|record| record.ttl_at).collect(),
        })
    }

    pub fn lifetime(&self) -> u32 {
        self.lifetime
    }

    /// The answer as it is `seconds` later.
    pub fn after(&self, seconds: u32) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for at in &self.fields {
            let field = bytes.get_mut(*at..).and_then(<[u8]>::first_chunk_mut);
            if let Some(field) = field {
                let left = u32::from_be_bytes(*field).saturating_sub(seconds);
                *field = left.to_be_bytes();
            }
        }
        bytes
    }
}
