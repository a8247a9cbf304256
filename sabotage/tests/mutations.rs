//! Takes each protection away, one by one, and looks that `stockade verify` says so: that the
//! check which is about it fails, and that without sabotage none does.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use stockade_world::{Builder, Standard, World, test};

fn world() -> Builder {
    Builder::standard()
        .product(env!("CARGO_BIN_EXE_stockade-sabotaged"))
        .limit(Duration::from_secs(240))
}

/// What is taken away, and which checks have to fail by that. Others may fail, too.
const MUTATIONS: &[(&str, &[&str])] = &[
    ("ipc", &["namespace.ipc"]),
    ("host name", &["namespace.host-name"]),
    ("said: control group", &["namespace.control-group"]),
    ("said: user", &["namespace.user"]),
    ("said: mount", &["namespace.mount"]),
    ("said: process", &["namespace.process"]),
    ("said: privileges", &["privilege.none-new"]),
    ("said: nested", &["nested.network"]),
    ("said: mounts", &["nested.mounts"]),
    ("said: immutable", &["network.immutable"]),
    ("capabilities", &["privilege.capabilities"]),
    ("filter", &["privilege.filter"]),
    ("filter ioctl(TIOCSTI)", &["call.ioctl.tiocsti"]),
    ("filter ioctl(TIOCLINUX)", &["call.ioctl.tioclinux"]),
    ("filter ioctl(KD)", &["call.ioctl.kd"]),
    ("filter ioctl(VT)", &["call.ioctl.vt"]),
    (
        "filter socket",
        &["call.socket.af_vsock", "call.socket.af_packet"],
    ),
    ("filter socketpair", &["call.socketpair.af_tipc"]),
    ("filter io_uring_setup", &["call.io_uring_setup"]),
    ("filter keyctl", &["call.keyctl"]),
    ("filter add_key", &["call.add_key"]),
    ("filter request_key", &["call.request_key"]),
    ("filter bpf", &["call.bpf"]),
    ("filter perf_event_open", &["call.perf_event_open"]),
    ("filter userfaultfd", &["call.userfaultfd"]),
    (
        "filter ioctl(BTRFS_IOC_SNAP_DESTROY)",
        &["call.ioctl.btrfs_ioc_snap_destroy"],
    ),
    (
        "filter ioctl(BTRFS_IOC_SNAP_DESTROY_V2)",
        &["call.ioctl.btrfs_ioc_snap_destroy_v2"],
    ),
    (
        "filter ioctl(BTRFS_IOC_SNAP_CREATE)",
        &["call.ioctl.btrfs_ioc_snap_create"],
    ),
    (
        "filter ioctl(BTRFS_IOC_SNAP_CREATE_V2)",
        &["call.ioctl.btrfs_ioc_snap_create_v2"],
    ),
    (
        "filter ioctl(BCH_IOCTL_SUBVOLUME_DESTROY)",
        &["call.ioctl.bch_ioctl_subvolume_destroy"],
    ),
    ("filter fcntl(F_SETLEASE)", &["call.fcntl.f_setlease"]),
    ("filter fcntl(F_SETDELEG)", &["call.fcntl.f_setdeleg"]),
    ("filter fcntl(O_ASYNC)", &["call.fcntl.o_async"]),
    ("filter ioctl(FIOASYNC)", &["call.ioctl.fioasync"]),
    ("filter fcntl(F_SETSIG)", &["call.fcntl.f_setsig"]),
    (
        "filter setrlimit(RLIMIT_CORE)",
        &["call.setrlimit.rlimit_core"],
    ),
    (
        "filter prlimit64(RLIMIT_CORE)",
        &["call.prlimit64.rlimit_core"],
    ),
    (
        "filter unshare(CLONE_NEWNS)",
        &["call.unshare.clone_newns", "nested.mounts"],
    ),
    ("filter clone(CLONE_NEWNS)", &["call.clone.clone_newns"]),
    ("filter clone3", &["call.clone3"]),
    ("filter setns(CLONE_NEWNS)", &["call.setns.clone_newns"]),
    ("filter setns(0)", &["call.setns.0"]),
    ("filter open_tree", &["call.open_tree"]),
    ("filter open_tree_attr", &["call.open_tree_attr"]),
    ("filter fsmount", &["call.fsmount"]),
    ("landlock", &["landlock.scopes"]),
    ("proc", &["process.visible"]),
    ("descriptors", &["process.descriptors"]),
    ("core", &["process.core"]),
    ("home", &["files.home", "files.credentials", "files.beside"]),
    ("credentials", &["files.credentials", "files.home"]),
    ("tmp", &["files.tmp"]),
    ("var tmp", &["files.var-tmp"]),
    ("run", &["files.run", "sockets.files"]),
    ("dev", &["files.dev"]),
    ("shared memory", &["files.shared-memory"]),
    ("etc", &["files.read-only"]),
    ("freeze", &["files.read-only"]),
    ("guards", &["files.executed-outside"]),
    ("environment", &["environment.allowlist"]),
    ("display", &["environment.secrets"]),
    ("git", &["files.git"]),
    ("names", &["network.names"]),
    (
        "jail",
        &[
            "network.jail",
            "network.loopback",
            "network.addresses",
            "network.ipv6",
            "network.listeners",
        ],
    ),
    ("jail and landlock", &["sockets.abstract"]),
    ("addresses", &["network.addresses"]),
    ("lateral", &["network.lateral"]),
    ("metadata", &["network.metadata"]),
];

