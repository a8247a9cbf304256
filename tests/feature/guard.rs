//! `stockade inside`, and agents that refuse to work anywhere else.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use serde_json::Value;
use stockade_world::{Laptop, Output, test};

use super::agents::{Agent, CLAUDE, GEMINI, LIMIT, path, with_in};
use crate::support::standard;

/// The built program, by the path that it has outside and inside.
const STOCKADE: &str = "/run/world/bin/stockade";

#[test]
fn inside_is_true_in_a_session_of_any_network_and_nowhere_else() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = laptop
            .stockade(["inside", "--json"])
            .run()
            .expect("it ends");
        let outside: Value = serde_json::from_str(&outside.expect_code(1).stdout()).expect("JSON");
        assert_eq!(outside["inside"], false);
        laptop
            .stockade(["inside", "-q"])
            .run()
            .expect("it ends")
            .expect_code(1);
        for mode in ["jail", "none", "host"] {
            let line = format!("echo \"$STOCKADE\"; {STOCKADE} inside --json");
            let run = ["run", "--mode", mode, "--", "sh", "-c", &line];
            let output = laptop
                .stockade(run)
                .run()
                .expect("it ends")
                .expect_success();
            let said = output.stdout();
            let answer: Value =
                serde_json::from_str(said.lines().nth(1).expect("a line")).expect("JSON");
            assert_eq!(answer["inside"], true, "{mode}");
            let session = answer["session"].as_str().expect("a name");
            assert!(said.starts_with(session), "{mode}: {said}");
        }
    });
}

#[test]
fn inside_with_verify_runs_checks_and_fails_outside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let run = ["run", "--", STOCKADE, "inside", "--verify", "--json"];
        let output = laptop
            .stockade(run)
            .run()
            .expect("it ends")
            .expect_success();
        let answer: Value = serde_json::from_str(&output.stdout()).expect("JSON");
        let checks = answer["checks"].as_array().expect("checks");
        let named = |name: &str| {
            checks
                .iter()
                .find(|it| it["check"] == name)
                .expect("a check")
        };
        for name in [
            "privilege.none-new",
            "privilege.filter",
            "files.system",
            "process.core",
        ] {
            assert_eq!(named(name)["outcome"], "pass", "{name}");
        }
        assert!(
            checks.iter().all(|it| it["outcome"] != "fail"),
            "{checks:?}"
        );
        let outside = laptop
            .stockade(["inside", "--verify"])
            .run()
            .expect("it ends");
        outside.expect_code(1);
    });
}

#[test]
fn the_program_is_inside_where_it_is_outside_and_read_only() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let program = laptop.home().join(".local/bin/stockade");
        fs::create_dir_all(program.parent().expect("a directory")).expect("a directory");
        fs::copy(STOCKADE, &program).expect("a copy");
        let line = "~/.local/bin/stockade inside -q && echo by its path
            stockade inside -q && echo by its name
            echo x >> ~/.local/bin/stockade; rm -f ~/.local/bin/stockade; ls ~/.local/bin";
        let run = laptop
            .command(&program)
            .args(["run", "--", "sh", "-c", line]);
        let said = run.run().expect("it ends").stdout();
        assert_eq!(said, "by its path\nby its name\nstockade\n");
    });
}

/// What `stockade guard …` says.
#[track_caller]
fn guard(laptop: &Laptop, arguments: &[&str], code: i32) -> Output {
    let command = laptop.stockade(["guard"]).args(arguments);
    command.run().expect("it ends").expect_code(code)
}

#[test]
fn a_guard_leaves_every_other_byte_of_the_settings_alone() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let home = laptop.home();
        let (claude, gemini) = (home.join(".claude"), home.join(".gemini"));
        fs::create_dir_all(&gemini).expect("a directory");
        fs::create_dir_all(&claude).expect("a directory");
        let dotfiles = home.join("dotfiles");
        fs::create_dir(&dotfiles).expect("a directory");
        let settings = claude.join("settings.json");
        let _ = fs::remove_file(&settings);

        // One that was not there is gone again.
        guard(laptop, &["add", "claude"], 0);
        assert!(settings.exists());
        assert_eq!(fs::metadata(&settings).expect("it").mode() & 0o777, 0o600);
        guard(laptop, &["remove", "claude"], 0);
        assert!(!settings.exists());

        // A link stays one, and so does the mode of the file.
        let real = dotfiles.join("claude.json");
        let text = "{\n    \"zebra\": 1.50,\n    \"hooks\": {\"Stop\": []},\n    \"apple\": \"\\u00e9\"\n}";
        fs::write(&real, text).expect("settings");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("a mode");
        symlink(&real, &settings).expect("a link");
        let comments = "// mine\n{\n  // more\n  \"ui\": {}\n}\n";
        fs::write(gemini.join("settings.json"), comments).expect("settings");
        let said = guard(laptop, &["add", "claude", "gemini"], 0).stdout();
        assert!(
            said.contains("stockade claude") && said.contains("stockade gemini"),
            "{said}"
        );
        assert!(fs::symlink_metadata(&settings).expect("it").is_symlink());
        assert_eq!(fs::metadata(&real).expect("it").mode() & 0o777, 0o640);
        assert!(
            guard(laptop, &["add", "claude"], 0)
                .stdout()
                .contains("already")
        );
        let list: Value =
            serde_json::from_str(&guard(laptop, &["list", "--json"], 0).stdout()).expect("JSON");
        assert_eq!(list.as_array().expect("a list").len(), 2);
        assert_eq!(list[0]["state"], "in_force", "{list}");
        guard(laptop, &["remove", "claude", "gemini"], 0);
        assert_eq!(fs::read_to_string(&real).expect("settings"), text);
        assert_eq!(
            fs::read_to_string(gemini.join("settings.json")).expect("settings"),
            comments
        );
        assert_eq!(
            guard(laptop, &["list"], 0).stdout(),
            "No agent is guarded.\n"
        );
        let left: Vec<_> = fs::read_dir(&claude)
            .expect("a directory")
            .flatten()
            .map(|it| it.file_name())
            .collect();
        assert!(
            !left
                .iter()
                .any(|it| it.to_string_lossy().contains("stockade")),
            "{left:?}"
        );
    });
}

