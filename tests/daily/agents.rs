//! Agents' own settings: where they keep their state, which variables they get, how they log in,
//! and where package managers find packages.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use stockade_world::{Command, Laptop, Output, Site, eventually, test};

use crate::{
    feature::agents::{Agent, CLAUDE, CODEX, GEMINI, LIMIT, path, with},
    support::standard,
};

/// Agents, the variables for their state, and where that is in the directory that one names.
const STATE: [(&str, &str, &str); 3] = [
    ("claude", "CLAUDE_CONFIG_DIR", ""),
    ("codex", "CODEX_HOME", ""),
    ("gemini", "GEMINI_CLI_HOME", ".gemini"),
];

/// Puts a script in the agent's place.
fn install(laptop: &Laptop, name: &str, script: &str) {
    let program = laptop.home().join(".local/bin").join(name);
    fs::create_dir_all(program.parent().expect("a directory")).expect("a directory");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("an agent");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
}

fn stockade(laptop: &Laptop, arguments: &[&str]) -> Command {
    let path = format!("{}/.local/bin:/usr/bin:/bin", laptop.home().display());
    laptop.stockade(arguments).env("PATH", path)
}

fn run(command: Command) -> Output {
    command.run().expect("stockade ends")
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, text).expect("a file");
}

#[test]
fn an_agents_state_is_where_its_variable_says_and_not_in_the_usual_place() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (agent, variable, below) in STATE {
            let usual = laptop.home().join(format!(".{agent}"));
            write(&usual.join("usual"), "usual");
            // A name with a dot in it is a directory's, too.
            let moved = laptop.home().join(format!(".config/agents-1.2/{agent}"));
            let state = moved.join(below);
            let script = format!(
                "cat \"${variable}/{below}/login\" 2>/dev/null; echo in > \"${variable}/{below}/login\"; \
                 ls ~/.{agent} ~/.{agent}.json 2>/dev/null; true"
            );
            install(laptop, agent, &script);
            let start = || run(stockade(laptop, &[agent]).env(variable, &moved)).expect_success();
            let first = start();
            assert_eq!(first.stdout(), "", "{first:?}");
            let made = format!("made {}", state.components().collect::<PathBuf>().display());
            assert!(first.stderr().contains(&made), "{first:?}");
            let second = start();
            assert_eq!(
                (second.stdout().as_str(), second.stderr().as_str()),
                ("in\n", "")
            );
            assert!(state.join("login").exists());
            // Without the variable, and with an empty one, the usual place is shown as before.
            for command in [
                stockade(laptop, &[agent]),
                stockade(laptop, &[agent]).env(variable, ""),
            ] {
                let said = run(command).expect_success().stdout();
                assert!(said.contains("usual"), "{agent}: {said}");
            }
        }
    });
}

/// What an agent obeys in its state is reported, and its program there cannot be replaced.
#[test]
fn state_that_was_moved_is_guarded_and_reported_like_the_usual_one() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let moved = laptop.home().join("moved");
        for (agent, variable, program, obeyed) in [
            (
                "claude",
                "CLAUDE_CONFIG_DIR",
                "local/claude",
                "settings.json",
            ),
            (
                "claude",
                "CLAUDE_CONFIG_DIR",
                "local/claude",
                ".claude.json",
            ),
            ("codex", "CODEX_HOME", "bin/codex", "config.toml"),
            ("gemini", "GEMINI_CLI_HOME", "", ".gemini/settings.json"),
        ] {
            let state = moved.join(agent);
            let plant = "{\"mcpServers\": {\"x\": {\"command\": \"x\"}}}";
            let mut script = format!("echo '{plant}' > \"${variable}/{obeyed}\"");
            if !program.is_empty() {
                write(&state.join(program), "program");
                script.push_str(&format!(
                    "; echo evil 2>/dev/null > \"${variable}/{program}\" && echo replaced; \
                     echo x > \"${variable}/other\" && echo wrote"
                ));
            }
            install(laptop, agent, &script);
            fs::create_dir_all(&state).expect("a directory");
            let output = run(stockade(laptop, &[agent]).env(variable, &state)).expect_success();
            let expected = if program.is_empty() { "" } else { "wrote\n" };
            assert_eq!(output.stdout(), expected, "{output:?}");
            let name = state.join(obeyed).display().to_string();
            let name = name.replace(&laptop.home().display().to_string(), "");
            assert!(output.stderr().contains(&name), "{name}: {output:?}");
        }
    });
}

