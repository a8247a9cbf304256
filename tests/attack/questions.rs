//! What is asked upstream with the internet closed (N9, N12).

use stockade_world::{Standard, World, test};

use super::ask::{A, AAAA, HTTPS, Reply, SERVER, by_tcp, by_udp, query, query_of, wire};
use super::probe::{Place, Watch};
use super::say::{Heard, Speaker};
use crate::support::standard;

const NAME: &str = "www.example.com";
const CLOSED: Place<'_> = Place::Closed(&[NAME, "*.pages.example.com"]);

/// Near to what is allowed, or far from it.
const NOT_ALLOWED: [&str; 9] = [
    "other.example.net",
    "example.com",
    "pages.example.com",
    "wwww.example.com",
    "w.www.example.com",
    "www.example.com.evil.example",
    "www-example.com",
    "x.pages.example.com.evil.example",
    "com",
];
/// A, NS, CNAME, NULL, PTR, MX, TXT, AAAA, SRV, HTTPS, ANY.
const KINDS: [u16; 11] = [A, 2, 5, 10, 12, 15, 16, AAAA, 33, HTTPS, 255];
const SERVERS: [&str; 6] = [
    SERVER,
    "8.8.8.8",
    "151.101.1.69",
    "10.20.0.5",
    "2001:4860:4860::8888",
    "fd00:20::5",
];

/// Whoever could get a question.
fn watch(world: &World) -> Watch {
    Watch::on(&["dns", "mirror", "intranet"].map(|name| world.host(name)))
}

#[test]
fn n12_a_name_that_is_not_allowed_sends_nothing_upstream() {
    test(&standard(), |world| {
        for host in ["mirror", "intranet"] {
            world.host(host).dns(53).expect("listen");
        }
        let watch = watch(world);
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        let every_kind = KINDS.map(|kind| query(NOT_ALLOWED[0], kind));
        let every_name = NOT_ALLOWED.map(|name| query(name, A));
        let reverse = [query("5.0.20.10.in-addr.arpa", 12)];
        let queries = [&every_kind[..], &every_name, &reverse].concat();
        let mut sayings: Vec<_> = queries.iter().map(|query| by_udp(SERVER, query)).collect();
        sayings.extend(queries.iter().map(|query| by_tcp(SERVER, query)));
        for server in SERVERS {
            sayings.push(by_udp(server, &queries[0]));
            sayings.push(by_tcp(server, &queries[0]));
        }
        for heard in speaker.say(&sayings) {
            let reply = Reply::read(&heard);
            assert!(reply.is_denial(), "{reply:?}");
        }
        watch.expect_nothing();
        assert_eq!(world.dns().queries().count(), 0);

        // An allowed name is asked for, whatever the kind; by the host's resolver alone.
        let allowed: Vec<_> = KINDS
            .map(|kind| by_udp(SERVERS[3], &query(NAME, kind)))
            .into();
        for heard in speaker.say(&allowed) {
            assert!(!Reply::read(&heard).is_denial(), "{heard:?}");
        }
        assert_eq!(world.dns().queries_for(NAME), KINDS.len());
        let web = world.host("web").v4();
        assert_eq!(speaker.look_up("a.b.pages.example.com", A).addresses, [web]);
        let receipt = speaker.end();
        assert!(
            receipt.contains("denied the name other.example.net"),
            "{receipt}"
        );
    });
}

/// Questions that are well formed, for names that no rule can mean.
const ODD: &[&[&[u8]]] = &[
    &[b"www.example.com"],
    &[b"www.example", b"com"],
    &[b"www", b"example.com"],
    &[b"x.pages", b"example", b"com"],
    &[b"www", b"example", b"com\0"],
    &[b"www\0", b"example", b"com"],
    &[b"www.example.com\0", b"evil", b"example"],
    &[b"www%00", b"example", b"com"],
    &[b"www", b"example", b"com%00", b"evil", b"example"],
    &[b"www\r\n", b"example", b"com"],
    &[b"www\nx", b"pages", b"example", b"com"],
    &[b"a b", b"pages", b"example", b"com"],
    &[b"\x07", b"pages", b"example", b"com"],
    &[b"m\xc3\xbcnchen", b"pages", b"example", b"com"],
    &[b"\xef\xbd\x97ww", b"example", b"com"],
    &[b"www\xe3\x80\x82example", b"com"],
    &[b"[www", b"example", b"com]"],
    &[b"*", b"pages", b"example", b"com"],
    &[b"-", b"pages", b"example", b"com"],
    &[b"a,b", b"pages", b"example", b"com"],
    &[b"0x7f", b"1"],
    &[b"127", b"0", b"0", b"1"],
    &[b"0177", b"0", b"0", b"1"],
    &[b"2130706433"],
    &[b"[::1]"],
    &[b"fe80::1%eth0"],
    &[],
];

