//! Shims: `claude` itself is the sandboxed one, in every shell, and everything is as before once
//! they are removed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use serde_json::Value;
use stockade_world::{Laptop, Login, Output, test};

use super::agents::{CLAUDE, LIMIT, with};
use crate::support::standard;

/// Says its version, where it is, and its arguments. Outside, the user's secrets can be read; inside,
/// the session itself says so.
pub(crate) fn agent(version: &str) -> String {
    format!(
        "#!/bin/sh\n\
         where=nowhere\n\
         if [ -r ~/.netrc ]; then where=outside; fi\n\
         if /run/stockade/init inside --quiet 2>/dev/null; then where=inside; fi\n\
         echo \"{version} $where $*\"\n"
    )
}

pub(crate) fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    // As updates do.
    let fresh = path.with_extension("new");
    fs::write(&fresh, text).expect("a program");
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).expect("its mode");
    fs::rename(&fresh, path).expect("a program");
}

/// Puts an agent where its installer does, and it in the PATH of all shells, as people do.
fn furnish(laptop: &Laptop) {
    program(&laptop.home().join(".local/bin/claude"), &agent("1.0"));
    for (name, text) in [
        // As Debian's.
        (
            ".profile",
            "if [ -n \"$BASH_VERSION\" ] && [ -f ~/.bashrc ]; then . ~/.bashrc; fi\n\
             PATH=\"$HOME/.local/bin:$PATH\"\n",
        ),
        (
            ".bashrc",
            "case $- in *i*) ;; *) return ;; esac\nHISTSIZE=10\nPATH=\"$HOME/.local/bin:$PATH\"",
        ),
        (".zshenv", "path=(~/.local/bin $path)\n"),
        (".zshrc", "setopt nounset"),
        (
            ".config/fish/config.fish",
            "fish_add_path -g ~/.local/bin\n",
        ),
    ] {
        let file = laptop.home().join(name);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, text).expect("a file");
    }
}

const SHELLS: [[&str; 2]; 6] = [
    ["bash", "-lc"],
    ["bash", "-ic"],
    ["zsh", "-lc"],
    ["zsh", "-ic"],
    ["fish", "-lc"],
    ["fish", "-ic"],
];

/// What a new shell of this kind runs, after a login.
fn shell(laptop: &Laptop, [shell, flags]: [&str; 2], line: &str) -> Output {
    let command = laptop
        .command(format!("/usr/bin/{shell}"))
        .args([flags, line]);
    let command = command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.run().expect("the shell ends")
}

/// What an interactive shell says that is typed to.
fn typed(laptop: &Laptop, shell: &str, lines: &str) -> String {
    let command = laptop.command(format!("/usr/bin/{shell}")).arg("-i");
    let command = command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.input(lines).run().expect("the shell ends").stdout()
}

fn stockade(laptop: &Laptop, line: &[&str]) -> Output {
    laptop.stockade(line).run().expect("stockade ends")
}

fn shims(laptop: &Laptop) -> PathBuf {
    laptop.home().join(".local/share/stockade/shims")
}

/// Every file of the home, with its mode and contents, but for what programs write for themselves.
fn files(laptop: &Laptop) -> String {
    let line = "cd; find . \\( -path ./.local/state -o -path ./.local/share/fish -o -path ./.cache \
        -o -name 'fish_variables*' -o -path ./.claude -o -name '.claude.json*' -o -name .zcompdump \\) \
        -prune -o -printf '%p %y %m %l\\n' -type f -exec sha256sum {} + | sort";
    let output = laptop.command("/usr/bin/bash").args(["-c", line]).run();
    output.expect("the shell ends").stdout()
}

