//! `stockade import`, as typed: the built program over examples of each format, and over broken and
//! hostile ones. `imports/` has the examples; each has a snapshot of what becomes of it.

mod support;

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use serde_json::Value;
use stockade_config::{Choice, Effective, LayerKind, Mode, Places, Source, merge, parse};
use stockade_policy::{Evidence, Flow, Hostname, Route, decide};
use support::{Ended, User};

const PROJECT_FILE: &str = "home/.config/stockade/projects/project.toml";

/// Each example by its file in `imports/`, and the place that it is read from.
const EXAMPLES: &[(&str, &str)] = &[
    ("claude-sandbox.conf", "etc/claude-sandbox.conf"),
    ("claude-sandbox-off.conf", "etc/claude-sandbox.conf"),
    ("net-allow.toml", "home/pwrap.toml"),
    ("net-allow-empty.toml", "home/pwrap.toml"),
    ("no-network.toml", "home/pwrap.toml"),
    ("claude-code.json", "home/project/.claude/settings.json"),
    (
        "claude-code-managed.json",
        "etc/claude-code/managed-settings.json",
    ),
    ("claude-code-wide.json", "home/.claude/settings.json"),
    ("srt.json", "home/.srt-settings.json"),
    ("srt-closed.json", "home/.srt-settings.json"),
    ("codex.toml", "home/.codex/config.toml"),
    ("codex-read-only.toml", "home/.codex/config.toml"),
    ("codex-profile.toml", "home/.codex/config.toml"),
    ("codex-silent.toml", "home/.codex/config.toml"),
];

/// A user who has what the examples name.
fn user() -> User {
    let user = User::new();
    for file in [
        "home/project/.env",
        "home/project/config/production.json",
        "home/project/secrets/key",
        "home/project/vendor/x",
        "home/.aws/credentials",
        "home/.ssh/id",
        "home/out/x",
        "home/data/x",
        "home/library/x",
    ] {
        user.write(file, "");
    }
    user
}

fn example(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports");
    fs::read_to_string(directory.join(name)).expect(name)
}

/// Imports an example from its place. `/D/` in it stands for the user's directory.
fn import(user: &User, name: &str, options: &[&str]) -> Ended {
    let (_, place) = EXAMPLES
        .iter()
        .find(|(known, _)| *known == name)
        .expect(name);
    let directory = user.path("");
    user.write(
        place,
        &example(name).replace("/D/", &directory.to_string_lossy()),
    );
    let path = user.path(place);
    let mut arguments = vec!["import", path.to_str().expect("UTF-8")];
    arguments.extend(options);
    user.run(&arguments)
}

/// What the configuration says, by the reader that `run` uses.
fn effective(toml: &str) -> Effective {
    let places = Places::new(Path::new("/D/home"), Path::new("/D/home/project"), |_| None);
    let source = Source::file("/D/home/.config/stockade/projects/project.toml", toml);
    let layer = parse(LayerKind::Project, &source, &places.roots()).expect("valid");
    merge(&[layer], &Choice::None).expect("valid")
}

#[test]
fn every_example_has_its_configuration() {
    for (name, _) in EXAMPLES {
        let ended = import(&user(), name, &[]);
        effective(&ended.stdout);
        let snapshot = name.replace(['.', '-'], "_");
        insta::assert_snapshot!(
            snapshot,
            format!("exit code {}\n\n{}", ended.code, ended.stdout)
        );
    }
}

#[test]
fn every_line_says_where_it_comes_from_and_every_note_is_on_stderr() {
    for (name, place) in EXAMPLES {
        let ended = import(&user(), name, &[]);
        let from = format!("  # /D/{place}:");
        let lines = ended.stdout.lines().filter(|line| !line.starts_with('#'));
        let says = |line: &&str| line.contains(" = ") && !line.ends_with('[');
        let says = |line: &&str| says(line) || line.starts_with("    ");
        for line in lines
            .filter(says)
            .filter(|line| !line.starts_with("workspace = "))
        {
            assert!(line.contains(&from), "{name}: {line}");
        }
        let notes = ended
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("#   "));
        for note in notes {
            assert!(
                ended.stderr.contains(&format!(": {note}\n")),
                "{name}: {note}"
            );
        }
        for warning in ended
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("# Warning: "))
        {
            let last = format!("stockade: warning: {warning}\n");
            assert!(ended.stderr.ends_with(&last), "{name}: {ended:?}");
        }
        let wider = ended.stdout.contains("would get MORE than before");
        assert_eq!(
            (ended.code, ended.stderr.contains("WIDER")),
            (i32::from(wider), wider),
            "{name}"
        );
    }
}

