//! Packets of which no flow can be made: other protocols, routing headers, link-local addresses
//! (P11).

use stockade_world::{Packet, Protocol, Standard, test};

use super::probe::{INSIDE, Place, Watch};
use crate::log::{lines, of};
use crate::support::standard;

const SEND: &str = include_str!("others.py");

#[test]
fn p11_other_protocols_and_routing_headers_are_refused_at_once_and_logged() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let watch = Watch::on(&[world.host("intranet")]);
        let output = INSIDE.python(world.laptop(), SEND).run().expect("it ends");
        let told = output.stdout();
        for (what, expected) in [
            ("udp-lite v4", "EHOSTUNREACH"),
            ("udp-lite v6", "EACCES"),
            ("tcp by a route", "EACCES"),
            ("udp by a route", "EACCES"),
            ("udp v4", "answer"),
            ("udp v6", "answer"),
        ] {
            let line = format!("{what} {expected} at once\n");
            assert!(told.contains(&line), "{line}: {told}");
        }
        // Without a route to link-local addresses no packet is made, and nothing logged.
        for device in ["lo", "stockade0"] {
            let line = format!("udp link-local by {device} E");
            assert!(told.contains(&line), "{line}: {told}");
        }
        assert!(
            !told.contains("silence") && !told.contains("late"),
            "{told}"
        );
        watch.expect_nothing();
        let lines = lines(world.laptop());
        let denied = of(&lines, "deny").into_iter();
        let denied: Vec<_> = denied.filter(|line| line["kind"] == "packet").collect();
        for what in [
            "udp-lite://93.184.216.34:7",
            "udp-lite://[2606:2800:220:1::34]:7",
            "tcp://[fd00:20::5]:7",
            "udp://[fd00:20::5]:7",
        ] {
            assert!(
                denied.iter().any(|line| line["what"] == what),
                "{what}: {denied:?}"
            );
        }
        // Outside, packets of that protocol leave.
        let capture = world.host("web").capture().expect("capture");
        let told = Place::Outside
            .python(world.laptop(), SEND)
            .run()
            .expect("it ends");
        assert!(told.stdout().contains("udp v4 answer"), "{told:?}");
        let lite = |packet: &Packet| packet.protocol == Protocol::Other(136);
        capture.wait_for(2, lite).expect("packets of UDP-Lite");
    });
}
