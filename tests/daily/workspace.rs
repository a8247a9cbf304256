//! The workspace: the current directory, a named one, or the repository around.

use std::path::Path;

use stockade_world::{Laptop, Output, test};

use crate::support::standard;

fn outside(laptop: &Laptop, script: &str) {
    let bash = laptop.command("bash").args(["-euc", script]);
    bash.run().expect("its end").expect_success();
}

/// `stockade WORDS`, from this directory below the workspace.
fn stockade(laptop: &Laptop, directory: impl AsRef<Path>, words: &[&str]) -> Output {
    let directory = laptop.workspace().join(directory);
    let command = laptop.stockade(words).directory(directory);
    command.run().expect("its end")
}

const REPOSITORY: &str =
    "git init -q .; mkdir -p deep/down other; echo top > file; echo x > deep/down/x
    git add .; git -c user.name=x -c user.email=x commit -qm one";
/// Where it starts, what git says, and where it can write.
const LOOK: &str = "pwd; git rev-parse --show-toplevel; touch ../../written && echo wrote";

#[test]
fn a_named_workspace_is_shown_whole_and_the_command_starts_where_it_was_typed() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(laptop, REPOSITORY);
        let top = "/home/dev/project";
        let inside = format!("{top}/deep/down\n{top}\nwrote\n");
        for words in [
            ["run", "-C", top, "--", "bash", "-c", LOOK],
            ["run", "--workspace", "../..", "--", "bash", "-c", LOOK],
            ["-C", "../..", "run", "--", "bash", "-c", LOOK],
        ] {
            let output = stockade(laptop, "deep/down", &words).expect_success();
            assert_eq!(output.stdout(), inside, "{words:?}");
            assert_eq!(output.stderr(), "", "{words:?}");
        }
        // From elsewhere, it starts at the top.
        let elsewhere = ["run", "-C", "project/deep", "--", "pwd"];
        let output = stockade(laptop, "..", &elsewhere).expect_success();
        assert_eq!(output.stdout(), format!("{top}/deep\n"));
        // An agent's own options come after its name, ours before.
        let bin = laptop.home().join("bin/claude");
        std::fs::create_dir_all(bin.parent().expect("a directory")).expect("a directory");
        std::fs::write(&bin, "#!/bin/sh\npwd; cat ../../file\n").expect("a program");
        outside(laptop, "chmod +x ~/bin/claude");
        let agent = laptop.stockade(["-C", top, "claude"]);
        let agent = agent.directory(laptop.workspace().join("deep/down"));
        let agent = agent.env("PATH", "/home/dev/bin:/usr/bin:/bin");
        let output = agent.run().expect("its end").expect_success();
        assert_eq!(output.stdout(), format!("{top}/deep/down\ntop\n"));
    });
}

#[test]
fn paths_of_options_are_those_of_the_current_directory() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(
            laptop,
            &format!("{REPOSITORY}; echo secret > deep/down/.env"),
        );
        let words = [
            "run", "-C", "../..", "--hide", ".env", "--", "cat", "x", ".env",
        ];
        let output = stockade(laptop, "deep/down", &words);
        assert_eq!(output.stdout(), "x\n", "{output:?}");
    });
}

#[test]
fn who_starts_in_a_part_of_a_repository_is_offered_all_of_it() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(laptop, REPOSITORY);
        let output = stockade(laptop, "deep/down", &["run", "--", "cat", "../../file"]);
        assert_ne!(output.code(), 0, "only a part is shown");
        let told = output.stderr();
        let offer = "stockade -C /home/dev/project …";
        assert!(told.contains(offer), "{told}");
        // What is offered works.
        let words = ["-C", "/home/dev/project", "run", "--", "cat", "../../file"];
        let output = stockade(laptop, "deep/down", &words).expect_success();
        assert_eq!(
            (output.stdout(), output.stderr()),
            ("top\n".into(), String::new())
        );
    });
}

#[test]
fn a_users_file_makes_the_repository_the_workspace() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(laptop, REPOSITORY);
        let config = laptop.home().join(".config/stockade/config.toml");
        std::fs::write(&config, "workspace = \"repository\"\n").expect("a file");
        let top = "/home/dev/project";
        let run = ["run", "--", "bash", "-c", LOOK];
        let output = stockade(laptop, "deep/down", &run).expect_success();
        assert_eq!(output.stdout(), format!("{top}/deep/down\n{top}\nwrote\n"));
        assert_eq!(output.stderr(), "");
        let shown = stockade(laptop, "deep/down", &["config", "show"]).expect_success();
        assert!(shown.stdout().contains("# workspace: /home/dev/project\n"));
        // A named one wins.
        let named = ["run", "-C", ".", "--", "cat", "../../file"];
        assert_ne!(stockade(laptop, "deep/down", &named).code(), 0);
        // Outside of any repository it is the directory; a repository of the whole home is none.
        outside(laptop, "mkdir -p ~/plain/below; git -C ~ init -q");
        let plain = ["run", "--", "bash", "-c", "pwd; ls .. | wc -l"];
        let output = stockade(laptop, "../plain/below", &plain).expect_success();
        assert_eq!(output.stdout(), "/home/dev/plain/below\n1\n");
        // A word that is none is refused, and so is the key in a project's own file.
        std::fs::write(&config, "workspace = \"repo\"\n").expect("a file");
        let refused = stockade(laptop, ".", &run).expect_code(125);
        assert!(refused.stderr().contains("\"repository\""), "{refused:?}");
    });
}

/// However it is named.
#[test]
fn a_workspace_that_undoes_the_wall_is_refused_by_any_name() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(
            laptop,
            "ln -s ~ link; ln -s / root; git -C ~ init -q; git -C ~/.ssh init -q",
        );
        for place in [
            "/",
            "/home",
            "~",
            "..",
            "link",
            "root",
            "/etc",
            "../.ssh",
            "nowhere",
            "/dev/null",
        ] {
            let place = place.replace('~', "/home/dev");
            let words = ["run", "-C", &place, "--", "echo", "ran"];
            let output = stockade(laptop, ".", &words).expect_code(125);
            assert_eq!(output.stdout(), "", "{place}");
        }
        let fine = ["run", "-C", ".", "--", "echo", "ran"];
        assert_eq!(stockade(laptop, ".", &fine).stdout(), "ran\n");
    });
}
