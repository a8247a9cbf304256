//! `stockade inside`, and agents that refuse to work anywhere else.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use serde_json::Value;
use stockade_world::{Laptop, Output, test};

use super::agents::{Agent, CLAUDE, CODEX, GEMINI, LIMIT, path, with_in};
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
            let line = format!("echo \"$STOCKADE_SESSION\"; {STOCKADE} inside --json");
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
            said.contains("trusted") && said.contains("--system codex"),
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
        // A session could name a program that always says yes.
        assert!(
            said(&whole.replace("/run/world/bin/stockade", "/usr/bin/true"))
                .contains("/usr/bin/true, which is gone, or is not Stockade")
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
        // A pipe that nobody writes to holds up nobody.
        let pipe = laptop.shell("rm ~/.claude/settings.json; mkfifo ~/.claude/settings.json");
        pipe.run().expect("it ends").expect_success();
        guard(laptop, &["list"], 0);
        guard(laptop, &["add", "claude"], 125);
        fs::remove_file(&settings).expect("no pipe");
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
        .arg("127.0.0.1")
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

/// An agent that works for a model.
struct Trial<'a> {
    laptop: &'a Laptop,
    agent: &'a Agent,
    arguments: &'a [&'a str],
    environment: &'a [(&'a str, &'a str)],
    _model: stockade_world::Running,
}

impl Trial<'_> {
    /// Starts the agent, and says whether it asked the model, and whether its tool ran.
    fn run(&self, command: stockade_world::Command) -> ((bool, bool), String) {
        let command = command.args(self.arguments).env("PATH", path());
        let command = self
            .environment
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value));
        let output = command
            .input("")
            .limit(LIMIT)
            .run()
            .expect("the agent ends");
        let text = output.stdout() + &output.stderr();
        (what_happened(self.laptop), text)
    }

    fn outside(&self) -> ((bool, bool), String) {
        self.run(self.laptop.command("env").arg(self.agent.name))
    }

    /// A variable of a session does not make it one.
    fn outside_with_a_claim(&self) -> ((bool, bool), String) {
        let claim = ["STOCKADE=1", "STOCKADE_SESSION=1-2-3", self.agent.name];
        self.run(self.laptop.command("env").args(claim))
    }

    fn inside(&self) -> ((bool, bool), String) {
        let run = ["run", "--host-port", "8765", "--", self.agent.name];
        self.run(self.laptop.stockade(run))
    }

    #[track_caller]
    fn is_refused_outside_only(&self) {
        let (happened, said) = self.outside();
        assert_eq!(happened, (false, false), "outside: {said}");
        let (happened, said) = self.outside_with_a_claim();
        assert_eq!(happened, (false, false), "outside, with variables: {said}");
        let (happened, said) = self.inside();
        assert_eq!(happened, (true, true), "inside: {said}");
    }

    #[track_caller]
    fn works_outside(&self) {
        let (happened, said) = self.outside();
        assert_eq!(happened, (true, true), "without a guard: {said}");
    }
}

/// An agent without a guard works outside; with one it does not, unless it is inside.
fn refuses_outside(agent: &Agent, script: &str, arguments: &[&str], environment: &[(&str, &str)]) {
    with_in(standard(), agent, |laptop| {
        if agent.name == GEMINI.name {
            // Otherwise it asks how to log in.
            let settings = "{\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}}";
            let state = laptop.home().join(".gemini");
            fs::create_dir_all(&state).expect("a directory");
            fs::write(state.join("settings.json"), settings).expect("settings");
        }
        let trial = Trial {
            laptop,
            agent,
            arguments,
            environment,
            _model: model(laptop, script),
        };
        trial.works_outside();
        guard(laptop, &["add", agent.name], 0);
        trial.is_refused_outside_only();
        let (_, said) = trial.outside();
        let start = format!("Start it with: stockade {}", agent.name);
        assert!(said.contains(&start), "{said}");

        // The tools alone are refused, too, should a prompt get through.
        let settings = laptop.home().join(format!(".{}/settings.json", agent.name));
        let whole = fs::read_to_string(&settings).expect("settings");
        let tools = without_prompts(&whole);
        fs::write(&settings, tools).expect("settings");
        let (happened, said) = trial.outside();
        assert_eq!(happened, (true, false), "{said}");
        fs::write(&settings, whole).expect("settings");

        guard(laptop, &["remove", agent.name], 0);
        trial.works_outside();
    });
}

