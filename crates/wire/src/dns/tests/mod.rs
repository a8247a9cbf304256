//! `simple-dns` is the second opinion: what it builds we read, what we build it
//! reads.

mod filter;
mod names;
mod own;
mod service;

use std::net::IpAddr;

use proptest::prelude::*;
use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QCLASS, QTYPE, RCODE, ResourceRecord, TYPE};

use super::*;

const ID: u16 = 0xbeef;

/// `ExAmple.org A`, as dig sends it: EDNS of 1232 bytes with a cookie.
const DIG: &[u8] = b"\xbe\xef\x01\x20\x00\x01\x00\x00\x00\x00\x00\x01\
    \x07ExAmple\x03org\x00\x00\x01\x00\x01\
    \x00\x00\x29\x04\xd0\x00\x00\x80\x00\x00\x0c\x00\x0a\x00\x08\x11\x22\x33\x44\x55\x66\x77\x88";

/// The same question from a resolver that knows no EDNS.
const PLAIN: &[u8] = b"\xbe\xef\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\
    \x07ExAmple\x03org\x00\x00\x01\x00\x01";

fn query(bytes: &[u8]) -> Query {
    Query::parse(bytes).unwrap()
}

/// An upstream's answer with `count` addresses: the question in lower case,
/// names compressed.
fn answer(id: u16, name: &str, count: u8) -> Vec<u8> {
    let mut packet = Packet::new_reply(id);
    let name = simple_dns::Name::new_unchecked(name).into_owned();
    packet.questions.push(simple_dns::Question::new(
        name.clone(),
        QTYPE::TYPE(TYPE::A),
        QCLASS::CLASS(CLASS::IN),
        false,
    ));
    for last in 0..count {
        let rdata = RData::A(A {
            address: u32::from_be_bytes([192, 0, 2, last]),
        });
        packet
            .answers
            .push(ResourceRecord::new(name.clone(), CLASS::IN, 60, rdata));
    }
    packet.build_bytes_vec_compressed().unwrap()
}

#[test]
fn a_query_says_what_it_asks() {
    let dig = query(DIG);
    assert_eq!(dig.id(), ID);
    assert_eq!(dig.name().to_string(), "example.org");
    assert_eq!((dig.qtype(), dig.qclass()), (Type::A, Class::IN));
    assert_eq!(dig.udp_limit(), 1232);
    assert_eq!(query(PLAIN).udp_limit(), 512);
}

#[test]
fn the_limit_of_a_client_is_never_below_512() {
    let with_payload = |payload: u16| {
        let mut bytes = DIG.to_vec();
        bytes[32..34].copy_from_slice(&payload.to_be_bytes());
        query(&bytes).udp_limit()
    };
    assert_eq!(with_payload(0), 512);
    assert_eq!(with_payload(4096), 4096);
    assert_eq!(with_payload(65535), 65507);
}

#[test]
fn a_plain_query_goes_up_under_another_identifier() {
    let sent = query(PLAIN).to_upstream(0x1234);
    assert_eq!(sent[..2], [0x12, 0x34]);
    // In small letters: the case of letters could carry a message.
    assert_eq!(sent[2..], PLAIN[2..].to_ascii_lowercase());
}

#[test]
fn nothing_goes_up_that_the_answer_does_not_depend_on() {
    let sent = query(DIG).to_upstream(0x1234);
    let bare = [&DIG[2..38], &[0, 0]].concat().to_ascii_lowercase();
    assert_eq!(sent[2..], bare, "without the cookie");
    // Flags that mean nothing in a question, a size of the client's own, a further record.
    let mut laden = DIG.to_vec();
    laden[2] |= 0x06;
    laden[3] |= 0xc7;
    laden[11] = 2;
    laden[32..34].copy_from_slice(b"42");
    laden.extend(b"\x06hidden\x00\x00\x10\x00\x01\x00\x00\x00\x00\x00\x07\x06secret");
    assert_eq!(query(&laden).to_upstream(0x1234), sent);
    assert_eq!(query(&laden).key(), query(DIG).key());
}

#[test]
fn every_prefix_of_a_query_is_refused() {
    for whole in [DIG, PLAIN] {
        for end in 0..whole.len() {
            assert!(Query::parse(&whole[..end]).is_err(), "{end}");
        }
    }
}

