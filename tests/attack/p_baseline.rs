//! Sessions side by side, and ends that are made to be slow or to hide what they say (P3, P4).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use stockade_world::{Laptop, Output, PATIENCE, Pid, Running, Signal, eventually, test};

use super::f_files::said;
use super::p_git::{EVIL, REPOSITORY, ran, session};
use super::probe::Place;
use crate::support::standard;

/// Whatever the tree holds, a start and an end together take no longer, in seconds, unless others use the
/// machine, too.
const LONGEST: f64 = 4.0;

fn plant() -> String {
    format!("{EVIL}; git config core.fsmonitor $EVIL")
}

/// A session that has planted, and runs. With `tell` nothing is put back meanwhile, so the next one
/// starts with it in place.
fn planting(laptop: &Laptop) -> Running {
    let tell = ["run", "--git-settings", "tell", "--", "bash", "-c"];
    let script = format!("{}; echo planted; read", plant());
    let session = laptop.stockade(tell).arg(&script).spawn();
    let session = session.expect("a session");
    session.expect("planted").expect("it is planted");
    session
}

fn is_planted(laptop: &Laptop) -> bool {
    said(laptop, Place::Outside, "cat .git/config").contains("fsmonitor")
}

#[test]
fn p03_what_one_session_plants_is_not_given_to_the_next() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let mut first = planting(laptop);
        assert!(is_planted(laptop), "the detector works");
        let second = session(laptop, "true");
        assert!(second.stderr().contains("undone"), "{second:?}");
        assert!(!is_planted(laptop));
        said(laptop, Place::Outside, "git status");
        assert!(!ran(laptop));
        first.write("\n").expect("write");
        first.wait().expect("an end");

        // The baseline of the first counts until the last has ended, and no longer.
        said(laptop, Place::Outside, &plant());
        let alone = session(laptop, "true");
        assert_eq!(alone.stderr(), "", "it was there before: {alone:?}");
        said(laptop, Place::Outside, "git status");
        assert!(ran(laptop), "positive control");
    });
}

/// In `first`, a session plants in the repository of `of` and runs on. Then one starts in `second`.
fn is_not_given_on(first: &str, second: &str, of: &str) {
    const MORE: &str = "git -C ~/project worktree add -q ../other
        git init -q ~/project/lib; printf '#!/bin/sh\\ntouch ~/ran\\n' > ~/evil; chmod +x ~/evil";
    let plant = format!(
        "cd {of}; git config core.fsmonitor /home/dev/evil
         common=$(git rev-parse --git-common-dir); mkdir -p $common/info
         echo '* filter=evil' > $common/info/attributes"
    );
    test(&standard(), |world| {
        let laptop = world.laptop();
        let is_planted = || {
            let common = "$(git rev-parse --path-format=absolute --git-common-dir)";
            let state = format!("cd {of}; cd {common}; cat config info/attributes");
            let state = said(laptop, Place::Outside, &state);
            [state.contains("fsmonitor"), state.contains("filter=evil")]
        };
        let there = |directory: &str, words: &[&str]| {
            let command = laptop.stockade(["run"].iter().chain(words));
            command.directory(directory)
        };
        said(
            laptop,
            Place::Outside,
            &format!("rm -rf other; {REPOSITORY}; {MORE}"),
        );
        let script = format!("{plant}; echo planted; read");
        let tell = ["--git-settings", "tell", "--", "bash", "-c", &script];
        let mut running = there(first, &tell).spawn().expect("a session");
        running.expect("planted").expect("it is planted");
        assert_eq!(is_planted(), [true; 2], "the detector works");
        let output = there(second, &["--", "true"]).run().expect("an end");
        assert!(output.stderr().contains("undone"), "{output:?}");
        assert_eq!(is_planted(), [false; 2], "{output:?}");
        running.write("\n").expect("write");
        running.wait().expect("an end");
        let status = format!("git -C {of} status");
        said(laptop, Place::Outside, &status);
        assert!(!ran(laptop));

        said(laptop, Place::Outside, &plant);
        let alone = there(second, &["--", "true"]).run().expect("an end");
        assert_eq!(alone.stderr(), "", "it was there before: {alone:?}");
        assert_eq!(is_planted(), [true; 2], "{alone:?}");
        said(laptop, Place::Outside, &status);
        assert!(ran(laptop), "positive control");
    });
}

const PROJECT: &str = "/home/dev/project";
const TREE: &str = "/home/dev/tree";
const NESTED: &str = "/home/dev/project/lib";