#[test]
fn n09_an_odd_name_in_a_question_sends_nothing_upstream() {
    test(&standard(), |world| {
        let watch = watch(world);
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        let queries: Vec<_> = ODD
            .iter()
            .map(|labels| query_of(&wire(labels), A))
            .collect();
        let mut sayings: Vec<_> = queries.iter().map(|query| by_udp(SERVER, query)).collect();
        sayings.extend(queries.iter().map(|query| by_tcp(SERVER, query)));
        for (heard, labels) in speaker.say(&sayings).iter().zip(ODD.iter().chain(ODD)) {
            let reply = Reply::read(heard);
            assert!(reply.is_denial(), "{labels:?}: {reply:?}");
        }
        watch.expect_nothing();
        speaker.end();
    });
}

#[test]
fn n09_a_malformed_question_sends_nothing_upstream() {
    test(&standard(), |world| {
        let watch = watch(world);
        let long = [&[b'x'; 63][..]; 4];
        let longest_and_more = wire(&long);
        let label_of_64 = [&[64][..], &[b'x'; 64], b"\x05pages\x07example\x03com\x00"].concat();
        let two_questions = {
            let mut bytes = query(NAME, A);
            bytes[5] = 2;
            let second = [
                &wire(&[b"other", b"example", b"net"])[..],
                b"\x00\x01\x00\x01",
            ]
            .concat();
            let end = bytes.len() - 11;
            bytes.splice(end..end, second);
            bytes
        };
        let malformed = [
            query_of(&longest_and_more, A),
            query_of(&label_of_64, A),
            query_of(b"\xc0\x0c", A),
            query_of(b"\x03www\xc0\x0c", A),
            query_of(b"\x03www\x07example\x03com", A),
            query(NAME, A)[..20].to_vec(),
            two_questions,
        ];
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        let sayings: Vec<_> = malformed
            .iter()
            .map(|query| by_udp(SERVER, query))
            .collect();
        for heard in speaker.say(&sayings) {
            let reply = Reply::read(&heard);
            assert!(reply.addresses.is_empty(), "{reply:?}");
        }
        watch.expect_nothing();
        // The longest name that there can be is asked for, below the wildcard, whole.
        let label = "y".repeat(63);
        let longest = format!(
            "{label}.{label}.{label}.{}.pages.example.com",
            "y".repeat(43)
        );
        assert_eq!(longest.len(), 253);
        assert!(!speaker.look_up(&longest, A).is_denial());
        assert_eq!(world.dns().queries_for(&longest), 1);
        speaker.end();
    });
}

#[test]
fn n09_harmless_spellings_in_a_question_work_as_outside() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let spellings = [
            "WWW.EXAMPLE.COM",
            "www.example.com.",
            "_x-1.Pages.example.com",
            "xn--mnchen-3ya.pages.example.com",
        ];
        let targets = spellings.map(|name| format!("tcp://{name}:80"));
        for place in [Place::Outside, CLOSED] {
            place.probe(world.laptop(), &targets).expect_answers();
        }
        assert_eq!(net.web.tcp().connections().count(), 2 * spellings.len());
    });
}

#[test]
fn n12_a_denied_name_comes_with_its_reason() {
    test(&standard(), |world| {
        let dig = |name: &str| {
            let dig = CLOSED.command(world.laptop(), "dig");
            dig.args([name]).run().expect("dig").expect_success()
        };
        let output = dig("other.example.net");
        let note = "Stockade: no rule allows other.example.net; to allow: \"other.example.net\"";
        assert!(output.stdout().contains(note), "{output:?}");
        assert!(output.stdout().contains("EDE: 17 (Filtered)"), "{output:?}");
        let fix = "stockade:   to allow it: --allow other.example.net\n";
        assert!(output.stderr().contains(fix), "{output:?}");
        assert!(!dig(NAME).stdout().contains("EDE"));
    });
}

