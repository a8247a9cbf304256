//! An agent that is run for the first time keeps what it writes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use stockade_world::{Laptop, Output, test};

use crate::support::standard;

/// Says what it finds of an earlier login, and logs in.
const AGENT: &str = "#!/bin/sh
cat ~/.claude/login ~/.claude.json 2>/dev/null
echo logged in > ~/.claude/login
echo '{\"seen\":1}' > ~/.claude.json
";

/// The decoys of the laptop have a home of somebody who uses the agent.
fn first_time(laptop: &Laptop) {
    for path in [".claude", ".claude.json"] {
        let path = laptop.home().join(path);
        if path.is_dir() {
            fs::remove_dir_all(path).expect("remove");
        } else if path.exists() {
            fs::remove_file(path).expect("remove");
        }
    }
    let program = laptop.home().join(".local/bin/claude");
    fs::create_dir_all(program.parent().expect("a directory")).expect("a directory");
    fs::write(&program, AGENT).expect("an agent");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
}

fn run(laptop: &Laptop, arguments: &[&str]) -> Output {
    let path = format!("{}/.local/bin:/usr/bin:/bin", laptop.home().display());
    let command = laptop.stockade(arguments).env("PATH", path);
    command.run().expect("stockade ends")
}

#[test]
fn what_an_agent_writes_the_first_time_is_there_the_second() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        first_time(laptop);
        let home = laptop.home();

        // What would be done is said before.
        let plan = run(laptop, &["plan", "--", "claude"]).expect_success();
        assert!(plan.stdout().contains("it is made, empty"), "{plan:?}");
        assert!(!home.join(".claude").exists());

        let first = run(laptop, &["claude"]).expect_success();
        assert_eq!(first.stdout(), "{}\n");
        let made = format!("made {0}/.claude and {0}/.claude.json", home.display());
        assert!(first.stderr().contains(&made), "{first:?}");
        for (name, mode) in [(".claude", 0o700), (".claude.json", 0o600)] {
            let metadata = fs::metadata(home.join(name)).expect("made");
            assert_eq!(metadata.permissions().mode() & 0o777, mode, "{name}");
        }

        let second = run(laptop, &["claude"]).expect_success();
        assert_eq!(second.stdout(), "logged in\n{\"seen\":1}\n");
        assert_eq!(second.stderr(), "");
    });
}

#[test]
fn nothing_is_made_for_other_programs_or_refused_launches() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        first_time(laptop);
        let nothing = || !laptop.home().join(".claude").exists();
        run(laptop, &["run", "--profile", "claude", "--", "true"]).expect_success();
        assert!(nothing());
        run(laptop, &["run", "--", "true"]).expect_success();
        assert!(nothing());
        run(laptop, &["run", "--read", "/nowhere", "--", "claude"]).expect_code(125);
        assert!(nothing());
        fs::remove_file(laptop.home().join(".local/bin/claude")).expect("remove");
        run(laptop, &["claude"]).expect_code(127);
        assert!(nothing());
    });
}

#[test]
fn a_link_that_leads_nowhere_is_not_filled() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        first_time(laptop);
        let elsewhere = laptop.home().join("elsewhere");
        symlink(&elsewhere, laptop.home().join(".claude.json")).expect("a link");
        let output = run(laptop, &["claude"]).expect_success();
        assert!(
            output.stderr().contains(".claude.json cannot be made"),
            "{output:?}"
        );
        assert!(output.stderr().contains("is gone at the end"), "{output:?}");
        assert!(!elsewhere.exists());
        assert!(laptop.home().join(".claude/login").exists());
    });
}
