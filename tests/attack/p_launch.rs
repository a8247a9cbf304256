//! Whether what a session can write decides how the next one is made: the launcher itself (P6).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use stockade_world::{Laptop, Output, test};

use crate::support::standard;

/// Runs a launcher by this name.
fn launched(laptop: &Laptop, program: &str, options: &[&str]) -> Output {
    let path = format!(".:{}:/usr/bin:/bin", laptop.home().join("tools").display());
    let command = laptop
        .command("bash")
        .args(["-c", "exec \"$@\"", "bash", program]);
    let command = command.arg("run").args(options.iter().copied());
    let command = command.args(["--", "bash", "-c", "echo ran"]);
    command.env("PATH", path).run().expect("the end")
}

#[track_caller]
fn expect_refused(output: &Output) {
    assert_eq!(output.code(), 125, "{output:?}");
    assert_eq!(output.stdout(), "", "{output:?}");
    let message = output.stderr();
    assert!(
        message.contains("the command could replace this program"),
        "{message}"
    );
    assert!(message.contains("install Stockade elsewhere"), "{message}");
}

#[track_caller]
fn expect_run(output: &Output) {
    assert_eq!(output.stdout(), "ran\n", "{output:?}");
}

#[test]
fn p06_a_launcher_that_the_session_could_replace_does_not_start_one() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let installed = laptop.command("bash").args(["-c", "command -v stockade"]);
        let installed = installed.run().expect("the end").stdout();
        let installed = Path::new(installed.trim());
        let (workspace, home) = (laptop.workspace(), laptop.home());
        let tools = home.join("tools");
        let state = home.join(".claude");
        for directory in [&tools, &state, &workspace.join("bin")] {
            fs::create_dir_all(directory).expect("a directory");
        }
        let name = |path: &Path| path.display().to_string();
        let copy = |path: &Path| {
            fs::copy(installed, path).expect("a copy");
            name(path)
        };

        // Elsewhere it works, by whatever name.
        let elsewhere = copy(&tools.join("stockade"));
        expect_run(&launched(laptop, &elsewhere, &[]));
        expect_run(&launched(laptop, "stockade", &[]));
        symlink(&elsewhere, tools.join("link")).expect("a link");
        expect_run(&launched(laptop, "link", &[]));

        // In the workspace; by a link there; by a link elsewhere that leads there.
        let within = copy(&workspace.join("bin/stockade"));
        expect_refused(&launched(laptop, &within, &[]));
        expect_refused(&launched(laptop, "bin/stockade", &[]));
        symlink(&elsewhere, workspace.join("shortcut")).expect("a link");
        expect_refused(&launched(laptop, "./shortcut", &[]));
        expect_refused(&launched(laptop, "shortcut", &[]));
        symlink(&within, tools.join("inwards")).expect("a link");
        expect_refused(&launched(laptop, "inwards", &[]));
        symlink(&workspace, home.join("way")).expect("a link");
        expect_refused(&launched(
            laptop,
            &name(&home.join("way/bin/stockade")),
            &[],
        ));
        symlink(&tools, workspace.join("directory")).expect("a link");
        expect_refused(&launched(laptop, "./directory/stockade", &[]));

        // In what is given to be written; in an agent's state.
        let written = name(&tools);
        expect_refused(&launched(laptop, &elsewhere, &["--write", &written]));
        expect_run(&launched(laptop, &elsewhere, &["--read", &written]));
        let agents = copy(&state.join("stockade"));
        expect_refused(&launched(laptop, &agents, &["--profile", "claude"]));
        expect_run(&launched(laptop, &agents, &[]));

        // What it is about: a session can replace what lies there.
        let replace = ["--", "bash", "-c", "echo forged > bin/stockade"];
        let output = laptop.command(&elsewhere).arg("run").args(replace);
        output.run().expect("the end").expect_success();
        assert_eq!(fs::read_to_string(&within).expect("a file"), "forged\n");
    });
}