#[test]
fn a_new_shell_of_each_kind_starts_the_agent_in_the_sandbox_until_the_shim_is_removed() {
    test(&standard().limit(4 * LIMIT), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        for kind in SHELLS {
            let before = shell(laptop, kind, "claude --version");
            assert_eq!(
                before.stdout(),
                "1.0 outside --version\n",
                "{kind:?}: {before:?}"
            );
        }
        stockade(laptop, &["claude"]).expect_success();
        let before = files(laptop);
        assert!(before.contains("./.bashrc f"), "{before}");

        let added = stockade(laptop, &["shim", "add", "--write-shell", "claude"]).expect_success();
        assert!(
            added.stdout().contains("claudeCode.useTerminal"),
            "{added:?}"
        );
        for kind in SHELLS {
            let line = "claude --version; command -v claude";
            let output = shell(laptop, kind, line);
            let shim = shims(laptop).join("claude");
            let expected = format!("1.0 inside --version\n{}\n", shim.display());
            assert_eq!(output.stdout(), expected, "{kind:?}: {output:?}");
        }
        // Once only, however often it is asked for.
        stockade(laptop, &["shim", "add", "--write-shell", "claude"]).expect_success();
        let rc = fs::read_to_string(laptop.home().join(".bashrc")).expect("a file");
        assert_eq!(rc.matches("stockade shim").count(), 1, "{rc}");

        // The agent updates itself.
        program(&laptop.home().join(".local/bin/claude"), &agent("2.0"));
        for kind in SHELLS {
            let output = shell(laptop, kind, "claude --version");
            assert_eq!(
                output.stdout(),
                "2.0 inside --version\n",
                "{kind:?}: {output:?}"
            );
        }
        program(&laptop.home().join(".local/bin/claude"), &agent("1.0"));

        let removed = stockade(laptop, &["shim", "remove", "--all"]).expect_success();
        let said = removed.stdout();
        assert!(said.contains("restored /home/dev/.bashrc"), "{said}");
        let made = "removed /home/dev/.zprofile, which Stockade had created";
        assert!(said.contains(made), "{said}");
        assert_eq!(files(laptop), before);
        let output = shell(laptop, ["bash", "-lc"], "claude --version");
        assert_eq!(output.stdout(), "1.0 outside --version\n");
    });
}

/// What comes later likes to be first as well.
#[test]
fn environments_and_managers_of_versions_do_not_overtake_a_shim_at_the_prompt() {
    test(&standard().limit(4 * LIMIT), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let (home, workspace) = (laptop.home(), laptop.workspace());
        let venv = laptop.command("/usr/bin/python3");
        let venv = venv.args(["-m", "venv", "--without-pip", ".venv"]).run();
        venv.expect("an environment").expect_success();
        program(&workspace.join(".venv/bin/claude"), &agent("planted"));
        program(&home.join(".nvm/bin/claude"), &agent("3.0"));
        let without = typed(laptop, "bash", ". .venv/bin/activate\nclaude two\n");
        assert!(
            without.contains("planted outside two"),
            "the control: {without}"
        );
        stockade(laptop, &["shim", "add", "--write-shell", "claude"]).expect_success();
        for (name, text) in [
            (".bashrc", "export PATH=\"$HOME/.nvm/bin:$PATH\"\n"),
            (".zshrc", "export PATH=\"$HOME/.nvm/bin:$PATH\"\n"),
            (
                ".config/fish/config.fish",
                "set -gx PATH ~/.nvm/bin $PATH\n",
            ),
        ] {
            let file = home.join(name);
            let before = fs::read_to_string(&file).expect("a file");
            fs::write(&file, before + text).expect("a file");
        }
        for (shell, activate) in [
            ("bash", "activate"),
            ("zsh", "activate"),
            ("fish", "activate.fish"),
        ] {
            let script = format!(
                "claude one\n. .venv/bin/{activate}\nclaude two\ndeactivate\nclaude three\n"
            );
            let said = typed(laptop, shell, &script);
            // The agent of the environment lies in the workspace, and is nobody's.
            for line in ["3.0 inside one", "3.0 inside two", "3.0 inside three"] {
                assert!(said.contains(line), "{shell}: {line}: {said}");
            }
            assert!(
                !said.contains("outside") && !said.contains("planted"),
                "{shell}: {said}"
            );
        }
        // At the very start of a shell, before its first prompt, it is overtaken; the doctor says so.
        let doctor = || {
            laptop
                .stockade(["doctor", "--json"])
                .run()
                .expect("the doctor ends")
        };
        let found = check(&doctor(), "shims in bash");
        assert_eq!(found["state"], "warning", "{found}");
        let said = found["found"].as_str().expect("text");
        assert!(
            said.contains("bash, started interactively, runs /home/dev/.nvm/bin/claude"),
            "{said}"
        );
        assert_eq!(found["fix"], "stockade shim add --write-shell claude");
        stockade(laptop, &["shim", "add", "--write-shell", "claude"]).expect_success();
        let doctor = doctor();
        for name in ["shims in bash", "shims in zsh", "shims in fish"] {
            assert_eq!(check(&doctor, name)["state"], "ok", "{doctor:?}");
        }
    });
}

#[track_caller]
fn check(output: &Output, name: &str) -> Value {
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {report}")).clone()
}

