//! Questions to name servers, made by hand, and what comes back.

use std::net::IpAddr;

use stockade_world::dns_messages::rdata::RData;
use stockade_world::dns_messages::{Packet, RCODE};

use super::say::{Heard, Saying, Speaker};

/// The name server that programs inside are told of.
pub(crate) const SERVER: &str = "192.0.2.53";
pub(crate) const A: u16 = 1;
pub(crate) const AAAA: u16 = 28;
pub(crate) const HTTPS: u16 = 65;
/// The option of RFC 8914.
const EXTENDED_ERROR: u16 = 15;

/// A query for a name written as usual.
pub(crate) fn query(name: &str, kind: u16) -> Vec<u8> {
    let labels: Vec<&[u8]> = name.split('.').map(str::as_bytes).collect();
    query_of(&wire(&labels), kind)
}

/// A query for a name as it stands in messages, well formed or not.
pub(crate) fn query_of(name: &[u8], kind: u16) -> Vec<u8> {
    let header = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01";
    let opt = b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00";
    [&header[..], name, &kind.to_be_bytes(), b"\x00\x01", opt].concat()
}

/// A name as it stands in messages. Labels may have any bytes.
pub(crate) fn wire(labels: &[&[u8]]) -> Vec<u8> {
    let label = |label: &&[u8]| {
        let length = u8::try_from(label.len()).expect("a short label");
        [&[length], *label].concat()
    };
    labels.iter().flat_map(label).chain([0]).collect()
}

pub(crate) fn by_udp(server: &str, query: &[u8]) -> Saying {
    Saying::udp(server, 53, query)
}

pub(crate) fn by_tcp(server: &str, query: &[u8]) -> Saying {
    let length = u16::try_from(query.len()).expect("a short query");
    Saying::tcp(server, 53, [&length.to_be_bytes(), query].concat())
}

/// An answer, as far as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) code: RCODE,
    pub(crate) addresses: Vec<IpAddr>,
    /// The text of an extended error.
    pub(crate) note: String,
    /// How many records there are, of all sections but the question's.
    pub(crate) records: usize,
}

impl Reply {
    /// Reads what was heard, by whichever transport.
    #[track_caller]
    pub(crate) fn read(heard: &Heard) -> Self {
        let bytes = heard.bytes();
        let framed = bytes.split_at_checked(2).filter(|(length, rest)| {
            length
                .iter()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
                == rest.len()
        });
        let message = framed.map_or(bytes, |(_, message)| message);
        let packet = match Packet::parse(message) {
            Ok(packet) => packet,
            Err(error) => panic!("no answer ({error}): {heard:?}"),
        };
        let address = |data: &RData<'_>| match data {
            RData::A(a) => Some(IpAddr::from(a.address.to_be_bytes())),
            RData::AAAA(aaaa) => Some(IpAddr::from(aaaa.address.to_be_bytes())),
            _ => None,
        };
        let records = [
            &packet.answers,
            &packet.name_servers,
            &packet.additional_records,
        ];
        let options = packet.opt().map(|opt| opt.opt_codes.as_slice());
        let note = options
            .unwrap_or_default()
            .iter()
            .find(|option| option.code == EXTENDED_ERROR);
        let text = note.and_then(|note| note.data.get(2..)).unwrap_or_default();
        Self {
            code: packet.rcode(),
            addresses: records[0]
                .iter()
                .filter_map(|record| address(&record.rdata))
                .collect(),
            note: String::from_utf8_lossy(text).into_owned(),
            records: records.iter().map(|section| section.len()).sum(),
        }
    }

    /// A denial by the gate itself, which says so.
    pub(crate) fn is_denial(&self) -> bool {
        self.code == RCODE::NameError && self.records == 0 && self.note.starts_with("Stockade: ")
    }
}

impl Speaker {
    /// Looks a name up, as programs inside do.
    #[track_caller]
    pub(crate) fn look_up(&mut self, name: &str, kind: u16) -> Reply {
        Reply::read(&self.say_one(&by_udp(SERVER, &query(name, kind))))
    }
}