/// Files by what is wrong with them: a place, and the text.
const BROKEN: &[(&str, &str, &str)] = &[
    (
        "unknown_key",
        "etc/claude-sandbox.conf",
        "allow-ip = 10.0.0.1\n  alow-ip = 10.0.0.2 # b\n",
    ),
    ("no_known_format", "notes.txt", "Dear diary,\n"),
    (
        "json_of_another_name",
        "history",
        "{ export TOKEN=not-to-be-printed; }\n",
    ),
    ("no_sandbox", "settings.json", "{ \"tabWidth\": 2 }\n"),
    ("empty", "settings.json", ""),
    (
        "json_that_ends",
        "s.json",
        "{\n  \"sandbox\": { \"enabled\": true,\n",
    ),
    (
        "json_with_a_comment",
        "s.json",
        "{\n  // no\n  \"sandbox\": {}\n}\n",
    ),
    (
        "json_with_a_comma",
        "s.json",
        "{ \"sandbox\": { \"enabled\": true, } }",
    ),
    (
        "json_twice",
        "s.json",
        "{ \"sandbox\": {},\n  \"sandbox\": {} }",
    ),
    ("json_and_more", "s.json", "{ \"sandbox\": {} }\n{}"),
    (
        "json_control_character",
        "s.json",
        "{ \"sandbox\": \"\u{1}\" }",
    ),
    ("json_escape", "s.json", "{ \"sandbox\": \"\\x\" }"),
    ("json_number", "s.json", "{ \"sandbox\": 1.2.3 }"),
    (
        "enabled_is_text",
        "s.json",
        "{ \"sandbox\": { \"enabled\": \"false\" } }",
    ),
    (
        "domains_are_text",
        "s.json",
        "{ \"network\": { \"allowedDomains\": \"github.com\" } }",
    ),
    (
        "domain_is_a_number",
        "s.json",
        "{ \"network\": { \"allowedDomains\": [\"a.example\", 1] } }",
    ),
    ("toml_syntax", "c.toml", "sandbox_mode = read-only\n"),
    (
        "toml_twice",
        "c.toml",
        "sandbox_mode = \"read-only\"\nsandbox_mode = \"workspace-write\"\n",
    ),
    ("unknown_mode", "c.toml", "sandbox_mode = \"read-write\"\n"),
    (
        "unknown_profile",
        "c.toml",
        "default_permissions = \"mine\"\n[permissions.yours]\n",
    ),
    (
        "endless_profiles",
        "c.toml",
        "default_permissions = \"a\"\n[permissions.a]\nextends = \"a\"\n",
    ),
    (
        "hosts_are_numbers",
        "c.toml",
        "[sandbox.net_allow]\nhosts = [1]\n",
    ),
    (
        "own_configuration",
        "c.toml",
        "[network]\ninternet = false\n",
    ),
];

#[test]
fn what_is_broken_is_refused_with_its_place() {
    for (name, place, text) in BROKEN {
        let user = user();
        user.write(place, text);
        let path = user.path(place);
        let ended = user.run(&["import", path.to_str().expect("UTF-8"), "--write"]);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (125, ""),
            "{name}: {ended:?}"
        );
        assert!(!user.path(PROJECT_FILE).exists(), "{name}");
        // An excerpt of a file in no known format may be a secret.
        for secret in ["Dear diary", "not-to-be-printed", "tabWidth"] {
            assert!(!ended.stderr.contains(secret), "{name}: {ended:?}");
        }
        insta::assert_snapshot!(format!("broken_{name}"), ended.stderr);
    }
}

#[test]
fn what_is_missing_too_large_or_too_deep_is_refused() {
    let user = user();
    let refused = |place: &str, why: &str| {
        let path = user.path(place);
        let ended = user
            .run(&["import", path.to_str().expect("UTF-8")])
            .with(125);
        assert!(ended.stderr.contains(why), "{ended:?}");
    };
    refused("absent.json", "absent.json does not exist");
    refused("absent.json", "`stockade import --find`");
    refused("home", "is not a regular file");
    let hosts = "\"a.example\",\n".repeat(30_000);
    user.write(
        "large.toml",
        &format!("[sandbox.net_allow]\nhosts = [\n{hosts}]\n"),
    );
    refused("large.toml", "is larger than 256 KiB");
    user.write(
        "deep.json",
        &format!("{{ \"sandbox\": {}", "[".repeat(100_000)),
    );
    refused("deep.json", "nested too deeply");
    user.write(
        "deep.toml",
        &format!("sandbox_mode = {}", "[".repeat(100_000)),
    );
    refused("deep.toml", "nested too deeply");
    let ended = user.run(&["import"]).with(125);
    assert!(ended.stderr.contains("FILE"), "{ended:?}");
    assert!(ended.stderr.contains("stockade import --find"), "{ended:?}");
}

