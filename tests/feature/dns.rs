//! Questions and answers: whatever is asked inside, the host's resolver answers.

use stockade_world::dns_messages::rdata::{MX, RData, SRV, TXT};
use stockade_world::dns_messages::{Name, RCODE};
use stockade_world::{Misbehaviour, PATIENCE, Transport, World, eventually, test};

use super::place::Place;
use crate::support::standard;

const INSIDE: Place<'_> = Place::Inside(&[]);

fn dig(world: &World, place: Place<'_>, arguments: &[&str]) -> String {
    place
        .command(world.laptop(), "dig")
        .args(["+tries=1", "+time=8"])
        .args(arguments)
        .run()
        .expect("dig ends")
        .stdout()
}

/// Asks in both places and fails unless the answers agree. Returns them.
fn agreed(world: &World, arguments: &[&str]) -> String {
    let arguments = [&["+noall", "+answer", "+nottlid"], arguments].concat();
    let outside = dig(world, Place::Outside, &arguments);
    let inside = dig(world, INSIDE, &arguments);
    assert_eq!(inside, outside, "{arguments:?}");
    inside
}

fn name(text: &str) -> Name<'static> {
    Name::new(text).expect("a name").into_owned()
}

fn text(length: usize) -> RData<'static> {
    let text = "x".repeat(length);
    let txt = TXT::new().with_string(&text).expect("a text").into_owned();
    RData::TXT(txt)
}

#[test]
fn records_of_every_type_pass_by_both_transports() {
    test(&standard(), |world| {
        let mail = MX {
            preference: 10,
            exchange: name("mail.example.com"),
        };
        let service = SRV {
            priority: 1,
            weight: 2,
            port: 5060,
            target: name("sip.example.com"),
        };
        world
            .dns()
            .cname("alias.example.com", "www.example.com")
            .txt("example.net", "v=spf1 -all")
            .records(
                "example.net",
                60,
                vec![RData::MX(mail), RData::SRV(service)],
            );
        for (question, part) in [
            (["www.example.com", "A"], "93.184.216.34"),
            (["www.example.com", "AAAA"], "2606:2800:220:1::34"),
            (["alias.example.com", "A"], "CNAME\twww.example.com."),
            (["example.net", "TXT"], "v=spf1 -all"),
            (["example.net", "MX"], "10 mail.example.com."),
            (["example.net", "SRV"], "1 2 5060 sip.example.com."),
            (["example.net", "ANY"], "10 mail.example.com."),
        ] {
            for transport in ["+notcp", "+tcp"] {
                let answer = agreed(world, &[&question[..], &[transport]].concat());
                assert!(answer.contains(part), "{question:?}: {answer}");
            }
        }
    });
}

#[test]
fn any_server_address_is_answered_by_the_hosts_resolver() {
    test(&standard(), |world| {
        for server in ["9.9.9.9", "2620:fe::fe", "10.20.0.5", "192.168.10.1"] {
            for transport in ["+notcp", "+tcp"] {
                let at = format!("@{server}");
                world.dns().queries().clear();
                let label = server.replace([':', '.'], "-");
                let name = format!("{label}{transport}.pages.example.com").replace('+', "");
                let said = dig(world, INSIDE, &[&at, transport, "+short", &name]);
                assert_eq!(said, "93.184.216.34\n", "{server} {transport}");
                assert_eq!(world.dns().queries_for(&name), 1, "{server} {transport}");
            }
        }
    });
}

#[test]
fn what_does_not_exist_is_said_not_to() {
    test(&standard(), |world| {
        world
            .dns()
            .misbehave("refused.example.com", Misbehaviour::Code(RCODE::Refused));
        for (name, status) in [
            ("nobody.example.com", "NXDOMAIN"),
            ("refused.example.com", "REFUSED"),
        ] {
            for place in [Place::Outside, INSIDE] {
                let said = dig(world, place, &[name]);
                assert!(said.contains(&format!("status: {status}")), "{said}");
            }
        }
        let said = dig(world, INSIDE, &["www.example.com", "CAA"]);
        assert!(said.contains("status: NOERROR"), "{said}");
        assert!(said.contains("ANSWER: 0"), "{said}");
    });
}