#[test]
fn what_is_no_plain_question_is_refused() {
    let with = |at: usize, value: u8| {
        let mut bytes = PLAIN.to_vec();
        bytes[at] = value;
        Query::parse(&bytes).unwrap_err()
    };
    assert_eq!(with(2, 0x81), Malformed::NotAQuery);
    assert_eq!(with(2, 0x28), Malformed::Opcode(5));
    assert_eq!(with(5, 0), Malformed::Questions(0));
    assert_eq!(with(5, 2), Malformed::Questions(2));
    assert_eq!(with(7, 1), Malformed::AnswersInQuery);
    assert_eq!(with(9, 1), Malformed::AnswersInQuery);
    assert_eq!(with(11, 1), Malformed::Short);
    let trailing = [PLAIN, b"!"].concat();
    assert_eq!(Query::parse(&trailing).unwrap_err(), Malformed::Trailing);
}

#[test]
fn edns_is_accepted_once_and_at_the_root_only() {
    let twice = [DIG, &DIG[29..]].concat();
    let mut twice_counted = twice.clone();
    twice_counted[11] = 2;
    assert_eq!(Query::parse(&twice_counted).unwrap_err(), Malformed::Edns);

    let mut named = DIG.to_vec();
    named.splice(29..30, *b"\x01x\x00");
    assert_eq!(Query::parse(&named).unwrap_err(), Malformed::Edns);
}

#[test]
fn names_are_shown_without_harm() {
    let named = |labels: &[u8]| {
        let bytes = [&PLAIN[..12], labels, &PLAIN[25..]].concat();
        Query::parse(&bytes).map(|query| query.name().to_string())
    };
    assert_eq!(named(b"\0").unwrap(), ".");
    assert_eq!(named(b"\x05_x-*1\0").unwrap(), "_x-*1");
    assert_eq!(
        named(b"\x04a.b\\\x02\x1b[\0").unwrap(),
        r"a\046b\092.\027\091"
    );
    assert_eq!(named(b"\x03\x00\r\n\0").unwrap(), r"\000\013\010");
}

#[test]
fn names_have_the_lengths_of_the_standard() {
    let named = |labels: Vec<u8>| {
        let bytes = [&PLAIN[..12], &labels, &PLAIN[25..]].concat();
        Query::parse(&bytes)
    };
    let label = |length: u8| [&[length][..], &vec![b'a'; length.into()]].concat();
    let longest = [label(63), label(63), label(63), label(61), vec![0]].concat();
    assert_eq!(longest.len(), 255);
    assert_eq!(named(longest).unwrap().name().labels().count(), 4);
    let longer = [label(63), label(63), label(63), label(62), vec![0]].concat();
    assert_eq!(named(longer).unwrap_err(), Malformed::Name);
    assert_eq!(
        named([label(64), vec![0]].concat()).unwrap_err(),
        Malformed::Name
    );
}

#[test]
fn a_question_that_points_anywhere_is_refused() {
    for target in [0_u16, 4, 11, 12, 13, 29, 0x3fff] {
        let pointer = (0xc000 | target).to_be_bytes();
        let bytes = [&PLAIN[..12], &pointer, &PLAIN[25..]].concat();
        assert_eq!(Query::parse(&bytes).unwrap_err(), Malformed::Name);
    }
}

#[test]
fn an_answer_comes_back_as_the_client_asked() {
    let accepted = query(DIG).accept(&answer(7, "example.org", 3), 7).unwrap();
    assert_eq!(accepted[..2], ID.to_be_bytes());
    assert_eq!(
        accepted[12..29],
        DIG[12..29],
        "with the client's letter case"
    );
    let packet = Packet::parse(&accepted).unwrap();
    assert_eq!(packet.answers.len(), 3);
    assert_eq!(packet.answers[0].name.to_string(), "ExAmple.org");
}

#[test]
fn a_response_to_something_else_is_no_answer() {
    let asked = query(DIG);
    let right = answer(7, "example.org", 1);
    let changed = |at: usize, value: u8| {
        let mut bytes = right.clone();
        bytes[at] = value;
        asked.accept(&bytes, 7).unwrap_err()
    };
    assert!(asked.accept(&right, 7).is_ok());
    assert_eq!(asked.accept(&right, 8), Err(Mismatch::Id));
    assert_eq!(changed(2, 0x01), Mismatch::NotAResponse);
    assert_eq!(changed(2, 0xa8), Mismatch::Opcode);
    assert_eq!(changed(5, 0), Mismatch::Malformed(Malformed::Questions(0)));
    assert_eq!(changed(14, b'y'), Mismatch::Question);
    assert_eq!(changed(26, 28), Mismatch::Question);
    assert_eq!(changed(28, 3), Mismatch::Question);
    assert_eq!(
        asked.accept(&answer(7, "example.com", 1), 7),
        Err(Mismatch::Question)
    );
}

