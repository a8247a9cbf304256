//! `stockade doctor` on machines that lack something.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::Value;
use stockade_world::{Builder, Output, Shape, World, test};

use crate::support::standard;

fn doctor(world: &World) -> Output {
    let command = world.laptop().stockade(["doctor", "--json"]);
    command.run().expect("the doctor ends")
}

/// The checks of this name.
#[track_caller]
fn checks(output: &Output, name: &str) -> Vec<Value> {
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["version"], 1);
    let checks = report["checks"].as_array().expect("checks");
    let named = checks.iter().filter(|check| check["name"] == name);
    named.cloned().collect()
}

#[track_caller]
fn check(output: &Output, name: &str) -> Value {
    let [one] = checks(output, name).try_into().expect("one check");
    one
}

#[test]
fn on_a_machine_that_has_all_a_session_starts() {
    test(&standard(), |world| {
        let output = doctor(world).expect_code(0);
        is_complete(&output);
        for name in [
            "kernel",
            "namespaces",
            "session",
            "configuration",
            "workspace",
            "ping",
        ] {
            assert_eq!(check(&output, name)["state"], "ok", "{name}: {output:?}");
        }
        // For people: a line for each, and nothing left behind.
        let text = world.laptop().stockade(["doctor"]).run().expect("doctor");
        let text = text.expect_code(0).stdout();
        assert!(text.contains("a session with a jail was started"), "{text}");
        let left = fs::read_dir("/tmp").expect("/tmp").flatten();
        let left = left.filter(|it| it.file_name().to_string_lossy().contains("stockade"));
        assert_eq!(left.count(), 0);
    });
}

#[test]
fn in_a_container_it_says_what_is_weaker_and_which_argument_mends_it() {
    test(&standard().shape(Shape::Container), |world| {
        let output = doctor(world).expect_code(0);
        is_complete(&output);
        assert_eq!(check(&output, "session")["state"], "ok", "{output:?}");
        let proc = check(&output, "proc");
        assert_eq!(proc["state"], "warning", "{output:?}");
        assert!(
            proc["cost"].is_string() && proc["fix"].is_string(),
            "{proc}"
        );
    });
}

#[test]
fn where_no_namespaces_are_allowed_it_fails_and_names_the_setting() {
    test(&standard(), |world| {
        fs::write("/proc/sys/user/max_user_namespaces", "0").expect("a setting");
        let output = doctor(world).expect_code(1);
        let namespaces = check(&output, "namespaces");
        assert_eq!(namespaces["state"], "failure", "{output:?}");
        let fix = "sudo sysctl user.max_user_namespaces=10000";
        assert_eq!(namespaces["fix"], fix);
        assert_eq!(check(&output, "session")["state"], "failure");
        let text = world.laptop().stockade(["doctor"]).run().expect("doctor");
        let text = text.expect_code(1).stdout();
        assert!(text.ends_with("Fix the failures above to start sessions.\n"));
    });
}

/// All clauses are there, and whatever is not well says what it costs and what mends it.
#[track_caller]
fn is_complete(output: &Output) {
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = report["checks"].as_array().expect("checks");
    let named = |name: &str| all.iter().any(|check| check["name"] == name);
    for name in [
        "kernel",
        "namespaces",
        "nft",
        "bubblewrap",
        "session",
        "ping",
    ] {
        assert!(named(name), "{name}: {report}");
    }
    for check in all.iter().filter(|check| check["state"] != "ok") {
        assert!(
            check["cost"].is_string() && check["fix"].is_string(),
            "{check}"
        );
    }
}

#[test]
fn without_bubblewrap_it_fails_and_says_what_to_install() {
    test(&standard(), |world| {
        world
            .laptop()
            .remove_program("/usr/bin/bwrap")
            .expect("remove");
        let output = doctor(world).expect_code(1);
        for (name, found) in [
            ("bubblewrap", "not installed"),
            ("session", "not tried, for want of bubblewrap"),
        ] {
            let check = check(&output, name);
            assert_eq!(check["state"], "failure", "{output:?}");
            let said = check["found"].as_str().expect("text");
            assert!(said.contains(found), "{check}");
        }
        // Once.
        for words in ["not installed", "install the package"] {
            assert_eq!(output.stdout().matches(words).count(), 1, "{output:?}");
        }
    });
}

