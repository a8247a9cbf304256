//! A query, and what a hostile resolver answers to it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simple_dns::Packet;
use stockade_fuzz::{dns, two_parts};
use stockade_wire::dns::{Aging, Mismatch, Query, is_truncated};

fuzz_target!(|input: &[u8]| {
    let (asked, response) = two_parts(input);
    let Ok(query) = Query::parse(asked) else {
        return;
    };
    check(&query, asked, response);
    check(&query, asked, &dns::fitting(&query, asked, response));
});

fn check(query: &Query, asked: &[u8], response: &[u8]) {
    let Some(id) = response.first_chunk().copied().map(u16::from_be_bytes) else {
        return;
    };
    let Ok(answer) = query.accept(response, id) else {
        return;
    };
    assert_eq!(query.accept(response, !id), Err(Mismatch::Id));
    assert_eq!(answer[..2], query.id().to_be_bytes());
    assert_eq!(answer[2..4], response[2..4]);
    let end = dns::question_end(query);
    assert_eq!(answer[12..end], asked[12..end]);
    // What was accepted once is accepted unchanged.
    assert_eq!(query.accept(&answer, query.id()).as_ref(), Ok(&answer));

    if dns::counts(&answer) != dns::counts(response) || answer[end..] != response[end..] {
        // Cut somewhere: then all records are gone.
        assert!(is_truncated(&answer));
        assert_eq!((answer.len(), dns::counts(&answer)), (end, [0; 3]));
    }
    if !is_truncated(&answer) {
        assert!(query.accept(&response[..response.len() - 1], id).is_err());
    }
    if let Ok(other) = Packet::parse(&answer) {
        dns::assert_same_question(query, &other);
        assert_eq!(dns::decoded_counts(&other), dns::counts(&answer));
    }
    age(query, &answer);
    fit(query, &answer);
}

/// An answer that is kept stays an answer, of the same length, and never lives longer.
fn age(query: &Query, answer: &[u8]) {
    let Some(kept) = Aging::new(answer) else {
        return;
    };
    assert!(kept.lifetime() > 0);
    assert_eq!(kept.after(0), answer);
    for seconds in [1, kept.lifetime(), u32::MAX] {
        let older = kept.after(seconds);
        assert_eq!(older.len(), answer.len());
        assert_eq!(query.accept(&older, query.id()), Ok(older.clone()));
        let later = Aging::new(&older).map_or(0, |older| older.lifetime());
        assert!(later <= kept.lifetime());
    }
}

fn fit(query: &Query, answer: &[u8]) {
    for limit in [512, query.udp_limit()] {
        let fitted = query.fit(answer.to_vec(), limit);
        assert!(fitted.len() <= limit);
        assert_eq!(query.accept(&fitted, query.id()).as_ref(), Ok(&fitted));
        if answer.len() <= limit {
            assert_eq!(fitted, answer);
        } else {
            assert!(is_truncated(&fitted));
            let [answers, authorities, additionals] = dns::counts(&fitted);
            assert!(answers == 0 && authorities == 0 && additionals <= 1);
        }
    }
}
