//! What a program inside does while the session is suspended, and its watch with it (P1).

use std::{fs, thread, time::Duration};

use stockade_world::{Laptop, PATIENCE, Running, Signal, eventually, test};

use super::f_files::said;
use super::p_git::{EVIL, REPOSITORY, ran};
use super::probe::Place;
use crate::support::standard;

const ATTACK: &str = include_str!("suspend.py");

fn attack(laptop: &Laptop, place: Place<'_>, way: &str) -> Running {
    said(laptop, Place::Outside, &format!("{REPOSITORY}; {EVIL}"));
    fs::write(laptop.workspace().join("suspend.py"), ATTACK).expect("write");
    let program = place.command(laptop, "python3");
    let running = program.args(["suspend.py", way]).spawn().expect("a start");
    running.expect("stops").expect("it has begun");
    eventually("it stops", PATIENCE, || is_stopped(&running)).expect(way);
    running
}

fn is_stopped(running: &Running) -> bool {
    let stat = format!("/proc/{}/stat", running.pid().as_raw_nonzero());
    fs::read_to_string(stat).is_ok_and(|stat| stat.contains(") T "))
}

fn beat(laptop: &Laptop) -> String {
    fs::read_to_string(laptop.workspace().join("beat")).unwrap_or_default()
}

fn is_planted(laptop: &Laptop) -> bool {
    let config = laptop.workspace().join(".git/config");
    fs::read_to_string(config).is_ok_and(|config| config.contains("fsmonitor"))
}

/// Outside, what was planted while the first process was stopped does run.
fn assert_effective(laptop: &Laptop, way: &str) {
    let _running = attack(laptop, Place::Outside, way);
    let before = beat(laptop);
    eventually("it is planted", PATIENCE, || {
        beat(laptop) != before && is_planted(laptop)
    })
    .expect(way);
    said(laptop, Place::Outside, "git status");
    assert!(ran(laptop), "positive control: {way}");
    // What is left of it has no directory any more when the next repository is made, and ends.
}

#[test]
fn p01_nothing_inside_runs_while_the_session_is_suspended() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for way in ["loop", "threads", "namespace"] {
            assert_effective(laptop, way);
            let running = attack(laptop, Place::Inside(&[]), way);
            let before = beat(laptop);
            assert_ne!(before, "", "{way}: it has begun");
            // As long as it takes outside, many times over.
            thread::sleep(Duration::from_millis(500));
            assert_eq!(beat(laptop), before, "{way}");
            assert!(!is_planted(laptop), "{way}");
            said(laptop, Place::Outside, "git status");
            assert!(!ran(laptop), "{way}");
            // What was stopped goes on with the session.
            running.signal(Signal::CONT).expect("it is there");
            running.expect("goes on").expect(way);
            eventually("it goes on", PATIENCE, || beat(laptop) != before).expect(way);
            running.signal(Signal::TERM).expect("it is there");
            let output = running.wait().expect("an end");
            assert!(output.stderr().contains("undone: "), "{output:?}");
            said(laptop, Place::Outside, "git status");
            assert!(!ran(laptop), "{way}");
        }
    });
}

#[test]
fn p01_what_wakes_up_in_a_suspended_session_ends_it() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for way in ["wakes", "exits", "dies", "orphans"] {
            assert_effective(laptop, way);
            let running = attack(laptop, Place::Inside(&[]), way);
            assert_eq!(beat(laptop), "", "{way}: later");
            let output = running.wait().expect("an end").expect_code(125);
            // It was awake, and may have been killed before it had planted.
            assert!(output.stderr().contains("suspended"), "{way}: {output:?}");
            assert!(!is_planted(laptop), "{way}: {output:?}");
            said(laptop, Place::Outside, "git status");
            assert!(!ran(laptop), "{way}: {output:?}");
        }
    });
}

/// Processes that continue each other all the time are either caught or the session ends.
#[test]
fn p01_programs_that_wake_each_other_do_not_outlast_a_suspension() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        assert_effective(laptop, "tangle");
        said(laptop, Place::Outside, &format!("{REPOSITORY}; {EVIL}"));
        fs::write(laptop.workspace().join("suspend.py"), ATTACK).expect("write");
        let program = Place::Inside(&[]).command(laptop, "python3");
        let running = program.args(["suspend.py", "tangle"]).spawn();
        let running = running.expect("a start");
        running.expect("stops").expect("it has begun");
        let is_settled = || is_stopped(&running) || running.has_ended().expect("a process");
        eventually("it stops or ends", PATIENCE, is_settled).expect("an end");
        // Who woke up after that is killed, and the session ends. On a busy machine that takes a moment.
        let is_quiet = || {
            let before = beat(laptop);
            thread::sleep(Duration::from_millis(500));
            beat(laptop) == before
        };
        eventually("nothing inside runs", PATIENCE, is_quiet).expect("an end");
        let is_clean = || !is_planted(laptop);
        eventually("it is undone", PATIENCE, is_clean).expect("an end");
        said(laptop, Place::Outside, "git status");
        assert!(!ran(laptop));
    });
}