#[test]
fn a_directory_that_is_gone_is_told_once() {
    test(&standard(), |world| {
        let line = "mkdir gone && cd gone && rmdir ../gone && exec stockade doctor";
        let doctor = world.laptop().command("sh").args(["-c", line]);
        let output = doctor.run().expect("the doctor ends").expect_code(1);
        let said = output.stdout();
        assert_eq!(said.matches("current directory").count(), 1, "{said}");
        assert!(said.contains("a session with a jail was started"), "{said}");
    });
}

#[test]
fn an_old_bubblewrap_fails() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let old = "#!/bin/sh\necho bubblewrap 0.4.1\n";
        laptop
            .replace_program("/usr/bin/bwrap", old)
            .expect("replace");
        let output = doctor(world).expect_code(1);
        let found = check(&output, "bubblewrap");
        assert!(
            found["found"].as_str().expect("text").contains("0.4.1"),
            "{found}"
        );
    });
}

#[test]
fn a_broken_bubblewrap_is_told_by_what_it_said() {
    test(&standard(), |world| {
        let broken = "#!/bin/sh\n[ \"$1\" = --version ] && exec echo bubblewrap 0.12.0\n\
                      echo 'bwrap: no such luck' >&2; exit 1\n";
        world
            .laptop()
            .replace_program("/usr/bin/bwrap", broken)
            .expect("replace");
        let output = doctor(world).expect_code(1);
        let session = check(&output, "session");
        assert_eq!(session["state"], "failure");
        assert!(
            session["found"]
                .as_str()
                .expect("text")
                .contains("no such luck"),
            "{session}"
        );
        assert_eq!(check(&output, "bubblewrap")["state"], "ok", "the control");
    });
}

#[test]
fn a_configuration_that_is_wrong_or_that_others_can_write_fails() {
    const CONFIG: &str = "/home/dev/.config/stockade/config.toml";
    test(&standard(), |world| {
        let state = |mode: u32, text: &str| {
            fs::write(CONFIG, text).expect("write");
            fs::set_permissions(CONFIG, fs::Permissions::from_mode(mode)).expect("its mode");
            let output = doctor(world);
            (output.code(), check(&output, "configuration"))
        };
        let (code, fine) = state(0o600, "[network]\ninternet = true\n");
        assert_eq!((code, &fine["state"]), (0, &"ok".into()), "{fine}");
        let (code, misspelt) = state(0o600, "[network]\ninternett = true\n");
        assert_eq!(
            (code, &misspelt["state"]),
            (1, &"failure".into()),
            "{misspelt}"
        );
        assert!(
            misspelt["found"]
                .as_str()
                .expect("text")
                .contains("config.toml:2"),
            "{misspelt}"
        );
        let (code, open) = state(0o666, "");
        assert_eq!((code, &open["state"]), (1, &"failure".into()), "{open}");
        assert!(
            open["found"].as_str().expect("text").contains("chmod go-w"),
            "{open}"
        );
    });
}

#[test]
fn a_directory_that_cannot_be_a_workspace_is_a_warning_only() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let command = laptop
            .stockade(["doctor", "--json"])
            .directory(laptop.home());
        let output = command.run().expect("doctor").expect_code(0);
        assert_eq!(
            check(&output, "workspace")["state"],
            "warning",
            "{output:?}"
        );
        assert_eq!(check(&output, "session")["state"], "ok", "{output:?}");
    });
}

#[test]
fn the_profile_for_apparmor_is_for_root_to_write_and_never_half_written() {
    test(
        &Builder::standard().product(env!("CARGO_BIN_EXE_stockade")),
        |world| {
            let output = world
                .laptop()
                .stockade(["doctor", "--write-apparmor"])
                .run();
            let output = output.expect("doctor").expect_code(125);
            assert!(output.stderr().contains("fix:"), "{output:?}");
            let written = fs::read_dir("/etc/apparmor.d")
                .into_iter()
                .flatten()
                .flatten();
            let mut written = written.map(|it| it.file_name().to_string_lossy().into_owned());
            assert!(!written.any(|name| name.starts_with("stockade")));
        },
    );
}
