//! The names in the requests of a plain HTTP connection, all of them (N9, N11).

use stockade_world::{Request, Site, Standard, World, test};

use super::probe::Place;
use super::say::{Heard, Saying, Speaker};
use crate::support::standard;

const NAME: &str = "www.example.com";
const OTHER: &str = "other.example.net";
const CLOSED: Place<'_> = Place::Closed(&[NAME]);

fn at_web(bytes: impl Into<Vec<u8>>) -> Saying {
    Saying::tcp(NAME, 80, bytes)
}

/// `?` stands for the allowed name, `!` for the other one, `|` for the end of a line.
fn written(text: &str) -> String {
    text.replace('?', NAME)
        .replace('!', OTHER)
        .replace('|', "\r\n")
}

fn statuses(place: Place<'_>, world: &World, sayings: &[Saying]) -> Vec<String> {
    let mut speaker = Speaker::start(place, world.laptop());
    let heard = speaker.say(sayings).iter().map(Heard::statuses).collect();
    speaker.end();
    heard
}

/// Whether a server could take it for the other site's, in whatever place the name stands.
fn is_for_other(request: &Request) -> bool {
    let fields = request.headers.iter().map(|(_, value)| value);
    fields
        .chain([&request.target])
        .any(|text| text.contains(OTHER))
}

/// Requests, and the codes that are heard inside.
const CASES: &[(&str, &str)] = &[
    // Another name.
    ("GET / HTTP/1.1|Host: !||", "403"),
    ("GET / HTTP/1.1|Host: !:80||", "403"),
    ("GET / HTTP/1.0|Host: !||", "403"),
    ("GET http://!/ HTTP/1.1|Host: !||", "403"),
    ("OPTIONS * HTTP/1.1|Host: !||", "403"),
    ("CONNECT !:443 HTTP/1.1|Host: !:443||", "403"),
    ("CONNECT ?:443 HTTP/1.1|Host: ?:443||", "403"),
    // A second request, straight behind the first: the refusal overtakes the answer.
    ("GET / HTTP/1.1|Host: ?||GET / HTTP/1.1|Host: !||", "403"),
    (
        "POST / HTTP/1.1|Host: ?|Content-Length: 5||helloGET / HTTP/1.1|Host: !||",
        "403",
    ),
    // Two opinions on the name.
    ("GET / HTTP/1.1|Host: ?|Host: !||", "400"),
    ("GET / HTTP/1.1|Host: !|Host: ?||", "400"),
    ("GET / HTTP/1.1|Host: ?|host: ?||", "400"),
    ("GET http://!/ HTTP/1.1|Host: ?||", "400"),
    ("GET http://?/ HTTP/1.1|Host: !||", "400"),
    ("GET http://?@!/ HTTP/1.1|Host: ?||", "400"),
    ("GET / HTTP/1.1|Host: ?, !||", "400"),
    ("GET / HTTP/1.1|Host: ? !||", "400"),
    ("GET / HTTP/1.1|Host : !|Host: ?||", "400"),
    ("GET / HTTP/1.1|X: y| Host: !|Host: ?||", "400"),
    ("GET / HTTP/1.1| Host: !|Host: ?||", "400"),
    ("GET / HTTP/1.1|\tHost: !|Host: ?||", "400"),
    ("GET / HTTP/1.1|X: y\nHost: !|Host: ?||", "400"),
    ("GET / HTTP/1.1|X: y\rHost: !|Host: ?||", "400"),
    ("GET / HTTP/1.1|X: \0|Host: ?||", "400"),
    ("GET / HTTP/1.1|Connection: host|Host: ?||", "400"),
    ("GET / HTTP/1.1||Host: !||", "400"),
    ("|GET / HTTP/1.1|Host: !||", "400"),
    (" GET / HTTP/1.1|Host: !||", "400"),
    ("GET / HTTP/1.1\nHost: !\n\n", "400"),
    ("GET / HTTP/9.9|Host: !||", "400"),
    ("get / http/1.1|Host: !||", "400"),
    ("GET /|Host: !||", "400"),
    ("GET\t/ HTTP/1.1|Host: !||", "400"),
    // Two opinions on where a body ends.
    (
        "POST / HTTP/1.1|Host: ?|Content-Length: 4|Transfer-Encoding: chunked||0||GET / HTTP/1.1|Host: !||",
        "400",
    ),
    (
        "POST / HTTP/1.1|Host: ?|Transfer-Encoding: chunked|Content-Length: 4||0||",
        "400",
    ),
    (
        "POST / HTTP/1.1|Host: ?|Content-Length: 1|Content-Length: 40||x",
        "400",
    ),
    ("POST / HTTP/1.1|Host: ?|Content-Length: 1, 40||x", "400"),
    ("POST / HTTP/1.1|Host: ?|Content-Length: +1||x", "400"),
    ("POST / HTTP/1.1|Host: ?|Content-Length: 0x1||x", "400"),
    (
        "POST / HTTP/1.1|Host: ?|Transfer-Encoding: xchunked||0||",
        "400",
    ),
    (
        "POST / HTTP/1.1|Host: ?|Transfer-Encoding: chunked, identity||0||",
        "400",
    ),
    (
        "POST / HTTP/1.0|Host: ?|Transfer-Encoding: chunked||0||",
        "400",
    ),
    ("POST / HTTP/1.1|Host: ?|Content_Length: 40||x", "400"),
    // A change of the protocol.
    ("PRI * HTTP/2.0||SM||", "400"),
    (
        "GET / HTTP/1.1|Host: ?|Connection: Upgrade, HTTP2-Settings|Upgrade: h2c|HTTP2-Settings: AAMAAABkAAQAAP__||",
        "400",
    ),
    (
        "GET / HTTP/1.1|Host: ?|Connection: Upgrade|Upgrade: TLS/1.0||",
        "400",
    ),
];

