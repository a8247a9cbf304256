//! Which records belong to the question, and what the client sees.

use std::net::Ipv4Addr;

use super::*;

/// An answer to `PLAIN` or `DIG` that is written by hand, so that names can point
/// wherever they like.
#[derive(Clone)]
pub(super) struct Draft {
    bytes: Vec<u8>,
}

/// The name asked for, and a part of it.
pub(super) const QUESTION: &[u8] = b"\xc0\x0c";
const ORG: &[u8] = b"\xc0\x14";

impl Draft {
    pub(super) fn new() -> Self {
        let mut bytes = PLAIN.to_vec();
        bytes[2] |= 0x80;
        bytes[3] |= 0x20; // verified
        Self { bytes }
    }

    /// Adds a record to the section whose count stands at `count`.
    fn add(mut self, count: usize, owner: &[u8], rtype: Type, data: &[u8]) -> Self {
        let number = u16::from_be_bytes([self.bytes[count], self.bytes[count + 1]]) + 1;
        self.bytes[count..count + 2].copy_from_slice(&number.to_be_bytes());
        self.bytes.extend(owner);
        self.bytes.extend(rtype.0.to_be_bytes());
        self.bytes.extend([0, 1, 0, 0, 0, 60]);
        self.bytes
            .extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        self.bytes.extend(data);
        self
    }

    pub(super) fn answer(self, owner: &[u8], rtype: Type, data: &[u8]) -> Self {
        self.add(6, owner, rtype, data)
    }

    fn authority(self, owner: &[u8], rtype: Type, data: &[u8]) -> Self {
        self.add(8, owner, rtype, data)
    }

    fn additional(self, owner: &[u8], rtype: Type, data: &[u8]) -> Self {
        self.add(10, owner, rtype, data)
    }

    fn a(self, owner: &[u8], last: u8) -> Self {
        self.answer(owner, Type::A, &[192, 0, 2, last])
    }

    /// Where the next record starts, as a pointer.
    fn here(&self) -> [u8; 2] {
        self.pointer(0)
    }

    fn pointer(&self, offset: usize) -> [u8; 2] {
        u16::try_from(0xc000 + self.bytes.len() + offset)
            .unwrap()
            .to_be_bytes()
    }

    pub(super) fn accepted(&self, asked: &Query) -> Vec<u8> {
        asked.accept(&self.bytes, ID).unwrap()
    }
}

/// The last parts of the addresses that belong to the question, and the chain.
fn belonging(draft: &Draft) -> (Vec<u8>, Vec<String>) {
    let asked = query(PLAIN);
    let accepted = draft.accepted(&asked);
    let answer = Answer::open(&asked, &accepted).unwrap();
    let last = |(address, ttl)| match address {
        IpAddr::V4(address) => {
            assert_eq!(ttl, 60);
            Ipv4Addr::octets(&address)[3]
        }
        IpAddr::V6(address) => address.octets()[15],
    };
    let chain = answer.chain().iter().map(Name::to_string).collect();
    (answer.addresses().map(last).collect(), chain)
}

/// What a client sees, who asked with `asked`.
pub(super) fn filtered(draft: &Draft, asked: &[u8], keep: impl FnMut(IpAddr) -> bool) -> Vec<u8> {
    let asked = query(asked);
    let accepted = draft.accepted(&asked);
    let answer = Answer::open(&asked, &accepted).unwrap();
    let filtered = answer.filtered(keep).unwrap();
    assert_eq!(asked.accept(&filtered, ID), Ok(filtered.clone()));
    filtered
}

/// The answers that a client sees, as another implementation reads them.
fn shown(draft: &Draft) -> Vec<String> {
    let bytes = filtered(draft, PLAIN, |_| false);
    let packet = Packet::parse(&bytes).unwrap();
    let text = |record: &ResourceRecord<'_>| match &record.rdata {
        RData::A(a) => format!("{} A {}", record.name, Ipv4Addr::from(a.address)),
        RData::CNAME(cname) => format!("{} CNAME {}", record.name, cname.0),
        RData::MX(mx) => format!("{} MX {}", record.name, mx.exchange),
        RData::PTR(ptr) => format!("{} PTR {}", record.name, ptr.0),
        RData::SRV(srv) => format!("{} SRV {} {}", record.name, srv.port, srv.target),
        RData::SOA(soa) => format!("{} SOA {} {}", record.name, soa.mname, soa.rname),
        other => format!("{} {:?}", record.name, other),
    };
    packet.answers.iter().map(text).collect()
}

