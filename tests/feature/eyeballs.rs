//! A name with addresses of both families: the program takes the one that works, as soon
//! as it does outside.

use std::time::{Duration, Instant};

use stockade_world::{DeadEnd, Standard, World, test};

use super::place::Place;
use crate::support::standard;

/// curl gives IPv6 a head start of 200 ms, and waits for no answer longer than that. A program
/// that waits does so for minutes; a busy machine takes some seconds.
const WITHOUT_WAITING: Duration = Duration::from_secs(10);

const DEAD_V6: &str = "2a00:1450:4001::66";
const DEAD_V4: &str = "198.51.44.66";

/// Fetches a page by name, in both places, and checks that nobody had to wait.
fn fetch(world: &World, name: &str) {
    for place in [Place::Outside, Place::Inside(&[])] {
        let start = Instant::now();
        let output = place
            .command(world.laptop(), "curl")
            .args(["-sS", "--max-time", "20", &format!("http://{name}/")])
            .run()
            .expect("curl ends")
            .expect_success();
        assert_eq!(output.stdout(), "hello from web\n", "{place:?}");
        let took = start.elapsed();
        assert!(took < WITHOUT_WAITING, "{place:?}: {took:?}");
    }
}

/// A world in which `dual.example.com` has these addresses.
fn with_addresses(v4: &'static str, v6: &'static str, dead: DeadEnd) {
    let builder = standard().dead_end(DEAD_V6, dead);
    test(&builder, |world| {
        let _net = Standard::serve(world).expect("servers");
        let address = |text: &str| text.parse::<std::net::IpAddr>().expect("an address");
        world.dns().record("dual.example.com", address(v4));
        world.dns().record("dual.example.com", address(v6));
        fetch(world, "dual.example.com");
    });
}

#[test]
fn a_silent_ipv6_address_gives_way_to_ipv4() {
    with_addresses("93.184.216.34", DEAD_V6, DeadEnd::BlackHole);
}

#[test]
fn an_unreachable_ipv6_address_gives_way_to_ipv4() {
    with_addresses("93.184.216.34", DEAD_V6, DeadEnd::Unreachable);
}

#[test]
fn a_forbidden_ipv6_address_gives_way_to_ipv4() {
    with_addresses("93.184.216.34", DEAD_V6, DeadEnd::Prohibited);
}

#[test]
fn a_silent_ipv4_address_gives_way_to_ipv6() {
    with_addresses(DEAD_V4, "2606:2800:220:1::34", DeadEnd::BlackHole);
}

#[test]
fn without_ipv6_the_ipv4_address_is_taken_at_once() {
    test(&standard().without_ipv6(), |world| {
        let _net = Standard::serve(world).expect("servers");
        fetch(world, "www.example.com");
    });
}
