//! git over files that programs outside run by themselves: those that it tracks change as outside,
//! and are shown; the others stay as they are.

use stockade_world::{Laptop, Output, PATIENCE, eventually, test};

use super::{PROFILES, STATE, write};
use crate::support::standard;

/// Branches that differ in such files, and untracked ones beside them.
const REPOSITORY: &str = "git init -q -b main .; git config user.name Dev
    git config user.email dev@example.com; git config advice.detachedHead false
    mkdir -p .vscode/own; echo one > .envrc; echo '{\"one\": 1}' > .vscode/tasks.json
    echo x > .vscode/gone.json; echo 1 > file; git add .; git commit -qm one
    git switch -qc other; echo two > .envrc; echo '{\"two\": 2}' > .vscode/tasks.json
    git rm -q .vscode/gone.json; echo '{}' > .devcontainer.json; git add .; git commit -qm two
    git switch -q main; echo 2 > file; git commit -qam three
    echo own > .exrc; echo own > .vscode/launch.json; echo own > .vscode/own/deep";

fn outside(laptop: &Laptop, script: &str) -> String {
    let bash = laptop.command("bash").args(["-euc", script]);
    bash.run().expect("its end").expect_success().stdout()
}

fn session(laptop: &Laptop, options: &[&str], script: &str) -> Output {
    let run = laptop.stockade(["run"]).args(options);
    run.args(["--", "bash", "-euc", script])
        .run()
        .expect("its end")
}

#[test]
fn git_switches_branches_that_differ_in_files_that_run_outside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(laptop, REPOSITORY);
        let look = "cat .envrc .vscode/*.json; ls -A .vscode; git status --porcelain";
        let there = "own\n{\"two\": 2}\nlaunch.json\nown\ntasks.json\n";
        for profile in PROFILES {
            let script = format!("git switch -q other; {look}; git commit -q --allow-empty -m x");
            let output = session(laptop, &["--profile", profile], &script);
            let output = output.expect_success();
            let untracked = "?? .exrc\n?? .vscode/launch.json\n?? .vscode/own/\n";
            assert_eq!(output.stdout(), format!("two\n{there}{untracked}"));
            // The commit carries what the branch had.
            assert_eq!(outside(laptop, "git show HEAD:.envrc"), "two\n");
            // What came from the other branch is shown, the soonest to run first.
            let told = output.stderr();
            let at = |text: &str| told.find(text).unwrap_or_else(|| panic!("{text}: {told}"));
            assert!(at("project/.envrc\" has changed") < at("  -one"), "{told}");
            assert!(at("  -one") < at("  +two"), "{told}");
            assert!(
                at("  +two") < at(".vscode/tasks.json\" has changed"),
                "{told}"
            );
            assert!(
                at("+{\"two\": 2}") < at(".devcontainer.json\" is new"),
                "{told}"
            );
            outside(laptop, "git switch -q main; git branch -qf other HEAD@{1}~");
        }
    });
}

#[test]
fn git_merges_rebases_and_stashes_files_that_run_outside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        write(laptop.home(), STATE);
        for profile in PROFILES {
            let fresh = "cd; rm -rf project; mkdir project; cd project";
            outside(laptop, &format!("{fresh}; {REPOSITORY}"));
            merge_rebase_and_stash(|script| {
                session(laptop, &["--profile", profile], script).expect_success()
            });
        }
    });
}

fn merge_rebase_and_stash(session: impl Fn(&str) -> Output) {
    let merge =
        "git merge -q --no-edit other; cat .envrc file; git reset -q --hard ORIG_HEAD; cat .envrc";
    let merged = session(merge);
    assert_eq!(merged.stdout(), "two\n2\none\n");
    // Everything is as it was, so there is nothing to say but where it went meanwhile.
    assert_eq!(merged.stderr(), "");
    let rebase = "git switch -q other; git rebase -q main; cat .envrc file; git log --format=%s";
    assert_eq!(session(rebase).stdout(), "two\n2\ntwo\nthree\none\n");
    let stash = "echo mine > .envrc; git rm -q .vscode/tasks.json; git stash -q; cat .envrc
        git switch -q main; git switch -q other; git stash pop -q; cat .envrc; ls -A .vscode
        git checkout -q HEAD -- .; git diff HEAD --stat";
    let stashed = session(stash);
    assert_eq!(stashed.stdout(), "two\nmine\nlaunch.json\nown\n");
    assert_eq!(stashed.stderr(), "");
    let tree =
        "git worktree add -q tree main; cat tree/.envrc; git -C tree switch -q --detach other
        cat tree/.envrc; git worktree remove tree";
    assert_eq!(session(tree).stdout(), "one\ntwo\n");
}