#[test]
fn every_prefix_of_an_answer_is_refused() {
    let asked = query(DIG);
    let whole = answer(7, "example.org", 2);
    for end in 0..whole.len() {
        assert!(asked.accept(&whole[..end], 7).is_err(), "{end}");
    }
    let trailing = [&whole[..], &[0]].concat();
    let refused = Mismatch::Malformed(Malformed::Trailing);
    assert_eq!(asked.accept(&trailing, 7), Err(refused));
}

#[test]
fn a_truncated_answer_that_was_cut_anywhere_is_passed_on_empty() {
    let mut cut = answer(7, "example.org", 2);
    cut[2] |= 0x02;
    cut.truncate(40);
    let accepted = query(DIG).accept(&cut, 7).unwrap();
    let packet = Packet::parse(&accepted).unwrap();
    assert!(packet.has_flags(PacketFlag::TRUNCATION));
    assert_eq!(packet.answers.len(), 0);
}

/// The second byte of a pointer may be a letter. A record that points into a
/// label of the question, where it finds such a pointer, reads another place
/// once the question has the client's letter case.
#[test]
fn the_letter_case_of_the_client_cannot_break_an_answer() {
    let asked = |letter: u8| {
        let mut labels = [[b'x'; 64]; 2];
        labels[0][0] = 63;
        labels[0][53] = 0; // at 65, `A`: the root
        labels[1][0] = 63;
        labels[1][44..46].copy_from_slice(&[0xc0, letter]); // at 120
        [&PLAIN[..12], &labels.concat(), &[0, 0, 1, 0, 1]].concat()
    };
    let mut response = asked(b'A');
    response[2] |= 0x80;
    response[7] = 1;
    response.extend(b"\xc0\x78\0\x01\0\x01\0\0\0\0\0\0");
    assert!(query(&asked(b'A')).accept(&response, ID).is_ok());
    assert_eq!(
        query(&asked(b'a')).accept(&response, ID),
        Err(Mismatch::Malformed(Malformed::Name))
    );
}

/// A chain of pointers, each to the one before: legal by the letter, a waste
/// of time by the thousand.
#[test]
fn a_chain_of_pointers_is_given_up() {
    let chain = |links: u16| {
        let mut rdata = b"\x00".to_vec();
        for link in 0..links {
            let target = if link == 0 { 41 } else { 42 + (link - 1) * 2 };
            rdata.extend((0xc000 | target).to_be_bytes());
        }
        let mut bytes = PLAIN.to_vec();
        bytes[2] |= 0x80;
        bytes[7] = 2;
        bytes.extend(b"\xc0\x0c\x00\x10\x00\x01\0\0\0\0");
        bytes.extend(u16::try_from(rdata.len()).unwrap().to_be_bytes());
        bytes.extend(rdata);
        let last = u16::try_from(bytes.len() - 2).unwrap();
        bytes.extend((0xc000 | last).to_be_bytes());
        bytes.extend(b"\x00\x10\x00\x01\0\0\0\0\0\0");
        query(PLAIN).accept(&bytes, ID)
    };
    assert!(chain(100).is_ok());
    assert_eq!(chain(2000), Err(Mismatch::Malformed(Malformed::Name)));
}

#[test]
fn our_own_answer_carries_a_reason_for_those_who_speak_edns() {
    let reason = ExtendedError {
        code: ExtendedError::PROHIBITED,
        text: "add the rule".into(),
    };
    let bytes = query(DIG).error(Rcode::Refused, Some(&reason));
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.id(), packet.rcode()), (ID, RCODE::Refused));
    let opt = packet.opt().unwrap();
    assert_eq!(opt.opt_codes[0].code, 15);
    assert_eq!(opt.opt_codes[0].data.as_ref(), b"\x00\x12add the rule");

    let bytes = query(PLAIN).error(Rcode::Refused, Some(&reason));
    let packet = Packet::parse(&bytes).unwrap();
    assert!(packet.opt().is_none());
    assert_eq!(packet.questions.len(), 1);
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let reason = ExtendedError {
        code: 0,
        text: "ä".repeat(400),
    };
    let bytes = query(DIG).error(Rcode::ServFail, Some(&reason));
    assert!(bytes.len() <= 512 && bytes.len() > 500);
    let packet = Packet::parse(&bytes).unwrap();
    let text = &packet.opt().unwrap().opt_codes[0].data[2..];
    assert!(std::str::from_utf8(text).is_ok());
}

