//! Names that point inward: the address that is dialled is judged, whatever it was called
//! (N13).

use std::net::IpAddr;

use stockade_world::{Builder, HostSpec, World, test};

use super::probe::{INSIDE, INTERNET, Place, Watch, dig};
use crate::support::standard;

/// Names of a hostile zone, and where they point to.
const INWARD: [(&str, &str, u16); 6] = [
    ("ten.evil.example", "10.20.0.5", 80),
    ("metadata.evil.example", "169.254.169.254", 80),
    ("loopback.evil.example", "127.0.0.1", 5432),
    ("lan.evil.example", "192.168.10.5", 5432),
    ("six.evil.example", "fd00:20::5", 80),
    ("nat64.evil.example", "64:ff9b::10.20.0.5", 80),
];

/// With the internet closed but for all these names.
const ALLOWED: Place<'_> = Place::Closed(&["*.evil.example", "flip.example", "www.example.com"]);

fn hostile_zone() -> Builder {
    standard().host(HostSpec::new("nat64").at("64:ff9b::10.20.0.5"))
}

/// The servers that the zone points to: those of others, and those of the laptop itself.
fn serve_inward(world: &World) {
    for name in ["intranet", "metadata", "nat64"] {
        world.host(name).tcp_echo(80).expect("listen");
    }
    world.host("web").tcp_echo(7).expect("listen");
    world.host("web").tcp_echo(80).expect("listen");
    world.host("web").udp_echo(7).expect("listen");
}

#[test]
fn n13_a_name_that_points_inward_opens_nothing() {
    test(&hostile_zone(), |world| {
        serve_inward(world);
        let own = world.laptop().tcp_echo(5432).expect("listen");
        for (name, address, _) in INWARD {
            let address: IpAddr = address.parse().expect("address");
            world.dns().record(name, address);
        }
        let targets = INWARD.map(|(name, _, port)| format!("tcp://{name}:{port}"));
        let watch = Watch::on(&["intranet", "metadata", "nat64"].map(|name| world.host(name)));
        for place in [INSIDE, ALLOWED] {
            place.probe(world.laptop(), &targets).expect_none();
            // The names were resolved: it is the address that was refused.
            for (name, address, _) in INWARD {
                let kind = if address.contains(':') { "AAAA" } else { "A" };
                let told = dig(world, place, &[name, kind]).stdout();
                assert_eq!(told.trim().parse(), address.parse::<IpAddr>(), "{name}");
            }
        }
        watch.expect_nothing();
        assert_eq!(own.connections().count(), 0);
        INSIDE.probe(world.laptop(), &INTERNET).expect_answers();
        let by_name = ["tcp", "udp"].map(|kind| format!("{kind}://www.example.com:7"));
        ALLOWED.probe(world.laptop(), &by_name).expect_answers();

        Place::Outside
            .probe(world.laptop(), &targets)
            .expect_answers();
        watch.expect_something();
        assert_eq!(own.connections().count(), 2);
    });
}

/// Where a name may flip to, each with a server.
const FLIPS: [&str; 8] = [
    "10.20.0.5",
    "127.0.0.1",
    "169.254.169.254",
    "192.168.10.5",
    "fd00:20::5",
    "fd00:ec2::254",
    "::1",
    "64:ff9b::10.20.0.5",
];

#[test]
fn n13_a_name_that_flips_between_two_look_ups_opens_nothing() {
    test(&hostile_zone(), |world| {
        serve_inward(world);
        let own = world.laptop().tcp_echo(80).expect("listen");
        let hosts = ["intranet", "metadata", "nat64"].map(|name| world.host(name));
        let watch = Watch::on(&hosts);
        let targets = ["tcp://flip.example:80"];
        for inward in FLIPS.map(|inward| inward.parse::<IpAddr>().expect("address")) {
            let web = world.host("web");
            let web = if inward.is_ipv4() { web.v4() } else { web.v6() };
            // Of one family at a time: the other one has nothing to fall back on.
            let flip = || world.dns().rotate("flip.example", &[&[web][..], &[inward]]);
            for place in [INSIDE, ALLOWED] {
                flip();
                let session = &mut place.prober(world.laptop());
                session.ask(&targets).expect_answers();
                session.ask(&targets).expect_none();
                session.ask(&targets).expect_answers();
            }
            watch.expect_nothing();
            assert_eq!(own.connections().count(), 0, "{inward}");
        }
        for inward in FLIPS.map(|inward| inward.parse::<IpAddr>().expect("address")) {
            world.dns().rotate("flip.example", &[&[inward]]);
            Place::Outside
                .probe(world.laptop(), &targets)
                .expect_answers();
        }
        watch.expect_something();
        assert_eq!(own.connections().count(), 3);
    });
}

/// Both at once: the internet's address of the answer is open, the inner one is not.
#[test]
fn n13_an_answer_with_an_inner_address_among_others_opens_the_others() {
    test(&hostile_zone(), |world| {
        serve_inward(world);
        let name = "mixed.evil.example";
        for address in ["10.20.0.5", "93.184.216.34", "127.0.0.1"] {
            let address: IpAddr = address.parse().expect("address");
            world.dns().record(name, address);
        }
        let targets = [
            "tcp://mixed.evil.example:80",
            "tcp://10.20.0.5:80",
            "tcp://93.184.216.34:80",
        ];
        let watch = Watch::on(&[world.host("intranet")]);
        let session = &mut ALLOWED.prober(world.laptop());
        session.ask(&targets[..1]);
        session.ask(&targets[1..2]).expect_denials();
        session.ask(&targets[2..]).expect_answers();
        watch.expect_nothing();
    });
}
