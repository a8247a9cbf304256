//! A launch that cannot be made safe is refused: exit code 125, the reason, the fix, and
//! the command has not run.

use std::path::Path;

use stockade_world::{Command, Login, Output, Shape, World, test};

use crate::support::standard;

/// A command that leaves traces.
const COMMAND: [&str; 4] = ["--", "sh", "-c", "echo ran; touch ran"];

fn run(world: &World, options: &[&str]) -> Command {
    let command = world.laptop().stockade(["run"]);
    command.args(options).args(COMMAND)
}

fn has_run(world: &World, output: &Output) -> bool {
    !output.stdout().is_empty() || world.laptop().workspace().join("ran").exists()
}

/// Fails unless the launch is refused with a message that has all of `parts` in it.
#[track_caller]
fn assert_refused(world: &World, command: Command, parts: &[&str]) {
    let output = command.run().expect("stockade ends").expect_code(125);
    assert!(!has_run(world, &output), "the command ran: {output:?}");
    let stderr = output.stderr();
    assert!(stderr.starts_with("stockade: "), "{output:?}");
    for part in parts {
        assert!(stderr.contains(part), "`{part}` is not in: {output:?}");
    }
}

#[test]
fn the_same_command_runs_where_nothing_is_missing() {
    test(&standard(), |world| {
        let output = run(world, &[]).run().expect("stockade ends");
        assert!(has_run(world, &output.expect_success()));
    });
}

/// Where the product looks for bubblewrap.
const BUBBLEWRAPS: [&str; 4] = [
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];

fn bubblewraps() -> impl Iterator<Item = &'static Path> {
    let places = BUBBLEWRAPS.iter().map(Path::new);
    places.filter(|place| place.is_file())
}

#[test]
fn a_launch_without_bubblewrap_is_refused() {
    test(&standard(), |world| {
        for place in bubblewraps() {
            world.laptop().remove_program(place).expect("remove");
        }
        let fix = "install the package `bubblewrap`";
        assert_refused(
            world,
            run(world, &[]),
            &["bubblewrap is not installed", fix],
        );
    });
}

#[test]
fn a_launch_with_an_old_or_strange_bubblewrap_is_refused() {
    test(&standard(), |world| {
        for (answer, parts) in [
            (
                "bubblewrap 0.4.1",
                [
                    "is bubblewrap 0.4.1, but 0.8.0 or newer",
                    "update the package",
                ],
            ),
            (
                "hello",
                ["does not tell its version", "reinstall the package"],
            ),
        ] {
            let script = format!("#!/bin/sh\necho {answer}\n");
            for place in bubblewraps() {
                world
                    .laptop()
                    .replace_program(place, &script)
                    .expect("replace");
            }
            assert_refused(world, run(world, &[]), &parts);
        }
    });
}

#[test]
fn a_launch_with_a_bubblewrap_that_fails_is_refused() {
    test(&standard(), |world| {
        let script = "#!/bin/sh
            case $1 in --version) echo bubblewrap 0.9.0;; *) echo no luck >&2; exit 1;; esac";
        for place in bubblewraps() {
            world
                .laptop()
                .replace_program(place, script)
                .expect("replace");
        }
        let output = run(world, &[]).run().expect("stockade ends");
        let output = output.expect_code(125);
        assert!(!has_run(world, &output));
        let stderr = output.stderr();
        let message = "no luck\nstockade: bubblewrap could not build the sandbox";
        assert!(stderr.contains(message), "{output:?}");
    });
}

#[test]
fn a_launch_without_user_namespaces_is_refused() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        laptop
            .sysctl("user/max_user_namespaces", "0")
            .expect("forbid them");
        let what = "the kernel is set to allow no user namespaces";
        let fix = "fix: sudo sysctl user.max_user_namespaces=";
        assert_refused(world, run(world, &[]), &[what, fix]);
    });
}

#[test]
fn a_launch_without_network_namespaces_is_refused() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        laptop
            .sysctl("user/max_net_namespaces", "0")
            .expect("forbid them");
        let what = "the kernel is set to allow no network namespaces";
        let fix = "fix: sudo sysctl user.max_net_namespaces=";
        assert_refused(world, run(world, &[]), &[what, fix]);
    });
}

#[test]
fn a_launch_as_root_that_cannot_map_itself_is_refused() {
    let container = standard().login(Login::Root).shape(Shape::Container);
    test(&container, |world| {
        let what = "this is root without CAP_SETFCAP, who may not map itself";
        let fix = "fix: add it back (--cap-add SETFCAP)";
        assert_refused(world, run(world, &[]), &[what, fix]);
    });
}

/// The longest messages to the kernel are the packet filter and the pair of devices: the numbers that
/// they have among the messages of their thread. Each thread has a trace of its own.
fn numbers_of_filter_and_pair(traces: &[String]) -> [usize; 2] {
    let length = |line: &str| -> Option<usize> {
        let (_, after) = line.strip_prefix("sendto(")?.rsplit_once(") = ")?;
        after.split_whitespace().next()?.parse().ok()
    };
    let sorted = traces.iter().map(|trace| {
        let messages = trace.lines().filter(|line| line.starts_with("sendto("));
        let mut numbered: Vec<_> = messages.map(length).zip(1..).collect();
        numbered.sort_by(|one, other| other.cmp(one));
        numbered
    });
    let of_jail = sorted.max().expect("traces");
    [of_jail[0].1, of_jail[1].1]
}

#[test]
fn a_launch_without_what_the_network_needs_of_the_kernel_is_refused() {
    test(&standard(), |world| {
        let strace = |options: &[&str]| {
            let command = world.laptop().command("strace");
            let command = command.args(["-ff", "-o", "trace"]).args(options);
            command.args(["stockade", "run"]).args(COMMAND)
        };
        let output = strace(&["-e", "trace=sendto"]).run().expect("strace ends");
        assert!(has_run(world, &output.expect_success()));
        std::fs::remove_file(world.laptop().workspace().join("ran")).expect("remove the trace");

        let workspace = std::fs::read_dir(world.laptop().workspace()).expect("a directory");
        let paths = workspace.map(|entry| entry.expect("an entry").path());
        let traces = paths.filter(|path| path.file_stem().is_some_and(|stem| stem == "trace"));
        let traces = traces.map(|path| std::fs::read_to_string(path).expect("a trace"));
        let traces: Vec<_> = traces.collect();
        let [filter, pair] = numbers_of_filter_and_pair(&traces);
        // What kernels say whose module for it is missing.
        for (number, module, what) in [
            (filter, "nf_tables", "cannot load the jail's packet filter"),
            (pair, "veth", "cannot make a pair of network devices"),
        ] {
            let fault = format!("inject=sendto:error=EOPNOTSUPP:when={number}");
            let fix = format!("fix: load the kernel's module for it: sudo modprobe {module} ");
            assert_refused(world, strace(&["-e", &fault]), &[what, &fix]);
        }
    });
}
