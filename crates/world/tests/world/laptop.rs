//! The laptop: who its user is, and what there is to steal.

use std::fs;

use stockade_world::{Builder, DECOY, test};

#[test]
fn programs_run_as_a_user_without_capabilities() {
    test(&Builder::new(), |world| {
        let status = world.laptop().command("cat").arg("/proc/self/status").run();
        let status = status.unwrap().expect_success().stdout();
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            let line = format!("{set}:\t0000000000000000\n");
            assert!(status.contains(&line), "{status}");
        }
        assert!(
            status.contains("Uid:\t1000\t1000\t1000\t1000\n"),
            "{status}"
        );
        assert!(status.contains("NoNewPrivs:\t0\n"), "{status}");
        // So neither the network nor the mounts of the world are theirs.
        for forbidden in [
            "ip link set lo down",
            "mount -t tmpfs x /mnt",
            "ip netns exec web true",
        ] {
            let output = world.laptop().shell(forbidden).run().unwrap();
            assert_ne!(output.code(), 0, "{forbidden}");
        }
    });
}

#[test]
fn a_user_may_make_namespaces_of_their_own() {
    test(&Builder::new(), |world| {
        let line = "unshare --user --net --map-root-user ip -brief link show";
        let output = world.laptop().shell(line).run().unwrap().expect_success();
        assert!(output.stdout().starts_with("lo "), "{output:?}");
        assert_eq!(output.stdout().lines().count(), 1);
    });
}

#[test]
fn bubblewrap_works() {
    test(&Builder::new(), |world| {
        let line = "bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --unshare-all id -u";
        let output = world.laptop().shell(line).run().unwrap();
        assert_eq!(output.expect_success().stdout(), "1000\n");
    });
}

#[test]
fn the_environment_is_that_of_a_desktop_login() {
    test(&Builder::new(), |world| {
        let laptop = world.laptop();
        let output = laptop.shell("pwd; whoami; uname -n; env").run();
        let text = output.unwrap().expect_success().stdout();
        assert!(
            text.starts_with("/home/dev/project\ndev\nlaptop\n"),
            "{text}"
        );
        for decoy in laptop.decoy_variables() {
            let line = format!("{}={}\n", decoy.name, decoy.value);
            assert!(text.contains(&line), "{line} not in {text}");
        }
        assert!(!text.contains("STOCKADE_WORLD"), "{text}");
        assert!(!text.contains("CARGO"), "{text}");
    });
}

#[test]
fn every_decoy_can_be_read_outside_of_a_sandbox() {
    test(&Builder::new(), |world| {
        let laptop = world.laptop();
        assert!(laptop.decoys().len() > 30);
        for decoy in laptop.decoys() {
            let output = laptop.command("cat").arg(&decoy.path).run().unwrap();
            let text = output.expect_success().stdout();
            assert!(text.contains(&decoy.secret), "{decoy:?}: {text}");
        }
        let workspace = laptop.shell(&format!("grep -r {DECOY} .")).run().unwrap();
        workspace.expect_code(1);
        let git = laptop.command("git").args(["status", "--short"]);
        let output = git.run().unwrap().expect_success();
        assert!(output.stdout().contains("?? README.md"), "{output:?}");
    });
}

#[test]
fn every_decoy_socket_accepts() {
    test(&Builder::new(), |world| {
        let laptop = world.laptop();
        for socket in laptop.sockets() {
            socket.connect(laptop).unwrap();
        }
        let seen = laptop.socket_connections();
        let seen = seen.wait_for(laptop.sockets().len()).unwrap();
        for socket in laptop.sockets() {
            assert!(seen.contains(&socket.name), "{socket:?}");
        }
    });
}

#[test]
fn nothing_of_the_machine_can_be_changed() {
    test(&Builder::new(), |world| {
        let laptop = world.laptop();
        for place in ["/usr", "/etc", "/var", "/opt", "/"] {
            let output = laptop.shell(&format!("touch {place}/planted")).run();
            let output = output.unwrap().expect_code(1);
            assert!(
                output.stderr().contains("Read-only file system"),
                "{output:?}"
            );
        }
        for place in ["/tmp", "/var/tmp", "/dev/shm", "/home/dev"] {
            let line = format!("touch {place}/mine");
            laptop.shell(&line).run().unwrap().expect_success();
        }
        let disks = laptop.shell("ls /dev").run().unwrap().stdout();
        for line in disks.lines() {
            assert!(
                ["fd", "full", "net", "null", "ptmx", "pts", "random", "shm"].contains(&line)
                    || ["stderr", "stdin", "stdout", "tty", "urandom", "zero"].contains(&line),
                "unexpected device {line}"
            );
        }
    });
}

#[test]
fn files_below_etc_can_be_added_by_the_test_only() {
    test(&Builder::new(), |world| {
        let laptop = world.laptop();
        laptop.write_etc("stockade/config.toml", "x = 1\n").unwrap();
        laptop
            .write_etc("resolv.conf", "nameserver 9.9.9.9\n")
            .unwrap();
        assert_eq!(
            fs::read_to_string("/etc/stockade/config.toml").unwrap(),
            "x = 1\n"
        );
        let line = "cat /etc/resolv.conf; echo >> /etc/resolv.conf";
        let output = laptop.shell(line).run().unwrap();
        assert_eq!(output.stdout(), "nameserver 9.9.9.9\n");
        assert!(output.stderr().contains("Read-only"), "{output:?}");
    });
}

#[test]
fn programs_given_to_the_builder_are_on_the_path() {
    let builder = Builder::new().program("same-true", "/bin/true");
    test(&builder, |world| {
        let output = world
            .laptop()
            .shell("command -v same-true && same-true")
            .run();
        let output = output.unwrap().expect_success();
        assert_eq!(output.stdout(), "/run/world/bin/same-true\n");
    });
}

#[test]
fn the_product_is_run_by_its_own_method() {
    test(&Builder::new().product("/bin/echo"), |world| {
        let output = world.laptop().stockade(["run", "--", "a b"]).run().unwrap();
        assert_eq!(output.expect_success().stdout(), "run -- a b\n");
    });
}

#[test]
fn programs_of_the_machine_can_be_replaced_and_removed() {
    test(&Builder::new(), |world| {
        let laptop = world.laptop();
        let script = "#!/bin/sh\necho not the real one\n";
        laptop.replace_program("/bin/true", script).unwrap();
        let output = laptop.command("/bin/true").run().unwrap();
        assert_eq!(output.expect_success().stdout(), "not the real one\n");
        laptop.remove_program("/bin/false").unwrap();
        assert!(!std::path::Path::new("/bin/false").is_file());
        assert!(laptop.command("/bin/false").run().is_err());
    });
}

#[test]
fn a_directory_of_the_machine_appears_where_it_is_wanted_and_cannot_be_written_to() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let builder = Builder::new().directory("/home/dev/.tool/src", source);
    test(&builder, |world| {
        let laptop = world.laptop();
        let seen = laptop.shell("cat ~/.tool/src/lib.rs").run().unwrap();
        assert_eq!(seen.stdout(), include_str!("../../src/lib.rs"));
        let written = laptop.shell("touch ~/.tool/src/new").run().unwrap();
        assert!(written.stderr().contains("Read-only"), "{written:?}");
        laptop
            .shell("touch ~/.tool/new")
            .run()
            .unwrap()
            .expect_success();
    });
}
