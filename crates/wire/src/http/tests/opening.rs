//! What is HTTP and what is not.

use super::*;

fn first(sent: &[u8]) -> Step {
    let seen = seen(sent);
    assert_eq!(seen.released, 0);
    seen.end
}

#[test]
fn other_protocols_are_known_for_what_they_are() {
    for other in [
        &b"\x16\x03\x01"[..],          // TLS
        b"\0\0\0\x08\x04\xd2\x16\x2f", // PostgreSQL
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
        b"SSH-2.0-libssh\n",
        b"*1\r\n$4\r\nPING\r\n", // Redis
        b"PING\r\n",
        b"get key\r\n", // memcached
        b"AMQP\0",
        b"CONNECT\naccept-version:1.2\n", // STOMP
        b"EHLO example.org\r\n",
        b"CAP LS 302\r\n", // IRC
        b"RFB 003.008\n",  // VNC
        b"<?xml",
        b"\x10\x0c\0\x04MQTT",
        b"0032git-upload-pack /project.git\0",
        b"0032git-upload-pack /http/project.git\0",
        b"NICK x\r\n",
        b"PASS a/1\r\n",
        b"get user/1\r\n",
        b"set k 0 0 5\r\n",
        b"GNUTELLA CONNECT/0.6\r\n",
        b"example.org\r\n",              // whois
        b"/path\r\n",                    // gopher
        b"8=FIX.4.4\x019=5\x0135=0\x01", // FIX
        b"\x13BitTorrent protocol",
    ] {
        assert_eq!(first(other), Step::NotHttp, "{other:?}");
    }
}

#[test]
fn most_bytes_decide_at_once() {
    for byte in 0..=u8::MAX {
        let step = Requests::new().step(&[byte]);
        let expected = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => Step::Broken(Broken::LeadingSpace),
            _ if lines::is_token(byte) => Step::NeedMore,
            _ => Step::NotHttp,
        };
        assert_eq!(step, expected, "{byte}");
    }
}

/// Each of these is served by some server.
#[test]
fn a_sloppy_request_is_refused_not_overlooked() {
    let rest = "\r\nHost: a.example\r\n\r\n";
    for line in [
        "\r\nGET / HTTP/1.1",
        " GET / HTTP/1.1",
        "GET  / HTTP/1.1",
        "GET\t/\tHTTP/1.1",
        "GET\x0b/\x0cHTTP/1.1",
        "GET\r/ HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / HTTP/1.1\n",
        "get / http/1.1",
        "GET / HTTP/1.10",
        "GET / HTTP/01.1",
        "GET / HTTP/2.0",
        "GET / HTTP/0.9",
        "GET / FOO/1.1",
        "GET / ",
        "GET /",
        "GET /a b HTTP/1.1",
        "GET /\x01 HTTP/1.1",
        "GET http://b.example/",
        "GET \\ HTTP/1.1",
        "GET a.example HTTP/1.1",
        "GET /\0 HTTP/1.1",
        "PRI * HTTP/2.0",
        "Get / HTTP/1.1\r\0",
    ] {
        let sent = format!("{line}{rest}");
        assert!(
            matches!(first(sent.as_bytes()), Step::Broken(_)),
            "{line:?}"
        );
    }
    assert_eq!(hosts(&format!("GET / HTTP/1.1{rest}")), ["a.example"]);
    assert_eq!(hosts(&format!("x-Y / HTTP/1.0{rest}")), ["a.example"]);
}

#[test]
fn versions_are_refused_by_the_first_line() {
    assert_eq!(first(b"GET /\r\n"), Step::Broken(Broken::Version));
    assert_eq!(first(b"PRI * HTTP/2.0\r\n"), Step::Broken(Broken::Http2));
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_eq!(first(preface), Step::Broken(Broken::Http2));
}

#[test]
fn a_first_line_without_end_is_given_up() {
    for start in [&b""[..], b"GET /"] {
        let endless = [start, &vec![b'a'; MAX_HEAD]].concat();
        assert_eq!(
            arrive(&endless, [usize::MAX]).end,
            Step::Broken(Broken::HeadTooLong)
        );
        assert_eq!(
            arrive(&endless[..MAX_HEAD - 1], [MAX_HEAD]).end,
            Step::NeedMore
        );
    }
}

