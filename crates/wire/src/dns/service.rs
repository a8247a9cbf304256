//! HTTPS and SVCB records (RFC 9460): where a service is, and how to speak to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::answer::length_field;
use super::message::Record;
use super::{Malformed, Name};
use crate::cursor::{Cursor, Short};

const MANDATORY: u16 = 0;
const ALPN: u16 = 1;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const ECH: u16 = 5;
const IPV6_HINT: u16 = 6;

/// The data of an HTTPS or SVCB record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub(super) priority: u16,
    /// Without compression, in the letter case in which it came.
    pub(super) target_wire: Vec<u8>,
    /// By key, in ascending order, each once. The values of the keys above have the
    /// form that theirs have.
    parameters: Vec<(u16, Vec<u8>)>,
}

impl Service {
    /// Any error means that the data is malformed.
    pub(super) fn read(record: &Record<'_>) -> Result<Self, Malformed> {
        let wrong = Malformed::Data(record.rtype);
        let mut cursor = record.data_at;
        let priority = cursor.u16()?;
        // It must not be compressed; if it is, it is written out.
        let target_wire = Name::expand(&mut cursor)?;
        let used = cursor.since(record.data_at.position()).len();
        let mut rest = Cursor::new(record.data().get(used..).ok_or(wrong)?);
        let mut parameters: Vec<(u16, Vec<u8>)> = Vec::new();
        while !rest.is_at_end() {
            let key = rest.u16()?;
            let length = rest.u16()?;
            let value = rest.take(length.into())?;
            let ascending = parameters.last().is_none_or(|(last, _)| *last < key);
            if !ascending || !is_well_formed(key, value) {
                return Err(wrong);
            }
            parameters.push((key, value.to_vec()));
        }
        Ok(Self {
            priority,
            target_wire,
            parameters,
        })
    }

    /// Addresses at which clients may try without asking for them.
    pub fn hints(&self) -> impl Iterator<Item = IpAddr> {
        let v4 = self.value(IPV4_HINT).as_chunks::<4>().0.iter();
        let v6 = self.value(IPV6_HINT).as_chunks::<16>().0.iter();
        v4.map(|octets| Ipv4Addr::from(*octets).into())
            .chain(v6.map(|octets| Ipv6Addr::from(*octets).into()))
    }

    /// Whether there is a key with which clients hide the name they ask for.
    pub fn has_ech(&self) -> bool {
        self.parameters.iter().any(|(key, _)| *key == ECH)
    }

    pub(super) fn value(&self, key: u16) -> &[u8] {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(candidate, _)| *candidate == key);
        found.map_or(&[], |(_, value)| value)
    }

    /// The data with such hints alone as are to be kept, and without a key to hide
    /// names.
    pub(super) fn filtered(&self, keep: &mut impl FnMut(IpAddr) -> bool) -> Vec<u8> {
        let mut parameters: Vec<(u16, Vec<u8>)> = Vec::new();
        for (key, value) in &self.parameters {
            let value = match *key {
                ECH => continue,
                IPV4_HINT => kept::<4>(value, keep),
                IPV6_HINT => kept::<16>(value, keep),
                _ => Some(value.clone()),
            };
            parameters.extend(value.map(|value| (*key, value)));
        }
        // What clients must understand, of what is left.
        let left: Vec<u16> = parameters.iter().map(|(key, _)| *key).collect();
        if let Some((MANDATORY, keys)) = parameters.first_mut() {
            let kept = keys.as_chunks::<2>().0.iter();
            *keys = kept
                .filter(|key| left.contains(&u16::from_be_bytes(**key)))
                .flatten()
                .copied()
                .collect();
        }
        parameters.retain(|(key, value)| *key != MANDATORY || !value.is_empty());

        let mut data = self.priority.to_be_bytes().to_vec();
        data.extend(&self.target_wire);
        for (key, value) in parameters {
            data.extend(key.to_be_bytes());
            data.extend(length_field(value.len()));
            data.extend(value);
        }
        data
    }
}

/// The addresses of a hint that are to be kept, or nothing if there are none.
fn kept<const N: usize>(hint: &[u8], keep: &mut impl FnMut(IpAddr) -> bool) -> Option<Vec<u8>>
where
    IpAddr: From<[u8; N]>,
{
    let addresses = hint.as_chunks::<N>().0.iter();
    let kept = addresses.filter(|octets| keep(IpAddr::from(**octets)));
    let kept: Vec<u8> = kept.flatten().copied().collect();
    (!kept.is_empty()).then_some(kept)
}

/// Whether a value has the form that its key asks for (RFC 9460 §7).
fn is_well_formed(key: u16, value: &[u8]) -> bool {
    let whole = |size: usize| !value.is_empty() && value.len().is_multiple_of(size);
    match key {
        MANDATORY => {
            let keys = value.as_chunks::<2>().0;
            whole(2) && keys.is_sorted_by(|a, b| a < b) && keys.first() != Some(&[0, 0])
        }
        ALPN => {
            let mut cursor = Cursor::new(value);
            while !cursor.is_at_end() {
                if protocol(&mut cursor).is_err() {
                    return false;
                }
            }
            !value.is_empty()
        }
        PORT => value.len() == 2,
        IPV4_HINT => whole(4),
        IPV6_HINT => whole(16),
        _ => true,
    }
}

/// The next of a list of protocols; none is empty.
fn protocol<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Short> {
    let length = cursor.u8()?;
    let name = cursor.take(length.into())?;
    if name.is_empty() {
        Err(Short)
    } else {
        Ok(name)
    }
}
