//! What is said to people who type something odd, or want to know before they do.

mod support;

use std::{fs::File, io};

use serde_json::Value;
use support::{Ended, User};

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
}

#[test]
fn a_word_that_is_no_command_gets_the_nearest_one_and_the_agents() {
    let user = User::new();
    for (word, near) in [
        ("rum", "did you mean `run`?"),
        ("cluade", "did you mean `claude`?"),
        ("plna", "did you mean `plan`?"),
    ] {
        let ended = user.run(&[word, "x"]).with(125);
        says(
            &ended.stderr,
            &[near, "Agents: claude, codex, gemini, aider"],
        );
    }
    let ended = user.run(&["frobnicate"]).with(125);
    says(&ended.stderr, &["stockade run -- frobnicate"]);
    assert!(!ended.stderr.contains("did you mean"), "{ended:?}");
    // The profile of commands that have none is nobody's name.
    says(
        &user.run(&["generic"]).with(125).stderr,
        &["unknown command or agent"],
    );
}

#[test]
fn what_is_typed_and_does_not_count_is_said() {
    let user = User::new();
    for flag in [["--allow", "192.0.2.7"], ["--host-port", "5432"]] {
        let line = ["run", "--mode", "none", flag[0], flag[1], "--", "true"];
        let ended = user.run(&line).with(0);
        let note = format!("{} has no effect in mode \"none\" (--mode)", flag[0]);
        says(&ended.stderr, &[&note]);
    }
    let ended = user.run(&[
        "run",
        "-q",
        "--mode",
        "none",
        "--allow",
        "192.0.2.7",
        "--",
        "true",
    ]);
    assert_eq!(ended.with(0).stderr, "");
}

#[test]
fn no_internet_closes_the_internet() {
    let user = User::new();
    user.run(&["explain", "8.8.8.8"]).with(0);
    user.run(&["explain", "--no-internet", "8.8.8.8"]).with(1);
    has(
        &plan(&user, &["--no-internet"]),
        &["internet closed: only what the rules allow --no-internet"],
    );
    let help = user.run(&["run", "--help"]).with(0);
    says(&help.stdout, &["--no-internet", "--internet[=<BOOL>]"]);
    let ended = user.run(&["run", "--no-forgery", "x"]).with(125);
    says(&ended.stderr, &["exists: '--no-forge'"]);
}

