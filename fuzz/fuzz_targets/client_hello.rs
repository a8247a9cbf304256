//! What a client sends first: as it is, as the extensions of a hello, and as what
//! follows a hello.

#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use stockade_fuzz::tls;
use stockade_wire::tls::{Broken, Handshake, Hello, Inspection, Next, inspect};

fuzz_target!(|input: &[u8]| {
    check(input);
    let message = tls::hello(input);
    let size = usize::from(input.first().copied().unwrap_or(200)) + 16;
    check(&tls::records(&message, size));
    follow(input);
});

fn check(sent: &[u8]) {
    let whole = inspect(sent);
    for end in [1, 5, 9, sent.len() / 2, sent.len().saturating_sub(1)] {
        let part = inspect(&sent[..end.min(sent.len())]);
        assert!(part == Inspection::NeedMore || part == whole);
    }
    let more = inspect(&[sent, b"\x16\x03\x01\0\x01\x01"].concat());
    assert!(whole == Inspection::NeedMore || more == whole);

    let theirs = tls::accepted_name(sent);
    match &whole {
        Inspection::Hello(hello) => same_elsewhere(hello, sent, theirs),
        Inspection::Broken(_) => {}
        // Not overlooked.
        Inspection::NeedMore | Inspection::NotTls => assert!(theirs.is_none()),
    }
    if whole == Inspection::Broken(Broken::Ssl2) {
        assert!(sent[0] & 0x80 != 0 && sent[2] == 1);
    }
}

/// A server finds the same name, and so do we in other records.
fn same_elsewhere(hello: &Hello, sent: &[u8], theirs: Option<Option<String>>) {
    let name = &hello.server_name;
    if let Some(theirs) = theirs {
        let is_address = |name: &String| name.parse::<IpAddr>().is_ok();
        let ours = name.clone().filter(|name| !is_address(name));
        assert_eq!(ours, theirs);
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    assert!(
        name.as_ref()
            .is_none_or(|name| name.chars().all(plain) && !name.is_empty())
    );
    assert!(inspect(&sent[..hello.length - 1]) == Inspection::NeedMore);

    let message = tls::message(&sent[..hello.length]);
    assert_eq!(tls::count_names(&message), usize::from(name.is_some()));
    match inspect(&tls::records(&message, message.len() / 3 + 1)) {
        Inspection::Hello(again) => assert_eq!(again.server_name, *name),
        other => panic!("{other:?}"),
    }
}

/// What comes after the hello is judged the same however it arrives, and no second
/// hello gets through that asks for another name.
fn follow(input: &[u8]) {
    let first = tls::records(&tls::hello(b"\0\0\0\x09\0\x07\0\0\x04name"), 16_384);
    let Inspection::Hello(hello) = inspect(&first) else {
        panic!("a hello");
    };
    // Byte by byte where that is quick.
    let size = if input.len() < 128 { 1 } else { 61 };
    for early_data in [false, true] {
        let hello = Hello {
            early_data,
            ..hello.clone()
        };
        let at_once = arrive(&hello, input, input.len().max(1));
        assert_eq!(arrive(&hello, input, size), at_once);
    }
    if let Inspection::Hello(second) = inspect(input)
        && second.server_name != hello.server_name
    {
        let refused = (0, Next::Broken(Broken::OtherName));
        assert_eq!(arrive(&hello, input, input.len()), refused);
    }
}

fn arrive(hello: &Hello, sent: &[u8], size: usize) -> (usize, Next) {
    let mut handshake = Handshake::after(hello);
    let (mut released, mut arrived) = (0, 0);
    loop {
        match handshake.next(&sent[released..arrived]) {
            Next::NeedMore if arrived < sent.len() => arrived = sent.len().min(arrived + size),
            Next::Release(count) => {
                assert!(count > 0 && released + count <= arrived);
                released += count;
            }
            end => return (released, end),
        }
    }
}