/// Texts that would be lines of their own if they were written as they are.
#[test]
fn hostile_texts_never_become_lines() {
    let attack = "x\n[network]\nmode = \"host\"\ninternet = true\nallow = [\"10.0.0.1\"]\r\n#\u{1b}[2J\u{202e}";
    let json = serde_json::to_string(attack).expect("JSON");
    let toml = json.replace("\\u202e", "\u{202e}");
    let files = [
        ("a.json", format!(
            "{{ \"sandbox\": {{ \"enabled\": true, {json}: [{json}], \
             \"network\": {{ {json}: {json}, \"allowedDomains\": [{json}, \"a.example\"], \
             \"deniedDomains\": [\"b.example\"], \"deniedResolvedAddresses\": [{json}] }}, \
             \"filesystem\": {{ \"denyRead\": [{json}, \"/{{\"], \"allowWrite\": [{json}] }} }}, \
             \"permissions\": {{ \"deny\": [{json}, {}], \"additionalDirectories\": [{json}] }}, \
             {json}: 1 }}",
            serde_json::to_string(&format!("Read({attack})")).expect("JSON"),
        )),
        ("b.toml", format!("sandbox_mode = \"workspace-write\"\n{toml} = 1\n[sandbox_workspace_write]\nwritable_roots = [{toml}]\n{toml} = 1\n")),
        ("c.toml", format!("[sandbox.net_allow]\nhosts = [{toml}]\n{toml} = 1\n")),
        ("d.conf", "allow-ip = 10.0.0.5\r[network]\rmode = \"host\"\npass-env = \u{1b}[2J\nallow-write = /\u{202e}\n".to_owned()),
        // Its name is in every comment.
        ("e\n[network]\nmode = \"host\"\n#.toml", "[sandbox.net_allow]\nhosts = [\"a.example\"]\n".to_owned()),
    ];
    for (name, text) in files {
        let user = user();
        // The same path exists, so that it is not left out for that.
        let _ = fs::create_dir_all(user.path(&format!("home/{attack}")));
        user.write(name, &text);
        let path = user.path(name);
        let ended = user.run(&["import", path.to_str().expect("UTF-8")]);
        assert!(ended.code < 2, "{name}: {ended:?}");
        for line in ended.stdout.lines().chain(ended.stderr.lines()) {
            let odd = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!line.contains(odd), "{name}: {line:?}");
            let ours = [
                "#",
                "stockade: ",
                "workspace = ",
                "internet = false  # ",
                "    \"",
            ];
            let known = [
                "",
                "[network]",
                "[files]",
                "allow = [",
                "write = [",
                "read = [",
                "]",
            ];
            let is_ours = ours.iter().any(|start| line.starts_with(start)) || known.contains(&line);
            assert!(is_ours, "{name}: {line:?}");
        }
        let network = effective(&ended.stdout).network;
        assert_eq!(network.mode.value, Mode::Jail, "{name}");
        let allowed: Vec<_> = network
            .allow
            .iter()
            .map(|rule| rule.value.to_string())
            .collect();
        assert!(
            allowed.iter().all(|rule| rule.ends_with("a.example")),
            "{name}: {allowed:?}"
        );
    }
}

/// For each import, what the sources deny, and some of what they allow.
const REACH: &[(&[&str], &[&str], &[&str])] = &[
    (
        &["claude-sandbox.conf"],
        &[
            "tcp://10.0.0.1:80",
            "tcp://172.23.1.4:5064",
            "udp://192.168.10.22:5064",
            "tcp://169.254.169.254:80",
            "tcp://172.23.9.9:80",
            "tcp://127.0.0.1:80",
        ],
        &[
            "udp://172.23.1.3:5064",
            "tcp://192.168.10.21:1025",
            "tcp://151.101.1.69:443",
        ],
    ),
    (
        &["net-allow.toml"],
        &[
            "tcp://151.101.1.69:443",
            "tcp://evil.example:443",
            "tcp://packages.example:443",
            "tcp://api.github.com:443",
            "tcp://xgithub.com:443",
            "tcp://10.21.0.1:80",
            "tcp://10.1.2.3:80",
            "tcp://192.168.10.21:80",
            "tcp://169.254.169.254:80",
        ],
        &[
            "tcp://api.anthropic.com:443",
            "tcp://github.com:22",
            "tcp://a.b.packages.example:443",
            "udp://10.20.0.5:53",
        ],
    ),
    (
        &["net-allow-empty.toml"],
        &[
            "tcp://github.com:443",
            "tcp://151.101.1.69:443",
            "udp://10.0.0.1:53",
        ],
        &[],
    ),
    (
        &["claude-code.json"],
        &[
            "tcp://secret.corp.example:443",
            "tcp://other.corp.example:443",
            "tcp://api.corp.example:80",
            "tcp://internal.example:443",
            "tcp://npmjs.org:443",
            "tcp://api.github.com:443",
            "udp://github.com:443",
            "udp://github.com:53",
            "tcp://api.anthropic.com:443",
            "tcp://151.101.1.69:443",
            "tcp://192.168.10.21:80",
        ],
        &[
            "tcp://github.com:443",
            "tcp://a.b.npmjs.org:443",
            "tcp://api.corp.example:443",
            "tcp://docs.example.org:443",
        ],
    ),
    (
        &["srt.json"],
        &[
            "tcp://gist.github.com:443",
            "tcp://api.github.com:443",
            "tcp://files.example:22",
            "tcp://lfs.github.com:80",
            "udp://github.com:22",
            "tcp://evil.example:443",
            "tcp://10.0.0.1:443",
            "tcp://151.101.1.69:443",
        ],
        &["tcp://github.com:22", "tcp://lfs.github.com:443"],
    ),
    (
        &["srt-closed.json"],
        &["tcp://github.com:443", "tcp://151.101.1.69:443"],
        &[],
    ),
    (
        &["codex.toml"],
        &["tcp://10.0.0.1:80", "tcp://169.254.169.254:80"],
        &["tcp://151.101.1.69:443"],
    ),
    (
        &["codex-read-only.toml"],
        &["tcp://151.101.1.69:443", "tcp://chatgpt.com:443"],
        &[],
    ),
    (
        &["codex-silent.toml"],
        &["tcp://151.101.1.69:443", "tcp://chatgpt.com:443"],
        &[],
    ),
    (
        &["codex-profile.toml"],
        &[
            "tcp://uploads.example.net:443",
            "tcp://a.example.net:443",
            "tcp://evil.example:443",
            "udp://example.org:53",
            "tcp://151.101.1.69:443",
        ],
        &[
            "tcp://example.org:443",
            "tcp://a.b.example.org:443",
            "tcp://api.example.com:443",
        ],
    ),
    // The denials of one file hold for the hosts of all, and the narrower network counts.
    (
        &["claude-code-managed.json", "claude-code.json"],
        &[
            "tcp://github.com:443",
            "tcp://docs.example.org:443",
            "tcp://151.101.1.69:443",
        ],
        &["tcp://artifacts.example:443"],
    ),
    (
        &["codex.toml", "srt.json"],
        &[
            "tcp://151.101.1.69:443",
            "tcp://gist.github.com:443",
            "tcp://api.github.com:443",
        ],
        &["tcp://github.com:443"],
    ),
    (
        &["claude-sandbox-off.conf", "srt-closed.json"],
        &["tcp://151.101.1.69:443", "tcp://10.0.0.1:80"],
        &["tcp://192.168.10.21:80"],
    ),
];

