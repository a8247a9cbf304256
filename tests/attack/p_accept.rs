//! What a session left behind and Stockade put back (P1): `stockade accept` applies what was shown.

use stockade_world::test;

use super::f_files::said;
use super::p_git::{EVIL, REPOSITORY, ran, session};
use super::probe::Place;
use crate::support::standard;

#[test]
fn p01_what_was_put_back_is_applied_by_one_command_and_only_as_it_was() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let plant = format!("{EVIL}; git config core.fsmonitor $EVIL");
        said(laptop, Place::Outside, REPOSITORY);
        let output = session(laptop, &plant);
        let id = output.stderr();
        let id = id.rsplit_once("accept ").expect("a command").1.trim();
        // Nobody sees it inside.
        let look = "find / -path '*quarantine*' -name '0*' 2>/dev/null";
        assert_eq!(session(laptop, look).stdout(), "");
        assert!(
            !said(
                laptop,
                Place::Outside,
                "cd; find . -path '*quarantine*' -name '0*'"
            )
            .is_empty()
        );
        let accept = |words: &[&str]| {
            let words = [&["accept"], words].concat();
            laptop.stockade(words).run().expect("an end")
        };
        let shown = accept(&["--show", id]);
        assert!(shown.stdout().contains("fsmonitor"), "{shown:?}");
        assert!(!said(laptop, Place::Outside, "git config --list").contains("fsmonitor"));
        // The user changed the file meanwhile: nothing is lost.
        said(laptop, Place::Outside, "git config user.name other");
        let refused = accept(&["--yes", id]);
        assert!(
            refused.stderr().contains("has changed since"),
            "{refused:?}"
        );
        assert!(!said(laptop, Place::Outside, "git config --list").contains("fsmonitor"));
        said(laptop, Place::Outside, "git config user.name a");
        accept(&["--yes", id]).expect_success();
        said(laptop, Place::Outside, "git status");
        assert!(ran(laptop), "it is as the session left it");
        // It counts from now on as the user's own.
        let output = session(laptop, "true");
        assert_eq!(output.stderr(), "", "{output:?}");
    });
}

/// What is to be applied may be long, so that nobody sees the one line that counts.
#[test]
fn p01_nothing_is_applied_that_was_not_shown() {
    const LAST: &str = "git config --get core.sshCommand; cat .git/hooks/post-checkout";
    // Aliases and comments, then the setting; a hook that is mostly blank. Each comes at once: a part
    // of it would be put back for itself.
    let settings = |aliases: u32, comments: u32| {
        format!(
            "{{ cat .git/config; echo '[alias]'; for i in $(seq {aliases}); do echo \"a$i = status\"; done
                for i in $(seq {comments}); do echo '# nothing'; done
                printf '[core]\\nsshCommand = the-last\\n'; }} > new; mv new .git/config"
        )
    };
    let hook = |lines: u32| {
        format!(
            "mkdir -p .git/hooks; {{ echo '#!/bin/sh'; for i in $(seq {lines}); do echo; done
                echo the-last; }} > new; chmod +x new; mv new .git/hooks/post-checkout"
        )
    };
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (plant, is_shown) in [
            (settings(16, 200), true),
            (settings(300, 0), false),
            (settings(1, 3000), false),
            (hook(300), true),
            (hook(3000), false),
        ] {
            said(laptop, Place::Outside, REPOSITORY);
            let output = session(laptop, &plant);
            assert!(output.stderr().contains("undone"), "{plant}: {output:?}");
            let left = said(laptop, Place::Outside, LAST);
            assert!(!left.contains("the-last"), "{plant}: {left}");
            let stderr = output.stderr();
            let id = stderr.rsplit_once("accept ").expect("a command").1.trim();
            let accept = |how| laptop.stockade(["accept", how, id]).run().expect("an end");
            let shown = accept("--show");
            let is_said = |text: &str| shown.stdout().contains(text);
            assert_eq!(is_said("MORE"), !is_shown, "{plant}");
            assert!(is_said("the-last") || !is_shown, "{plant}");
            let accept = accept("--yes");
            let is_applied = said(laptop, Place::Outside, LAST).contains("the-last");
            assert_eq!(is_applied, is_shown, "{plant}: {accept:?}");
            let is_refused = accept.stderr().contains("too long");
            assert_eq!(is_refused, !is_shown, "{plant}: {accept:?}");
        }
    });
}
