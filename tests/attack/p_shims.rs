//! Whether a session decides what the next `claude` is that the user types (F11, P6, P17).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use stockade_world::{Laptop, Output, test};

use super::f_files::said;
use super::probe::Place;
use crate::feature::shims::{agent, program};
use crate::support::standard;

const SHIMS: &str = "/home/dev/.local/share/stockade/shims";

fn furnish(laptop: &Laptop) {
    program(&laptop.home().join(".local/bin/claude"), &agent("real"));
    let add = laptop.stockade(["shim", "add", "--write-shell", "claude"]);
    add.run().expect("its end").expect_success();
}

/// Runs a program by the first of this name in these directories.
fn run(laptop: &Laptop, path: &str, line: &[&str]) -> Output {
    let command = laptop
        .command("/usr/bin/bash")
        .args(["-c", "exec \"$@\"", "bash"]);
    let command = command.args(line).env("PATH", path);
    command.run().expect("its end")
}

#[test]
fn f11_a_shim_runs_no_planted_program() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let workspace = laptop.workspace();
        let marker = laptop.home().join("marker");
        let plant = format!("#!/bin/sh\ntouch {}\necho planted\n", marker.display());
        for place in [".", "bin", ".venv/bin", "node_modules/.bin"] {
            program(&workspace.join(place).join("claude"), &plant);
        }
        fs::create_dir_all("/home/dev/linked").expect("a directory");
        symlink(workspace.join("bin/claude"), "/home/dev/linked/claude").expect("a link");
        let project = workspace.display();
        let planted = format!(
            "::.:bin:{project}:{project}/bin:{project}/.venv/bin:{project}/node_modules/.bin:/home/dev/linked"
        );
        let path = format!("{SHIMS}:{planted}:/home/dev/.local/bin:/usr/bin:/bin");
        let output = run(laptop, &path, &["claude", "x"]).expect_success();
        assert_eq!(output.stdout(), "real inside x\n");
        // Nor if there is no other, nor as the way around.
        let path = format!("{SHIMS}:{planted}:/usr/bin:/bin");
        let output = run(laptop, &path, &["claude", "x"]).expect_code(127);
        assert!(!marker.exists() && output.stdout().is_empty(), "{output:?}");
        let output = run(laptop, &path, &["claude", "update"]).expect_code(127);
        assert!(!output.stderr().contains("project"), "{output:?}");
        let environment = workspace.join(".venv");
        let path = format!("{SHIMS}:{project}/.venv/bin:/home/dev/.local/bin:/usr/bin:/bin");
        let command = laptop.command(format!("{SHIMS}/claude")).env("PATH", &path);
        let command = command
            .env("VIRTUAL_ENV", environment)
            .directory(laptop.home());
        let output = command.run().expect("its end").expect_code(125);
        assert!(
            output.stderr().contains(": /home/dev/.local/bin/claude"),
            "{output:?}"
        );
        // It would have been run.
        let planted = run(laptop, &format!("{project}/bin:/usr/bin:/bin"), &["claude"]);
        assert_eq!(planted.stdout(), "planted\n");
        assert!(marker.exists());
    });
}

/// `doctor` asks the user's shells, whose files may run what the current directory has.
#[test]
fn f11_doctor_runs_nothing_of_the_workspace_by_the_users_shells() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let marker = laptop.home().join("marker");
        let plant = format!("#!/bin/sh\ntouch {}\n", marker.display());
        program(&laptop.workspace().join("bin/starship"), &plant);
        let files = [".bashrc", ".profile"].map(|name| laptop.home().join(name));
        for file in &files {
            fs::write(file, "PATH=./bin:$PATH\nstarship init 2>/dev/null\n").expect("a file");
        }
        furnish(laptop);
        let doctor = laptop.stockade(["doctor", "--json"]);
        let output = doctor.run().expect("its end").expect_success();
        assert!(output.stdout().contains("shims in bash"), "{output:?}");
        assert!(!marker.exists(), "{output:?}");
        // It would have been run.
        run(laptop, "/usr/bin:/bin", &["bash", "-i", "-c", "true"]);
        assert!(marker.exists());
    });
}

