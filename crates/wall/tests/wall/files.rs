//! What the command sees of the disk, the environment and the machine (F1, F2, F6, F7).

use std::{fs, process::Command};

use crate::support::{Caller, WALLED, is_root, output, run};

#[test]
fn the_home_is_empty_private_and_the_users_own() {
    let caller = Caller::new();
    fs::create_dir(caller.home().join(".ssh")).unwrap();
    fs::write(caller.home().join(".ssh/id_ed25519"), "secret").unwrap();
    let probe = "ls -A ~ | wc -l; stat -c '%a %u' ~; touch ~/made-inside; ls -A ~";
    let uid = rustix::process::geteuid().as_raw();
    let expected = format!("0\n700 {uid}\nmade-inside\n");
    assert_eq!(output(caller.script(probe)), expected);
    assert!(!caller.home().join("made-inside").exists());
}

#[test]
fn the_workspace_is_writable_and_nothing_beside_it_is_there() {
    let caller = Caller::new();
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
}

#[test]
fn only_the_named_places_exist() {
    let caller = Caller::new();
    let top = output(caller.walled(&["ls", "-A", "/"]));
    let allowed = [
        "bin", "dev", "etc", "gnu", "home", "lib", "lib32", "lib64", "libx32", "nix", "opt",
        "proc", "root", "run", "sbin", "tmp", "usr", "var",
    ];
    for name in top.lines() {
        assert!(allowed.contains(&name), "/{name} is visible");
    }
    let private = "ls -A /run /var /var/tmp /dev/shm; test -e /sys || echo no sys";
    let listed = "/dev/shm:\n\n/run:\nstockade\n\n/var:\nrun\ntmp\n\n/var/tmp:\nno sys\n";
    assert_eq!(output(caller.script(private)), listed);
}

#[test]
fn the_system_cannot_be_written_to() {
    let caller = Caller::new();
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
}

#[test]
fn secrets_of_the_system_cannot_be_read_even_by_root() {
    let caller = Caller::new();
    let (code, ..) = run(caller.script("cat /etc/shadow"));
    assert_ne!(code, 0);
    assert!(output(caller.script("cat /etc/passwd")).contains("root:"));
    if is_root() {
        assert!(fs::read("/etc/shadow").is_ok(), "nothing to hide here");
    }
}

#[test]
fn the_environment_is_an_allowlist() {
    let caller = Caller::new();
    let mut command = caller.walled(&["env"]);
    command
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
}

#[test]
fn control_characters_in_paths_are_only_characters() {
    let caller = Caller::new();
    let odd = caller.project().join("a\nb\x1b[31m --bind");
    fs::create_dir(&odd).unwrap();
    let mut command = caller.walled(&["sh", "-c", "pwd; echo made > file"]);
    command.current_dir(&odd);
    assert_eq!(output(command), format!("{}\n", odd.display()));
    assert!(odd.join("file").exists());

    let home = caller.home().join("h\no\tm e");
    fs::create_dir(&home).unwrap();
    let mut command = caller.walled(&["sh", "-c", "cd && pwd"]);
    command.env("HOME", &home);
    assert_eq!(output(command), format!("{}\n", home.display()));
}

#[test]
fn the_given_resolv_conf_is_the_one_inside() {
    let caller = Caller::new();
    let text = "nameserver 192.0.2.53\n";
    let mut command = caller.command(WALLED);
    command.args(["--resolv-conf", text, "--", "cat", "/etc/resolv.conf"]);
    assert_eq!(output(command), text);
    // And without one, the host's.
    let hosts = fs::read_to_string("/etc/resolv.conf");
    if let Ok(hosts) = hosts {
        assert_eq!(output(caller.walled(&["cat", "/etc/resolv.conf"])), hosts);
    }
}

/// `walled`, where the user has arranged the machine by `script` before.
fn on_machine(caller: &Caller, script: &str, arguments: &[&str]) -> Command {
    let mut command = caller.command("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "--pid", "--fork"])
        .args(["--mount-proc", "bash", "-euc"])
        .arg(format!("{script}\nexec \"$0\" \"$@\""))
        .arg(WALLED)
        .args(arguments);
    command
}

#[test]
fn the_given_resolv_conf_lands_where_the_hosts_link_leads() {
    let caller = Caller::new();
    let text = "nameserver 192.0.2.53\n";
    let arguments = ["--resolv-conf", text, "--", "cat", "/etc/resolv.conf"];
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
        assert_eq!(
            output(on_machine(&caller, &script, &arguments)),
            text,
            "{target}"
        );
    }
}

#[test]
fn where_the_container_masks_proc_the_outer_one_is_shown_read_only() {
    let caller = Caller::new();
    let probe = "test -e /proc/self/status && ! test -w /proc/self/comm && echo frozen";
    let arguments = ["--", "bash", "-c", probe];
    for mask in [
        "mount --bind /dev/null /proc/version",
        "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys",
    ] {
        let masked = on_machine(&caller, mask, &arguments);
        assert_eq!(output(masked), "frozen\n", "{mask}");
    }
}

#[test]
fn the_outer_proc_shows_no_secrets_of_outer_processes() {
    let caller = Caller::new();
    // A process of the same user, and what is to be had of it.
    let script = "mount --bind /dev/null /proc/version
        SECRET=decoy sleep 1000 & export VICTIM=$!
        trap 'kill $VICTIM' EXIT
        probe='for file in environ root/etc/passwd cwd/. fd/0 maps; do \
            head -c 1 /proc/$1/$file >/dev/null 2>&1 && echo $file; done; \
            test -e /proc/$1/stat && echo seen; true'
        until grep -q SECRET /proc/$VICTIM/environ; do :; done
        bash -c \"$probe\" - $VICTIM; echo inside
        \"$0\" -- bash -c \"$probe\" - $VICTIM; exit";
    let outside_and_inside = output(on_machine(&caller, script, &[]));
    let (outside, inside) = outside_and_inside.split_once("inside\n").unwrap();
    assert!(outside.contains("environ\nroot/etc/passwd\n"), "{outside}");
    assert_eq!(inside, "seen\n");
}

#[test]
fn programs_of_daily_use_work() {
    let caller = Caller::new();
    let probe = "set -e; nproc >/dev/null; date >/dev/null; id -un >/dev/null; \
         hostname >/dev/null; echo $(( $(ls /usr/bin | wc -l) > 10 )); \
         sort </dev/null; mktemp >/dev/null; cat /proc/cpuinfo >/dev/null";
    assert_eq!(output(caller.script(probe)), "1\n");
}
