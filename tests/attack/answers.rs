//! What an answer opens with the internet closed, and what it does not (N12).

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use stockade_world::dns_messages::rdata::{RData, SVCB, SVCParam};
use stockade_world::dns_messages::{Name, Packet, RCODE};
use stockade_world::{HostSpec, Misbehaviour, Standard, Transport, World, test};

use super::ask::{A, AAAA, HTTPS, Reply, SERVER, by_tcp, by_udp, query};
use super::probe::{Place, Watch};
use super::say::{Heard, Saying, Speaker};
use crate::support::standard;

const NAME: &str = "www.example.com";
const WEB: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));
const MIRROR: &str = "151.101.1.69";

fn get(address: &str, host: &str) -> Saying {
    Saying::tcp(
        address,
        80,
        format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    )
}

#[test]
fn n12_an_alias_is_open_under_the_name_that_was_asked_for_alone() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let dns = world.dns();
        // Out of what is allowed, and back into it.
        dns.cname("shop.example.org", "cdn.elsewhere.example");
        dns.cname("cdn.elsewhere.example", NAME);
        // Into it from outside.
        dns.cname("evil.example", NAME);
        let mut speaker =
            Speaker::start(Place::Closed(&["shop.example.org", NAME]), world.laptop());
        assert_eq!(speaker.look_up("shop.example.org", A).addresses, [WEB]);
        let web = WEB.to_string();
        let names = [
            "shop.example.org",
            "cdn.elsewhere.example",
            NAME,
            "evil.example",
        ];
        let heard = speaker.say(&names.map(|name| get(&web, name)));
        let statuses: Vec<_> = heard.iter().map(Heard::statuses).collect();
        assert_eq!(statuses, ["200", "403", "403", "403"]);

        let asked = dns.queries().count();
        for name in ["cdn.elsewhere.example", "evil.example"] {
            assert!(speaker.look_up(name, A).is_denial(), "{name}");
        }
        assert_eq!(dns.queries().count(), asked);
        // Asked for by itself, the last name of the chain is open, too.
        assert_eq!(speaker.look_up(NAME, A).addresses, [WEB]);
        assert_eq!(speaker.say_one(&get(&web, NAME)).statuses(), "200");
        speaker.end();
    });
}

#[test]
fn n12_the_first_connection_after_an_answer_is_recognised_every_time() {
    const COUNT: u16 = 1000;
    let cloud = HostSpec::new("cloud")
        .at("45.60.0.1")
        .at_all_of("45.60.0.0/16");
    let world = standard().host(cloud);
    test(&world, |world| {
        world.host("cloud").tcp_echo(7).expect("listen");
        for number in 0..COUNT {
            let [high, low] = number.to_be_bytes();
            let name = format!("n{number}.cloud.example.org");
            world.dns().record(&name, [45, 60, high, low]);
        }
        let place = Place::Closed(&["*.cloud.example.org"]);
        let script = include_str!("answers.py");
        let python = place.python(world.laptop(), script);
        let arguments = [&COUNT.to_string(), "cloud.example.org"];
        let output = python.args(arguments).run().expect("python");
        assert_eq!(output.expect_success().stdout(), format!("{COUNT}\n"));
        // Those next to them were not given out.
        place
            .probe(
                world.laptop(),
                &["tcp://45.60.0.7:7", "tcp://45.60.99.99:7"],
            )
            .expect_denials();
        Place::Outside
            .probe(
                world.laptop(),
                &["tcp://45.60.0.7:7", "tcp://45.60.99.99:7"],
            )
            .expect_answers();
    });
}

#[test]
fn n12_an_answer_that_holds_for_no_time_opens_its_address_for_a_while() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let name = "brief.example.org";
        world.dns().records(
            name,
            0,
            vec![RData::A(Ipv4Addr::new(93, 184, 216, 34).into())],
        );
        let mut speaker = Speaker::start(Place::Closed(&[name]), world.laptop());
        assert_eq!(speaker.look_up(name, A).addresses, [WEB]);
        // Slow programs connect a second time, and show the name late.
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(
                speaker.say_one(&get(&WEB.to_string(), name)).statuses(),
                "200"
            );
        }
        assert_eq!(world.dns().queries_for(name), 1);
        // It is asked for anew each time.
        assert_eq!(speaker.look_up(name, A).addresses, [WEB]);
        assert_eq!(world.dns().queries_for(name), 2);
        speaker.end();
    });
}