#[test]
fn the_help_says_which_agents_there_are_and_whose_the_flags_are() {
    let help = User::new().run(&["--help"]).with(0);
    says(
        &help.stdout,
        &["claude|codex|gemini|aider", "options after the name", "125"],
    );
    says(&User::new().run(&["explain", "--help"]).stdout, &["125"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_a_full_disk_is_one() {
    let user = User::new();
    for words in [
        ["plan", "--json"],
        ["config", "show"],
        ["config", "schema"],
        ["config", "check"],
        ["explain", "8.8.8.8"],
        ["explain", "localhost:80"],
        ["ps", "--json"],
        ["log", "--list"],
        ["man", "run"],
        ["completions", "bash"],
    ] {
        let heard = user.run(&words);
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let unheard = user.ended(user.command(&words).stdout(writer));
        assert_eq!(
            (unheard.code, &unheard.stderr),
            (heard.code, &heard.stderr),
            "{words:?}"
        );
        let full = File::create("/dev/full").expect("/dev/full");
        let full = user.ended(user.command(&words).stdout(full)).with(125);
        let why = "stockade: cannot write to stdout: No space left on device";
        says(&full.stderr, &[why]);
    }
}

#[test]
fn a_question_that_is_none_gets_one_that_is() {
    let user = User::new();
    for (target, part) in [
        (
            "",
            "stockade: there is nothing to ask about: name an address, a host or a URL",
        ),
        ("*.example.org", "write `www.example.org`"),
        (
            "foo://x",
            "name protocol and port, as in `tcp://example.org:8443`",
        ),
    ] {
        says(&user.run(&["explain", target]).with(125).stderr, &[part]);
    }
    let unclear = user.run(&["explain", "127.0.0.1"]).with(2);
    says(
        &unclear.stdout,
        &["none; ask about one: stockade explain localhost:5432"],
    );
    let one = user
        .run(&["explain", "localhost", "--host-port", "80"])
        .with(2);
    says(
        &one.stdout,
        &["available there: 80; ask about one: stockade explain localhost:80"],
    );
}

#[test]
fn a_directory_that_cannot_be_a_workspace_gets_no_configuration() {
    let user = User::new();
    for (directory, reason) in [
        ("home", "is your home directory"),
        ("/", "is the whole disk"),
    ] {
        for option in [&["init"][..], &["init", "--workspace-file"]] {
            let ended = user.ended(user.command(option).current_dir(user.path(directory)));
            says(&ended.with(125).stderr, &[reason, "config.toml"]);
        }
    }
    assert!(!user.path("home/.config/stockade/projects").exists());
    user.run(&["init"]).with(0);
}

/// The lines of a plan, each blank once.
fn plan(user: &User, arguments: &[&str]) -> Vec<String> {
    let Ended { stdout, .. } = user.run(&[&["plan"], arguments].concat()).with(0);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    stdout.lines().map(words).collect()
}

#[track_caller]
fn has(lines: &[String], wanted: &[&str]) {
    for line in wanted {
        let is_there = lines.iter().any(|shown| shown == line);
        assert!(is_there, "{line} is not in {lines:#?}");
    }
}

const CONFIG: &str = "home/.config/stockade/config.toml";

#[test]
fn a_plan_tells_the_network_and_who_asked_for_what() {
    let user = User::new();
    user.write("home/.cargo/bin/x", "");
    user.write("home/data/x", "");
    user.write(
        CONFIG,
        "[network]\nallow = [\n \"10.0.0.1\"]\nhost_ports = [5432]\n\
         [files]\nread = [\"~/data\"]\n[env.set]\nA = \"b\"\n",
    );
    let file = "/D/home/.config/stockade/config.toml";
    let lines = plan(&user, &["--publish", "8080:3000", "--limit", "tmpfs=1G"]);
    has(
        &lines,
        &[
            "generic",
            "mode jail: a network of its own, behind a gate built in",
            "internet open: global addresses by the default route built in",
            &format!("allow 10.0.0.1 {file}:3"),
            &format!("host port 5432 inside is this machine's 127.0.0.1:5432 {file}:4"),
            "publish this machine's 127.0.0.1:8080 is 3000 inside --publish",
            "read-only /D/home/.cargo/bin a toolchain",
            &format!("read-only /D/home/data to be read: {file}:6"),
            &format!("A=(1 byte, not shown) set: {file}:8"),
            "processes: 4096 so that the host stays usable: built in",
            "bytes of files in memory: 1073741824 of all places in memory together: --limit",
        ],
    );
    let json = user.run(&["plan", "--json"]).with(0);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["profile"], "generic");
    let network = &json["network"];
    assert_eq!(network["mode"]["value"], "jail");
    assert_eq!(network["allow"][0]["value"], "10.0.0.1");
    assert_eq!(network["allow"][0]["line"], 3);
    assert_eq!(network["publish"], Value::Array(Vec::new()));
}

#[test]
fn a_plan_without_a_jail_says_so() {
    let user = User::new();
    has(
        &plan(&user, &["--mode", "none", "--allow", "10.0.0.1"]),
        &[
            "mode none: no network but a loopback of its own --mode",
            "rules and ports have no effect only in mode \"jail\", not in \"none\"",
        ],
    );
    has(
        &plan(&user, &["--mode", "host"]),
        &["mode host: NO JAIL, everything that this machine can reach --mode"],
    );
}

#[test]
fn a_path_that_is_missing_is_named_once() {
    let user = User::new();
    let ended = user.run(&["plan", "--read", "/nowhere", "--write", "/nowhere"]);
    assert_eq!(ended.with(125).stderr.matches("/nowhere").count(), 1);
}

#[test]
fn a_plan_says_what_is_given_of_credentials() {
    let user = User::new();
    user.write("home/.ssh/id", "");
    let given = "is given (--write): the command can read and write keys of SSH";
    let shown = user.run(&["plan", "--write", "~/.ssh"]).with(0);
    says(&shown.stdout, &[given]);
    let shown = user.run(&["plan", "--json", "--write", "~/.ssh"]).with(0);
    says(&shown.stdout, &[given]);
    assert!(!user.run(&["plan"]).with(0).stdout.contains("is given"));
}

#[test]
fn a_file_is_checked_in_a_role_that_is_told_wherever_it_is() {
    let user = User::new();
    for (path, text, code, parts) in [
        (
            "home/project/etc.toml",
            "lock = [\"network\"]\n",
            0,
            &[
                "etc.toml: valid, as the administrator's file",
                "its place is /etc/stockade/config.toml",
                "it would be refused there",
                "is in the workspace",
            ][..],
        ),
        (
            "elsewhere/a.toml",
            "workspace = \"/a\"\n",
            0,
            &[
                "valid, as a user's file about a project",
                "projects/NAME.toml",
            ],
        ),
        (
            "elsewhere/b.toml",
            "network.alow = 1\n",
            1,
            &["invalid, as a user's file"],
        ),
        (
            CONFIG,
            "network.allow = []\n",
            0,
            &["valid, as a user's file\n"],
        ),
    ] {
        user.write(path, text);
        let file = user.path(path);
        let ended = user.run(&["config", "check", &file.to_string_lossy()]);
        says(&ended.with(code).stdout, parts);
    }
}
