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
            eventually("it is undone", PATIENCE, || !is_there()).expect("undone");
            outside(laptop, FETCH);
            assert!(!has_run(laptop), "{count}");
            running.write("\n").expect("write");
            let output = running.wait().expect("an end");
            assert!(output.stderr().contains("undone"), "{output:?}");
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
        "mkdir d; ln -s {TARGET} d/main; for i in $(seq 70); do ln -s {TARGET} d/l$i; done
         mkdir -p .git/logs/refs/remotes; mv d .git/logs/refs/remotes/"
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
        assert!(first.stderr().contains("undone"), "{first:?}");
        let aside = outside(laptop, name);
        assert!(!aside.is_empty(), "{first:?}");
        assert!(first.stderr().contains(aside.trim_end()), "it says where");
        let second = session(laptop, &lead(name));
        outside(laptop, FETCH);
        assert!(!has_run(laptop), "{aside}: {second:?}");

        // Nor if the session brings it to where git's names lead.
        start_anew(laptop);
        session(laptop, &plant);
        let bring = format!("{}; mv \"$found\" .git/logs/refs/remotes/", lead(name));
        let second = session(laptop, &bring);
        assert!(second.stderr().contains("undone"), "{second:?}");
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

/// Directories that take longer to be listed than a look has time.
fn flood(place: &str, parts: usize, each: usize) -> String {
    format!(
        "python3 -c '
import os
for j in range({parts}):
    os.makedirs(f\"{place}/{{j}}\")
    for i in range({each}): os.mkdir(f\"{place}/{{j}}/{{i}}\")'"
    )
}

/// Nor in other repositories that a session can write, or in a worktree that it makes.
#[test]
fn p01_floods_in_one_repository_hide_no_link_in_another() {
    const NESTED: &str =
        "git init -q a; git -C a -c user.name=a -c user.email=a commit -q --allow-empty -m x";
    const CLONE: &str = "mkdir -p x/y/z; git clone -q -b main ~/origin.git x/y/z/lib";
    let in_clone = format!(
        "cd x/y/z/lib; git config user.email u@e; {NAME}; log=.git/logs/refs/remotes/origin/main
         rm -f $log; mkdir -p $(dirname $log); ln -s {TARGET} $log"
    );
    let in_worktree = format!(
        "{NAME}; git worktree add -q w; rm .git/worktrees/w/logs/HEAD
         ln -s {TARGET} .git/worktrees/w/logs/HEAD"
    );
    let fetch = FETCH.replace("git fetch", "git -C x/y/z/lib fetch");
    let commit =
        "git -C w commit -q --allow-empty -m y; bash --rcfile ~/.bashrc -ic true 2>/dev/null; true";
    let nested = flood("a/.git/logs", 4, 60_000);
    let floods = [
        format!("{NESTED}; {nested}"),
        format!(
            "{NESTED}; git add a 2>/dev/null; {nested}; {}",
            flood(".git/zz", 4, 60_000)
        ),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (before, plant, after) in [
            (CLONE, in_clone.as_str(), fetch.as_str()),
            ("true", &in_worktree, commit),
        ] {
            let start = || {
                start_anew(laptop);
                outside(laptop, before);
            };
            start();
            outside(laptop, &format!("({plant})"));
            outside(laptop, after);
            assert!(has_run(laptop), "positive control: {plant}");
            for flood in ["true".to_owned()].iter().chain(&floods) {
                start();
                let output = session(laptop, &format!("{flood}; {plant}"));
                outside(laptop, after);
                assert!(!has_run(laptop), "{plant}: {flood}: {output:?}");
                assert_eq!(outside(laptop, "cat ~/.bashrc"), "# mine\n", "{output:?}");
            }
        }
    });
}

/// What an earlier session made in many repositories is no reason to overlook one later.
#[test]
fn p01_old_floods_in_many_repositories_hide_no_link() {
    const NESTED: &str = "for i in 1 2 3 4 5 6 7 8; do git init -q a$i
        git -C a$i -c user.name=a -c user.email=a commit -q --allow-empty -m x; done";
    const PLANT: &str = "cd z; git config user.email u@e; log=.git/logs/refs/remotes/origin/main
         rm -f $log; mkdir -p $(dirname $log)";
    let plant = format!("{PLANT}; {NAME}; ln -s {TARGET} $log; true");
    let flood: Vec<_> = (1..9)
        .map(|i| flood(&format!("a{i}/.git/logs"), 1, 60_000))
        .collect();
    let flood = flood.join(";");
    test(&standard(), |world| {
        let laptop = world.laptop();
        let start = || {
            start_anew(laptop);
            outside(laptop, "git clone -q -b main ~/origin.git z");
            outside(laptop, NESTED);
        };
        let fetch = FETCH.replace("git fetch", "git -C z fetch");
        start();
        outside(laptop, &format!("({plant})"));
        outside(laptop, &fetch);
        assert!(has_run(laptop), "positive control");
        start();
        session(laptop, &flood);
        let output = session(laptop, &plant);
        outside(laptop, &fetch);
        assert!(!has_run(laptop), "{output:?}");
    });
}

/// Git writes references to what a link among them leads to, under names that a session chooses.
#[test]
fn p01_floods_hide_no_link_among_references() {
    const PLANT: &str =
        "mkdir -p .git/refs/remotes/origin/a; ln -s /home/dev/docs .git/refs/remotes/origin/a/b";
    const AFTER: &str =
        "git fetch -q ~/origin.git '+main:refs/remotes/origin/a/b/c' 2>/dev/null; ls ~/docs";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let start = || {
            start_anew(laptop);
            outside(laptop, "rm -rf ~/docs; mkdir ~/docs");
        };
        start();
        outside(laptop, PLANT);
        assert_eq!(outside(laptop, AFTER), "c\n", "positive control");
        for flood in ["true", &flood(".git/refs/remotes/origin", 8, 40_000)] {
            start();
            let output = session(laptop, &format!("{flood}; {PLANT}"));
            assert_eq!(outside(laptop, AFTER), "", "{flood}: {output:?}");
        }
    });
}

