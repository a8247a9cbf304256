//! What is in force, given what several layers say.

use std::{path::Path, time::Instant};

use proptest::prelude::*;
use stockade_config::{
    BUILT_IN, Choice, Effective, Flags, Hardening, Key, Layer, LayerKind, Mode, Origin, Place,
    Root, Roots, Source, SourceKind, Unknown, differences, environment_layer, merge, parse, wider,
};

fn roots() -> Roots {
    Roots {
        home: "/home/ada".into(),
        workspace: Some("/home/ada/project".into()),
    }
}

fn layer(kind: LayerKind, text: &str) -> Layer {
    let source = Source::file(format!("/{kind:?}.toml"), text);
    parse(kind, &source, &roots()).unwrap_or_else(|problems| panic!("{problems}"))
}

#[track_caller]
fn merged(layers: &[Layer], choice: &Choice) -> Effective {
    merge(layers, choice).unwrap_or_else(|problems| panic!("{problems}"))
}

fn user(text: &str) -> Effective {
    merged(&[layer(LayerKind::User, text)], &Choice::None)
}

fn named(name: &str) -> Choice {
    let source = Source::new(SourceKind::Flag("--profile".into()), name);
    Choice::Named(name.to_owned(), Place::whole(&source))
}

/// What is shown of a key: values, and where they come from.
fn shown(effective: &Effective, key: Key) -> Vec<(String, String)> {
    let shown = effective.shown(key).into_iter();
    shown
        .map(|shown| (shown.literal(), shown.origin.to_string()))
        .collect()
}

#[test]
fn where_nothing_is_said_nothing_is_given() {
    let nothing = merged(&[], &Choice::None);
    for text in [
        "",
        "# nothing\n",
        "[network]\n",
        "[network]\nallow = []\ndiscovery = []\nhost_ports = []\npublish = []\n",
        "[files]\n[env]\nset = {}\n[forge]\nhosts = []\n[agent]\n[limits]\n[profiles]\n",
        "[profiles.claude]\n[profiles.claude.network]\n",
    ] {
        let effective = user(text);
        assert_eq!(effective.hash(), nothing.hash(), "{text}");
        assert!(
            Key::ALL.iter().all(|key| effective.is_default(*key)),
            "{text}"
        );
    }
    assert_eq!(nothing.network.mode.value, Mode::Jail);
    assert_eq!(nothing.policy().rules.iter().count(), 0);
    assert_eq!(nothing.files.root.value, Root::System);
    assert_eq!(nothing.agent.hardening.value, Hardening::Default);
    assert!(!nothing.forge.github.value && !nothing.forge.gitlab.value);
    assert_eq!(nothing.network.mode.origin, Origin::BuiltIn);
}

#[test]
fn an_empty_allow_list_without_internet_allows_nothing() {
    let effective = user("[network]\ninternet = false\nallow = []\n");
    let policy = effective.policy();
    assert!(!policy.internet);
    assert_eq!(policy.rules.iter().count(), 0);
}

#[test]
fn the_later_layer_has_the_last_word_and_lists_grow() {
    let text = |internet: bool, number: u8| {
        format!("[network]\n# a line\ninternet = {internet}\nallow = [\"10.0.0.{number}\"]\n")
    };
    let mut flags = Flags::default();
    flags.set(Key::Allow, "10.0.0.6");
    flags.set(Key::Internet, "true");
    let layers = [
        flags.layer(&roots()).expect("flags"),
        layer(
            LayerKind::Project,
            &format!("workspace = \"~/project\"\n{}", text(false, 4)),
        ),
        layer(LayerKind::Workspace, &text(true, 3)),
        layer(LayerKind::User, &text(false, 2)),
        layer(LayerKind::System, &text(true, 1)),
    ];
    let effective = merged(&layers, &Choice::None);
    assert_eq!(
        shown(&effective, Key::Internet),
        [("true".into(), "--internet".into())]
    );
    let rules = shown(&effective, Key::Allow);
    let expected = [
        ("10.0.0.1", "/System.toml:4"),
        ("10.0.0.2", "/User.toml:4"),
        ("10.0.0.3", "/Workspace.toml:4"),
        ("10.0.0.4", "/Project.toml:5"),
        ("10.0.0.6", "--allow"),
    ];
    let expected = expected.map(|(rule, origin)| (format!("\"{rule}\""), origin.to_owned()));
    assert_eq!(rules, expected);
    for (index, rule) in effective.policy().rules.iter().enumerate() {
        let origin = effective.origin_of_rule(index).expect("an origin");
        assert_eq!((format!("\"{rule}\""), origin.to_string()), expected[index]);
    }
    assert!(effective.origin_of_rule(5).is_none());

    let without_flags = merged(&layers[1..], &Choice::None);
    assert_eq!(
        shown(&without_flags, Key::Internet),
        [("false".into(), "/Project.toml:4".into())]
    );
    let origin = &without_flags.network.internet.origin;
    assert_eq!(origin.file_line(), Some((Path::new("/Project.toml"), 4)));
}

