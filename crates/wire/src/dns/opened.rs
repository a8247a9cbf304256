//! An answer, opened: its records, and which of them belong to the question.

use std::collections::HashMap;
use std::net::IpAddr;

use super::data::{self, Data};
use super::message::{Header, Opening, Opt, Record};
use super::{Class, Malformed, Name, Query, Type};

/// More aliases than any real name has. Resolvers give up at about as many.
const MAX_ALIASES: usize = 16;
/// More records than any real answer has.
const MAX_RECORDS: usize = 1024;

/// An answer that [`Query::accept`] has passed.
#[derive(Debug)]
pub struct Answer<'a> {
    pub(super) query: &'a Query,
    pub(super) header: Header,
    /// Of the answer section, and of the class that was asked for.
    pub(super) records: Vec<Resource>,
    /// Of the authority section: for how long a "no" holds.
    pub(super) authority: Option<Resource>,
    pub(super) opt: Option<Opt<'a>>,
    chain: Vec<Name>,
}

#[derive(Debug, Clone)]
pub struct Resource {
    pub owner: Name,
    pub rtype: Type,
    pub class: Class,
    /// In seconds. A number that RFC 2181 §8 has mean zero is zero.
    pub ttl: u32,
    pub data: Data,
    /// Name and data without compression, in the letter case in which they came.
    pub(super) owner_wire: Vec<u8>,
    pub(super) data_wire: Vec<u8>,
}

impl Resource {
    fn read(record: &Record<'_>) -> Result<Self, Malformed> {
        let (mut owner, mut again) = (record.owner_at, record.owner_at);
        Ok(Self {
            owner: Name::read(&mut owner)?,
            rtype: record.rtype,
            class: record.class,
            ttl: record.ttl(),
            data: Data::read(record)?,
            owner_wire: Name::expand(&mut again)?,
            data_wire: data::expanded(record)?,
        })
    }

    pub fn address(&self) -> Option<IpAddr> {
        match self.data {
            Data::A(address) => Some(address.into()),
            Data::Aaaa(address) => Some(address.into()),
            _ => None,
        }
    }
}

impl<'a> Answer<'a> {
    /// Opens what `query.accept` gave. Records of another class than was asked for are
    /// left out: some clients would take them for theirs, because the top bit of a
    /// class means something else to multicast DNS.
    pub fn open(query: &'a Query, accepted: &'a [u8]) -> Result<Self, Malformed> {
        let opening = Opening::read(accepted)?;
        let header = opening.header;
        let opt = opening.edns()?;
        let records = opening.records()?;
        let (answers, rest) = records
            .split_at_checked(header.answers.into())
            .ok_or(Malformed::Short)?;
        if answers.len() > MAX_RECORDS {
            return Err(Malformed::TooLong);
        }
        let mut authorities = rest.iter().take(header.authorities.into());
        let authority = authorities.find(|record| record.rtype == Type::SOA);
        let class = match query.qclass() {
            Class::ANY => Class::IN,
            asked => asked,
        };
        let records: Vec<Resource> = answers
            .iter()
            .filter(|record| record.class == class)
            .map(Resource::read)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            query,
            header,
            chain: chain(query.name(), &records),
            records,
            authority: authority.map(Resource::read).transpose()?,
            opt,
        })
    }

    /// The records of the answer section, of the class that was asked for.
    pub fn records(&self) -> &[Resource] {
        &self.records
    }

    /// The name asked for, and those that it turned out to be an alias of, one
    /// after the other.
    pub fn chain(&self) -> &[Name] {
        &self.chain
    }

    /// The addresses of the name asked for, with their times to live. An address
    /// under a name to which no alias leads is not one of them.
    pub fn addresses(&self) -> impl Iterator<Item = (IpAddr, u32)> {
        let belonging = self.records.iter().filter(|record| self.belongs(record));
        belonging.filter_map(|record| Some((record.address()?, record.ttl)))
    }

    /// Whether a record is of a name of the chain.
    pub(super) fn belongs(&self, record: &Resource) -> bool {
        self.chain.contains(&record.owner)
    }
}

/// Follows the aliases from `name`. Of two for one name, the first counts. Whatever
/// lies behind too many of them, or a circle, has no way to it.
fn chain(name: &Name, records: &[Resource]) -> Vec<Name> {
    let mut aliases: HashMap<&Name, &Name> = HashMap::new();
    for record in records {
        if let Data::Cname(target) = &record.data {
            aliases.entry(&record.owner).or_insert(target);
        }
    }
    let mut chain = vec![name.clone()];
    let mut last = name;
    while let Some(next) = aliases.get(last)
        && chain.len() <= MAX_ALIASES
        && !chain.contains(next)
    {
        chain.push((*next).clone());
        last = next;
    }
    chain
}