/// Whether the policy lets a program reach it that asked for the name, if it is one.
fn reaches(effective: &Effective, target: &str) -> bool {
    let (protocol, rest) = target.split_once("://").expect("a protocol");
    let (host, port) = rest.rsplit_once(':').expect("a port");
    let name = host
        .parse::<Hostname>()
        .ok()
        .filter(|_| host.parse::<IpAddr>().is_err());
    let address = host.parse().unwrap_or(IpAddr::from([93, 184, 216, 34]));
    let destination = SocketAddr::new(address, port.parse().expect("a port"));
    let flow = match protocol {
        "tcp" => Flow::tcp(destination),
        _ => Flow::udp(destination),
    };
    let names = Vec::from_iter(name);
    let evidence = Evidence {
        route: Route::Default,
        own: false,
        names: &names,
    };
    decide(&effective.policy(), &flow.expect("a flow"), &evidence).is_allowed()
}

#[test]
fn no_import_is_wider_than_its_sources() {
    for (names, denied, allowed) in REACH {
        let user = user();
        let mut arguments = vec!["import".to_owned()];
        for name in *names {
            import(&user, name, &[]);
            let (_, place) = EXAMPLES
                .iter()
                .find(|(known, _)| known == name)
                .expect(name);
            arguments.push(user.path(place).to_string_lossy().into_owned());
        }
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let ended = user.run(&arguments);
        let effective = effective(&ended.stdout);
        assert_eq!(
            effective.network.mode.value,
            Mode::Jail,
            "{names:?}: {ended:?}"
        );
        for target in *denied {
            assert!(
                !reaches(&effective, target),
                "{names:?} reach {target}: {ended:?}"
            );
        }
        for target in *allowed {
            assert!(
                reaches(&effective, target),
                "{names:?} do not reach {target}: {ended:?}"
            );
        }
    }
    let none = import(&user(), "no-network.toml", &[]).with(0);
    assert_eq!(effective(&none.stdout).network.mode.value, Mode::None);
}

