//! Bad configurations, and what is said about them. Each has a snapshot: read it as the
//! person would who made the mistake.

use std::sync::Arc;

use stockade_config::{
    Choice, Diagnostics, Flags, Key, Layer, LayerKind, Place, Roots, Source, SourceKind,
    environment_layer, merge, parse,
};

fn roots() -> Roots {
    Roots {
        home: "/home/ada".into(),
        workspace: Some("/home/ada/project".into()),
    }
}

fn source(kind: LayerKind, text: &str) -> Arc<Source> {
    let path = match kind {
        LayerKind::System => "/etc/stockade/config.toml",
        LayerKind::Workspace => "/home/ada/project/.stockade.toml",
        LayerKind::Project => "/home/ada/.config/stockade/projects/project.toml",
        _ => "/home/ada/.config/stockade/config.toml",
    };
    Source::file(path, text)
}

fn layer(kind: LayerKind, text: &str) -> Result<Layer, Diagnostics> {
    parse(kind, &source(kind, text), &roots())
}

/// The messages about a configuration of these files.
#[track_caller]
fn messages(files: &[(LayerKind, &str)]) -> String {
    let layers: Result<Vec<_>, _> = files
        .iter()
        .map(|(kind, text)| layer(*kind, text))
        .collect();
    let outcome = layers.and_then(|layers| merge(&layers, &Choice::None));
    outcome
        .expect_err("this is a bad configuration")
        .to_string()
}

