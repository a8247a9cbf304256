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
        INSIDE.probe(world.laptop(), &targets).expect_none();
        // The names were resolved: it is the address that was refused.
        for (name, address, _) in INWARD {
            let kind = if address.contains(':') { "AAAA" } else { "A" };
            let told = dig(world, INSIDE, &[name, kind]).stdout();
            assert_eq!(told.trim().parse(), address.parse::<IpAddr>(), "{name}");
        }
        watch.expect_nothing();
        assert_eq!(own.connections().count(), 0);
        INSIDE.probe(world.laptop(), &INTERNET).expect_answers();

        Place::Outside
            .probe(world.laptop(), &targets)
            .expect_answers();
        watch.expect_something();
        assert_eq!(own.connections().count(), 2);
    });
}

#[test]
fn n13_a_name_that_flips_between_two_look_ups_opens_nothing() {
    test(&hostile_zone(), |world| {
        serve_inward(world);
        let own = world.laptop().tcp_echo(80).expect("listen");
        let hosts = ["intranet", "metadata"].map(|name| world.host(name));
        let flip = |inward: &str| {
            let inward: IpAddr = inward.parse().expect("address");
            let web = world.host("web").v4();
            world.dns().rotate("flip.example", &[&[web][..], &[inward]]);
        };
        let targets = ["tcp://flip.example:80"];
        for inward in ["10.20.0.5", "127.0.0.1", "169.254.169.254", "192.168.10.5"] {
            let watch = Watch::on(&hosts);
            flip(inward);
            let session = &mut INSIDE.prober(world.laptop());
            session.ask(&targets).expect_answers();
            session.ask(&targets).expect_none();
            session.ask(&targets).expect_answers();
            watch.expect_nothing();
            flip(inward);
            let session = &mut Place::Outside.prober(world.laptop());
            session.ask(&targets).expect_answers();
            let before = own.connections().count();
            session.ask(&targets).expect_answers();
            let reached = hosts.iter().any(|host| host.v4().to_string() == inward);
            assert_eq!(own.connections().count() - before, usize::from(!reached));
        }
    });
}
