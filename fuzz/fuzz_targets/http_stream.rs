//! What a client sends on a connection: as it is, after a good request, and as the
//! rest of a head and a chunked body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_fuzz::http;
use stockade_wire::http::{Head, Kind, Requests, Step};

const STARTS: [&[u8]; 4] = [
    b"",
    b"GET / HTTP/1.1\r\nHost: a.example\r\n",
    b"PUT / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
];

fuzz_target!(|input: &[u8]| {
    for start in STARTS {
        check(&[start, input].concat());
    }
});

fn check(sent: &[u8]) {
    let whole = arrive(sent, sent.len().max(1));
    // Byte by byte where that is quick.
    let size = if sent.len() < 200 { 1 } else { 13 };
    assert_eq!(arrive(sent, size), whole);

    if whole.end == Step::NotHttp {
        assert!(whole.heads.is_empty() && whole.released == 0);
        // Not overlooked.
        assert!(!http::starts_a_request(sent));
    }
    let theirs = http::requests(sent);
    for (number, (at, head)) in whole.heads.iter().enumerate() {
        plain(&sent[*at..*at + head.length]);
        // The other reader finds the same requests at the same places.
        let (their_at, their_host) = &theirs[number];
        assert_eq!(at, their_at);
        let Some(host) = their_host else {
            continue;
        };
        let authority = head.authority.as_ref().unwrap();
        let ours = authority.to_string();
        let port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let bare = host
            .rsplit_once(':')
            .filter(|_| port && !host.ends_with(']'));
        assert_eq!(authority.host(), bare.map_or(&**host, |(host, _)| host));
        if head.kind != Kind::Connect && bare.is_none() && ours != *host {
            assert_eq!(authority.port(), Some(80), "of a URL");
        }
    }
    switch(&whole.heads);
}

/// That nothing in a head tells its end, or its Host, a second time.
fn plain(head: &[u8]) {
    assert!(head.ends_with(b"\r\n\r\n"));
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let count = |name: &str| text.matches(&format!("\n{name}:")).count();
    assert!(count("host") <= 1);
    assert!(count("content-length") + count("transfer-encoding") <= 1);
}

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    heads: Vec<(usize, Head)>,
    released: usize,
    end: Step,
}

fn arrive(sent: &[u8], size: usize) -> Seen {
    let mut requests = Requests::new();
    let mut heads = Vec::new();
    let (mut released, mut arrived) = (0, 0);
    loop {
        match requests.step(&sent[released..arrived]) {
            Step::NeedMore if arrived < sent.len() => arrived = sent.len().min(arrived + size),
            Step::Release(count) => {
                assert!(count > 0 && released + count <= arrived);
                released += count;
            }
            Step::Head(head) => {
                let length = head.length;
                heads.push((released, head));
                released += length;
                assert!(released <= arrived);
            }
            end => {
                return Seen {
                    heads,
                    released,
                    end,
                };
            }
        }
    }
}

/// Only the first request of a connection can ask for a switch.
fn switch(heads: &[(usize, Head)]) {
    let asked = heads
        .iter()
        .rposition(|(_, head)| head.kind == Kind::WebSocket);
    assert!(asked.is_none_or(|number| number == 0));
    let tunnel = heads
        .iter()
        .position(|(_, head)| head.kind == Kind::Connect);
    assert!(tunnel.is_none_or(|number| number + 1 == heads.len()));
}
