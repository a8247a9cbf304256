//! Sessions that work against what is put back (P1): they fill the disk, hold locks, write in ways that
//! give no notice, or plant again at once.

use std::time::{Duration, Instant};

use stockade_world::{Laptop, Output, eventually, test};

use super::f_files::said;
use super::p_git::{EVIL, REPOSITORY, ran, session};
use super::probe::Place;
use crate::support::standard;

/// On a small disk: a repository whose settings take several pages, and what is done to it.
fn on_a_small_disk(laptop: &Laptop, attack: &str) -> Output {
    let script = format!(
        "cd; rm -f ran; mkdir -p project; mount -t tmpfs -o size=2m tmpfs ~/project; cd project
         git init -q -b main . && rm -rf .git/hooks && git config user.name a
         for i in $(seq 300); do echo \"# a line that makes the file long\"; done >> .git/config
         {attack}
         git status >/dev/null; ls ~/ran; wc -c < .git/config"
    );
    let words = "--user --map-current-user --keep-caps --mount bash -c";
    let command = laptop.command("unshare").args(words.split(' '));
    command.arg(&script).run().expect("the end")
}

const FILL: &str = "printf \"#!/bin/sh\\ntouch ~/ran\\n\" > evil; chmod +x evil
    printf \"[core]\\nfsmonitor = $PWD/evil\\n\" > .git/w
    cat /dev/zero > full 2>/dev/null; mv .git/w .git/config";

#[test]
fn p01_a_full_disk_does_not_keep_settings_from_being_put_back() {
    let attack = |command: &str| format!("{command} '{FILL}; cat /dev/zero > more 2>/dev/null'");
    test(&standard(), |world| {
        let laptop = world.laptop();
        // What the session replaced leaves room for a moment: a look that is quick enough puts it back.
        let mut was_removed = false;
        for _ in 0..20 {
            let output = on_a_small_disk(laptop, &attack("stockade run -- bash -c"));
            let (stdout, stderr) = (output.stdout(), output.stderr());
            assert!(!stdout.contains("/ran"), "{output:?}");
            // What is gone is not said to be back, and can be had.
            let is_back = stdout
                .trim()
                .parse()
                .is_ok_and(|length: usize| length > 9000);
            was_removed = stderr.contains("was REMOVED");
            assert!(was_removed || is_back, "{output:?}");
            assert!(is_back || !stderr.contains("put back: "), "{output:?}");
            if was_removed {
                assert!(stderr.contains("quarantine/"), "{output:?}");
                break;
            }
        }
        assert!(was_removed, "the disk was never full");
        let control = on_a_small_disk(laptop, &attack("bash -c"));
        assert!(
            control.stdout().contains("/ran"),
            "positive control: {control:?}"
        );
    });
}

/// It holds the lock of git's, and every name that could be guessed from a process number.
const HOLD: &str = "import os
open('.git/config.lock', 'w').close()
for number in range(2, 3000): os.makedirs(f'.git/config.lock.{number}.stockade', exist_ok=True)
open('.git/w', 'w').write('[core]\\nfsmonitor = /home/dev/project/evil\\n')
os.rename('.git/w', '.git/config')";

#[test]
fn p01_locks_that_a_session_holds_do_not_keep_settings_from_being_put_back() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let output = session(laptop, &format!("{EVIL}; python3 -c \"{HOLD}\""));
        said(laptop, Place::Outside, "rm -f .git/config.lock; git status");
        assert!(!ran(laptop), "{output:?}");
        assert!(output.stderr().contains("put back: "), "{output:?}");
        assert!(!output.stderr().contains("NOT be put back"), "{output:?}");
        said(
            laptop,
            Place::Outside,
            &format!("{EVIL}; python3 -c \"{HOLD}\"; git status"),
        );
        assert!(ran(laptop), "positive control");
    });
}