#[test]
fn n12_a_question_carries_nothing_out_but_itself() {
    test(&standard(), |world| {
        let mut laden = query(NAME, A);
        // An option of our own, and another record.
        let end = laden.len();
        laden[end - 1] = 10;
        laden.extend(b"\xfd\xe9\x00\x06secret");
        laden[11] = 2;
        laden.extend(b"\x06secret\x00\x00\x10\x00\x01\x00\x00\x00\x00\x00\x07\x06secret");
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        let heard = speaker.say_one(&by_udp(SERVER, &laden));
        assert_eq!(Reply::read(&heard).addresses, [world.host("web").v4()]);
        let behind = [query(NAME, A), b"secret".to_vec()].concat();
        let heard = speaker.say_one(&by_udp(SERVER, &behind));
        assert_eq!(Reply::read(&heard).addresses, [] as [std::net::IpAddr; 0]);
        speaker.end();
        let holds = |query: &stockade_world::Query| {
            query.message.windows(6).any(|bytes| bytes == b"secret")
        };
        assert_eq!(world.dns().queries_for(NAME), 1);
        assert_eq!(world.dns().queries().count_where(holds), 0);
        // The resolver would have got it.
        let mut speaker = Speaker::start(Place::Outside, world.laptop());
        let _ = speaker.say_one(&by_udp("8.8.8.8", &laden));
        assert_eq!(world.dns().queries().count_where(holds), 1);
    });
}

#[test]
fn n12_the_letters_of_a_name_say_nothing_by_their_size() {
    const SAYING: &str = "aTtAcK.pages.example.com";
    test(&standard(), |world| {
        let says = |query: &stockade_world::Query| {
            query.message.windows(6).any(|bytes| bytes == b"aTtAcK")
        };
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        let heard = speaker.say_one(&by_udp(SERVER, &query(SAYING, A)));
        assert_eq!(Reply::read(&heard).addresses, [world.host("web").v4()]);
        // The client has its own letters back.
        assert!(heard.bytes().windows(6).any(|bytes| bytes == b"aTtAcK"));
        speaker.end();
        assert_eq!(world.dns().queries_for("attack.pages.example.com"), 1);
        assert_eq!(world.dns().queries().count_where(says), 0);
        let mut speaker = Speaker::start(Place::Outside, world.laptop());
        let _ = speaker.say_one(&by_udp("8.8.8.8", &query(SAYING, A)));
        assert_eq!(world.dns().queries().count_where(says), 1);
    });
}

/// A first packet of QUIC, of the shortest length that servers take.
fn initial(first: u8, version: u32) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    packet.extend([8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    packet.resize(1200, 0x5a);
    packet
}

#[test]
fn p10_quic_is_refused_at_every_port_of_a_host_admitted_by_name() {
    const PORT: u16 = 8443;
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let server = world.host("web").udp_echo(PORT).expect("listen");
        // Versions 1 and 2, a draft, one to ask for others, one that nobody knows; with the bit
        // that is always set, and without it.
        let packets = [
            initial(0xc3, 1),
            initial(0xd3, 0x6b33_43cf),
            initial(0xc3, 0xff00_001d),
            initial(0xc3, 0x1a2a_3a4a),
            initial(0xc3, 0x1234_5678),
            initial(0x83, 1),
            initial(0x93, 0x6b33_43cf),
        ];
        let addresses = ["93.184.216.34", "2606:2800:220:1::34"];
        let say = |packet: &Vec<u8>| {
            addresses.map(|address| super::say::Saying::udp(address, PORT, packet.clone()))
        };
        let sayings: Vec<_> = packets.iter().flat_map(say).collect();
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        for kind in [A, AAAA] {
            assert!(!speaker.look_up(NAME, kind).addresses.is_empty());
        }
        for heard in speaker.say(&sayings) {
            assert!(heard.is_denial(), "{heard:?}");
        }
        assert_eq!(server.datagrams().count(), 0);
        let receipt = speaker.end();
        let reason = "hides whether it is for www.example.com";
        assert!(receipt.contains(reason), "{receipt}");

        // Nor behind something else: the flow stands, and what is no QUIC passes.
        const BEHIND: &str = r#"
import socket, sys
socket.getaddrinfo("www.example.com", 80, socket.AF_INET)
flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flow.settimeout(5)
flow.connect(("93.184.216.34", 8443))
def ask(datagram):
    try:
        flow.send(datagram)
        return flow.recv(2048) == datagram
    except OSError as error:
        return error.strerror
quic = bytes.fromhex(sys.argv[1])
print([ask(datagram) for datagram in (b"x", quic, b"y", b"\xe3" + bytes(47), quic)])
"#;
        let hex: String = packets[0]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let told = |place: Place<'_>| {
            let python = place.python(world.laptop(), BEHIND).arg(&hex);
            python.run().expect("it ends").expect_success().stdout()
        };
        let denied = "'No route to host'";
        assert_eq!(
            told(CLOSED),
            format!("[True, {denied}, True, True, {denied}]\n")
        );
        assert_eq!(server.datagrams().count(), 3);
        for place in [
            Place::Outside,
            Place::Inside(&[]),
            Place::Closed(&["93.184.216.34", NAME]),
        ] {
            assert_eq!(told(place), "[True, True, True, True, True]\n", "{place:?}");
        }
    });
}