#[test]
fn n11_every_request_is_judged_by_its_name_and_none_has_two_meanings() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let sayings: Vec<_> = CASES
            .iter()
            .map(|(text, _)| at_web(written(text)))
            .collect();
        for sayings in [
            sayings.clone(),
            sayings.into_iter().map(|saying| saying.cut(1)).collect(),
        ] {
            let inside = statuses(CLOSED, world, &sayings);
            for ((text, expected), heard) in CASES.iter().zip(&inside) {
                assert_eq!(
                    heard.strip_prefix("200 ").unwrap_or(heard),
                    *expected,
                    "{text}"
                );
            }
        }
        let requests = net.web.requests().all();
        assert!(!requests.iter().any(is_for_other), "{requests:?}");
        // The server itself would have taken many of them.
        net.web.requests().clear();
        let sayings: Vec<_> = CASES
            .iter()
            .map(|(text, _)| at_web(written(text)))
            .collect();
        let outside = statuses(Place::Outside, world, &sayings);
        assert!(!outside.concat().contains("403"), "{outside:?}");
        assert!(
            net.web.requests().count_where(is_for_other) > 12,
            "{outside:?}"
        );
    });
}

#[test]
fn n11_a_later_request_for_another_name_ends_the_connection() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let [ours, others] =
            ["?", "!"].map(|host| written(&format!("GET / HTTP/1.1|Host: {host}||")));
        let posted = written("POST / HTTP/1.1|Host: ?|Content-Length: 3||abc");
        let saying = at_web(ours.clone()).then(posted).then(others).then(ours);
        assert_eq!(
            statuses(CLOSED, world, std::slice::from_ref(&saying)),
            ["200 200 403"]
        );
        let hosts = |request: &Request| request.header("host").unwrap_or_default().to_owned();
        let seen: Vec<_> = net.web.requests().all().iter().map(hosts).collect();
        assert_eq!(seen, [NAME, NAME]);
        assert_eq!(
            statuses(Place::Outside, world, &[saying]),
            ["200 200 200 200"]
        );
    });
}

