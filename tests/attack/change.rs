//! Changing the jail from inside (N14): as the command itself, and with every capability of a
//! nested user namespace.

use stockade_world::{Shape, Standard, World, test};

use super::probe::{INSIDE, INTERNET, PROBE, Place, Prober, Watch};
use crate::support::standard;

const CHANGE: &str = include_str!("change.py");

/// Ways to run a program: as it is, and as root of a namespace below.
const AGENT: &str = "";
const NESTED: &str = "unshare --user --map-root-user";
const NESTED_WITH_PROC: &str = "unshare --user --map-root-user --mount --pid --fork --mount-proc";

const PRIVATE: [&str; 3] = [
    "tcp://10.20.0.5:7",
    "udp://10.20.0.5:7",
    "tcp://[fd00:20::5]:7",
];

/// Runs `change.py` in each of these ways, then the probe, in one session.
fn changes_then_probe(world: &World, place: Place<'_>, ways: &[&str]) -> Prober {
    let python = "/usr/bin/python3 -IS -c";
    let changes: String = ways
        .iter()
        .map(|way| format!("{way} {python} \"$1\";"))
        .collect();
    let script = format!("{changes} exec {python} \"$2\"");
    let shell = place.command(world.laptop(), "bash");
    Prober::start(shell.args(["-c", &script, "attack", CHANGE, PROBE]))
}

#[test]
fn n14_nothing_inside_can_change_the_jail() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let ways = [AGENT, NESTED, NESTED_WITH_PROC];
        let mut session = changes_then_probe(world, Place::Nested, &ways);
        for way in ways {
            let refused = |outcome: &str| {
                matches!(outcome, "EPERM" | "EACCES" | "EROFS" | "EAFNOSUPPORT")
                    || outcome.contains("not permitted")
            };
            let changes = session.results();
            changes.expect(&format!("a refusal ({way})"), refused);
        }
        // And all is as it was.
        session.ask(&INTERNET).expect_answers();
        session.ask(&PRIVATE).expect_denials();
        session.end();
        assert_eq!(net.intranet_echo.connections().count(), 0);
        assert_eq!(net.intranet_udp_echo.datagrams().count(), 0);

        // Where it is root's own, every attempt succeeds.
        let own = laptop
            .command("unshare")
            .args(["--user", "--map-root-user", "--net"]);
        let own = own.args(["/usr/bin/python3", "-IS", "-c", CHANGE]);
        Prober::start(own)
            .results()
            .expect("success", |outcome| outcome == "ok");
        Place::Outside.probe(laptop, &PRIVATE).expect_answers();
    });
}

#[test]
fn n14_nothing_inside_can_change_the_jail_in_a_container() {
    test(&standard().shape(Shape::Container), |world| {
        let _net = Standard::serve(world).expect("servers");
        let mut session = changes_then_probe(world, INSIDE, &[AGENT]);
        session
            .results()
            .expect("a refusal", |outcome| outcome != "ok");
        session.ask(&INTERNET).expect_answers();
        session.ask(&PRIVATE).expect_denials();
    });
}

/// A network of one's own inside leads nowhere, and cannot be joined to the jail.
#[test]
fn n14_a_nested_network_leads_nowhere() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let join = "ip link add n14a type veth peer name n14b netns $1 && echo joined";
        // The network to join is that of another process: of the jail …
        let inside =
            format!("unshare --user --map-root-user --net bash -c '{join}' join $$; echo end");
        let inside = INSIDE
            .command(laptop, "bash")
            .args(["-c", &inside])
            .run()
            .expect("run");
        assert_eq!(inside.stdout(), "end\n", "{inside:?}");
        assert!(inside.stderr().contains("not permitted"), "{inside:?}");
        // … or, as a control, of somebody with the same owner.
        let outside = format!("unshare --net bash -c '{join}' join $$; echo end");
        let own = laptop
            .command("unshare")
            .args(["--user", "--map-root-user", "--net"]);
        let outside = own.args(["bash", "-c", &outside]).run().expect("run");
        assert_eq!(outside.stdout(), "joined\nend\n", "{outside:?}");

        let nested = INSIDE
            .command(laptop, "unshare")
            .args(["--user", "--map-root-user", "--net"]);
        let nested = nested.args(["/usr/bin/python3", "-IS", "-c", PROBE]);
        let watch = Watch::on(&[world.host("intranet"), world.host("web")]);
        Prober::start(nested)
            .ask(&[&PRIVATE[..], &INTERNET].concat())
            .expect_none();
        watch.expect_nothing();
        INSIDE.probe(laptop, &INTERNET).expect_answers();
    });
}

#[test]
fn n14_the_gates_own_ports_cannot_be_talked_to() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        for host in ["web", "intranet"] {
            world.host(host).tcp_echo(1).expect("listen");
            world.host(host).udp_echo(1).expect("listen");
        }
        let mut session = INSIDE.prober(laptop);
        let own = [
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
            "192.0.2.1",
            "[2001:db8::1]",
            "0.0.0.0",
        ];
        let own: Vec<String> = own
            .iter()
            .flat_map(|address| ["tcp", "udp"].map(|kind| format!("{kind}://{address}:1")))
            .collect();
        session.ask(&own).expect("a refusal", |outcome| {
            matches!(outcome, "ECONNREFUSED" | "EHOSTUNREACH" | "EACCES")
        });
        // With another destination it is a port like any other.
        let foreign = |address: &str| ["tcp", "udp"].map(|kind| format!("{kind}://{address}:1"));
        session
            .ask(&["tcp://93.184.216.34:1", "tcp://[2606:2800:220:1::34]:1"])
            .expect_answers();
        let watch = Watch::on(&[world.host("intranet")]);
        session.ask(&foreign("10.20.0.5")).expect_denials();
        session.ask(&foreign("[fd00:20::5]")).expect_denials();
        watch.expect_nothing();
        Place::Outside
            .probe(laptop, &foreign("10.20.0.5"))
            .expect_answers();
        session.ask(&INTERNET).expect_answers();
    });
}
