//! The first line of what a client sends, and the Host of a first request: as it is,
//! and as the rest of a request line.

#![no_main]

use httparse::{EMPTY_HEADER, Request, Status};
use libfuzzer_sys::fuzz_target;
use stockade_wire::http::{FirstLine, MAX_HEAD, Opened, Requests, Step, Unanswered, open};

fuzz_target!(|input: &[u8]| {
    for start in [&b""[..], b"\x01 HTTP", b"GET / HTTP/1.1\r\n"] {
        let sent = [start, input].concat();
        first_line(&sent);
        opened(&sent);
    }
    for start in [&b""[..], b"FOO x\r\n", b"a b\n\n", b"FOO x\r\nHost"] {
        behind(&[start, input].concat());
    }
});

/// A Host is found behind any line of two words, however it is cut.
fn behind(sent: &[u8]) {
    let is_refused = |size: usize| {
        let mut behind = Unanswered::default();
        let is_refused = sent.chunks(size).any(|piece| behind.pass(piece).is_err());
        assert!(is_refused || behind.kept() <= 4 * MAX_HEAD);
        is_refused
    };
    let whole = is_refused(sent.len().max(1));
    for size in [1, 4, 13] {
        assert_eq!(is_refused(size), whole);
    }
    let with_host = [b"a b\r\n", sent, b"\r\n\r\nc d\r\nhost:x"].concat();
    let mut behind = Unanswered::default();
    assert!(behind.pass(&with_host).is_err());
}

fn first_line(sent: &[u8]) {
    let end = sent.windows(2).position(|pair| pair == b"\r\n");
    let text = sent[..end.unwrap_or(sent.len())].to_ascii_uppercase();
    let expected = text
        .windows(6)
        .any(|place| place.ends_with(b"HTTP/") && !(0x21..0x7f).contains(&place[0]));
    for size in [1, 4, 13, sent.len().max(1)] {
        let mut first = FirstLine::default();
        for piece in sent.chunks(size) {
            let before = first.names_http();
            first.pass(piece);
            assert!(first.names_http() || !before);
        }
        assert_eq!(first.names_http(), expected);
    }
    // What is served as a request is never overlooked.
    if let Step::Head(_) = Requests::new().step(sent) {
        assert!(expected);
    }
}

fn opened(sent: &[u8]) {
    let whole = open(sent);
    for end in 0..sent.len() {
        let part = open(&sent[..end]);
        assert!(part == whole || matches!(part, Opened::Undecided { .. }));
    }
    let mut fields = [EMPTY_HEADER; 256];
    let mut request = Request::new(&mut fields);
    let starts_with_word = sent.first().is_some_and(u8::is_ascii_graphic);
    if starts_with_word && let Ok(Status::Complete(_)) = request.parse(sent) {
        let mut fields = request.headers.iter();
        let host = fields.find(|field| field.name.eq_ignore_ascii_case("host"));
        let expected = host.map_or(Opened::Other, |host| {
            Opened::Host(String::from_utf8_lossy(host.value).to_ascii_lowercase())
        });
        assert_eq!(whole, expected);
    }
}