/// `git gc` removes what it takes for a worktree that is gone. `git add -p` writes a hunk.
#[test]
fn p01_floods_hide_no_link_that_git_empties_or_writes_through() {
    const PLANT: &str = "mkdir -p .git/worktrees; ln -s /home/dev/docs .git/worktrees/x
        ln -s /home/dev/docs/b .git/addp-hunk-edit.diff";
    const AFTER: &str = "git worktree prune; cat ~/docs/a 2>&1; find .git -maxdepth 2 -type l";
    const TOP: &str = "python3 -c '
for i in range(200100): open(f\".git/{i}\", \"w\").close()'";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let start = || {
            start_anew(laptop);
            outside(laptop, "rm -rf ~/docs; mkdir ~/docs; echo mine > ~/docs/a");
        };
        start();
        outside(laptop, PLANT);
        assert!(
            outside(laptop, AFTER).contains("No such file"),
            "positive control"
        );
        for flood in ["true", TOP, &flood(".git/a", 8, 40_000)] {
            start();
            let output = session(laptop, &format!("{flood}; {PLANT}"));
            assert_eq!(outside(laptop, AFTER), "mine\n", "{flood}: {output:?}");
        }
    });
}

/// A large repository loses nothing, and a copy by second names costs it nothing.
#[test]
fn logs_of_many_branches_stay_and_so_do_stashes_and_a_rebase() {
    const MANY: &str = "for i in 1 2; do echo $i > f; git add f; git stash -q; done
        git commit -q --allow-empty -m one; head=$(git rev-parse HEAD)
        seq -f \"create refs/heads/many/%.0f $head\" 10000 | git update-ref --create-reflog --stdin
        git commit -q --allow-empty -m two; GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -q -i --keep-empty HEAD~1";
    const STATE: &str = "git stash list | wc -l; find .git/logs -type f | wc -l; git status | head -n 1; git reflog | wc -l
        ls .git | grep stockade; true";
    test(&standard(), |world| {
        let laptop = world.laptop();
        start_anew(laptop);
        outside(laptop, MANY);
        let before = outside(laptop, STATE);
        assert!(before.starts_with("2\n100"), "{before}");
        let output = session(laptop, "true");
        assert_eq!(output.stderr(), "");
        assert_eq!(outside(laptop, STATE), before);

        let words = ["run", "--", "bash", "-c", "echo started; read"];
        let mut running = laptop.stockade(words).spawn().expect("a session");
        running.expect("started").expect("it runs");
        outside(laptop, "cp -al .git/logs ~/copy-of-logs");
        running.write("\n").expect("write");
        running.wait().expect("an end");
        assert_eq!(outside(laptop, STATE), before);
    });
}
