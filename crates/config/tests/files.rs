//! Which files count: those that nobody but the user and root can have written.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
    process::Command,
};

use stockade_config::{Key, LayerKind, Places, check_file};
use stockade_world::is_real_root;

#[path = "files/edit.rs"]
mod edit;
mod support;

use support::{NO_INTERNET, User, mode};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The file counts: the control of every refusal here.
#[track_caller]
fn counts(user: &User) {
    assert!(!user.load().effective.network.internet.value);
}

#[test]
fn files_that_are_not_there_are_fine() {
    let user = User::new();
    let loaded = user.load();
    assert!(Key::ALL.iter().all(|key| loaded.effective.is_default(*key)));
    assert_eq!(loaded.files, []);
    fs::remove_dir_all(user.path("home/.config")).expect("remove");
    user.load();
}

#[test]
fn all_three_files_are_found_and_heard_in_their_order() {
    let user = User::new();
    user.write(user.path("etc/config.toml"), "network.host_ports = [1]\n");
    user.write(user.config(), "network.host_ports = [2]\n");
    let project = "workspace = \"~/project\"\nnetwork.host_ports = [3]\n";
    user.write(
        user.path("home/.config/stockade/projects/any name.toml"),
        project,
    );
    let loaded = user.load();
    let ports: Vec<u16> = loaded
        .effective
        .network
        .host_ports
        .iter()
        .map(|port| port.value.get())
        .collect();
    assert_eq!(ports, [1, 2, 3]);
    let kinds: Vec<_> = loaded.files.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        [LayerKind::System, LayerKind::User, LayerKind::Project]
    );
}

#[test]
fn a_file_that_others_can_write_is_refused_until_the_proposed_command_is_run() {
    for bits in [0o620, 0o602, 0o622, 0o666, 0o4620] {
        let user = User::new();
        user.write(user.config(), NO_INTERNET);
        counts(&user);
        mode(user.config(), bits);
        let refusal = user.refused();
        assert!(
            refusal.contains("others can write the file /D/home/.config/stockade/config.toml"),
            "{refusal}"
        );
        run_the_fix(&user, &refusal);
        counts(&user);
    }
    // The administrator's file, too.
    let user = User::new();
    user.write(user.path("etc/config.toml"), NO_INTERNET);
    counts(&user);
    mode(user.path("etc/config.toml"), 0o664);
    assert!(user.refused().contains("/D/etc/config.toml"));
}

#[test]
fn a_directory_that_others_can_write_is_refused_until_the_proposed_command_is_run() {
    for directory in ["home/.config/stockade", "home/.config", "home"] {
        let user = User::new();
        user.write(user.config(), NO_INTERNET);
        mode(user.path(directory), 0o777);
        let refusal = user.refused();
        assert!(
            refusal.contains(&format!("the directory /D/{directory} ")),
            "{refusal}"
        );
        // Sticky, nobody can replace what is the user's.
        mode(user.path(directory), 0o1777);
        counts(&user);
        mode(user.path(directory), 0o775);
        run_the_fix(&user, &user.refused());
        counts(&user);
    }
}

fn run_the_fix(user: &User, refusal: &str) {
    let (_, command) = refusal.split_once("then run: ").expect("a command");
    let command = command
        .lines()
        .next()
        .expect("a line")
        .replace("/D/", &user.path("").to_string_lossy());
    assert!(command.starts_with("chmod go-w "), "{command}");
    let status = Command::new("sh")
        .args(["-c", &command])
        .status()
        .expect("a shell");
    assert!(status.success());
}

#[test]
fn a_file_or_directory_of_somebody_else_is_refused() {
    // Only root can give files away.
    if !is_real_root() {
        return;
    }
    let user = User::new();
    user.write(user.config(), NO_INTERNET);
    for path in [user.config(), user.path("home/.config"), user.home()] {
        counts(&user);
        chown(&path, Some(12345), None).expect("chown");
        let refusal = user.refused();
        assert!(
            refusal.contains("belongs to another user (uid 12345)"),
            "{refusal}"
        );
        assert!(refusal.contains("then run: chown 0 /D/home"), "{refusal}");
        chown(&path, Some(0), None).expect("chown");
    }
}

