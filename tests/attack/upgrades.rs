//! Names in connections that begin as something else, with the internet closed (P10).

use std::fs;

use stockade_world::{Output, Standard, World, test};

use super::hello::{hello, message, padding, record, records, server_name};
use super::probe::Place;
use super::say::{Heard, Saying, Speaker};
use crate::feature::daemon::Daemon;
use crate::support::standard;

const NAME: &str = "www.example.com";
const OTHER: &str = "other.example.net";
const CLOSED: Place<'_> = Place::Closed(&[NAME]);

/// The servers of `upgrades.py`, on the host `web`.
struct Servers {
    _daemon: Daemon,
}

const PYTHON: &str = "/usr/bin/python3";
const LOG: &str = "/tmp/-usr-bin-python3.log";

impl Servers {
    fn start(world: &World) -> Self {
        let identity = world
            .authority()
            .identity(&[NAME, OTHER])
            .expect("a certificate");
        let [certificate, key] = ["/tmp/upgrades.crt", "/tmp/upgrades.key"];
        fs::write(certificate, identity.certificate).expect("write");
        fs::write(key, identity.key).expect("write");
        let script = include_str!("upgrades.py");
        let arguments = ["-I", "-c", script, certificate, key];
        let daemon = Daemon::start(world.host("web"), 9999, PYTHON, &arguments);
        Self { _daemon: daemon }
    }

    /// What has arrived since the last time.
    fn seen(&self) -> Vec<String> {
        let text = fs::read_to_string(LOG).expect("a log");
        // The server appends where it is.
        let seen = text.trim_start_matches('\0').lines().map(str::to_owned);
        let seen: Vec<_> = seen.collect();
        let skip = SEEN.replace(seen.len());
        seen.into_iter().skip(skip).collect()
    }
}

thread_local! {
    /// How many lines were looked at.
    static SEEN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Protocols that openssl's client knows, and where they are served.
const PROTOCOLS: [(&str, u16); 9] = [
    ("smtp", 25),
    ("imap", 143),
    ("pop3", 110),
    ("ftp", 21),
    ("nntp", 119),
    ("xmpp", 5222),
    ("postgres", 5432),
    ("mysql", 3306),
    ("ldap", 389),
];

fn openssl(place: Place<'_>, world: &World, protocol: &str, port: u16, name: &str) -> Output {
    let connect = format!("{NAME}:{port}");
    let client = place.command(world.laptop(), "openssl").args([
        "s_client",
        "-starttls",
        protocol,
        "-connect",
        &connect,
        "-servername",
        name,
    ]);
    client
        .args(["-quiet", "-ign_eof"])
        .run()
        .expect("openssl ends")
}

#[test]
fn p10_a_hello_after_starttls_is_judged_like_a_first_one() {
    test(&standard(), |world| {
        let servers = Servers::start(world);
        for (protocol, port) in PROTOCOLS {
            let denied = openssl(CLOSED, world, protocol, port, OTHER);
            assert!(
                !denied.stdout().contains("secret"),
                "{protocol}: {denied:?}"
            );
            assert!(
                denied.stderr().contains("alert access denied"),
                "{protocol}: {denied:?}"
            );
            let told = format!("denied {OTHER} at tcp://");
            assert!(denied.stderr().contains(&told), "{protocol}: {denied:?}");
            assert_eq!(servers.seen(), [] as [String; 0], "{protocol}");

            // With its own name it works as outside, and outside the other one does.
            for (place, name) in [(CLOSED, NAME), (Place::Outside, OTHER)] {
                let served = openssl(place, world, protocol, port, name);
                assert!(served.stdout().contains("secret"), "{protocol}: {served:?}");
                assert_eq!(servers.seen(), [format!("tls {port} {name}")]);
            }
        }
    });
}

/// Clients of real programs: what they do, with `NAME` for the name that they show.
const CLIENTS: [(&str, &str, u16); 3] = [
    (
        "psql",
        "psql -w 'host=SHOWN hostaddr=93.184.216.34 user=x dbname=x sslmode=require' -c 'select 1' 2>&1",
        5432,
    ),
    (
        "smtplib",
        "python3 -c \"
import smtplib
mail = smtplib.SMTP('www.example.com')
mail.ehlo()
mail._host = 'SHOWN'
mail.starttls()\" 2>&1",
        25,
    ),
    (
        "imaplib",
        "python3 -c \"
import imaplib
mail = imaplib.IMAP4('www.example.com')
mail.host = 'SHOWN'
mail.starttls()\" 2>&1",
        143,
    ),
];

#[test]
fn p10_clients_of_mail_and_databases_show_their_own_name_only() {
    test(&standard(), |world| {
        let servers = Servers::start(world);
        let look_up = format!("getent ahostsv4 {NAME} > /dev/null; ");
        for (client, line, port) in CLIENTS {
            let run = |place: Place<'_>, name: &str| {
                let line = look_up.clone() + &line.replace("SHOWN", name);
                let shell = place.command(world.laptop(), "sh");
                shell.args(["-c", &line]).run().expect("it ends")
            };
            let denied = run(CLOSED, OTHER);
            assert_eq!(servers.seen(), [] as [String; 0], "{client}: {denied:?}");
            assert!(denied.stderr().contains(OTHER), "{client}: {denied:?}");
            for (place, name) in [(CLOSED, NAME), (Place::Outside, OTHER)] {
                let served = run(place, name);
                let expected = [format!("tls {port} {name}")];
                assert_eq!(servers.seen(), expected, "{client}: {served:?}");
            }
        }
    });
}