#[test]
fn doctor_and_list_say_what_is_in_force() {
    test(&standard().limit(4 * LIMIT), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let doctor = || stockade(laptop, &["doctor", "--json"]).expect_success();
        assert!(!doctor().stdout().contains("shims"), "there is none");
        let list = |path: &str| {
            let output = laptop
                .stockade(["shim", "list", "--json"])
                .env("PATH", path);
            let output = output.run().expect("its end").expect_success();
            let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            list["shims"].clone()
        };
        assert_eq!(list("/usr/bin").as_array().map(Vec::len), Some(0));

        let added = stockade(laptop, &["shim", "add", "claude"])
            .expect_success()
            .stdout();
        assert!(
            added.contains("[ ! -r '/home/dev/.local/share/stockade/shell.sh' ]"),
            "{added}"
        );
        assert!(
            added.contains("stockade shim add --write-shell claude"),
            "{added}"
        );
        // Nothing is written unasked.
        let rc = fs::read_to_string(laptop.home().join(".bashrc")).expect("a file");
        assert!(!rc.contains("stockade"), "{rc}");
        let output = doctor();
        for name in ["shims in bash", "shims in zsh", "shims in fish"] {
            let found = check(&output, name);
            assert_eq!(found["state"], "warning", "{found}");
            assert!(found["cost"].is_string(), "{found}");
        }
        let path = "/home/dev/.local/bin:/usr/bin";
        let real = "/home/dev/.local/bin/claude";
        let [row] = &list(path).as_array().expect("rows").clone()[..] else {
            panic!("one shim");
        };
        assert_eq!(
            (&row["name"], &row["real"]),
            (&"claude".into(), &real.into())
        );
        assert_eq!(
            (&row["in_force"], &row["runs"]),
            (&false.into(), &real.into())
        );
        let first = format!("{}:{path}", shims(laptop).display());
        assert_eq!(list(&first)[0]["in_force"], true);
        assert_eq!(list(&first)[0]["real"], real);

        stockade(laptop, &["shim", "add", "--write-shell", "claude"]).expect_success();
        assert_eq!(check(&doctor(), "shims in zsh")["state"], "ok");
        // The PATH of a login has the shim, and lacks the agent's directory.
        let environment = laptop.home().join(".zshenv");
        let text = fs::read_to_string(&environment).expect("a file");
        fs::write(&environment, "").expect("a file");
        let found = check(&doctor(), "shims in zsh");
        assert_eq!(
            found["found"], "zsh, as a login shell, finds the shim but no `claude` behind it",
            "{found}"
        );
        assert!(
            found["fix"].as_str().expect("text").contains("~/.zprofile"),
            "{found}"
        );
        fs::write(&environment, text).expect("a file");
        // An alias comes before everything.
        let rc = laptop.home().join(".zshrc");
        let text = fs::read_to_string(&rc).expect("a file");
        fs::write(&rc, format!("{text}alias claude=~/.claude/local/claude\n")).expect("a file");
        let found = check(&doctor(), "shims in zsh");
        assert_eq!(found["state"], "warning", "{found}");
        assert!(
            found["fix"].as_str().expect("text").contains("alias"),
            "{found}"
        );
        // Files that never come to an end are not waited for, and neither are others for them.
        fs::write(&rc, "exec sleep 1000\n").expect("a file");
        let output = doctor();
        let found = check(&output, "shims in zsh");
        assert!(
            found["found"]
                .as_str()
                .expect("text")
                .contains("did not end"),
            "{found}"
        );
        assert_eq!(check(&output, "shims in bash")["state"], "ok");
        // A link that leads nowhere is passed over by shells.
        let shim = shims(laptop).join("claude");
        fs::remove_file(&shim).expect("a shim less");
        symlink("/gone/stockade", &shim).expect("a link");
        let found = check(&doctor(), "shims");
        assert!(
            found["found"]
                .as_str()
                .expect("text")
                .contains("leads nowhere"),
            "{found}"
        );
        fs::write(&rc, "").expect("a file");
        stockade(laptop, &["shim", "add", "claude"]).expect_success();
        assert_eq!(check(&doctor(), "shims in bash")["state"], "ok");
    });
}

/// A laptop whose shell finds the shim first.
fn shimmed(laptop: &Laptop, line: &[&str]) -> stockade_world::Command {
    let path = format!(
        "{}:/home/dev/.local/bin:/usr/bin:/bin",
        shims(laptop).display()
    );
    let command = laptop
        .command("/usr/bin/bash")
        .args(["-c", "exec \"$@\"", "bash"]);
    command.args(line).env("PATH", path)
}