#[test]
fn git_removes_and_renames_what_it_tracks_and_nothing_else() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(
            laptop,
            &format!("{REPOSITORY}; rm -r .vscode/own .vscode/launch.json"),
        );
        let script = "git mv .vscode moved; git mv .envrc other; git commit -qam x
            git reset -q --hard HEAD~; cat .envrc .vscode/tasks.json";
        let output = session(laptop, &[], script).expect_success();
        assert_eq!(output.stdout(), "one\n{\"one\": 1}\n");
    });
}

#[test]
fn changes_are_in_the_log_while_the_session_runs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(laptop, REPOSITORY);
        for settings in ["defuse", "tell"] {
            let script = "echo changed > .envrc; echo ready; read -r; git checkout -q .envrc";
            let run = laptop.stockade(["run", "--git-settings", settings, "--"]);
            let mut session = run.args(["bash", "-c", script]).spawn().expect("a session");
            session.expect("ready").expect("a session");
            let log = || {
                let log = laptop.stockade(["log", "--json"]).run().expect("a log");
                let log = log.expect_success().stdout();
                // Before it is written, it may be seen empty.
                let is_it =
                    |line: &&str| line.contains("\"found\"") && line.contains("\"+changed\"");
                log.lines().find(is_it).map(str::to_owned)
            };
            eventually("the log tells", PATIENCE, || log().is_some()).expect("a line");
            let line = log().expect("a line");
            assert!(line.contains("\"running\":true"), "{line}");
            session.write("\n").expect("the end of the wait");
            let output = session.wait().expect("its end").expect_success();
            // It is as it was.
            assert_eq!(output.stderr(), "");
        }
    });
}

#[test]
fn under_strict_nothing_can_be_changed_and_the_start_says_what_git_cannot_update() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(laptop, REPOSITORY);
        let seen = "tail -n 9 .envrc .vscode/*.json";
        let before = outside(laptop, seen);
        let script = "for f in .envrc .vscode/tasks.json; do echo x > $f || rm $f || mv $f x; done
            git switch -q other || true";
        let output = session(laptop, &["--hardening", "strict"], script);
        let told = output.stderr();
        let names =
            "git tracks \".envrc\", \".vscode/gone.json\", \".vscode/tasks.json\" and cannot";
        assert!(told.contains(names), "{told}");
        assert_eq!(outside(laptop, seen), before);
    });
}

/// A file that was untracked when a session began is not made writable by what that session does to
/// the index: not by adding it, not by a commit, not by another repository.
#[test]
fn a_session_cannot_make_an_untracked_file_writable_for_the_next_one() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let ways = [
            "git add -f .exrc .vscode/launch.json",
            "git add -f .exrc .vscode/launch.json; git commit -qm x",
            "git add -f .exrc .vscode/launch.json; git commit -qm x; rm .git/index",
            "git add -f .exrc .vscode/launch.json; git commit -qm x; git rm -q --cached .exrc",
            "git switch -qc new; git add -f .exrc .vscode/launch.json; git commit -qm x; kill -9 $$",
        ];
        let write = "echo evil > .exrc; echo evil > .vscode/launch.json; rm -f .exrc";
        let look = "cat .exrc .vscode/launch.json";
        let fresh = format!("cd; rm -rf project; mkdir project; cd project; {REPOSITORY}");
        for way in ways {
            outside(laptop, &fresh);
            session(laptop, &[], way);
            // The user puts the index in order.
            outside(laptop, "git reset -q");
            let refused = session(laptop, &[], write);
            assert_eq!(outside(laptop, look), "own\nown\n", "{way}");
            if outside(laptop, "git ls-files .exrc") == ".exrc\n" {
                let told = refused.stderr();
                assert!(
                    told.contains("stockade accept --file .exrc"),
                    "{way}: {told}"
                );
            }
        }
        // The user says that it is tracked.
        let accept = |path| laptop.stockade(["accept", "--file", path]).run();
        accept(".exrc").expect("its end").expect_success();
        accept("file").expect("its end").expect_code(125);
        session(laptop, &[], "echo changed > .exrc").expect_success();
        assert_eq!(outside(laptop, look), "changed\nown\n");
        // Positive control: what the user tracks himself before any session is writable.
        outside(laptop, &format!("{fresh}; git add -f .exrc"));
        outside(laptop, "rm -rf ~/.local/state/stockade/untracked");
        session(laptop, &[], "echo changed > .exrc").expect_success();
        assert_eq!(outside(laptop, look), "changed\nown\n");
    });
}

#[test]
fn what_a_file_says_cannot_write_to_the_terminal() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(laptop, REPOSITORY);
        let script = "printf 'x\\033[2J\\033]0;evil\\007\\rstockade: all is well\\n' > .envrc
            seq 100000 > .vscode/tasks.json";
        let told = session(laptop, &[], script).expect_success().stderr();
        assert!(told.contains("+x\\u{1b}[2J"), "{told}");
        let is_odd = |c: char| c.is_control() && c != '\n';
        assert!(!told.contains(is_odd), "{told:?}");
        assert!(told.lines().count() < 100, "{told}");
        assert!(told.contains("more lines: `stockade log"), "{told}");
    });
}