#[test]
fn addresses_are_found_through_aliases_in_any_order() {
    let first = Draft::new().answer(QUESTION, Type::CNAME, b"\x03cdn\xc0\x14");
    let cdn = first.pointer(0);
    let cdn = u16::from_be_bytes(cdn) - 6; // at its data
    let cdn = &cdn.to_be_bytes()[..];
    let draft = first
        .answer(cdn, Type::CNAME, b"\x04EDGE\x03net\0")
        .a(b"\x04edge\x03NET\0", 1)
        .a(b"\x04edge\x03net\0", 2);
    let chain = ["example.org", "cdn.org", "edge.net"].map(String::from);
    assert_eq!(belonging(&draft), (vec![1, 2], chain.to_vec()));
    assert_eq!(
        shown(&draft),
        [
            "ExAmple.org CNAME cdn.org",
            "cdn.org CNAME EDGE.net",
            "EDGE.net A 192.0.2.1",
            "EDGE.net A 192.0.2.2"
        ]
    );

    let backwards = Draft::new()
        .a(b"\x04edge\x03net\0", 1)
        .answer(b"\x03cdn\x03org\0", Type::CNAME, b"\x04edge\x03net\0")
        .answer(QUESTION, Type::CNAME, b"\x03cdn\x03org\0");
    assert_eq!(belonging(&backwards), (vec![1], chain.to_vec()));
}

#[test]
fn addresses_that_nobody_asked_for_are_dropped() {
    let other = b"\x05other\xc0\x14";
    let draft = Draft::new()
        .a(other, 1)
        .a(QUESTION, 2)
        .a(ORG, 3)
        .answer(other, Type::AAAA, &[0xfd; 16])
        .answer(QUESTION, Type::AAAA, &[0xfc; 16])
        .answer(other, Type::TXT, b"\x02hi")
        .authority(ORG, Type::NS, other)
        .additional(other, Type::A, &[192, 0, 2, 4])
        .additional(QUESTION, Type::A, &[192, 0, 2, 5]);
    assert_eq!(belonging(&draft).0, [2, 0xfc]);

    let bytes = filtered(&draft, PLAIN, |_| true);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.answers.len(), 3);
    assert!(packet.name_servers.is_empty() && packet.additional_records.is_empty());
    assert_eq!(shown(&draft)[0], "ExAmple.org A 192.0.2.2");
    assert!(shown(&draft)[2].starts_with("other.org TXT"));
}

#[test]
fn records_of_another_class_are_dropped() {
    let classed = |class: &[u8; 2]| {
        let mut draft = Draft::new().a(QUESTION, 1);
        let at = PLAIN.len() + QUESTION.len() + 2;
        draft.bytes[at..at + 2].copy_from_slice(class);
        (shown(&draft).len(), belonging(&draft).0.len())
    };
    assert_eq!(classed(&[0, 1]), (1, 1));
    assert_eq!(classed(&[0, 3]), (0, 0));
    assert_eq!(classed(&[0x80, 1]), (0, 0));
}

#[test]
fn circles_long_chains_and_forks_lead_nowhere() {
    let circle = Draft::new()
        .answer(QUESTION, Type::CNAME, b"\x01a\0")
        .answer(b"\x01a\0", Type::CNAME, b"\x01b\0")
        .answer(b"\x01b\0", Type::CNAME, b"\x01a\0")
        .a(b"\x01b\0", 1)
        .a(b"\x01c\0", 2);
    assert_eq!(belonging(&circle).0, [1]);
    let own = Draft::new().answer(QUESTION, Type::CNAME, QUESTION);
    assert_eq!(belonging(&own).1, ["example.org"]);

    let long = |aliases: u8| {
        let mut draft = Draft::new().answer(QUESTION, Type::CNAME, b"\x01A\0");
        for link in 1..aliases {
            let link = b'A' + link;
            draft = draft.answer(&[1, link - 1, 0], Type::CNAME, &[1, link, 0]);
        }
        belonging(&draft.a(&[1, b'A' + aliases - 1, 0], 1)).0
    };
    assert_eq!(long(16), [1]);
    assert_eq!(long(17), []);

    let fork = Draft::new()
        .answer(QUESTION, Type::CNAME, b"\x01a\0")
        .answer(QUESTION, Type::CNAME, b"\x01b\0")
        .a(b"\x01b\0", 2)
        .a(b"\x01a\0", 1);
    assert_eq!(belonging(&fork).0, [1]);
}