#[test]
fn p06_a_shim_that_the_session_could_replace_does_not_start_one() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let bin = laptop.workspace().join("bin");
        fs::create_dir(&bin).expect("a directory");
        symlink("/run/world/bin/stockade", bin.join("claude")).expect("a link");
        fs::create_dir("/home/dev/tools").expect("a directory");
        symlink(bin.join("claude"), "/home/dev/tools/claude").expect("a link");
        let rest = "/home/dev/.local/bin:/usr/bin:/bin";
        for (path, line) in [
            (format!("{}:{rest}", bin.display()), "claude"),
            (format!("bin:{rest}"), "claude"),
            (rest.to_owned(), "./bin/claude"),
            (format!("/home/dev/tools:{rest}"), "claude"),
        ] {
            let output = run(laptop, &path, &[line, "x"]).expect_code(125);
            assert_eq!(output.stdout(), "", "{output:?}");
            let said = output.stderr();
            assert!(
                said.contains("the command could replace this program"),
                "{said}"
            );
        }
        let output = run(laptop, &format!("{SHIMS}:{rest}"), &["claude", "x"]);
        assert_eq!(
            output.expect_success().stdout(),
            "real inside x\n",
            "the control"
        );
    });
}

/// A project's own environment is active in the shell, and another project is worked on.
#[test]
fn f11_no_program_that_another_project_planted_is_the_agent() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let home = laptop.home();
        let marker = home.join("marker");
        let outside = format!("test -r ~/.netrc && touch {}; ", marker.display());
        let plant = agent("planted").replace("where=nowhere", &format!("{outside}where=nowhere"));
        for place in ["cloned/.git", "tools/bin", "venv", "other"] {
            fs::create_dir_all(home.join(place)).expect("a directory");
        }
        fs::write(home.join("venv/pyvenv.cfg"), "home = /usr/bin\n").expect("a file");
        for place in ["cloned/.venv/bin", "venv/bin", "tools/bin"] {
            program(&home.join(place).join("claude"), &plant);
            program(&home.join(place).join("pytest"), &agent("tests"));
        }
        symlink(home.join("tools/bin"), home.join("led")).expect("a link");
        let rest = "/home/dev/.local/bin:/usr/bin:/bin";
        let run = |bin: &str, variable: &str, directory: &str, line: &[&str]| {
            let environment = Path::new(bin).parent().expect("a directory");
            let command = laptop.command("/usr/bin/bash");
            let command = command.args(["-c", "exec \"$@\"", "bash"]).args(line);
            let command = command.env("PATH", format!("{SHIMS}:{bin}:{rest}"));
            let command = command.env(variable, environment);
            command.directory(directory).run().expect("its end")
        };
        let stockade = "/run/world/bin/stockade";
        let planted = "/home/dev/tools/bin";
        // A directory that no session could write is the user's, and so is any that no agent is taken from.
        for (bin, variable) in [(planted, "UNUSED"), ("/home/dev/venv/bin", "VIRTUAL_ENV")] {
            let output = run(bin, variable, "/home/dev/other", &["claude", "x"]);
            let said = output.expect_success().stdout();
            assert_eq!(said, "planted inside x\n", "control: {bin}");
        }
        let session = laptop.stockade(["run", "--quiet", "--", "touch", "bin/x"]);
        let session = session
            .directory(home.join("tools"))
            .run()
            .expect("its end");
        session.expect_success();
        let cases = [
            ("/home/dev/cloned/.venv/bin", "VIRTUAL_ENV"),
            ("/home/dev/cloned/.venv/bin", "CONDA_PREFIX"),
            (planted, "UNUSED"),
            ("/home/dev/led", "UNUSED"),
        ];
        for (bin, variable) in cases {
            let run = |directory: &str, line: &[&str]| run(bin, variable, directory, line);
            // Also at its first start, which makes its settings.
            let _ = fs::remove_file(home.join(".claude.json"));
            let output = run("/home/dev/other", &["claude", "x"]).expect_success();
            assert_eq!(output.stdout(), "real inside x\n", "{bin}: {output:?}");
            let output = run("/home/dev/other", &["claude", "update"]).expect_success();
            assert!(
                output
                    .stderr()
                    .contains(": /home/dev/.local/bin/claude update")
            );
            let output = run("/home/dev", &["claude", "x"]).expect_code(125);
            assert!(
                output.stderr().contains(": /home/dev/.local/bin/claude"),
                "{output:?}"
            );
            let list = run("/home/dev/other", &[stockade, "shim", "list"]).stdout();
            assert!(list.contains(" /home/dev/.local/bin/claude "), "{list}");
            let named = format!("{bin}/claude");
            let output = run("/home/dev/other", &[stockade, "run", "--", &named, "x"]);
            assert_eq!(
                output.expect_success().stdout(),
                "planted inside x\n",
                "named"
            );
        }
        let (bin, variable) = cases[0];
        let line = [stockade, "run", "--", "pytest", "x"];
        let output = run(bin, variable, "/home/dev/other", &line).expect_success();
        assert_eq!(output.stdout(), "tests inside x\n");
        // With no other one it fails, and nobody is told to run it.
        fs::remove_file("/home/dev/.local/bin/claude").expect("an agent less");
        for (bin, variable) in cases {
            let output = run(bin, variable, "/home/dev/other", &["claude", "update"]);
            let said = output.expect_code(127).stderr();
            assert!(
                said.contains("an earlier session could have put that there"),
                "{said}"
            );
            assert!(
                said.contains("/claude\"") && !said.contains("outside"),
                "{said}"
            );
            let output = run(bin, variable, "/home/dev", &["claude", "x"]).expect_code(125);
            assert!(!output.stderr().contains("without a sandbox"), "{output:?}");
        }
        assert!(!marker.exists());
        // Where agents are installed they are found, whatever is active.
        for place in [
            ".npm-global/bin",
            ".nvm/versions/node/v22.1.0/bin",
            "bin",
            ".volta/bin",
        ] {
            fs::create_dir_all(home.join(".nvm/.git")).expect("a directory");
            program(&home.join(place).join("claude"), &agent(place));
            let path = format!("{bin}:/home/dev/{place}");
            let line = format!(
                "VIRTUAL_ENV=/home/dev/cloned/.venv PATH={SHIMS}:{path}:{rest} exec claude x"
            );
            let output = run(bin, variable, "/home/dev/other", &["bash", "-c", &line]);
            assert_eq!(
                output.expect_success().stdout(),
                format!("{place} inside x\n")
            );
        }
        // An environment of the user's own has agents, too, but nobody is told to run them outside.
        let bin = "/home/dev/conda/bin";
        program(&Path::new(bin).join("claude"), &agent("conda"));
        let line = ["claude", "update"];
        let output = run(bin, "CONDA_PREFIX", "/home/dev/other", &line);
        assert_eq!(output.stdout(), "conda inside update\n", "{output:?}");
        assert!(!output.stderr().contains("outside"), "{output:?}");
    });
}

