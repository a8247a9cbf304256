//! The configuration in force, in real sessions: each key that is enforced is flipped in a
//! file, and what the command inside can do changes. In closed worlds.

use std::{fs, os::unix::fs::PermissionsExt as _};

use stockade_world::{Builder, Output, Site, Standard, World, test};

fn standard() -> Builder {
    Builder::standard().product(env!("CARGO_BIN_EXE_stockade"))
}

const CONFIG: &str = "/home/dev/.config/stockade/config.toml";
const WORKSPACE_FILE: &str = "/home/dev/project/.stockade.toml";
const DEVICE: &str = "curl -sS -f --max-time 5 http://192.168.10.21/";
const WEB: &str = "curl -sS -f --max-time 5 http://www.example.com/";

fn write(path: &str, text: &str) {
    fs::write(path, text).expect("write");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("permissions");
}

fn run(world: &World, options: &[&str], line: &str) -> Output {
    let command = world.laptop().stockade(["run"]).args(options);
    command
        .args(["--", "sh", "-c", line])
        .run()
        .expect("stockade ends")
}

/// Whether a request inside succeeds.
fn reaches(world: &World, line: &str) -> bool {
    run(world, &[], line).code() == 0
}

#[test]
fn what_files_say_about_the_network_holds_inside() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let _host = world
            .laptop()
            .http("127.0.0.1:5432", Site::empty())
            .expect("listen");
        let database = "curl -s -o /dev/null --max-time 5 http://127.0.0.1:5432/";

        write(CONFIG, "");
        assert_eq!(
            [DEVICE, WEB, database].map(|line| reaches(world, line)),
            [false, true, false]
        );
        write(
            CONFIG,
            "[network]\nallow = [\"tcp://192.168.10.21:80\"]\nhost_ports = [5432]\n",
        );
        assert_eq!(
            [DEVICE, WEB, database].map(|line| reaches(world, line)),
            [true, true, true]
        );
        write(
            CONFIG,
            "[network]\ninternet = false\nallow = [\"192.168.10.21\"]\n",
        );
        assert_eq!(
            [DEVICE, WEB, database].map(|line| reaches(world, line)),
            [true, false, false]
        );
        write(CONFIG, "[network]\ninternet = false\nallow = []\n");
        assert_eq!(
            [DEVICE, WEB, database].map(|line| reaches(world, line)),
            [false, false, false]
        );
        // What is typed comes last, and profiles are for their command.
        assert_eq!(run(world, &["--internet"], WEB).code(), 0);
        write(
            CONFIG,
            "[network]\ninternet = false\n[profiles.sh.network]\ninternet = true\n[profiles.off]\n",
        );
        assert!(reaches(world, WEB));
        assert_ne!(run(world, &["--profile", "off"], WEB).code(), 0);
    });
}

#[test]
fn denials_are_told_of_unless_the_file_says_not_to() {
    test(&standard(), |world| {
        write(CONFIG, "");
        assert!(
            run(world, &[], DEVICE)
                .stderr()
                .contains("denied tcp://192.168.10.21:80")
        );
        write(CONFIG, "[network]\nlog_denials = false\n");
        assert!(!run(world, &[], DEVICE).stderr().contains("denied"));
    });
}

#[test]
fn what_the_administrator_locked_stays() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let policy = "lock = [\"network\"]\n[network]\ninternet = false\n";
        laptop
            .write_etc("stockade/config.toml", policy)
            .expect("write");
        write(CONFIG, "");
        let _net = Standard::serve(world).expect("servers");
        assert!(!reaches(world, WEB));
        let both = |refused: &Output| {
            assert_eq!(refused.code(), 125, "{refused:?}");
            assert!(
                refused.stderr().contains("/etc/stockade/config.toml:1"),
                "{refused:?}"
            );
        };
        both(&run(world, &["--internet"], WEB));
        both(&run(world, &["--allow", "192.168.10.21"], DEVICE));
        write(CONFIG, "[network]\ninternet = true\n");
        both(&run(world, &[], WEB));
        // The control: without the lock, the user decides.
        laptop
            .write_etc("stockade/config.toml", "[network]\ninternet = false\n")
            .expect("write");
        assert!(reaches(world, WEB));
    });
}

