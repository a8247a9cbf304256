use super::*;
use crate::{
    config::{Network, PathRequest, Root},
    facts::{
        EtcFile, EtcSecret, Found, Guarded, Kind, Procfs, SystemForm, SystemPlace,
        tests::{facts, with},
    },
};

fn jail() -> Config {
    Config {
        network: Network::Jail {
            resolv_conf: "nameserver 192.0.2.53\n".into(),
        },
        ..Config::default()
    }
}

/// An operation, and where.
type Placed = (PathBuf, Operation);

fn planned(config: &Config, facts: &Facts) -> Vec<Placed> {
    let plan = Plan::build(config, facts).unwrap();
    plan.files
        .into_iter()
        .map(|step| (step.at, step.operation))
        .collect()
}

fn plan(facts: &Facts) -> Vec<Placed> {
    planned(&jail(), facts)
}

fn position(steps: &[Placed], wanted: impl Fn(&Placed) -> bool) -> usize {
    steps.iter().position(wanted).expect("a step of that kind")
}

fn at<'a>(steps: &'a [Placed], path: &str) -> Vec<&'a Operation> {
    let there = steps.iter().filter(|(at, _)| at == Path::new(path));
    there.map(|(_, operation)| operation).collect()
}

#[test]
fn the_workspace_comes_after_the_home_that_hides_it() {
    let steps = plan(&facts());
    let home = position(
        &steps,
        |step| matches!(step, (at, Operation::Empty { mode: 0o700 }) if at == "/home/ada"),
    );
    let workspace = position(
        &steps,
        |step| matches!(step, (at, Operation::Writable { .. }) if at == "/home/ada/project"),
    );
    assert!(home < workspace);
}

#[test]
fn the_workspace_is_all_that_is_writable_of_the_disk() {
    let steps = plan(&facts());
    let writable = steps
        .iter()
        .filter(|(_, step)| matches!(step, Operation::Writable { .. }));
    assert_eq!(writable.count(), 1);
    assert_eq!(steps.last(), Some(&("/".into(), Operation::Freeze)));
}

#[test]
fn only_named_places_of_the_disk_are_shown() {
    let steps = plan(&facts());
    let shown: Vec<_> = steps.iter().filter_map(|(_, it)| it.source()).collect();
    let expected = [
        "/usr",
        "/etc",
        "/opt",
        "/usr/local/bin/stockade",
        "/home/ada/project",
    ];
    assert_eq!(shown, expected.map(Path::new));
}

#[test]
fn system_links_stay_links_if_their_target_is_shown() {
    let mut facts = facts();
    facts.system.push(SystemPlace {
        path: "/gnu".into(),
        form: SystemForm::Link {
            text: "data/gnu".into(),
            real: "/data/gnu".into(),
        },
        reason: "programs",
    });
    let steps = plan(&facts);
    position(
        &steps,
        |step| matches!(step, (at, Operation::Link { text }) if at == "/bin" && text == "usr/bin"),
    );
    position(
        &steps,
        |step| matches!(step, (at, Operation::ReadOnly { source }) if at == "/gnu" && source == "/data/gnu"),
    );
}

#[test]
fn a_home_reached_by_a_link_is_hidden_where_it_really_is() {
    let mut facts = facts();
    facts.home.real = "/data/ada".into();
    facts.workspace = "/data/ada/project".into();
    let steps = plan(&facts);
    position(
        &steps,
        |step| matches!(step, (at, Operation::Empty { .. }) if at == "/data/ada"),
    );
    position(
        &steps,
        |step| matches!(step, (at, Operation::Link { text }) if at == "/home/ada" && text == "/data/ada"),
    );
}

#[test]
fn a_home_that_holds_the_system_is_refused() {
    for home in ["/usr", "/etc", "/dev", "/var"] {
        let mut facts = facts();
        facts.home.real = home.into();
        let result = Plan::build(&Config::default(), &facts);
        assert!(matches!(result, Err(Error::HomeIsSystem(_))), "{home}");
    }
}