#[test]
fn p03_what_one_session_plants_is_not_given_to_one_in_another_worktree() {
    is_not_given_on(PROJECT, TREE, PROJECT);
    is_not_given_on(TREE, PROJECT, TREE);
    is_not_given_on(TREE, "/home/dev/other", TREE);
}

#[test]
fn p03_what_one_session_plants_is_not_given_to_one_in_a_directory_around_or_below() {
    is_not_given_on(PROJECT, NESTED, NESTED);
    is_not_given_on(NESTED, PROJECT, NESTED);
}

/// What sessions elsewhere started from takes nothing from the user.
#[test]
fn a_worktree_that_the_user_makes_while_a_session_runs_is_left_as_it_is() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let make = "git config core.pager mine; git clone -q --shared . shared
            git -C shared config user.name a; git -C shared config user.email a";
        said(laptop, Place::Outside, make);
        let words = ["run", "--", "bash", "-c", "echo started; read"];
        let mut running = laptop.stockade(words).spawn().expect("a session");
        running.expect("started").expect("it runs");
        said(laptop, Place::Outside, "git worktree add -q ../later");
        let work = "git commit -q --allow-empty -m two && git log --oneline | wc -l";
        for (directory, commits) in [("/home/dev/later", "2"), ("/home/dev/project/shared", "2")] {
            let words = ["run", "--read", PROJECT, "--", "bash", "-c", work];
            let output = laptop.stockade(words).directory(directory).run();
            let output = output.expect("an end");
            assert_eq!(output.stdout().trim(), commits, "{directory}: {output:?}");
            assert!(
                !output.stderr().contains("undone"),
                "{directory}: {output:?}"
            );
        }
        running.write("\n").expect("write");
        let output = running.wait().expect("an end");
        assert_eq!(output.stderr(), "", "{output:?}");
        let pager = said(laptop, Place::Outside, "git config core.pager");
        assert_eq!(pager, "mine\n");
    });
}

#[test]
fn p03_what_a_killed_session_planted_is_told_by_the_next() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let words = ["run", "--git-settings", "tell", "--", "bash", "-c"];
        let first = format!("{}; echo planted; read", plant());
        let first = laptop.stockade(words).arg(&first).spawn().expect("start");
        first.expect("planted").expect("it is planted");
        first.signal(Signal::KILL).expect("a signal");
        first.wait().expect("an end");
        let next = session(laptop, "true");
        assert!(next.stderr().contains("core.fsmonitor"), "{next:?}");
        assert!(next.stderr().contains("was killed"), "{next:?}");
    });
}

/// A user may type `git status` while the session runs.
#[test]
fn p01_what_appears_is_put_back_while_the_session_runs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let nested = "git init -q sub; git -C sub -c user.name=a -c user.email=a commit -q \
            --allow-empty -m one; git -c advice.addEmbeddedRepo=false add sub
            git -C sub config core.fsmonitor $EVIL";
        for plant in [
            "git config core.fsmonitor $EVIL",
            nested,
            "mkdir -p .git/hooks; cp evil .git/hooks/post-checkout",
        ] {
            said(laptop, Place::Outside, REPOSITORY);
            let script = format!("{EVIL}; {plant}; echo planted; read");
            let words = ["run", "--", "bash", "-c", &script];
            let mut running = laptop.stockade(words).spawn().expect("a session");
            running.expect("planted").expect("it is planted");
            let state = "cat .git/config sub/.git/config; ls .git/hooks";
            let is_there = || {
                let state = said(laptop, Place::Outside, state);
                state.contains("fsmonitor") || state.contains("post-checkout")
            };
            eventually("it is undone", PATIENCE, || !is_there()).expect("undone");
            said(laptop, Place::Outside, "git status; git checkout -q -b x");
            assert!(!ran(laptop), "{plant}");
            running.write("\n").expect("write");
            let output = running.wait().expect("an end");
            assert!(output.stderr().contains("undone"), "{output:?}");
        }
    });
}

/// The time in which threads of a process could have run and others had the processors.
#[derive(Default)]
struct Waits(BTreeMap<PathBuf, [f64; 2]>);

