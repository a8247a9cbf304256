//! Whether a program inside, or what it leaves behind, can decide how the next session is made
//! (F10, F11), and whether the command notices that it is in one (F12).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stockade_world::{Size, World, test};

use super::f_files::said;
use super::probe::{INSIDE, Place};
use crate::support::standard;

/// What a session shows of the wall: the home, a secret, privileges, the jail.
const LOOK: &str = "ls -A ~; cat ~/.netrc ../other-project/.env 2>/dev/null
    grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status
    (exec 3<>/dev/tcp/10.20.0.5/7) 2>/dev/null && echo reached; echo end";

/// What the next session shows, after `plant` ran in one.
fn after(world: &World, plant: &str) -> String {
    said(world.laptop(), INSIDE, plant);
    said(world.laptop(), INSIDE, LOOK)
}

#[test]
fn f10_nothing_inside_turns_the_sandbox_off() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let undisturbed = said(laptop, INSIDE, LOOK);
        assert!(undisturbed.contains("NoNewPrivs:\t1") && undisturbed.ends_with("end\n"));
        let plants = [
            // Configuration, where it is looked for, and in the workspace.
            "mkdir -p ~/.config/stockade; echo '[network]\nmode = \"host\"' > ~/.config/stockade/config.toml",
            "printf '[network]\\nmode = \"host\"\\n[files]\\nroot = \"all\"\\n' > .stockade.toml",
            "mkdir -p .config/stockade .stockade; cp .stockade.toml .stockade/config.toml",
            // Variables of this session, and files that set some.
            "export STOCKADE=0 STOCKADE_DISABLE=1 CLAUDE_SANDBOX_EGRESS_JAIL=0; echo 'export STOCKADE=0' > .env",
            "echo 'CLAUDE_SANDBOX_EGRESS_JAIL=0' > .env; cp .env ~/.profile; cp .env ~/.bashrc",
        ];
        for plant in plants {
            assert_eq!(after(world, plant), undisturbed, "{plant}");
        }
        // A sandbox in the sandbox is no way out either.
        let nested = format!(
            "/run/stockade/init run -- bash -c '{}'",
            "cat ~/.netrc; echo nested"
        );
        assert!(!said(laptop, INSIDE, &nested).contains("DECOY"));
        let again = "env -u STOCKADE /run/stockade/init 3 4 cat ~/.netrc; echo end";
        assert_eq!(said(laptop, INSIDE, again), "end\n");
    });
}

#[test]
fn f11_planted_programs_are_not_what_the_launcher_runs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let workspace = laptop.workspace();
        let marker = laptop.home().join("marker");
        let text = format!(
            "#!/bin/sh\necho $0 >> {}\nexec /usr/bin/$(basename $0) \"$@\"\n",
            marker.display()
        );
        let directories =
            ["bin", ".venv/bin", "node_modules/.bin"].map(|name| workspace.join(name));
        for directory in &directories {
            fs::create_dir_all(directory).expect("a directory");
            for name in [
                "bwrap", "git", "nft", "ip", "unshare", "sh", "gh", "stockade",
            ] {
                let path = directory.join(name);
                fs::write(&path, &text).expect("write");
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode");
            }
        }
        let shown = |path: &Path| path.display().to_string();
        let path = directories
            .iter()
            .map(|path| shown(path))
            .collect::<Vec<_>>()
            .join(":");
        let path = format!(".::{path}:/usr/local/bin:/usr/bin:/bin");
        let session = |command: &[&str]| {
            let session = laptop.stockade(["run", "--quiet", "--github", "--"]);
            session
                .args(command)
                .env("PATH", &path)
                .run()
                .expect("the end")
        };
        session(&["/usr/bin/true"]).expect_success();
        assert!(!marker.exists(), "{:?}", fs::read_to_string(&marker));
        // Inside it is found, as the user's PATH says; and there it can do nothing outside.
        let inside = session(&["/usr/bin/bash", "-c", "command -v git"]).stdout();
        assert_eq!(inside.trim(), shown(&directories[0].join("git")));
        assert!(!marker.exists());
        // Outside it would have been run.
        let git = laptop
            .command("bash")
            .args(["-c", "git --version"])
            .env("PATH", &path);
        git.run().expect("the end");
        assert!(marker.exists());
    });
}

#[test]
fn f12_codes_and_streams_are_those_of_the_command() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for line in [
            "exit 0",
            "exit 77",
            "exit 255",
            "kill -TERM $$",
            "kill -SEGV $$",
            "nonsense-x",
        ] {
            let code = |place: Place<'_>| {
                let shell = place.command(laptop, "bash").args(["-c", line]);
                shell.run().expect("the end").code()
            };
            assert_eq!(code(INSIDE), code(Place::Outside), "{line}");
        }
        // A mebibyte without a newline, every byte value in it.
        let bytes: Vec<u8> = (0..1_u32 << 20).map(|n| n.to_le_bytes()[0]).collect();
        let line = "cat; echo aside >&2";
        let cat = INSIDE
            .command(laptop, "bash")
            .args(["-c", line])
            .input(bytes.clone());
        let output = cat.run().expect("the end").expect_success();
        assert!(output.stdout == bytes, "{} bytes", output.stdout.len());
        assert_eq!(output.stderr(), "aside\n");
        // A here-document.
        let here = "stockade run --quiet -- cat <<'END'\na\u{3}b\nEND";
        assert_eq!(said(laptop, Place::Outside, here), "a\u{3}b\n");
    });
}

