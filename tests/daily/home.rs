//! What is written outside the workspace does not vanish in silence.

use std::fs;

use stockade_world::{Laptop, Output, test};

use super::PROFILES;
use crate::support::standard;

fn run(laptop: &Laptop, options: &[&str], script: &str) -> Output {
    let run = laptop.stockade(["run"]).args(options);
    let run = run.args(["--", "bash", "-c", script]);
    run.run().expect("its end")
}

#[test]
fn what_a_session_leaves_in_its_private_home_is_told_in_every_profile() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let script = "echo notes > ~/notes.txt; mkdir -p ~/x/y; head -c 2M /dev/zero > ~/x/y/z; \
            echo > ~/x/w; echo mine > ~/.cache/mine; echo ls > ~/.bash_history; echo x > /tmp/x; \
            mkdir -p ~/.cargo; echo x > ~/.cargo/.package-cache; ln -s /etc ~/link";
        for profile in PROFILES {
            let output = run(laptop, &["--profile", profile], script).expect_success();
            let told = "stockade: 3 files written outside the workspace were discarded: \
                ~/notes.txt (1 KiB), ~/x/ (2 files, 2.0 MiB)\n";
            assert!(output.stderr().contains(told), "{profile}: {output:?}");
            // What is no work of anybody's is not.
            let output = run(laptop, &["--profile", profile], "cat README.md").expect_success();
            assert!(!output.stderr().contains("discarded"), "{output:?}");
        }
        let output = run(laptop, &["--quiet"], script).expect_success();
        assert_eq!(output.stderr(), "");
        let output = run(laptop, &[], "echo > ~/$'\\e[2J\\nx'");
        assert!(!output.stderr().contains('\u{1b}'), "{output:?}");
        assert!(output.stderr().contains("1 file written"), "{output:?}");
    });
}

#[test]
fn many_files_in_the_private_home_do_not_hold_up_the_end() {
    test(&standard(), |world| {
        let script = "mkdir ~/many; cd ~/many; python3 -c 'import os\nfor i in range(120000): \
            open(str(i), \"w\").close()'";
        let output = run(world.laptop(), &[], script).expect_success();
        let told = output.stderr();
        assert!(told.contains("stockade: at least "), "{told}");
        assert!(told.contains("~/many/"), "{told}");
    });
}

#[test]
fn nothing_can_be_made_beside_a_workspace_whose_directory_is_not_there_inside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let work = laptop.home().join("work/deep/project");
        fs::create_dir_all(&work).expect("a workspace");
        let git = "git init -q -b main; git -c user.name=d -c user.email=d@x commit -q \
            --allow-empty -m first";
        let made = laptop.shell(git).directory(&work).run().expect("git");
        made.expect_success();
        let run = |options: &[&str], script: &str| {
            let run = laptop.stockade(["run"]).args(options);
            let run = run.args(["--", "bash", "-c", script]).directory(&work);
            run.run().expect("its end")
        };
        let failed = run(&[], "git worktree add -q ../x");
        assert_ne!(failed.code(), 0, "{failed:?}");
        assert!(
            failed.stderr().contains("Read-only file system"),
            "{failed:?}"
        );
        let script =
            "touch ../y ../../y ~/work/y 2>/dev/null; touch ~/z inside; ls ~/work ~/work/deep";
        let output = run(&[], script).expect_success();
        assert_eq!(
            output.stdout(),
            "/home/dev/work:\ndeep\n\n/home/dev/work/deep:\nproject\n"
        );
        assert!(work.join("inside").exists());
        // Who gives the directory has it.
        let given = run(
            &["--write", "~/work"],
            "git worktree add -q ../x; touch ~/work/y",
        );
        given.expect_success();
        assert!(work.join("../x/.git").exists() && laptop.home().join("work/y").exists());
    });
}