#[test]
fn every_key_takes_the_value_that_a_file_gives_it() {
    let text = r#"
        [network]
        mode = "none"
        internet = false
        allow = ["10.0.0.1", "tcp://[fd00::5]:80"]
        near = ["tcp://wiki.corp.example:443", "*.lab.example"]
        discovery = ["epics", "udp://3702"]
        host_ports = [5432]
        publish = ["3000", "8080:80", 9000]
        unknown = "ask"
        notify = "off"
        proxy = "http://Proxy.corp.example:3128/"
        proxy_login = "~/proxy-login"
        no_proxy = [".lab.example", "10.1.2.3/8"]
        log_denials = false
        [devices]
        pmac = "tcp://172.23.1.7:1025"
        ioc = ["172.23.1.3", "[fd00::3]:5064"]
        cam = "cam1.lab.example:80"
        [files]
        root = "all"
        read = ["~/data", "$HOME/x"]
        write = ["/scratch"]
        hide = ["/home/ada/project/.env"]
        caches = "scratch"
        [env]
        pass = ["EDITOR"]
        set = { A = "1", B = "" }
        [forge]
        github = true
        gitlab = true
        hosts = ["Git.example.org"]
        [agent]
        hardening = "strict"
        nested = true
        [git]
        settings = "tell"
        [limits]
        processes = 4000
        memory = "8G"
        open_files = 1024
        tmpfs = "512M"
        cpu_time = "2h"
    "#;
    let effective = user(text);
    let values: Vec<String> = Key::ALL
        .into_iter()
        .map(|key| {
            let values = effective.shown(key).into_iter();
            let values =
                values.map(|shown| shown.name.unwrap_or_default() + &shown.value.to_string());
            format!("{key}: {}", values.collect::<Vec<_>>().join(" "))
        })
        .collect();
    insta::assert_snapshot!("every_key", values.join("\n"));
    for key in Key::ALL {
        assert!(!effective.is_default(key), "{key}");
    }
}

