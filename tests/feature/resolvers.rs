//! Who is asked: the host's resolvers, as `/etc/resolv.conf` names them at the time.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use stockade_world::dns_messages::RCODE;
use stockade_world::{Builder, HostSpec, Misbehaviour, Resolver, World, test};

use super::place::Place;
use crate::support::standard;

const INSIDE: Place<'_> = Place::Inside(&[]);

/// The IPv4 addresses of a name, by the C library and so by `resolv.conf`.
fn look_up(world: &World, place: Place<'_>, name: &str) -> Vec<String> {
    let output = place
        .command(world.laptop(), "getent")
        .args(["ahostsv4", name])
        .run()
        .expect("getent ends");
    let stdout = output.stdout();
    let addresses = stdout.lines().filter(|line| line.contains("STREAM"));
    let first = addresses.filter_map(|line| line.split_whitespace().next());
    first.map(str::to_owned).collect()
}

fn name_servers(world: &World, servers: &[&str]) {
    let lines = servers
        .iter()
        .map(|server| format!("nameserver {server}\n"));
    world
        .laptop()
        .write_etc("resolv.conf", &lines.collect::<String>())
        .expect("write resolv.conf");
}

/// A second resolver, for which `www.example.com` is elsewhere.
fn with_second_resolver() -> Builder {
    standard().host(HostSpec::new("dns2").at("9.9.9.10"))
}

#[test]
fn names_resolve_with_a_resolver_of_the_network() {
    test(&standard().resolver(Resolver::Routable), |world| {
        assert_eq!(look_up(world, INSIDE, "www.example.com"), ["93.184.216.34"]);
    });
}

#[test]
fn names_resolve_with_a_stub_on_the_hosts_loopback() {
    test(&standard().resolver(Resolver::LoopbackStub), |world| {
        assert_eq!(look_up(world, INSIDE, "www.example.com"), ["93.184.216.34"]);
        let asked = world.dns().queries().all();
        assert!(asked.iter().all(|query| query.peer.ip().is_loopback()));
    });
}

#[test]
fn short_names_are_completed_with_the_hosts_search_domain() {
    test(&standard().resolver(Resolver::SearchDomain), |world| {
        for place in [Place::Outside, INSIDE] {
            assert_eq!(look_up(world, place, "intranet"), ["10.20.0.5"]);
        }
    });
}

#[test]
fn a_resolver_with_an_ipv6_address_is_asked_there() {
    test(&standard(), |world| {
        name_servers(world, &["2001:4860:4860::8888"]);
        assert_eq!(look_up(world, INSIDE, "www.example.com"), ["93.184.216.34"]);
        let asked = world.dns().queries().all();
        assert!(!asked.is_empty());
        assert!(asked.iter().all(|query| query.peer.is_ipv6()));
    });
}

#[test]
fn a_silent_resolver_gives_way_to_the_next() {
    test(&with_second_resolver(), |world| {
        let silent = world.host("dns2").udp_sink(53).expect("server");
        name_servers(world, &["9.9.9.10", "8.8.8.8"]);
        let start = Instant::now();
        assert_eq!(look_up(world, INSIDE, "www.example.com"), ["93.184.216.34"]);
        // A program's own patience is five seconds.
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(silent.datagrams().count() > 0, "it was asked first");
    });
}

#[test]
fn a_resolver_that_is_gone_gives_way_to_the_next_at_once() {
    test(&with_second_resolver(), |world| {
        let web = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));
        name_servers(world, &["9.9.9.10", "8.8.8.8"]);
        // A silent one costs 1.2 s each time. A busy machine may take as long once.
        let took = ["a.example.com", "b.example.com", "c.example.com"].map(|name| {
            world.dns().record(name, web);
            let start = Instant::now();
            assert_eq!(look_up(world, INSIDE, name), ["93.184.216.34"]);
            start.elapsed()
        });
        let quickest = took.iter().min();
        assert!(quickest < Some(&Duration::from_secs(1)), "{took:?}");
    });
}

#[test]
fn a_resolver_that_fails_gives_way_to_the_next() {
    test(&with_second_resolver(), |world| {
        let failing = world.host("dns2").dns(53).expect("resolver");
        for code in [RCODE::ServerFailure, RCODE::Refused] {
            failing.misbehave("*", Misbehaviour::Code(code));
            name_servers(world, &["9.9.9.10", "8.8.8.8"]);
            for place in [Place::Outside, INSIDE] {
                let found = look_up(world, place, "www.example.com");
                assert_eq!(found, ["93.184.216.34"], "{code:?} {place:?}");
            }
        }
    });
}

#[test]
fn a_change_of_resolv_conf_counts_from_the_next_question_on() {
    test(&with_second_resolver(), |world| {
        let second = world.host("dns2").dns(53).expect("resolver");
        second.record("www.example.com", Ipv4Addr::new(1, 2, 3, 4));
        let line = "getent ahostsv4 www.example.com; read go; getent ahostsv4 www.example.com";
        let mut shell = INSIDE.shell(world.laptop(), line).spawn().expect("shell");
        shell.expect("93.184.216.34").expect("the first resolver");
        name_servers(world, &["9.9.9.10"]);
        shell.write("\n").expect("ask again");
        shell.expect("1.2.3.4").expect("the second resolver");
    });
}

#[test]
fn when_no_resolver_answers_the_answer_says_so() {
    test(&standard(), |world| {
        world.dns().misbehave("*", Misbehaviour::Silent);
        for (server, reason) in [
            (
                "nameserver 8.8.8.8\n",
                "none of the host's name servers answered",
            ),
            (
                "# none\n",
                "the host has no name server in /etc/resolv.conf",
            ),
        ] {
            world
                .laptop()
                .write_etc("resolv.conf", server)
                .expect("write resolv.conf");
            let said = INSIDE
                .command(world.laptop(), "dig")
                .args(["+tries=1", "+time=8", "www.example.com"])
                .run()
                .expect("dig ends")
                .stdout();
            assert!(said.contains("status: SERVFAIL"), "{said}");
            assert!(said.contains("EDE: 22 (No Reachable Authority)"), "{said}");
            assert!(said.contains(reason), "{said}");
        }
    });
}
