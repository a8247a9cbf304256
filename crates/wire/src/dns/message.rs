//! The frame of a message: header, question, the bounds of its records.

use super::{Class, Malformed, Name, Type};
use crate::cursor::Cursor;

pub(super) const QR: u16 = 0x8000;
pub(super) const OPCODE: u16 = 0x7800;
pub(super) const TC: u16 = 0x0200;
pub(super) const RD: u16 = 0x0100;
pub(super) const RA: u16 = 0x0080;
/// The sender has verified what it says.
pub(super) const AD: u16 = 0x0020;
pub(super) const CD: u16 = 0x0010;
/// In the flags of an OPT record: DNSSEC records are welcome.
pub(super) const DO: u16 = 0x8000;

#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) id: u16,
    pub(super) flags: u16,
    pub(super) questions: u16,
    pub(super) answers: u16,
    pub(super) authorities: u16,
    pub(super) additionals: u16,
}

impl Header {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            id: cursor.u16()?,
            flags: cursor.u16()?,
            questions: cursor.u16()?,
            answers: cursor.u16()?,
            authorities: cursor.u16()?,
            additionals: cursor.u16()?,
        })
    }

    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        [
            self.id,
            self.flags,
            self.questions,
            self.answers,
            self.authorities,
            self.additionals,
        ]
        .into_iter()
        .flat_map(u16::to_be_bytes)
    }

    pub(super) fn opcode(&self) -> u8 {
        let [high, _] = (self.flags & OPCODE).to_be_bytes();
        high >> 3
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) name: Name,
    pub(super) qtype: Type,
    pub(super) qclass: Class,
}

/// The EDNS record of a message (RFC 6891).
#[derive(Debug, Clone, Copy)]
pub(super) struct Opt<'a> {
    pub(super) wire: &'a [u8],
    /// The largest datagram that its sender can take.
    pub(super) payload: u16,
    pub(super) flags: u16,
}

/// A message up to the end of its question.
#[derive(Debug, Clone)]
pub(super) struct Opening<'a> {
    pub(super) header: Header,
    pub(super) question: Question,
    /// The question as it was written: with the letter case of its sender.
    pub(super) question_wire: &'a [u8],
    rest: Cursor<'a>,
}

impl<'a> Opening<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes);
        let header = Header::read(&mut cursor)?;
        if header.questions != 1 {
            return Err(Malformed::Questions(header.questions));
        }
        let start = cursor.position();
        let question = Question {
            // The first name of a message has nothing to point back to, so it
            // is never compressed.
            name: Name::read(&mut cursor)?,
            qtype: Type(cursor.u16()?),
            qclass: Class(cursor.u16()?),
        };
        Ok(Self {
            header,
            question,
            question_wire: cursor.since(start),
            rest: cursor,
        })
    }

    pub(super) fn records(&self) -> Result<Vec<Record<'a>>, Malformed> {
        let Header {
            answers,
            authorities,
            additionals,
            ..
        } = self.header;
        let count = [answers, authorities, additionals]
            .map(u32::from)
            .iter()
            .sum();
        let mut cursor = self.rest;
        (0_u32..count).map(|_| Record::read(&mut cursor)).collect()
    }

    /// Walks over all records, to the last byte of the message.
    pub(super) fn edns(&self) -> Result<Option<Opt<'a>>, Malformed> {
        let mut cursor = self.rest;
        let body = u32::from(self.header.answers).saturating_add(self.header.authorities.into());
        for _ in 0..body {
            if Record::read(&mut cursor)?.rtype == Type::OPT {
                return Err(Malformed::Edns);
            }
        }
        let mut edns = None;
        for _ in 0..self.header.additionals {
            let record = Record::read(&mut cursor)?;
            if record.rtype == Type::OPT && edns.replace(record.into_opt()?).is_some() {
                return Err(Malformed::Edns);
            }
        }
        if cursor.is_at_end() {
            Ok(edns)
        } else {
            Err(Malformed::Trailing)
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    wire: &'a [u8],
    pub(super) rtype: Type,
    pub(super) class: Class,
    ttl: u32,
    /// Where in the message the time to live stands.
    pub(super) ttl_at: usize,
    data: &'a [u8],
    /// At the name of the record, and at its data: names in both may be compressed.
    pub(super) owner_at: Cursor<'a>,
    pub(super) data_at: Cursor<'a>,
}

impl<'a> Record<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let owner_at = *cursor;
        Name::skip(cursor)?;
        let rtype = Type(cursor.u16()?);
        let class = Class(cursor.u16()?);
        let ttl_at = cursor.position();
        let ttl = cursor.u32()?;
        let length = cursor.u16()?;
        let data_at = *cursor;
        let data = cursor.take(usize::from(length))?;
        Ok(Self {
            wire: cursor.since(owner_at.position()),
            rtype,
            class,
            ttl,
            ttl_at,
            data,
            owner_at,
            data_at,
        })
    }

    pub(super) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// A number with the top bit set means zero (RFC 2181 §8).
    pub(super) fn ttl(&self) -> u32 {
        if self.ttl > i32::MAX.unsigned_abs() {
            0
        } else {
            self.ttl
        }
    }

    /// For how long it may be kept. An SOA record ends with how long a "no" of its zone
    /// may be (RFC 2308).
    pub(super) fn lifetime(&self) -> u32 {
        let ttl = self.ttl();
        match (self.rtype, self.data.last_chunk()) {
            (Type::SOA, Some(minimum)) => ttl.min(u32::from_be_bytes(*minimum)),
            _ => ttl,
        }
    }

    /// RFC 6891 §6.1.2: the class is a size, the lower half of the TTL flags,
    /// and the name the root, which as wire is a single zero.
    fn into_opt(self) -> Result<Opt<'a>, Malformed> {
        if self.wire.first() != Some(&0) {
            return Err(Malformed::Edns);
        }
        let [_, _, high, low] = self.ttl.to_be_bytes();
        Ok(Opt {
            wire: self.wire,
            payload: self.class.0,
            flags: u16::from_be_bytes([high, low]),
        })
    }
}