#[test]
fn a_profile_is_for_its_command_or_when_it_is_asked_for() {
    let user = "
        [network]
        internet = false
        allow = [\"10.0.0.1\"]
        [profiles.claude.network]
        internet = true
        allow = [\"10.0.0.2\"]
        [profiles.codex.network]
        mode = \"none\"
    ";
    let project = "
        workspace = \"~/project\"
        [network]
        internet = false
        [profiles.claude.network]
        allow = [\"10.0.0.3\"]
    ";
    let layers = [
        layer(LayerKind::User, user),
        layer(LayerKind::Project, project),
    ];
    let rules = |effective: &Effective| effective.network.allow.len();
    for choice in [Choice::None, Choice::Command("npm".into())] {
        let plain = merged(&layers, &choice);
        assert_eq!(
            (plain.network.internet.value, rules(&plain), &plain.profile),
            (false, 1, &None)
        );
    }
    for choice in [Choice::Command("claude".into()), named("claude")] {
        let claude = merged(&layers, &choice);
        // The user's profile overrules the base of the project's file.
        assert_eq!((claude.network.internet.value, rules(&claude)), (true, 3));
        assert_eq!(claude.profile.as_deref(), Some("claude"));
        assert_eq!(claude.network.mode.value, Mode::Jail);
    }
    // What is typed overrules the profile.
    let mut flags = Flags::default();
    flags.set(Key::Internet, "false");
    let [user, project] = layers;
    let typed = [user, project, flags.layer(&roots()).expect("flags")];
    assert!(!merged(&typed, &named("claude")).network.internet.value);
}

#[test]
fn the_administrator_may_set_what_is_locked_and_built_in_profiles_may() {
    let system = "
        lock = [\"network\", \"files.read\"]
        [network]
        mode = \"none\"
        [profiles.claude.network]
        mode = \"jail\"
    ";
    let built_in = "[profiles.claude.files]\nread = [\"~/.claude\"]\n";
    let free = "[env]\npass = [\"EDITOR\"]\n[files]\nwrite = [\"/scratch\"]\n";
    let layers = [
        layer(LayerKind::System, system),
        layer(LayerKind::BuiltIn, built_in),
        layer(LayerKind::User, free),
    ];
    let claude = merged(&layers, &Choice::Command("claude".into()));
    assert_eq!(claude.network.mode.value, Mode::Jail);
    assert_eq!(claude.files.read.len(), 1);
    assert_eq!(claude.env.pass.len(), 1);
    assert_eq!(
        merged(&layers, &Choice::None).network.mode.value,
        Mode::None
    );
}

#[test]
fn everything_but_the_administrators_file_is_bound_by_a_lock() {
    let system = || {
        layer(
            LayerKind::System,
            "lock = [\"forge\", \"network.mode\", \"env.set\"]\n",
        )
    };
    let refused = |other: Layer| {
        let layers = [system(), other];
        let problems = merge(&layers, &Choice::None)
            .expect_err("locked")
            .to_string();
        assert!(problems.contains("/System.toml:1"), "{problems}");
        problems
    };
    for kind in [LayerKind::User, LayerKind::Workspace, LayerKind::Project] {
        let start = if kind == LayerKind::Project {
            "workspace = \"/w\"\n"
        } else {
            ""
        };
        for text in [
            "network.mode = \"jail\"",
            "env.set = { A = \"b\" }",
            "forge.hosts = [\"x.org\"]",
            "profiles.x.forge.github = false",
        ] {
            refused(layer(kind, &format!("{start}{text}\n")));
        }
    }
    let mut flags = Flags::default();
    flags.no_forge();
    assert!(refused(flags.layer(&roots()).expect("flags")).contains("--no-forge"));
    let variable = |name: &str| (name == "CLAUDE_SANDBOX_EGRESS_JAIL").then(|| "0".into());
    let environment = environment_layer(variable, &roots()).expect("variables");
    assert!(refused(environment).contains("CLAUDE_SANDBOX_EGRESS_JAIL"));
    // The control: without the lock, each is fine.
    let free = [
        layer(LayerKind::System, ""),
        layer(LayerKind::User, "network.mode = \"jail\"\n"),
    ];
    merged(&free, &Choice::None);
}

/// They open what a rule of `allow` opens, so its lock is theirs.
#[test]
fn a_lock_of_rules_holds_for_every_list_of_rules() {
    let allow = ("network.allow = [\"10.0.0.1\"]\n", Key::Allow, "10.0.0.1");
    let near = ("network.near = [\"nas.lan\"]\n", Key::Near, "nas.lan");
    let devices = ("devices.x = \"10.0.0.1\"\n", Key::Devices, "x=10.0.0.1");
    for (locked, bound, free) in [
        ("network", vec![allow, near, devices], vec![]),
        ("network.allow", vec![allow, near, devices], vec![]),
        ("network.near", vec![near, devices], vec![allow]),
        ("devices", vec![devices], vec![allow, near]),
        ("network.mode", vec![], vec![allow, near, devices]),
    ] {
        let system = || layer(LayerKind::System, &format!("lock = [\"{locked}\"]\n"));
        let both = |(text, key, flag): (&str, Key, &str)| {
            let mut flags = Flags::default();
            flags.set(key, flag);
            let flags = flags.layer(&roots()).expect("flags");
            let written = [
                layer(LayerKind::User, text),
                layer(LayerKind::Workspace, text),
            ];
            let others = written.into_iter().chain([flags]);
            others.map(|other| merge(&[system(), other], &Choice::None))
        };
        for setting in bound {
            for outcome in both(setting) {
                let problems = outcome.expect_err("locked").to_string();
                assert!(problems.contains("locked"), "{locked}: {problems}");
            }
        }
        for setting in free {
            for outcome in both(setting) {
                assert!(outcome.is_ok(), "{locked}: {setting:?}");
            }
        }
    }
}

fn with_variables(variables: &[(&str, &str)]) -> Effective {
    let user =
        "[forge]\ngithub = true\nhosts = [\"git.example.org\"]\n[network]\nmode = \"none\"\n";
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).into())
    };
    let environment = environment_layer(variable, &roots()).expect("variables");
    merged(&[layer(LayerKind::User, user), environment], &Choice::None)
}

#[test]
fn variables_of_earlier_sandboxes_are_aliases() {
    let plain = with_variables(&[]);
    assert_eq!(plain.network.mode.value, Mode::None);
    let open = with_variables(&[("CLAUDE_SANDBOX_EGRESS_JAIL", "0")]);
    assert_eq!(open.network.mode.value, Mode::Host);
    assert_eq!(
        open.network.mode.origin.to_string(),
        "CLAUDE_SANDBOX_EGRESS_JAIL"
    );
    // Anything else asks for the jail, which widens nothing.
    for value in ["", "1", "no", "00", "0 "] {
        let jailed = with_variables(&[("CLAUDE_SANDBOX_EGRESS_JAIL", value)]);
        assert_eq!(jailed.network.mode.value, Mode::None, "{value}");
    }
    let devices = with_variables(&[(
        "CLAUDE_SANDBOX_ALLOW_IP",
        " 192.168.1.1,10.0.0.0/8  172.23.1.3 ",
    )]);
    let rules: Vec<String> = devices
        .policy()
        .rules
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(rules, ["192.168.1.1", "10.0.0.0/8", "172.23.1.3"]);
    assert!(plain.forge.github.value && !plain.forge.hosts.is_empty());
    for (value, off) in [("1", true), ("yes", true), ("0", false), ("", false)] {
        let forge = with_variables(&[("CLAUDE_SANDBOX_NO_FORGE", value)]).forge;
        assert_eq!(
            !forge.github.value && forge.hosts.is_empty(),
            off,
            "{value}"
        );
    }
}

#[test]
fn the_same_values_have_the_same_hash_whoever_says_them() {
    let one = user("[network]\nallow = [\"10.0.0.1\", \"10.0.0.2\"]\ninternet = true\n");
    let mut flags = Flags::default();
    flags.set(Key::Allow, "10.0.0.2");
    flags.set(Key::Allow, "10.0.0.1");
    flags.set(Key::Allow, "10.0.0.1");
    let other = merged(&[flags.layer(&roots()).expect("flags")], &Choice::None);
    assert_eq!(one.hash(), other.hash());
    assert_eq!(one.hash().len(), 64);
    let mut hashes = vec![one.hash()];
    for text in [
        "[network]\nallow = [\"10.0.0.1\"]\n",
        "[network]\nmode = \"none\"\n",
        "[env]\nset = { A = \"b\" }\n",
        "[env]\nset = { A = \"c\" }\n",
        "[files]\nread = [\"/a\"]\n",
        "[files]\nhide = [\"/a\"]\n",
    ] {
        hashes.push(user(text).hash());
    }
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 7);
}

