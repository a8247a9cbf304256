//! A message that may be a query, and what is done with it before any answer: it
//! is sent on, or answered in the gate's own name.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simple_dns::{OPCODE, Packet, PacketFlag};
use stockade_fuzz::{dns, two_parts};
use stockade_wire::dns::{ExtendedError, Query, Rcode, formerr, is_truncated};

fuzz_target!(|input: &[u8]| {
    let (message, rest) = two_parts(input);
    complaint(message);
    let other = Packet::parse(message);
    if let Ok(other) = &other {
        rebuilt(other);
    }
    let Ok(query) = Query::parse(message) else {
        return;
    };
    if let Ok(other) = &other {
        dns::assert_same_question(&query, other);
        let payload = other.opt().map_or(0, |opt| opt.udp_packet_size);
        assert_eq!(query.udp_limit(), usize::from(payload).clamp(512, 65507));
    }
    assert_eq!(query.id().to_be_bytes(), message[..2]);
    let harmless = |c: char| c.is_ascii_alphanumeric() || ".-_*\\".contains(c);
    assert!(query.name().to_string().chars().all(harmless));
    assert!(Query::parse(&message[..message.len() - 1]).is_err());

    let sent = query.to_upstream(!query.id());
    assert_eq!(sent[..2], (!query.id()).to_be_bytes());
    let end = dns::question_end(&query);
    // In small letters, whatever the client's are.
    assert_eq!(sent[12..end - 4], message[12..end - 4].to_ascii_lowercase());
    assert_eq!(sent[end - 4..end], message[end - 4..end]);
    assert!(sent.len() == end || sent.len() == end + 11);
    assert_eq!(Query::parse(&sent).unwrap().key(), query.key());

    for rcode in [
        Rcode::NoError,
        Rcode::ServFail,
        Rcode::NxDomain,
        Rcode::Refused,
    ] {
        error(&query, rcode, rest);
    }
    fit(&query, rest);
});

/// To what is no query, there is a short answer or none.
fn complaint(message: &[u8]) {
    let Some(answer) = formerr(message) else {
        assert!(message.len() < 12 || message[2] & 0x80 != 0);
        return;
    };
    assert_eq!(answer.len(), 12);
    assert_eq!(answer[..2], message[..2]);
    assert!(formerr(&answer).is_none() && Query::parse(&answer).is_err());
}

/// A plain query that another implementation writes is one that we read.
fn rebuilt(other: &Packet<'_>) {
    let plain = other.opcode() == OPCODE::StandardQuery
        && !other.has_flags(PacketFlag::RESPONSE)
        && other.questions.len() == 1
        && other.answers.is_empty()
        && other.name_servers.is_empty()
        && other.additional_records.is_empty();
    if plain && let Ok(bytes) = other.build_bytes_vec() {
        dns::assert_same_question(&Query::parse(&bytes).unwrap(), other);
    }
}

fn error(query: &Query, rcode: Rcode, text: &[u8]) {
    let reason = ExtendedError {
        code: ExtendedError::PROHIBITED,
        text: String::from_utf8_lossy(text).into_owned(),
    };
    for reason in [None, Some(&reason)] {
        let answer = query.error(rcode, reason);
        assert!(answer.len() <= 512);
        assert!(!is_truncated(&answer));
        assert_eq!(query.accept(&answer, query.id()).unwrap(), answer);
        // It knows few classes and types, and nothing else can be wrong with it.
        if let Ok(other) = Packet::parse(&answer) {
            assert_eq!(other.rcode() as u16, rcode as u16);
            dns::assert_same_question(query, &other);
            assert_eq!(dns::decoded_counts(&other), dns::counts(&answer));
            let told = other.opt().map_or(0, |opt| opt.opt_codes.len());
            assert!(told <= usize::from(reason.is_some()));
        } else {
            let plain = [&[0; 4][..], &[0, 1, 0, 0, 0, 0, 0, 0], &answer[12..]].concat();
            assert!(Packet::parse(&plain[..dns::question_end(query)]).is_err());
        }
    }
}

/// Whatever has to fit does.
fn fit(query: &Query, response: &[u8]) {
    for limit in [0, 512, query.udp_limit()] {
        let fitted = query.fit(response.to_vec(), limit);
        assert!(fitted.len() <= limit.max(512));
        assert!(response.len() > limit.max(512) || fitted == response);
        if fitted != response {
            let end = dns::question_end(query);
            let asked = &query.to_upstream(0)[12..end];
            assert!(fitted[12..end].eq_ignore_ascii_case(asked));
        }
    }
}
