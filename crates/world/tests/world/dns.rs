//! The resolver, asked by `dig`, good and bad.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use stockade_world::dns_messages::RCODE;
use stockade_world::{Builder, Misbehaviour, Resolver, Transport, World, test};

const HOME: Ipv4Addr = Ipv4Addr::new(1, 2, 3, 4);

fn dig(world: &World, arguments: &[&str]) -> String {
    let command = world.laptop().command("dig");
    let command = command.args(["+tries=1", "+time=1"]).args(arguments);
    command.run().expect("dig").stdout()
}

#[test]
fn records_are_served_and_queries_noted() {
    test(&Builder::new(), |world| {
        let dns = world.dns();
        dns.record("host.example.com", HOME)
            .record("host.example.com", "2001:db8::1".parse::<IpAddr>().unwrap())
            .cname("alias.example.com", "host.example.com")
            .txt("host.example.com", "some text")
            .record("*.wild.example.com", HOME);
        let ask = |what: &[&str]| dig(world, &[&["+short"], what].concat());
        assert_eq!(ask(&["host.example.com"]), "1.2.3.4\n");
        assert_eq!(ask(&["host.example.com", "AAAA"]), "2001:db8::1\n");
        assert_eq!(ask(&["alias.example.com"]), "host.example.com.\n1.2.3.4\n");
        assert_eq!(ask(&["host.example.com", "TXT"]), "\"some text\"\n");
        assert_eq!(ask(&["a.b.wild.example.com"]), "1.2.3.4\n");
        assert_eq!(ask(&["+tcp", "HOST.example.com"]), "1.2.3.4\n");
        assert!(dig(world, &["nobody.example.com"]).contains("status: NXDOMAIN"));
        assert!(dig(world, &["host.example.com", "MX"]).contains("status: NOERROR"));

        assert_eq!(dns.queries_for("host.example.com"), 5);
        let queries = dns.queries().all();
        assert_eq!(queries[1].kind, "AAAA");
        assert_eq!(queries[1].transport, Transport::Udp);
        assert_eq!(queries[5].transport, Transport::Tcp);
        assert_eq!(queries[0].peer.ip().to_string(), "192.168.10.5");
    });
}

#[test]
fn it_may_say_more_than_it_was_asked() {
    test(&Builder::new(), |world| {
        let [among, beside] = [[6, 6, 6, 6], [7, 7, 7, 7]].map(IpAddr::from);
        let greedy = Misbehaviour::Unasked(among, beside);
        world
            .dns()
            .record("host.example", HOME)
            .misbehave("host.example", greedy);
        let said = dig(world, &["host.example"]);
        assert!(
            said.contains("ANSWER: 2, AUTHORITY: 1, ADDITIONAL: 2"),
            "{said}"
        );
        assert!(
            said.contains("not.what.was.asked.\t60\tIN\tA\t6.6.6.6"),
            "{said}"
        );
        assert_eq!(said.matches("7.7.7.7").count(), 2, "{said}");
    });
}

#[test]
fn it_misbehaves_as_told() {
    test(&Builder::new(), |world| {
        let dns = world.dns();
        dns.record("*", HOME)
            .misbehave("id.example", Misbehaviour::WrongId)
            .misbehave("question.example", Misbehaviour::WrongQuestion)
            .misbehave("tc.example", Misbehaviour::Truncated)
            .misbehave("silent.example", Misbehaviour::Silent)
            .misbehave("garbage.example", Misbehaviour::Raw(b"\x80\x00no message"))
            .misbehave(
                "slow.example",
                Misbehaviour::Slow(Duration::from_millis(300)),
            )
            .misbehave("refused.example", Misbehaviour::Code(RCODE::Refused));
        assert!(dig(world, &["id.example"]).contains("ID mismatch"));
        assert!(dig(world, &["question.example"]).contains("Question section mismatch"));
        assert!(dig(world, &["silent.example"]).contains("timed out"));
        assert!(dig(world, &["refused.example"]).contains("status: REFUSED"));
        assert!(!dig(world, &["garbage.example"]).contains("1.2.3.4"));

        let truncated = dig(world, &["+ignore", "tc.example"]);
        assert!(truncated.contains("flags: qr tc"), "{truncated}");
        let retried = dig(world, &["tc.example"]);
        assert!(retried.contains("retrying in TCP mode"), "{retried}");
        assert!(retried.contains("1.2.3.4"), "{retried}");

        let started = Instant::now();
        assert!(dig(world, &["slow.example"]).contains("1.2.3.4"));
        assert!(started.elapsed() >= Duration::from_millis(300));

        dns.behave();
        assert_eq!(dig(world, &["+short", "id.example"]), "1.2.3.4\n");
    });
}

#[test]
fn answers_change_from_query_to_query() {
    test(&Builder::new(), |world| {
        let inward = Ipv4Addr::new(10, 0, 0, 1);
        world.dns().rotate("flip.example", &[&[HOME], &[inward]]);
        let answers: Vec<String> = (0..3)
            .map(|_| dig(world, &["+short", "flip.example"]))
            .collect();
        assert_eq!(answers, ["1.2.3.4\n", "10.0.0.1\n", "1.2.3.4\n"]);
    });
}

#[test]
fn large_answers_are_truncated_by_udp_unless_there_is_room() {
    test(&Builder::new(), |world| {
        for last in 0..60 {
            world
                .dns()
                .record("many.example", Ipv4Addr::new(1, 2, 3, last));
        }
        let plain = dig(world, &["+noedns", "+ignore", "many.example"]);
        assert!(plain.contains("flags: qr tc"), "{plain}");
        let roomy = dig(world, &["+bufsize=4096", "+ignore", "many.example"]);
        assert!(roomy.contains("ANSWER: 60"), "{roomy}");
    });
}

#[test]
fn a_stub_on_the_loopback_serves_the_laptop_only() {
    let builder = Builder::standard().resolver(Resolver::LoopbackStub);
    test(&builder, |world| {
        let getent = world.laptop().command("getent");
        let output = getent.args(["ahostsv4", "www.example.com"]).run().unwrap();
        assert!(output.expect_success().stdout().contains("93.184.216.34"));
        let query = &world.dns().queries().wait_for(1).unwrap()[0];
        assert!(query.peer.ip().is_loopback(), "{query:?}");
        let resolv = std::fs::read_to_string("/etc/resolv.conf").unwrap();
        assert!(resolv.contains("nameserver 127.0.0.53"), "{resolv}");
    });
}

#[test]
fn short_names_are_completed() {
    let builder = Builder::standard().resolver(Resolver::SearchDomain);
    test(&builder, |world| {
        let getent = world.laptop().command("getent");
        let output = getent.args(["ahostsv4", "intranet"]).run().unwrap();
        assert!(output.expect_success().stdout().contains("10.20.0.5"));
    });
}

#[test]
fn a_stopped_resolver_is_gone() {
    test(&Builder::new(), |world| {
        world.dns().record("host.example", HOME);
        assert_eq!(dig(world, &["+short", "host.example"]), "1.2.3.4\n");
        world.dns().stop();
        stockade_world::eventually("refusal", stockade_world::PATIENCE, || {
            dig(world, &["+tcp", "host.example"]).contains("connection refused")
        })
        .unwrap();
    });
}