/// What shims and hooks run outside must not be what a session can write.
#[test]
fn p06_no_session_can_replace_what_a_shim_or_a_guard_runs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let (home, workspace) = (laptop.home(), laptop.workspace());
        let built = workspace.join("target/release/stockade");
        fs::create_dir_all(built.parent().expect("a directory")).expect("a directory");
        fs::copy("/run/world/bin/stockade", &built).expect("a copy");
        let shim = Path::new(SHIMS).join("claude");
        let run = |directory: &Path| {
            let command = laptop.stockade(["run", "--", "bash", "-c", "echo ran"]);
            command.directory(directory).run().expect("its end")
        };
        let expect_refused = |by: &str, path: &Path| {
            let said = run(&workspace).expect_code(125).stderr();
            let what = format!("the command could replace the program that the {by} ");
            assert!(said.contains(&what), "{said}");
            assert!(said.contains(&format!("{path:?} lies in")), "{said}");
            assert!(
                said.contains(&format!("stockade {by} add claude")),
                "{said}"
            );
        };
        let expect_run = |directory: &Path| {
            assert_eq!(run(directory).expect_success().stdout(), "ran\n");
        };
        expect_run(&workspace);
        let elsewhere = home.join("other");
        fs::create_dir(&elsewhere).expect("a directory");
        let link = |text: &Path| {
            fs::remove_file(&shim).expect("a shim less");
            symlink(text, &shim).expect("a link");
        };
        let way = home.join("way");
        symlink(&workspace, &way).expect("a link");
        let within = workspace.join("link");
        symlink("/run/world/bin/stockade", &within).expect("a link");
        for (text, path) in [
            (&built, &built),
            (&way.join("target/release/stockade"), &built),
            (&within, &within),
            // A session could make it.
            (
                &workspace.join("new/stockade"),
                &workspace.join("new/stockade"),
            ),
        ] {
            link(text);
            expect_refused("shim", path);
            expect_run(&elsewhere);
        }
        link(Path::new("/run/world/bin/stockade"));
        expect_run(&workspace);

        let settings = home.join(".claude/settings.json");
        let guard = |line: &[&str]| {
            laptop
                .stockade(line)
                .run()
                .expect("its end")
                .expect_success()
        };
        guard(&["guard", "add", "claude"]);
        expect_run(&workspace);
        let text = fs::read_to_string(&settings).expect("settings");
        let asked = text.split('\'').nth(1).expect("a program").to_owned();
        // One hook of the two is enough.
        let text = text.replacen(&asked, built.to_str().expect("a path"), 1);
        fs::write(&settings, text).expect("settings");
        expect_refused("guard", &built);
        expect_run(&elsewhere);
        guard(&["guard", "remove", "claude"]);
        expect_run(&workspace);

        // Nor do they come to lead there: in the workspace, and in a repository that may become one.
        let add = |program: &Path, directory: &Path, what: &str| {
            let command = laptop.command(program).args([what, "add", "claude"]);
            command.directory(directory).run().expect("its end")
        };
        let shims = fs::read_link(&shim).expect("a link");
        let expect_not_added = |program: &Path, directory: &Path| {
            for what in ["shim", "guard"] {
                let said = add(program, directory, what).expect_code(125).stderr();
                assert!(said.contains("sessions can write"), "{said}");
                assert!(said.contains("./install.sh"), "{said}");
            }
            assert_eq!(fs::read_link(&shim).expect("a link"), shims);
            assert!(!settings.exists());
        };
        expect_not_added(&built, &workspace);
        expect_not_added(
            &way.join("target/release/stockade"),
            &workspace.join("target"),
        );
        fs::create_dir_all(workspace.join(".git")).expect("a directory");
        expect_not_added(&built, &elsewhere);
        symlink(&built, elsewhere.join("stockade")).expect("a link");
        expect_not_added(&elsewhere.join("stockade"), home);
        // Where programs are, they do, also in a home that is a repository.
        fs::create_dir_all(home.join(".git")).expect("a directory");
        for place in [".local/bin", ".cargo/bin", "bin"] {
            let directory = home.join(place);
            fs::create_dir_all(&directory).expect("a directory");
            let installed = directory.join("stockade");
            fs::copy("/run/world/bin/stockade", &installed).expect("a copy");
            for what in ["shim", "guard"] {
                add(&installed, &directory, what).expect_success();
            }
            assert_eq!(fs::read_link(&shim).expect("a link"), installed);
            expect_run(&workspace);
        }
    });
}

