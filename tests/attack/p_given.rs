//! Directories that are given with `--write`, and files and remotes that settings name (P1, P2, P3):
//! what a session leaves behind there runs no more than in the workspace's own repository.

use stockade_world::{Laptop, Output, PATIENCE, eventually, test};

use super::f_files::said;
use super::p_git::ran;
use super::probe::Place;
use crate::support::standard;

/// A second repository, beside that of the project.
const LIBRARY: &str = "cd; rm -rf project lib link ran; ln -s lib link; mkdir -p project lib/src
    git -C project init -q; cd lib; git init -q -b main; rm -rf .git/hooks
    git config user.name a; git config user.email a; echo one > src/file
    git add .; git commit -q -m one";
const EVIL: &str =
    "cd ~/lib || exit; printf '#!/bin/sh\\ntouch ~/ran\\n' > src/evil; chmod +x src/evil
    EVIL=/home/dev/lib/src/evil";

fn session(laptop: &Laptop, writes: &[&str], script: &str) -> Output {
    let writes = writes.iter().flat_map(|path| ["--write", path]);
    let words = ["run"].into_iter().chain(writes);
    let words: Vec<&str> = words.chain(["--", "bash", "-c", script]).collect();
    laptop.stockade(words).run().expect("an end")
}

#[test]
fn p01_repositories_that_are_given_do_not_run_programs_outside() {
    let nested = "git init -q src/sub; git -C src/sub -c user.name=a -c user.email=a commit -q \
        --allow-empty -m one; git -c advice.addEmbeddedRepo=false add src/sub
        git -C src/sub config core.fsmonitor $EVIL";
    let plants = [
        ("git config core.fsmonitor $EVIL", "git status"),
        (
            "mkdir -p .git/hooks; cp src/evil .git/hooks/pre-commit",
            "git commit -q --allow-empty -m two",
        ),
        (nested, "git status"),
    ];
    // The directory itself, by a link, and a part of it with its repository.
    let given: [&[&str]; 3] = [
        &["/home/dev/lib"],
        &["/home/dev/link"],
        &["/home/dev/lib/src", "/home/dev/lib/.git"],
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (plant, use_of) in plants {
            let planted = format!("{EVIL}; {plant}");
            let use_of = format!("cd ~/lib; {use_of}");
            said(laptop, Place::Outside, LIBRARY);
            said(laptop, Place::Outside, &planted);
            said(laptop, Place::Outside, &use_of);
            assert!(ran(laptop), "positive control: {plant}");
            for writes in given {
                said(laptop, Place::Outside, LIBRARY);
                let planted = match writes {
                    ["/home/dev/link"] => planted.replace("cd ~/lib", "cd ~/link"),
                    _ => planted.clone(),
                };
                let output = session(laptop, writes, &planted);
                said(laptop, Place::Outside, &use_of);
                assert!(!ran(laptop), "{plant}, {writes:?}: {output:?}");
                let stderr = output.stderr();
                let told = "stockade: undone: \"/home/dev/lib/";
                assert!(stderr.contains(told), "{plant}: {stderr}");
                assert!(!stderr.contains("NOT be undone"), "{plant}: {stderr}");
                let log = "cd ~/lib; git log --format=%s main | tail -n 1";
                assert_eq!(said(laptop, Place::Outside, log), "one\n", "{plant}");
            }
        }
    });
}

#[test]
fn p01_files_that_run_are_read_only_or_told_in_what_is_given() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let prepare = format!(
            "{LIBRARY}; echo old > .envrc; mkdir .git/hooks; echo old > .git/hooks/pre-commit"
        );
        let change =
            "cd ~/lib; echo new > .envrc; echo new > .git/hooks/pre-commit; echo new > .exrc";
        let state = "cd ~/lib; cat .envrc .git/hooks/pre-commit; cat .exrc";
        said(laptop, Place::Outside, &format!("{prepare}; {change}"));
        let now = said(laptop, Place::Outside, state);
        assert_eq!(now, "new\nnew\nnew\n", "positive control");

        for directory in ["/home/dev/lib", "/home/dev/link"] {
            said(laptop, Place::Outside, &prepare);
            let change = change.replace("~/lib", directory);
            let output = session(laptop, &[directory], &change);
            let now = said(laptop, Place::Outside, state);
            assert_eq!(now, "old\nold\nnew\n", "{output:?}");
            let told = "lib/.exrc\" is new: vim may run it outside";
            assert!(output.stderr().contains(told), "{output:?}");
        }

        // Who names one of them means it.
        said(laptop, Place::Outside, &prepare);
        let writes = ["/home/dev/lib", "/home/dev/lib/.envrc"];
        let output = session(laptop, &writes, change);
        let now = said(laptop, Place::Outside, state);
        assert_eq!(now, "new\nold\nnew\n", "{output:?}");
        // Without anything given, nothing of it is there.
        said(laptop, Place::Outside, &prepare);
        let output = session(laptop, &[], change);
        let now = said(laptop, Place::Outside, state);
        assert_eq!(now, "old\nold\n", "{output:?}");
    });
}

