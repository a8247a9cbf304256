//! What is near: networks that the host knows by more than its default route (N3), and
//! everything private as long as no rule names it (N7).

use stockade_world::{Builder, HostSpec, Standard, World, test};

use super::probe::{INSIDE, INTERNET, Place, Prober, Watch, only_outside};
use crate::support::standard;

/// Public addresses of two sites, one behind the router, one on the cable.
const SITE: [&str; 6] = [
    "tcp://45.60.0.9:7",
    "udp://45.60.0.9:7",
    "icmp://45.60.0.9",
    "tcp://[2600:6000::9]:7",
    "udp://[2600:6000::9]:7",
    "icmp://2600:6000::9",
];
const NEIGHBOUR: [&str; 3] = ["tcp://45.80.0.9:7", "udp://45.80.0.9:7", "icmp://45.80.0.9"];

fn sites() -> Builder {
    standard()
        .host(HostSpec::new("site").at("45.60.0.9").at("2600:6000::9"))
        .host(
            HostSpec::new("neighbour")
                .at("192.168.10.30")
                .at("45.80.0.9")
                .on_lan(),
        )
}

/// Asserts that the targets are open in the running session, closed by `change`, and open
/// again when it is undone; and that they answer outside all the time.
fn closed_by(
    world: &mut World,
    session: &mut Prober,
    (host, targets): (&str, &[&str]),
    change: impl FnOnce(&mut World),
    undo: impl FnOnce(&mut World),
) {
    session.ask(targets).expect_answers();
    change(world);
    let watch = Watch::on(&[world.host(host)]);
    session.ask(targets).expect_denials();
    // A session that starts now sees the same.
    INSIDE.probe(world.laptop(), targets).expect_denials();
    watch.expect_nothing();
    Place::Outside
        .probe(world.laptop(), targets)
        .expect_answers();
    watch.expect_something();
    undo(world);
    session.ask(targets).expect_answers();
}

fn ip(lines: &'static [&'static str]) -> impl FnOnce(&mut World) {
    move |world| {
        for line in lines {
            world.laptop().ip(line).expect("ip");
        }
    }
}

fn serve_echo(world: &World, host: &str) {
    world.host(host).tcp_echo(7).expect("listen");
    world.host(host).udp_echo(7).expect("listen");
}

#[test]
fn n03_a_static_route_makes_its_network_lateral_while_the_session_runs() {
    test(&sites(), |world| {
        serve_echo(world, "site");
        let session = &mut INSIDE.prober(world.laptop());
        closed_by(
            world,
            session,
            ("site", &SITE),
            ip(&[
                "route add 45.60.0.0/16 via 192.168.10.1",
                "route add 2600:6000::/32 via fe80::1 dev eth0",
            ]),
            ip(&["route del 45.60.0.0/16", "route del 2600:6000::/32"]),
        );
        // Of a single host, and as wide as a route can be that is not half of everything.
        for (add, remove) in [
            (
                ip(&["route add 45.60.0.9 via 192.168.10.1"]),
                ip(&["route del 45.60.0.9"]),
            ),
            (
                ip(&["route add 0.0.0.0/2 via 192.168.10.1"]),
                ip(&["route del 0.0.0.0/2"]),
            ),
        ] {
            closed_by(world, session, ("site", &SITE[..3]), add, remove);
        }
    });
}

#[test]
fn n03_a_vpn_makes_its_networks_lateral_while_the_session_runs() {
    test(&sites(), |world| {
        serve_echo(world, "site");
        let session = &mut INSIDE.prober(world.laptop());
        closed_by(
            world,
            session,
            ("site", &SITE),
            |world| {
                let routes = ["45.60.0.0/16", "2600:6000::/32"];
                world
                    .add_interface("tun0", "10.8.0.2", 24, &routes)
                    .expect("a VPN");
            },
            ip(&["link del tun0"]),
        );
        // One that takes everything, in two halves, is the way to the internet.
        let halves = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"];
        world
            .add_interface("tun1", "10.8.0.3", 24, &halves)
            .expect("a VPN");
        session.ask(&SITE).expect_answers();
    });
}

#[test]
fn n03_a_table_of_its_own_makes_a_network_lateral() {
    test(&sites(), |world| {
        serve_echo(world, "site");
        let session = &mut INSIDE.prober(world.laptop());
        // In that table the route has no prefix at all: the rule has it.
        closed_by(
            world,
            session,
            ("site", &SITE[..3]),
            |world| {
                world
                    .add_interface("tun0", "10.8.0.2", 24, &[])
                    .expect("a VPN");
                ip(&[
                    "route add 0.0.0.0/0 via inet6 fe80::1 dev tun0 table 77",
                    "rule add to 45.60.0.0/16 lookup 77",
                ])(world);
            },
            ip(&["rule del to 45.60.0.0/16 lookup 77"]),
        );
    });
}

