//! What records hold: understood where it matters, and always free of compression.
//!
//! Data may point at names that stand before it in the message. It cannot be moved
//! unless those are written out. Only types of the first RFCs may be compressed
//! (RFC 3597 §4), so the list of types with names is closed: data of every other
//! type moves as it is. Some common types are on the list that must not be
//! compressed, for servers that do it nevertheless.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::message::Record;
use super::{Class, Malformed, Name, Service, Type};
use crate::cursor::{Cursor, Short};

/// The data of a record, if it is of a kind that names and addresses come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    /// The owner is another name for this.
    Cname(Name),
    /// Of type HTTPS or SVCB.
    Service(Service),
    Other,
}

impl Data {
    pub(super) fn read(record: &Record<'_>) -> Result<Self, Malformed> {
        let wrong = Malformed::Data(record.rtype);
        let data = record.data();
        let mut cursor = record.data_at;
        if record.class != Class::IN {
            return Ok(Self::Other);
        }
        match record.rtype {
            Type::A => <[u8; 4]>::try_from(data)
                .map(|octets| Self::A(octets.into()))
                .map_err(|_| wrong),
            Type::AAAA => <[u8; 16]>::try_from(data)
                .map(|octets| Self::Aaaa(octets.into()))
                .map_err(|_| wrong),
            Type::CNAME => Ok(Self::Cname(Name::read(&mut cursor)?)),
            Type::SVCB | Type::HTTPS => Service::read(record).map(Self::Service).map_err(|_| wrong),
            _ => Ok(Self::Other),
        }
    }
}

/// A part of the data of a type.
#[derive(Clone, Copy)]
enum Part {
    Name,
    Bytes(usize),
    /// A byte that says how many follow.
    Text,
    Rest,
}

/// How the data of a type is made up, if there are names in it that may be
/// compressed.
fn parts(rtype: Type) -> Option<&'static [Part]> {
    use Part::{Bytes, Name, Rest, Text};
    Some(match rtype.0 {
        // NS, MD, MF, CNAME, MB, MG, MR, PTR, DNAME
        2..=5 | 7..=9 | 12 | 39 => &[Name],
        // SOA
        6 => &[Name, Name, Bytes(20)],
        // MINFO, RP
        14 | 17 => &[Name, Name],
        // MX, AFSDB, RT, KX
        15 | 18 | 21 | 36 => &[Bytes(2), Name],
        // SIG, RRSIG
        24 | 46 => &[Bytes(18), Name, Rest],
        // NXT, NSEC
        30 | 47 => &[Name, Rest],
        // PX
        26 => &[Bytes(2), Name, Name],
        // SRV
        33 => &[Bytes(6), Name],
        // NAPTR
        35 => &[Bytes(4), Text, Text, Text, Name],
        _ => return None,
    })
}

/// The data of a record, to be written anywhere.
pub(super) fn expanded(record: &Record<'_>) -> Result<Vec<u8>, Malformed> {
    let Some(parts) = parts(record.rtype) else {
        return Ok(record.data().to_vec());
    };
    let wrong = Malformed::Data(record.rtype);
    let mut cursor = record.data_at;
    let used = |cursor: &Cursor<'_>| cursor.since(record.data_at.position()).len();
    let length = record.data().len();
    let mut data = Vec::new();
    for part in parts {
        match part {
            Part::Name => data.extend(Name::expand(&mut cursor)?),
            Part::Bytes(count) => data.extend(cursor.take(*count)?),
            Part::Text => data.extend(text(&mut cursor)?),
            Part::Rest => data.extend(cursor.take(length.saturating_sub(used(&cursor)))?),
        }
    }
    if used(&cursor) == length {
        Ok(data)
    } else {
        Err(wrong)
    }
}

/// A text with its length in front.
fn text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Short> {
    let start = cursor.position();
    let length = cursor.u8()?;
    cursor.take(length.into())?;
    Ok(cursor.since(start))
}
