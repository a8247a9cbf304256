//! The commands about the configuration, as typed: the built program in homes of its own.
//! Nothing is run inside here, so nothing of the network is needed.

mod support;

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use support::User;

const CONFIG: &str = "home/.config/stockade/config.toml";
const PROJECT_FILE: &str = "home/.config/stockade/projects/project.toml";
const WORKSPACE_FILE: &str = "home/project/.stockade.toml";

#[test]
fn show_tells_every_value_and_where_it_comes_from() {
    let user = User::new();
    user.write(CONFIG, "[network]\ninternet = false\nallow = [\n  \"10.0.0.1\",\n]\n[env.set]\nA = \"\\u001b\"\n[profiles.npm.network]\npublish = [3000]\n");
    let shown = user.run(&["config", "show"]).with(0);
    assert_eq!(shown.stderr, "");
    let lines: Vec<String> = shown
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in [
        "# user: /D/home/.config/stockade/config.toml",
        "mode = \"jail\" # built in",
        "internet = false # /D/home/.config/stockade/config.toml:2",
        "\"10.0.0.1\", # /D/home/.config/stockade/config.toml:4",
        "publish = [] # built in",
        "set.A = \"\\u001B\" # /D/home/.config/stockade/config.toml:7",
        "# profile: generic, for commands without one of their own (--profile NAME shows another)",
        "processes = 4096 # built in",
        "# memory # not set: no limit",
    ] {
        assert!(
            lines.iter().any(|shown| shown == line),
            "{line} is not in {}",
            shown.stdout
        );
    }
    // What is shown is TOML, and says the same when it is read.
    let before = user.run(&["config", "show", "--json"]).with(0);
    let home = user.path("");
    user.write(
        CONFIG,
        &shown.stdout.replace("/D/", &home.to_string_lossy()),
    );
    user.run(&["config", "check"]).with(0);
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let after = user.run(&["config", "show", "--json"]).with(0);
    assert_eq!(
        json(&before.stdout)["sha256"],
        json(&after.stdout)["sha256"]
    );
}

#[test]
fn show_for_programs_has_files_and_lines() {
    let user = User::new();
    user.write(
        CONFIG,
        "network.allow = [\"10.0.0.1\"]\n[profiles.npm.network]\npublish = [3000]\n",
    );
    let shown = user
        .run(&["config", "show", "--json", "--profile", "npm"])
        .with(0);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let file = "/D/home/.config/stockade/config.toml";
    assert_eq!(shown["version"], 1);
    assert_eq!(shown["profile"], "npm");
    assert_eq!(shown["files"][0]["path"], file);
    assert_eq!(shown["workspace_file"], "absent");
    assert_eq!(shown["values"]["network.mode"]["origin"], "built in");
    let published = &shown["values"]["network.publish"][0];
    assert_eq!(
        (&published["value"], &published["file"], &published["line"]),
        (&"3000".into(), &file.into(), &3.into())
    );
    assert_eq!(shown["values"]["limits.memory"], Value::Null);
    let values = shown["values"].as_object().expect("values");
    assert_eq!(values.len(), stockade_config::Key::ALL.len());

    let unknown = user.run(&["config", "show", "--profile", "nmp"]).with(125);
    assert!(
        unknown.stderr.contains("did you mean `npm`?"),
        "{unknown:?}"
    );
}

#[test]
fn check_says_what_is_wrong_and_its_exit_code_does() {
    let user = User::new();
    let none = user.run(&["config", "check"]).with(0);
    assert_eq!(
        none.stdout,
        "no configuration files here; the defaults apply\n"
    );
    user.write(CONFIG, "[network]\nalow = []\n");
    let wrong = user.run(&["config", "check"]).with(1);
    assert_eq!(
        wrong.stderr,
        "error: unknown key `alow` in [network]\n \
         --> /D/home/.config/stockade/config.toml:2:1\n  |\n\
         2 | alow = []\n  | ^^^^ did you mean `allow`?\n\n"
    );
    let file = user.path(CONFIG);
    let named = user
        .run(&["config", "check", &file.to_string_lossy()])
        .with(1);
    assert_eq!(named.stderr, wrong.stderr);
    user.write(CONFIG, "");
    // The workspace's file, though it is not trusted.
    user.write(WORKSPACE_FILE, "[network]\nmode = \"jial\"\n");
    assert!(
        user.run(&["config", "check"])
            .with(1)
            .stderr
            .contains(".stockade.toml:2:8")
    );
    user.run(&["config", "check", ".stockade.toml"]).with(1);
    user.run(&["config", "check", "/nonexistent"]).with(1);
    user.write(WORKSPACE_FILE, "[network]\nmode = \"jail\"\n");
    let right = user.run(&["config", "check"]).with(0);
    assert_eq!(
        right.stdout,
        "/D/home/.config/stockade/config.toml: valid, as a user's file\n\
         /D/home/project/.stockade.toml: valid, as a project's own file, which applies once you \
         trust it\n"
    );
}

