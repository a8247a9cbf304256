//! Positive answers of our own, for names that the host knows without asking.

use std::net::IpAddr;

use super::answer::{length_field, response_header};
use super::message::Header;
use super::{Class, Name, Query, Rcode, Type};

/// What the host knows about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    Address(IpAddr),
    Name(Name),
}

impl Own {
    fn rtype(&self) -> Type {
        match self {
            Self::Address(IpAddr::V4(_)) => Type::A,
            Self::Address(IpAddr::V6(_)) => Type::AAAA,
            Self::Name(_) => Type::PTR,
        }
    }

    fn data(&self) -> Vec<u8> {
        match self {
            Self::Address(IpAddr::V4(address)) => address.octets().to_vec(),
            Self::Address(IpAddr::V6(address)) => address.octets().to_vec(),
            Self::Name(name) => name.wire().collect(),
        }
    }
}

/// More than a file of hosts says about one name; keeps the message below its bound.
const MAX_RECORDS: usize = 200;
/// A pointer to the question's name, which always stands at the same place.
const QUESTION: [u8; 2] = [0xc0, 12];

impl Query {
    /// What the host knows, as far as it was asked for. If it knows nothing of that
    /// type, the answer says that there is nothing.
    pub fn answer(&self, known: &[Own], ttl: u32) -> Vec<u8> {
        let wanted = |own: &&Own| {
            [own.rtype(), Type::ANY].contains(&self.qtype())
                && [Class::IN, Class::ANY].contains(&self.qclass())
        };
        let mut records = Vec::new();
        let mut answers = 0_u16;
        for own in known.iter().filter(wanted).take(MAX_RECORDS) {
            let data = own.data();
            records.extend(QUESTION);
            records.extend(own.rtype().0.to_be_bytes());
            records.extend(Class::IN.0.to_be_bytes());
            records.extend(ttl.to_be_bytes());
            records.extend(length_field(data.len()));
            records.extend(data);
            answers = answers.saturating_add(1);
        }
        let opt = self.our_opt(&[]);
        let header = Header {
            answers,
            additionals: u16::from(!opt.is_empty()),
            ..response_header(&self.header, Rcode::NoError)
        };
        let question = self.question_wire.iter().copied();
        header
            .bytes()
            .chain(question)
            .chain(records)
            .chain(opt)
            .collect()
    }
}