/// The other name behind all that a server might take no notice of.
fn disguises(name: &str) -> Vec<(&'static str, Saying)> {
    let to = |bytes: Vec<u8>| Saying::tcp(NAME, 9000, bytes);
    let plain = hello(name.as_bytes());
    let with = |before: &[u8]| to([before, b"STARTTLS\n", &plain].concat());
    let asked = |before: &[u8]| to([before, b"STARTTLS\n"].concat()).then(plain.clone());
    let small = records(&message(&[server_name(&[name.as_bytes()])]), 3);
    let allowed = hello(NAME.as_bytes());
    let junk = [&allowed[..], b"\x17\x03\x03\0\x05hello\n"].concat();
    let wrapped = [b"\nSTARTTLS\n", &plain[..], &[0; 3000]].concat();
    let wrapping = record(&message(&[server_name(&[NAME.as_bytes()]), (21, wrapped)]));
    let unfinished = {
        let long = record(&message(&[server_name(&[NAME.as_bytes()]), padding(9000)]));
        [&long[..600], b"\n"].concat()
    };
    let post = format!("POST / HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 99999\r\n\r\n");
    let chunked =
        format!("POST / HTTP/1.1\r\nHost: {NAME}\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n");
    vec![
        ("asked", asked(b"HELLO x\n")),
        ("at once", with(b"HELLO x\n")),
        ("byte by byte", asked(b"x\n").cut(1)),
        (
            "in small records",
            to(b"STARTTLS\n".to_vec()).then(small).cut(2),
        ),
        ("after much", with(&b"NOOP and so on\n".repeat(20_000))),
        (
            "after much and a pause",
            asked(&b"NOOP and so on\n".repeat(20_000)),
        ),
        ("behind a hello", asked(&junk)),
        ("inside a hello", to(wrapping.clone())),
        ("inside a hello, byte by byte", to(wrapping).cut(1)),
        ("behind a hello that does not end", asked(&unfinished)),
        ("in a body", with(post.as_bytes())),
        ("in a chunk", with(chunked.as_bytes())),
        ("behind the greeting of ssh", asked(b"SSH-2.0-x\r\n")),
        ("behind the greeting of rsync", asked(b"@RSYNCD: 31.0\n")),
        ("behind bytes", with(b"x \x16\x03\x01\x16\x03\x16\n")),
    ]
}