#[test]
fn the_schema_is_json() {
    let schema = User::new().run(&["config", "schema"]).with(0);
    let schema: Value = serde_json::from_str(&schema.stdout).expect("JSON");
    assert_eq!(
        schema["properties"]["network"]["properties"]["internet"]["type"],
        "boolean"
    );
}

#[test]
fn init_writes_a_file_that_counts_and_never_writes_over_one() {
    let user = User::new();
    let made = user.run(&["init"]).with(0);
    assert_eq!(made.stdout, format!("/D/{PROJECT_FILE}\n"));
    let text = fs::read_to_string(user.path(PROJECT_FILE)).expect("a file");
    assert!(text.contains("/home/project\"\n"), "{text}");
    assert!(
        user.run(&["config", "show"])
            .with(0)
            .stdout
            .contains(&format!("# project: /D/{PROJECT_FILE}\n"))
    );

    user.write(
        PROJECT_FILE,
        &text.replace("[network]\n", "[network]\ninternet = false\n"),
    );
    let again = user.run(&["init"]).with(125);
    assert!(again.stderr.contains("already exists"), "{again:?}");
    assert!(
        fs::read_to_string(user.path(PROJECT_FILE))
            .expect("a file")
            .contains("internet = false")
    );

    // The name is taken by another project.
    user.write(PROJECT_FILE, "workspace = \"/other/project\"\n");
    let other = user.run(&["init"]).with(0);
    assert_eq!(
        other.stdout,
        "/D/home/.config/stockade/projects/project-2.toml\n"
    );

    let workspace = user.run(&["init", "--workspace-file"]).with(0);
    assert_eq!(workspace.stdout, format!("/D/{WORKSPACE_FILE}\n"));
    user.write(WORKSPACE_FILE, "# mine\n");
    user.run(&["init", "--workspace-file"]).with(125);
    assert_eq!(
        fs::read_to_string(user.path(WORKSPACE_FILE)).expect("a file"),
        "# mine\n"
    );
    // Nor through a link.
    fs::remove_file(user.path(WORKSPACE_FILE)).expect("remove");
    std::os::unix::fs::symlink(user.path("planted"), user.path(WORKSPACE_FILE)).expect("a link");
    user.run(&["init", "--workspace-file"]).with(125);
    assert!(!user.path("planted").exists());
}

#[test]
fn trust_shows_the_change_and_asks_before_it_counts() {
    let user = User::new();
    assert!(
        user.run(&["trust"])
            .with(125)
            .stderr
            .contains("there is no /D/home/project/.stockade.toml")
    );
    user.write(
        WORKSPACE_FILE,
        "[network]\nallow = [\"10.0.0.1\"]\n[env.set]\nA = \"\\u001b[2J\"\n",
    );
    let change = "/D/home/project/.stockade.toml\n\
        changes for every command:\n  \
          network.allow        + \"10.0.0.1\"\n  \
          env.set.A            + \"\\u001B[2J\"\n\
        In total, it changes network.allow (1), env.set (1).\n";
    let shown = user.run(&["trust", "--show"]).with(1);
    assert_eq!(shown.stdout, format!("{change}It is not trusted.\n"));
    let asked = user.run(&["trust"]).with(125);
    assert!(asked.stderr.contains("add --yes"), "{asked:?}");
    assert!(
        user.run(&["config", "show"])
            .stdout
            .contains("# ignoring .stockade.toml")
    );

    let agreed = user.run(&["trust", "--yes"]).with(0);
    assert_eq!(
        agreed.stdout,
        format!("{change}Trusted until it changes.\n")
    );
    assert!(
        user.run(&["config", "show"])
            .stdout
            .contains("\"10.0.0.1\",  ")
    );
    user.run(&["trust", "--show"]).with(0);

    user.write(WORKSPACE_FILE, "[network]\nallow = [\"10.0.0.2\"]\n");
    assert!(
        user.run(&["config", "show"])
            .stdout
            .contains("has changed since you trusted it")
    );
    assert!(
        user.run(&["trust", "--revoke"])
            .with(0)
            .stdout
            .contains("is no longer trusted")
    );
    assert!(
        user.run(&["trust", "--revoke"])
            .with(0)
            .stdout
            .contains("was not trusted")
    );
}

