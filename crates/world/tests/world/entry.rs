//! Getting in, failing, running out of time.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};
use std::{fs, thread};

use stockade_world::{Builder, Login, test, test_inside};

fn message_of(result: Result<(), Box<dyn std::any::Any + Send>>) -> String {
    let panic = result.expect_err("the outer process should have panicked");
    panic
        .downcast_ref::<String>()
        .cloned()
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

#[test]
fn a_failing_body_fails_the_test_and_shows_its_output() {
    let outcome = catch_unwind(|| {
        test(&Builder::new(), |_| {
            println!("said before failing");
            assert_eq!(1 + 1, 3, "arithmetic in the world");
        });
    });
    let message = message_of(outcome);
    assert!(message.contains("said before failing"), "{message}");
    assert!(message.contains("arithmetic in the world"), "{message}");
}

#[test]
fn an_error_of_the_body_fails_the_test() {
    let outcome = catch_unwind(|| {
        test(&Builder::new(), |_| Err::<(), _>("a plain error"));
    });
    assert!(message_of(outcome).contains("a plain error"));
}

#[test]
fn a_body_that_takes_too_long_is_killed() {
    let started = Instant::now();
    let outcome = catch_unwind(|| {
        let limit = Duration::from_millis(1500);
        test_inside(&Builder::new().limit(limit), |_inside| {
            println!("began");
            thread::sleep(Duration::from_secs(60));
        });
    });
    let message = message_of(outcome);
    assert!(message.contains("killed after 1.5s"), "{message}");
    assert!(message.contains("began"), "{message}");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn inside_everybody_is_an_ordinary_user() {
    test_inside(&Builder::new(), |_inside| {
        assert_eq!(rustix::process::getuid().as_raw(), 1000);
        assert_eq!(rustix::process::getgid().as_raw(), 1000);
        let map = fs::read_to_string("/proc/self/uid_map").unwrap();
        let fields: Vec<&str> = map.split_whitespace().collect();
        assert_eq!(fields[0], "1000");
        assert_ne!(fields[1], "0", "real root must have been given up");
        assert_eq!(fields[2], "1");
    });
}

#[test]
fn root_can_stay_root_over_its_world() {
    test(&Builder::new().login(Login::Root), |world| {
        let laptop = world.laptop();
        let output = laptop.shell("id -u; grep CapEff /proc/self/status").run();
        let text = output.unwrap().expect_success().stdout();
        assert!(text.starts_with("0\n"), "{text}");
        assert!(!text.contains("CapEff:\t0000000000000000"), "{text}");
        assert_eq!(laptop.home().to_str(), Some("/root"));
        // The machine's disk stays as it is, even for uid 0.
        let output = laptop.shell("touch /usr/planted").run().unwrap();
        assert!(
            output.stderr().contains("Read-only file system"),
            "{output:?}"
        );
    });
}