#[test]
fn secrets_are_masked_after_the_directory_that_holds_them() {
    let mut facts = facts();
    let secret = |path: &str, is_directory| EtcSecret {
        path: path.into(),
        is_directory,
    };
    facts.secrets = vec![
        secret("/etc/shadow", false),
        secret("/etc/ssl/private", true),
        // A link led here; nothing is shown of it.
        secret("/data/secret", false),
    ];
    let steps = plan(&facts);
    let etc = position(
        &steps,
        |step| matches!(step, (at, Operation::ReadOnly { .. }) if at == "/etc"),
    );
    let shadow = position(
        &steps,
        |step| matches!(step, (at, Operation::HiddenFile) if at == "/etc/shadow"),
    );
    position(
        &steps,
        |step| matches!(step, (at, Operation::HiddenDirectory) if at == "/etc/ssl/private"),
    );
    assert!(etc < shadow);
    assert!(at(&steps, "/data/secret").is_empty());
    // With the whole disk in view, it has to be hidden.
    let config = Config {
        root: Root::All,
        ..jail()
    };
    assert_eq!(at(&planned(&config, &facts), "/data/secret").len(), 1);
}

#[test]
fn root_gets_a_frozen_proc_and_a_container_the_outer_one() {
    let frozen = ("/proc".into(), Operation::Freeze);
    let mut facts = facts();
    assert!(!plan(&facts).contains(&frozen));

    facts.owns_kernel_settings = true;
    assert!(plan(&facts).contains(&frozen));

    facts.procfs = Procfs::Outer;
    let source = "/proc".into();
    assert!(plan(&facts).contains(&("/proc".into(), Operation::ReadOnly { source })));
}

#[test]
fn resolv_conf_lands_where_the_hosts_link_leads() {
    let mut facts = facts();
    let target = "/run/systemd/resolve/stub-resolv.conf";
    facts.resolv_conf = EtcFile {
        real: target.into(),
        exists: false,
        text: String::new(),
    };
    let steps = plan(&facts);
    let run = position(
        &steps,
        |step| matches!(step, (at, Operation::Empty { .. }) if at == "/run"),
    );
    let file = position(
        &steps,
        |step| matches!(step, (at, Operation::Text(_)) if at == target),
    );
    assert!(run < file);
}

#[test]
fn a_read_only_place_without_resolv_conf_is_refused_with_the_fix() {
    let mut facts = facts();
    facts.resolv_conf.exists = false;
    let refused = Plan::build(&jail(), &facts);
    assert!(matches!(refused, Err(Error::NoResolvConf(_))));
    assert!(Plan::build(&Config::default(), &facts).is_ok());
}

#[test]
fn the_home_comes_back_by_class() {
    let directories = [
        "/home/ada/.cache",
        "/home/ada/.config/gh",
        "/home/ada/.local/share",
        "/home/ada/.local/share/applications",
        "/home/ada/.local/share/keyrings",
    ];
    let mut all = directories.map(|path| (path, Kind::Directory)).to_vec();
    all.push(("/home/ada/.local/bin/uv", Kind::File));
    let mut facts = with(facts(), &all);
    facts.reserved.push("/home/ada/.cache/rbw".into());
    let steps = plan(&facts);
    let scratch = |path: &str, reserved: &[&str], fallback| {
        let operation = Operation::Scratch {
            source: path.into(),
            reserved: reserved.iter().map(PathBuf::from).collect(),
            fallback,
        };
        (path.into(), operation)
    };
    let expected = scratch("/home/ada/.local/share", &[], Fallback::Empty);
    let share = position(&steps, |step| *step == expected);
    // What would hold secrets and does not exist.
    let expected = scratch("/home/ada/.cache", &["rbw"], Fallback::Empty);
    position(&steps, |step| *step == expected);
    let applications = position(
        &steps,
        |step| matches!(step, (at, Operation::Empty { .. }) if at.ends_with("applications")),
    );
    let keyrings = position(
        &steps,
        |step| matches!(step, (at, Operation::Absent) if at.ends_with("keyrings")),
    );
    assert!(share < applications && share < keyrings);
    assert!(matches!(
        at(&steps, "/home/ada/.local/bin/uv")[..],
        [Operation::ReadOnly { .. }]
    ));
    // Logins of forges only where they are on.
    assert!(at(&steps, "/home/ada/.config/gh").is_empty());
    let mut config = jail();
    config.forge.gitlab = true;
    assert!(at(&planned(&config, &facts), "/home/ada/.config/gh").is_empty());
    config.forge.github = true;
    let steps = planned(&config, &facts);
    assert_eq!(
        at(&steps, "/home/ada/.config/gh"),
        [&scratch("/home/ada/.config/gh", &[], Fallback::ReadOnly).1]
    );
}