#[test]
fn p10_a_hello_is_found_behind_anything_that_a_server_overlooks() {
    test(&standard(), |world| {
        let servers = Servers::start(world);
        let say = |place: Place<'_>, name: &str| -> (Vec<String>, String) {
            let (labels, sayings): (Vec<_>, Vec<_>) = disguises(name).into_iter().unzip();
            let mut speaker = Speaker::start(place, world.laptop());
            let heard = speaker.say(&sayings);
            speaker.end();
            let heard: Vec<_> = labels.iter().zip(heard).collect();
            (servers.seen(), format!("{heard:?}"))
        };
        let count = disguises(OTHER).len();
        let (seen, heard) = say(CLOSED, OTHER);
        assert_eq!(seen, [] as [String; 0], "{heard}");
        // With the allowed name they work, but for one: a first hello that does not end is
        // refused whatever follows. With the other name they work outside.
        let (seen, heard) = say(CLOSED, NAME);
        assert_eq!(seen, vec![format!("tls 9000 {NAME}"); count - 1], "{heard}");
        let (seen, heard) = say(Place::Outside, OTHER);
        assert_eq!(seen, vec![format!("tls 9000 {OTHER}"); count], "{heard}");
    });
}

/// A hello later in a connection, with these versions of its record and of itself.
fn of_version(name: &str, record: [u8; 2], own: [u8; 2]) -> Saying {
    let mut bytes = hello(name.as_bytes());
    bytes[1..3].copy_from_slice(&record);
    bytes[9..11].copy_from_slice(&own);
    Saying::tcp(NAME, 9002, b"STARTTLS\n".to_vec()).then(bytes)
}

#[test]
fn p10_a_hello_of_a_version_that_nobody_has_is_found() {
    const USUAL: [u8; 2] = [3, 3];
    const VERSIONS: [[u8; 2]; 4] = [[0x10, 0], [0x7f, 3], [0xff, 0xff], [0, 0]];
    test(&standard(), |world| {
        let servers = Servers::start(world);
        let odd = || {
            let of_record = VERSIONS.map(|version| of_version(OTHER, version, USUAL));
            let of_both = VERSIONS.map(|version| of_version(OTHER, version, version));
            [of_record, of_both].concat()
        };
        let say = |place: Place<'_>, sayings: &[Saying]| {
            let mut speaker = Speaker::start(place, world.laptop());
            let heard = speaker.say(sayings);
            speaker.end();
            (servers.seen(), format!("{heard:?}"))
        };
        let (seen, heard) = say(CLOSED, &odd());
        assert_eq!(seen, [] as [String; 0], "{heard}");
        let (seen, heard) = say(CLOSED, &[of_version(NAME, USUAL, USUAL)]);
        assert_eq!(seen, [format!("tls 9002 {NAME}")], "{heard}");
        let (seen, heard) = say(Place::Outside, &odd());
        assert_eq!(seen, vec![format!("tls 9002 {OTHER}"); 8], "{heard}");
    });
}

/// Sends so many random bytes, and tells whether the same come back.
const UPLOAD: &str = r#"
import os, socket, sys, threading
peer = socket.create_connection(("www.example.com", 7))
sent = b"\0" + os.urandom(int(sys.argv[1]))
def send():
    peer.sendall(sent)
    peer.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
got = b"".join(iter(lambda: peer.recv(1 << 20), b""))
print(got == sent)
"#;

#[test]
fn p10_random_bytes_pass_a_host_that_is_allowed_by_name() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let upload = CLOSED.python(world.laptop(), UPLOAD);
        let output = upload.arg("33554432").run().expect("it ends");
        assert_eq!(output.expect_success().stdout(), "True\n");
    });
}

