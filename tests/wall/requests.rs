//! Paths that configuration adds or hides.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
};

use stockade_world::Login;

use super::{output, run, test, test_as};

#[test]
fn what_is_asked_for_can_be_read_or_written_as_asked() {
    test(|caller| {
        let (read, write) = (caller.home().join("read"), caller.home().join("write"));
        caller.write(read.join("file"), "r");
        caller.write(write.join("file"), "w");
        let file = caller.home().join("single");
        caller.write(&file, "s");
        let options = [
            "--read",
            read.to_str().unwrap(),
            "--write",
            write.to_str().unwrap(),
            "--read",
            file.to_str().unwrap(),
            "--caches",
            "scratch",
        ];
        let probe = "cd; cat read/file write/file single; echo x 2>/dev/null >> read/file; \
        echo x 2>/dev/null >> single; echo x >> write/file; touch read/new 2>/dev/null; \
        touch write/new; ls -A";
        assert_eq!(
            output(caller.with(&options, probe)),
            "rwsread\nsingle\nwrite\n"
        );
        assert_eq!(fs::read_to_string(read.join("file")).unwrap(), "r");
        assert_eq!(fs::read_to_string(write.join("file")).unwrap(), "wx\n");
        assert!(write.join("new").exists() && !read.join("new").exists());
    });
}