/// A user's files, by what is wrong with each.
const BAD: &[(&str, &str)] = &[
    // Devices.
    (
        "device_that_is_a_network",
        "[devices]\nlab = \"172.23.1.0/24\"\n",
    ),
    (
        "device_of_many_names",
        "[devices]\nlab = [\"*.lab.example\"]\n",
    ),
    (
        "device_called_localhost",
        "[devices]\nlocalhost = \"172.23.1.7\"\n",
    ),
    ("device_in_capitals", "[devices]\nPMAC = \"172.23.1.7\"\n"),
    (
        "device_with_dots",
        "[devices]\n\"pmac.lab\" = \"172.23.1.7\"\n",
    ),
    (
        "device_with_a_number_for_a_name",
        "[devices]\n7 = \"172.23.1.7\"\n",
    ),
    (
        "device_with_an_odd_name",
        "[devices]\n\"a b\\u001b[2J\" = \"172.23.1.7\"\n",
    ),
    ("device_without_rules", "[devices]\npmac = []\n"),
    (
        "device_that_is_a_table",
        "[devices.pmac]\nallow = \"172.23.1.7\"\n",
    ),
    (
        "device_at_the_loopback",
        "[devices]\npmac = \"127.0.0.1\"\n",
    ),
    (
        "device_twice",
        "[devices]\npmac = \"172.23.1.7\"\npmac = \"172.23.1.8\"\n",
    ),
    (
        "devices_in_network",
        "[network]\ndevices = { pmac = \"172.23.1.7\" }\n",
    ),
    (
        "devices_that_are_no_section",
        "devices = [\"172.23.1.7\"]\n",
    ),
    // Keys.
    ("key_with_a_slip", "[network]\nalow = [\"10.0.0.1\"]\n"),
    ("key_with_a_hyphen", "[network]\nhost-ports = [5432]\n"),
    ("key_that_does_not_exist", "[network]\nfirewall = true\n"),
    (
        "key_of_another_section",
        "[files]\nallow = [\"10.0.0.1\"]\n",
    ),
    ("key_without_a_section", "internet = false\n"),
    ("key_in_capitals", "[network]\nMode = \"jail\"\n"),
    ("section_with_a_slip", "[netwrok]\ninternet = false\n"),
    (
        "section_that_does_not_exist",
        "[sandbox]\nunshare_net = true\n",
    ),
    ("section_as_a_value", "network = \"none\"\n"),
    ("section_as_a_list", "[[network]]\ninternet = false\n"),
    (
        "section_of_a_profile",
        "[profiles.claude.netwrok]\ninternet = false\n",
    ),
    (
        "key_of_a_profile",
        "[profiles.claude.network]\ninternets = false\n",
    ),
    (
        "profile_in_a_profile",
        "[profiles.claude.profiles.x.network]\ninternet = false\n",
    ),
    (
        "lock_in_a_profile",
        "[profiles.claude]\nlock = [\"network\"]\n",
    ),
    (
        "key_straight_in_a_profile",
        "[profiles.claude]\ninternet = false\n",
    ),
    (
        "profile_without_a_name",
        "[profiles.\"\".network]\ninternet = false\n",
    ),
    ("profile_that_is_no_table", "profiles.claude = \"strict\"\n"),
    ("profiles_that_are_no_table", "profiles = [\"claude\"]\n"),
    ("lock_of_a_user", "lock = [\"network.mode\"]\n"),
    ("workspace_of_a_user", "workspace = \"/home/ada/project\"\n"),
    // Types.
    ("boolean_in_quotes", "[network]\ninternet = \"false\"\n"),
    ("boolean_as_a_number", "[network]\ninternet = 0\n"),
    ("word_as_a_boolean", "[network]\nmode = false\n"),
    ("list_that_is_a_string", "[network]\nallow = \"10.0.0.1\"\n"),
    ("list_that_is_a_number", "[network]\nhost_ports = 5432\n"),
    ("list_in_a_list", "[network]\nallow = [[\"10.0.0.1\"]]\n"),
    ("rule_that_is_a_number", "[network]\nallow = [10]\n"),
    (
        "rule_that_is_a_table",
        "[network]\nallow = [{ host = \"10.0.0.1\" }]\n",
    ),
    ("date_for_a_word", "[agent]\nhardening = 2026-11-15\n"),
    ("float_for_a_count", "[limits]\nprocesses = 10.5\n"),
    ("port_in_quotes", "[network]\nhost_ports = [\"5432\"]\n"),
    ("variables_in_a_list", "[env]\nset = [\"A=1\"]\n"),
    ("variable_that_is_a_number", "[env.set]\nPORT = 3000\n"),
    // Values.
    ("word_with_a_slip", "[network]\nmode = \"jial\"\n"),
    ("word_that_is_none", "[files]\nroot = \"home\"\n"),
    (
        "rule_with_host_bits",
        "[network]\nallow = [\n  \"192.168.10.21\",\n  \"tcp://10.0.0.1/8:443\",\n]\n",
    ),
    (
        "rule_with_an_escape_before_the_mistake",
        "[network]\nallow = [\"\\u0074cp://10.0.0.1:99999\"]\n",
    ),
    (
        "rule_in_many_lines",
        "[network]\nallow = [\"\"\"\n10.0.0.1\"\"\", '''10.0.0.300''']\n",
    ),
    ("rule_that_is_empty", "[network]\nallow = [\"\"]\n"),
    (
        "rule_with_a_control_character",
        "[network]\nallow = [\"10.0.0.1\\u001b[2J\"]\n",
    ),
    (
        "rule_of_another_protocol",
        "[network]\nallow = [\"sctp://10.0.0.1\"]\n",
    ),
    ("port_zero", "[network]\nhost_ports = [0]\n"),
    (
        "port_too_large",
        "[network]\nhost_ports = [65536, 99999999999999999999]\n",
    ),
    (
        "published_port_that_is_none",
        "[network]\npublish = [\"3000:http\", \"1:2:3\", 0]\n",
    ),
    (
        "published_twice",
        "[network]\npublish = [\"3000:80\", \"3000:81\"]\n",
    ),
    (
        "published_and_the_hosts",
        "[network]\nhost_ports = [80]\npublish = [\"3000:80\"]\n",
    ),
    ("path_that_is_relative", "[files]\nread = [\"data\"]\n"),
    ("path_that_is_empty", "[files]\nwrite = [\"\"]\n"),
    ("path_of_another_home", "[files]\nread = [\"~bob/data\"]\n"),
    (
        "path_with_a_variable",
        "[files]\nhide = [\"$XDG_DATA_HOME/x\"]\n",
    ),
    (
        "path_that_goes_back",
        "[files]\nread = [\"/data/../etc\"]\n",
    ),
    ("path_with_a_nul", "[files]\nread = [\"/data\\u0000\"]\n"),
    ("name_with_a_value", "[env]\npass = [\"A=1\"]\n"),
    ("name_with_a_wildcard", "[env]\npass = [\"AWS_*\"]\n"),
    ("name_with_a_hyphen", "[env.set]\nMY-NAME = \"x\"\n"),
    ("value_with_a_nul", "[env.set]\nA = \"x\\u0000\"\n"),
    (
        "forge_with_a_url",
        "[forge]\nhosts = [\"https://git.example.org/api\"]\n",
    ),
    (
        "forge_with_a_wildcard",
        "[forge]\nhosts = [\"*.example.org\"]\n",
    ),
    ("size_without_a_unit", "[limits]\nmemory = \"8\"\n"),
    ("size_as_a_number", "[limits]\nmemory = 8589934592\n"),
    ("size_with_another_unit", "[limits]\ntmpfs = \"2GiB\"\n"),
    (
        "limits_that_nothing_starts_with",
        "[limits]\nmemory = \"1K\"\nopen_files = 3\n",
    ),
    ("size_of_zero", "[limits]\nmemory = \"0G\"\n"),
    ("size_too_large", "[limits]\nmemory = \"99999999999T\"\n"),
    (
        "count_of_zero",
        "[limits]\nprocesses = 0\nopen_files = -1\n",
    ),
    ("time_as_a_number", "[limits]\ncpu_time = 3600\n"),
    (
        "time_with_another_unit",
        "[limits]\ncpu_time = \"2 weeks\"\n",
    ),
    // Syntax.
    (
        "key_twice",
        "[network]\nmode = \"jail\"\ninternet = true\nmode = \"host\"\n",
    ),
    (
        "section_twice",
        "[network]\ninternet = false\n\n[env]\n\n[network]\nmode = \"none\"\n",
    ),
    (
        "rule_for_the_loopback",
        "[network]\nallow = [\"localhost:5432\", \"127.0.0.1\"]\n",
    ),
    (
        "section_twice_and_in_a_comment",
        "[network]\n# As in [network] and net.network = 1:\n[profiles.x.network]\n[network]\n",
    ),
    (
        "key_twice_and_in_a_string",
        "[network]\nallow = []\n[env.set]\nA = '''\nallow = [\n'''\n[network.x]\nallow = 1\nallow = 2\n",
    ),
    (
        "string_that_does_not_end",
        "[network]\nmode = \"jail\ninternet = true\n",
    ),
    ("string_without_quotes", "[network]\nmode = none\n"),
    (
        "list_that_does_not_end",
        "[network]\nallow = [\"10.0.0.1\"\n",
    ),
    ("value_that_is_missing", "[network]\nmode =\n"),
    ("value_that_is_null", "[network]\nallow = null\n"),
    ("key_without_a_value", "[network]\ninternet\n"),
    ("escape_that_is_none", "[files]\nread = [\"C:\\data\"]\n"),
    (
        "control_character_in_a_string",
        "[network]\nmode = \"\u{1b}[31mjail\"\n",
    ),
    (
        "text_that_turns_direction",
        "[network]\nmode = \"jail\u{202e}\"\n",
    ),
    ("nesting_without_end", DEEP),
    (
        "several_mistakes",
        "[network]\nmode = \"jial\"\nallow = [\"10.0.0.1/8\", \"[::1\", 7]\nalow = []\n\n[limits]\nmemory = 8\n",
    ),
    (
        "lines_as_on_windows",
        "[network]\r\nmode = \"jail\"\r\nalow = []\r\n",
    ),
    ("byte_order_mark", "\u{feff}[network]\nalow = []\n"),
];