#[test]
fn what_cannot_be_guarded_is_refused_and_left_alone() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let settings = laptop.home().join(".claude/settings.json");
        fs::create_dir_all(settings.parent().expect("a directory")).expect("a directory");
        // Claude Code ignores all of a file with comments in it.
        for text in ["// x\n{}\n", "{\"a\": 1,}", "{\"hooks\": []}", "[]", ""] {
            fs::write(&settings, text).expect("settings");
            for command in ["add", "remove"] {
                let said = guard(laptop, &[command, "claude"], 125).stderr();
                assert!(
                    said.contains("is left as it is") && said.contains("fix:"),
                    "{said}"
                );
                assert_eq!(fs::read_to_string(&settings).expect("settings"), text);
            }
        }
        fs::remove_file(&settings).expect("no settings");
        symlink("nowhere", &settings).expect("a link");
        guard(laptop, &["add", "claude"], 125);
        assert!(fs::symlink_metadata(&settings).expect("it").is_symlink());
        fs::remove_file(&settings).expect("no link");
        // One wrong name, and nothing is done.
        let said = guard(laptop, &["add", "claude", "codex"], 125).stderr();
        assert!(
            said.contains("trusted") && said.contains("stockade shim add codex"),
            "{said}"
        );
        assert!(!settings.exists());
        guard(laptop, &["add", "nobody"], 125);
        let said = guard(laptop, &["add", "--system", "claude"], 125).stderr();
        assert!(said.contains("root"), "{said}");
        let run = ["run", "--", STOCKADE, "guard", "add", "claude"];
        let inside = laptop
            .stockade(run)
            .run()
            .expect("it ends")
            .expect_code(125);
        assert!(inside.stderr().contains("inside a session"), "{inside:?}");
        // Positive control.
        guard(laptop, &["add", "claude"], 0);
        assert!(settings.exists());
    });
}

#[test]
fn a_guard_that_is_not_in_force_is_told() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let settings = laptop.home().join(".claude/settings.json");
        let doctor = || {
            let output = laptop.stockade(["doctor"]).run().expect("it ends");
            output.stdout()
        };
        assert!(!doctor().contains("guard"), "{}", doctor());
        guard(laptop, &["add", "claude"], 0);
        assert!(doctor().contains("claude is guarded by"), "{}", doctor());
        let whole = fs::read_to_string(&settings).expect("settings");
        let said = |text: &str| {
            fs::write(&settings, text).expect("settings");
            let said = guard(laptop, &["list"], 1).stdout();
            assert!(said.contains("NOT in force"), "{said}");
            assert!(
                doctor().contains("claude is not guarded by"),
                "{}",
                doctor()
            );
            said
        };
        assert!(
            said(&whole.replace("PreToolUse", "PostToolUse")).contains("PreToolUse is missing")
        );
        assert!(
            said(&whole.replace("/run/world/bin/stockade", "/gone/stockade"))
                .contains("/gone/stockade")
        );
        assert!(said(&format!("{whole},")).contains("cannot read it"));
        // A project can turn off all hooks of the user's.
        fs::write(&settings, &whole).expect("settings");
        let project = laptop.workspace().join(".claude");
        fs::create_dir_all(&project).expect("a directory");
        fs::write(project.join("settings.json"), "{\"disableAllHooks\": true}").expect("settings");
        assert!(
            guard(laptop, &["list"], 1)
                .stdout()
                .contains("turns all hooks off here")
        );
        fs::remove_file(project.join("settings.json")).expect("no settings");
        guard(laptop, &["list"], 0);
        // What is damaged is mended by adding it again.
        fs::write(&settings, whole.replace("exit 2", "exit 0")).expect("settings");
        guard(laptop, &["list"], 1);
        guard(laptop, &["add", "claude"], 0);
        assert_eq!(fs::read_to_string(&settings).expect("settings"), whole);
    });
}