/// Methods with bytes that none has, and other starts of a line.
const ODD: [&[u8]; 12] = [
    b"G\"ET / HTTP/1.1",
    b"(GET) / HTTP/1.1",
    b"GET@ / HTTP/1.1",
    b"\xef\xbb\xbfGET / HTTP/1.1",
    b"\xff / HTTP/1.1",
    b"\x01GET / HTTP/1.0",
    b"\0GET / HTTP/1.1",
    b"G\0T / HTTP/1.1",
    b"[GET] / http/1.1",
    b"{}\t/\tHTTP/1.1",
    b"\x0b\x0cGET / HTTP/1.1",
    b" \t GET / HTTP/1.1",
];

/// Node serves the first three, waitress those of two words, and the JDK's server those of three.
const TOLERATED: [&str; 13] = [
    "GET_PARAMETER /x RTSP/1.1",
    "DESCRIBE * RTSP/1.1",
    "SOURCE * ICE/1.1",
    "FOO x",
    "FOO_ /x",
    "M-X /x",
    "1 /x",
    "G_ET /x FOO/1.1",
    "FOO x FOO/1.1",
    "FOO ?x FOO/1.1",
    "1 /x y",
    "set k 0 0 5",
    "(x) /x",
];

/// A URL names the site by itself: to Python's server the first ones, to waitress the others.
const URLS: [&[u8]; 6] = [
    b"GET\xa0http://other.example.net/",
    b"\x85GET http://other.example.net/",
    b"GET\x1fhttp://other.example.net/",
    b"G{T http://other.example.net/",
    b"(G) http://other.example.net/ x",
    b"SSH-2.0-X http://other.example.net/",
];

/// Records and lines of others with URLs in them.
const HONEST: [&[u8]; 6] = [
    b"{\"url\": \"http://other.example.net/\"}",
    b"<34>1 http://other.example.net/ x",
    b"a,url=http://other.example.net/ x=1",
    b"NICK me http",
    b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3",
    b"\x13BitTorrent protocol http://other.example.net/",
];

#[test]
fn p10_a_first_line_with_a_url_is_refused_whatever_it_begins_with() {
    test(&standard(), |world| {
        let _echo = world.host("web").tcp_echo(7).expect("listen");
        let said = |line: &[u8]| Saying::tcp(NAME, 7, [line, b"\r\n"].concat());
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        for line in URLS {
            let heard = speaker.say_one(&said(line));
            assert_eq!(heard.statuses(), "400", "{heard:?}");
        }
        for line in HONEST {
            let heard = speaker.say_one(&said(line));
            assert!(heard.bytes().starts_with(line), "{heard:?}");
        }
        let receipt = speaker.end();
        assert!(
            receipt.contains("a URL follows the first word"),
            "{receipt}"
        );
    });
}

/// How another site can be asked for behind such a line, to a server that takes it for a request.
fn behind(line: &str) -> [Saying; 3] {
    let first = |fields: &str| Saying::tcp(NAME, 9008, format!("{line}\r\n{fields}\r\n"));
    let last = format!("Host: {OTHER}\r\nConnection: close\r\n");
    let second = format!("GET /second HTTP/1.1\r\n{last}\r\n");
    let pipelined = format!("{line}\r\nConnection: keep-alive\r\n\r\n{second}");
    [
        first(&last),
        Saying::tcp(NAME, 9008, pipelined),
        // After the answer.
        first("").then(second),
    ]
}

/// The start of a hello, up to its random number. Nothing of it leaves before the client waits.
const DISGUISED: &[u8] = b"\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03 / HTTP/1.1";