#[test]
fn a_shim_passes_every_argument_and_stream_and_code() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        stockade(laptop, &["shim", "add", "claude"]).expect_success();
        let run = |line: &[&str]| shimmed(laptop, line).run().expect("its end");
        // The first time, its settings are made.
        run(&["claude"]).expect_success();
        for line in [
            &["claude"][..],
            &["claude", "--help"],
            &[
                "claude",
                "--allow",
                "10.0.0.1",
                "-C",
                "/",
                "--no-internet",
                "run",
                "--",
                "x",
            ],
            &["claude", "--internet", "false"],
        ] {
            let output = run(line).expect_success();
            let expected = format!("1.0 inside {}\n", line[1..].join(" "));
            assert_eq!(
                (output.stdout(), output.stderr()),
                (expected, String::new())
            );
        }
        let script = "#!/bin/sh\ncat; echo aside >&2; exit 77\n";
        program(&laptop.home().join(".local/bin/claude"), script);
        let output = shimmed(laptop, &["claude"])
            .input("through\n")
            .run()
            .expect("its end");
        assert_eq!(
            (output.stdout(), output.stderr()),
            ("through\n".into(), "aside\n".into())
        );
        output.expect_code(77);
        // By its path, too, and `stockade` finds the agent behind the shim.
        let path = shims(laptop).join("claude").display().to_string();
        program(&laptop.home().join(".local/bin/claude"), &agent("1.0"));
        for line in [
            &[path.as_str(), "x"][..],
            &["/run/world/bin/stockade", "claude", "x"],
            &["/run/world/bin/stockade", "run", "--", "claude", "x"],
        ] {
            assert_eq!(
                run(line).expect_success().stdout(),
                "1.0 inside x\n",
                "{line:?}"
            );
        }
        // What cannot work inside says what does.
        let output = run(&["claude", "update"]).expect_success();
        assert!(
            output
                .stderr()
                .contains("Run it outside: /home/dev/.local/bin/claude update"),
            "{output:?}"
        );
    });
}

#[test]
fn where_there_can_be_no_session_nothing_runs_and_the_way_around_is_named() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        stockade(laptop, &["shim", "add", "claude"]).expect_success();
        for (directory, why) in [
            (laptop.home(), "your home directory"),
            (Path::new("/"), "the whole disk"),
        ] {
            for line in [
                &["claude"][..],
                &["claude", "--version"],
                &["claude", "mcp", "list"],
            ] {
                let output = shimmed(laptop, line)
                    .directory(directory)
                    .run()
                    .expect("its end");
                assert_eq!(output.stdout(), "", "{output:?}");
                let said = output.expect_code(125).stderr();
                assert!(said.contains(why), "{said}");
                assert!(
                    said.contains("without a sandbox: /home/dev/.local/bin/claude"),
                    "{said}"
                );
            }
        }
        // There is nothing behind the shim.
        fs::remove_file(laptop.home().join(".local/bin/claude")).expect("an agent less");
        let output = shimmed(laptop, &["claude"])
            .run()
            .expect("its end")
            .expect_code(127);
        assert!(
            output.stderr().contains("is a shim of Stockade"),
            "{output:?}"
        );
        assert!(
            output.stderr().contains("add its directory to PATH"),
            "{output:?}"
        );
        assert!(
            output.stderr().contains("stockade shim remove claude"),
            "{output:?}"
        );
        // One can be added before the agent is installed.
        let output = stockade(laptop, &["shim", "add", "codex"]).expect_success();
        assert!(
            output.stdout().contains("once it is installed"),
            "{output:?}"
        );
    });
}

#[test]
fn names_are_those_of_profiles_and_what_is_not_stockades_stays() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        for (name, why) in [
            ("npm", "there is no profile `npm`"),
            ("stockade", "cannot be the name of a shim"),
            ("generic", "cannot be the name of a shim"),
            ("../claude", "cannot be the name of a shim"),
            (".x", "cannot be the name of a shim"),
        ] {
            let output = stockade(laptop, &["shim", "add", "claude", name]).expect_code(125);
            assert!(output.stderr().contains(why), "{name}: {output:?}");
            assert!(!shims(laptop).exists(), "all or none");
        }
        // A profile of the user's own.
        let config = laptop.home().join(".config/stockade/config.toml");
        fs::write(&config, "[profiles.mine.env.set]\nMINE = \"yes\"\n").expect("a file");
        program(
            &laptop.home().join(".local/bin/mine"),
            "#!/bin/sh\necho mine $MINE \"$@\"\n",
        );
        stockade(laptop, &["shim", "add", "mine"]).expect_success();
        let output = shimmed(laptop, &["mine", "--quiet"])
            .run()
            .expect("its end");
        assert_eq!(output.stdout(), "mine yes --quiet\n", "{output:?}");
        // If the profile goes, nothing runs.
        fs::write(&config, "").expect("a file");
        let output = shimmed(laptop, &["mine"])
            .run()
            .expect("its end")
            .expect_code(125);
        assert!(
            output.stderr().contains("unknown profile `mine`"),
            "{output:?}"
        );

        let other = shims(laptop).join("claude");
        fs::write(&other, "mine").expect("a file");
        let output = stockade(laptop, &["shim", "add", "claude"]).expect_code(125);
        assert!(output.stderr().contains("is not Stockade's"), "{output:?}");
        stockade(laptop, &["shim", "remove", "claude"]).expect_code(125);
        stockade(laptop, &["shim", "remove", "--all"]).expect_success();
        assert_eq!(fs::read_to_string(&other).expect("a file"), "mine");
        stockade(laptop, &["shim", "add", "--system", "claude"]).expect_code(125);
    });
}