impl Waits {
    /// What the kernel has counted by now, in seconds.
    fn count(&mut self, pid: Pid) {
        let threads = fs::read_dir(format!("/proc/{pid}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let counted = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let waited = counted.split_whitespace().nth(1);
            if let Some(nanoseconds) = waited.and_then(|text| text.parse::<f64>().ok()) {
                let seconds = nanoseconds / 1e9;
                self.0.entry(thread.path()).or_insert([seconds; 2])[1] = seconds;
            }
        }
    }

    /// Of the thread that waited longest.
    fn longest(&self) -> f64 {
        let waits = self.0.values().map(|[first, last]| last - first);
        waits.fold(0.0, f64::max)
    }
}

/// How many seconds a session still takes, without those in which others had the processors.
fn until_it_ends(running: Running) -> (f64, Output) {
    let (begin, mut waits) = (Instant::now(), Waits::default());
    while !running.has_ended().expect("a state") {
        waits.count(running.pid());
        thread::sleep(Duration::from_millis(2));
    }
    let took = begin.elapsed().as_secs_f64() - waits.longest();
    (took, running.wait().expect("an end"))
}

/// Leaves this in the tree: the end is quick, says the worst first, and nothing runs.
fn ends_well(what: &str, plant: &str) {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let start = |script: &str| {
            let words = ["run", "--", "bash", "-c", script];
            laptop.stockade(words).spawn().expect("a session")
        };
        let timed = |script: &str| {
            let running = start(&format!("{script}; echo; echo the end begins"));
            running.expect("the end begins").expect("it is planted");
            until_it_ends(running)
        };
        // Some hundredths of a second, unless others use the machine, too.
        let (usual, _) = timed("true");
        let (usual_whole, _) = until_it_ends(start("true"));
        let (took, output) = timed(&format!("{EVIL}; {plant}"));
        let longest = 2.0 + 10.0 * usual;
        assert!(took < longest, "{what}: the end took {took} s, not {usual}");
        let stderr = output.stderr();
        let lines: Vec<&str> = stderr.lines().collect();
        assert!(lines.len() < 40, "{what}: {} lines", lines.len());
        let first = lines.first().copied().unwrap_or_default();
        assert!(
            first.contains("undone") || first.contains("NOT CHECKED"),
            "{what}: {stderr}"
        );
        said(laptop, Place::Outside, "git status");
        assert!(!ran(laptop), "{what}: {stderr}");
        // And the next start is none the slower.
        let (took, _) = until_it_ends(start("true"));
        let longest = LONGEST + 5.0 * usual_whole;
        assert!(took < longest, "{what}: the next session took {took} s");
        // The detector works.
        said(
            laptop,
            Place::Outside,
            &format!("{EVIL}; git config core.fsmonitor $EVIL; git status"),
        );
        assert!(ran(laptop), "{what}: positive control");
    });
}

#[test]
fn p04_eight_thousand_settings_do_not_make_the_end_slow() {
    ends_well(
        "8000 directories of hooks",
        "for i in $(seq 8000); do echo \"hooksPath = h$i\"; done > lines
         { echo '[core]'; cat lines; echo \"fsmonitor = $EVIL\"; } >> .git/config",
    );
}

#[test]
fn p04_settings_that_are_long_when_they_are_read_do_not_make_the_end_slow() {
    ends_well(
        "a long section with many settings",
        "{ printf '[a \"'; head -c 400000 /dev/zero | tr '\\0' x; printf '\"]\\n'
           for i in $(seq 50000); do echo b; done; } >> .git/config",
    );
}

#[test]
fn p04_three_hundred_submodules_do_not_make_the_end_slow() {
    ends_well(
        "300 submodules, each with a lock and settings",
        "for i in $(seq 300); do mkdir -p .git/modules/$i; cd .git/modules/$i
           mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; touch config.lock
           printf '[core]\\nfsmonitor = %s\\n' $EVIL > config; cd ../../..; done
         git config core.fsmonitor $EVIL",
    );
}

