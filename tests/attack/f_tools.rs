//! Variables, caches and virtual environments for tools (F14): none of them shows or changes what
//! is the user's own.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

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
            let is_nothing = name == "GOPATH" || value == "/run";
            assert_eq!(is_told, !is_nothing, "{name}={value}: {told}");
        }
    });
}

fn write(laptop: &Laptop, path: &str, text: &str) {
    let path = laptop.home().join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, text).expect("a file");
}

fn script(laptop: &Laptop, script: &str) -> String {
    let run = laptop.stockade(["run", "--", "bash", "-c", script]);
    run.run().expect("its end").expect_success().stdout()
}

#[test]
fn f14_a_cache_that_is_a_link_shows_no_credentials() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let link = |text: &str, at: &str| {
            let at = laptop.home().join(at);
            fs::create_dir_all(at.parent().expect("a directory")).expect("a directory");
            symlink(laptop.home().join(text), at).expect("a link");
        };
        // Positive control: a link to what is no credential is followed.
        link("other-project", ".npm");
        link(".ssh", ".m2/repository");
        link(".gnupg", ".cargo/registry");
        link("", "go/pkg");
        link(".config", ".gradle");
        link("Documents", "project/planted");
        link("project/planted", ".yarn/berry");
        link(".local/state/stockade", ".ivy2/cache");
        let (seen, _) = found(laptop, &[]);
        assert_eq!(seen, "/home/dev/.npm/.env\n/home/dev/.npm/src/main.c\n");
    });
}

#[test]
fn f14_what_a_session_leaves_in_a_cache_shows_and_changes_nothing_of_the_users() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        write(laptop, ".cache/huggingface/token", "secret\n");
        write(laptop, ".cache/plain/file", "plain\n");
        write(laptop, ".npm/file", "plain\n");
        let look = "cat ~/.cache/plain/file ~/.cache/huggingface/token ~/.cache/h/token \
            ~/.npm/{key,around,file} ~/.npm/docs/taxes.txt 2>/dev/null; true";
        // Positive control: what is no secret is there.
        assert_eq!(script(laptop, look), "plain\nplain\n");
        let attack = r#"cd ~/.npm; ln -s ~/.ssh/id_ed25519 key; ln -s ~/Documents docs
            ln -s ../../../../../../../../.ssh/id_ed25519 around
            python3 - <<'END'
import os
for name in ["opaque", "redirect", "origin", "metacopy", "whiteout", "xwhiteouts"]:
    for value in [b"y", b"/", b"/huggingface", b"../.."]:
        for path in [".", os.path.expanduser("~/.cache"), os.path.expanduser("~/.cache/plain")]:
            for prefix in ["user.overlay.", "trusted.overlay."]:
                try: os.setxattr(path, prefix + name, value)
                except OSError: pass
END
            mknod white c 0 0; mknod ~/.cache/plain/white c 0 0
            mkdir ~/.cache/huggingface && echo mine > ~/.cache/huggingface/token
            rm -r ~/.cache/huggingface; mv ~/.cache/huggingface ~/.cache/h
            chmod 000 ~/.npm ~/.cache; true"#;
        let run = laptop.stockade(["run", "--", "bash", "-c", attack]);
        run.run().expect("its end").expect_success();
        for _ in 0..2 {
            assert_eq!(script(laptop, look), "plain\nplain\n");
        }
        // Nor to who lists and clears it.
        laptop
            .stockade(["caches"])
            .run()
            .expect("a list")
            .expect_success();
        let clear = laptop.stockade(["caches", "--clear"]);
        clear.run().expect("its end").expect_success();
        for path in ["Documents/taxes.txt", ".ssh/id_ed25519", ".npm/file"] {
            assert!(laptop.home().join(path).is_file(), "{path}");
        }
        assert_eq!(script(laptop, look), "plain\nplain\n");
    });
}