#[test]
fn n11_a_request_that_comes_haltingly_is_judged_before_a_server_can_act_on_it() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let halting = |host: &str| -> Vec<Saying> {
            let whole = written(&format!("GET / HTTP/1.1|Accept: */*|Host: {host}|X: y||"));
            let positions = (0..whole.len()).step_by(3).chain([whole.len() - 1]);
            positions
                .map(|position| at_web(whole.clone()).halting_at(position))
                .collect()
        };
        let denied = statuses(CLOSED, world, &halting("!"));
        assert!(denied.iter().all(|heard| heard == "403"), "{denied:?}");
        assert_eq!(net.web.requests().count(), 0);
        let served = statuses(CLOSED, world, &halting("?"));
        assert!(served.iter().all(|heard| heard == "200"), "{served:?}");
        // Nor does it leave as something else: a line that ends, or begins, with a pause.
        let odd = [
            "GET / HTTP/1.1\nHost: !\n\n",
            "GET /\r",
            "GET / HTTP/1.1|Host: !|\n",
            "GET|/ HTTP/1.1|Host: !||",
        ];
        let sayings: Vec<_> = odd
            .iter()
            .flat_map(|text| {
                let whole = written(text);
                (0..whole.len()).map(move |position| at_web(whole.clone()).halting_at(position))
            })
            .collect();
        let before = net.web.requests().count();
        let heard = statuses(CLOSED, world, &sayings);
        assert!(
            !heard.iter().any(|heard| heard.contains("200")),
            "{heard:?}"
        );
        assert_eq!(net.web.requests().count(), before);
    });
}

#[test]
fn n11_a_long_transfer_does_not_tire_the_reader() {
    test(&standard(), |world| {
        let length = 12 << 20;
        let page = "x".repeat(length);
        let site = Site::text(&page);
        let server = world.host("web").http(8080, site).expect("listen");
        let post = format!("POST / HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 300000\r\n\r\n");
        let post = [post.as_bytes(), &[b'y'; 300_000]].concat();
        let other = written("GET / HTTP/1.1|Host: !||");
        let script = include_str!("transfer.py");
        let transfer = |place: Place<'_>| {
            let python = place.python(world.laptop(), script);
            let python = python.args([NAME, "8080", &length.to_string()]);
            let output = python
                .input([&post[..], b"NEXT", other.as_bytes()].concat())
                .run();
            output.expect("python").expect_success().stdout()
        };
        assert_eq!(transfer(CLOSED), format!("{length} 403\n"));
        assert_eq!(server.requests().count(), 1);
        assert_eq!(transfer(Place::Outside), format!("{length} 200\n"));
    });
}

#[test]
fn n11_an_upgrade_that_the_server_does_not_agree_to_hides_nothing() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let upgrade = written(
            "GET / HTTP/1.1|Host: ?|Connection: Upgrade|Upgrade: websocket|\
             Sec-WebSocket-Version: 13|Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==||",
        );
        let other = written("GET / HTTP/1.1|Host: !||");
        let sayings = [
            at_web(upgrade.clone()).then(other.clone()),
            at_web([upgrade.clone(), other.clone()].concat()),
            // Not the first request of its connection.
            at_web(written("GET / HTTP/1.1|Host: ?||")).then(upgrade.clone()),
        ];
        let heard = statuses(CLOSED, world, &sayings);
        assert_eq!(heard[0], "200 403");
        assert_eq!(heard[1].strip_prefix("200 ").unwrap_or(&heard[1]), "403");
        assert_eq!(heard[2], "200 400");
        assert_eq!(net.web.requests().count_where(is_for_other), 0);
    });
}

/// What clients send, and servers understand in one way.
const PLAIN: &[(&str, &str)] = &[
    ("GET / HTTP/1.1|Host: ?||", "200"),
    ("GET / HTTP/1.1|host:?||", "200"),
    ("GET / HTTP/1.1|HOST: WWW.EXAMPLE.COM||", "200"),
    ("GET / HTTP/1.1|Host: ?.||", "200"),
    ("GET / HTTP/1.1|Host: ?:80||", "200"),
    ("GET / HTTP/1.0||", "200"),
    ("GET http://?/ HTTP/1.1|Host: ?||", "200"),
    (
        "GET / HTTP/1.1|Host: ?||GET /2 HTTP/1.1|Host: ?||",
        "200 200",
    ),
    ("POST / HTTP/1.1|Host: ?|Content-Length: 5||hello", "200"),
    (
        "POST / HTTP/1.1|Host: ?|Content-Length: 5||GET /GET / HTTP/1.1|Host: ?||",
        "200 200",
    ),
    (
        "DELETE /it?why=! HTTP/1.1|Host: ?|Referer: http://!/||",
        "200",
    ),
];