#[test]
fn what_is_said_for_every_command_overrules_a_built_in_profile() {
    let (_, codex) = BUILT_IN.iter().find(|(name, _)| *name == "codex").unwrap();
    let nested = |text: &str| {
        let layers = [
            layer(LayerKind::BuiltIn, codex),
            layer(LayerKind::User, text),
        ];
        let effective = merged(&layers, &Choice::Command("codex".to_owned()));
        effective.agent.nested.value
    };
    assert!(nested(""));
    assert!(!nested("[agent]\nnested = false\n"));
    assert!(nested(
        "[agent]\nnested = false\n[profiles.codex.agent]\nnested = true\n"
    ));
}

#[test]
fn what_changes_is_told_and_whether_it_widens() {
    let narrow = "
        [network]
        mode = \"none\"
        internet = false
        [files]
        hide = [\"/a\"]
        caches = \"empty\"
        [agent]
        hardening = \"strict\"
        [limits]
        processes = 10
        memory = \"1G\"
        open_files = 20
        tmpfs = \"1M\"
        cpu_time = \"1s\"
    ";
    let wide = "
        [network]
        mode = \"host\"
        allow = [\"10.0.0.1\"]
        near = [\"nas.lan\"]
        discovery = [\"epics\"]
        host_ports = [1]
        publish = [2]
        unknown = \"ask\"
        notify = \"off\"
        proxy = \"environment\"
        proxy_login = \"/l\"
        no_proxy = [\"lab.example\"]
        log_denials = false
        [devices]
        pmac = \"10.0.0.7\"
        [files]
        root = \"all\"
        read = [\"/r\"]
        write = [\"/w\"]
        [env]
        pass = [\"A\"]
        set = { B = \"c\" }
        [forge]
        github = true
        gitlab = true
        hosts = [\"x.org\"]
        [agent]
        nested = true
        [git]
        settings = \"tell\"
    ";
    let (narrow, wide) = (user(narrow), user(wide));
    assert_eq!(wider(&narrow, &wide), Key::ALL);
    assert_eq!(wider(&wide, &narrow), []);
    for same in [&narrow, &wide] {
        assert_eq!(wider(same, same), []);
        assert_eq!(differences(same, same), []);
    }
    let keys: Vec<Key> = differences(&narrow, &wide)
        .iter()
        .map(|difference| difference.key)
        .collect();
    assert_eq!(keys, Key::ALL);

    let more = user("[network]\nallow = [\"10.0.0.1\", \"10.0.0.2\"]\n");
    let less = user("[network]\nallow = [\"10.0.0.2\", \"10.0.0.3\"]\n");
    let told: Vec<_> = differences(&more, &less)
        .into_iter()
        .map(|difference| (difference.before, difference.after))
        .collect();
    assert_eq!(
        told,
        [
            (Some("10.0.0.1".into()), None),
            (None, Some("10.0.0.3".into()))
        ]
    );
}

#[test]
fn a_device_is_defined_in_one_place_and_numbered_after_the_lists() {
    let text = "[network]\nallow = [\"10.0.0.1\"]\nnear = [\"nas.lan\"]\n\
        [devices]\npmac = \"tcp://172.23.1.7:1025\"\nioc = [\"172.23.1.3\", \"172.23.1.4\"]\n";
    let mut flags = Flags::default();
    for rule in ["cam=cam1.lab.example:80", "cam=udp://cam1.lab.example:81"] {
        flags.set(Key::Devices, rule);
    }
    let layers = [
        layer(LayerKind::User, text),
        flags.layer(&roots()).expect("flags"),
    ];
    let effective = merged(&layers, &Choice::None);
    let policy = effective.policy();
    let rules: Vec<_> = (policy.rules.iter().enumerate())
        .map(|(index, rule)| {
            let origin = effective.origin_of_rule(index).expect("an origin");
            let device = rule.device().map(ToString::to_string).unwrap_or_default();
            format!("{device} {rule} {origin}")
        })
        .collect();
    assert_eq!(
        rules,
        [
            " 10.0.0.1 /User.toml:2",
            " nas.lan /User.toml:3",
            "cam cam1.lab.example:80 --device",
            "cam udp://cam1.lab.example:81 --device",
            "ioc 172.23.1.3 /User.toml:6",
            "ioc 172.23.1.4 /User.toml:6",
            "pmac tcp://172.23.1.7:1025 /User.toml:5",
        ]
    );
    assert_eq!(
        shown(&effective, Key::Devices)[1],
        (
            "[\"172.23.1.3\",\"172.23.1.4\"]".to_owned(),
            "/User.toml:6".to_owned()
        )
    );
    let other = layer(
        LayerKind::Project,
        "workspace = \"~/project\"\n[devices]\npmac = \"172.23.1.8\"\n",
    );
    let [user, flags] = layers;
    let twice = merge(&[user, flags, other], &Choice::None).expect_err("defined twice");
    assert!(twice.to_string().contains("device `pmac` is defined twice"));
}

#[test]
fn a_hundred_thousand_rules_are_read_in_little_time() {
    let rules: Vec<String> = (0..100_000_u32)
        .map(|number| {
            format!(
                "  \"tcp://10.{}.{}.0/24:{}\",\n",
                number / 256 % 256,
                number % 256,
                1 + number / 65536
            )
        })
        .collect();
    let text = format!("[network]\nallow = [\n{}]\n", rules.concat());
    let start = Instant::now();
    let effective = user(&text);
    assert_eq!(effective.policy().rules.iter().count(), 100_000);
    let last = effective.origin_of_rule(99_999).expect("an origin");
    assert_eq!(last.to_string(), "/User.toml:100002");
    // Unoptimized; the point is that the time does not grow with the square.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

proptest! {
    /// Whatever stands in a file: a layer or messages, and nothing of it raw on a terminal.
    #[test]
    fn no_text_confuses_the_reader(text in "(?s)(\\[network\\]\n|\\[files\\]\n|allow = |\\[|\\]|\"|'|=|\\\\|\n|\r|\\PC|.){0,40}") {
        let source = Source::file("/f.toml", text);
        if let Err(problems) = parse(LayerKind::Workspace, &source, &roots()) {
            let message = problems.to_string();
            let raw = |c: char| c.is_control() && c != '\n';
            prop_assert!(!message.contains(raw), "{message:?}");
        }
    }

    /// The caret of a bad rule is in the string that it stands in.
    #[test]
    fn the_caret_is_in_the_string(before in "[ -~]{0,8}", escapes in "(\\\\u00e4|\\\\t|ä|a){0,6}", bad in "[@!*]{1,3}") {
        let before = before.replace(['"', '\\'], "x");
        let text = format!("# {before}\n[network]\nallow = [\"10.0.0.1\", \"{escapes}{bad}\"]\n");
        let source = Source::file("/f.toml", text.as_str());
        let problems = parse(LayerKind::User, &source, &roots()).expect_err("no rule");
        let literal = text.rfind(", \"").expect("the rule") + 2..text.rfind("\"]").expect("its end") + 1;
        for problem in problems.iter() {
            let span = problem.place().expect("a place").span();
            prop_assert!(literal.start <= span.start && span.end <= literal.end, "{span:?} {text}");
        }
    }
}

#[test]
fn nobody_can_be_asked_where_the_rules_are_locked() {
    let system = "lock = [\"network.allow\"]\n[network]\nallow = [\"10.0.0.1\"]\n";
    let merged = |text: &str| {
        let layers = [
            layer(LayerKind::System, system),
            layer(LayerKind::User, text),
        ];
        merge(&layers, &Choice::None)
    };
    let refused = merged("[network]\nunknown = \"ask\"\n").expect_err("no answer could hold");
    let said = refused.render(false);
    assert!(said.contains("network.unknown cannot be \"ask\""), "{said}");
    assert!(said.contains("locked here"), "{said}");
    // Positive control.
    merged("[network]\nunknown = \"deny\"\n").expect("a configuration");
}

#[test]
fn ask_is_a_flag_of_its_own_for_one_value_of_unknown() {
    let mut flags = Flags::default();
    flags.ask();
    let layer = flags.layer(&roots()).expect("a layer");
    let effective = merge(&[layer], &Choice::None).expect("a configuration");
    assert_eq!(effective.network.unknown.value, Unknown::Ask);
    assert_eq!(effective.network.unknown.origin.to_string(), "--ask");
}
