//! Nothing left behind, and the detector detects.

use std::time::Duration;

use stockade_world::{Builder, test};

const SOON: Duration = Duration::from_millis(300);
const LATER: Duration = Duration::from_secs(5);

#[test]
fn a_clean_program_leaves_nothing() {
    test(&Builder::new(), |world| {
        let before = world.snapshot().unwrap();
        let line = "touch /tmp/x; echo > ~/project/mine; rm /tmp/x; \
                    unshare --user --net --mount --map-root-user true";
        world.laptop().shell(line).run().unwrap().expect_success();
        world.wait_until_restored(&before, LATER).unwrap();
    });
}

#[test]
fn every_kind_of_leftover_is_found() {
    test(&Builder::new(), |world| {
        let before = world.snapshot().unwrap();
        let line = "touch /tmp/dropped /dev/shm/dropped ~/.config/dropped; \
                    unshare --user --net --map-root-user sleep 31 >/dev/null 2>&1 & \
                    sleep 0.1";
        world.laptop().shell(line).run().unwrap().expect_success();
        world.laptop().ip("link add left0 type bridge").unwrap();
        world.laptop().ip("rule add pref 77 table 77").unwrap();
        world.laptop().ip("route add 10.1.2.0/24 dev eth0").unwrap();
        let error = world.wait_until_restored(&before, SOON).unwrap_err();
        let error = error.to_string();
        for expected in [
            "+ file /tmp/dropped",
            "+ file /dev/shm/dropped",
            "+ file /home/dev/.config/dropped",
            "sleep",
            "+ namespace net:[",
            "+ namespace user:[",
            "left0",
            "77:",
            "10.1.2.0/24",
        ] {
            assert!(error.contains(expected), "{expected} not in {error}");
        }
    });
}

/// Orphans are reaped by the world's first process, as by any init.
#[test]
fn an_orphan_that_ended_is_no_leftover() {
    test(&Builder::new(), |world| {
        let before = world.snapshot().unwrap();
        let line = "(sleep 0.05 &) >/dev/null 2>&1";
        world.laptop().shell(line).run().unwrap().expect_success();
        world.wait_until_restored(&before, LATER).unwrap();
    });
}

#[test]
fn what_should_be_left_can_be_named() {
    test(&Builder::new(), |world| {
        let before = world.snapshot().unwrap().ignoring("/.local/state/");
        let line = "touch ~/.local/state/log";
        world.laptop().shell(line).run().unwrap().expect_success();
        world.wait_until_restored(&before, LATER).unwrap();
    });
}