#[test]
fn a_variable_that_leads_to_no_agents_state_is_refused_with_the_fix() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        install(laptop, "codex", "true");
        let home = laptop.home().display().to_string();
        let at_home = |below: &str| format!("{home}{below}");
        write(&laptop.home().join("file"), "");
        let workspace = laptop.workspace().display().to_string();
        fs::create_dir_all(laptop.home().join(".cache")).expect("a directory");
        for (value, why) in [
            ("state".to_owned(), "is not an absolute path"),
            (at_home("/x/../.ssh"), "has `..` in it"),
            (home.clone(), "belongs to Stockade"),
            ("/".to_owned(), "belongs to Stockade"),
            ("/home".to_owned(), "belongs to Stockade"),
            ("/etc/stockade".to_owned(), "belongs to Stockade"),
            (
                "/usr".to_owned(),
                "is where the system or other programs keep",
            ),
            (
                "/tmp".to_owned(),
                "is where the system or other programs keep",
            ),
            ("/usr/share".to_owned(), "lies in /usr"),
            (at_home("/.ssh"), "lies in your ~/.ssh"),
            (at_home("/.aws/new"), "lies in your ~/.aws"),
            (at_home("/.config"), "belongs to Stockade"),
            (at_home("/.cache"), "lies in your ~/.cache"),
            (at_home("/.config/stockade"), "belongs to Stockade"),
            (at_home("/.local/state/stockade/x"), "belongs to Stockade"),
            (at_home("/file"), "is not a directory"),
            ("/nowhere/codex".to_owned(), "does not exist"),
        ] {
            let command = |line: &[&str]| run(stockade(laptop, line).env("CODEX_HOME", &value));
            let refused = command(&["codex"]).expect_code(125);
            let said = refused.stderr();
            assert!(said.contains(why), "{value}: {said}");
            assert!(said.contains("CODEX_HOME"), "{value}: {said}");
            assert!(said.contains("unset it"), "{value}: {said}");
            // It is nothing to other commands.
            command(&["run", "--", "true"]).expect_success();
        }
        assert!(!laptop.home().join(".aws/new").exists());
        let fine = format!("{workspace}/.codex-state");
        fs::create_dir(&fine).expect("a directory");
        run(stockade(laptop, &["codex"]).env("CODEX_HOME", fine)).expect_success();
    });
}

/// `~/.local/share` is shown whole, but not an agent's login in it.
#[test]
fn the_moved_state_of_another_agent_is_hidden() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let state = laptop.home().join(".local/share/codex");
        write(&state.join("auth.json"), "login");
        let see = |profile: &str, variable: bool| {
            let line = ["run", "--profile", profile, "--", "cat"];
            let mut command = stockade(laptop, &line).arg(state.join("auth.json"));
            if variable {
                command = command.env("CODEX_HOME", &state);
            }
            run(command).stdout()
        };
        assert_eq!(see("generic", false), "login", "the control");
        assert_eq!(see("codex", true), "login");
        for profile in ["generic", "claude", "gemini", "aider"] {
            assert_eq!(see(profile, true), "", "{profile}");
        }
        let given = ["run", "--read", "~/.local/share/codex", "--", "true"];
        let said = run(stockade(laptop, &given).env("CODEX_HOME", &state)).stderr();
        assert!(said.contains("conversations of agents"), "{said}");
    });
}

#[test]
fn claude_code_keeps_its_state_where_its_variable_says() {
    keeps_state(
        &CLAUDE,
        "CLAUDE_CONFIG_DIR",
        &["mcp", "list"],
        ".claude.json",
    );
}

#[test]
fn codex_keeps_its_state_where_its_variable_says() {
    keeps_state(
        &CODEX,
        "CODEX_HOME",
        &["mcp", "add", "x", "--", "true"],
        "config.toml",
    );
}

#[test]
fn gemini_cli_keeps_its_state_where_its_variable_says() {
    keeps_state(
        &GEMINI,
        "GEMINI_CLI_HOME",
        &["mcp", "add", "-s", "user", "x", "true"],
        ".gemini/settings.json",
    );
}

/// The real agent, by what it leaves in the directory that the variable names.
fn keeps_state(agent: &Agent, variable: &str, line: &[&str], left: &str) {
    with(agent, |laptop| {
        let usual = laptop.home().join(format!(".{}", agent.name));
        let _ = fs::remove_dir_all(&usual);
        let moved = laptop.home().join("moved");
        let command = laptop.stockade([agent.name]).args(line).env("PATH", path());
        let command = command.env(variable, &moved).limit(LIMIT);
        let output = command.run().expect("the agent ends");
        assert!(moved.join(left).exists(), "{output:?}");
        assert!(!usual.exists(), "{output:?}");
    });
}