#[test]
fn n12_answers_by_tcp_and_truncated_ones_open_what_they_say() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let dns = world.dns();
        dns.misbehave(NAME, Misbehaviour::Truncated);
        let mut speaker =
            Speaker::start(Place::Closed(&[NAME, "mirror.example.org"]), world.laptop());
        assert_eq!(speaker.look_up(NAME, A).addresses, [WEB]);
        let by_tcp_upstream = |query: &stockade_world::Query| query.transport == Transport::Tcp;
        assert_eq!(dns.queries().count_where(by_tcp_upstream), 1);
        assert_eq!(
            speaker.say_one(&get(&WEB.to_string(), NAME)).statuses(),
            "200"
        );
        let heard = speaker.say_one(&by_tcp("9.9.9.9", &query("mirror.example.org", A)));
        assert_eq!(Reply::read(&heard).addresses.len(), 1);
        assert_eq!(
            speaker
                .say_one(&get(MIRROR, "mirror.example.org"))
                .statuses(),
            "200"
        );
        speaker.end();
    });
}

/// Names with an upstream that is not to be believed.
fn hostile(world: &World) -> [&'static str; 4] {
    let names = [
        "id.example.org",
        "question.example.org",
        "short.example.org",
        "counts.example.org",
    ];
    let ways = [
        Misbehaviour::WrongId,
        Misbehaviour::WrongQuestion,
        Misbehaviour::Raw(b"\x81\x80\x00"),
        Misbehaviour::Raw(b"\x81\x80\x00\x01\xff\xff\x00\x00\x00\x00"),
    ];
    for (name, way) in names.into_iter().zip(ways) {
        world.dns().record(name, WEB).misbehave(name, way);
    }
    names
}

#[test]
fn n12_a_hostile_answer_opens_nothing() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let names = hostile(world);
        let place = Place::Closed(&["*.example.org"]);
        let web = WEB.to_string();
        let mut speaker = Speaker::start(place, world.laptop());
        let watch = Watch::on(&[world.host("web")]);
        // The gate waits for a better answer, so all are asked at once and tried meanwhile.
        let mut sayings: Vec<_> = names
            .iter()
            .map(|name| by_udp(SERVER, &query(name, A)))
            .collect();
        sayings.extend(names.iter().map(|name| get(&web, name)));
        let heard = speaker.say(&sayings);
        let (replies, attempts) = heard.split_at(names.len());
        for reply in replies.iter().map(Reply::read) {
            assert_eq!((reply.code, reply.records), (RCODE::ServerFailure, 0));
        }
        assert!(attempts.iter().all(Heard::is_denial), "{attempts:?}");
        assert!(speaker.say_one(&get(&web, names[0])).is_denial());
        watch.expect_nothing();
        // The same without the malice.
        world.dns().behave();
        assert_eq!(speaker.look_up(names[0], A).addresses, [WEB]);
        assert_eq!(speaker.say_one(&get(&web, names[0])).statuses(), "200");
        speaker.end();
    });
}