const DEEP: &str = "a = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]\n";

#[test]
fn every_mistake_has_a_message_with_its_place_and_what_to_do() {
    for (name, text) in BAD {
        let message = messages(&[(LayerKind::User, text)]);
        assert!(
            message.contains("--> /home/ada/.config/stockade/config.toml:"),
            "{name}: {message}"
        );
        let raw = |c: char| c.is_control() && c != '\n';
        assert!(!message.contains(raw), "{name}: {message:?}");
        insta::with_settings!({ description => *text, omit_expression => true }, {
            insta::assert_snapshot!(*name, message);
        });
    }
}

/// Mistakes that a file of another kind, or several files, can have.
const OTHERS: &[(&str, &[(LayerKind, &str)])] = &[
    (
        "device_of_two_files",
        &[
            (LayerKind::User, "[devices]\npmac = \"172.23.1.7\"\n"),
            (LayerKind::Workspace, "[devices]\npmac = \"172.23.1.8\"\n"),
        ],
    ),
    (
        "device_with_a_host_name_and_an_address",
        &[(
            LayerKind::User,
            "[devices]\ncam = [\"cam1.lab.example:80\", \"172.23.1.7:22\"]\n",
        )],
    ),
    (
        "locked_devices",
        &[
            (LayerKind::System, "lock = [\"devices\"]\n"),
            (LayerKind::User, "[devices]\npmac = \"172.23.1.7\"\n"),
        ],
    ),
    (
        "lock_of_no_key",
        &[(
            LayerKind::System,
            "lock = [\"network.mod\", \"everything\", 7]\n",
        )],
    ),
    (
        "lock_that_is_no_list",
        &[(LayerKind::System, "lock = \"network\"\n")],
    ),
    (
        "locked_key",
        &[
            (
                LayerKind::System,
                "lock = [\"network.mode\"]\n\n[network]\nmode = \"jail\"\n",
            ),
            (LayerKind::User, "# mine\n[network]\nmode = \"host\"\n"),
        ],
    ),
    (
        "locked_section",
        &[
            (LayerKind::System, "lock = [\"forge\", \"limits.memory\"]\n"),
            (
                LayerKind::Workspace,
                "[forge]\ngithub = true\n\n[limits]\nmemory = \"64G\"\n",
            ),
        ],
    ),
    (
        "locked_list",
        &[
            (
                LayerKind::System,
                "lock = [\"network.allow\"]\n\n[network]\nallow = [\"10.0.0.1\"]\n",
            ),
            (
                LayerKind::Project,
                "workspace = \"~/project\"\n[network]\nallow = [\"10.0.0.2\"]\n",
            ),
        ],
    ),
    (
        "locked_key_in_a_profile",
        &[
            (LayerKind::System, "lock = [\"network.internet\"]\n"),
            (
                LayerKind::User,
                "[profiles.claude.network]\ninternet = true\n",
            ),
        ],
    ),
    (
        "project_without_its_workspace",
        &[(LayerKind::Project, "[network]\ninternet = false\n")],
    ),
    (
        "project_of_a_relative_path",
        &[(LayerKind::Project, "workspace = \"project\"\n")],
    ),
    (
        "project_of_a_number",
        &[(LayerKind::Project, "workspace = 7\n")],
    ),
    (
        "workspace_with_a_lock",
        &[(LayerKind::Workspace, "lock = []\n")],
    ),
    (
        "ports_of_two_files",
        &[
            (LayerKind::User, "[network]\nhost_ports = [5432]\n"),
            (LayerKind::Workspace, "[network]\npublish = [5432]\n"),
        ],
    ),
];

