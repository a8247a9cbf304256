//! Who answers the queries of the inside, and who is believed (N12).

use std::net::IpAddr;

use stockade_world::{Misbehaviour, Standard, Transport, test};

use super::probe::{INSIDE, Place, Watch, dig};
use crate::support::standard;

const NAME: &str = "www.example.com";
const WEB: &str = "93.184.216.34\n";

#[test]
fn n12_queries_to_any_server_are_answered_by_the_hosts_resolver_alone() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let others = ["mirror", "intranet", "metadata", "device"].map(|name| world.host(name));
        // They would tell another story.
        for host in others {
            host.dns(53).expect("listen").record(NAME, [6, 6, 6, 6]);
        }
        let ask = |place: Place<'_>, address: IpAddr, transport: &str| {
            dig(world, place, &[&format!("@{address}"), transport, NAME]).stdout()
        };
        let watch = Watch::on(&others);
        let mut asked = 0;
        for host in others {
            for address in host.addresses() {
                assert_eq!(ask(INSIDE, *address, "+notcp"), WEB, "{address}");
                assert_eq!(ask(INSIDE, *address, "+tcp"), WEB, "{address}");
                asked += 2;
            }
        }
        watch.expect_nothing();
        assert_eq!(world.dns().queries_for(NAME), asked);
        for host in others {
            assert_eq!(ask(Place::Outside, host.address(), "+notcp"), "6.6.6.6\n");
        }
        watch.expect_something();
    });
}

#[test]
fn n12_dns_over_tls_at_another_server_is_judged_as_any_connection() {
    test(&standard(), |world| {
        let servers = ["intranet", "mirror"].map(|name| world.host(name));
        for host in servers {
            host.tcp_echo(853).expect("listen");
        }
        INSIDE
            .probe(world.laptop(), &["tcp://10.20.0.5:853"])
            .expect_denials();
        INSIDE
            .probe(world.laptop(), &["tcp://151.101.1.69:853"])
            .expect_answers();
    });
}

/// Bytes after the right identifier that no resolver should send.
const GARBAGE: [(&str, &[u8]); 7] = [
    ("nothing.example", b""),
    ("short.example", b"\x81\x80\x00"),
    (
        "header.example",
        b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00",
    ),
    (
        "counts.example",
        b"\x81\x80\xff\xff\xff\xff\xff\xff\xff\xff\x03abc\x00",
    ),
    (
        "loop.example",
        b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01",
    ),
    (
        "far.example",
        b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\xff\xff\x00\x01\x00\x01",
    ),
    (
        "label.example",
        b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x3fxx",
    ),
];

#[test]
fn n12_a_hostile_upstream_is_not_believed() {
    test(&standard(), |world| {
        let dns = world.dns();
        // The last one is as long as the question that comes back in its place: all other
        // bytes are where they should be.
        let mut names = vec!["id.example", "question.example", "may.this.not.match"];
        dns.misbehave(names[0], Misbehaviour::WrongId);
        dns.misbehave(names[1], Misbehaviour::WrongQuestion);
        dns.misbehave(names[2], Misbehaviour::WrongQuestion);
        for (name, bytes) in GARBAGE {
            dns.misbehave(name, Misbehaviour::Raw(bytes));
            names.push(name);
        }
        for name in &names {
            dns.record(name, [10, 20, 0, 5]);
        }
        dns.record("honest.example", [10, 20, 0, 5]);

        // All at once, since each waits for an answer that can be believed.
        let script =
            "for name; do dig +time=6 +tries=1 $name > $name & done; wait; cat \"$@\"; rm \"$@\"";
        let ask = |place: Place<'_>, names: &[&str]| {
            let shell = place
                .command(world.laptop(), "bash")
                .args(["-c", script, "ask"]);
            shell.args(names).run().expect("run").stdout()
        };
        let told = ask(INSIDE, &names);
        assert_eq!(
            told.matches("status: SERVFAIL").count(),
            names.len(),
            "{told}"
        );
        assert!(!told.contains("10.20.0.5"), "{told}");
        assert!(ask(INSIDE, &["honest.example"]).contains("10.20.0.5"));
        for name in names {
            assert!(dns.queries_for(name) > 0, "{name}");
        }
    });
}

#[test]
fn n12_an_identifier_and_a_port_are_used_once() {
    test(&standard(), |world| {
        let names: Vec<String> = (0..40).map(|n| format!("n{n}.pages.example.com")).collect();
        INSIDE
            .command(world.laptop(), "dig")
            .args(&names)
            .run()
            .expect("dig")
            .expect_success();
        let queries = world.dns().queries().all();
        let distinct = |mut values: Vec<u16>| {
            values.sort_unstable();
            values.dedup();
            values.len()
        };
        let ids = queries
            .iter()
            .map(|query| u16::from_be_bytes([query.message[0], query.message[1]]));
        let ports = queries.iter().map(|query| query.peer.port());
        assert_eq!(queries.len(), names.len());
        // Chance may give a few twice, but not many.
        assert!(distinct(ids.collect()) > 36);
        assert!(distinct(ports.collect()) > 36);
    });
}

#[test]
fn n12_a_truncated_answer_is_asked_for_again_by_tcp() {
    test(&standard(), |world| {
        let dns = world.dns();
        dns.misbehave(NAME, Misbehaviour::Truncated);
        assert_eq!(dig(world, INSIDE, &[NAME]).stdout(), WEB);
        let by_tcp = dns
            .queries()
            .count_where(|query| query.transport == Transport::Tcp);
        assert!(by_tcp > 0);
        // And one that is too long for the client is cut for it.
        for n in 0..100 {
            dns.record("many.example", [45, 60, 0, n]);
        }
        let cut = INSIDE
            .command(world.laptop(), "dig")
            .args(["+noedns", "+ignore", "many.example"])
            .run()
            .expect("dig");
        assert!(cut.stdout().contains(" tc "), "{cut:?}");
        let whole = dig(world, INSIDE, &["+noedns", "many.example"]).stdout();
        assert_eq!(whole.lines().count(), 100);
    });
}