/// So many long names are asked for.
const LONG: usize = 120;

#[test]
fn n12_long_names_under_a_wildcard_are_limited_and_told_of() {
    test(&standard(), |world| {
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        let ask = |speaker: &mut Speaker, names: &[String]| {
            let sayings: Vec<_> = names
                .iter()
                .map(|name| by_udp(SERVER, &query(name, A)))
                .collect();
            let heard = speaker.say(&sayings);
            heard
                .iter()
                .map(Reply::read)
                .filter(|reply| !reply.is_denial())
                .count()
        };
        // What is said is spread over labels, or not.
        let long = |n: usize| match n % 2 {
            0 => format!("{n:062}.pages.example.com"),
            _ => format!("{n:015}.{n:015}.{n:015}.{n:014}.pages.example.com"),
        };
        let names: Vec<_> = (0..LONG).map(long).collect();
        let passed = ask(&mut speaker, &names);
        assert!((1..LONG / 2).contains(&passed), "{passed}");
        assert_eq!(world.dns().queries().count(), passed);
        // Short ones are not limited, and neither is one that was asked for before.
        let short: Vec<_> = (0..LONG)
            .map(|n| format!("host-{n}.pages.example.com"))
            .collect();
        assert_eq!(ask(&mut speaker, &short), LONG);
        let receipt = speaker.end();
        assert!(
            receipt.contains("too much is said in names below a wildcard rule"),
            "{receipt}"
        );
        // With the internet open there is no such limit, as the same could be sent there.
        let mut speaker = Speaker::start(Place::Inside(&[]), world.laptop());
        assert_eq!(ask(&mut speaker, &names), LONG);
        speaker.end();
    });
}

#[test]
fn n12_name_servers_of_others_are_out_of_reach() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let others = ["dns", "mirror", "intranet"].map(|name| world.host(name));
        for host in others {
            host.tcp_echo(853).expect("listen");
            host.udp_echo(853).expect("listen");
            host.tcp_echo(443).ok();
        }
        let every = |host: &&stockade_world::Host| {
            let address = host.v4();
            [
                format!("tcp://{address}:853"),
                format!("udp://{address}:853"),
            ]
        };
        let targets: Vec<String> = others.iter().flat_map(every).collect();
        let watch = Watch::on(&others);
        CLOSED.probe(world.laptop(), &targets).expect_denials();
        watch.expect_nothing();
        Place::Outside
            .probe(world.laptop(), &targets)
            .expect_answers();
        // One that is allowed by name can be talked to.
        Place::Closed(&["mirror.example.org"])
            .probe(world.laptop(), &["tcp://mirror.example.org:853"])
            .expect_answers();
    });
}

#[test]
fn n12_quic_to_a_host_admitted_by_name_is_refused_at_once() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let web = world.host("web");
        let quic = web.udp_echo(443).expect("listen");
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        for kind in [A, AAAA] {
            assert!(!speaker.look_up(NAME, kind).addresses.is_empty());
        }
        let sayings = ["93.184.216.34", "2606:2800:220:1::34"]
            .map(|address| [443, 7].map(|port| super::say::Saying::udp(address, port, "x")))
            .concat();
        let heard = speaker.say(&sayings);
        let refused: Vec<_> = heard.iter().map(Heard::is_denial).collect();
        assert_eq!(refused, [true, false, true, false], "{heard:?}");
        assert_eq!(heard[1].bytes(), b"x");
        assert_eq!(quic.datagrams().count(), 0);
        let receipt = speaker.end();
        assert!(receipt.contains("programs fall back to TCP"), "{receipt}");
        // An address that is allowed as such is.
        Place::Closed(&["udp://93.184.216.34:443"])
            .probe(world.laptop(), &["udp://93.184.216.34:443"])
            .expect_answers();
    });
}