#[test]
fn each_agent_gets_the_variables_that_it_documents_and_no_other_command_does() {
    const OF: [(&str, &[&str]); 4] = [
        (
            "claude",
            &[
                "ANTHROPIC_DEFAULT_OPUS_MODEL",
                "ANTHROPIC_BEDROCK_BASE_URL",
                "AWS_BEARER_TOKEN_BEDROCK",
                "AWS_REGION",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
                "CLOUD_ML_REGION",
                "MAX_THINKING_TOKENS",
            ],
        ),
        (
            "codex",
            &["CODEX_API_KEY", "OPENAI_PROJECT", "AZURE_OPENAI_API_KEY"],
        ),
        (
            "gemini",
            &[
                "GEMINI_MODEL",
                "GOOGLE_GENAI_USE_VERTEXAI",
                "GOOGLE_CLOUD_LOCATION",
            ],
        ),
        (
            "aider",
            &["AIDER_MODEL", "AIDER_DARK_MODE", "AIDER_WEAK_MODEL"],
        ),
    ];
    /// These give more than a model.
    const NOBODYS: [&str; 4] = [
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SESSION_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for profile in ["generic", "claude", "codex", "gemini", "aider"] {
            let mut command = stockade(laptop, &["run", "--profile", profile, "--", "env"]);
            let all = OF.iter().flat_map(|(_, names)| *names).chain(&NOBODYS);
            for name in all.clone() {
                command = command.env(name, "given");
            }
            let said = run(command).expect_success().stdout();
            for name in all {
                let is_own = OF
                    .iter()
                    .any(|(agent, names)| *agent == profile && names.contains(name));
                let has = said.lines().any(|line| line == format!("{name}=given"));
                assert_eq!(has, is_own, "{profile}: {name}");
            }
        }
    });
}

/// As the browser asks, on the host.
fn call_back(laptop: &Laptop, target: &str) -> Output {
    let url = format!("http://localhost:1455{target}");
    let curl = [
        "-sS",
        "--max-time",
        "20",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
    ];
    run(laptop.command("curl").args(curl).arg(url))
}

#[test]
fn a_browser_calls_the_login_of_codex_back() {
    with(&CODEX, |laptop| {
        let login = |line: &[&str]| laptop.stockade(line).env("PATH", path()).limit(LIMIT);
        for line in [&["codex", "login"][..], &["run", "--", "codex", "login"]] {
            let session = login(line).spawn().expect("a login");
            let says = |text: &str| session.stderr_so_far().contains(text);
            eventually("its server", LIMIT, || {
                says("server on http://localhost:1455")
            })
            .expect("its server");
            assert!(says("publishing 127.0.0.1:1455 for this login"));
            // A callback of nobody's login is refused by Codex itself.
            let answer = call_back(laptop, "/auth/callback?code=x&state=wrong");
            assert_eq!(answer.stdout(), "400", "{answer:?}");
            assert_eq!(call_back(laptop, "/cancel").stdout(), "200");
            assert!(!session.wait().expect("its end").succeeded());
        }
        // Nothing is published for anything else.
        let status = login(&["codex", "login", "status"]).run().expect("its end");
        assert!(!status.stderr().contains("1455"), "{status:?}");

        let taken = laptop.http("127.0.0.1:1455", Site::text("another\n"));
        let taken = taken.expect("a server");
        let refused = login(&["codex", "login"]).run().expect("its end");
        let said = refused.expect_code(125).stderr();
        assert!(
            said.contains("port 1455 of this machine cannot be taken"),
            "{said}"
        );
        assert!(said.contains("codex login --device-auth"), "{said}");
        assert!(said.contains("ss -ltnp"), "{said}");
        drop(taken);
    });
}

