//! What `run` says on machines that lack something: what it is, and the smallest fix, once.

use std::fs;

use stockade_world::{Login, Output, World, test};

use crate::support::standard;

#[track_caller]
fn refused(output: Output) -> String {
    let said = output.expect_code(125).stderr();
    for twice in ["os error", "stockade: fix:", "no session can be started"] {
        assert!(said.matches(twice).count() <= 1, "{said}");
    }
    said
}

#[track_caller]
fn run(world: &World) -> String {
    let run = world.laptop().stockade(["run", "--", "true"]);
    refused(run.run().expect("it ends"))
}

#[test]
fn limits_of_namespaces_are_named_and_do_not_read_like_a_full_disk() {
    test(&standard(), |world| {
        for (limit, kind) in [
            ("user", "user"),
            ("net", "network"),
            ("mnt", "mount"),
            ("pid", "process"),
            ("uts", "host name"),
        ] {
            let file = format!("/proc/sys/user/max_{limit}_namespaces");
            let before = fs::read_to_string(&file).expect("a setting");
            fs::write(&file, "0").expect("a setting");
            let said = run(world);
            let what = format!("the kernel is set to allow no {kind} namespaces\n");
            let fix = format!("fix: sudo sysctl user.max_{limit}_namespaces=10000\n");
            assert!(said.contains(&what) && said.contains(&fix), "{said}");
            assert!(!said.contains("No space left"), "{said}");
            fs::write(&file, before).expect("a setting");
        }
        let fine = world.laptop().stockade(["run", "--", "true"]).run();
        fine.expect("it ends").expect_code(0);
    });
}

#[test]
fn limits_that_are_reached_are_named() {
    test(&standard(), |world| {
        for limit in ["max_net_namespaces", "max_mnt_namespaces"] {
            let file = format!("/proc/sys/user/{limit}");
            let before = fs::read_to_string(&file).expect("a setting");
            // The world has some already.
            fs::write(&file, "1").expect("a setting");
            let said = run(world);
            let what = format!("the limit user.{limit} is reached or zero");
            let fix = format!("sudo sysctl user.{limit}=10000");
            assert!(said.contains(&what) && said.contains(&fix), "{said}");
            fs::write(&file, before).expect("a setting");
        }
    });
}

#[test]
fn a_bubblewrap_that_cannot_be_started_is_named() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let replace = |text: &str| laptop.replace_program("/usr/bin/bwrap", text);
        // Its version can be read without starting it.
        replace("#!/no/such/interpreter\n\0bubblewrap 0.12.0\0").expect("replace");
        let said = run(world);
        assert!(
            said.contains("\"/usr/bin/bwrap\" cannot be started (No such file"),
            "{said}"
        );
        assert!(
            said.contains("reinstall the package `bubblewrap`"),
            "{said}"
        );

        let dies =
            "#!/bin/sh\n[ \"$1\" = --version ] && exec echo bubblewrap 0.12.0\nkill -SEGV $$\n";
        replace(dies).expect("replace");
        let said = run(world);
        assert!(said.contains("signal: 11"), "{said}");
        assert!(
            said.contains("reinstall the package `bubblewrap`"),
            "{said}"
        );
    });
}

/// As `podman run --cap-drop=all` leaves it.
#[test]
fn root_without_the_capability_to_map_itself_is_told_which_one_to_add() {
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        let without = |capability: &str| {
            let sets = ["--bounding-set", "--inh-caps", "--ambient-caps"];
            let sets = sets.map(|set| format!("{set}=-{capability}"));
            let line = [
                &sets[0], &sets[1], &sets[2], "stockade", "run", "--", "true",
            ];
            laptop.command("setpriv").args(line).run().expect("it ends")
        };
        without("sys_time").expect_code(0);
        let said = refused(without("setfcap"));
        assert!(said.contains("root without CAP_SETFCAP"), "{said}");
        assert!(
            said.contains("--cap-add SETFCAP") && !said.contains("seccomp"),
            "{said}"
        );
    });
}