/// Of a file that has two names nobody knows where the other one is.
#[test]
fn p06_no_session_starts_if_what_a_shim_runs_has_another_name() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let (own, shim) = (laptop.home().join("own"), Path::new(SHIMS).join("claude"));
        let (installed, other) = (own.join("stockade"), laptop.workspace().join("built"));
        fs::create_dir(&own).expect("a directory");
        fs::copy("/run/world/bin/stockade", &installed).expect("a copy");
        let run = |program: &Path| {
            let command = laptop.command(program).args(["run", "--", "echo", "ran"]);
            command.run().expect("its end")
        };
        let product = Path::new("/run/world/bin/stockade");
        let link = |text: &Path| {
            fs::remove_file(&shim).expect("a shim less");
            symlink(text, &shim).expect("a link");
        };
        // Either program may start the session: the shim may start the next one.
        for started in [&*installed, product] {
            link(product);
            fs::hard_link(&installed, &other).expect("another name");
            assert_eq!(run(started).expect_success().stdout(), "ran\n");
            fs::remove_file(&other).expect("a name less");
            link(&installed);
            assert_eq!(run(started).expect_success().stdout(), "ran\n");
            fs::hard_link(&installed, &other).expect("another name");
            let output = run(started).expect_code(125);
            let said = output.stderr();
            assert!(
                output.stdout().is_empty() && said.contains("that the shim "),
                "{said}"
            );
            assert!(
                said.contains("(a hard link)") && said.contains("`cp`"),
                "{said}"
            );
            fs::remove_file(&other).expect("a name less");
            assert_eq!(run(started).expect_success().stdout(), "ran\n");
        }
    });
}

