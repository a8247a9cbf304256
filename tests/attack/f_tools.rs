//! Variables, caches and virtual environments for tools (F14): none of them shows or changes what
//! is the user's own.

use std::os::unix::fs::symlink;

use stockade_world::{Command, Laptop, test};

use crate::support::standard;

/// The files with secrets that a command finds, with these variables in the caller's environment.
fn found(laptop: &Laptop, variables: &[(&str, &str)]) -> (String, String) {
    let script = "grep -rlF DECOY-SECRET- /home /etc /mnt /srv /run 2>/dev/null | sort";
    let run = laptop.stockade(["run", "--", "bash", "-c", script]);
    let set = |run: Command, (name, value): &(&str, &str)| run.env(name, value);
    let output = variables.iter().fold(run, set).run().expect("its end");
    (output.stdout(), output.stderr())
}

#[test]
fn f14_a_variable_for_tools_shows_no_credentials() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let link = |text: &str, at: &str| {
            symlink(laptop.home().join(text), laptop.home().join(at)).expect("a link");
        };
        link(".gnupg", "tools");
        link("Documents", "project/planted");
        // Positive control: who names another directory has it.
        let (seen, told) = found(laptop, &[("NVM_DIR", "/home/dev/other-project")]);
        assert_eq!(
            seen,
            "/home/dev/other-project/.env\n/home/dev/other-project/src/main.c\n"
        );
        assert!(!told.contains("NVM_DIR"), "{told}");
        for (name, value) in [
            ("RUSTUP_HOME", "/home/dev/.ssh"),
            ("CARGO_HOME", "/home/dev/.gnupg"),
            ("NVM_DIR", "/home/dev"),
            ("NVM_DIR", "/home"),
            ("JAVA_HOME", "/home/dev/.config"),
            ("JAVA_HOME", "/home/dev/.config/gcloud"),
            ("GOROOT", "/home/dev/.local/state/stockade"),
            ("PYENV_ROOT", "/home/dev/tools"),
            ("PYENV_ROOT", "/home/dev/project/planted"),
            ("GOPATH", "/home/dev/go:/home/dev/.aws"),
            ("VOLTA_HOME", "/etc"),
            ("VOLTA_HOME", "/run"),
        ] {
            let (seen, told) = found(laptop, &[(name, value)]);
            assert_eq!(seen, "", "{name}={value}");
            let is_told = told.contains(&format!("stockade: {name} names "));
            // Of these nothing exists that a tool would look for, or it is private inside.
            let is_nothing = ["CARGO_HOME", "GOPATH"].contains(&name) || value == "/run";
            assert_eq!(is_told, !is_nothing, "{name}={value}: {told}");
        }
    });
}