#[test]
fn n12_addresses_that_nobody_asked_for_are_neither_told_nor_opened() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let dns = world.dns();
        let mirror: IpAddr = MIRROR.parse().expect("an address");
        let device: IpAddr = [192, 168, 10, 21].into();
        let name = "greedy.example.org";
        dns.record(name, WEB)
            .misbehave(name, Misbehaviour::Unasked(mirror, device));
        dns.record("second.example.org", WEB);
        dns.misbehave("second.example.org", Misbehaviour::Unasked(device, mirror));
        let watch = Watch::on(&["mirror", "device"].map(|name| world.host(name)));
        let mut speaker = Speaker::start(Place::Closed(&["*.example.org"]), world.laptop());
        for name in [name, "second.example.org"] {
            let reply = speaker.look_up(name, A);
            assert_eq!((reply.addresses, reply.records), (vec![WEB], 1));
            for address in [MIRROR, "192.168.10.21"] {
                assert!(speaker.say_one(&get(address, name)).is_denial());
            }
            assert_eq!(
                speaker.say_one(&get(&WEB.to_string(), name)).statuses(),
                "200"
            );
        }
        watch.expect_nothing();
        speaker.end();
        // The resolver does say it.
        let mut speaker = Speaker::start(Place::Outside, world.laptop());
        let heard = speaker.say_one(&by_udp("8.8.8.8", &query(name, A)));
        assert_eq!(Reply::read(&heard).addresses, [WEB, mirror]);
    });
}

/// A record that leads clients elsewhere and lets them hide the name.
fn service(target: &str) -> RData<'static> {
    let number = |address: &str| u32::from(address.parse::<Ipv4Addr>().expect("an address"));
    let v6 = |address: &str| u128::from(address.parse::<std::net::Ipv6Addr>().expect("an address"));
    let service = SVCB::new(1, Name::new_unchecked(target).into_owned())
        .with_param(SVCParam::Alpn(vec!["h2".try_into().expect("a protocol")]))
        .with_param(SVCParam::Ipv4Hint(vec![
            number("93.184.216.34"),
            number(MIRROR),
            number("10.20.0.5"),
        ]))
        .with_param(SVCParam::Ech(b"a key to hide names with".to_vec().into()))
        .with_param(SVCParam::Ipv6Hint(vec![v6("2a04:4e42::69")]));
    RData::HTTPS(service.into_owned().into())
}

#[test]
fn n12_service_records_lose_the_keys_to_hide_names_and_the_addresses_of_others() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        world.dns().records(NAME, 60, vec![service(".")]);
        let hints = |place: Place<'_>, server: &str| {
            let mut speaker = Speaker::start(place, world.laptop());
            let _ = speaker.say_one(&by_udp(server, &query(NAME, A)));
            let heard = speaker.say_one(&by_udp(server, &query(NAME, HTTPS)));
            let packet = Packet::parse(heard.bytes()).expect("an answer");
            assert_eq!(packet.rcode(), RCODE::NoError);
            let RData::HTTPS(https) = &packet.answers[0].rdata else {
                panic!("{packet:?}");
            };
            let mut keys = Vec::new();
            for parameter in https.0.iter_params() {
                keys.push(format!("{parameter:?}"));
            }
            for address in [MIRROR, "10.20.0.5", "2a04:4e42::69"] {
                let denied = speaker.say_one(&get(address, NAME)).is_denial();
                assert_eq!(denied, !matches!(place, Place::Outside), "{address}");
            }
            speaker.end();
            keys.join(" ")
        };
        let outside = hints(Place::Outside, "8.8.8.8");
        assert!(outside.contains("Ech"), "{outside}");
        let inside = hints(Place::Closed(&[NAME]), SERVER);
        let number = u32::from(Ipv4Addr::new(93, 184, 216, 34));
        assert!(inside.contains("Alpn"), "{inside}");
        assert!(
            inside.contains(&format!("Ipv4Hint([{number}])")),
            "{inside}"
        );
        assert!(
            !inside.contains("Ech") && !inside.contains("Ipv6Hint"),
            "{inside}"
        );
    });
}

#[test]
fn n12_names_have_ipv6_addresses_inside_where_the_host_has_ipv6() {
    let world = standard().without_ipv6();
    test(&world, |world| {
        let _net = Standard::serve(world).expect("servers");
        let mut speaker = Speaker::start(Place::Closed(&[NAME]), world.laptop());
        let reply = speaker.look_up(NAME, AAAA);
        assert_eq!((reply.code, reply.addresses), (RCODE::NoError, vec![]));
        assert_eq!(speaker.look_up(NAME, A).addresses, [WEB]);
        speaker.end();
    });
}