#[test]
fn a_link_counts_if_what_it_leads_to_does() {
    let user = User::new();
    let real = user.path("dotfiles/stockade.toml");
    user.write(&real, NO_INTERNET);
    symlink(&real, user.config()).expect("a link");
    counts(&user);
    mode(&real, 0o666);
    assert!(
        user.refused()
            .contains("the file /D/dotfiles/stockade.toml")
    );
    mode(&real, 0o600);
    mode(user.path("dotfiles"), 0o777);
    assert!(user.refused().contains("the directory /D/dotfiles"));
    mode(user.path("dotfiles"), 0o755);
    counts(&user);
    // Who can write the directory of the link can make it lead elsewhere.
    mode(user.path("home/.config/stockade"), 0o777);
    assert!(
        user.refused()
            .contains("the directory /D/home/.config/stockade")
    );
}

#[test]
fn what_is_no_readable_file_is_refused_at_once() {
    let user = User::new();
    symlink("/nonexistent/x", user.config()).expect("a link");
    assert!(
        user.refused()
            .contains("cannot read /D/home/.config/stockade/config.toml")
    );
    fs::remove_file(user.config()).expect("remove");

    fs::create_dir(user.config()).expect("a directory");
    assert!(user.refused().contains("is not a regular file"));
    fs::remove_dir(user.config()).expect("remove");

    let status = Command::new("mkfifo")
        .arg(user.config())
        .status()
        .expect("mkfifo");
    assert!(status.success());
    assert!(user.refused().contains("is not a regular file"));
    fs::remove_file(user.config()).expect("remove");

    user.write(user.config(), NO_INTERNET);
    mode(user.config(), 0o000);
    if is_root() {
        eprintln!("skipped: root can read everything");
    } else {
        assert!(user.refused().contains("cannot read"));
    }
}

#[test]
fn texts_that_are_no_texts_are_refused() {
    let user = User::new();
    user.write(user.config(), b"# fine\n# \xff\n");
    assert!(
        user.refused()
            .contains("config.toml:2 is not UTF-8: invalid byte 0xff")
    );
    user.write(user.config(), b"\xff\xfe[\0n\0");
    assert!(user.refused().contains("config.toml:1 is not UTF-8"));
    user.write(user.config(), vec![b'#'; (16 << 20) + 1]);
    assert!(user.refused().contains("is larger than 16384 KiB"));
    user.write(user.config(), vec![b'#'; 16 << 20]);
    user.load();
    user.write(user.config(), "\u{feff}[network]\r\ninternet = false\r\n");
    counts(&user);
}

#[test]
fn a_configuration_in_the_workspace_is_refused_under_any_name() {
    let user = User::new();
    let planted = user.path("home/project/config/stockade/config.toml");
    user.write(&planted, NO_INTERNET);
    let mut loader = user.loader();
    loader.places.user = user.path("home/project/config/stockade");
    let refusal = loader.load().expect_err("a refusal").to_string();
    assert!(refusal.contains("is in the workspace"), "{refusal}");

    // Also as long as nothing is there.
    loader.places.user = user.path("home/project/nothing/stockade");
    let refusal = loader.load().expect_err("a refusal").to_string();
    assert!(
        refusal.contains("nothing/stockade is in the workspace"),
        "{refusal}"
    );

    // A link there that leads out of it could be another one tomorrow.
    let led = user.path("home/project/led");
    fs::create_dir_all(user.path("home/real/stockade")).expect("a directory");
    symlink(user.path("home/real"), &led).expect("a link");
    loader.places.user = led.join("stockade");
    let refusal = loader.load().expect_err("a refusal").to_string();
    assert!(refusal.contains("is in the workspace"), "{refusal}");

    symlink(&planted, user.config()).expect("a link");
    assert!(user.refused().contains("is in the workspace"));
    // The control: the same file, when the work is somewhere else.
    let mut loader = user.loader();
    loader.places.workspace = user.path("elsewhere");
    assert!(
        !loader
            .load()
            .expect("a configuration")
            .effective
            .network
            .internet
            .value
    );
}

#[test]
fn no_place_to_write_may_hold_the_configuration() {
    let user = User::new();
    for path in [
        "~",
        "~/.config",
        "~/.config/stockade/projects",
        "~/.local/state/stockade",
        "~/.local/share",
        "~/.local/share/stockade/shims",
        "/",
    ] {
        user.write(
            user.config(),
            format!("[files]\nwrite = [\"~/fine\", \"{path}\"]\n"),
        );
        let refusal = user.refused();
        assert!(
            refusal.contains("could change its own sandbox"),
            "{path}: {refusal}"
        );
        assert!(refusal.contains("config.toml:2:20"), "{path}: {refusal}");
    }
    // Through a link as well.
    symlink(user.path("home/.config"), user.path("home/link")).expect("a link");
    user.write(user.config(), "[files]\nwrite = [\"~/link\"]\n");
    user.refused();
    user.write(
        user.config(),
        "[files]\nwrite = [\"~/.config/other\", \"~/data\"]\n",
    );
    user.load();
}