/// Names point into records that are dropped.
#[test]
fn compressed_names_survive_what_is_cut_out() {
    let draft = Draft::new();
    let dropped = draft.here();
    let draft = draft.a(b"\x04Gone\x07example\0", 1);
    let draft = draft
        .answer(
            QUESTION,
            Type::MX,
            &[b"\0\x0a\x04mail", &dropped[..]].concat(),
        )
        .answer(
            &dropped,
            Type::PTR,
            &[b"\x07My Host", &dropped[..]].concat(),
        )
        .answer(
            QUESTION,
            Type::SRV,
            &[b"\0\0\0\0\x01\xbb", &dropped[..]].concat(),
        )
        .answer(
            ORG,
            Type::SOA,
            &[&b"\x02ns"[..], &dropped, ORG, &[0; 20]].concat(),
        );
    assert_eq!(
        shown(&draft),
        [
            "ExAmple.org MX mail.Gone.example",
            "Gone.example PTR My Host.Gone.example",
            "ExAmple.org SRV 443 Gone.example",
            "org SOA ns.Gone.example org",
        ]
    );
}

/// They must not be compressed, and a server may do it nevertheless.
#[test]
fn names_in_signatures_and_denials_survive_as_well() {
    let rest = b"\0\x06\x40\0\0\0\0\x03";
    for (rtype, before) in [(Type(46), &[7; 18][..]), (Type(47), b"")] {
        let data = [before, b"\x04next", ORG, rest].concat();
        let draft = Draft::new().a(ORG, 1).answer(QUESTION, rtype, &data);
        let bytes = filtered(&draft, PLAIN, |_| false);
        assert!(bytes.ends_with(&[before, b"\x04next\x03org\0", rest].concat()));
    }
}

#[test]
fn data_of_unknown_types_passes_as_it_is() {
    let data = b"\xc0\x0c anything \0\xff";
    let draft = Draft::new()
        .a(b"\x01x\0", 1)
        .answer(QUESTION, Type(65280), data);
    let bytes = filtered(&draft, PLAIN, |_| false);
    let end = &bytes[bytes.len() - data.len()..];
    assert_eq!(end, data);
}

#[test]
fn the_soa_of_a_no_and_edns_stay() {
    let soa = [
        &b"\x02ns\xc0\x14"[..],
        b"\x04root\xc0\x14",
        &[0; 16],
        &[0, 0, 0, 9],
    ]
    .concat();
    let mut no = Draft::new()
        .authority(ORG, Type::NS, b"\x02ns\xc0\x14")
        .authority(ORG, Type::SOA, &soa);
    no.bytes[3] |= 3; // no such name
    no.bytes.extend(&DIG[29..]);
    no.bytes[11] += 1;
    let bytes = filtered(&no, DIG, |_| false);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.rcode(), RCODE::NameError);
    assert_eq!(packet.name_servers.len(), 1);
    assert_eq!(packet.opt().unwrap().opt_codes.len(), 1);
    assert_eq!(Aging::new(&bytes).unwrap().lifetime(), 9);
    let bytes = filtered(&no, PLAIN, |_| false);
    assert!(Packet::parse(&bytes).unwrap().opt().is_none());
}

#[test]
fn only_an_unchanged_answer_claims_to_be_verified() {
    let claims = |draft: &Draft| filtered(draft, PLAIN, |_| false)[3] & 0x20 != 0;
    let draft = Draft::new().a(QUESTION, 1);
    assert!(claims(&draft));
    assert!(!claims(&draft.a(ORG, 2)));
}

#[test]
fn malformed_data_is_refused() {
    let asked = query(PLAIN);
    let opened = |rtype: Type, data: &[u8]| {
        let accepted = Draft::new().answer(QUESTION, rtype, data).accepted(&asked);
        Answer::open(&asked, &accepted).map(|_| ())
    };
    for (rtype, data) in [
        (Type::A, &b"\x01\x02\x03"[..]),
        (Type::A, b"\x01\x02\x03\x04\x05"),
        (Type::AAAA, b"\x01\x02\x03\x04"),
        (Type::CNAME, b"\x01a\0!"),
        (Type::CNAME, b"\0\0"),
        (Type::MX, b"\0\x01\0\0"),
    ] {
        assert_eq!(opened(rtype, data), Err(Malformed::Data(rtype)), "{data:?}");
    }
    for (rtype, data) in [
        (Type::CNAME, &b"\x05a"[..]),
        (Type::CNAME, b""),
        (Type::SOA, b"\0\0\0"),
        (Type::MX, b"\0"),
        (Type::PTR, b"\xc0\xff"),
    ] {
        assert!(opened(rtype, data).is_err(), "{data:?}");
    }
    assert_eq!(opened(Type::CNAME, b"\x01a\0"), Ok(()));
    assert_eq!(opened(Type::TXT, b""), Ok(()));
}