/// Sessions in other workspaces may write to the same directory at the same time.
#[test]
fn p03_what_one_session_plants_in_what_is_given_is_not_given_to_the_next() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, LIBRARY);
        said(
            laptop,
            Place::Outside,
            "git -C ~/lib config core.pager mine",
        );
        let plant = format!("{EVIL}; git config core.fsmonitor $EVIL; echo planted; read");
        let words = [
            "run",
            "--write",
            "/home/dev/lib",
            "--",
            "bash",
            "-c",
            &plant,
        ];
        let mut running = laptop.stockade(words).spawn().expect("a session");
        running.expect("planted").expect("it is planted");
        let settings = || said(laptop, Place::Outside, "git -C ~/lib config --list --local");
        eventually("it is undone", PATIENCE, || {
            !settings().contains("fsmonitor")
        })
        .expect("undone while the session runs");
        // Neither with the same workspace nor as one.
        session(laptop, &["/home/dev/lib"], "true");
        let there = laptop.stockade(["run", "--", "true"]);
        there.directory("/home/dev/lib").run().expect("an end");
        running.write("\n").expect("write");
        let output = running.wait().expect("an end");
        let now = settings();
        assert!(!now.contains("fsmonitor"), "{now}: {output:?}");
        assert!(now.contains("core.pager=mine"), "{now}: {output:?}");
    });
}

/// The user's repository includes a file of settings that is a part of the project, and that names
/// the hooks.
#[test]
fn p01_hooks_that_included_settings_name_are_read_only_and_put_back() {
    const HOOKS: &str = "cd; rm -rf project ran; mkdir project; cd project; git init -q -b main
        git config user.name a; git config user.email a; mkdir hooks
        printf '#!/bin/sh\\n' > hooks/pre-commit; chmod +x hooks/pre-commit
        printf '[core]\\n\\thooksPath = hooks\\n' > settings; git config include.path ../settings
        git add .; git commit -q -m one";
    let evil = "printf '#!/bin/sh\\ntouch ~/ran\\n' > evil; chmod +x evil; cp evil hooks/pre-commit
        cp evil hooks/post-commit";
    let fill = "mkdir hooks; cp evil hooks/pre-commit";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let commit = "cd ~/project; git commit -q --allow-empty -m two";
        for (prepare, plant) in [
            ("", evil.to_owned()),
            ("rm -r hooks", format!("{evil}; {fill}")),
        ] {
            let prepare = format!("{HOOKS}; {prepare}");
            said(laptop, Place::Outside, &prepare);
            said(laptop, Place::Outside, &format!("cd ~/project; {plant}"));
            said(laptop, Place::Outside, commit);
            assert!(ran(laptop), "positive control: {plant}");
            said(laptop, Place::Outside, &prepare);
            let output = session(laptop, &[], &plant);
            said(laptop, Place::Outside, commit);
            assert!(!ran(laptop), "{plant}: {output:?}");
        }
        // What is there cannot be changed in the first place.
        said(laptop, Place::Outside, HOOKS);
        let output = session(laptop, &[], "echo x >> hooks/pre-commit || echo kept");
        assert_eq!(output.stdout(), "kept\n", "{output:?}");
    });
}

/// A submodule says where its files are in settings of its worktree, as `git sparse-checkout` has it.
#[test]
fn p02_gitlinks_of_a_submodule_are_followed_from_where_its_worktree_says() {
    const SUBMODULE: &str = "cd; rm -rf project part ran; git init -q -b main part
        git -C part -c user.name=a -c user.email=a commit -q --allow-empty -m one
        mkdir project; cd project; git init -q -b main; git config user.name a
        git config user.email a; git -c protocol.file.allow=always submodule --quiet add ~/part sub
        git commit -q -m one";
    let plant = "mkdir other; cd other; git init -q x
        git -C x -c user.name=a -c user.email=a commit -q --allow-empty -m one
        head=$(git -C x rev-parse HEAD); git -C x config core.fsmonitor 'touch ~/ran; false'; cd ..
        git -C sub update-index --add --cacheinfo 160000,$head,x
        git -C sub config extensions.worktreeConfig true
        git config -f .git/modules/sub/config --unset core.worktree
        git config -f .git/modules/sub/config.worktree core.worktree ../../../other";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let status = "cd ~/project; git status";
        said(laptop, Place::Outside, SUBMODULE);
        said(laptop, Place::Outside, &format!("cd ~/project; {plant}"));
        said(laptop, Place::Outside, status);
        assert!(ran(laptop), "positive control");
        said(laptop, Place::Outside, SUBMODULE);
        let script = format!("{plant}; echo planted; read");
        let words = ["run", "--", "bash", "-c", &script];
        let mut running = laptop.stockade(words).spawn().expect("a session");
        running.expect("planted").expect("it is planted");
        // While the session runs, only what git comes to by itself is looked at.
        let settings = "cat ~/project/other/x/.git/config";
        eventually("it is undone", PATIENCE, || {
            !said(laptop, Place::Outside, settings).contains("fsmonitor")
        })
        .expect("undone while the session runs");
        said(laptop, Place::Outside, status);
        assert!(!ran(laptop));
        running.write("\n").expect("write");
        let output = running.wait().expect("an end");
        said(laptop, Place::Outside, status);
        assert!(!ran(laptop), "{output:?}");
    });
}