/// Each leaves something in place without the notice that a file was closed in a git directory.
#[test]
fn p01_no_way_of_writing_escapes_the_look_while_the_session_runs() {
    let sub = "git init -q ../part; git -C ../part -c user.name=a -c user.email=a commit -q \
        --allow-empty -m one; git -c protocol.file.allow=always submodule --quiet add ../part sub
        git commit -q -m sub";
    let ways = [
        (
            "a file that stays open",
            "true",
            "exec 5>> .git/config; printf '[core]\\nfsmonitor = %s\\n' $EVIL >&5",
            "grep fsmonitor .git/config",
            "git status",
        ),
        (
            "a submodule's directory that is exchanged",
            sub,
            "git clone -q sub sub2 2>/dev/null; git -C sub2 config core.fsmonitor $EVIL; sleep 0.5
             mv sub old; mv sub2 sub",
            "grep fsmonitor sub/.git/config",
            "git status",
        ),
        (
            "a file that the repository's settings include",
            "echo '[core]' > included; git config include.path ../included",
            "printf '[core]\\nfsmonitor = %s\\n' $EVIL > included",
            "grep fsmonitor included",
            "git status",
        ),
        (
            "hooks where the user's own settings have them",
            "git config --global core.hooksPath .own",
            "mkdir .own; cp evil .own/pre-commit",
            "ls .own/pre-commit",
            "git commit -q --allow-empty -m two",
        ),
        (
            "a link among git's logs",
            "echo > ~/log",
            "ln -sf /home/dev/log .git/logs/HEAD",
            "readlink .git/logs/HEAD",
            "git commit -q --allow-empty -m two; grep -q two ~/log && touch ~/ran",
        ),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (what, prepare, plant, is_there, use_of) in ways {
            let outside = |script: &str| said(laptop, Place::Outside, script);
            let fresh = || {
                outside("rm -rf ~/part ~/.gitconfig ~/log");
                outside(REPOSITORY);
                outside(prepare);
            };
            fresh();
            outside(&format!("{EVIL}; {plant}; {use_of}"));
            assert!(ran(laptop), "positive control: {what}");

            fresh();
            let script = format!("{EVIL}; {plant}; echo planted; read");
            let words = ["run", "--", "bash", "-c", &script];
            let mut running = laptop.stockade(words).spawn().expect("a session");
            running.expect("planted").expect("it is planted");
            let gone = || outside(&format!("{is_there} 2>/dev/null")).is_empty();
            eventually(what, Duration::from_secs(5), gone).expect("put back");
            outside(use_of);
            assert!(!ran(laptop), "{what}");
            running.write("\n").expect("write");
            running.wait().expect("an end").expect_success();
        }
        said(laptop, Place::Outside, "rm -rf ~/.gitconfig");
    });
}

#[test]
fn p01_a_command_that_plants_again_and_again_is_ended() {
    let fight = "import time, os
end = time.time() + 20
while time.time() < end:
    if 'fsmonitor' not in open('.git/config').read():
        open('.git/w', 'w').write('[core]\\nfsmonitor = /home/dev/project/evil\\n')
        os.rename('.git/w', '.git/config')
    time.sleep(0.001)";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let begin = Instant::now();
        let output = session(laptop, &format!("{EVIL}; python3 -c \"{fight}\""));
        // A fraction of a second, unless others use the machine, too.
        assert!(begin.elapsed() < Duration::from_secs(10), "{output:?}");
        let output = output.expect_code(125);
        let stderr = output.stderr();
        assert!(
            stderr.contains("core.fsmonitor") && stderr.contains("again and again"),
            "{stderr}"
        );
        said(laptop, Place::Outside, "git status");
        assert!(!ran(laptop), "{stderr}");

        // A tool that sets its hooks at each of several installations is not.
        said(laptop, Place::Outside, REPOSITORY);
        let install = "mkdir -p .husky; git config core.hooksPath .husky; sleep 0.4";
        let honest = format!("for i in 1 2 3 4 5; do {install}; done; echo done");
        let output = session(laptop, &honest).expect_success();
        assert_eq!(output.stdout(), "done\n");
        assert!(output.stderr().contains("put back: "), "{output:?}");
    });
}