fn request(path: &str) -> Vec<PathRequest> {
    vec![PathRequest::by_user(path)]
}

#[test]
fn missing_paths_are_told_all_together() {
    let config = Config {
        read: vec![PathRequest::by_user("/a"), PathRequest::by_profile("/b")],
        write: request("/c"),
        hide: request("/d"),
        ..Config::default()
    };
    match Plan::build(&config, &facts()) {
        Err(Error::MissingPaths(missing)) => {
            let paths: Vec<_> = missing.iter().map(|(path, _)| path.as_path()).collect();
            assert_eq!(paths, ["/a", "/c", "/d"].map(Path::new));
            assert!(
                missing.iter().all(|(_, by)| by == "the user"),
                "{missing:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_would_undo_the_wall_is_refused() {
    let refused = |config: &Config, path: &str| {
        let facts = with(facts(), &[(path, Kind::Directory)]);
        matches!(Plan::build(config, &facts), Err(Error::PathRefused { .. }))
    };
    for path in ["/", "/home", "/home/ada", "/proc/1", "/dev/sda"] {
        let read = Config {
            read: request(path),
            ..Config::default()
        };
        assert!(refused(&read, path), "read {path}");
    }
    for path in [
        "/home/ada",
        "/home/ada/.config",
        "/home/ada/.config/stockade",
    ] {
        let write = Config {
            write: request(path),
            ..Config::default()
        };
        assert!(refused(&write, path), "write {path}");
    }
    for path in ["/", "/usr", "/home/ada", "/home/ada/project"] {
        let hide = Config {
            hide: request(path),
            ..Config::default()
        };
        assert!(refused(&hide, path), "hide {path}");
    }
    let both = Config {
        read: request("/data"),
        hide: request("/data"),
        ..Config::default()
    };
    let facts_of_it = with(facts(), &[("/data", Kind::Directory)]);
    let built = Plan::build(&both, &facts_of_it);
    assert!(matches!(built, Err(Error::HiddenAndGiven { .. })));
    let fine = Config {
        write: request("/data"),
        read: request("/srv"),
        ..Config::default()
    };
    let both = [("/data", Kind::Directory), ("/srv", Kind::Directory)];
    assert!(Plan::build(&fine, &with(facts(), &both)).is_ok());
}

#[test]
fn files_that_run_outside_are_guarded_unless_configuration_says_otherwise() {
    let guarded = |path: &str| Guarded {
        path: path.into(),
        reason: "a test",
    };
    let mut facts = facts();
    facts.guards.read_only = vec![
        guarded("/home/ada/project/.git/hooks"),
        guarded("/home/ada/project/.vscode"),
    ];
    let guard = |path: &str| (path.into(), Operation::Guard(Guard::ReadOnly));
    let steps = plan(&facts);
    assert!(steps.contains(&guard("/home/ada/project/.git/hooks")));
    assert!(steps.contains(&guard("/home/ada/project/.vscode")));

    let facts = with(facts, &[("/home/ada/project/.vscode", Kind::Directory)]);
    let config = Config {
        write: request("/home/ada/project/.vscode"),
        ..jail()
    };
    let steps = planned(&config, &facts);
    assert!(steps.contains(&guard("/home/ada/project/.git/hooks")));
    assert!(!steps.contains(&guard("/home/ada/project/.vscode")));
}

/// As if this path, with a link at its end, led to that directory.
fn leads(facts: &mut Facts, at: &str, real: &str) {
    let (at, real, kind) = (PathBuf::from(at), real.into(), Kind::Directory);
    facts.found.insert(at.clone(), Found { at, real, kind });
}

#[test]
fn a_request_that_is_a_link_appears_under_its_own_name() {
    let mut facts = facts();
    leads(&mut facts, "/home/ada/data", "/mnt/disk/data");
    let config = Config {
        read: request("/home/ada/data"),
        ..jail()
    };
    let steps = planned(&config, &facts);
    let source = "/mnt/disk/data".into();
    let expected = ("/home/ada/data".into(), Operation::ReadOnly { source });
    assert!(steps.contains(&expected));
    // In the workspace the link itself is in view, so what it leads to has to be there.
    leads(&mut facts, "/home/ada/project/data", "/mnt/disk/data");
    let config = Config {
        read: request("/home/ada/project/data"),
        ..jail()
    };
    assert_eq!(at(&planned(&config, &facts), "/mnt/disk/data").len(), 1);
}

#[test]
fn own_configuration_in_the_workspace_can_be_read_but_not_written() {
    let mut facts = facts();
    leads(
        &mut facts,
        "/home/ada/.config/stockade",
        "/home/ada/project/stockade",
    );
    let guard = Operation::Guard(Guard::ReadOnly);
    assert!(plan(&facts).contains(&("/home/ada/project/stockade".into(), guard)));
}

#[test]
fn a_directory_that_holds_the_workspace_is_no_agents_state() {
    let build = |at: &str| {
        let facts = with(facts(), &[(at, Kind::Directory)]);
        let config = Config {
            agent: crate::config::Agent {
                state: vec![PathRequest::by_profile(at)],
                ..crate::config::Agent::default()
            },
            moved_state: vec![crate::config::MovedState {
                variable: "CODEX_HOME",
                usual: &[".codex"],
                at: at.into(),
            }],
            ..Config::default()
        };
        let facts = Facts {
            workspace: "/home/ada/src/project".into(),
            current_directory: "/home/ada/src/project".into(),
            ..facts
        };
        Plan::build(&config, &facts)
    };
    let refused = build("/home/ada/src").unwrap_err();
    assert!(matches!(refused, Error::StateRefused { .. }), "{refused}");
    assert!(build("/home/ada/srcs").is_ok());
}

#[test]
fn the_way_to_dependencies_that_are_shared_is_watched() {
    let mut facts = facts();
    let workspace = facts.workspace.clone();
    let dependencies = [".venv", "a/b/.venv", "a/c/env"];
    facts.shared.dependencies = dependencies.map(|it| workspace.join(it)).to_vec();
    let plan = Plan::build(&Config::default(), &facts).unwrap();
    let anchors = ["a", "a/b", "a/c"].map(|it| workspace.join(it));
    assert!(plan.anchors().into_iter().eq(&anchors));
    // What lies there can be changed, and is restored if it has to be.
    let is_anchor = |path: &Path| anchors.iter().any(|it| it == path);
    assert!(!plan.covers().any(is_anchor));
    // Where the user gives it, nothing is discarded.
    facts.shared.dependencies.clear();
    let plan = Plan::build(&Config::default(), &facts).unwrap();
    assert!(plan.anchors().is_empty());
}

#[test]
fn a_link_that_leads_elsewhere_for_each_process_is_refused() {
    let mut facts = facts();
    facts.shared.astray = vec![facts.workspace.join(".venv")];
    let result = Plan::build(&Config::default(), &facts);
    assert!(matches!(result, Err(Error::LinkAstray(_))));
}