#[test]
fn n03_public_addresses_on_a_connected_subnet_are_lateral() {
    test(&sites(), |world| {
        serve_echo(world, "neighbour");
        let neighbour = world.host("neighbour");
        neighbour.ip("route add 45.80.0.0/24 dev eth0").expect("ip");
        let session = &mut INSIDE.prober(world.laptop());
        closed_by(
            world,
            session,
            ("neighbour", &NEIGHBOUR),
            ip(&["address add 45.80.0.5/24 dev eth0"]),
            ip(&["address del 45.80.0.5/24 dev eth0"]),
        );
    });
}

#[test]
fn n03_containers_on_a_bridge_of_the_host_are_lateral() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for (bridge, gateway, host, address) in [
            ("docker0", "172.17.0.1", "container", "172.17.0.2"),
            // Some engines are given public ranges.
            ("docker1", "45.70.0.1", "public", "45.70.0.2"),
        ] {
            world.add_bridge(bridge, gateway, 24).expect("a bridge");
            let spec = HostSpec::new(host).at(address).on_bridge(bridge);
            world.add_host(spec).expect("a container");
            serve_echo(world, host);
            let targets = ["tcp", "udp"].map(|kind| format!("{kind}://{address}:7"));
            only_outside(world, &[world.host(host)], INSIDE, &targets);
            let gateway = [format!("icmp://{gateway}"), format!("icmp://{address}")];
            only_outside(world, &[], INSIDE, &gateway);
        }
    });
}

/// Every private server of the standard world.
const PRIVATE: [&str; 13] = [
    "tcp://10.20.0.5:80",
    "tcp://10.20.0.5:7",
    "udp://10.20.0.5:7",
    "icmp://10.20.0.5",
    "tcp://[fd00:20::5]:7",
    "udp://[fd00:20::5]:7",
    "icmp://fd00:20::5",
    "tcp://192.168.10.21:7",
    "udp://192.168.10.21:7",
    "icmp://192.168.10.21",
    "tcp://169.254.169.254:80",
    "icmp://169.254.169.254",
    "tcp://[fd00:ec2::254]:80",
];

#[test]
fn n07_without_a_rule_nothing_private_is_open() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let hosts = ["intranet", "device", "metadata"].map(|name| world.host(name));
        only_outside(world, &hosts, INSIDE, &PRIVATE);
        // Rules for something else open nothing of it, however near.
        let beside = [
            "tcp://10.20.0.5:81",
            "10.20.0.4",
            "192.168.10.20",
            "[fd00:20::4]:7",
        ];
        only_outside(world, &hosts, Place::Inside(&beside), &PRIVATE);
    });
}

#[test]
fn n07_a_rule_opens_what_it_says_and_no_more() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for target in PRIVATE {
            let answers = Place::Inside(&[target]).probe(world.laptop(), &PRIVATE);
            let (others, named) = answers.without(&[target]);
            named.expect_answers();
            others.expect_denials();
        }
    });
}

#[test]
fn n07_an_empty_rule_is_refused_not_taken_for_everything() {
    test(&standard(), |world| {
        let marker = world.laptop().workspace().join("ran");
        for rule in ["", " ", "*", "0/0", "/0", "::", ":", "tcp://", "[]"] {
            let touch = ["run", "--allow", rule, "--", "touch", "ran"];
            world
                .laptop()
                .stockade(touch)
                .run()
                .expect("run")
                .expect_code(125);
            assert!(!marker.exists(), "{rule:?}");
        }
        let touch = ["run", "--", "touch", "ran"];
        world
            .laptop()
            .stockade(touch)
            .run()
            .expect("run")
            .expect_success();
        assert!(marker.exists());
    });
}

/// The gate's listeners serve a port for all addresses: what was never judged gets nowhere by them.
#[test]
fn n07_a_way_to_one_host_is_none_to_another_at_the_same_port() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let watch = Watch::on(&[world.host("intranet")]);
        let mut prober = INSIDE.prober(world.laptop());
        for _ in 0..2 {
            prober
                .ask(&INTERNET)
                .expect("an answer", |it| it == "answer");
            let intranet = [
                "tcp://10.20.0.5:7",
                "udp://10.20.0.5:7",
                "tcp://[fd00:20::5]:7",
            ];
            let denied = |it: &str| matches!(it, "EHOSTUNREACH" | "EACCES");
            prober.ask(&intranet).expect("a denial", denied);
        }
        prober.end();
        watch.expect_nothing();
        Place::Outside.probe(world.laptop(), &["tcp://10.20.0.5:7"]);
        watch.expect_something();
    });
}