/// The same where hardening is strict.
const STRICT: &[(&str, &[&str])] = &[("hardening", &["landlock.files", "nested.none"])];

/// The same where sandboxes work inside the sandbox.
const NESTED: &[(&str, &[&str])] = &[("broker", &["nested.mounts"])];

/// What only shows that the others mean something: it is inconclusive, not a failure, if it
/// does not hold.
const CONTROLS: [&str; 2] = ["files.workspace", "network.control"];

fn report(world: &World, sabotage: &str, flags: &[&str]) -> Value {
    let command = world.laptop().stockade(["verify", "--json"]).args(flags);
    let command = command.env("STOCKADE_SABOTAGE", sabotage);
    let output = command.run().expect("verify ends");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{sabotage}: no report: {output:?}"));
    let failed = report["failed"].as_u64().expect("a number");
    assert_eq!(
        output.code(),
        i32::from(failed > 0),
        "{sabotage}: {report:#}"
    );
    report
}

fn with(report: &Value, outcome: &str) -> BTreeSet<String> {
    let checks = report["checks"].as_array().expect("checks");
    let named = checks.iter().filter(|check| check["outcome"] == outcome);
    named
        .map(|check| check["check"].as_str().expect("a name").to_owned())
        .collect()
}

/// The checks that tell something on this machine. What it lacks (Landlock), and what it refuses
/// to everybody (bpf), cannot be missed.
fn telling(report: &Value) -> BTreeSet<String> {
    let checks = report["checks"].as_array().expect("checks");
    let tells = |check: &&Value| {
        let by_machine = check["reason"]
            .as_str()
            .expect("a reason")
            .contains("outside, too");
        check["outcome"] != "inconclusive" && !by_machine
    };
    checks
        .iter()
        .filter(tells)
        .map(|check| check["check"].as_str().expect("a name").to_owned())
        .collect()
}

fn try_all(world: &World, mutations: &[(&str, &[&str])], flags: &[&str]) {
    let whole = report(world, "", flags);
    assert_eq!(
        with(&whole, "fail"),
        BTreeSet::new(),
        "the control: {whole:#}"
    );
    let telling = telling(&whole);
    let mut noticed = BTreeSet::new();
    let mut missed = Vec::new();
    for (sabotage, wanted) in mutations {
        let report = report(world, sabotage, flags);
        let failed = with(&report, "fail");
        for check in wanted.iter().filter(|check| telling.contains(**check)) {
            if !failed.contains(*check) {
                missed.push(format!("{sabotage}: {check} did not fail, but {failed:?}"));
            }
        }
        noticed.extend(failed);
    }
    assert!(missed.is_empty(), "{missed:#?}");
    if flags.is_empty() {
        let controls = CONTROLS.map(str::to_owned).into();
        let never = &(&telling - &noticed) - &controls;
        assert_eq!(never, BTreeSet::new(), "checks that no mutation makes fail");
    }
}

#[test]
fn every_protection_that_is_taken_away_is_missed_by_its_check() {
    test(&world(), |world| {
        let _net = Standard::serve(world).expect("servers");
        try_all(world, MUTATIONS, &[]);
    });
}

#[test]
fn strict_hardening_that_is_taken_away_is_missed() {
    test(&world(), |world| {
        try_all(world, STRICT, &["--hardening", "strict"]);
    });
}

#[test]
fn a_broker_that_is_taken_away_is_missed() {
    test(&world(), |world| {
        try_all(world, NESTED, &["--nested"]);
    });
}

#[test]
fn the_hooks_are_in_this_program() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_stockade-sabotaged")).expect("the program");
    let marks = [&b"STOCKADE_SABOTAGE"[..], b"STOCKADE_SABOTAGE_INSIDE"];
    for mark in marks {
        assert!(program.windows(mark.len()).any(|bytes| bytes == mark));
    }
}

/// `cargo xtask deny` looks at the other lock file only; and the tests are to be about the program
/// as it is shipped.
#[test]
fn the_dependencies_are_those_of_the_program() {
    let packages = |lock: &'static str| {
        let packages = lock.split("[[package]]\n").skip(1);
        let foreign = packages.filter(|package| package.contains("checksum = "));
        foreign
            .map(|package| {
                package
                    .split("dependencies")
                    .next()
                    .unwrap_or_default()
                    .trim()
            })
            .collect::<BTreeSet<_>>()
    };
    let (own, program) = (
        packages(include_str!("../Cargo.lock")),
        packages(include_str!("../../Cargo.lock")),
    );
    assert!(own.len() > 50, "{own:?}");
    let others: Vec<_> = own.difference(&program).collect();
    assert!(
        others.is_empty(),
        "run `cp Cargo.lock sabotage/`: {others:#?}"
    );
}
