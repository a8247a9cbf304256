//! What the command sees of the disk, the environment and the machine (F1, F2, F6, F7).

use std::fs;

use stockade_world::{Command, Login};

use super::{Caller, output, run, test, test_as};

#[test]
fn the_home_is_empty_private_and_the_users_own() {
    test(|caller| {
        fs::create_dir(caller.home().join(".ssh")).unwrap();
        fs::write(caller.home().join(".ssh/id_ed25519"), "secret").unwrap();
        let probe = "ls -A ~ | wc -l; stat -c '%a %u' ~; touch ~/made-inside; ls -A ~";
        let uid = caller.laptop.uid();
        let expected = format!("0\n700 {uid}\nmade-inside\n");
        assert_eq!(output(caller.with(&["--caches", "empty"], probe)), expected);
        assert!(!caller.home().join("made-inside").exists());
    });
}

#[test]
fn the_workspace_is_writable_and_nothing_beside_it_is_there() {
    test(|caller| {
        let sibling = caller.project().parent().unwrap().join("sibling");
        fs::create_dir(&sibling).unwrap();
        fs::write(sibling.join("file"), "other project").unwrap();
        fs::write(caller.project().join("file"), "mine").unwrap();
        let probe = format!(
            "cat file; ls -A ..; cat {}/file; echo new > made",
            sibling.display()
        );
        let (_, stdout, stderr) = run(caller.script(&probe));
        assert_eq!(stdout, "minehome\nproject\n");
        assert!(stderr.contains("No such file"), "{stderr}");
        let made = fs::read_to_string(caller.project().join("made")).unwrap();
        assert_eq!(made, "new\n");
    });
}

#[test]
fn only_the_named_places_exist() {
    test(|caller| {
        let top = output(caller.stockade(&["ls", "-A", "/"]));
        let allowed = [
            "bin", "dev", "etc", "gnu", "home", "lib", "lib32", "lib64", "libx32", "nix", "opt",
            "proc", "root", "run", "sbin", "tmp", "usr", "var",
        ];
        for name in top.lines() {
            assert!(allowed.contains(&name), "/{name} is visible");
        }
        let private = "ls -A /run /var /var/tmp /dev/shm; test -e /sys || echo no sys";
        // This program is where it is outside.
        let listed =
            "/dev/shm:\n\n/run:\nstockade\nworld\n\n/var:\nlib\nrun\ntmp\n\n/var/tmp:\nno sys\n";
        assert_eq!(output(caller.script(private)), listed);
        // Some machines have rpm, too.
        let databases = output(caller.script("ls /var/lib | grep -vx rpm"));
        assert_eq!(databases, "dpkg\n");
    });
}

#[test]
fn the_system_cannot_be_written_to() {
    test(|caller| {
        for place in [
            "/",
            "/usr",
            "/usr/bin",
            "/etc",
            "/bin",
            "/run/stockade/init",
        ] {
            let probe = format!("touch {place}/x 2>/dev/null || echo >> {place}");
            let (code, ..) = run(caller.script(&probe));
            assert_ne!(code, 0, "{place}");
        }
        // Positive control: the probe can succeed.
        for place in ["/tmp", "/var/tmp", "/dev/shm", "$HOME", "."] {
            output(caller.script(&format!("touch {place}/x")));
        }
    });
}

fn no_secret_of_the_system_can_be_read(caller: &Caller<'_>) {
    let (code, ..) = run(caller.script("cat /etc/shadow"));
    assert_ne!(code, 0);
    assert!(output(caller.script("cat /etc/passwd")).contains("root:"));
}

#[test]
fn secrets_of_the_system_cannot_be_read() {
    test(no_secret_of_the_system_can_be_read);
}

#[test]
fn secrets_of_the_system_cannot_be_read_even_by_root() {
    test_as(Login::Root, |caller| {
        assert!(fs::read("/etc/shadow").is_ok(), "nothing to hide here");
        no_secret_of_the_system_can_be_read(caller);
    });
}

#[test]
fn the_environment_is_an_allowlist() {
    test(|caller| {
        let command = caller
            .stockade(&["env"])
            .env("AWS_SECRET_ACCESS_KEY", "decoy")
            .env("SSH_AUTH_SOCK", "/tmp/decoy")
            .env("LD_PRELOAD", "")
            .env("TZ", "Europe/Berlin\nEVIL=1");
        let environment = output(command);
        assert!(!environment.contains("decoy"), "{environment}");
        assert!(!environment.contains("LD_PRELOAD"), "{environment}");
        assert!(environment.contains("TZ=Europe/Berlin\nEVIL=1"));
        assert!(environment.contains("STOCKADE=1"));
        assert!(environment.contains(&format!("HOME={}\n", caller.home().display())));
    });
}