#[test]
fn answers_have_bounds() {
    let asked = query(PLAIN);
    let many = |count: usize| {
        let draft = (0..count).fold(Draft::new(), |draft, _| draft.a(QUESTION, 1));
        let accepted = draft.accepted(&asked);
        Answer::open(&asked, &accepted)?.filtered(|_| false)
    };
    assert_eq!(many(1024).unwrap().len(), PLAIN.len() + 1024 * 16);
    assert_eq!(many(1025), Err(Malformed::TooLong));

    // Long names that take two bytes each as long as they are compressed.
    let label = [&[63][..], &[b'x'; 63]].concat();
    let long = [&label[..], &label, &label, b"\0"].concat();
    let first = Draft::new();
    let place = first.here();
    let draft = (0..400).fold(first.a(&long, 1), |draft, _| {
        draft.answer(QUESTION, Type::NS, &place)
    });
    let accepted = draft.accepted(&asked);
    let answer = Answer::open(&asked, &accepted).unwrap();
    assert_eq!(answer.filtered(|_| false), Err(Malformed::TooLong));
}

proptest! {
    /// Whatever a hostile upstream sends, what the client sees is well formed, has
    /// no address that does not belong, and would be seen the same again.
    #[test]
    fn a_hostile_answer_is_refused_or_clean(
        sections in prop::collection::vec((0_usize..3, any_record()), 0..12),
        damage in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..3),
    ) {
        let mut sections = sections;
        sections.sort_by_key(|(section, _)| *section);
        let mut draft = Draft::new();
        for (section, (owner, rtype, data)) in sections {
            draft = draft.add(6 + 2 * section, &owner, rtype, &data);
        }
        for (at, value) in damage {
            let at = 12 + at.index(draft.bytes.len() - 12);
            draft.bytes[at] = value;
        }
        let asked = query(PLAIN);
        let Ok(accepted) = asked.accept(&draft.bytes, ID) else { return Ok(()); };
        let Ok(answer) = Answer::open(&asked, &accepted) else { return Ok(()); };
        let Ok(bytes) = answer.filtered(|address| address.is_ipv4()) else { return Ok(()); };
        prop_assert_eq!(asked.accept(&bytes, ID), Ok(bytes.clone()));
        let again = Answer::open(&asked, &bytes).unwrap();
        prop_assert_eq!(again.filtered(|_| true).unwrap(), bytes.clone());
        prop_assert_eq!(again.chain(), answer.chain());
        prop_assert!(again.addresses().eq(answer.addresses()));
        let there = again.records().iter().filter_map(Resource::address).count();
        prop_assert_eq!(there, again.addresses().count());
    }
}

prop_compose! {
    fn any_record()(
        owner in prop::sample::select(vec![
            QUESTION.to_vec(), ORG.to_vec(), b"\x01a\0".to_vec(), b"\x01b\xc0\x14".to_vec(),
        ]),
        target in prop::sample::select(vec![
            QUESTION.to_vec(), ORG.to_vec(), b"\x01A\0".to_vec(), b"\x01b\xc0\x14".to_vec(),
        ]),
        rtype in prop::sample::select(vec![
            Type::A, Type::AAAA, Type::CNAME, Type::NS, Type::MX, Type::SOA, Type::TXT, Type::HTTPS,
        ]),
        value in any::<u8>(),
    ) -> (Vec<u8>, Type, Vec<u8>) {
        let data = match rtype {
            Type::A => vec![value; 4],
            Type::AAAA => vec![value; 16],
            Type::MX => [&[0, 1][..], &target].concat(),
            Type::SOA => [&target[..], &target, &[value; 20]].concat(),
            Type::HTTPS => [
                &[0, 1, 0, 0, 4, 0, 4][..], &[value; 4], &[0, 5, 0, 1, 1, 0, 6, 0, 16], &[value; 16],
            ].concat(),
            Type::TXT => vec![value],
            _ => target,
        };
        (owner, rtype, data)
    }
}