#[test]
fn what_must_not_be_written_is_read_only_by_whatever_name_it_is_denied() {
    let user = user();
    user.write("home/given/key", "");
    for (text, at) in [
        ("project", "home/code"),
        ("given/key", "home/key"),
        ("home", "users"),
    ] {
        std::os::unix::fs::symlink(text, user.path(at)).expect("a link");
    }
    let import = |home: &str, denied: &str| {
        let text = format!(
            r#"{{ "filesystem": {{ "allowWrite": [".", "~/given"], "denyWrite": ["{denied}"] }} }}"#
        );
        user.write("home/.srt-settings.json", &text);
        let mut command = user.command(&["import", "../.srt-settings.json"]);
        user.ended(command.env("HOME", user.path(home)))
    };
    let project = "\"/D/home/project/.env\",  #";
    let given = "\"/D/home/given/key\",  #";
    for (home, denied, setting) in [
        // Positive controls: the names without links.
        ("home", "~/project/.env", project),
        ("home", "~/given/key", given),
        ("home", "~/code/.env", project),
        ("home", "~/key", given),
        ("users", "~/project/.env", project),
        ("users", "~/given/key", given),
    ] {
        let ended = import(home, denied).with(0);
        let read = ended.stdout.split("read = [").nth(1).unwrap_or_default();
        let read = read.split(']').next().unwrap_or_default();
        assert!(read.contains(setting), "{home} {denied}: {ended:?}");
    }
    // What is not there cannot be protected.
    import("home", "~/code/missing").with(1);
    import("home", "~/code").with(1);
    // Nobody can write there in any case.
    let elsewhere = import("home", "~/library/x").with(0);
    assert!(!elsewhere.stdout.contains("read ="), "{elsewhere:?}");
}

#[test]
fn the_jail_is_turned_off_loudly_and_only_by_who_says_so() {
    let ended = import(&user(), "claude-sandbox-off.conf", &[]).with(0);
    assert_eq!(effective(&ended.stdout).network.mode.value, Mode::Host);
    let warning = "WARNING: /D/etc/claude-sandbox.conf:1 turns the jail off";
    assert!(ended.stderr.contains(warning), "{ended:?}");
    for (name, _) in EXAMPLES
        .iter()
        .filter(|(name, _)| *name != "claude-sandbox-off.conf")
    {
        let ended = import(&user(), name, &[]);
        assert_ne!(
            effective(&ended.stdout).network.mode.value,
            Mode::Host,
            "{name}"
        );
        assert!(!ended.stderr.contains("turns the jail off"), "{name}");
    }
}

#[test]
fn it_is_written_where_init_would_and_nothing_is_overwritten() {
    let user = user();
    let printed = import(&user, "claude-sandbox.conf", &[]).with(0);
    let written = import(&user, "claude-sandbox.conf", &["--write"]).with(0);
    assert_eq!(written.stdout, format!("/D/{PROJECT_FILE}\n"));
    let sentence = format!("Wrote /D/{PROJECT_FILE}. `stockade plan` shows what a session gets.");
    assert!(written.stderr.contains(&sentence), "{written:?}");
    let text = fs::read_to_string(user.path(PROJECT_FILE)).expect("written");
    assert_eq!(
        text.replace(&*user.path("").to_string_lossy(), "/D/"),
        printed.stdout
    );
    let mode = fs::metadata(user.path(PROJECT_FILE))
        .expect("written")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // `run` takes it: it is in force here.
    let shown = user.run(&["config", "show"]).with(0);
    assert!(shown.stdout.contains("\"172.23.1.3\","), "{shown:?}");

    let again = import(&user, "net-allow.toml", &["--write"]).with(125);
    assert!(
        again.stderr.contains("project.toml already exists"),
        "{again:?}"
    );
    assert!(
        again.stderr.contains("fix: edit it, or remove it first"),
        "{again:?}"
    );
    assert_eq!(
        fs::read_to_string(user.path(PROJECT_FILE)).expect("there"),
        text
    );
}

#[test]
fn a_result_that_is_wider_is_not_written() {
    let user = user();
    let ended = import(&user, "codex-read-only.toml", &["--write"]).with(1);
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("so nothing was written"), "{ended:?}");
    assert!(!user.path(PROJECT_FILE).exists());
}

