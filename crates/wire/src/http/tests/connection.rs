//! Connections that are followed to their end.

use proptest::prelude::*;

use super::*;

#[test]
fn requests_of_real_clients_are_read() {
    let curl = "GET /x HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: curl/7.88.1\r\n\
        Accept: */*\r\n\r\n";
    assert_eq!(hosts(curl), ["127.0.0.1:8000"]);
    let wget = "GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: Wget/1.21.3\r\nAccept: */*\r\n\
        Accept-Encoding: identity\r\nConnection: Keep-Alive\r\n\r\n";
    assert_eq!(hosts(wget), ["example.org"]);
    let git = "POST /r.git/git-upload-pack HTTP/1.1\r\nHost: git.example\r\nContent-Type: x\r\n\
        Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n\
        4\r\nabcd\r\n0\r\n\r\n";
    assert_eq!(hosts(git), ["git.example"]);
}

#[test]
fn every_request_of_a_connection_is_seen() {
    let sent = "GET / HTTP/1.1\r\nHost: one.example\r\n\r\n\
        POST /b HTTP/1.1\r\nHost: Two.example:8080\r\nContent-Length: 38\r\n\r\n\
        GET / HTTP/1.1\r\nHost: body.example\r\n\r\n\
        PUT /c HTTP/1.1\r\nhost:[FD00::5]:81\r\ntransfer-encoding: Chunked\r\n\r\n\
        2E;name=\"value; x\"\r\nGET / HTTP/1.1\r\nHost: chunk.example\r\nA: bc\r\n\r\n\r\n\
        003\r\n\r\n0\r\n0\r\nExpires: x\r\nX-Y:\r\n\r\n\
        OPTIONS * HTTP/1.0\r\n\r\n\
        GET http://LAST.example HTTP/1.1\r\nHost: last.example:80\r\n\r\n";
    assert_eq!(
        hosts(sent),
        [
            "one.example",
            "two.example:8080",
            "[fd00::5]:81",
            "",
            "last.example"
        ]
    );
}

#[test]
fn a_body_is_released_as_it_comes_and_a_head_when_it_is_complete() {
    let head = with("Content-Length: 10\r\n");
    let mut requests = Requests::new();
    assert_eq!(requests.step(&head.as_bytes()[..20]), Step::NeedMore);
    let sent = format!("{head}abc");
    let Step::Head(seen) = requests.step(sent.as_bytes()) else {
        panic!("a head");
    };
    assert_eq!(seen.length, head.len());
    assert_eq!(requests.step(b"abc"), Step::Release(3));
    assert_eq!(requests.step(b""), Step::NeedMore);
    assert_eq!(requests.step(b"defghijGET"), Step::Release(7));
    assert_eq!(requests.step(b"GET"), Step::NeedMore);
}

#[test]
fn a_body_that_is_longer_than_memory_is_followed() {
    let mut requests = Requests::new();
    let head = with("Content-Length: 999999999999999999\r\n");
    assert!(matches!(requests.step(head.as_bytes()), Step::Head(_)));
    assert_eq!(requests.step(&[0; 100]), Step::Release(100));

    let mut requests = Requests::new();
    let head = with("Transfer-Encoding: chunked\r\n");
    assert!(matches!(requests.step(head.as_bytes()), Step::Head(_)));
    assert_eq!(requests.step(b"fffffffffffffff\r\n"), Step::Release(17));
    assert_eq!(requests.step(&[0; 100]), Step::Release(100));
}

const WEBSOCKET: &str = "GET /chat HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n\
    Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n";

#[test]
fn a_websocket_is_opaque_once_the_server_agreed() {
    let mut requests = Requests::new();
    let Step::Head(head) = requests.step(WEBSOCKET.as_bytes()) else {
        panic!("a head");
    };
    assert_eq!(head.kind, Kind::WebSocket);
    assert_eq!(requests.step(b""), Step::NeedMore);
    assert!(requests.switched());
    assert_eq!(requests.step(b"\x82\x01x"), Step::Opaque);
}