#[test]
fn p10_a_first_line_that_a_tolerant_server_serves_is_refused() {
    test(&standard(), |world| {
        let servers = Servers::start(world);
        for end in ["\r\n", "\n"] {
            let request = |line: &[u8]| {
                let rest = format!("{end}Host: {OTHER}{end}{end}");
                Saying::tcp(NAME, 9001, [line, rest.as_bytes()].concat())
            };
            let mut requests = ODD.map(request).to_vec();
            requests.push(request(DISGUISED).halting_at(DISGUISED.len() + 9));
            let mut speaker = Speaker::start(CLOSED, world.laptop());
            let in_pieces = requests.iter().take(ODD.len());
            let in_pieces = in_pieces.map(|request| request.clone().cut(1));
            for request in requests.iter().cloned().chain(in_pieces) {
                let heard = speaker.say_one(&request);
                assert_eq!(heard.statuses(), "400", "{request:?}");
            }
            assert_eq!(servers.seen(), [] as [String; 0]);
            let receipt = speaker.end();
            assert!(
                receipt.contains("names HTTP, but does not start like a request"),
                "{receipt}"
            );
            let mut outside = Speaker::start(Place::Outside, world.laptop());
            for request in &requests {
                assert_eq!(outside.say_one(request).statuses(), "200", "{request:?}");
            }
            outside.end();
            let all = vec![format!("http 9001 {OTHER}"); requests.len()];
            assert_eq!(servers.seen(), all);
        }
        for line in TOLERATED {
            let ways = behind(line);
            let mut speaker = Speaker::start(CLOSED, world.laptop());
            for way in &ways {
                for way in [way.clone(), way.clone().cut(1)] {
                    let statuses = speaker.say_one(&way).statuses();
                    assert!(statuses.ends_with("400"), "{way:?}: {statuses}");
                }
            }
            speaker.end();
            // Without a name, the server may be asked.
            let seen = servers.seen();
            assert!(seen.iter().all(|it| it == "http 9008 "), "{line}: {seen:?}");
            let mut outside = Speaker::start(Place::Outside, world.laptop());
            for way in &ways {
                let statuses = outside.say_one(way).statuses();
                assert!(statuses.ends_with("200"), "{way:?}: {statuses}");
            }
            outside.end();
            let seen = servers.seen();
            let others = seen.iter().filter(|it| it.ends_with(OTHER)).count();
            assert_eq!(others, ways.len(), "{line}: {seen:?}");
        }
        // A real client.
        let curl = |place: Place<'_>, method: &str, host: &str| {
            let host = format!("Host: {host}");
            let curl = place
                .command(world.laptop(), "curl")
                .args(["-sS", "--max-time", "5"]);
            let page = "http://www.example.com:9001/";
            curl.args(["-X", method, "-H", &host, page])
                .run()
                .expect("curl ends")
                .stdout()
        };
        assert!(curl(CLOSED, "G(E)T", OTHER).starts_with("Stockade: denied"));
        assert_eq!(curl(CLOSED, "GET", NAME), "hi\n");
        assert_eq!(curl(Place::Outside, "G(E)T", OTHER), "hi\n");
    });
}

#[test]
fn p10_a_request_whose_lines_end_at_a_carriage_return_is_refused() {
    test(&standard(), |world| {
        let servers = Servers::start(world);
        let requests = [
            format!("GET / HTTP/1.1\rHost: {OTHER}\r\r"),
            format!("GET / HTTP/1.1\r\nHost: {OTHER}\r\r"),
        ];
        let requests = requests.map(|request| Saying::tcp(NAME, 9007, request.as_bytes()));
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        for request in &requests {
            for request in [request.clone(), request.clone().cut(1)] {
                let heard = speaker.say_one(&request);
                assert_eq!(heard.statuses(), "400", "{request:?}");
            }
        }
        assert_eq!(servers.seen(), [] as [String; 0]);
        let receipt = speaker.end();
        let why = "a carriage return stands inside a line";
        assert!(receipt.contains(why), "{receipt}");
        let mut outside = Speaker::start(Place::Outside, world.laptop());
        for request in &requests {
            assert_eq!(outside.say_one(request).statuses(), "200", "{request:?}");
        }
        outside.end();
        assert_eq!(
            servers.seen(),
            [(); 2].map(|()| format!("http 9007 {OTHER}"))
        );
    });
}

/// What a client of HTTP/2 without TLS says for this name.
fn http2(name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("short");
    let fields = [&[0x82, 0x86, 0x84, 1, length][..], name.as_bytes()].concat();
    let headers = [0, 0, length + 5, 1, 5, 0, 0, 0, 1];
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    [&preface[..], &settings, &headers, &fields].concat()
}