/// A session of the agent can write its settings, and so could ask for files of later sessions.
#[test]
fn paths_of_a_file_that_a_session_can_write_are_written_only_on_request() {
    let claude = r#"{"sandbox": {"filesystem": {"allowWrite": ["/D/home/out"]}}}"#;
    let codex = "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\n\
                 writable_roots = [\"/D/home/out\"]\n";
    let link = |user: &User, text: &str, at: &str| {
        let _ = fs::remove_file(user.path(at));
        std::os::unix::fs::symlink(user.path(text), user.path(at)).expect("a link");
    };
    // The file, its text, and the name that is imported.
    for (file, text, imported) in [
        (
            "home/.claude/settings.json",
            claude,
            "home/.claude/settings.json",
        ),
        (
            "home/project/.claude/settings.json",
            claude,
            "home/project/.claude/settings.json",
        ),
        ("home/.codex/config.toml", codex, "home/.codex/config.toml"),
        // Links of the user's, and links that a session may have made.
        ("home/.claude/settings.json", claude, "home/mine.json"),
        (
            "home/dotfiles/settings.json",
            claude,
            "home/.claude/settings.json",
        ),
        (
            "home/dotfiles/settings.json",
            claude,
            "home/project/settings.json",
        ),
    ] {
        let user = user();
        let directory = user.path("");
        user.write(file, &text.replace("/D/", &directory.to_string_lossy()));
        if file != imported {
            user.write(imported, "");
            link(&user, file, imported);
        }
        let path = user.path(imported);
        let path = path.to_str().expect("UTF-8");
        let refused = user.run(&["import", path, "--write"]).with(1);
        assert_eq!(refused.stdout, "", "{imported}");
        assert!(!user.path(PROJECT_FILE).exists(), "{imported}");
        for sentence in [
            format!("warning: review what comes from /D/{imported}: "),
            "files.write: \"/D/home/out\"\n".to_owned(),
            "a session may have asked for these, so nothing was written".to_owned(),
            "run this command again with --yes".to_owned(),
        ] {
            assert!(
                refused.stderr.contains(&sentence),
                "{sentence}: {refused:?}"
            );
        }
        let json = user.run(&["import", path, "--write", "--json"]).with(1);
        let report: Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert_eq!(
            report["unreviewed"][0]["value"], "/D/home/out",
            "{imported}"
        );
        assert_eq!(report["written"], Value::Null, "{imported}");
        // Without --write it is for the user to read, and with --yes the user has.
        user.run(&["import", path]).with(0);
        user.run(&["import", path, "--write", "--yes"]).with(0);
        let written = fs::read_to_string(user.path(PROJECT_FILE)).expect("written");
        assert!(written.contains("home/out"), "{imported}: {written}");
    }
    // Positive control: what only the user can write is written, and so is what gives no files.
    for (file, text) in [
        ("home/mine.json", claude),
        (
            "home/.claude/settings.json",
            r#"{"sandbox": {"enabled": true}}"#,
        ),
    ] {
        let user = user();
        let directory = user.path("");
        user.write(file, &text.replace("/D/", &directory.to_string_lossy()));
        let path = user.path(file);
        user.run(&["import", path.to_str().expect("UTF-8"), "--write"])
            .with(0);
        assert!(user.path(PROJECT_FILE).exists(), "{file}");
    }
}

/// What a session denies itself makes read-only what can be written. Elsewhere, it would be shown.
#[test]
fn a_denied_write_of_a_file_that_a_session_can_write_shows_nothing_unasked() {
    const FILE: &str = "home/project/.claude/settings.json";
    let deny = |what: &str| format!(r#"{{"permissions": {{"deny": ["Edit({what})"]}}}}"#);
    let write = |user: &User, what: &str| {
        user.write(FILE, &deny(what));
        for file in ["home/.codex/auth.json", "home/.config/gh/hosts.yml"] {
            user.write(file, "");
        }
        let path = user.path(FILE);
        user.run(&["import", path.to_str().expect("UTF-8"), "--write"])
    };
    // Positive control: a part of the workspace.
    let own = user();
    write(&own, "/vendor/**").with(0);
    let written = fs::read_to_string(own.path(PROJECT_FILE)).expect("written");
    assert!(written.contains("home/project/vendor"), "{written}");
    for what in ["~/.codex/**", "~/.codex/auth.json"] {
        let refused = write(&user(), what).with(1);
        let asked = "files.read: \"/D/home/.codex";
        assert!(refused.stderr.contains(asked), "{refused:?}");
        assert!(refused.stderr.contains("again with --yes"), "{refused:?}");
    }
    // What holds an agent's settings holds more.
    let moved = user();
    fs::create_dir_all(moved.path("home/.config/claude")).expect("a directory");
    let run = |options: &[&str]| {
        let path = moved.path(FILE);
        let arguments = [&["import", path.to_str().expect("UTF-8")], options].concat();
        let mut command = moved.command(&arguments);
        moved.ended(command.env("CLAUDE_CONFIG_DIR", moved.path("home/.config/claude")))
    };
    for options in [&["--write"][..], &["--write", "--yes"]] {
        moved.write(FILE, &deny("~/.config/**"));
        let refused = run(options).with(1);
        assert!(refused.stderr.contains("WIDER"), "{refused:?}");
        assert!(!moved.path(PROJECT_FILE).exists());
    }
    let printed = run(&[]);
    assert!(!printed.stdout.contains("read = "), "{printed:?}");
}

#[test]
fn network_of_a_file_that_a_session_can_write_is_written_only_on_request() {
    let pwrap = |rest: &str| format!("[sandbox]\nunshare_net = false\n[sandbox.net_allow]\n{rest}");
    let codex =
        "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nnetwork_access = true\n";
    const CLOSED: &str = "[network]\ninternet = false\n";
    const NONE: &str = "[network]\nmode = \"none\"\n";
    // The user's own settings, the file, and what has to be asked for, if anything.
    for (own, text, asked) in [
        ("", pwrap("hosts = [\"a.example\"]\n"), None),
        (
            "",
            pwrap("cidrs = [\"192.168.0.0/16\"]\n"),
            Some("network.allow"),
        ),
        (
            "",
            pwrap("cidrs = [\"169.254.169.254/32\"]\n"),
            Some("network.allow"),
        ),
        // It may be this machine's own.
        (
            "",
            pwrap("cidrs = [\"151.101.1.69/32\"]\n"),
            Some("network.allow"),
        ),
        (
            "",
            pwrap("cidrs = [\"0.0.0.0/0\"]\n"),
            Some("network.allow"),
        ),
        (
            "",
            pwrap("hosts = [\"a.example\"]\nlog_denials = false\n"),
            Some("network.log_denials"),
        ),
        ("", codex.to_owned(), Some("network.internet")),
        (
            CLOSED,
            pwrap("hosts = [\"a.example\"]\n"),
            Some("network.allow"),
        ),
        (NONE, "egress-jail = 1\n".to_owned(), Some("network.mode")),
        ("", "egress-jail = 1\n".to_owned(), None),
    ] {
        for (directory, is_sessions) in [("home", false), ("home/project", true)] {
            let user = user();
            user.write("home/.config/stockade/config.toml", own);
            let name = match text.starts_with("egress") {
                true => "claude-sandbox.conf",
                false => "settings.toml",
            };
            let file = format!("{directory}/{name}");
            user.write(&file, &text);
            let path = user.path(&file);
            let ended = user.run(&["import", path.to_str().expect("UTF-8"), "--write"]);
            let is_refused = is_sessions && asked.is_some();
            assert_eq!(ended.code, i32::from(is_refused), "{own}{text}: {ended:?}");
            assert_eq!(user.path(PROJECT_FILE).exists(), !is_refused, "{own}{text}");
            if let Some(asked) = asked.filter(|_| is_sessions) {
                assert!(ended.stderr.contains(asked), "{own}{text}: {ended:?}");
            }
        }
    }
}

#[test]
fn a_result_that_the_administrator_or_the_loader_refuses_is_not_printed() {
    let user = user();
    user.write(
        "home/.config/stockade/config.toml",
        "[network]\nnonsense = 1\n",
    );
    let ended = import(&user, "srt.json", &[]).with(125);
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("nonsense"), "{ended:?}");
}