#[test]
fn what_a_client_ends_with_is_passed_on_unless_it_is_part_of_a_request() {
    let may_end = |sent: &str| {
        let mut requests = Requests::new();
        assert_eq!(requests.step(sent.as_bytes()), Step::NeedMore);
        requests.may_end(sent.as_bytes())
    };
    for other in [
        "",
        "hello",
        "hello world",
        "JDWP-Handshake",
        "PING\r",
        "GET",
    ] {
        assert!(may_end(other), "{other:?}");
    }
    for part in [
        "GET /",
        "x / HTTP/1",
        "GET http:",
        "GET / HTTP/1.1\r\nHost: a.example\r\n",
    ] {
        assert!(!may_end(part), "{part:?}");
    }
    let mut requests = Requests::new();
    assert!(matches!(requests.step(with("").as_bytes()), Step::Head(_)));
    assert!(requests.may_end(b"") && !requests.may_end(b"hello"));
}

#[test]
fn the_answer_that_switches_is_known_by_its_first_bytes() {
    let switch = b"HTTP/1.1 101 Switching Protocols\r\n";
    for end in 0..=12 {
        assert_eq!(is_switch(&switch[..end]), None);
    }
    assert_eq!(is_switch(switch), Some(true));
    for other in [&b"HTTP/1.1 200 OK"[..], b"HTTP/1.0", b"HTTP/1.1 1011", b"x"] {
        assert_eq!(is_switch(other), Some(false));
    }
}

/// Some servers serve these in the form that HTTP/0.9 had, and choose the site by the URL or by
/// a Host behind them. A proxy's line before the first request is none of a client's.
#[test]
fn what_only_the_laxest_server_serves_is_not_let_through_unread() {
    for lax in [
        "GET ftp://other.example/x\r\n",
        "GET x://other.example/\r\n",
        "BREW ws://other.example/\r\n",
        "GET foo\r\nHost: other.example\r\n\r\n",
        "GET *\r\nHost: other.example\r\n\r\n",
        "GET ?a\r\n",
        "get http://other.example/\r\n",
        "Get /\r\nHost: other.example\r\n\r\n",
        "\x0bGET http://other.example/\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
        "OPTIONS rtsp://camera.example/1 RTSP/1.0\r\n",
        // Node serves the first three, the JDK's server the others.
        "GET_PARAMETER /x RTSP/1.1\r\n",
        "DESCRIBE * RTSP/1.1\r\n",
        "SOURCE * ICE/1.1\r\n",
        "G_ET /x FOO/1.1\r\n",
        "1 x FOO/1.1\r\n",
        "FOO ?x f.o-o/1\r\n",
        "x a b c y/2 \r\n",
        "M-X http://other.example/\r\n",
        "G!T http://other.example/\r\n",
        "G.T http://other.example/ x\r\n",
        "SSH-2.0-X http://other.example/\r\n",
        "INVITE sip:a@example.org SIP/2.0\r\n",
    ] {
        let step = first(lax.as_bytes());
        assert!(matches!(step, Step::Broken(_)), "{lax:?}: {step:?}");
    }
}

fn names_http(sent: &[u8], size: usize) -> bool {
    let mut line = FirstLine::default();
    for piece in sent.chunks(size) {
        line.pass(piece);
    }
    line.names_http()
}

/// Each has a byte that no method has, or begins with one that no line has.
#[test]
fn a_first_line_that_names_http_is_seen_whatever_it_begins_with() {
    let rest = " / HTTP/1.1\r\nHost: other.example\r\n\r\n";
    for start in [
        &b"G\"ET"[..],
        b"(GET)",
        b"GET@",
        b"\xef\xbb\xbfGET",
        b"\xffGET",
        b"\x01",
        b"\0GET",
        b"G\0T",
        b"GE\x7fT",
        b"[GET]",
        b"{",
    ] {
        let sent = [start, rest.as_bytes()].concat();
        let refused = match Requests::new().step(&sent) {
            Step::Broken(_) => true,
            Step::NotHttp => [1, 3, 7, 1000].iter().all(|size| names_http(&sent, *size)),
            _ => false,
        };
        assert!(refused, "{start:?}");
    }
    for (sent, expected) in [
        (&b"(x / http/1.1\n"[..], true),
        (b"(x /\x01HTTP/1.1\n", true),
        (b"(x /\xa0HTTP/1.1", true),
        (b"(x / HTTP", false),
        (b"(x /http/1.1\n", false),
        (b"\0\0\0\x08\r\nx / HTTP/1.1\n", false),
        // To the server of the JDK, this is one line.
        (b"X\nGET / HTTP/1.1\r\nHost: other.example\r\n\r\n", true),
    ] {
        assert_eq!(names_http(sent, 1), expected, "{sent:?}");
        assert_eq!(names_http(sent, 1000), expected, "{sent:?}");
    }
    let far = [&vec![0; MAX_HEAD][..], b" HTTP/1.1"].concat();
    assert!(!names_http(&far, 4096));
}