#[test]
fn p04_a_hundred_thousand_directories_do_not_make_the_end_slow() {
    ends_well(
        "100000 directories",
        "python3 -c 'import os
for i in range(100):
    for j in range(1000): os.makedirs(f\"many/{i}/{j}\")'
         git config core.fsmonitor $EVIL",
    );
}

#[test]
fn p04_harmless_findings_do_not_bury_the_others() {
    ends_well(
        "30 harmless findings",
        "for f in .envrc .exrc .vimrc .mcp.json .gdbinit; do touch $f; done
         mkdir -p .vscode .idea .husky; git config core.fsmonitor $EVIL",
    );
}

/// They take no space, and would take seconds to be read.
#[test]
fn p04_long_indexes_do_not_make_the_end_slow() {
    ends_well(
        "60 repositories, each with an index of 128 MiB",
        "for i in $(seq 60); do mkdir -p m$i/.git/objects m$i/.git/refs
           echo 'ref: refs/heads/main' > m$i/.git/HEAD; truncate -s 128M m$i/.git/index
           echo \"160000 1111111111111111111111111111111111111111	m$i\"; done > links
         git update-index --index-info < links; git config core.fsmonitor $EVIL",
    );
}

/// As many git directories in one another as fit into a path.
const CHAIN: &str = "python3 -c 'import os
d = os.open(\".git\", os.O_RDONLY)
for name in [\"modules\"] + [\"a\"] * 1900:
    os.mkdir(name, dir_fd=d)
    d = os.open(name, os.O_RDONLY, dir_fd=d)
    for part in (\"HEAD\", \"objects\", \"refs\"): os.symlink(\"x\", part, dir_fd=d)'";

#[test]
fn p04_repositories_in_one_another_do_not_make_the_end_slow() {
    let plant = format!("{CHAIN}; git config core.fsmonitor $EVIL");
    ends_well("1900 git directories in one another", &plant);
}

#[test]
fn p04_a_submodule_beside_repositories_in_one_another_is_put_back() {
    let plant = format!(
        "git init -q sub; git -C sub -c user.name=a -c user.email=a commit -q --allow-empty -m one
         git add sub 2>/dev/null
         {CHAIN}; git -C sub config core.fsmonitor $EVIL; git config core.fsmonitor $EVIL"
    );
    ends_well("a submodule beside 1900 git directories", &plant);
}

/// Git goes where a submodule's `.git` says, however deep that is.
#[test]
fn p04_a_git_directory_too_deep_to_be_looked_at_is_not_used() {
    let plant = format!(
        "{CHAIN}; deep=.git/modules/$(printf 'a/%.0s' $(seq 100)); rm -r $deep; git init -q sub
         git -C sub -c user.name=a -c user.email=a commit -q --allow-empty -m one
         git add sub 2>/dev/null; git -C sub config core.fsmonitor $EVIL
         mv sub/.git $deep; echo \"gitdir: $PWD/$deep\" > sub/.git; git -C sub config core.worktree $PWD/sub
         git config core.fsmonitor $EVIL"
    );
    ends_well("a submodule whose repository lies deep", &plant);
}

/// What is only told must not use up the time for what is put back.
#[test]
fn p04_many_files_that_are_told_do_not_keep_others_from_being_put_back() {
    ends_well(
        "150000 files in .vscode",
        "python3 -c 'import os
os.mkdir(\".vscode\"); open(\".vscode/0\", \"w\").close()
for i in range(1, 150000):
    if i % 30000 == 0: open(f\".vscode/{i}\", \"w\").close()
    else: os.link(f\".vscode/{i // 30000 * 30000}\", f\".vscode/{i}\")'
         git config core.fsmonitor $EVIL",
    );
}

/// Signals end the search for what a session left, not the look at the workspace's own repository.
#[test]
fn p04_signals_end_the_end() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let script = format!(
            "{}; python3 -c 'import os
for i in range(100):
    for j in range(1000): os.makedirs(f\"many/{{i}}/{{j}}\")'; echo made",
            plant()
        );
        let words = ["run", "--", "bash", "-c", &script];
        let running = laptop.stockade(words).spawn().expect("a session");
        running.expect("made").expect("a tree");
        let begin = Instant::now();
        let signal = |_| {
            thread::sleep(Duration::from_millis(10));
            running.signal(Signal::TERM).is_ok()
        };
        // Until it has ended; without signals it takes a second at least.
        let sent = (0..400).take_while(|_| signal(())).count();
        let output = running.wait().expect("an end");
        assert!(
            output.stderr().contains("interrupted"),
            "{sent} signals in {:?}: {output:?}",
            begin.elapsed()
        );
        assert!(!is_planted(laptop), "{output:?}");
    });
}

/// A session that took a baseline of its own while another one runs would restore what that one
/// has planted.
#[test]
fn p03_a_session_that_cannot_share_the_baseline_does_not_start() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let mut first = planting(laptop);
        let refused = |what: &str| {
            let second = session(laptop, "echo started");
            assert!(!second.stdout().contains("started"), "{what}: {second:?}");
            let stderr = second.stderr();
            assert!(stderr.contains("cannot be agreed"), "{what}: {stderr}");
        };
        let place = "cd \"$(dirname \"$(find ~ -path '*/baselines/*/lock' | head -n 1)\")\"";
        let hold = format!("{place}; exec flock lock sh -c 'echo held; read x'");
        let mut held = laptop.shell(&hold).spawn().expect("a shell");
        held.expect("held").expect("the lock");
        refused("the lock is held");
        held.write("\n").expect("write");
        held.wait().expect("an end");
        said(laptop, Place::Outside, &format!("{place}; mv baseline b"));
        refused("the baseline is gone");
        let elsewhere = laptop.stockade(["run", "--", "echo", "started"]);
        let elsewhere = elsewhere.directory(TREE).run().expect("an end");
        assert_eq!(elsewhere.stdout(), "", "{elsewhere:?}");
        assert!(elsewhere.stderr().contains("elsewhere"), "{elsewhere:?}");
        let back = "moved=$(find ~ -path '*/baselines/*/b'); mv $moved ${moved%b}baseline";
        said(laptop, Place::Outside, back);

        assert!(is_planted(laptop), "nobody has put it back yet");
        let second = session(laptop, "echo started");
        assert!(second.stdout().contains("started"), "positive control");
        assert!(second.stderr().contains("undone"), "{second:?}");
        assert!(!is_planted(laptop));
        first.write("\n").expect("write");
        first.wait().expect("an end");
        assert!(!is_planted(laptop));
    });
}

#[test]
fn p04_a_list_of_files_that_git_does_not_show_is_told() {
    const HIDE: &str = "echo evil > hidden.sh; echo '*.sh' >> .git/info/exclude";
    const TOLD: &str = "info/exclude";
    let is_shown =
        |laptop: &Laptop| said(laptop, Place::Outside, "git status -s").contains("hidden");
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        said(laptop, Place::Outside, "echo evil > hidden.sh");
        assert!(is_shown(laptop), "the detector works");
        said(laptop, Place::Outside, HIDE);
        assert!(!is_shown(laptop), "positive control");

        for before in ["true", "rm -r .git/info", "echo '*.o' > .git/info/exclude"] {
            said(laptop, Place::Outside, &format!("{REPOSITORY}; {before}"));
            let hidden = session(laptop, &format!("mkdir -p .git/info; {HIDE}"));
            assert!(hidden.stderr().contains(TOLD), "{before}: {hidden:?}");
            // It is the user's to judge: many a tool writes there.
            assert!(!hidden.stderr().contains("undone"), "{before}: {hidden:?}");
            let again = session(laptop, "true");
            assert!(!again.stderr().contains(TOLD), "{before}: {again:?}");
        }
        // What names no file is not worth a line.
        let usual = "git init -q other; echo '# text' >> .git/info/exclude";
        let usual = session(laptop, usual);
        assert!(!usual.stderr().contains(TOLD), "{usual:?}");
    });
}