#[test]
fn the_projects_own_file_counts_only_when_it_is_trusted_and_says_so() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        write(CONFIG, "");
        write(WORKSPACE_FILE, "[network]\nallow = [\"192.168.10.21\"]\n");
        let notice = "stockade: ignoring .stockade.toml";
        let untrusted = run(world, &["--quiet"], DEVICE);
        assert_ne!(untrusted.code(), 0);
        assert_eq!(
            untrusted.stderr().matches(notice).count(),
            1,
            "{untrusted:?}"
        );

        let trust = || {
            world
                .laptop()
                .stockade(["trust", "--yes"])
                .run()
                .expect("trust")
                .expect_success()
        };
        trust();
        let trusted = run(world, &[], DEVICE).expect_success();
        assert_eq!(trusted.stderr(), "");

        // The command inside writes the file, and tries to agree to it.
        let planted =
            "printf '[network]\\nallow = [\"10.20.0.5\", \"192.168.10.21\"]\\n' > .stockade.toml";
        let inside = format!("{planted}; stockade trust --yes; true");
        run(world, &[], &inside).expect_success();
        let changed = run(world, &["--quiet"], DEVICE);
        assert_ne!(changed.code(), 0);
        assert!(
            changed
                .stderr()
                .contains("has changed since you trusted it"),
            "{changed:?}"
        );
        trust();
        run(world, &[], DEVICE).expect_success();

        // A file that narrowed cannot be got rid of from inside.
        write(WORKSPACE_FILE, "[network]\ninternet = false\n");
        trust();
        run(world, &[], "rm .stockade.toml").expect_success();
        let refused = run(world, &[], WEB);
        assert_eq!(refused.code(), 125, "{refused:?}");
        assert!(
            refused
                .stderr()
                .contains("restrictions of network.internet"),
            "{refused:?}"
        );
        world
            .laptop()
            .stockade(["trust", "--revoke"])
            .run()
            .expect("revoke")
            .expect_success();
        assert!(reaches(world, WEB));
    });
}

#[test]
fn nothing_of_the_configuration_is_to_be_seen_inside() {
    test(&standard(), |world| {
        write(CONFIG, "# mine\n");
        write(WORKSPACE_FILE, "# ours\n");
        let laptop = world.laptop();
        laptop
            .write_etc("stockade/config.toml", "# the administrator's\n")
            .expect("write");
        laptop
            .stockade(["trust", "--yes"])
            .run()
            .expect("trust")
            .expect_success();
        let outside = laptop
            .command("sh")
            .args(["-c", "ls ~/.config/stockade ~/.local/state/stockade/trust"]);
        outside.run().expect("ls").expect_success();
        let inside = run(
            world,
            &[],
            "ls ~/.config ~/.local/state; cat ~/.config/stockade/config.toml; ls -A ~",
        );
        assert!(
            !inside.stdout().contains("stockade") && !inside.stdout().contains("mine"),
            "{inside:?}"
        );
        let outside = laptop
            .command("cat")
            .arg("/etc/stockade/config.toml")
            .run()
            .expect("cat");
        assert_eq!(outside.expect_success().stdout(), "# the administrator's\n");
        let etc = run(world, &[], "cat /etc/stockade/config.toml");
        assert!(etc.code() != 0 && etc.stdout().is_empty(), "{etc:?}");
    });
}

#[test]
fn the_logs_are_not_to_be_seen_inside_wherever_they_are() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let state = laptop.home().join("state");
        fs::create_dir(&state).expect("a directory");
        fs::write(state.join("other"), "not ours").expect("write");
        let given = state.to_str().expect("a plain path");
        let session = |options: &[&str], line: &str| {
            let session = laptop.stockade(["run"]).env("XDG_STATE_HOME", given);
            let session = session.args(options).args(["--", "sh", "-c", line]);
            session.run().expect("stockade ends")
        };
        // The first one finds no directory of Stockade's yet.
        for number in 1..=2 {
            let line = format!("sleep 0.3; find {given} -type f");
            let inside = session(&["--read", given], &line);
            assert_eq!(inside.stdout(), format!("{given}/other\n"), "{inside:?}");
            let logs = fs::read_dir(state.join("stockade/sessions")).expect("logs");
            assert_eq!(logs.count(), number);
        }
        let sessions = format!("{given}/stockade/sessions");
        let refused = session(&["--write", &sessions], "true").expect_code(125);
        assert!(
            refused.stderr().contains("belongs to Stockade"),
            "{refused:?}"
        );
    });
}

#[test]
fn a_limit_that_cannot_be_had_is_told_at_the_start() {
    test(&standard(), |world| {
        let limited = run(world, &["--limit", "memory=1G"], "true").expect_success();
        let log = world.laptop().stockade(["log", "--json"]).run();
        let log = log.expect("a log").expect_success().stdout();
        let absent = log.contains("\"memory of all processes together\":\"absent: ");
        let told = limited
            .stderr()
            .contains("WARNING: not to be had here (--limit): memory of");
        assert_eq!(told, absent, "{limited:?}");
        // Who asks for none misses none.
        assert_eq!(run(world, &[], "true").expect_success().stderr(), "");
    });
}
