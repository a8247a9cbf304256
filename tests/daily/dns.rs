//! Name servers: the gate answers for all of them, but one that a rule names is asked itself.

use stockade_world::{DnsServer, Laptop, Output, Standard, World, test};

use crate::support::standard;

/// A name server of a laboratory, which knows what the host's resolver does not.
fn laboratory(world: &World) -> DnsServer {
    let server = world.host("intranet").dns(53).expect("listen");
    server
        .record("bench.lab.example", [10, 20, 0, 99])
        .record("www.example.com", [93, 184, 216, 34]);
    server
}

const SERVER: &str = "@10.20.0.5";

fn inside(laptop: &Laptop, options: &[&str], script: &str) -> Output {
    let run = laptop.stockade(["run", "--quiet"]).args(options);
    run.args(["--", "sh", "-c", script]).run().expect("its end")
}

fn dig(laptop: &Laptop, options: &[&str], question: &str) -> String {
    let script = format!("dig +short +time=6 +tries=1 {SERVER} {question}");
    inside(laptop, options, &script).stdout()
}

#[test]
fn a_name_server_that_a_rule_names_is_asked_itself() {
    test(&standard(), |world| {
        let (server, laptop) = (laboratory(world), world.laptop());
        let name = "bench.lab.example";
        for rule in [
            "10.20.0.5",
            "udp://10.20.0.5:53",
            "tcp://10.20.0.5:53",
            "10.20.0.5:50-60",
        ] {
            for by in ["+notcp", "+tcp"] {
                server.queries().clear();
                let answer = dig(laptop, &["--allow", rule], &format!("{by} {name}"));
                assert_eq!(answer, "10.20.0.99\n", "{rule} {by}");
                assert_eq!(server.queries_for(name), 1, "{rule} {by}");
            }
        }
        // Who is not named, or in a network only, is not asked; the host's resolver answers.
        server.queries().clear();
        for rule in [
            "10.20.0.0/24",
            "tcp://10.20.0.5:443",
            "icmp://10.20.0.5",
            "10.20.0.6",
        ] {
            assert_eq!(dig(laptop, &["--allow", rule], name), "", "{rule}");
            let answer = dig(laptop, &["--allow", rule], "www.example.com");
            assert_eq!(answer, "93.184.216.34\n", "{rule}");
        }
        assert_eq!(server.queries().count(), 0);
        assert!(world.dns().queries_for("www.example.com") > 0);
    });
}

/// The names are judged as everywhere, and its answers open what the answers of others do.
#[test]
fn a_named_server_is_asked_for_allowed_names_only_and_its_answers_are_judged() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let (server, laptop) = (laboratory(world), world.laptop());
        server.record("mirror.example.org", [151, 101, 1, 69]);
        let closed = [
            "--no-internet",
            "--allow",
            "udp://10.20.0.5:53",
            "--allow",
            "www.example.com",
        ];
        assert_eq!(dig(laptop, &closed, "mirror.example.org"), "");
        assert_eq!(dig(laptop, &closed, "x.mirror.example.org TXT"), "");
        assert_eq!(server.queries().count(), 0);
        let curl = "curl -sS --max-time 20 --resolve www.example.com:80:93.184.216.34 http://www.example.com/";
        let unpinned = inside(laptop, &closed, curl);
        assert_ne!(unpinned.code(), 0, "{unpinned:?}");
        let pinned = inside(
            laptop,
            &closed,
            &format!("dig {SERVER} www.example.com > /dev/null; {curl}"),
        );
        assert_eq!(pinned.stdout(), "hello from web\n", "{pinned:?}");
        // A private address stays closed, whoever says it.
        server.record("www.example.com", [192, 168, 10, 21]);
        let inward = "dig @10.20.0.5 www.example.com > /dev/null
            curl -sS --max-time 20 --resolve www.example.com:80:192.168.10.21 http://www.example.com/";
        assert_ne!(inside(laptop, &closed, inward).code(), 0);
    });
}

#[test]
fn a_named_server_that_does_not_answer_is_told() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let script = format!("dig +time=8 +tries=1 {SERVER} www.example.com");
        let output = inside(laptop, &["--allow", "10.20.0.5"], &script).stdout();
        assert!(output.contains("SERVFAIL"), "{output}");
        assert!(output.contains("10.20.0.5 did not answer"), "{output}");
    });
}

#[test]
fn explain_says_who_answers() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let explained = |words: &[&str]| {
            let explain = laptop.stockade(["explain"]).args(words);
            explain.run().expect("its end").stdout()
        };
        let named = explained(&["udp://10.20.0.5:53", "--allow", "10.20.0.5"]);
        assert!(named.contains("it is asked itself"), "{named}");
        let other = explained(&["udp://10.20.0.5:53", "--allow", "10.20.0.0/24"]);
        assert!(other.contains("from this machine's resolvers"), "{other}");
        let no_server = explained(&["tcp://10.20.0.5:443", "--allow", "tcp://10.20.0.5:443"]);
        assert!(!no_server.contains("resolvers"), "{no_server}");
    });
}