/// The first step of a client that speaks after its server, byte by byte.
fn greeted(sent: &[u8]) -> Step {
    let mut requests = Requests::new();
    requests.greeted();
    let mut steps = (1..=sent.len()).map(|end| requests.step(&sent[..end]));
    let decided = steps.find(|step| *step != Step::NeedMore);
    decided.unwrap_or(Step::NeedMore)
}

#[test]
fn a_request_after_a_greeting_is_one_and_other_protocols_are_none() {
    for (sent, why) in [
        (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], Broken::Http2),
        (b"\r\nGET / HTTP/1.1\r\n", Broken::LeadingSpace),
        (b" \n PRI * HTTP/2.0\r\n", Broken::LeadingSpace),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", Broken::RequestLine),
        (b"\r\n\r\n\0\r\nQUIT\n", Broken::LeadingSpace),
        (b"GET / HTTP/1.1\0", Broken::Nul),
        (b"GET_PARAMETER /x RTSP/1.1\r\n", Broken::Version),
        (b"DESCRIBE * RTSP/1.0\n", Broken::BareLf),
        (&[b' '; MAX_HEAD], Broken::HeadTooLong),
    ] {
        let step = greeted(sent);
        let is_refused = match why {
            Broken::RequestLine => matches!(step, Step::Broken(_)),
            why => step == Step::Broken(why),
        };
        assert!(
            is_refused,
            "{:?}: {step:?}",
            sent.escape_ascii().to_string()
        );
    }
    let request = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
    assert!(matches!(greeted(request), Step::Head(_)));
    for other in [
        &b"\x20\0\0\x01\x85\xa6"[..], // MySQL, of many lengths
        b"\x0a\x01\0\x01\x85\xa6",
        b"GE\0\x01",
        b"EHLO example.org\r\n",
        b"USER anonymous\r\n",
        b"a1 CAPABILITY\r\n",
        b"a1 SELECT Archive/2024.1\r\n",
        b"CWD /My Documents/2024\r\n",
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
        b"CONNECT {\"verbose\":false}\r\n", // NATS
        b"RFB 003.008\n",
        b"\r\nroot\r\n",
        b"( 2 ( edit-pipeline ) 20:svn://host.example/x 10:SVN/1.14.1",
    ] {
        assert_eq!(greeted(other), Step::NotHttp, "{other:?}");
    }
}

#[test]
fn a_first_line_after_a_greeting_ends_where_binary_protocols_may_end_it() {
    for (sent, expected) in [
        (&b"\xffGET / HTTP/1.1\r\n"[..], true),
        (b"\x4a\0\0\x01 select ' HTTP/1.1'", false),
        (b"(login)\nsay HTTP/1.1 HTTP/1.1\n", false),
    ] {
        for size in [1, 1000] {
            let mut line = FirstLine::default();
            line.greeted();
            sent.chunks(size).for_each(|piece| line.pass(piece));
            assert_eq!(line.names_http(), expected, "{sent:?}");
        }
    }
}

/// Whether a request is seen in what a client says, piece after piece, in one or more turns.
fn is_late(turns: &[&[u8]], size: usize) -> bool {
    let mut late = LateRequest::default();
    turns.iter().any(|turn| {
        late.turn();
        turn.chunks(size).any(|piece| late.pass(piece))
    })
}

