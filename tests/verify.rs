//! `stockade verify`, on machines and with configurations of all kinds. That each check fails
//! when its protection is taken away is tested in `sabotage/`.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use serde_json::Value;
use stockade_sys::confine::Landlock;
use stockade_world::{
    Login, Output, PATIENCE, Packet, Protocol, Shape, Signal, Size, Standard, World, eventually,
    test,
};

use crate::support::standard;

const CONFIG: &str = "/home/dev/.config/stockade/config.toml";

/// Runs it, and looks that nothing stays behind.
#[track_caller]
fn verify(world: &World, flags: &[&str]) -> (i32, Value) {
    let command = world.laptop().stockade(["verify", "--json"]).args(flags);
    let output = command.run().expect("verify ends");
    let report = serde_json::from_slice(&output.stdout);
    let report: Value = report.unwrap_or_else(|_| panic!("no report: {output:?}"));
    assert_eq!(left_behind(world), Vec::<PathBuf>::new());
    (output.code(), report)
}

/// What verify puts up is called by its name.
fn left_behind(world: &World) -> Vec<PathBuf> {
    let (home, project) = (world.laptop().home(), world.laptop().workspace());
    let places = [
        Path::new("/tmp"),
        Path::new("/var/tmp"),
        Path::new("/dev/shm"),
        home,
        &project,
    ];
    let entries = places.map(|place| fs::read_dir(place).expect("a directory"));
    let paths = entries.into_iter().flatten().flatten().map(|it| it.path());
    paths
        .filter(|path| path.to_string_lossy().contains("stockade-verify"))
        .collect()
}

/// The names of the checks with this outcome.
fn with(report: &Value, outcome: &str) -> Vec<String> {
    let checks = report["checks"].as_array().expect("checks");
    let named = checks.iter().filter(|check| check["outcome"] == outcome);
    named
        .map(|check| check["check"].as_str().expect("a name").to_owned())
        .collect()
}

#[track_caller]
fn reason(report: &Value, check: &str) -> String {
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|it| it["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no check {check}"));
    found["reason"].as_str().expect("a reason").to_owned()
}

/// What the kernel of the machine decides is not for a snapshot.
fn has_scopes() -> bool {
    let has = Landlock::of_this_kernel() >= Landlock::Version(6);
    if !has {
        eprintln!("skipped: this kernel has no scopes of Landlock, and the snapshot has");
    }
    has
}

#[track_caller]
fn assert_snapshot(mut report: Value, name: &str, snapshot: &str) {
    for changing in ["policy", "stockade"] {
        report[changing] = "…".into();
    }
    let text = format!("{report:#}\n");
    assert!(
        text == snapshot,
        "not as tests/snapshots/{name}.json has it; it is now:\n{text}"
    );
}

#[test]
fn on_a_desktop_all_holds() {
    test(&standard(), |world| {
        let (code, report) = verify(world, &[]);
        assert_eq!(code, 0, "{report:#}");
        assert_eq!(with(&report, "fail"), [""; 0]);
        if has_scopes() {
            let snapshot = include_str!("snapshots/verify-desktop.json");
            assert_snapshot(report, "verify-desktop", snapshot);
        }
    });
}

#[test]
fn in_a_container_all_holds_that_can_be_told() {
    test(&standard().shape(Shape::Container), |world| {
        let (code, report) = verify(world, &[]);
        assert_eq!(code, 0, "{report:#}");
        assert_eq!(with(&report, "fail"), [""; 0]);
        if has_scopes() {
            let snapshot = include_str!("snapshots/verify-container.json");
            assert_snapshot(report, "verify-container", snapshot);
        }
    });
}

#[test]
fn a_jail_that_is_off_is_a_failure() {
    test(&standard(), |world| {
        let (code, report) = verify(world, &["--mode", "host"]);
        assert_eq!(code, 1, "{report:#}");
        let failed = with(&report, "fail");
        for check in [
            "jail",
            "loopback",
            "addresses",
            "ipv6",
            "lateral",
            "metadata",
            "listeners",
        ] {
            assert!(
                failed.contains(&format!("network.{check}")),
                "{check}: {report:#}"
            );
        }
        assert!(
            reason(&report, "network.jail").contains("--mode"),
            "{report:#}"
        );
        // The wall stands all the same.
        assert!(with(&report, "pass").contains(&"files.home".to_owned()));
    });
}

#[test]
fn it_holds_without_a_network_with_strict_hardening_and_with_names_only() {
    test(&standard(), |world| {
        for flags in [
            &["--mode", "none"][..],
            &["--hardening", "strict"],
            &["--internet=false"],
            &["--root", "all"],
        ] {
            let (code, report) = verify(world, flags);
            assert_eq!(code, 0, "{flags:?}: {report:#}");
            let strict = flags.contains(&"strict");
            let passed = with(&report, "pass");
            assert_eq!(
                passed.contains(&"nested.none".to_owned()),
                strict,
                "{report:#}"
            );
        }
    });
}

#[test]
fn as_root_all_holds_that_can_be_told() {
    test(&standard().login(Login::Root), |world| {
        let (code, report) = verify(world, &[]);
        assert_eq!(code, 0, "{report:#}");
    });
}