#[test]
fn a_large_answer_fits_the_size_that_the_client_names() {
    test(&standard(), |world| {
        let records = (0..5).map(|_| text(250)).collect();
        world.dns().records("large.example.com", 60, records);
        let question = ["large.example.com", "TXT", "+notcp", "+ignore"];
        let said = dig(world, INSIDE, &[&question[..], &["+bufsize=4096"]].concat());
        assert!(said.contains("ANSWER: 5"), "{said}");
        assert!(said.contains("; EDNS: version: 0"), "{said}");
        let said = dig(world, INSIDE, &[&question[..], &["+bufsize=600"]].concat());
        assert!(said.contains(" tc "), "{said}");
        let said = dig(world, INSIDE, &[&question[..], &["+noedns"]].concat());
        assert!(said.contains(" tc "), "{said}");
        assert!(!said.contains("EDNS"), "{said}");
    });
}

#[test]
fn a_truncated_answer_makes_the_client_ask_by_tcp() {
    test(&standard(), |world| {
        let records = (0..30).map(|_| text(250)).collect();
        world.dns().records("large.example.com", 60, records);
        let answer = agreed(world, &["large.example.com", "TXT", "+bufsize=1232"]);
        assert_eq!(answer.lines().count(), 30);
    });
}

#[test]
fn what_the_resolver_truncates_is_asked_for_by_tcp() {
    test(&standard(), |world| {
        world
            .dns()
            .txt("cut.example.com", "whole after all")
            .misbehave("cut.example.com", Misbehaviour::Truncated);
        let said = dig(
            world,
            INSIDE,
            &["cut.example.com", "TXT", "+short", "+ignore"],
        );
        assert_eq!(said, "\"whole after all\"\n");
        let transports: Vec<_> = world.dns().queries().all();
        let transports: Vec<_> = transports.iter().map(|query| query.transport).collect();
        assert_eq!(transports, [Transport::Udp, Transport::Tcp]);
    });
}

#[test]
fn without_ipv6_no_name_has_an_ipv6_address() {
    test(&standard().without_ipv6(), |world| {
        let said = dig(world, INSIDE, &["www.example.com", "AAAA"]);
        assert!(said.contains("status: NOERROR"), "{said}");
        assert!(said.contains("ANSWER: 0"), "{said}");
        let said = dig(world, INSIDE, &["www.example.com", "A", "+short"]);
        assert_eq!(said, "93.184.216.34\n");
    });
}

#[test]
fn an_answer_is_kept_for_as_long_as_it_says() {
    test(&standard(), |world| {
        let address = RData::A(std::net::Ipv4Addr::new(1, 2, 3, 4).into());
        let dns = world.dns();
        dns.records("lasting.example.com", 60, vec![address.clone()])
            .records("short.example.com", 1, vec![address.clone()])
            .records("fleeting.example.com", 0, vec![address]);
        // Without a cookie, which would make each question another.
        let line = "
            ask() { dig +short +nocookie +tries=1 $1.example.com; }
            ask lasting; ask lasting; ask fleeting; ask fleeting
            ask short; while read go; do ask short; done";
        let mut shell = INSIDE.shell(world.laptop(), line).spawn().expect("shell");
        eventually("all questions are asked", PATIENCE, || {
            shell.stdout_so_far().lines().count() == 5
        })
        .expect("five answers");
        assert_eq!(dns.queries_for("lasting.example.com"), 1);
        assert_eq!(dns.queries_for("fleeting.example.com"), 2);
        assert_eq!(dns.queries_for("short.example.com"), 1);
        eventually("the short one is asked for again", PATIENCE, || {
            shell.write("\n").is_ok() && dns.queries_for("short.example.com") > 1
        })
        .expect("a second question");
    });
}
