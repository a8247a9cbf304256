//! Speaking to all at once: it stays inside, and says what to do instead.

use stockade_world::{Output, World, test};

use crate::support::standard;

/// The broadcast address of the laptop's network.
const SUBNET: &str = "192.168.10.255";

fn send(world: &World, options: &[&str], address: &str) -> Output {
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
    output.expect("stockade ends").expect_success()
}

#[test]
fn a_broadcast_to_the_subnet_is_denied_without_a_rule_to_add() {
    test(&standard(), |world| {
        // The program may be gone before anybody could look who it was.
        let said = send(world, &[], SUBNET).stderr();
        let said = said.replace(" to python3", "");
        let denied = "denied udp://192.168.10.255:7 (3 times): 192.168.10.255 is a broadcast \
                      address; broadcasts do not leave the jail: name the device's own address\n";
        assert!(said.contains(denied), "{said}");
        assert!(!said.contains("to allow"), "{said}");
    });
}

#[test]
fn a_rule_for_a_broadcast_address_is_said_to_change_nothing() {
    test(&standard(), |world| {
        let said = send(world, &["--allow", "udp://192.168.10.255:7"], SUBNET).stderr();
        for part in [
            "rule `udp://192.168.10.255:7` (--allow) changes nothing: 192.168.10.255 is a \
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

#[test]
fn a_broadcast_to_everybody_is_denied_without_a_rule_to_add() {
    test(&standard(), |world| {
        let said = send(world, &[], "255.255.255.255").stderr();
        assert!(said.contains("denied udp://255.255.255.255:7"), "{said}");
        let told = said.contains("(3 times)") && said.contains("name the device's own address");
        assert!(told && !said.contains("to allow"), "{said}");
    });
}