#[test]
fn n11_plain_requests_for_an_allowed_name_work_as_outside() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let sayings: Vec<_> = PLAIN
            .iter()
            .map(|(text, _)| at_web(written(text)))
            .collect();
        for place in [Place::Outside, CLOSED] {
            let heard = statuses(place, world, &sayings);
            for ((text, expected), heard) in PLAIN.iter().zip(&heard) {
                assert_eq!(heard, expected, "{place:?} {text}");
            }
        }
    });
}

/// Each is taken for the allowed name by some reader, or for nothing by another.
const ODD: &[&[u8]] = &[
    b"www.example.com\0",
    b"www.example.com\0.other.example.net",
    b"www.example.com%00.other.example.net",
    b"www.example.com%2eother.example.net",
    b"www.example.com\r\nHost: other.example.net",
    b"www.example.com\nHost: other.example.net",
    b"www.example.com\tother.example.net",
    b"www.example.com:80:80",
    b"www.example.com:",
    b"www.example.com:0x50",
    b"www.example.com:99999",
    b"www.example.com/other.example.net",
    b"www.example.com#other.example.net",
    b"www.example.com@other.example.net",
    b"other.example.net@www.example.com",
    b"[www.example.com]",
    b"[2606:2800:220:1::34]",
    b"[::1]",
    b"[fe80::1%25eth0]",
    b"fe80::1%eth0",
    b"93.184.216.34",
    b"169.254.169.254",
    b"127.0.0.1",
    b"localhost",
    b"0x7f.1",
    b"0177.0.0.1",
    b"2130706433",
    b"*.example.com",
    b"*",
    b".",
    b".www.example.com",
    b"www..example.com",
    b"www.example.com..",
    b"_www.example.com",
    b"www.example\xe3\x80\x82com",
    b"\xef\xbd\x97ww.example.com",
    b"xn--ww-8ka.example.com",
    b"www.example.com\xff",
    b"",
];

#[test]
fn n09_an_odd_host_in_a_request_is_no_name() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let label = "x".repeat(64);
        let long = [&label[..63]; 4].join(".");
        let lengthy = [format!("{label}.example.com"), long[..254].to_owned()];
        let odd = ODD
            .iter()
            .copied()
            .chain(lengthy.iter().map(String::as_bytes));
        let odd: Vec<&[u8]> = odd.collect();
        let request =
            |host: &&[u8]| at_web([b"GET / HTTP/1.1\r\nHost: ", *host, b"\r\n\r\n"].concat());
        let sayings: Vec<_> = odd.iter().map(request).collect();
        let inside = statuses(CLOSED, world, &sayings);
        for (host, heard) in odd.iter().zip(&inside) {
            let refused = ["400", "403"].contains(&heard.as_str());
            assert!(refused, "\"{}\": {heard}", host.escape_ascii());
        }
        assert_eq!(net.web.tcp().received(), 0);
        statuses(Place::Outside, world, &sayings);
        assert!(net.web.requests().count() > 20);
    });
}

#[test]
fn n11_who_is_refused_is_told_why_and_what_would_help() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for address in world.host("web").addresses() {
            world.dns().record(OTHER, *address);
        }
        let rules = [NAME, "tcp://other.example.net:443"];
        let mut speaker = Speaker::start(Place::Closed(&rules), world.laptop());
        let told = |heard: &Heard| String::from_utf8_lossy(heard.bytes()).into_owned();
        // It knows this name for the address only once it was asked for.
        let _ = speaker.say_one(&Saying::tcp(OTHER, 443, "x\n"));
        let heard = told(&speaker.say_one(&at_web(written("GET / HTTP/1.1|Host: !||"))));
        assert!(heard.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{heard}");
        assert!(heard.contains("\r\n\r\nStockade: denied: "), "{heard}");
        assert!(
            heard.contains("to allow it: tcp://other.example.net:80"),
            "{heard}"
        );
        let heard = told(&speaker.say_one(&at_web("GET / HTTP/1.1\r\n\r\n")));
        assert!(heard.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{heard}");
        assert!(
            heard.contains("Stockade: denied: the request has no Host"),
            "{heard}"
        );
        let receipt = speaker.end();
        assert!(
            receipt.contains("denied other.example.net at tcp://"),
            "{receipt}"
        );
    });
}