#[test]
fn n11_http2_without_tls_is_refused_also_where_the_server_speaks_first() {
    test(&standard(), |world| {
        let servers = Servers::start(world);
        let ways = |name: &str| {
            let whole = http2(name);
            let to = |port, bytes: &[u8]| Saying::tcp(NAME, port, bytes);
            vec![
                // After the greeting, and perhaps before it.
                to(9003, b"").then(whole.clone()),
                to(9003, b"").then(whole.clone()).cut(1),
                to(9003, &whole),
                to(9003, &whole).halting_at(3),
                // It comes in the middle of the preface.
                to(9004, &whole[..1]).then(&whole[1..]),
                to(9004, &whole[..9]).then(&whole[9..]),
                to(9004, &whole[..15]).then(&whole[15..]),
            ]
        };
        let say = |place: Place<'_>, name: &str| {
            let mut speaker = Speaker::start(place, world.laptop());
            let heard = speaker.say(&ways(name));
            (heard, speaker.end())
        };
        for name in [OTHER, NAME] {
            let (heard, receipt) = say(CLOSED, name);
            assert_eq!(servers.seen(), [] as [String; 0], "{heard:?}");
            assert!(heard.iter().all(|it| it.statuses() == "400"), "{heard:?}");
            let why = "HTTP/2 without TLS is not followed";
            assert!(receipt.contains(why), "{receipt}");
        }
        let (heard, _) = say(Place::Outside, OTHER);
        let mut seen = servers.seen();
        seen.sort_unstable();
        let [fast, slow] = [9003, 9004].map(|port| format!("h2 {port} {OTHER}"));
        assert_eq!(seen, [vec![fast; 4], vec![slow; 3]].concat(), "{heard:?}");
    });
}

#[test]
fn n11_a_request_after_the_servers_first_words_is_judged_like_a_first_one() {
    test(&standard(), |world| {
        let servers = Servers::start(world);
        let get =
            |start: &str, host: &str| format!("{start}GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let greeted = |bytes: String| Saying::tcp(NAME, 9005, b"").then(bytes);
        let later = |bytes: String| Saying::tcp(NAME, 9006, b"NOOP 1\r\n").then(bytes);
        let odd = |bytes: String| Saying::tcp(NAME, 9006, b"\xff\x01\r\n").then(bytes);
        let ways = |host: &str| {
            let plain = get("", host);
            vec![
                greeted(plain.clone()),
                greeted(plain.clone()).cut(1),
                greeted(get("\x01", host)),
                later(plain.clone()),
                later(plain.clone()).cut(1),
                odd(plain),
            ]
        };
        let say = |place: Place<'_>, sayings: &[Saying]| {
            let mut speaker = Speaker::start(place, world.laptop());
            let heard = speaker.say(sayings);
            speaker.end();
            let mut seen = servers.seen();
            seen.sort_unstable();
            (heard, seen)
        };
        let (heard, seen) = say(CLOSED, &ways(OTHER));
        assert_eq!(seen, [] as [String; 0], "{heard:?}");
        let codes: Vec<_> = heard.iter().map(Heard::statuses).collect();
        assert_eq!(codes, ["403", "403", "400", "400", "400", "400"]);
        // A first request for the allowed name is served.
        let (heard, seen) = say(
            CLOSED,
            &[greeted(get("", NAME)), greeted(get("", NAME)).cut(1)],
        );
        assert_eq!(seen, vec![format!("http 9005 {NAME}"); 2], "{heard:?}");
        let (heard, seen) = say(Place::Outside, &ways(OTHER));
        let [first, second] = [9005, 9006].map(|port| format!("http {port} {OTHER}"));
        assert_eq!(
            seen,
            [vec![first; 3], vec![second; 3]].concat(),
            "{heard:?}"
        );
    });
}