#[test]
fn a_socket_that_is_asked_for_can_be_connected_to() {
    test(|caller| {
        let path = caller.home().join("service.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        let probe = "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
        print connect($s, sockaddr_un(shift)) ? 1 : 0' ~/service.sock";
        assert_eq!(output(caller.script(probe)), "0");
        let options = ["--read", path.to_str().unwrap()];
        assert_eq!(output(caller.with(&options, probe)), "1");
    });
}

#[test]
fn missing_paths_are_told_all_at_once_and_nothing_is_run() {
    test(|caller| {
        let options = [
            "--read",
            "/no/such/a",
            "--write",
            "/no/such/b",
            "--hide",
            "/no/such/c",
        ];
        let (code, stdout, messages) = run(caller.with(&options, "echo ran"));
        assert_eq!((code, stdout.as_str()), (125, ""));
        for path in ["/no/such/a", "/no/such/b", "/no/such/c"] {
            assert!(messages.contains(path), "{messages}");
        }
        assert_eq!(messages.lines().count(), 1, "{messages}");
    });
}

#[test]
fn what_would_undo_the_wall_is_refused() {
    test(|caller| {
        caller.write(caller.home().join(".config/stockade/config.toml"), "");
        let home = caller.home();
        let parent = home.parent().unwrap();
        let config = home.join(".config");
        let (refused, own) = ("cannot be given", "belongs to Stockade");
        for (options, why) in [
            (["--read", "/"], refused),
            (["--read", home.to_str().unwrap()], refused),
            (["--write", parent.to_str().unwrap()], own),
            (["--write", config.to_str().unwrap()], own),
            (["--read", "/proc/1"], refused),
            (["--hide", "/"], refused),
        ] {
            let (code, stdout, messages) = run(caller.with(&options, "echo ran"));
            assert_eq!((code, stdout.as_str()), (125, ""), "{options:?}");
            assert!(messages.contains(why), "{messages}");
        }
    });
}

#[test]
fn hidden_files_and_directories_are_hidden_in_the_workspace_too() {
    test_as(Login::Dev, |caller| {
        let project = caller.project();
        caller.write(project.join(".env"), "TOKEN=decoy");
        caller.write(project.join("deep/down/secrets/key"), "decoy");
        caller.write(project.join("deep/down/fine"), "fine");
        let (file, directory) = (project.join(".env"), project.join("deep/down/secrets"));
        let options = [
            "--hide",
            file.to_str().unwrap(),
            "--hide",
            directory.to_str().unwrap(),
        ];
        let attack = "cat deep/down/fine; cat .env deep/down/secrets/key; \
        mv .env x; cat x; rm -f .env; mv deep/down/secrets y; cat y/key; \
        mv deep z; cat z/down/secrets/key; mv deep/down deep/else; cat deep/else/secrets/key; \
        ln .env hard; cat hard; cp -r deep copy; cat copy/down/secrets/key; \
        unshare -Urm bash -c 'umount .env deep/down/secrets; cat .env deep/down/secrets/key'";
        assert!(
            caller
                .outside("cat .env deep/down/secrets/key")
                .contains("decoy")
        );
        let (_, seen, _) = run(caller.with(&options, attack));
        assert_eq!(seen, "fine");
        let (_, seen, _) = run(caller.with(&[&options[..], &["--nested"]].concat(), attack));
        assert_eq!(seen, "fine");
        assert_eq!(fs::read_to_string(file).unwrap(), "TOKEN=decoy");
        assert!(directory.join("key").exists());
    });
}

#[test]
fn a_part_of_the_workspace_can_be_made_read_only() {
    test(|caller| {
        let vendor = caller.project().join("vendor");
        caller.write(vendor.join("file"), "old");
        let options = ["--read", vendor.to_str().unwrap()];
        let attack =
            "cat vendor/file; echo evil > vendor/file; rm -rf vendor; mv vendor x; touch new";
        let (_, seen, _) = run(caller.with(&options, attack));
        assert_eq!(seen, "old");
        assert_eq!(fs::read_to_string(vendor.join("file")).unwrap(), "old");
        assert!(caller.project().join("new").exists());
    });
}

#[test]
fn the_whole_disk_can_be_shown_read_only() {
    test(|caller| {
        caller.write(caller.home().join(".ssh/id_rsa"), "decoy");
        caller.write(caller.project().join("file"), "mine");
        let probe = "ls /; cat file; echo x > /x; ls -A ~ /tmp /run; cat /etc/shadow; touch made";
        let (_, seen, _) = run(caller.with(&["--root", "all"], probe));
        assert!(seen.contains("sys\n") && seen.contains("boot\n"), "{seen}");
        assert!(seen.contains("mine"), "{seen}");
        assert!(!seen.contains(".ssh") && !seen.contains("root:"), "{seen}");
        assert!(caller.project().join("made").exists());
        assert!(!fs::exists("/x").unwrap());
    });
}

#[test]
fn a_link_to_what_is_asked_for_is_followed_once_and_outside() {
    test(|caller| {
        let real = caller.home().join("disk/data");
        caller.write(real.join("file"), "data");
        let link = caller.home().join("data");
        symlink(&real, &link).unwrap();
        let options = ["--read", link.to_str().unwrap(), "--caches", "scratch"];
        assert_eq!(
            output(caller.with(&options, "cat ~/data/file; ls ~")),
            "datadata\n"
        );
    });
}

#[test]
fn without_a_network_there_is_none() {
    test(|caller| {
        let probe =
            "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '; cat /etc/resolv.conf";
        let (_, seen, _) = run(caller.with(&["--mode", "none"], probe));
        assert!(seen.starts_with("lo\n# There is no network"), "{seen}");
    });
}

#[test]
fn names_are_looked_up_where_the_jail_answers() {
    test(|caller| {
        let look = "grep ^hosts: /etc/nsswitch.conf; cat /etc/hosts";
        let seen = output(caller.stockade(&["sh", "-c", look]));
        if fs::exists("/etc/nsswitch.conf").unwrap() {
            assert!(seen.starts_with("hosts: files dns\n"), "{seen}");
        }
        for line in seen.lines().skip(1) {
            assert!(
                line.starts_with("127.") || line.starts_with("::1"),
                "{line}"
            );
        }
    });
}

#[test]
fn locale_time_zone_and_certificates_work() {
    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n";
    test(|caller| {
        let bundle = caller.home().join("corporate.pem");
        caller.write(&bundle, CERTIFICATE);
        let probe = "cat $SSL_CERT_FILE; date +%Z; ls ~";
        let command = caller.with(&["--caches", "scratch"], probe);
        let command = command
            .env("SSL_CERT_FILE", &bundle)
            .env("TZ", "Asia/Tokyo");
        assert_eq!(
            output(command),
            format!("{CERTIFICATE}JST\ncorporate.pem\n")
        );
        // Whatever else a variable names is not shown.
        caller.write(&bundle, "no certificate");
        let command = caller.script("cat $SSL_CERT_FILE 2>/dev/null; true");
        let command = command.env("SSL_CERT_FILE", &bundle);
        assert_eq!(output(command), "");
    });
}

#[test]
fn a_secret_of_the_system_is_not_shown_as_certificates() {
    test(|caller| {
        let command = caller.script("cat $SSL_CERT_FILE 2>/dev/null; true");
        let command = command.env("SSL_CERT_FILE", "/etc/shadow");
        assert_eq!(output(command), "");
        // Positive control: what everybody may read is.
        let command = caller
            .script("head -c 4 $SSL_CERT_FILE")
            .env("SSL_CERT_FILE", "/etc/passwd");
        assert_eq!(output(command).len(), 4);
    });
}