#[test]
fn control_characters_in_paths_are_only_characters() {
    test(|caller| {
        let odd = caller.project().join("a\nb\x1b[31m --bind");
        fs::create_dir(&odd).unwrap();
        let command = caller.stockade(&["sh", "-c", "pwd; echo made > file"]);
        let command = command.directory(&odd);
        assert_eq!(output(command), format!("{}\n", odd.display()));
        assert!(odd.join("file").exists());

        let home = caller.home().join("h\no\tm e");
        fs::create_dir(&home).unwrap();
        let command = caller
            .stockade(&["sh", "-c", "cd && pwd"])
            .env("HOME", &home);
        assert_eq!(output(command), format!("{}\n", home.display()));
    });
}

#[test]
fn the_jails_resolv_conf_is_the_one_inside() {
    test(|caller| {
        let inside = output(caller.stockade(&["cat", "/etc/resolv.conf"]));
        assert!(inside.contains(NAME_SERVER), "{inside}");
        // And without a jail, the host's.
        let hosts = fs::read_to_string("/etc/resolv.conf").unwrap();
        assert!(!hosts.contains(NAME_SERVER), "{hosts}");
        let inside = caller.with(&["--mode", "host"], "cat /etc/resolv.conf");
        assert_eq!(output(inside), hosts);
    });
}

/// Where the gate hears queries inside.
const NAME_SERVER: &str = "nameserver 192.0.2.53\n";

/// `stockade run`, where the user has arranged the machine by `script` before.
fn on_machine(caller: &Caller<'_>, script: &str, command: &str) -> Command {
    let machine = caller.command("unshare");
    machine
        .args(["--user", "--map-root-user", "--mount", "--pid", "--fork"])
        .args(["--mount-proc", "bash", "-euc"])
        .arg(format!("{script}\nexec stockade run -- bash -c \"$0\""))
        .arg(command)
}

#[test]
fn the_jails_resolv_conf_lands_where_the_hosts_link_leads() {
    test(|caller| {
        for target in [
            "../run/systemd/resolve/stub-resolv.conf",
            "/mnt/wsl/resolv.conf",
            "/var/run/service/resolv.conf",
            "alternatives-of-resolv.conf",
        ] {
            let script = format!(
                "mount -t tmpfs none /etc; echo old > /etc/alternatives-of-resolv.conf
             ln -s {target} /etc/resolv.conf"
            );
            let inside = output(on_machine(caller, &script, "cat /etc/resolv.conf"));
            assert!(inside.contains(NAME_SERVER), "{target}: {inside}");
        }
    });
}

#[test]
fn where_the_container_masks_proc_the_outer_one_is_shown_read_only() {
    test(|caller| {
        let probe = "test -e /proc/self/status && ! test -w /proc/self/comm && echo frozen";
        for mask in [
            "mount --bind /dev/null /proc/version",
            "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys",
        ] {
            let masked = on_machine(caller, mask, probe);
            assert_eq!(output(masked), "frozen\n", "{mask}");
        }
    });
}

#[test]
fn the_outer_proc_shows_no_secrets_of_outer_processes() {
    test(|caller| {
        // A process of the same user, and what is to be had of it.
        let script = "mount --bind /dev/null /proc/version
        SECRET=decoy sleep 1000 & export VICTIM=$!
        trap 'kill $VICTIM' EXIT
        probe='for file in environ root/etc/passwd cwd/. fd/0 maps; do \
            head -c 1 /proc/$1/$file >/dev/null 2>&1 && echo $file; done; \
            test -e /proc/$1/stat && echo seen; true'
        until grep -q SECRET /proc/$VICTIM/environ; do :; done
        bash -c \"$probe\" - $VICTIM; echo inside
        stockade run -- bash -c \"$probe\" - $VICTIM; exit";
        let outside_and_inside = output(on_machine(caller, script, ""));
        let (outside, inside) = outside_and_inside.split_once("inside\n").unwrap();
        assert!(outside.contains("environ\nroot/etc/passwd\n"), "{outside}");
        assert_eq!(inside, "seen\n");
    });
}

#[test]
fn programs_of_daily_use_work() {
    test(|caller| {
        let probe = "set -e; nproc >/dev/null; date >/dev/null; id -un >/dev/null; \
         hostname >/dev/null; echo $(( $(ls /usr/bin | wc -l) > 10 )); \
         sort </dev/null; mktemp >/dev/null; cat /proc/cpuinfo >/dev/null";
        assert_eq!(output(caller.script(probe)), "1\n");
    });
}
