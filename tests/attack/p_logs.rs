//! Links in the place of git's logs (P1). Git appends lines there with text that a session can choose, such as
//! the name of a person. By a link, they get into a file that a shell runs.

use stockade_world::{Laptop, PATIENCE, eventually, test};

use super::f_files::said;
use super::p_git::{REPOSITORY, session};
use super::probe::Place;
use crate::support::standard;

/// A remote with a branch that moves, and what a shell runs.
const REMOTE: &str = "rm -rf ~/origin.git ~/other ~/ran; git init -q --bare ~/origin.git
    git config user.name u; git config user.email u@e; git commit -q --allow-empty -m base
    git remote add origin ~/origin.git; git push -q -u origin HEAD:main
    git clone -q -b main ~/origin.git ~/other; echo '# mine' > ~/.bashrc";
/// Somebody else pushes, and the user fetches. Then a shell starts.
const FETCH: &str =
    "git -C ~/other -c user.name=o -c user.email=o@e commit -q --allow-empty -m more
    git -C ~/other push -q; git fetch -q; bash --rcfile ~/.bashrc -ic true 2>/dev/null; true";
const NAME: &str = "git config user.name 'x $(touch ~/ran)'";
const TARGET: &str = "/home/dev/.bashrc";

fn outside(laptop: &Laptop, script: &str) -> String {
    said(laptop, Place::Outside, script)
}

fn has_run(laptop: &Laptop) -> bool {
    outside(laptop, "test -e ~/ran && echo ran; true") == "ran\n"
}

fn start_anew(laptop: &Laptop) {
    outside(laptop, &format!("{REPOSITORY}; {REMOTE}"));
}

/// `count` links in a new directory in the place of the logs of a remote's branches, one of them at that of `main`.
fn links(count: usize) -> String {
    format!(
        "{NAME}; logs=.git/logs/refs/remotes/origin; mkdir -p new; ln -s {TARGET} new/main
         for i in $(seq 2 {count}); do ln -s {TARGET} new/l$i; done; mv $logs old; mv new $logs"
    )
}

#[test]
fn p01_logs_are_no_links_while_the_session_runs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        start_anew(laptop);
        outside(laptop, &format!("{}; {FETCH}", links(1)));
        assert!(has_run(laptop), "positive control");
        for count in [1, 10, 70, 300] {
            start_anew(laptop);
            let script = format!("{}; echo planted; read", links(count));
            let words = ["run", "--", "bash", "-c", &script];
            let mut running = laptop.stockade(words).spawn().expect("a session");
            running.expect("planted").expect("it is planted");
            let is_there = || {
                let log = outside(laptop, "find .git/logs -type l | head -n 1");
                !log.is_empty()
            };
            eventually("it is put back", PATIENCE, || !is_there()).expect("put back");
            outside(laptop, FETCH);
            assert!(!has_run(laptop), "{count}");
            running.write("\n").expect("write");
            let output = running.wait().expect("an end");
            assert!(output.stderr().contains("put back"), "{output:?}");
            outside(laptop, FETCH);
            assert!(!has_run(laptop), "{count}: {output:?}");
            assert_eq!(outside(laptop, "cat ~/.bashrc"), "# mine\n");
            // A log is kept again.
            let log = outside(laptop, "cat .git/logs/refs/remotes/origin/main");
            assert!(log.contains("fetch"), "{log}");
        }
    });
}

/// What was moved aside is out of the reach of names, and is not the user's for the next session.
#[test]
fn p01_links_that_were_moved_aside_lead_nowhere_later() {
    let plant = format!(
        "mkdir -p .git/logs/refs/remotes/d; cd .git/logs/refs/remotes/d; ln -s {TARGET} main
         for i in $(seq 70); do ln -s {TARGET} l$i; done"
    );
    // A new name for the user's branches at the remote, as a session may choose one.
    let lead = |from: &str| {
        format!(
            "{NAME}; found=$({from}); cp -a \"$found\" found 2>/dev/null
             git config remote.origin.fetch \"+refs/heads/*:refs/remotes/$(basename \"$found\")/*\""
        )
    };
    let name = "find .git -name 'd.*.stockade' | head -n 1";
    test(&standard(), |world| {
        let laptop = world.laptop();
        start_anew(laptop);
        outside(laptop, &format!("({plant}); {}; {FETCH}", lead("echo d")));
        assert!(has_run(laptop), "positive control");

        start_anew(laptop);
        let first = session(laptop, &plant);
        assert!(first.stderr().contains("put back"), "{first:?}");
        let aside = outside(laptop, name);
        assert!(!aside.is_empty(), "{first:?}");
        let second = session(laptop, &lead(name));
        outside(laptop, FETCH);
        assert!(!has_run(laptop), "{aside}: {second:?}");

        // Nor if the session brings it to where git's names lead.
        start_anew(laptop);
        session(laptop, &plant);
        let bring = format!("{}; mv \"$found\" .git/logs/refs/remotes/", lead(name));
        let second = session(laptop, &bring);
        assert!(second.stderr().contains("put back"), "{second:?}");
        outside(laptop, FETCH);
        assert!(!has_run(laptop), "{second:?}");
    });
}

/// Very many other files of git's do not use up the time for the logs.
#[test]
fn p01_floods_of_files_hide_no_link_in_the_place_of_a_log() {
    const MANY: &str = "python3 -c '
import os, shutil
os.mkdir(\".git/a\")
for j in range(4):
    os.mkdir(f\".git/a/{j}\")
    for i in range(15000): os.mkdir(f\".git/a/{j}/{i}\")
shutil.copytree(\".git/logs\", \".git/l2\")
os.rename(\".git/logs\", \".git/a/old\"); os.rename(\".git/l2\", \".git/logs\")'";
    // In the logs themselves, so that there is no time for them at the next start either.
    const IN_LOGS: &str = "python3 -c '
import os
for j in range(8):
    os.mkdir(f\".git/logs/{j}\")
    for i in range(60000): os.mkdir(f\".git/logs/{j}/{i}\")'";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for sessions in [&[MANY][..], &[IN_LOGS], &[IN_LOGS, "true"]] {
            start_anew(laptop);
            let mut last = String::new();
            for (number, many) in sessions.iter().enumerate() {
                let is_last = number + 1 == sessions.len();
                let plant = if is_last { links(1) } else { "true".to_owned() };
                last = session(laptop, &format!("{many}; {plant}")).stderr();
            }
            let logs = "find .git/logs -type l -path '*/main'";
            assert_eq!(outside(laptop, logs), "", "{last}");
            outside(laptop, FETCH);
            assert!(!has_run(laptop), "{last}");
        }
    });
}