/// More new repositories than there is time for: git at the top comes to none of them, and a repository that
/// was there is looked at first.
#[test]
fn p04_more_repositories_than_there_is_time_for_are_out_of_gits_reach() {
    const OWN: &str = "git init -q zzz; git -C zzz commit -q --allow-empty -m x 2>/dev/null
        git -c advice.addEmbeddedRepo=false add zzz; git commit -q -m zzz";
    const INDEX: &str = "seq 0 7999 | sed \"s|^|160000 $(printf %040d 1) 0\\tr/|\" |
        git update-index --index-info";
    const MANY: &str = "python3 -c '
import os
for number in range(8000):
    git = f\"r/{number}/.git\"
    os.makedirs(git + \"/objects\"); os.makedirs(git + \"/refs\")
    open(git + \"/HEAD\", \"w\").write(\"ref: refs/heads/main\\n\")
    open(git + \"/config\", \"w\").write(\"[core]\\n\\tfsmonitor = /home/dev/project/evil\\n\")
'; git -C zzz config core.fsmonitor $EVIL";
    // Of so many, the first are enough.
    const STATUS: &str = "cd ~/project; git status >/dev/null 2>&1 & for i in $(seq 600); do
        test -e ~/ran && break; kill -0 $! 2>/dev/null || break; sleep 0.1; done
        kill $! 2>/dev/null; wait; true";
    const SETTINGS: &str = "git config --global user.name a; git config --global user.email a";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        let own = format!("{SETTINGS}; {REPOSITORY}; {OWN}");
        let fill = format!("{EVIL}; {MANY}");
        // In one session, and in one after another that left directories with nothing in them.
        for sessions in [&[format!("{INDEX}; {fill}")][..], &[INDEX.to_owned(), fill]] {
            outside(&own);
            sessions.iter().for_each(|script| drop(outside(script)));
            outside(STATUS);
            assert!(ran(laptop), "positive control");
            outside(&own);
            let mut stderr = String::new();
            for script in sessions {
                stderr = session(laptop, script).stderr();
            }
            // A fast machine has time for all of them; else the index goes.
            assert!(stderr.contains("undone: "), "{stderr}");
            outside(STATUS);
            assert!(!ran(laptop), "{stderr}");
            let own = outside("cat ~/project/zzz/.git/config");
            assert!(!own.contains("fsmonitor"), "{own}\n{stderr}");
        }
    });
}
