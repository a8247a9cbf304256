//! Answers from the host's own knowledge.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

fn asked(name: &str, rtype: TYPE, edns: bool) -> Query {
    let mut packet = Packet::new_query(ID);
    packet.questions.push(simple_dns::Question::new(
        simple_dns::Name::new_unchecked(name),
        QTYPE::TYPE(rtype),
        QCLASS::CLASS(CLASS::IN),
        false,
    ));
    if edns {
        *packet.opt_mut() = Some(simple_dns::rdata::OPT {
            opt_codes: Vec::new(),
            udp_packet_size: 1232,
            version: 0,
        });
    }
    query(&packet.build_bytes_vec().unwrap())
}

#[test]
fn what_was_asked_for_is_answered_and_nothing_else() {
    let known = [
        Own::Address(Ipv4Addr::new(10, 0, 0, 7).into()),
        Own::Address(Ipv6Addr::LOCALHOST.into()),
        Own::Name(Name::from_text("Printer.lan").unwrap()),
    ];
    let answered = |rtype: TYPE, edns: bool| {
        let asked = asked("printer", rtype, edns);
        let bytes = asked.answer(&known, 30);
        assert_eq!(asked.accept(&bytes, ID), Ok(bytes.clone()));
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!((packet.id(), packet.rcode()), (ID, RCODE::NoError));
        assert_eq!(packet.opt().is_some(), edns);
        let records = packet.answers.iter();
        records
            .map(|record| {
                assert_eq!(
                    (record.name.to_string(), record.ttl),
                    ("printer".into(), 30)
                );
                format!("{:?}", record.rdata)
            })
            .collect::<Vec<String>>()
    };
    for edns in [true, false] {
        let [a] = &answered(TYPE::A, edns)[..] else {
            panic!("one address");
        };
        assert!(
            a.contains(&u32::from_be_bytes([10, 0, 0, 7]).to_string()),
            "{a}"
        );
        let [aaaa] = &answered(TYPE::AAAA, edns)[..] else {
            panic!("one address");
        };
        assert!(aaaa.contains("AAAA { address: 1 }"), "{aaaa}");
        let [ptr] = &answered(TYPE::PTR, edns)[..] else {
            panic!("one name");
        };
        assert!(ptr.contains("printer") && ptr.contains("lan"), "{ptr}");
        assert!(answered(TYPE::TXT, edns).is_empty());
    }
}

#[test]
fn no_number_of_addresses_breaks_the_message() {
    let name = "a".repeat(63);
    let long = Name::from_text(&[&*name, &name, &name, &name[..61]].join(".")).unwrap();
    let asked = asked("printer", TYPE::PTR, true);
    let bytes = asked.answer(&vec![Own::Name(long); 1000], 30);
    assert_eq!(asked.accept(&bytes, ID), Ok(bytes.clone()));
    let fitted = asked.fit(bytes, asked.udp_limit());
    assert!(is_truncated(&fitted));
}

#[test]
fn the_same_question_is_asked_about_another_name() {
    let target = Name::from_text("cam1.lab.example").unwrap();
    for (rtype, edns) in [(TYPE::A, true), (TYPE::AAAA, false)] {
        let first = asked("CAM", rtype, edns);
        let other = first.about(&target);
        assert_eq!(other.name(), &target);
        assert_eq!(other.qtype(), first.qtype());
        // To others it is as if the client had asked it.
        let direct = asked("cam1.lab.example", rtype, edns);
        assert_eq!(other.to_upstream(7), direct.to_upstream(7));
    }
}

#[test]
fn a_name_exists_without_records_of_a_type() {
    let asked = asked("printer", TYPE::A, true);
    let address = Own::Address(Ipv4Addr::new(10, 0, 0, 7).into());
    assert!(name_exists(&asked.answer(&[address], 30)));
    assert!(name_exists(&asked.answer(&[], 30)));
    for none in [
        asked.error(Rcode::NxDomain, None),
        asked.error(Rcode::ServFail, None),
        Vec::new(),
    ] {
        assert!(!name_exists(&none));
    }
}
