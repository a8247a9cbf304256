//! Rules that Stockade adds to the user's file about a project.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::PathBuf,
};

use crate::support::{User, mode};
use stockade_config::{NetworkEdit, NewRule, Places};

fn edit(rules: &[&str], internet: Option<bool>) -> NetworkEdit {
    let rule = |text: &&str| NewRule::from(text.parse::<stockade_policy::Rule>().expect("a rule"));
    NetworkEdit {
        rules: rules.iter().map(rule).collect(),
        host_ports: Vec::new(),
        internet,
    }
}

fn projects(user: &User) -> PathBuf {
    user.path("home/.config/stockade/projects")
}

/// The text of a file about the project, with this below its first line.
fn about(user: &User, rest: &str) -> String {
    let workspace = user.path("home/project");
    format!("workspace = \"{}\"\n{rest}", workspace.display())
}

/// What becomes of a file's text, below its first line.
#[track_caller]
fn edited(before: &str, edit: &NetworkEdit) -> String {
    let user = User::new();
    let file = projects(&user).join("project.toml");
    user.write(&file, about(&user, before));
    let (path, _) = user
        .loader()
        .edit_project_file(edit)
        .unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(path, file);
    let text = fs::read_to_string(&file).expect("the file");
    user.load();
    let start = about(&user, "");
    text.strip_prefix(&start)
        .expect("the first line")
        .to_owned()
}

#[test]
fn a_missing_file_is_made_for_the_user_alone_and_is_in_force() {
    let user = User::new();
    fs::remove_dir(projects(&user)).expect("no directory");
    let edit = edit(&["api.example.org:443", "10.1.2.3"], Some(false));
    let (path, report) = user.loader().edit_project_file(&edit).expect("a file");
    assert_eq!(path, projects(&user).join("project.toml"));
    assert_eq!(report.before, None);
    assert_eq!(report.added.len(), 2);
    let text = fs::read_to_string(&path).expect("the file");
    assert_eq!(text, report.after);
    let network = "[network]\ninternet = false\nallow = [\"api.example.org:443\", \"10.1.2.3\"]\n";
    assert!(text.ends_with(network), "{text}");
    assert_eq!(
        fs::metadata(&path).expect("the file").mode() & 0o7777,
        0o600
    );
    let directory = fs::metadata(projects(&user)).expect("a directory");
    assert_eq!(directory.mode() & 0o7777, 0o700);
    let effective = user.load().effective;
    assert!(!effective.network.internet.value);
    let rules: Vec<_> = effective
        .network
        .allow
        .iter()
        .map(|it| it.value.to_string())
        .collect();
    assert_eq!(rules, ["api.example.org:443", "10.1.2.3"]);
    // Nothing stays beside it.
    assert_eq!(
        fs::read_dir(projects(&user)).expect("a directory").count(),
        1
    );
}

#[test]
fn a_name_that_another_projects_file_has_is_left_to_it() {
    let user = User::new();
    let other = projects(&user).join("project.toml");
    user.write(&other, "workspace = \"/elsewhere/project\"\n");
    let (path, _) = user
        .loader()
        .edit_project_file(&edit(&["10.1.2.3"], None))
        .expect("a file");
    assert_eq!(path, projects(&user).join("project-2.toml"));
    let text = fs::read_to_string(&other).expect("the other file");
    assert_eq!(text, "workspace = \"/elsewhere/project\"\n");
}