/// A file of the configuration can be a link, to where somebody keeps all such files.
#[test]
fn no_place_to_write_may_hold_what_the_configuration_links_to() {
    let user = User::new();
    let write = "[files]\nwrite = [\"~/dotfiles\"]\n";
    let project = user.path("home/.config/stockade/projects/a.toml");
    let kept = user.path("home/dotfiles/kept.toml");
    for (file, text) in [
        (user.config(), write),
        (project, "workspace = \"~/elsewhere\"\n"),
    ] {
        user.write(user.config(), write);
        user.write(&kept, text);
        user.write(&file, text);
        // The control: a file that only looks the same.
        user.load();
        fs::remove_file(&file).expect("removed");
        symlink(&kept, &file).expect("a link");
        let refusal = user.refused();
        assert!(
            refusal.contains("could change its own sandbox"),
            "{refusal}"
        );
        fs::remove_file(&file).expect("removed");
    }
}

#[test]
fn the_file_about_a_project_is_found_by_the_path_in_it() {
    let user = User::new();
    let projects = user.path("home/.config/stockade/projects");
    symlink(user.path("home/project"), user.path("home/link")).expect("a link");
    let absolute = user.path("home/project").to_string_lossy().into_owned();
    for (workspace, is_ours) in [
        ("~/project", true),
        ("$HOME/project/", true),
        ("~/link", true),
        (&absolute, true),
        ("~/project/sub", false),
        ("~/proj", false),
        ("/nonexistent", false),
    ] {
        user.write(
            projects.join("a.toml"),
            format!("workspace = \"{workspace}\"\n{NO_INTERNET}"),
        );
        assert_eq!(
            !user.load().effective.network.internet.value,
            is_ours,
            "{workspace}"
        );
    }
    // Not a file for it by its name.
    user.write(projects.join("a.toml.bak"), "what?");
    user.load();
}

#[test]
fn files_about_other_projects_do_not_matter_unless_nobody_knows_what_they_are_about() {
    let user = User::new();
    let other = user.path("home/.config/stockade/projects/other.toml");
    user.write(
        &other,
        "workspace = \"~/other\"\n[network]\nmode = \"broken\"\nalow = 1\n",
    );
    user.load();
    user.write(&other, NO_INTERNET);
    assert!(user.refused().contains("`workspace` is missing"));
    user.write(&other, "workspace = [\n");
    user.refused();
    user.write(&other, "workspace = \"~/other\"\n");
    user.load();
    user.write(&other, "workspace = \"~/project\"\n");
    user.write(
        user.path("home/.config/stockade/projects/zwei.toml"),
        "workspace = \"~/project\"\n",
    );
    assert!(
        user.refused()
            .contains("two files are about this workspace: /D/home")
    );
}

#[test]
fn all_mistakes_of_all_files_are_told_together() {
    let user = User::new();
    user.write(user.path("etc/config.toml"), "network.mode = \"x\"\n");
    user.write(
        user.config(),
        "network.alow = []\nfiles.read = [\"relative\"]\n",
    );
    let mut loader = user.loader();
    loader.flags.set(Key::Allow, "10.0.0.1/8");
    let problems = loader.load().expect_err("mistakes");
    assert_eq!(problems.iter().count(), 4);
}

#[test]
fn a_file_is_checked_as_what_it_is_by_its_place() {
    let user = User::new();
    let places: Places = user.loader().places;
    let check = |path: &str| {
        let checked = check_file(&user.path(path), &places);
        let outcome = checked.and_then(|checked| checked.outcome);
        outcome.map_err(|problems| problems.to_string())
    };
    user.write(user.path("etc/config.toml"), "lock = [\"network\"]\n");
    user.write(user.config(), "lock = [\"network\"]\n");
    user.write(
        user.path("home/.config/stockade/projects/a.toml"),
        "workspace = \"/other\"\nfiles.read = [\"x\"]\n",
    );
    user.write(
        user.workspace_file(),
        "files.read = [\"x\"]\nnetwork.host_ports = [1]\nnetwork.publish = [1]\n",
    );
    user.write(user.path("elsewhere.toml"), "files.read = [\"x\"]\n");
    assert_eq!(check("etc/config.toml"), Ok(()));
    assert!(
        check("home/.config/stockade/config.toml")
            .expect_err("a lock")
            .contains("only allowed in /etc/stockade")
    );
    assert_eq!(check("home/.config/stockade/projects/a.toml"), Ok(()));
    assert!(
        check("home/project/.stockade.toml")
            .expect_err("ports")
            .contains("cannot be both")
    );
    assert!(
        check("elsewhere.toml")
            .expect_err("a path")
            .contains("relative")
    );
    assert!(
        check("nowhere.toml")
            .expect_err("nothing")
            .contains("does not exist")
    );
}

