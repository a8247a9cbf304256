//! Second names of files (hard links). A mount covers one name of a file that is hidden or read-only inside; an
//! earlier session may have made another one (P12). Git outside writes to some of its files in place, and to
//! whatever else has their name (P1).

use stockade_world::{Laptop, Output, test};

use super::f_files::said;
use super::p_git::{EVIL, REPOSITORY, ran, session};
use super::probe::Place;
use crate::support::standard;

/// Two names of a file, made by a session before anybody protects it; then its user fills it in.
const PREPARE: &str = "mkdir -p .githooks build; echo 'KEY=' > .env; echo '#!/bin/sh' > .githooks/pre-commit
    echo 'export A=1' > .envrc; ln .env build/one; ln .githooks/pre-commit build/two; ln .envrc build/three";
const FILL: &str = "echo 'KEY=decoy' > .env; git config core.hooksPath .githooks";
const USE: &str = "cat build/one; echo 'echo evil' >> build/two; echo 'echo evil' >> build/three";

fn start(laptop: &Laptop, options: &[&str]) -> Output {
    let words = [&["run"], options, &["--", "sh", "-c", USE]].concat();
    laptop.stockade(words).run().expect("an end")
}

#[test]
fn p12_a_file_with_a_second_name_is_not_taken_for_hidden_or_read_only() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        outside(REPOSITORY);
        let words = ["run", "--", "sh", "-c", PREPARE];
        laptop
            .stockade(words)
            .run()
            .expect("an end")
            .expect_success();
        outside(FILL);
        // One after the other becomes a file of its own: the next one is in the way then.
        let own = |path: &str| outside(&format!("cp -p {path} new && mv new {path}"));
        for path in [".env", ".envrc", ".githooks/pre-commit"] {
            let output = start(laptop, &["--hide", ".env"]).expect_code(125);
            let stderr = output.stderr();
            assert!(
                stderr.contains("second name") && output.stdout().is_empty(),
                "{output:?}"
            );
            let is_named = |name: &str| stderr.contains(&format!("/project/{name}\""));
            assert!(
                [".env", ".envrc", ".githooks/pre-commit"]
                    .into_iter()
                    .any(is_named),
                "{stderr}"
            );
            own(path);
        }
        // Positive control: the names are found without the protection, and lead to other files with it.
        let output = start(laptop, &["--hide", ".env"]).expect_success();
        assert_eq!(output.stdout(), "KEY=decoy\n");
        assert_eq!(
            outside("cat .envrc .githooks/pre-commit build/three"),
            "export A=1\n#!/bin/sh\nexport A=1\necho evil\n"
        );
    });
}

/// The message of a commit that git also reads as settings, which git outside writes where a session left
/// the settings themselves.
const MESSAGE: &str =
    "cp .git/config build.ini; printf '[core]\\nfsmonitor = %s\\n' $EVIL >> build.ini
    git add build.ini; git commit -q -F - <<'END'
#42 Mend the parser

[include] path = ../build.ini
END
    ln -f .git/config .git/COMMIT_EDITMSG";

#[test]
fn p01_git_outside_writes_no_settings_by_a_second_name_of_theirs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        let amend = "git commit -q --amend --no-edit --allow-empty; git status; true";
        outside(REPOSITORY);
        outside(&format!("{EVIL}; {MESSAGE}; {amend}"));
        assert!(ran(laptop), "positive control");

        outside(REPOSITORY);
        let output = session(laptop, &format!("{EVIL}; {MESSAGE}"));
        outside(amend);
        assert!(!ran(laptop), "{output:?}");
        assert!(output.stderr().contains("second name"), "{output:?}");
        assert_eq!(
            outside("stat -c %h .git/config; git config user.name"),
            "1\na\n"
        );

        // One that an earlier session left, or a killed one.
        outside(REPOSITORY);
        outside(&format!("{EVIL}; {MESSAGE}"));
        let output = session(laptop, "true");
        outside(amend);
        assert!(!ran(laptop), "{output:?}");
    });
}

/// A sequence of commits that is not finished, with options that do no harm until git writes the message of a
/// commit to them.
const SEQUENCE: &str = "git checkout -q -b feature; echo f > a; git add a
    printf '#42 Mend\\n\\n[options] strategy = docs/build\\n' | git commit -q --cleanup=verbatim -F -
    echo n > c; git add c; git commit -q -m c; git checkout -q -; echo m > a; git add a; git commit -q -m a
    git cherry-pick feature~2..feature >/dev/null 2>&1
    mkdir git-merge-docs; cp $EVIL git-merge-docs/build
    test -e .git/sequencer/opts || printf '[options]\\n\\tallow-ff = true\\n' > .git/sequencer/opts
    ln -f .git/sequencer/opts .git/COMMIT_EDITMSG; true";

#[test]
fn p01_git_outside_writes_no_arguments_by_a_second_name_of_theirs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        let before = format!("{REPOSITORY}; echo a > a; git add a; git commit -q -m base");
        let go_on = "echo r > a; git add a; export GIT_EDITOR=true; git commit -q >/dev/null
            git cherry-pick --continue >/dev/null 2>&1; true";
        outside(&before);
        outside(&format!("{EVIL}; {SEQUENCE}; {go_on}"));
        assert!(ran(laptop), "positive control");

        outside(&before);
        let output = session(laptop, &format!("{EVIL}; {SEQUENCE}"));
        assert_eq!(
            outside("stat -c %h .git/sequencer/opts"),
            "1\n",
            "{output:?}"
        );
        outside(go_on);
        assert!(!ran(laptop), "{output:?}");
        assert!(output.stderr().contains("second name"), "{output:?}");

        // Whatever the other name is, of all that git writes to.
        outside(&before);
        let many = "echo x > build.sh; cd .git; git update-ref refs/heads/other HEAD
            for file in COMMIT_EDITMSG logs/HEAD refs/heads/other FETCH_HEAD; do
            touch $file; n=$((n + 1)); ln $file ../other$n; done; mkdir -p rr-cache/1; ln ../build.sh rr-cache/1/thisimage";
        let output = session(laptop, many);
        let linked = "find .git -type f -links +1 -not -path '.git/objects/*'; cat build.sh";
        assert_eq!(outside(linked), "x\n", "{output:?}");
    });
}