#[test]
fn what_the_configuration_opens_is_said_and_is_no_failure() {
    test(&standard(), |world| {
        let config = "[network]\nallow = [\"169.254.169.254\", \"10.0.0.0/8\", \"192.168.10.5\"]\n\
                      [env]\npass = [\"SSH_AUTH_SOCK\"]\n[files]\nread = [\"~/.aws\"]\n";
        fs::write(CONFIG, config).expect("write");
        let (code, report) = verify(world, &[]);
        assert_eq!(code, 0, "{report:#}");
        assert!(
            reason(&report, "network.metadata").contains("169.254.169.254"),
            "{report:#}"
        );
        assert!(
            reason(&report, "network.lateral").contains("10.255.255.254"),
            "{report:#}"
        );
        assert!(
            reason(&report, "network.addresses").contains("192.168.10.5"),
            "{report:#}"
        );
        assert!(
            reason(&report, "environment.secrets").contains("SSH_AUTH_SOCK"),
            "{report:#}"
        );
        assert!(
            reason(&report, "files.credentials").contains(".aws"),
            "{report:#}"
        );
    });
}

#[test]
fn where_the_network_is_locked_nothing_is_given_and_what_proves_nothing_is_inconclusive() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let locked = "lock = [\"network\"]\n";
        laptop
            .write_etc("stockade/config.toml", locked)
            .expect("write");
        let (code, report) = verify(world, &[]);
        assert_eq!(code, 0, "{report:#}");
        let open = with(&report, "inconclusive");
        for check in ["control", "loopback", "addresses", "lateral"] {
            assert!(open.contains(&format!("network.{check}")), "{report:#}");
        }
    });
}

#[test]
fn an_agent_is_verified_with_its_profile_though_it_is_not_installed() {
    test(&standard(), |world| {
        let (code, report) = verify(world, &["--profile", "claude"]);
        assert_eq!(
            (code, &report["profile"]),
            (0, &"claude".into()),
            "{report:#}"
        );
    });
}

#[test]
fn nothing_is_sent_beyond_the_machine() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let capture = laptop.capture().expect("capture");
        for flags in [
            &[][..],
            &["--internet=false"],
            &["--mode", "host"],
            &["--mode", "none"],
        ] {
            verify(world, flags);
        }
        let leaves = |packet: &Packet| {
            let is_own =
                |address: IpAddr| address.is_loopback() || laptop.addresses().contains(&address);
            // Neighbour discovery is the kernels' own business.
            packet.protocol != Protocol::Icmp
                && !(is_own(packet.source) && is_own(packet.destination))
        };
        let left: Vec<_> = capture.packets().into_iter().filter(leaves).collect();
        assert!(left.is_empty(), "{left:?}");
        // The control: the same capture sees what does leave.
        let control = laptop.command("curl").args(["-s", "http://93.184.216.34/"]);
        control.run().expect("curl").expect_success();
        assert!(capture.count(leaves) > 0);
    });
}

#[test]
fn a_session_that_does_not_start_is_125_with_the_reason() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        laptop.remove_program("/usr/bin/bwrap").expect("remove");
        let output: Output = laptop.stockade(["verify"]).run().expect("verify ends");
        assert_eq!(output.code(), 125, "{output:?}");
        assert!(
            output.stderr().contains("bubblewrap is not installed"),
            "{output:?}"
        );
        assert_eq!(output.stdout(), "");
    });
}

#[test]
fn a_signal_ends_it_and_what_was_put_up_is_removed() {
    test(&standard(), |world| {
        let command = world.laptop().stockade(["verify"]);
        let running = command.spawn().expect("start");
        let put_up = || {
            left_behind(world)
                .iter()
                .any(|path| path.starts_with("/home"))
        };
        eventually("a file in the home", PATIENCE, put_up).expect("the control");
        running.signal(Signal::TERM).expect("signal");
        let output = running.wait().expect("it ends");
        assert_eq!(output.code(), 128 + 15, "{output:?}");
        assert_eq!(left_behind(world), Vec::<PathBuf>::new());
    });
}

#[test]
fn on_a_terminal_it_ends_and_the_shell_has_the_terminal_again() {
    test(&standard(), |world| {
        let shell = world.laptop().command("bash").args(["--norc", "-i"]);
        let mut terminal = shell.terminal(Size::default()).expect("a terminal");
        for command in ["doctor", "verify"] {
            let line = format!("stockade {command} > /dev/null; echo \"{command} said $?\"\n");
            terminal.write(line).expect("write");
            terminal
                .expect(&format!("{command} said 0"))
                .expect("its exit code");
            terminal.expect_foreground("bash").expect("the shell");
        }
        terminal.write("exit\n").expect("write");
        assert!(terminal.wait().expect("the shell ends").success());
    });
}

#[test]
fn the_prober_by_itself_does_nothing() {
    test(&standard(), |world| {
        let output = world
            .laptop()
            .stockade(["verify-probe"])
            .run()
            .expect("it ends");
        assert_eq!(
            (output.code(), output.stdout().as_str()),
            (125, ""),
            "{output:?}"
        );
    });
}

/// `sabotage/` has the control: that its program holds the same words, and heeds them.
#[test]
fn no_variable_takes_a_protection_away_and_the_program_knows_none() {
    test(&standard(), |world| {
        // Where the laptop has it: the place where it was built may be closed to its user.
        let program = fs::read("/run/world/bin/stockade").expect("the program");
        let holds = |mark: &[u8]| program.windows(mark.len()).any(|bytes| bytes == mark);
        assert!(holds(b"bubblewrap"), "the program is not what was read");
        assert!(!holds(b"STOCKADE_SABOTAGE"));
        for sabotage in ["jail", "filter", "home", "said: user"] {
            let command = world.laptop().stockade(["verify"]);
            let command = command.env("STOCKADE_SABOTAGE", sabotage);
            command.run().expect("verify ends").expect_success();
        }
    });
}