#[test]
fn f12_full_screen_programs_work() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let vim = INSIDE
            .command(laptop, "vim")
            .args(["-u", "NONE", "-i", "NONE", "-c"])
            .args(["autocmd VimResized * echo &lines &columns", "made.txt"]);
        let mut terminal = vim.terminal(Size::default()).expect("a terminal");
        terminal.expect("made.txt").expect("the screen");
        terminal.write("ihello\u{1b}").expect("keys");
        terminal.expect("hello").expect("the screen");
        terminal
            .resize(Size {
                rows: 30,
                columns: 100,
            })
            .expect("resize");
        terminal.expect("30 100").expect("the new size");
        terminal.write(":wq\r").expect("keys");
        assert!(terminal.wait().expect("the end").success());
        let made = fs::read_to_string(laptop.workspace().join("made.txt"));
        assert_eq!(made.expect("a file"), "hello\n");

        let htop = INSIDE.command(laptop, "htop").args(["--no-color"]);
        let mut terminal = htop.terminal(Size::default()).expect("a terminal");
        // Its own line among those of the processes that there are.
        terminal.expect("htop --no-col").expect("the screen");
        terminal.write("q").expect("keys");
        assert!(terminal.wait().expect("the end").success());
    });
}

#[test]
fn f12_a_multiplexer_inside_works() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let tmux = INSIDE
            .command(laptop, "tmux")
            .args(["-f", "/dev/null", "new", "bash --norc"]);
        let mut terminal = tmux.terminal(Size::default()).expect("a terminal");
        terminal.expect("bash").expect("the status line");
        terminal.write("echo a$((20+3))b\r").expect("keys");
        terminal.expect("a23b").expect("the answer");
        terminal.write("exit\r").expect("keys");
        assert!(terminal.wait().expect("the end").success());
    });
}

/// Claude Code's own settings turn `agent.nested` on, and a session can write some of them.
#[test]
fn f10_a_session_turns_nested_on_for_no_later_one_unnoticed() {
    const ON: &str = r#"{"sandbox": {"enabled": true}}"#;
    test(&standard(), |world| {
        let laptop = world.laptop();
        let session = |script: &str| {
            let options = ["run", "--profile", "claude", "--", "bash", "-c", script];
            let output = laptop.stockade(options).run().expect("an end");
            (output.stdout(), output.stderr())
        };
        let attempt = "unshare -Urm echo NESTED";
        let (before, _) = session(attempt);
        assert_eq!(before, "");
        session(&format!(
            "mkdir -p .claude; echo '{ON}' > .claude/settings.local.json"
        ));
        let (stdout, stderr) = session(attempt);
        assert_eq!(stdout, "");
        assert!(
            stderr.contains("any session could have written"),
            "{stderr}"
        );
        // Positive control: what counts works, and is said.
        for file in [
            "/home/dev/project/.claude/settings.json",
            "/home/dev/.claude/settings.json",
        ] {
            let plant = format!("mkdir -p $(dirname {file}) && echo '{ON}' > {file}");
            let shell = laptop.command("bash").args(["-c", &plant]);
            shell.run().expect("an end").expect_success();
            let (stdout, stderr) = session(attempt);
            assert_eq!(stdout, "NESTED\n", "{stderr}");
            let notice = format!("nested is on, because \"{file}\" says so");
            assert!(stderr.contains(&notice), "{stderr}");
            // Also to who wants to hear nothing else.
            let quiet = laptop.stockade(["run", "--quiet", "--profile", "claude", "--", "true"]);
            let stderr = quiet.run().expect("an end").stderr();
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
            assert!(stderr.contains(&notice), "{stderr}");
            fs::remove_file(file).expect("removed");
        }
    });
}

/// A session may have made a link of a file that is read before the next one starts.
#[test]
fn f10_no_planted_link_has_the_start_read_the_callers_input() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let run = |plant: &str| {
            let script = format!(
                "mkdir -p .claude; rm -f .claude/settings.json; {plant}
                (echo one; sleep 0.2; echo two) | timeout 20 stockade run -q --profile claude -- cat 2>&1"
            );
            let shell = laptop.command("bash").args(["-c", &script]);
            shell.run().expect("an end").stdout()
        };
        let on = r#"echo '{"sandbox": {"enabled": true}}'"#;
        let plain = run("true");
        assert_eq!(plain, "one\ntwo\n");
        // Positive control: a link of the user's to a file counts.
        let linked = run(&format!(
            "{on} > ~/mine.json; ln -s ~/mine.json .claude/settings.json"
        ));
        assert!(linked.contains("nested is on"), "{linked}");
        for plant in [
            "ln -s /dev/stdin .claude/settings.json",
            "ln -s /proc/self/fd/0 .claude/settings.json",
            "mkfifo .claude/settings.json",
            "ln -s /dev/tty .claude/settings.json",
        ] {
            assert_eq!(run(plant), plain, "{plant}");
        }
    });
}