#[test]
fn mistakes_of_several_files_name_all_places() {
    for (name, files) in OTHERS {
        let message = messages(files);
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(*name, message);
        });
    }
}

#[test]
fn mistakes_in_flags_are_shown_without_a_file() {
    let mut flags = Flags::default();
    for (key, text) in [
        (Key::Mode, "nome"),
        (Key::Internet, "maybe"),
        (Key::Allow, "tcp://10.0.0.1/8:443"),
        (Key::Allow, "10.0.0.1\x1b[2J"),
        (Key::Allow, "localhost:5432"),
        (Key::Allow, "tcp://127.0.0.1:5432"),
        (Key::Allow, "::1"),
        (Key::Near, "tcp://10.0.0.1:443"),
        (Key::Near, "*.co.uk"),
        (Key::Devices, "pmac"),
        (Key::Devices, "pmac=172.23.1.0/24"),
        (Key::Devices, "local=172.23.1.7"),
        (Key::Devices, "pmac=tcp:172.23.1.7:1025"),
        (Key::HostPorts, "abc"),
        (Key::Publish, "1:2:3"),
        (Key::Publish, "127.0.0.1:8080:3000"),
        (Key::LogDenials, "1"),
        (Key::Root, "home"),
        (Key::Read, ""),
        (Key::Write, "~bob"),
        (Key::Hide, "a/../b"),
        (Key::Caches, "none"),
        (Key::PassEnv, "A=1"),
        (Key::SetEnv, "A"),
        (Key::SetEnv, "1A=x"),
        (Key::Github, "yes"),
        (Key::ForgeHosts, "*.example.org"),
        (Key::Hardening, "hard"),
        (Key::GitSettings, "undo"),
        (Key::Memory, "memory"),
        (Key::Memory, "memory=8"),
        (Key::Memory, "memory=8GB"),
        (Key::Memory, "memory=1K"),
        (Key::OpenFiles, "open_files=3"),
        (Key::Memory, "memroy=8G"),
        (Key::Processes, "processes=0"),
    ] {
        flags.set(key, text);
    }
    let problems = flags.layer(&roots()).expect_err("bad flags");
    assert_eq!(problems.iter().count(), 36);
    // Rendered one by one: nobody makes so many mistakes at once.
    let all: Vec<String> = problems
        .iter()
        .map(|problem| Diagnostics::from(problem.clone()).to_string())
        .collect();
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("flags", all.join("\n"));
    });
}