#[test]
fn a_request_that_begins_a_turn_is_seen_and_one_in_a_text_is_not() {
    let cases: &[(&[&[u8]], bool)] = &[
        (&[b"x\r\n", b"GET / HTTP/1.1\r\n"], true),
        (&[b"\xff\0", b"PRI * HTTP/2.0\r\n"], true),
        (&[b"x\n", b"\r\n \tget /a b http/1.1\n"], true),
        (&[b"x\n", b"CONNECT a.example:443 HTTP/1.1\r\n"], true),
        // The server says something in the middle of it, or in the middle of the line before.
        (&[b"GET", b" / HTTP", b"/1.1\r\n"], true),
        (&[b"a b c", b"GET / HTTP/1.1\r\n"], true),
        // Some servers end a line at a carriage return.
        (&[b"x\n", b"GET / HTTP/1.1\rHost: a.example\r\r"], true),
        (&[b"x\n", b"GET\r/\rHTTP/1.1\r\n"], true),
        (&[b"x\n", b"\n\r\n\rGET / HTTP/1.1\r"], true),
        // Servers of HTTP serve those of other protocols, too.
        (&[b"x\n", b"GET_PARAMETER /x RTSP/1.1\r\n"], true),
        (&[b"x\n", b"DESCRIBE * RTSP/1.0\r\n"], true),
        (&[b"x\n", b"G_T http://a.example/b c FOO/1.1\r"], true),
        (&[b"x\n", b"CWD /My Documents/2024\r\n"], false),
        (&[b"x\n", b"a1 SELECT Archive/2024.1\r\n"], false),
        (&[b"a b c d HTTP/1.1\rGET / HTTP/1.1\r\n"], false),
        (&[b"PRIVMSG #x :we use HTTP/1.1\r\n"], false),
        (&[b"Subject: x\r\n\r\nGET / HTTP/1.1\r\n"], false),
        (&[b"a1 CREATE HTTP/notes\r\n"], false),
        (&[b"Q\0\0\0\x20insert 'GET / HTTP/1.1\n'"], false),
        (
            &[b"*3\r\n$3\r\nSET\r\n$1\r\na\r\nGET / HTTP/1.1\r\n"],
            false,
        ),
    ];
    for (turns, expected) in cases {
        for size in [1, 5, 1000] {
            assert_eq!(is_late(turns, size), *expected, "{turns:?}");
        }
    }
    // Before the server has spoken, nothing is kept, and after it not for long.
    let mut late = LateRequest::default();
    assert!(!late.pass(b"GET / HTTP/1.1\r\n"));
    for _ in 0..100 {
        late.turn();
        assert!(!late.pass(&[b'x'; 4096]));
    }
    assert!(late.kept() <= 2 * MAX_HEAD);
}

/// The same by reading each line again from wherever the client began in it.
#[derive(Default)]
struct SlowReading {
    line: Vec<u8>,
    starts: Vec<usize>,
}

impl SlowReading {
    fn pass(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            if self.starts.is_empty() {
                return false;
            }
            self.line.push(*byte);
            let mut from_starts = self.starts.iter().map(|start| &self.line[*start..]);
            if b"\r\n".contains(byte) && from_starts.clone().any(is_late_request) {
                return true;
            }
            let may_follow = from_starts.any(|line| line.iter().all(|byte| is_blank(*byte)));
            if b"\n\0".contains(byte) {
                self.line.clear();
                self.starts = Vec::from_iter((may_follow && *byte == b'\n').then_some(0));
            }
        }
        false
    }
}

fn is_blank(byte: u8) -> bool {
    b" \t\x0b\x0c\r\n".contains(&byte)
}

fn is_late_request(line: &[u8]) -> bool {
    let words = line.split(|byte| is_blank(*byte));
    let words = words.filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    let [method, target, .., last] = words.as_slice() else {
        return false;
    };
    let is_http = last
        .get(..5)
        .is_some_and(|it| it.eq_ignore_ascii_case("http/"))
        && last.as_bytes().get(5).is_some_and(u8::is_ascii_digit);
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let is_version = last.split_once('/').is_some_and(|(name, version)| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(lines::is_token)
            && version
                .split_once('.')
                .is_some_and(|(a, b)| is_number(a) && is_number(b))
    });
    let lower = target.to_ascii_lowercase();
    let is_path = ["/", "http:", "https:"]
        .iter()
        .any(|it| lower.starts_with(it))
        || target.contains("://");
    method.bytes().all(lines::is_token)
        && ((is_http && (words.len() == 3 || is_path))
            || (is_version && (is_path || target.starts_with('*'))))
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]

    #[test]
    fn a_request_is_seen_as_if_its_line_was_read_again_from_everywhere(
        turns in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(PARTS), 0..12),
            1..6,
        ),
        size in 1_usize..9,
    ) {
        let (mut late, mut slow) = (LateRequest::default(), SlowReading::default());
        for turn in turns {
            late.turn();
            slow.starts.push(slow.line.len());
            for piece in turn.concat().as_bytes().chunks(size) {
                let is_seen = late.pass(piece);
                proptest::prop_assert_eq!(is_seen, slow.pass(piece));
                if is_seen {
                    return Ok(());
                }
            }
        }
    }
}