#[test]
fn root_makes_shims_for_everybody_and_inside_they_run_the_agent_itself() {
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        let shell = |line: &str| laptop.shell(line).run().expect("its end");
        let prepare =
            "mount -t tmpfs none /usr/local/bin && cp /run/world/bin/stockade /usr/local/bin";
        shell(prepare).expect_success();
        program(&laptop.home().join(".local/bin/claude"), &agent("1.0"));
        fs::write("/usr/local/bin/codex", "another").expect("a file");
        let run = |line: &str| {
            let path = "/usr/local/bin:/root/.local/bin:/usr/bin:/bin";
            let command = laptop.command("/usr/bin/bash").args(["-c", line]);
            command.env("PATH", path).run().expect("its end")
        };
        run("stockade shim add --system claude").expect_success();
        assert_eq!(
            run("claude a b").expect_success().stdout(),
            "1.0 inside a b\n"
        );
        // It is in view inside, and stands for the agent there.
        let line =
            "stockade run --quiet --profile claude -- bash -c 'command -v claude; claude -- c'";
        let said = run(line).expect_success().stdout();
        assert_eq!(said, "/usr/local/bin/claude\n1.0 inside -- c\n");
        // Which a session without the agent has not.
        let output = run("stockade run --quiet -- bash -c 'claude'").expect_code(127);
        assert!(
            output.stderr().contains("this session has no `claude`"),
            "{output:?}"
        );
        let output = run("stockade run --quiet -- stockade shim add codex").expect_code(125);
        assert!(
            output.stderr().contains("outside of the sandbox"),
            "{output:?}"
        );

        let output = run("stockade shim add --system codex").expect_code(125);
        assert!(output.stderr().contains("is not Stockade's"), "{output:?}");
        run("stockade shim remove --system --all").expect_success();
        let left = run("ls /usr/local/bin; cat /usr/local/bin/codex").stdout();
        assert_eq!(left, "codex\nstockade\nanother");
        assert_eq!(run("claude x").stdout(), "1.0 outside x\n", "the control");
    });
}

/// The real thing, as its makers ship it.
#[test]
fn claude_code_runs_in_the_sandbox_by_its_own_name() {
    with(&CLAUDE, |laptop| {
        let rc = "PATH=\"$HOME/.npm-global/bin:$PATH\"\n";
        for name in [".profile", ".zprofile"] {
            fs::write(laptop.home().join(name), rc).expect("a file");
        }
        let fish = laptop.home().join(".config/fish/config.fish");
        fs::create_dir_all(fish.parent().expect("a directory")).expect("a directory");
        fs::write(fish, "set -gx PATH ~/.npm-global/bin $PATH\n").expect("a file");
        let version = |kind: [&str; 2]| {
            let command = laptop.command(format!("/usr/bin/{}", kind[0]));
            let command = command.args([kind[1], "claude --version"]).limit(LIMIT);
            command.run().expect("its end").expect_success().stdout()
        };
        let outside = version(["bash", "-lc"]);
        assert!(outside.contains("Claude Code"), "{outside}");
        stockade(laptop, &["shim", "add", "--write-shell", "claude"]).expect_success();
        let sessions = || {
            stockade(laptop, &["log", "--list"])
                .stdout()
                .lines()
                .count()
        };
        for kind in [["bash", "-lc"], ["zsh", "-lc"], ["fish", "-lc"]] {
            let before = sessions();
            assert_eq!(version(kind), outside, "{kind:?}");
            assert_eq!(sessions(), before + 1, "{kind:?}");
        }
    });
}
