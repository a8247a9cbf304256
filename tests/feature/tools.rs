//! Tools that people look at networks with.

use std::time::{Duration, Instant};

use stockade_world::{Builder, DeadEnd, Output, Shape, World, test};

use super::daemon::Daemon;
use super::place::Place;
use crate::support::standard;

/// Far below the patience of [`ping`], and far above what a busy machine needs.
const SOON: Duration = Duration::from_secs(10);

fn ping(world: &World, rules: &[&str], arguments: &[&str]) -> Output {
    Place::Inside(rules)
        .command(world.laptop(), "ping")
        .args(["-c", "2", "-i", "0.01", "-w", "20"])
        .args(arguments)
        .run()
        .expect("ping ends")
}

#[test]
fn ping_gets_its_answers_over_both_families() {
    test(&standard(), |world| {
        for target in ["93.184.216.34", "2606:2800:220:1::34", "www.example.com"] {
            let output = ping(world, &[], &[target]).expect_success();
            assert!(output.stdout().contains("2 received"), "{output:?}");
        }
        for target in ["93.184.216.34", "2606:2800:220:1::34"] {
            // In 21 pieces each, of which a busy machine may lose one.
            let large = ["-c", "5", "-s", "30000", target];
            let output = ping(world, &[], &large).expect_success();
            assert!(output.stdout().contains("30008 bytes from"), "{output:?}");
        }
    });
}

#[test]
fn ping_hears_at_once_that_a_target_is_denied_unless_a_rule_allows_it() {
    test(&standard(), |world| {
        for (target, rule) in [
            ("10.20.0.5", "icmp://10.20.0.5"),
            ("fd00:20::5", "icmp://fd00:20::5"),
        ] {
            let start = Instant::now();
            let output = ping(world, &[], &[target]);
            assert_eq!(output.code(), 1, "{output:?}");
            assert!(start.elapsed() < SOON, "{output:?}");
            let fix = format!("to allow it: --allow {rule}\n");
            assert!(output.stderr().contains(&fix), "{output:?}");
            ping(world, &[rule], &[target]).expect_success();
        }
    });
}

/// The router complains about both pings, outside and inside. A kernel that hands an error to a program
/// may forget the next one, if that comes in the same moment: so a second time and a third are right, too.
fn complains(world: &World, target: &str, complaint: &str) {
    for place in [Place::Outside, Place::Inside(&[])] {
        let attempt = || {
            let command = place.command(world.laptop(), "ping");
            let output = command.args(["-c", "2", "-i", "0.01", "-W", "2", target]);
            output.run().expect("ping ends").expect_code(1)
        };
        let is_complete = |output: &Output| {
            let said = |number| format!("icmp_seq={number} {complaint}");
            (1..=2).all(|number| output.stdout().contains(&said(number)))
        };
        let mut output = attempt();
        for _ in 0..2 {
            if !is_complete(&output) {
                output = attempt();
            }
        }
        assert!(is_complete(&output), "{place:?}: {output:?}");
    }
}

#[test]
fn ping_hears_that_a_host_is_unreachable() {
    test(&standard(), |world| {
        complains(world, "198.51.44.67", "Destination Host Unreachable");
        complains(world, "2600:3c00::1", "Destination unreachable: No route");
    });
}

#[test]
fn ping_hears_that_a_firewall_is_in_the_way() {
    let builder = standard().dead_end("198.51.44.68", DeadEnd::Prohibited);
    test(&builder, |world| {
        complains(world, "198.51.44.68", "Packet filtered");
    });
}

/// Where `ping` cannot work, it says so soon.
fn refuses_to_ping(world: &World, why: &str) {
    let start = Instant::now();
    let output = ping(world, &[], &["93.184.216.34"]);
    assert_ne!(output.code(), 0, "{output:?}");
    let said = output.stdout() + &output.stderr();
    assert!(said.contains(why), "{output:?}");
    assert!(start.elapsed() < SOON, "{output:?}");
}

#[test]
fn where_the_host_forbids_ping_it_is_said_at_once() {
    test(&standard().without_ping(), |world| {
        refuses_to_ping(world, "Packet filtered");
    });
}

#[test]
fn where_a_container_forbids_ping_it_is_said_at_once() {
    let container: Builder = standard().shape(Shape::Container);
    test(&container, |world| {
        refuses_to_ping(world, "Operation not permitted");
    });
}

#[test]
fn iperf3_measures_both_ways_and_both_protocols() {
    test(&standard(), |world| {
        let web = world.host("web");
        let _server = Daemon::start(web, 5201, "iperf3", &["--server"]);
        for manner in [
            &["--bytes", "20M"][..],
            &["--bytes", "20M", "--reverse"],
            &["--bytes", "20M", "--parallel", "4"],
            &["--bytes", "2M", "--udp", "--bitrate", "200M"],
        ] {
            let client = Place::Inside(&[]).command(world.laptop(), "iperf3");
            let arguments = ["--client", "www.example.com", "--connect-timeout", "5000"];
            let output = client.args(arguments).args(manner).run();
            let output = output.expect("iperf3 ends").expect_success();
            assert!(output.stdout().contains("receiver"), "{output:?}");
        }
    });
}