#[test]
fn f14_caches_of_one_workspace_are_out_of_reach_in_another() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        write(laptop, ".npm/file", "plain\n");
        write(laptop, "second/file", "");
        script(
            laptop,
            "echo poison > ~/.npm/new; echo poison > ~/.npm/file",
        );
        let look = "cat ~/.npm/*; ls -A ~/.local/state 2>/dev/null; true";
        // Positive control: the same workspace has it.
        assert_eq!(script(laptop, look), "poison\npoison\n");
        let second = laptop.stockade(["run", "--", "bash", "-c", look]);
        let second = second.directory(laptop.home().join("second"));
        let second = second.run().expect("its end").expect_success();
        assert_eq!(second.stdout(), "plain\n");
        // Nor does anybody work in it, or show it.
        let caches = laptop.home().join(".local/state/stockade/caches");
        let opened = fs::set_permissions(&caches, PermissionsExt::from_mode(0o700));
        opened.expect("it is the user's");
        let keys = fs::read_dir(caches.join("all")).expect("caches").flatten();
        let mut uppers = keys.map(|key| key.path().join("npm/upper"));
        let upper = uppers.find(|upper| upper.join("new").exists());
        let upper = upper.expect("what the first session wrote");
        let refused = |arguments: &[&str], directory: &Path| {
            let run = laptop
                .stockade(["run"])
                .args(arguments)
                .args(["--", "true"]);
            run.directory(directory).run().expect("its end").code()
        };
        assert_eq!(refused(&[], &upper), 125);
        let upper = upper.to_str().expect("a path");
        for option in ["--read", "--write"] {
            assert_eq!(refused(&[option, upper], &laptop.workspace()), 125);
        }
    });
}

#[test]
fn f14_an_environment_that_a_session_planted_shows_nothing() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        // What looks like installations of Python's.
        for base in ["other-project", ".ssh", "Documents"] {
            write(laptop, &format!("{base}/bin/python"), "");
            write(laptop, &format!("{base}/lib/python3/os.py"), "");
        }
        // And what looks like environments.
        for place in [".ssh", "Documents", "project"] {
            write(laptop, &format!("{place}/pyvenv.cfg"), "");
        }
        let environment = |at: &str, base: &str| {
            let home = laptop.home();
            let settings = format!("home = {}/bin\n", home.join(base).display());
            write(laptop, &format!("{at}/pyvenv.cfg"), &settings);
            let python = home.join(at).join("bin/python");
            fs::create_dir_all(python.parent().expect("a directory")).expect("a directory");
            symlink(home.join(base).join("bin/python"), python).expect("a link");
        };
        environment("envs/mine", "other-project");
        environment("envs/keys", ".ssh");
        environment("project/.venv", "other-project");
        symlink(
            laptop.home().join("Documents"),
            laptop.home().join("project/led"),
        )
        .expect("a link");
        // A session of another workspace put it in the place of its environment.
        symlink("../other-project", laptop.home().join("envs/led")).expect("a link");
        let own = "/home/dev/other-project/.env\n/home/dev/other-project/src/main.c\n";
        // Positive control: an environment of the user's brings its interpreter along.
        let seen = |name, value| found(laptop, &[(name, value)]).0;
        assert_eq!(seen("VIRTUAL_ENV", "/home/dev/envs/mine"), own);
        let on_path = |place: &str| {
            let path = format!("/home/dev/{place}/bin:/usr/bin:/bin");
            found(laptop, &[("PATH", path.as_str())]).0
        };
        assert_eq!(on_path("envs/mine"), own);
        for place in [
            "envs/keys",
            "project/.venv",
            "project/led",
            "envs/led",
            ".ssh",
            "project",
        ] {
            assert_eq!(on_path(place), "", "{place}");
        }
        for (name, value) in [
            ("VIRTUAL_ENV", "/home/dev/envs/keys"),
            ("VIRTUAL_ENV", "/home/dev/project/.venv"),
            ("VIRTUAL_ENV", "/home/dev/project/led"),
            ("VIRTUAL_ENV", "/home/dev/envs/led"),
            ("CONDA_PREFIX", "/home/dev/envs/led"),
            ("VIRTUAL_ENV", "/home/dev/.ssh"),
            ("CONDA_PREFIX", "/home/dev"),
            ("CONDA_PREFIX", "/home/dev/.config"),
        ] {
            assert_eq!(seen(name, value), "", "{name}={value}");
        }
        // Nor by the program's path.
        let look = "grep -rlF DECOY-SECRET- /home 2>/dev/null";
        let python = laptop.workspace().join(".venv/bin/python");
        fs::remove_file(&python).expect("the link");
        fs::copy("/bin/bash", &python).expect("a program");
        let run = laptop.stockade(["run", "--"]).arg(&python);
        let output = run.args(["-c", look]).run().expect("its end");
        assert_eq!(output.stdout(), "", "{output:?}");
    });
}