#[test]
fn json_has_the_same() {
    let ended = import(&user(), "claude-code.json", &["--json"]).with(0);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(report["sources"][0]["format"], "Claude Code");
    let warning = report["sources"][0]["warning"].as_str().expect("a warning");
    assert!(
        warning.contains("is in the workspace, where the command can change it"),
        "{warning}"
    );
    let first = &report["settings"][0];
    assert_eq!(
        (&first["key"], &first["value"]),
        (&"network.internet".into(), &false.into())
    );
    assert_eq!(
        (&first["file"], &first["line"]),
        (&"/D/home/project/.claude/settings.json".into(), &6.into())
    );
    assert_eq!(report["wider"], Value::Array(Vec::new()));
    let left_out = report["not_imported"].as_array().expect("a list");
    assert!(
        left_out
            .iter()
            .any(|note| note["what"] == "tcp://*.corp.example"),
        "{left_out:?}"
    );
    let warnings = report["warnings"].as_array().expect("a list");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    effective(report["toml"].as_str().expect("TOML"));
    assert_eq!(report["written"], Value::Null);
    // Values of variables may be secrets.
    assert!(!format!("{ended:?}").contains("not-to-be-printed"));

    let ended = import(&user(), "codex-read-only.toml", &["--json", "--write"]).with(1);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(report["wider"][0]["line"], 1);
    assert_eq!(report["written"], Value::Null);
}