#[test]
fn mistakes_in_variables_are_shown_with_the_variable() {
    let variable = |name: &str| match name {
        "CLAUDE_SANDBOX_ALLOW_IP" => Some("192.168.1.1, 10.0.0.1/8 [::1".into()),
        _ => None,
    };
    let problems = environment_layer(variable, &roots()).expect_err("a bad variable");
    insta::assert_snapshot!("variables", problems.to_string());
}

#[test]
fn a_flag_against_a_lock_names_both() {
    let system = layer(LayerKind::System, "lock = [\"network\"]\n").expect("a lock");
    let mut flags = Flags::default();
    flags.set(Key::Mode, "host");
    let flags = flags.layer(&roots()).expect("flags");
    let problems = merge(&[system, flags], &Choice::None).expect_err("locked");
    insta::assert_snapshot!("locked_flag", problems.to_string());
}

#[test]
fn an_unknown_profile_is_named_with_those_that_there_are() {
    let user = "[profiles.claude.network]\ninternet = true\n[profiles.codex]\n";
    let user = layer(LayerKind::User, user).expect("profiles");
    let flag = |name: &str| {
        let source = Source::new(SourceKind::Flag("--profile".into()), name);
        Choice::Named(name.to_owned(), Place::whole(&source))
    };
    let said = ["cluade", "npm\x1b"].map(|name| {
        let problems = merge(std::slice::from_ref(&user), &flag(name)).expect_err("unknown");
        problems.to_string()
    });
    let none = merge(&[], &flag("claude"))
        .expect_err("unknown")
        .to_string();
    insta::assert_snapshot!("unknown_profile", format!("{}\n{none}", said.join("\n")));
}

#[test]
fn colours_are_only_where_they_are_asked_for() {
    let problems = layer(LayerKind::User, "[network]\nalow = []\n").expect_err("a slip");
    assert!(problems.render(true).contains("\x1b["));
    assert!(!problems.render(false).contains('\x1b'));
}

#[test]
fn of_very_many_mistakes_some_are_shown_and_the_others_counted() {
    let entries = "0, ".repeat(1000);
    let text = format!("[network]\nhost_ports = [{entries}]\n");
    let message = layer(LayerKind::User, &text)
        .expect_err("no ports")
        .to_string();
    assert_eq!(message.matches("invalid port").count(), 20);
    assert!(
        message.ends_with("stockade: and 980 more errors"),
        "{message}"
    );
}