#[test]
fn a_file_is_checked_wherever_it_is_with_what_a_launch_would_say_of_its_place() {
    let user = User::new();
    let places: Places = user.loader().places;
    let check = |path: &str| check_file(&user.path(path), &places).expect("a file");
    // In the workspace, where a launch would not even read it.
    user.write(
        user.path("home/project/etc/config.toml"),
        "lock = [\"network\"]\n",
    );
    let checked = check("home/project/etc/config.toml");
    assert!(checked.outcome.is_ok(), "{checked:?}");
    assert_eq!((checked.role, checked.counts), (LayerKind::System, false));
    let refused = checked.refused.expect("a reason");
    assert!(refused.contains("is in the workspace"), "{refused}");

    user.write(
        user.path("a.toml"),
        "workspace = \"/a\"\nfiles.read = [\"x\"]\n",
    );
    let checked = check("a.toml");
    assert!(
        checked.outcome.is_ok() && checked.refused.is_none(),
        "{checked:?}"
    );
    assert_eq!((checked.role, checked.counts), (LayerKind::Project, false));

    let shared = user.path("shared.toml");
    user.write(shared.clone(), "network.alow = []\n");
    mode(&shared, 0o666);
    let checked = check("shared.toml");
    assert_eq!(checked.role, LayerKind::User);
    assert!(
        checked
            .refused
            .is_some_and(|why| why.contains("others can write"))
    );
    assert!(checked.outcome.is_err());

    // At its place it is refused, and that is what is wrong with it.
    user.write(user.config(), "");
    mode(user.config(), 0o666);
    assert!(check_file(&user.config(), &places).is_err());
}

#[test]
fn the_variable_of_an_agent_moves_its_state_and_nothing_else() {
    let user = User::new();
    let moved = user.path("home/moved");
    let mut loader = user.loader();
    loader.built_in = stockade_config::BUILT_IN.to_vec();
    loader
        .environment
        .insert("CLAUDE_CONFIG_DIR".into(), moved.clone().into());
    let mut written = |agent: &str| {
        loader.choice = stockade_config::Choice::Command(agent.to_owned());
        let write = loader
            .load()
            .expect("a configuration")
            .effective
            .files
            .write;
        write.into_iter().map(|it| it.value).collect::<Vec<_>>()
    };
    assert_eq!(written("claude"), [moved]);
    assert_eq!(written("codex"), [user.path("home/.codex")]);
    assert!(written("make").is_empty());
}

#[test]
fn a_lock_holds_for_the_variable_that_moves_an_agents_state() {
    let user = User::new();
    user.write(user.path("etc/config.toml"), "lock = [\"files.write\"]\n");
    let mut loader = user.loader();
    loader.built_in = stockade_config::BUILT_IN.to_vec();
    loader.choice = stockade_config::Choice::Command("codex".to_owned());
    assert!(loader.load().is_ok());
    loader
        .environment
        .insert("CODEX_HOME".into(), user.path("home/moved").into());
    let refused = loader.load().expect_err("a lock").to_string();
    assert!(
        refused.contains("CODEX_HOME moves the agent's state"),
        "{refused}"
    );
    assert!(refused.contains("unset the variable"), "{refused}");
}

/// The port of a login is published in a jail, unless the configuration has other plans for it.
#[test]
fn the_port_of_a_login_is_published_unless_it_is_locked_or_taken() {
    let user = User::new();
    let mut loader = user.loader();
    loader.login = stockade_config::Port::new(1455);
    let published = || {
        let effective = loader.load().expect("a configuration").effective;
        effective
            .network
            .publish
            .iter()
            .map(|it| it.value.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(published(), ["1455"]);
    for text in ["network.mode = \"none\"\n", "network.host_ports = [1455]\n"] {
        user.write(user.config(), text);
        assert_eq!(published(), [""; 0], "{text}");
    }
    user.write(user.config(), "network.publish = [\"1455:8000\"]\n");
    assert_eq!(published(), ["1455:8000"]);
    user.write(user.config(), "");
    user.write(
        user.path("etc/config.toml"),
        "lock = [\"network.publish\"]\n",
    );
    assert_eq!(published(), [""; 0]);
}