const PARTS: &[&str] = &[
    "GET", "a", "{", " ", " ", "\t", "\r", "\r", "\n", "\r\n", "\0", "/", "*", "http:", "HTTPS:",
    "://", "HTTP/1.1", "http/", "x/1.0", "/1", ".1", "/", "1", "\x7f",
];

#[test]
fn however_often_a_client_begins_its_request_is_seen() {
    for before in [&b"\r"[..], b"a\r", b"a ", b"\r\n", b"/x\r"] {
        let mut late = LateRequest::default();
        for _ in 0..100 {
            late.turn();
            assert!(!late.pass(before));
        }
        late.turn();
        assert!(late.pass(b"GET / HTTP/1.1\r"), "{before:?}");
    }
}

/// Carriage returns between words that could be versions, the last of which look like others as they go by.
pub(super) fn words_without_end() -> Vec<u8> {
    let [few, many] = [26, 34].map(|count| vec![b'\r'; count]);
    let long = vec![b'a'; 15_000];
    let parts = [
        &b"x y\r\n"[..],
        &many,
        &long,
        b"a/1.0",
        &few,
        b"HTTP/1.0",
        &few,
    ];
    parts.concat()
}

/// What costs more than it should would take minutes here.
#[test]
fn lines_that_say_nothing_are_looked_at_once() {
    for line in [
        &b"\n"[..],
        b"\r",
        b"\r\n",
        b" \r",
        b"x HTTP/1\r",
        b"a b c HTTP/1\r",
        b" \n",
        &words_without_end(),
    ] {
        let sent = line.repeat((1 << 21) / line.len());
        let mut late = LateRequest::default();
        for piece in sent.chunks(16 * 1024) {
            late.turn();
            let _ = late.pass(piece);
        }
        assert!(late.kept() <= 2 * MAX_HEAD, "{}", late.kept());
        let mut requests = Requests::new();
        requests.greeted();
        let start = [b"x ", line].concat().repeat(MAX_HEAD / line.len());
        for end in (0..MAX_HEAD).step_by(1024) {
            let _ = requests.step(start.get(..end).unwrap_or(&start));
        }
    }
}

#[test]
fn a_request_line_that_ends_at_a_carriage_return_is_refused_before_its_host_is_there() {
    for line in [
        "GET / HTTP/1.1\rH",
        "GET / HTTP/1.1\r\r",
        "GET /\rx",
        "FOO /x\ry",
        "a b HTTP/1.1\ry",
    ] {
        assert_eq!(refusal(line.as_bytes()), Broken::BareCr, "{line:?}");
    }
    // A client that waits here for an answer may be of another protocol.
    for line in ["foo bar\rx", "GET / HTTP/1.1\r"] {
        assert_eq!(seen(line.as_bytes()).end, Step::NeedMore, "{line:?}");
    }
}

#[test]
fn a_hello_names_protocols_and_no_request() {
    let alpn = [
        &b"\x16\x03\x01\x02\x00\x01"[..],
        b"\x00\x10\x00\x0e\x00\x0c\x02h2\x08http/1.1\x0a\x0a\x00\x00",
    ]
    .concat();
    let line = b"\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03 / HTTP/1.1\r\n";
    for (sent, is_request) in [(&alpn[..], false), (line, true)] {
        for size in [1, 1000] {
            let mut first = FirstLine::default();
            sent.chunks(size).for_each(|piece| first.pass(piece));
            assert_eq!(first.names_http_in_hello(), is_request);
            assert!(first.names_http(), "positive control");
        }
    }
}