#[test]
fn a_client_that_does_not_wait_for_the_switch_is_read_strictly() {
    let next = "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n";
    let sent = format!("{WEBSOCKET}{next}");
    assert_eq!(hosts(&sent), ["a.example", "b.example"]);

    let mut requests = Requests::new();
    assert!(matches!(requests.step(WEBSOCKET.as_bytes()), Step::Head(_)));
    assert_eq!(requests.step(b"G"), Step::NeedMore);
    assert!(!requests.switched(), "the client has gone on");
    assert_eq!(requests.step(&next.as_bytes()[..9]), Step::NeedMore);

    assert!(!Requests::new().switched());
    let mut requests = Requests::new();
    assert!(matches!(requests.step(next.as_bytes()), Step::Head(_)));
    assert!(!requests.switched(), "nobody asked for it");
}

#[test]
fn a_tunnel_is_reported_with_its_authority_and_is_opaque() {
    let head = "CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n";
    let sent = format!("{head}\x16\x03\x01");
    let seen = seen(sent.as_bytes());
    assert_eq!(seen.heads, [(0, "b.example:443".into(), Kind::Connect)]);
    assert_eq!((seen.released, seen.end), (head.len(), Step::Opaque));
    let seen = super::seen(b"CONNECT [::1]:22 HTTP/1.0\r\n\r\n");
    assert_eq!(seen.hosts(), ["[::1]:22"]);
}

#[test]
fn a_host_may_be_an_address() {
    let address = |text: &str| Authority::parse(text).unwrap().address();
    assert_eq!(address("10.0.0.1:80"), Some("10.0.0.1".parse().unwrap()));
    assert_eq!(address("[FD00::1]"), Some("fd00::1".parse().unwrap()));
    assert_eq!(address("a.example"), None);
    assert_eq!(address("0x7f.1"), None);
}

prop_compose! {
    /// A request that is right, and whom it is for.
    fn any_request()(
        host in "[a-z0-9-]{1,10}(\\.[a-z]{1,5}){0,2}(:[1-9][0-9]{0,3})?",
        absolute in any::<bool>(),
        fields in prop::collection::vec("[A-Za-z-]{1,8}x: ?[ -~]{0,20}\r\n", 0..4),
        body in prop::collection::vec(any::<u8>(), 0..60),
        // Nothing, by length, or in chunks of some size.
        framing in 0_usize..12,
    ) -> (String, Vec<u8>) {
        let target = if absolute { format!("http://{host}/x") } else { "/x?y".into() };
        let head = format!("POST {target} HTTP/1.1\r\nHost: {host}\r\n{}", fields.concat());
        let mut sent = head.into_bytes();
        match framing {
            0 => sent.extend(b"\r\n"),
            1 => {
                sent.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                sent.extend(body);
            }
            size => {
                sent.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in body.chunks(size * 3) {
                    sent.extend(format!("{:x};e={size}\r\n", chunk.len()).bytes());
                    sent.extend(chunk);
                    sent.extend(b"\r\n");
                }
                sent.extend(b"00\r\nDigest: x\r\n\r\n");
            }
        }
        (host, sent)
    }
}

proptest! {
    #[test]
    fn requests_are_found_however_they_arrive(
        requests in prop::collection::vec(any_request(), 1..5),
        sizes in prop::collection::vec(1_usize..80, 0..40),
    ) {
        let (hosts, sent): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        let starts: Vec<usize> = sent
            .iter()
            .scan(0, |at, request| {
                *at += request.len();
                Some(*at - request.len())
            })
            .collect();
        let sent = sent.concat();
        let seen = arrive(&sent, sizes);
        prop_assert_eq!(seen.hosts(), hosts);
        prop_assert!(seen.heads.iter().map(|head| head.0).eq(starts));
        prop_assert_eq!((seen.released, seen.end), (sent.len(), Step::NeedMore));
    }

    #[test]
    fn what_is_damaged_is_seen_the_same_however_it_arrives(
        requests in prop::collection::vec(any_request(), 1..4),
        damage in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4),
        sizes in prop::collection::vec(1_usize..80, 0..40),
    ) {
        let mut sent: Vec<u8> = requests.into_iter().flat_map(|request| request.1).collect();
        for (at, value) in damage {
            let at = at.index(sent.len());
            sent[at] = value;
        }
        prop_assert_eq!(arrive(&sent, sizes), seen(&sent));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        seen(&bytes);
        seen(&[b"GET / HTTP/1.1\r\nHost: a\r\n", &bytes[..]].concat());
        seen(&[with("Transfer-Encoding: chunked\r\n").as_bytes(), &bytes].concat());
    }
}