#[test]
fn a_session_that_removes_the_guard_is_told_at_its_end() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        guard(laptop, &["add", "claude"], 0);
        let line = ["run", "--profile", "claude", "--", "sh", "-c"];
        let kept = laptop
            .stockade(line)
            .arg("cat ~/.claude/settings.json")
            .run();
        assert!(
            !kept
                .expect("it ends")
                .stderr()
                .contains(".claude/settings.json")
        );
        let removed = laptop
            .stockade(line)
            .arg("echo '{}' > ~/.claude/settings.json")
            .run();
        let said = removed.expect("it ends").stderr();
        assert!(said.contains(".claude/settings.json"), "{said}");
    });
}

/// Starts a model that notes whatever is asked of it, and asks for one call.
fn model(laptop: &Laptop, script: &str) -> stockade_world::Running {
    let home = laptop.home();
    fs::write(home.join("calls.json"), "[\"echo worked > worked.txt\"]").expect("calls");
    let model = laptop.command("/usr/bin/python3").args(["-c", script]);
    let model = model
        .arg(home.join("calls.json"))
        .arg(home.join("results.json"))
        .arg(home.join("asked"))
        .limit(8 * LIMIT);
    let model = model.spawn().expect("a model");
    model.expect("listening").expect("a model");
    model
}

/// Whether the agent asked the model, and whether its tool ran; both are forgotten then.
fn what_happened(laptop: &Laptop) -> (bool, bool) {
    let gone = |path: &Path| fs::remove_file(path).is_ok();
    let asked = gone(&laptop.home().join("asked"));
    (asked, gone(&laptop.workspace().join("worked.txt")))
}

/// An agent without a guard works outside; with one it does not, unless it is inside.
fn refuses_outside(agent: &Agent, script: &str, arguments: &[&str], environment: &[(&str, &str)]) {
    with_in(standard(), agent, |laptop| {
        let _model = model(laptop, script);
        let with = |command: stockade_world::Command| {
            let command = command.env("PATH", path()).limit(LIMIT);
            let command = environment
                .iter()
                .fold(command, |command, (name, value)| command.env(name, value));
            command.run().expect("the agent ends")
        };
        let outside = || with(laptop.command("env").arg(agent.name).args(arguments));
        let said = outside();
        assert_eq!(
            what_happened(laptop),
            (true, true),
            "without a guard: {said:?}"
        );

        guard(laptop, &["add", agent.name], 0);
        let said = outside();
        assert_eq!(what_happened(laptop), (false, false), "{said:?}");
        let text = said.stdout() + &said.stderr();
        assert!(
            text.contains(&format!("Start it with: stockade {}", agent.name)),
            "{text}"
        );
        // A variable of a session does not help it.
        let claimed = laptop
            .command("env")
            .arg("STOCKADE=1-2-3")
            .arg(agent.name)
            .args(arguments);
        let said = with(claimed);
        assert_eq!(what_happened(laptop), (false, false), "{said:?}");

        let run = ["run", "--host-port", "8765", "--", agent.name];
        let said = with(laptop.stockade(run).args(arguments));
        assert_eq!(what_happened(laptop), (true, true), "inside: {said:?}");

        // The tools alone are refused, too, should a prompt get through.
        let settings = laptop.home().join(format!(".{}/settings.json", agent.name));
        let whole = fs::read_to_string(&settings).expect("settings");
        let first =
            whole
                .replacen("UserPromptSubmit", "Stop", 1)
                .replacen("BeforeAgent", "AfterTool", 1);
        fs::write(&settings, first).expect("settings");
        let said = outside();
        assert_eq!(what_happened(laptop), (true, false), "{said:?}");
        fs::write(&settings, whole).expect("settings");

        guard(laptop, &["remove", agent.name], 0);
        let said = outside();
        assert_eq!(
            what_happened(laptop),
            (true, true),
            "without it again: {said:?}"
        );
    });
}

#[test]
fn claude_code_with_a_guard_works_inside_only() {
    refuses_outside(
        &CLAUDE,
        include_str!("../daily/model.py"),
        &["-p", "Work.", "--allowedTools", "Bash"],
        &[
            ("ANTHROPIC_API_KEY", "decoy"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8765"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ],
    );
}

#[test]
fn gemini_cli_with_a_guard_works_inside_only() {
    refuses_outside(
        &GEMINI,
        include_str!("probes/gemini.py"),
        &[
            "-p",
            "Work.",
            "--yolo",
            "--skip-trust",
            "-m",
            "gemini-2.5-flash",
        ],
        &[
            ("GEMINI_API_KEY", "decoy"),
            ("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:8765"),
        ],
    );
}
