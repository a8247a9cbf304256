//! Speaking to all at once: it stays inside, and says what to do instead.

use stockade_world::{World, test};

use crate::support::standard;

/// The broadcast address of the laptop's network.
const SUBNET: &str = "192.168.10.255";

/// What is said at the end, but for the program: it may be gone before it was found.
fn send(world: &World, options: &[&str], address: &str) -> String {
    let script = "
import socket, sys
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for _ in range(3):
    try:
        s.sendto(b'anybody', (sys.argv[1], 7))
    except OSError as error:
        print(error)
";
    let command = world.laptop().stockade(["run"]).args(options);
    let output = command.args(["--", "python3", "-c", script, address]).run();
    let said = output.expect("stockade ends").expect_success().stderr();
    match said.split_once("(python") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
            format!("{before}({}", rest.trim_start_matches(", "))
        }
        None => said,
    }
}

#[test]
fn a_broadcast_to_the_subnet_is_denied_without_a_rule_to_add() {
    test(&standard(), |world| {
        let said = send(world, &[], SUBNET);
        let denied = "denied udp://192.168.10.255:7 (3 times): 192.168.10.255 is a broadcast \
                      address; broadcasts do not leave the jail: name the device's own address\n";
        assert!(said.contains(denied), "{said}");
        assert!(!said.contains("to allow"), "{said}");
    });
}

#[test]
fn a_rule_for_a_broadcast_address_is_said_to_change_nothing() {
    test(&standard(), |world| {
        let said = send(world, &["--allow", "udp://192.168.10.255:7"], SUBNET);
        for part in [
            "rule `udp://192.168.10.255:7` (--allow) has no effect: 192.168.10.255 is a \
             broadcast address",
            "rule `udp://192.168.10.255:7` does not change that\n",
        ] {
            assert!(said.contains(part), "{said}");
        }
    });
}

#[test]
fn explain_says_the_same_of_all_that_go_to_many() {
    test(&standard(), |world| {
        for address in [SUBNET, "224.0.0.251", "255.255.255.255", "ff02::fb"] {
            let output = world.laptop().stockade(["explain", address]).run();
            let output = output.expect("stockade ends").expect_code(1);
            let said = output.stdout();
            assert!(said.contains(": name the device's own address\n"), "{said}");
            assert!(!said.contains("to allow it"), "{said}");
        }
    });
}

/// By the addresses of mDNS and SSDP, and by that of everybody; once each, however often.
#[test]
fn datagrams_to_many_are_told_without_a_rule_to_add() {
    test(&standard(), |world| {
        for (address, flow) in [
            ("224.0.0.251", "udp://224.0.0.251:7"),
            ("239.255.255.250", "udp://239.255.255.250:7"),
            ("255.255.255.255", "udp://255.255.255.255:7"),
            ("ff02::fb", "udp://[ff02::fb]:7"),
        ] {
            let said = send(world, &[], address);
            let denied = format!("stockade: denied {flow} (3 times): {address} is in ");
            assert!(said.starts_with(&denied), "{said}");
            assert!(said.contains(": name the device's own address\n"), "{said}");
            assert!(!said.contains("to allow"), "{said}");
        }
    });
}

#[test]
fn a_device_that_was_named_for_a_group_makes_no_difference() {
    test(&standard(), |world| {
        let script = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('192.0.2.1', 0))
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('192.0.2.1'))
s.sendto(b'anybody', ('224.0.0.251', 5353))
";
        let command = world
            .laptop()
            .stockade(["run", "--", "python3", "-c", script]);
        let output = command.run().expect("stockade ends").expect_success();
        let said = output.stderr();
        assert_eq!(
            said.matches("denied udp://224.0.0.251:5353").count(),
            1,
            "{said}"
        );
        assert!(!said.contains("times"), "{said}");
    });
}
