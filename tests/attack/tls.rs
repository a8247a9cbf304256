//! The name in a TLS hello, however the hello is made and sent (N9, N11).

use stockade_world::{HttpServer, Standard, World, test};

use super::hello::{hello, message, padding, post_quantum, record, records, server_name};
use super::probe::Place;
use super::say::{Heard, Saying, Speaker};
use crate::support::standard;

const NAME: &str = "www.example.com";
const OTHER: &str = "other.example.net";
const CLOSED: Place<'_> = Place::Closed(&[NAME]);
/// Fatal alerts: access_denied for another name, decode_error for what is no proper hello.
const DENIED: &str = "alert 49";
const BROKEN: &str = "alert 50";

fn at_web(bytes: impl Into<Vec<u8>>) -> Saying {
    Saying::tcp(NAME, 443, bytes)
}

/// Says all to the web server from inside, with the internet closed but for its name.
/// Gives what each heard, and how many bytes reached the server.
fn say_inside(world: &World, server: &HttpServer, sayings: &[Saying]) -> (Vec<String>, u64) {
    let mut speaker = Speaker::start(CLOSED, world.laptop());
    let heard = speaker.say(sayings).iter().map(Heard::tls).collect();
    speaker.end();
    (heard, server.tcp().received())
}

/// The hello for a name in every shape in which clients send it, or could.
fn shapes(name: &str) -> [(&'static str, Saying); 9] {
    let name = name.as_bytes();
    let plain = message(&[server_name(&[name])]);
    let long = message(&[server_name(&[name]), post_quantum()]);
    let longer = message(&[padding(9000), server_name(&[name]), padding(9000)]);
    [
        ("plain", at_web(hello(name))),
        ("byte by byte", at_web(hello(name)).cut(1)),
        ("in small records", at_web(records(&plain, 40))),
        ("in records of one byte", at_web(records(&plain, 1))),
        ("both", at_web(records(&plain, 3)).cut(1)),
        ("post-quantum", at_web(record(&long))),
        ("post-quantum in pieces", at_web(record(&long)).cut(700)),
        ("longer than a record", at_web(record(&longer))),
        (
            "in the largest hello that servers take",
            at_web(records(&longer, 1000)).cut(500),
        ),
    ]
}

#[test]
fn n11_a_hello_is_judged_by_its_name_in_whatever_shape_it_comes() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let sayings = shapes(OTHER).map(|(_, saying)| saying);
        let (heard, arrived) = say_inside(world, &net.web_tls, &sayings);
        assert_eq!(heard, [DENIED; 9]);
        assert_eq!(arrived, 0);

        // The same shapes work with the allowed name, as far as they do outside.
        let (labels, sayings): (Vec<_>, Vec<_>) = shapes(NAME).into_iter().unzip();
        let outside = Speaker::start(Place::Outside, world.laptop()).say(&sayings);
        let (inside, _) = say_inside(world, &net.web_tls, &sayings);
        for (label, (outside, inside)) in labels.iter().zip(outside.iter().zip(&inside)) {
            assert_eq!(outside.tls(), *inside, "{label}");
        }
        let working = inside.iter().filter(|heard| *heard == "hello").count();
        assert!(working >= 7, "{inside:?}");
    });
}

#[test]
fn n11_a_hello_that_comes_haltingly_is_judged_before_it_is_whole_at_the_server() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let halting = |name: &str| -> Vec<Saying> {
            let whole = hello(name.as_bytes());
            let positions = (0..whole.len())
                .step_by(7)
                .chain([1, 4, 5, 6, whole.len() - 1]);
            positions
                .map(|position| at_web(whole.clone()).halting_at(position))
                .collect()
        };
        let whole = u64::try_from(hello(OTHER.as_bytes()).len()).expect("short");
        let sayings = halting(OTHER);
        let (heard, arrived) = say_inside(world, &net.web_tls, &sayings);
        assert!(heard.iter().all(|heard| heard == DENIED), "{heard:?}");
        assert!(arrived < whole * u64::try_from(sayings.len()).expect("few"));
        assert_eq!(net.web_tls.requests().count(), 0);
        let (heard, _) = say_inside(world, &net.web_tls, &halting(NAME));
        assert!(heard.iter().all(|heard| heard == "hello"), "{heard:?}");
    });
}