/// Types an answer at a terminal of `script`'s.
fn answer(user: &User, typed: &str) -> String {
    let mut command = user.command(&[]);
    let program = Path::new(env!("CARGO_BIN_EXE_stockade"))
        .display()
        .to_string();
    let mut script = Command::new("script");
    script
        .args(["-qec", &format!("{program} trust"), "/dev/null"])
        .current_dir(user.path("home/project"))
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command.stdin(Stdio::null());
    let mut child = script.spawn().expect("script, of util-linux");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(typed.as_bytes())
        .expect("type");
    let output = child.wait_with_output().expect("an end");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn at_a_terminal_only_a_yes_is_a_yes() {
    let user = User::new();
    user.write(WORKSPACE_FILE, "[network]\nallow = [\"10.0.0.1\"]\n");
    for typed in ["\n", "n\n", "q\n", "yesterday\n"] {
        let said = answer(&user, typed);
        assert!(
            said.contains("Trust it? [y/N]") && said.contains("nothing was changed"),
            "{said}"
        );
        user.run(&["trust", "--show"]).with(1);
    }
    assert!(answer(&user, "y\n").contains("Trusted until"));
    user.run(&["trust", "--show"]).with(0);
}

#[test]
fn a_launch_is_refused_for_a_bad_configuration_and_loud_without_a_jail() {
    let user = User::new();
    let run = ["run", "--", "touch", "ran"];
    let refused = |user: &User, part: &str| {
        let ended = user.run(&run).with(125);
        assert!(ended.stderr.contains(part), "`{part}` is not in {ended:?}");
        assert!(!user.path("home/project/ran").exists());
    };
    user.write(CONFIG, "[network]\nalow = []\n");
    refused(&user, "did you mean `allow`?");
    user.write(CONFIG, "[network]\n");
    fs::set_permissions(user.path(CONFIG), fs::Permissions::from_mode(0o666)).expect("permissions");
    refused(&user, "chmod go-w /D/home/.config/stockade/config.toml");
    user.write(CONFIG, "");
    let without = |user: &User, by: &str, command: &mut Command| {
        let ended = user.ended(command).with(0);
        assert!(ended.stderr.contains(by), "`{by}` is not in {ended:?}");
        fs::remove_file(user.path("home/project/ran")).expect("it ran");
    };
    let by_variable = &mut user.command(&run);
    let by_variable = by_variable.env("CLAUDE_SANDBOX_EGRESS_JAIL", "0");
    without(&user, "NO JAIL: by CLAUDE_SANDBOX_EGRESS_JAIL", by_variable);
    user.write(CONFIG, "[network]\nmode = \"host\"\n");
    let by_file = "WARNING: NO JAIL: by /D/home/.config/stockade/config.toml:2";
    without(&user, by_file, &mut user.command(&run));
    user.write(CONFIG, "[network]\nmode = \"none\"\n");
    without(&user, "", &mut user.command(&run));
}

#[test]
fn a_profile_that_is_called_almost_like_an_agent_is_told() {
    let user = User::new();
    let slip = "[profiles.claud.network]\ninternet = false\n[profiles.offline.network]\ninternet = false\n";
    user.write(CONFIG, slip);
    let note = "stockade: profile `claud` (/D/home/.config/stockade/config.toml:2) applies only \
                with --profile claud; did you mean `claude`?\n";
    let checked = user.run(&["config", "check"]).with(0);
    assert_eq!(checked.stderr, note);
}

#[test]
fn paths_that_do_not_exist_are_told() {
    let user = User::new();
    user.write("home/data", "there");
    user.write(CONFIG, "[files]\nread = [\"~/data\"]\nhide = [\"~/no\"]\n");
    let note = "stockade: /D/home/no (/D/home/.config/stockade/config.toml:3) does not exist, so \
                `stockade run` refuses to start\n";
    let checked = user.run(&["config", "check"]).with(0);
    assert_eq!(checked.stderr, note);
}

#[test]
fn a_file_of_nobody_in_a_user_namespace_is_told_as_what_it_is() {
    let user = User::new();
    user.write(CONFIG, "[network]\ninternet = false\n");
    // A user's root directory is somebody else's already.
    if rustix::process::getuid().is_root() {
        std::os::unix::fs::chown(user.path(CONFIG), Some(12345), None).expect("chown");
        let readable = fs::Permissions::from_mode(0o644);
        fs::set_permissions(user.path(CONFIG), readable).expect("permissions");
    }
    let check = |options: &[&str]| {
        let command = user.command(&["config", "check"]);
        let mut wrapped = Command::new("unshare");
        wrapped.args(options).arg(command.get_program());
        wrapped.args(["config", "check"]).env_clear();
        wrapped
            .env("HOME", user.path("home"))
            .env("PATH", "/usr/bin:/bin");
        user.ended(wrapped.current_dir(user.path("home/project")))
    };
    let refused = check(&["--user", "--map-root-user"]);
    for part in ["no uid in this user namespace", "--map-current-user"] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    assert!(!refused.stderr.contains("chown"), "{refused:?}");
}