/// A session was given the file, and nothing around it.
#[test]
fn f11_an_agent_that_a_session_was_given_to_write_is_passed_over() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let given = laptop.home().join("bin/claude");
        program(&given, &agent("given"));
        let path = format!("{SHIMS}:/home/dev/bin:/home/dev/.local/bin:/usr/bin:/bin");
        let claude = || {
            run(laptop, &path, &["claude", "x"])
                .expect_success()
                .stdout()
        };
        assert_eq!(claude(), "given inside x\n", "control");
        let session = laptop.stockade(["run", "--quiet", "--write"]).arg(&given);
        let session = session.args(["--", "sh", "-c", "echo '# planted' >> ~/bin/claude"]);
        session.run().expect("its end").expect_success();
        assert!(fs::read_to_string(&given).expect("it").contains("planted"));
        assert_eq!(claude(), "real inside x\n");
    });
}

/// Writes wherever a shell of the user's would then find another agent.
const CHANGE: &str = "
    d=~/.local/share/stockade
    for way in \"rm -rf $d\" \"mv $d $d.old\" \"mv ~/.local/share ~/.local/old\" \"mkdir -p $d/shims\" \\
        \"chmod -R 777 $d\" \"cp /bin/true $d/shims/claude\" \"cp /bin/true $d/shell.sh\" \\
        \"ln -sf /bin/true $d/shims/claude\" \"ln -sf /bin/true $d/shims/codex\"; do
        $way 2>/dev/null
    done
    for file in .bashrc .profile .zshrc .zprofile .config/fish/conf.d/stockade.fish; do
        mkdir -p ~/.config/fish/conf.d; echo 'PATH=/tmp:$PATH' >> ~/$file
    done; true";

const STATE: &str = "cd; find .local/share/stockade .bashrc .profile .zshrc .zprofile .config/fish/conf.d \
    -printf '%p %y %m %l\\n' -type f -exec sha256sum {} + 2>&1 | sort";

