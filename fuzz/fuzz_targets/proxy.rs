//! What a proxy answers, and what is said to it: requests that hold a name, a login and an address as
//! they are in the input.

#![no_main]

use httparse::{EMPTY_HEADER, Request, Status};
use libfuzzer_sys::fuzz_target;
use stockade_fuzz::two_parts;
use stockade_policy::{Hostname, ProxyAddress, ProxyLogin};
use stockade_wire::proxy::{
    Destination, LONGEST_HEAD, Refusal, connect, connected, socks_connected, socks_login,
    socks_request,
};

fuzz_target!(|input: &[u8]| {
    for start in [&b""[..], b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n"] {
        head(&[start, input].concat());
    }
    if let Some(start) = input.first_chunk() {
        socks(*start);
    }
    let (name, login) = two_parts(input);
    let login = std::str::from_utf8(login).ok();
    let login = login.and_then(|login| ProxyLogin::from_text(login).ok());
    if let Some(name) = Hostname::from_wire(name) {
        asked(name.as_str(), login.as_ref().map(ProxyLogin::reveal));
    }
    if let Ok(text) = std::str::from_utf8(input) {
        address(text);
    }
});

/// No part of a head is a tunnel before its empty line, and only a status of success is one.
fn head(sent: &[u8]) {
    for end in 0..=sent.len() {
        let part = &sent[..end];
        let says = connected(part);
        let is_whole = part.windows(2).any(|pair| pair == b"\n\n")
            || part.windows(3).any(|three| three == b"\n\r\n");
        match says {
            Ok(Some(())) => {
                assert!(is_whole && part.starts_with(b"HTTP/1."));
                assert_eq!(&part[8..10], b" 2");
            }
            Ok(None) => assert!(end < LONGEST_HEAD),
            Err(why) => {
                assert!(is_whole || matches!(why, Refusal::Malformed | Refusal::TooLong));
                let text = why.to_string();
                assert!(text.len() < 80 && text.chars().all(|c| !c.is_control()));
            }
        }
    }
}

fn socks(start: [u8; 5]) {
    if let Ok(rest) = socks_connected(start) {
        let address = match start[3] {
            1 => 4,
            3 => 1 + usize::from(start[4]),
            4 => 16,
            other => panic!("an address of kind {other}"),
        };
        assert_eq!((start[0], start[1]), (5, 0));
        assert_eq!(rest, address - 1 + 2);
    }
}

/// A request has the name and the login that it is made of, and nothing besides.
fn asked(name: &str, login: Option<(&str, &str)>) {
    let bytes = connect(Destination::Name(name), 443, login);
    let mut fields = [EMPTY_HEADER; 8];
    let mut request = Request::new(&mut fields);
    assert_eq!(request.parse(&bytes), Ok(Status::Complete(bytes.len())));
    let place = format!("{name}:443");
    assert_eq!(request.method, Some("CONNECT"));
    assert_eq!(request.path, Some(place.as_str()));
    let names: Vec<_> = request.headers.iter().map(|field| field.name).collect();
    let expected = ["Host", "Proxy-Authorization"];
    assert_eq!(names, expected[..1 + usize::from(login.is_some())]);
    assert_eq!(request.headers[0].value, place.as_bytes());
    if let Some((user, password)) = login {
        let value = request.headers[1].value.strip_prefix(b"Basic ");
        let decoded = from_base64(value.expect("a login"));
        assert_eq!(decoded, format!("{user}:{password}").into_bytes());
        let sent = socks_login((user, password)).expect("short enough");
        let (user_length, rest) = (usize::from(sent[1]), &sent[2..]);
        assert_eq!(&rest[..user_length], user.as_bytes());
        assert_eq!(usize::from(rest[user_length]), password.len());
        assert_eq!(&rest[user_length + 1..], password.as_bytes());
    }
    let sent = socks_request(Destination::Name(name), 443).expect("short enough");
    assert_eq!(sent[..4], [5, 1, 0, 3]);
    assert_eq!(usize::from(sent[4]), name.len());
    assert_eq!(sent[5..], [name.as_bytes(), &[1, 187]].concat());
}

fn from_base64(text: &[u8]) -> Vec<u8> {
    let mut bits: u32 = 0;
    let mut held = 0;
    let mut bytes = Vec::new();
    for digit in text {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => break,
            other => panic!("{other} in a login"),
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 255) as u8);
        }
    }
    assert_eq!(text.len() % 4, 0);
    bytes
}

/// What is shown of a proxy has no login, and means the same proxy.
fn address(text: &str) {
    if let Ok((address, _)) = ProxyAddress::parse(text) {
        let shown = address.to_string();
        assert!(!shown.contains('@'));
        assert_eq!(ProxyAddress::parse(&shown), Ok((address, None)));
    }
}