#[test]
fn n11_a_hello_that_two_readers_could_understand_differently_is_refused() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let [name, other] = [NAME, OTHER].map(str::as_bytes);
        let two_entries = record(&message(&[server_name(&[name, other])]));
        let two_extensions = record(&message(&[server_name(&[name]), server_name(&[other])]));
        let no_entry = record(&message(&[server_name(&[])]));
        let unknown_type = {
            let (kind, mut data) = server_name(&[name]);
            data[2] = 1;
            record(&message(&[(kind, data)]))
        };
        let cut_short = {
            let (kind, data) = server_name(&[name]);
            record(&message(&[(kind, data[..data.len() - 1].to_vec())]))
        };
        let trailing = record(&[message(&[server_name(&[name])]), vec![0; 40]].concat());
        let huge = {
            let mut bytes = message(&[server_name(&[name])]);
            bytes[1] = 2; // 128 KiB and more
            record(&bytes)
        };
        let second_hello = [hello(name), hello(other)].concat();
        let after_alert = [&b"\x15\x03\x01\x00\x02\x01\x00"[..], &hello(other)].concat();
        let after_change = [&b"\x14\x03\x03\x00\x01\x01"[..], &hello(other)].concat();
        let between = {
            let whole = message(&[server_name(&[other])]);
            let (start, end) = whole.split_at(50);
            [
                &record(start),
                &b"\x14\x03\x03\x00\x01\x01"[..],
                &record(end),
            ]
            .concat()
        };
        let ssl2 = b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10\x01\x00\x80".to_vec();
        let cases = [
            ("two entries", two_entries),
            ("two extensions", two_extensions),
            ("no entry", no_entry),
            ("a name of another type", unknown_type),
            ("a wrong length", cut_short),
            ("bytes behind the hello", trailing),
            ("a length beyond all hellos", huge),
            ("behind an alert", after_alert),
            ("behind a change of ciphers", after_change),
            ("interrupted", between),
            ("of SSL 2", ssl2),
        ];
        let sayings: Vec<_> = cases
            .iter()
            .map(|(_, bytes)| at_web(bytes.clone()))
            .collect();
        let (heard, arrived) = say_inside(world, &net.web_tls, &sayings);
        for ((label, _), heard) in cases.iter().zip(&heard) {
            assert_eq!(heard, BROKEN, "{label}");
        }
        assert_eq!(arrived, 0);

        // A second hello with another name does not get to the server behind the first.
        let (heard, arrived) = say_inside(world, &net.web_tls, &[at_web(second_hello)]);
        assert_eq!(heard, [BROKEN]);
        assert!(arrived <= u64::try_from(hello(name).len()).expect("short"));
    });
}

#[test]
fn n11_a_hello_without_a_name_goes_where_its_address_may() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let nameless = record(&message(&[]));
        let mut speaker = Speaker::start(CLOSED, world.laptop());
        assert_eq!(speaker.say_one(&at_web(nameless.clone())).tls(), "hello");
        let elsewhere = Saying::tcp("151.101.1.69", 443, nameless);
        assert!(speaker.say_one(&elsewhere).is_denial());
        assert_eq!(net.mirror_tls.tcp().connections().count(), 0);
        speaker.end();
    });
}

/// Each is taken for `NAME` by some reader, or for nothing by another.
const ODD: &[&[u8]] = &[
    b"www.example.com\0",
    b"www.example.com\0.other.example.net",
    b"other.example.net\0www.example.com",
    b"www.example.com%00",
    b"www.example.com%00.other.example.net",
    b"www.example.com\r\n",
    b"www.example.com\nother.example.net",
    b" www.example.com",
    b"www.example.com ",
    b"www.example.com\t",
    b"www.example.com,other.example.net",
    b"www.example.com:443",
    b"www.example.com/",
    b"user@www.example.com",
    b"[www.example.com]",
    b"[2606:2800:220:1::34]",
    b"2606:2800:220:1::34",
    b"fe80::1%eth0",
    b"93.184.216.34",
    b"1572395042",
    b"0x5db8d822",
    b"0135.0270.0330.042",
    b"0x7f.1",
    b"*.example.com",
    b"*",
    b".",
    b".www.example.com",
    b"www..example.com",
    b"www.example.com..",
    b"www.example\xe3\x80\x82com",
    b"\xef\xbd\x97ww.example.com",
    b"www.example.com\xff",
    b"",
];

#[test]
fn n09_an_odd_name_in_a_hello_is_no_name() {
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
        let sayings: Vec<_> = odd.iter().map(|name| at_web(hello(name))).collect();
        let (heard, arrived) = say_inside(world, &net.web_tls, &sayings);
        for (name, heard) in odd.iter().zip(&heard) {
            let refused = [DENIED, BROKEN].contains(&heard.as_str());
            assert!(refused, "\"{}\": {heard}", name.escape_ascii());
        }
        assert_eq!(arrived, 0);
    });
}

#[test]
fn n09_harmless_spellings_of_a_name_in_a_hello_work_as_outside() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let spellings = ["www.example.com", "WWW.Example.COM", "www.example.com."];
        let sayings = spellings.map(|name| at_web(hello(name.as_bytes())));
        let outside = Speaker::start(Place::Outside, world.laptop()).say(&sayings);
        let outside: Vec<_> = outside.iter().map(Heard::tls).collect();
        assert_eq!(outside[..2], ["hello", "hello"]);
        let (inside, _) = say_inside(world, &net.web_tls, &sayings);
        assert_eq!(inside, outside);
    });
}
