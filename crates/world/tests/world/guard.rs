//! No world where a packet could leave.

use std::process::Command;

use stockade_world::guard::{NetnsId, Refusal, check};
use stockade_world::{Builder, Error, test_inside};

fn ip(arguments: &[&str]) {
    let status = Command::new("/bin/ip").args(arguments).status();
    assert!(status.expect("ip").success(), "ip {arguments:?}");
}

#[test]
fn the_machines_own_namespace_is_refused() {
    let here = NetnsId::current().unwrap();
    let refusal = check(&here).unwrap_err();
    assert!(matches!(refusal, Refusal::SameNamespace(_)), "{refusal}");
}

/// Even if the entry lied about where it came from, the machine's interfaces
/// give it away. (On a machine that has none, there is nothing to leave by.)
#[test]
fn the_machines_interfaces_are_refused() {
    let elsewhere = NetnsId::named("net:[1]".into());
    let interfaces = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    if interfaces.lines().count() > 3 {
        assert!(matches!(check(&elsewhere), Err(Refusal::Interfaces(_))));
    }
}

#[test]
fn a_fresh_namespace_is_accepted() {
    test_inside(&Builder::new(), |inside| {
        Builder::new().build(inside).map(drop)
    });
}

#[test]
fn a_fresh_namespace_with_another_interface_is_refused() {
    test_inside(&Builder::new(), |inside| {
        ip(&[
            "link", "add", "stray0", "type", "veth", "peer", "name", "stray1",
        ]);
        match Builder::new().build(inside) {
            Err(Error::Refused(Refusal::Interfaces(names))) => {
                assert!(names.contains(&"stray0".to_owned()), "{names:?}");
            }
            Err(other) => panic!("refused for another reason: {other}"),
            Ok(_) => panic!("a world was built beside a stray interface"),
        }
    });
}

/// A refused world has not touched the filesystem either.
#[test]
fn the_guard_comes_first() {
    test_inside(&Builder::new(), |inside| {
        ip(&[
            "link", "add", "stray0", "type", "veth", "peer", "name", "stray1",
        ]);
        let before = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(Builder::new().build(inside).is_err());
        let after = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert_eq!(before, after);
    });
}