#[test]
fn p17_a_session_changes_neither_the_shims_nor_the_shells_files() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let before = said(laptop, Place::Outside, STATE);
        assert!(
            before.contains("shims/claude l") && before.contains("shell.sh f"),
            "{before}"
        );
        let path = format!("{SHIMS}:/home/dev/.local/bin:/usr/bin:/bin");
        for options in [
            &["--nested=false"][..],
            &["--nested"],
            &["--profile", "claude"],
        ] {
            let line = [&["/run/world/bin/stockade", "run", "--quiet"], options].concat();
            // They are not there, nor is their directory in PATH.
            let look = "ls ~/.local/share/stockade 2>/dev/null; echo \"$PATH\"; echo looked";
            let seen = [&line[..], &["--", "bash", "-c", look]].concat();
            let seen = run(laptop, &path, &seen).expect_success().stdout();
            assert!(
                seen.ends_with("looked\n") && !seen.contains("stockade"),
                "{seen}"
            );
            let change = [&line[..], &["--", "bash", "-c", CHANGE]].concat();
            run(laptop, &path, &change).expect_success();
            assert_eq!(said(laptop, Place::Outside, STATE), before, "{options:?}");
        }
        // Nobody can be given them.
        for option in [
            "--write=~/.local/share",
            "--write=~/.local/share/stockade/shims",
            "--read=~/.local/share/stockade",
        ] {
            let line = ["/run/world/bin/stockade", "run", option, "--", "true"];
            run(laptop, &path, &line).expect_code(125);
        }
        let output = run(laptop, &path, &["claude", "x"]);
        assert_eq!(output.stdout(), "real inside x\n", "{output:?}");
        // The detector works: outside, everything changes.
        said(laptop, Place::Outside, CHANGE);
        assert_ne!(said(laptop, Place::Outside, STATE), before);
    });
}

/// Shims and copies of Stockade in a row, outside and inside, lead to the agent and not to each other.
#[test]
fn p17_shims_never_start_each_other() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        furnish(laptop);
        let at = |name: &str| Path::new("/home/dev").join(name);
        for name in ["linked", "copied", "hard", "named"] {
            fs::create_dir(at(name)).expect("a directory");
        }
        symlink("/run/world/bin/stockade", at("linked/claude")).expect("a link");
        fs::copy("/run/world/bin/stockade", at("copied/claude")).expect("a copy");
        fs::hard_link(at("copied/claude"), at("hard/claude")).expect("a link");
        fs::copy("/run/world/bin/stockade", at("named/other")).expect("a copy");
        symlink("other", at("named/claude")).expect("a link");
        let all = "/home/dev/linked:/home/dev/copied:/home/dev/hard:/home/dev/named";
        let path = format!("{SHIMS}:{all}:/home/dev/.local/bin:/usr/bin:/bin");
        for first in ["", "/home/dev/copied:", "/home/dev/named:"] {
            let output = run(laptop, &format!("{first}{path}"), &["claude", "x"]);
            assert_eq!(
                output.expect_success().stdout(),
                "real inside x\n",
                "{first}"
            );
        }
        // Inside: copies in view, in a row, in either order.
        let workspace = laptop.workspace();
        for name in ["one", "two"] {
            fs::create_dir(workspace.join(name)).expect("a directory");
            fs::copy(
                "/run/world/bin/stockade",
                workspace.join(name).join("claude"),
            )
            .expect("a copy");
        }
        let inside =
            "PATH=$PWD/one:$PWD/two:$PATH; claude a -- b; PATH=$PWD/two:$PATH; exec claude c";
        let line = [
            "/run/world/bin/stockade",
            "run",
            "--quiet",
            "--profile",
            "claude",
            "--",
        ];
        let line = [&line[..], &["bash", "-c", inside]].concat();
        let output = run(laptop, &path, &line).expect_success();
        assert_eq!(output.stdout(), "real inside a -- b\nreal inside c\n");
        // With nothing behind them they end.
        fs::remove_file("/home/dev/.local/bin/claude").expect("an agent less");
        run(laptop, &path, &["claude"]).expect_code(127);
    });
}