/// pip and npm find their index by the user's files, and have no login for it.
#[test]
fn pip_and_npm_use_the_users_index_without_its_login() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let index = laptop
            .http("127.0.0.1:8081", Site::text(""))
            .expect("an index");
        let home = laptop.home();
        write(
            &home.join(".config/pip/pip.conf"),
            "[global]\nindex-url = http://dev:SECRET@127.0.0.1:8081/pip\ncert = /SECRET\n",
        );
        write(
            &home.join(".npmrc"),
            "registry=http://127.0.0.1:8081/npm/\n//127.0.0.1:8081/npm/:_authToken=SECRET\n",
        );
        let inside = |line: &[&str], options: &[&str]| {
            let all = [&["run", "--host-port", "8081"], options, &["--"], line].concat();
            run(stockade(laptop, &all).limit(LIMIT))
        };
        let pip = ["pip", "download", "--no-cache-dir", "--retries=0", "thing"];
        let npm = ["npm", "view", "thing", "--fetch-retries=0"];
        let asked = |target: &str, login: bool| {
            let requests = index.requests().all();
            let mut requests = requests.iter().filter(|it| it.target.starts_with(target));
            requests.any(|it| it.header("authorization").is_some() == login)
        };
        let first = inside(&pip, &[]);
        assert!(asked("/pip/thing", false), "{first:?}");
        let said = first.stderr();
        for file in ["~/.config/pip/pip.conf", "~/.npmrc"] {
            assert!(said.contains(&format!("--read {file}")), "{said}");
        }
        let second = inside(&npm, &[]);
        assert!(asked("/npm/thing", false), "{second:?}");
        assert!(!asked("/", true));
        let files = ["cat", "/home/dev/.npmrc", "/home/dev/.config/pip/pip.conf"];
        let files = inside(&files, &[]).expect_success().stdout();
        assert!(!files.contains("SECRET"), "{files}");
        let changed = inside(&["sh", "-c", "echo x >> ~/.npmrc"], &[]);
        assert!(!changed.succeeded());

        // What the line says gives the login.
        let third = inside(&npm, &["--read", "~/.npmrc"]);
        assert!(asked("/npm/thing", true), "{third:?}");
        assert!(!third.stderr().contains("--read ~/.npmrc"), "{third:?}");
        let hidden = inside(&["cat", "/home/dev/.npmrc"], &["--hide", "~/.npmrc"]);
        assert!(!hidden.succeeded(), "{hidden:?}");

        // Without files, variables do.
        fs::remove_file(home.join(".config/pip/pip.conf")).expect("a file less");
        let all = [&["run", "--host-port", "8081", "--"][..], &pip].concat();
        let command = stockade(laptop, &all).limit(LIMIT);
        let fourth = run(command.env("PIP_INDEX_URL", "http://dev:SECRET@127.0.0.1:8081/var"));
        assert!(
            asked("/var/thing", false) && !asked("/var/thing", true),
            "{fourth:?}"
        );
        assert!(
            fourth.stderr().contains("--pass-env PIP_INDEX_URL"),
            "{fourth:?}"
        );

        // What stands in the place of a file with a login is known to be no login.
        let verify = run(stockade(laptop, &["verify"]).limit(LIMIT));
        assert!(verify.stdout().contains("files.credentials"), "{verify:?}");
        verify.expect_success();
    });
}

#[test]
fn settings_that_a_variable_names_come_along_without_their_logins() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let home = laptop.home().join("settings");
        let cargo = Path::new("/srv/cargo");
        write(
            &home.join("npmrc"),
            "registry=http://i.test/npm/\n//i.test/npm/:_authToken=SECRET\n",
        );
        write(
            &home.join("pip.conf"),
            "[global]\nindex-url = http://dev:SECRET@i.test/pip\n",
        );
        write(
            &home.join("uv.toml"),
            "index-url = \"http://dev:SECRET@i.test/uv\"\n",
        );
        write(
            &cargo.join("config.toml"),
            "[registries.own]\nindex = \"sparse+http://i.test/cargo/\"\ntoken = \"SECRET\"\n",
        );
        let run = |options: &[&str]| {
            let script = "npm config get registry; pip config list | grep index; cat $UV_CONFIG_FILE \
                $CARGO_HOME/config.toml; grep -rl SECRET ~/settings $CARGO_HOME";
            let line = [&["run"], options, &["--", "bash", "-c", script]].concat();
            let command = stockade(laptop, &line)
                .env("NPM_CONFIG_USERCONFIG", home.join("npmrc"))
                .env("PIP_CONFIG_FILE", home.join("pip.conf"))
                .env("UV_CONFIG_FILE", home.join("uv.toml"))
                .env("CARGO_HOME", cargo);
            run(command.limit(LIMIT))
        };
        let output = run(&[]);
        assert_eq!(
            output.stdout(),
            "http://i.test/npm/\nglobal.index-url='http://i.test/pip'\nindex-url = \"http://i.test/uv\"\n\
             [registries.own]\nindex = \"sparse+http://i.test/cargo/\"\n",
            "{output:?}"
        );
        for file in ["npmrc", "pip.conf", "uv.toml"] {
            let read = format!("--read ~/settings/{file}\n");
            assert!(output.stderr().contains(&read), "{output:?}");
        }
        let read = "--read /srv/cargo/config.toml\n";
        assert!(output.stderr().contains(read), "{output:?}");
        // Who gives one has it whole.
        let given = run(&["--read", "~/settings/npmrc"]).stdout();
        assert!(given.ends_with("/home/dev/settings/npmrc\n"), "{given}");
    });
}