#[test]
fn an_answer_that_is_too_long_sends_the_client_to_tcp() {
    let asked = query(DIG);
    let mut long = answer(ID, "ExAmple.org", 200);
    long.extend(&DIG[29..]);
    long[11] += 1;
    assert_eq!(asked.fit(long.clone(), long.len()), long);

    let short = asked.fit(long, 1232);
    let packet = Packet::parse(&short).unwrap();
    assert!(packet.has_flags(PacketFlag::TRUNCATION));
    assert_eq!((packet.questions.len(), packet.answers.len()), (1, 0));
    assert!(packet.opt().is_some());
}

#[test]
fn what_cannot_be_read_is_answered_if_it_has_a_header() {
    assert_eq!(formerr(&PLAIN[..11]), None);
    let mut response = PLAIN.to_vec();
    response[2] |= 0x80;
    assert_eq!(formerr(&response), None);

    let refusal = formerr(&PLAIN[..20]).unwrap();
    assert_eq!(refusal, b"\xbe\xef\x81\x81\0\0\0\0\0\0\0\0");
    let mut update = PLAIN.to_vec();
    update[2] = 0x28;
    assert_eq!(formerr(&update).unwrap()[..4], *b"\xbe\xef\xa8\x84");
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

prop_compose! {
    /// A query as another implementation writes it, with the name it asks for.
    fn any_query()(
        name in "[a-zA-Z0-9_-]{1,63}(\\.[a-zA-Z0-9-]{1,20}){0,6}",
        id in any::<u16>(),
        payload in prop::option::of(any::<u16>()),
    ) -> (String, Vec<u8>) {
        let mut packet = Packet::new_query(id);
        packet.questions.push(simple_dns::Question::new(
            simple_dns::Name::new_unchecked(&name),
            QTYPE::TYPE(TYPE::AAAA),
            QCLASS::CLASS(CLASS::IN),
            false,
        ));
        if let Some(udp_packet_size) = payload {
            *packet.opt_mut() = Some(simple_dns::rdata::OPT {
                opt_codes: Vec::new(),
                udp_packet_size,
                version: 0,
            });
        }
        (name.clone(), packet.build_bytes_vec().unwrap())
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in any_bytes()) {
        let _ = Query::parse(&bytes);
        let _ = formerr(&bytes);
        let _ = query(DIG).accept(&bytes, ID);
        let _ = query(DIG).fit(bytes, 0);
    }

    #[test]
    fn what_another_implementation_writes_is_read((name, bytes) in any_query()) {
        let parsed = query(&bytes);
        prop_assert_eq!(parsed.name().to_string(), name.to_ascii_lowercase());
        for end in 0..bytes.len() {
            prop_assert!(Query::parse(&bytes[..end]).is_err());
        }
    }

    /// Whatever a hostile upstream sends after a fitting header and question,
    /// what is passed on is a message that parses to its last byte.
    #[test]
    fn a_hostile_answer_is_refused_or_well_formed(
        counts in any::<[u8; 3]>(),
        flags in any::<u16>(),
        tail in any_bytes(),
        limit in 0_usize..600,
    ) {
        let asked = query(PLAIN);
        let mut bytes = PLAIN.to_vec();
        bytes[2..4].copy_from_slice(&(flags & !0x7800 | 0x8000).to_be_bytes());
        for (index, count) in counts.iter().enumerate() {
            bytes[7 + 2 * index] = count % 4;
        }
        bytes.extend(tail);
        if let Ok(accepted) = asked.accept(&bytes, ID) {
            prop_assert!(message::Opening::read(&accepted).unwrap().edns().is_ok());
            let fitted = asked.fit(accepted, limit);
            prop_assert!(fitted.len() <= limit.max(512));
            prop_assert!(message::Opening::read(&fitted).unwrap().edns().is_ok());
        }
    }

    #[test]
    fn a_damaged_answer_is_refused_or_well_formed(
        damage in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4),
    ) {
        let mut bytes = answer(ID, "example.org", 5);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(accepted) = query(DIG).accept(&bytes, ID) {
            prop_assert!(message::Opening::read(&accepted).unwrap().edns().is_ok());
        }
    }

    #[test]
    fn our_own_answers_are_read_by_others(
        (_, bytes) in any_query(),
        text in ".{0,600}",
    ) {
        let asked = query(&bytes);
        let reason = ExtendedError { code: 18, text };
        let bytes = asked.error(Rcode::NxDomain, Some(&reason));
        prop_assert!(bytes.len() <= 512);
        prop_assert_eq!(Packet::parse(&bytes).unwrap().rcode(), RCODE::NameError);
    }
}