/// Runs it with a terminal for stdout and stderr, and returns what that shows.
fn on_terminal(user: &User, arguments: &[&str]) -> Ended {
    let typed = user.command(arguments);
    let mut command = std::process::Command::new("script");
    let line = typed.get_args().fold(
        typed.get_program().to_string_lossy().into_owned(),
        |line, word| format!("{line} '{}'", word.to_string_lossy()),
    );
    command
        .args(["-qec", &line, "/dev/null"])
        .current_dir(user.path("home/project"))
        .env_clear()
        .env("HOME", user.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .stdin(std::process::Stdio::null());
    user.ended(&mut command)
}

#[test]
fn a_terminal_shows_each_note_once_and_a_warning_last() {
    let user = user();
    let piped = import(&user, "claude-code.json", &[]).with(0);
    let path = user.path("home/project/.claude/settings.json");
    let path = path.to_str().expect("UTF-8");
    let shown = on_terminal(&user, &["import", path]).with(0);
    let note = "excludedCommands: in Stockade, no command is outside";
    assert_eq!(shown.stdout.matches(note).count(), 1, "{shown:?}");
    assert_eq!(piped.stderr.matches(note).count(), 1, "{piped:?}");
    let counts = "stockade: 8 settings were not imported; see the comments above";
    assert!(shown.stdout.contains(counts), "{shown:?}");
    let last = shown.stdout.lines().last().expect("a line");
    let warning = "stockade: warning: Claude Code will not work with this configuration yet";
    assert!(last.starts_with(warning), "{shown:?}");

    // The comments are in the file, so the terminal has the notes.
    let written = on_terminal(&user, &["import", path, "--write", "--yes"]).with(0);
    assert_eq!(written.stdout.matches(note).count(), 1, "{written:?}");
    assert_eq!(
        written.stdout.matches(PROJECT_FILE).count(),
        1,
        "{written:?}"
    );
}

#[test]
fn an_agent_whose_host_is_allowed_needs_no_warning() {
    for (file, closed, host) in [
        (
            "s.json",
            "{ \"sandbox\": { \"network\": { \"allowedDomains\": [\"HOST\"] } } }",
            "api.anthropic.com",
        ),
        (
            "c.toml",
            "default_permissions = \"a\"\n[permissions.a.network]\nenabled = true\n\
             [permissions.a.network.domains]\n\"HOST\" = \"allow\"\n",
            "api.openai.com",
        ),
    ] {
        for (allowed, warnings) in [("a.example", 1), (host, 0)] {
            let user = user();
            user.write(file, &closed.replace("HOST", allowed));
            // Two files of the same program warn once.
            user.write(&format!("2{file}"), &closed.replace("HOST", "b.example"));
            let (one, two) = (user.path(file), user.path(&format!("2{file}")));
            let paths = [&one, &two].map(|path| path.to_str().expect("UTF-8"));
            let ended = user.run(&["import", paths[0], paths[1]]);
            let count = ended.stderr.matches("will not work").count();
            assert_eq!(count, warnings, "{ended:?}");
        }
    }
}

#[test]
fn a_fix_is_one_that_helps() {
    let user = user();
    let said = |file: &str, text: &str, why: &str| {
        user.write(file, text);
        let path = user.path(file);
        let ended = user.run(&["import", path.to_str().expect("UTF-8")]);
        assert!(ended.stderr.contains(why), "{ended:?}");
    };
    let denied = |path: &str| format!("{{ \"permissions\": {{ \"deny\": [\"Read({path})\"] }} }}");
    said(
        "s.json",
        &denied("./absent"),
        "WIDER than the source: /D/s.json:1: /D/home/project/absent: it does not exist, and \
         Stockade hides only what exists: create the file first, or remove the line",
    );
    let own = "not imported: /D/s.json:1: /tmp/stockade-absent/x: the command has its own /tmp";
    said("s.json", &denied("//tmp/stockade-absent/x"), own);
    // Not so if it is in the workspace by another name.
    let directory = tempfile::tempdir_in("/tmp").expect("a directory");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(user.path("home/project"), &link).expect("a link");
    let by_link = format!("{}/absent", link.display());
    said(
        "s.json",
        &denied(&format!("/{by_link}")),
        &format!("WIDER than the source: /D/s.json:1: {by_link}: it does not exist"),
    );
    let write = "{ \"filesystem\": { \"allowWrite\": [\".\", \"/tmp/stockade-absent/x\"] } }";
    said("s.json", write, own);
    let number = "300.1.1.1: not an IP address";
    said("c.conf", "allow-ip = 300.1.1.1\n", number);
    said(
        "c.toml",
        "[sandbox.net_allow]\nhosts = [\"300.1.1.1\"]\n",
        number,
    );
}

#[test]
fn the_page_shows_what_happens() {
    let page = include_str!("../../../docs/import.md");
    let block = |language: &str| {
        let (_, rest) = page
            .split_once(&format!("\n```{language}\n"))
            .expect(language);
        rest.split_once("```\n").expect("its end").0
    };
    let user = user();
    user.write("home/claude-sandbox.conf", block("ini"));
    let ended = user.run(&["import", "../claude-sandbox.conf"]).with(0);
    let printed = ended.stdout.replace("/D/home/project/../", "/D/home/");
    assert_eq!(printed.replace("/D/home", "/home/ada"), block("toml"));
}

#[test]
fn find_names_what_there_is_and_what_others_can_write() {
    let user = user();
    let nothing = user.run(&["import", "--find"]).with(0);
    assert_eq!(
        nothing.stdout,
        "found no configuration of another sandbox in the usual places\n"
    );

    for name in [
        "claude-code.json",
        "claude-code-wide.json",
        "srt.json",
        "codex.toml",
    ] {
        import(&user, name, &[]);
    }
    let open = fs::Permissions::from_mode(0o666);
    fs::set_permissions(user.path("home/.srt-settings.json"), open).expect("permissions");
    let mut command = user.command(&["import", "--find"]);
    command.env("CLAUDE_SANDBOX_ALLOW_IP", "10.0.0.1");
    let found = user.ended(&mut command).with(0);
    insta::assert_snapshot!("find", found.stdout);
    let mut command = user.command(&["import", "--find", "--json"]);
    let found = user.ended(&mut command).with(0);
    let report: Value = serde_json::from_str(&found.stdout).expect("JSON");
    assert_eq!(report["files"].as_array().map(Vec::len), Some(4));
    // No project is here: each file once, none of them in a workspace, and no command.
    let mut command = user.command(&["import", "--find"]);
    let found = user.ended(command.current_dir(user.path("home"))).with(0);
    insta::assert_snapshot!("find_at_home", found.stdout);
}
