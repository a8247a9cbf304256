//! A query, what a hostile resolver answers to it, and what the client sees of that
//! where names are enforced.

#![no_main]

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use simple_dns::rdata::{RData, SVCB, SVCParam};
use simple_dns::{CLASS, Packet, ResourceRecord};
use stockade_fuzz::{dns, two_parts};
use stockade_wire::dns::{Answer, Class, Data, Name, Own, Query, Resource};

fuzz_target!(|input: &[u8]| {
    let (asked, response) = two_parts(input);
    let Ok(query) = Query::parse(asked) else {
        return;
    };
    own(&query);
    let fitting = dns::fitting(&query, asked, response);
    let id = u16::from_be_bytes([fitting[0], fitting[1]]);
    let Ok(accepted) = query.accept(&fitting, id) else {
        return;
    };
    let Ok(answer) = Answer::open(&query, &accepted) else {
        return;
    };
    look(&query, &answer);
    let Ok(seen) = answer.filtered(may_stay) else {
        return;
    };
    check(&query, &answer, &seen);
    if query.qclass() == Class::IN
        && let (Ok(before), Ok(after)) = (Packet::parse(&accepted), Packet::parse(&seen))
    {
        compare(&before, &after);
    }
});

fn may_stay(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[3] & 1 == 0,
        IpAddr::V6(address) => address.octets()[15] & 1 == 0,
    }
}

fn look(query: &Query, answer: &Answer<'_>) {
    assert_eq!(answer.chain().first(), Some(query.name()));
    let names: HashSet<&Name> = answer.chain().iter().collect();
    assert!(names.len() == answer.chain().len() && names.len() <= 17);
    for record in answer.records() {
        if let Some(text) = record.owner.text() {
            assert_eq!(Name::from_text(&text).as_ref(), Some(&record.owner));
        }
        let below = record.owner.below(query.name());
        assert_eq!(
            below.is_some_and(|below| below.labels == 0),
            record.owner == *query.name()
        );
    }
}

fn check(query: &Query, answer: &Answer<'_>, seen: &[u8]) {
    assert_eq!(query.accept(seen, query.id()).as_deref(), Ok(seen));
    let [_, authorities, additionals] = dns::counts(seen);
    assert!(authorities <= 1 && additionals <= 1);

    let again = Answer::open(query, seen).unwrap();
    assert_eq!(again.filtered(may_stay).unwrap(), seen);
    assert_eq!(again.chain(), answer.chain());
    assert!(again.addresses().eq(answer.addresses()));
    let there = again.records().iter().filter_map(Resource::address);
    assert!(there.eq(again.addresses().map(|(address, _)| address)));
    let others = |answer: &Answer<'_>| {
        let records = answer.records().iter();
        records.filter(|record| record.address().is_none()).count()
    };
    assert_eq!(others(answer), others(&again));
    for record in again.records() {
        if let Data::Service(service) = &record.data {
            assert!(!service.has_ech() && service.hints().all(may_stay));
        }
    }
}

/// Another implementation finds nothing changed but what had to be.
fn compare(before: &Packet<'_>, after: &Packet<'_>) {
    let lower = |name: &simple_dns::Name<'_>| -> Vec<Vec<u8>> {
        let labels = name.iter().map(|label| label.as_ref().to_ascii_lowercase());
        labels.collect()
    };
    let ours = |record: &&ResourceRecord<'_>| record.class == CLASS::IN && !record.cache_flush;
    // Follows aliases by trying them all, again and again.
    let mut chain = vec![lower(&before.questions[0].qname)];
    while let Some(RData::CNAME(target)) = before
        .answers
        .iter()
        .find(|record| {
            ours(record)
                && matches!(record.rdata, RData::CNAME(_))
                && chain.last() == Some(&lower(&record.name))
        })
        .map(|record| &record.rdata)
    {
        let target = lower(&target.0);
        if chain.contains(&target) || chain.len() > 16 {
            break;
        }
        chain.push(target);
    }
    let kept = before.answers.iter().filter(ours).filter(|record| {
        let is_address = matches!(record.rdata, RData::A(_) | RData::AAAA(_));
        !is_address || chain.contains(&lower(&record.name))
    });
    let kept: Vec<_> = kept.collect();
    assert_eq!(kept.len(), after.answers.len());
    for (old, new) in kept.iter().zip(&after.answers) {
        assert_eq!(lower(&old.name), lower(&new.name));
        match (&old.rdata, &new.rdata) {
            (RData::SVCB(old), RData::SVCB(new)) => service(old, new),
            (RData::HTTPS(old), RData::HTTPS(new)) => service(&old.0, &new.0),
            // Names in types that it does not know were written out; those in two that it
            // knows were not, because they may not be compressed.
            (RData::NULL(3 | 4 | 24 | 26 | 30 | 36 | 39, _), _) => {}
            (RData::NSAP_PTR(_) | RData::IPSECKEY(_), _) => {}
            (old, new) => assert_eq!(old, new),
        }
    }
}

fn service(old: &SVCB<'_>, new: &SVCB<'_>) {
    assert_eq!((old.priority, &old.target), (new.priority, &new.target));
    assert!(new.get_param(5).is_none());
    for param in new.iter_params() {
        match param {
            SVCParam::Ipv4Hint(hints) => {
                let mut hints = hints.iter().map(|bits| Ipv4Addr::from_bits(*bits));
                assert!(hints.all(|hint| may_stay(hint.into())));
            }
            SVCParam::Ipv6Hint(hints) => {
                let mut hints = hints.iter().map(|bits| Ipv6Addr::from_bits(*bits));
                assert!(hints.all(|hint| may_stay(hint.into())));
            }
            SVCParam::Mandatory(keys) => {
                let given =
                    |key: &u16| old.get_param(*key).is_none() || new.get_param(*key).is_some();
                assert!(keys.iter().all(given));
            }
            _ => assert_eq!(old.get_param(param.key_code()), Some(param)),
        }
    }
}

fn own(query: &Query) {
    let known = [
        Own::Address(Ipv4Addr::LOCALHOST.into()),
        Own::Address(Ipv6Addr::LOCALHOST.into()),
        Own::Name(query.name().clone()),
    ];
    let answer = query.answer(&known, 60);
    assert_eq!(query.accept(&answer, query.id()).as_ref(), Ok(&answer));
    if let Ok(other) = Packet::parse(&answer) {
        assert_eq!(dns::decoded_counts(&other), dns::counts(&answer));
    }
    let _ = query.name().reversed_address();
}
