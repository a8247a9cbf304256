//! A hello in the middle of something else: the input as it is, and one part of it
//! before a hello with the other part as its extensions.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_fuzz::{tls, two_parts};
use stockade_wire::tls::{Broken, Inspection, Late, SPARE_WORK, Search, inspect};

fuzz_target!(|input: &[u8]| {
    check(input);
    let (before, extensions) = two_parts(input);
    let size = usize::from(input.first().copied().unwrap_or(200)) + 1;
    let hello = tls::records(&tls::hello(extensions), size);
    check(&[before, &hello, b"\x16\x03\x01\0\x01"].concat());
});

fn check(sent: &[u8]) {
    // Byte by byte where that is quick.
    let size = if sent.len() < 300 { 1 } else { 61 };
    let (whole, parts) = (found(sent, sent.len().max(1)), found(sent, size));
    let nested = Late::Broken(Broken::Nested);
    if whole.contains(&nested) || parts.contains(&nested) {
        let candidates = sent.iter().filter(|byte| **byte == 0x16).count();
        assert!(candidates > 32 || sent.len() > 1000);
        return;
    }
    // Those that lie inside others are found in another order.
    assert!(whole.iter().all(|late| parts.contains(late)));
    assert_eq!(whole.len(), parts.len());

    // Wherever a hello begins, it is found.
    let rests = (0..sent.len()).map(|at| &sent[at..]);
    for hello in rests.filter(|rest| matches!(rest, [0x16, 3, _, _, _, 1, ..])) {
        if let Inspection::Hello(expected) = inspect(hello) {
            assert!(whole.contains(&Late::Hello(expected)));
        } else if tls::accepted_name(hello).is_some() {
            assert!(whole.iter().any(|late| matches!(late, Late::Broken(_))));
        }
    }
}

fn found(sent: &[u8], size: usize) -> Vec<Late> {
    let mut search = Search::default();
    let mut spare = SPARE_WORK;
    let mut all = Vec::new();
    for piece in sent.chunks(size) {
        let passed = search.pass(piece, &mut spare, |late| {
            all.push(late);
            Ok::<_, ()>(())
        });
        assert_eq!(passed, Ok(()));
    }
    all
}
