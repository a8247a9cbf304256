//! Second names of files that are hidden or read-only inside (P12). A mount covers one name of a file; an earlier
//! session may have made another one.

use stockade_world::{Laptop, Output, test};

use super::f_files::said;
use super::p_git::REPOSITORY;
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