/// The guard without the hook for prompts.
fn without_prompts(settings: &str) -> String {
    let less = settings.replacen("UserPromptSubmit", "PreCompact", 1);
    less.replacen("BeforeAgent", "PreCompress", 1)
}

const CLAUDE_ARGUMENTS: &[&str] = &["-p", "Work.", "--allowedTools", "Bash"];
const CLAUDE_ENVIRONMENT: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "decoy"),
    ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8765"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
];

#[test]
fn claude_code_with_a_guard_works_inside_only() {
    let model = include_str!("../daily/model.py");
    refuses_outside(&CLAUDE, model, CLAUDE_ARGUMENTS, CLAUDE_ENVIRONMENT);
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

/// The guard of an agent as the administrator's settings have it.
fn of_system(laptop: &Laptop, agent: &Agent) -> String {
    let claude = laptop.home().join(".claude/settings.json");
    guard(laptop, &["add", "claude"], 0);
    let text = fs::read_to_string(&claude).expect("settings");
    guard(laptop, &["remove", "claude"], 0);
    text.replace("claude", agent.name)
}

#[test]
fn a_project_does_not_turn_off_the_administrators_guard_of_claude_code() {
    with_in(standard(), &CLAUDE, |laptop| {
        let trial = Trial {
            laptop,
            agent: &CLAUDE,
            arguments: CLAUDE_ARGUMENTS,
            environment: CLAUDE_ENVIRONMENT,
            _model: model(laptop, include_str!("../daily/model.py")),
        };
        let project = laptop.workspace().join(".claude");
        fs::create_dir_all(&project).expect("a directory");
        let off = "{\"disableAllHooks\": true}";
        fs::write(project.join("settings.json"), off).expect("settings");
        // Positive control: it turns off the user's.
        guard(laptop, &["add", "claude"], 0);
        trial.works_outside();
        let text = of_system(laptop, &CLAUDE);
        let file = "claude-code/managed-settings.json";
        laptop.write_etc(file, &text).expect("settings");
        trial.is_refused_outside_only();
        let list = guard(laptop, &["list"], 0).stdout();
        assert!(list.contains("/etc/claude-code"), "{list}");
        laptop.write_etc(file, "{}").expect("settings");
        trial.works_outside();
    });
}

#[test]
fn codex_with_the_administrators_guard_works_inside_only() {
    let provider = "model_providers.mock={name=\"mock\",base_url=\"http://127.0.0.1:8765/v1\",\
                    wire_api=\"responses\"}";
    let arguments = [
        "exec",
        "--skip-git-repo-check",
        "--sandbox=danger-full-access",
        "-c",
        "model=mock",
        "-c",
        "model_provider=mock",
        "-c",
        provider,
        "Work.",
    ];
    with_in(standard(), &CODEX, |laptop| {
        let trial = Trial {
            laptop,
            agent: &CODEX,
            arguments: &arguments,
            environment: &[],
            _model: model(laptop, include_str!("probes/codex.py")),
        };
        let text = of_system(laptop, &CODEX);
        // In the user's own settings Codex does not heed it, so Stockade refuses to put it there.
        let state = laptop.home().join(".codex");
        fs::create_dir_all(&state).expect("a directory");
        fs::write(state.join("hooks.json"), &text).expect("hooks");
        trial.works_outside();
        fs::remove_file(state.join("hooks.json")).expect("no hooks");
        let file = "codex/hooks.json";
        laptop.write_etc(file, &text).expect("hooks");
        trial.is_refused_outside_only();
        let list = guard(laptop, &["list"], 0).stdout();
        assert!(list.contains("/etc/codex/hooks.json"), "{list}");
        let tools = without_prompts(&text);
        laptop.write_etc(file, &tools).expect("hooks");
        let (happened, said) = trial.outside();
        assert_eq!(happened, (true, false), "{said}");
        laptop.write_etc(file, "{}").expect("hooks");
        trial.works_outside();
    });
}