#[test]
fn comments_order_and_everything_else_stay() {
    let before = "\
# mine
[files]
read = [\"~\"]  # all

[network]  # the net
allow = [
    # the printer
    \"192.168.10.21\",   # 2nd floor
    'tcp://10.20.0.0/16:443',  # lab
    # end of the list
]
internet   =   true   # for now

[profiles.npm.network]
publish = [\"3000\"]
";
    let after = "\
# mine
[files]
read = [\"~\"]  # all

[network]  # the net
allow = [
    # the printer
    \"192.168.10.21\",   # 2nd floor
    'tcp://10.20.0.0/16:443',  # lab
    # end of the list
    \"10.1.2.3\",
]
internet   =   false   # for now

[profiles.npm.network]
publish = [\"3000\"]
";
    // One that is there already, in another spelling or not, is not added again.
    let rules = [
        "192.168.10.21",
        "10.1.2.3",
        "tcp://10.20.0.0/16:443",
        "10.1.2.3",
    ];
    assert_eq!(edited(before, &edit(&rules, Some(false))), after);
}

#[test]
fn every_form_of_a_list_gets_its_entries() {
    for (before, after) in [
        ("", "\n[network]\nallow = [\"10.1.2.3\"]\n"),
        ("[network]\n", "[network]\nallow = [\"10.1.2.3\"]\n"),
        (
            "[network]\nallow = []\n",
            "[network]\nallow = [\"10.1.2.3\"]\n",
        ),
        (
            "[network]\n# allow = []\n\n# Files\n[files]\n",
            "[network]\nallow = [\"10.1.2.3\"]\n# allow = []\n\n# Files\n[files]\n",
        ),
        (
            "network.internet = false\n",
            "network.internet = false\nnetwork.allow = [\"10.1.2.3\"]\n",
        ),
        (
            "network = { allow = [\"10.0.0.1\"] }\n",
            "network = { allow = [\"10.0.0.1\", \"10.1.2.3\"] }\n",
        ),
        (
            "[network]\nallow = [\n  \"10.0.0.1\" # no comma\n]\n",
            "[network]\nallow = [\n  \"10.0.0.1\", # no comma\n  \"10.1.2.3\",\n]\n",
        ),
        (
            "[network]\nallow = [\n  # nothing\n]\n",
            "[network]\nallow = [\n  # nothing\n    \"10.1.2.3\",\n]\n",
        ),
    ] {
        assert_eq!(
            edited(before, &edit(&["10.1.2.3"], None)),
            after,
            "{before}"
        );
    }
    let rules: Vec<String> = (0..9).map(|n| format!("10.20.30.4{n}:44{n}")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let long = edited("[network]\nallow = [\"10.0.0.1\"]\n", &edit(&rules, None));
    assert_eq!(long.lines().count(), 2 + 10 + 1, "{long}");
    assert_eq!(edited(&long, &edit(&rules, None)), long);
}

#[test]
fn ports_of_the_host_are_added_like_rules() {
    let wanted = NetworkEdit {
        host_ports: [5432, 8080, 5432].map(Into::into).to_vec(),
        ..edit(&[], None)
    };
    let text = "[network]\nhost_ports = [8080]  # web\n";
    assert_eq!(
        edited(text, &wanted),
        "[network]\nhost_ports = [8080, 5432]  # web\n"
    );
    let section = "[network]\ninternet = false\nallow = [\"10.1.2.3\"]\nhost_ports = [5432]\n";
    let whole = NetworkEdit {
        host_ports: vec![5432.into()],
        ..edit(&["10.1.2.3"], Some(false))
    };
    assert_eq!(whole.to_toml(), section);
}

#[test]
fn a_comment_cannot_become_a_line_of_its_own() {
    let mut wanted = edit(&["10.1.2.3"], None);
    let hostile = "seen\n\"0.0.0.0/1\",\r\n# \u{1b}[2J\0\u{202e}\u{2028}";
    wanted.rules[0].comment = Some(format!("{hostile}{}", "x".repeat(10_000)));
    let text = edited("[network]\nallow = [\"10.0.0.1\"]\n", &wanted);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert!(
        lines[3].starts_with("    # seen\\n\"0.0.0.0/1\",\\r\\n# \\u{1b}[2J\\0"),
        "{text}"
    );
    assert_eq!(
        [lines[2], lines[4]],
        ["    \"10.0.0.1\",", "    \"10.1.2.3\","]
    );
    assert!(text.len() < 400);
}

#[test]
fn mode_and_link_of_a_file_stay() {
    let user = User::new();
    let real = user.path("home/dotfiles/stockade.toml");
    user.write(&real, about(&user, ""));
    mode(&real, 0o640);
    let link = projects(&user).join("linked.toml");
    symlink(&real, &link).expect("a link");
    let (path, _) = user
        .loader()
        .edit_project_file(&edit(&["10.1.2.3"], None))
        .expect("a file");
    assert_eq!(path, link);
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    assert_eq!(
        fs::metadata(&real).expect("the file").mode() & 0o7777,
        0o640
    );
    assert!(
        fs::read_to_string(&real)
            .expect("the file")
            .contains("10.1.2.3")
    );
    assert_eq!(
        fs::read_dir(user.path("home/dotfiles"))
            .expect("a directory")
            .count(),
        1
    );
}

#[test]
fn a_file_that_is_wrong_or_that_others_can_write_stays_as_it_is() {
    let wanted = edit(&["10.1.2.3"], None);
    for (contents, permissions, why) in [
        ("[network]\nallow = [\n", 0o600, "unclosed array"),
        ("[network]\nalow = []\n", 0o600, "unknown key `alow`"),
        ("[network]\nallow = [\"10.0.0.1/8\"]\n", 0o600, "10.0.0.0/8"),
        ("", 0o620, "others can write the file"),
        ("", 0o602, "others can write the file"),
    ] {
        let user = User::new();
        let file = projects(&user).join("project.toml");
        let text = about(&user, contents);
        user.write(&file, &text);
        mode(&file, permissions);
        let refusal = user
            .loader()
            .edit_project_file(&wanted)
            .expect_err(why)
            .to_string();
        assert!(refusal.contains(why), "{why}: {refusal}");
        assert_eq!(fs::read_to_string(&file).expect("the file"), text);
        assert_eq!(
            fs::read_dir(projects(&user)).expect("a directory").count(),
            1
        );
    }
}

#[test]
fn where_others_or_the_command_can_write_no_file_is_made() {
    let wanted = edit(&["10.1.2.3"], None);
    let user = User::new();
    mode(projects(&user), 0o777);
    let refusal = user
        .loader()
        .edit_project_file(&wanted)
        .expect_err("a refusal");
    assert!(
        refusal.to_string().contains("others can write"),
        "{refusal}"
    );
    assert_eq!(
        fs::read_dir(projects(&user)).expect("a directory").count(),
        0
    );

    let user = User::new();
    let mut loader = user.loader();
    let inside = user.path("home/project/.config");
    loader.places = Places::new(&user.home(), &user.path("home/project"), |name| {
        (name == "XDG_CONFIG_HOME").then(|| inside.clone().into())
    });
    let refusal = loader.edit_project_file(&wanted).expect_err("a refusal");
    assert!(
        refusal.to_string().contains("is in the workspace"),
        "{refusal}"
    );
    assert!(!inside.exists());
}

#[test]
fn what_the_administrator_locked_is_not_written() {
    let user = User::new();
    user.write(user.path("etc/config.toml"), "lock = [\"network.allow\"]\n");
    let refusal = user.loader().edit_project_file(&edit(&["10.1.2.3"], None));
    let refusal = refusal.expect_err("a refusal").to_string();
    assert!(refusal.contains("network.allow"), "{refusal}");
    assert_eq!(
        fs::read_dir(projects(&user)).expect("a directory").count(),
        0
    );
}

#[test]
fn edits_at_the_same_time_all_arrive() {
    let user = User::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let loader = user.loader();
            scope.spawn(move || {
                let rule = format!("10.1.2.{number}");
                loader
                    .edit_project_file(&edit(&[&rule], None))
                    .expect("an edit");
            });
        }
    });
    assert_eq!(user.load().effective.network.allow.len(), 8);
    assert_eq!(
        fs::read_dir(projects(&user)).expect("a directory").count(),
        1
    );
}
