//! What the kernel keeps inside, by default and with strict hardening (F8, F9).

use std::{fs, path::Path};

use stockade_world::{Command, Login, is_real_root};

use super::{Caller, output, run, test, test_as};

/// A sandbox in the sandbox, as agents make them for their own commands.
const NESTED: &str = "bwrap --unshare-all --ro-bind / / --tmpfs /tmp --proc /proc --dev /dev \
    sh -c 'touch /tmp/x && echo nested'";

#[test]
fn nested_bubblewrap_works_where_it_is_asked_for_and_user_namespaces_not_under_strict() {
    test_as(Login::Dev, |caller| {
        assert_eq!(output(caller.with(&["--nested"], NESTED)), "nested\n");
        for options in [&[][..], &["--hardening", "strict"]] {
            assert_eq!(run(caller.with(options, NESTED)).1, "", "{options:?}");
        }
        let (code, _, messages) = run(caller.with(&["--nested", "--hardening", "strict"], NESTED));
        assert_eq!(code, 125);
        assert!(messages.contains("hardening is \"strict\""), "{messages}");
        for attempt in [
            "unshare -U true && echo made",
            "unshare -Ur true && echo made",
            "perl -e 'print qq(made\\n) if syscall(56, 0x10000011, 0, 0, 0, 0) >= 0'",
        ] {
            assert_eq!(
                run(caller.with(&["--hardening", "strict"], attempt)).1,
                "",
                "{attempt}"
            );
            assert!(run(caller.script(attempt)).1.contains("made"), "{attempt}");
        }
    });
}

#[test]
fn chromiums_own_sandbox_starts_by_default_and_not_under_strict() {
    if !Path::new("/usr/bin/chromium").exists() {
        eprintln!("skipped: there is no Chromium here");
        return;
    }
    test_as(Login::Dev, |caller| {
        let page = "<p id=x></p><script>x.textContent = 'sum ' + (20 + 3)</script>";
        caller.write(caller.project().join("page.html"), page);
        let script = "chromium --headless --disable-gpu --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --user-data-dir=/tmp/profile --dump-dom \
        file://$PWD/page.html 2>/dev/null";
        let (_, seen, _) = run(caller.with(&["--mode", "none"], script));
        assert!(seen.contains("sum 23"), "{seen}");
        let (_, seen, _) = run(caller.with(&["--mode", "none", "--hardening", "strict"], script));
        assert!(!seen.contains("sum 23"), "{seen}");
    });
}

#[test]
fn strict_lets_programs_of_daily_use_work() {
    test(|caller| {
        let work = "set -e; git init -q .; echo x > a; mkdir d; mv a d/b; ln d/b c; rm d/b
        python3 -c 'import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()'
        echo > /dev/null; cat /proc/self/status > /tmp/s; mktemp > /dev/null; cp /bin/true ~/t; ~/t
        (sleep 0.01 & wait); perl -e 'fork && wait'; exec 3<>/tmp/f; ls -d d c";
        assert_eq!(
            output(caller.with(&["--hardening", "strict"], work)),
            "1\nc\nd\n"
        );
    });
}

#[test]
fn strict_limits_files_by_a_second_layer() {
    test(|caller| {
        let probe =
            "touch ok /tmp/ok ~/ok && echo ok; touch /usr/x /etc/x /x 2>/dev/null && echo wrote
        echo 2>/dev/null x > /run/stockade/gitconfig && echo wrote; true";
        assert_eq!(
            output(caller.with(&["--hardening", "strict"], probe)),
            "ok\n"
        );
    });
}

#[test]
fn abstract_sockets_and_signals_do_not_reach_out() {
    test(|caller| {
        // In the host's network the abstract names are there.
        let name = "stockade-test";
        let listen = "use Socket; $| = 1; socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
        bind($s, pack('Sxa*', AF_UNIX, shift)) or die; listen($s, 5); print qq(up\\n); \
        accept(my $c, $s) for 1..9";
        let listener = caller.command("perl").args(["-e", listen, name]);
        let listener = listener.spawn().unwrap();
        listener.expect("up").unwrap();
        let connect = "use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
        print connect($s, pack('Sxa*', AF_UNIX, shift)) ? 1 : 0";
        let outside = caller.command("perl").args(["-e", connect, name]);
        assert_eq!(output(outside), "1");
        let host = caller.run().args(["--mode", "host", "--"]);
        let inside = output(host.args(["perl", "-e", connect, name]));
        drop(listener);
        let plan = caller.of(caller.laptop.stockade(["plan", "--json"]));
        let plan = output(plan);
        let scoped = plan
            .split_whitespace()
            .collect::<String>()
            .contains("(Landlock)\",\"state\":\"active\"");
        assert_eq!(inside, if scoped { "0" } else { "1" }, "{plan}");
        // And within the sandbox they work.
        let own = "use Socket; $| = 1; socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
        bind($s, pack(q(Sxa*), AF_UNIX, q(own))); listen($s, 1); my $child = fork; if (!$child) { \
        socket(my $c, AF_UNIX, SOCK_STREAM, 0); connect($c, pack(q(Sxa*), AF_UNIX, q(own))) or die; \
        syswrite $c, 1; sleep 100 } accept(my $c, $s); sysread $c, my $x, 1; print $x, kill(9, $child), wait() == $child";
        assert_eq!(output(caller.stockade(&["perl", "-e", own])), "111");
        // Process 1 is outside of the scope.
        let probe = "kill -0 1 2>/dev/null && echo reached; true";
        let reached = output(caller.script(probe));
        assert_eq!(reached, if scoped { "" } else { "reached\n" });
    });
}

#[test]
fn setuid_programs_and_file_capabilities_give_nothing() {
    test(|caller| {
        let probe = "for program in su mount passwd chsh newgrp; do
            [ -u \"$(command -v $program)\" ] && echo found; done | sort -u
        cp /bin/cat ./cat && chmod u+s ./cat; ./cat /proc/self/status | grep -E '^(CapEff|NoNewPrivs)'";
        let seen = output(caller.script(probe));
        assert!(seen.ends_with("NoNewPrivs:\t1\n"), "{seen}");
        assert!(seen.contains("CapEff:\t0000000000000000\n"), "{seen}");
    });
}

/// Makes files with the mode in `$m`, in each way that there is, and tells which have a bit of
/// it beyond those for reading, writing and executing.
const SET_ID: &str = r#"
    use Fcntl; my $m = oct shift; my $how = pack 'QQQ', 0101, $m, 0;
    sub made { my $n = shift; open my $f, '>', $n; close $f; chmod 0755, $n; $n }
    chmod $m, made('chmod');
    open my $f, '>', 'fchmod'; chmod $m, $f;
    syscall(268, -100, my $a = made('fchmodat'), $m);
    syscall(452, -100, my $b = made('fchmodat2'), $m, 0);
    syscall(2, my $c = 'open', 0101, $m);
    syscall(85, my $d = 'creat', $m);
    syscall(257, -100, my $e = 'openat', 0101, $m);
    syscall(437, -100, my $g = 'openat2', $how, 24);
    syscall(133, my $h = 'mknod', 0100000 | $m, 0);
    syscall(259, -100, my $i = 'mknodat', 0100000 | $m, 0);
    my $t = syscall(257, -100, my $j = '.', 020200002, $m);
    syscall(265, -100, my $k = "/proc/self/fd/$t", -100, my $l = 'tmpfile', 0x400) if $t >= 0;
    print "$_ " for grep { (stat)[2] & 06000 } sort glob '*';"#;

#[test]
fn root_leaves_no_program_by_which_others_become_root() {
    test_as(Login::Root, |caller| {
        let each = |command: fn(&Caller<'_>, &str) -> Command| {
            ["4755", "2755", "6755"].map(|mode| {
                let directory = caller.directory.join(mode);
                fs::create_dir(&directory).unwrap();
                let made = output(command(caller, mode).directory(&directory));
                fs::remove_dir_all(&directory).unwrap();
                made
            })
        };
        let inside = each(|caller, mode| caller.stockade(&["perl", "-e", SET_ID, mode]));
        assert_eq!(inside, [""; 3]);
        // Positive control: outside each way works.
        let outside = each(|caller, mode| caller.command("perl").args(["-e", SET_ID, mode]));
        let all =
            "chmod creat fchmod fchmodat fchmodat2 mknod mknodat open openat openat2 tmpfile ";
        assert_eq!(outside, [all; 3]);
        // Other modes can be set.
        let modes = "umask 0; mkdir -m 1777 d; install -m 555 /bin/true f; stat -c %a d f";
        assert_eq!(output(caller.script(modes)), "1777\n555\n");
    });
}

#[test]
fn root_cannot_get_at_the_machines_control_groups() {
    // User, mount and cgroup namespaces; no numbers are mapped, as root's cannot be.
    const MOUNT: &str = "syscall(272, 0x10000000 | 0x20000 | 0x02000000) == 0 or exit;
        my ($from, $at) = ('none', '/tmp');
        for (['cgroup2', ''], ['cgroup', 'freezer']) { my ($kind, $with) = @$_;
            print 'mounted ' if syscall(165, $from, $at, $kind, 0, $with) == 0 }";
    // The machine's control groups belong to root.
    if !is_real_root() {
        return;
    }
    test_as(Login::Root, |caller| {
        let outside = caller.command("perl").args(["-e", MOUNT]);
        // Positive control.
        assert!(output(outside).contains("mounted"));
        assert_eq!(output(caller.stockade(&["perl", "-e", MOUNT])), "");
    });
}

/// What would change the machine's own devices, if it could: to what they are.
const CHANGE: &str = "for d in null zero full random urandom tty; do
    chmod $(stat -c %a /dev/$d) /dev/$d 2>/dev/null && echo $d; done; true";

fn devices_work(caller: &Caller<'_>) {
    assert_eq!(output(caller.script(CHANGE)), "");
    let work = "echo x > /dev/null && echo x >> /dev/null && head -c 1 /dev/urandom > /dev/zero
        dd if=/dev/zero bs=7 count=1 status=none of=/tmp/x; wc -c < /tmp/x
        python3 -c 'import os; os.open(\"/dev/null\", os.O_RDWR | os.O_CREAT | os.O_TRUNC)'
        echo x 2>&1 > /dev/full | grep -c 'No space'";
    assert_eq!(output(caller.script(work)), "7\n1\n");
}

#[test]
fn devices_cannot_be_changed_and_work() {
    test(devices_work);
}

#[test]
fn devices_that_belong_to_root_cannot_be_changed_and_work() {
    if !is_real_root() {
        return;
    }
    test_as(Login::Root, |caller| {
        // Positive control.
        assert_eq!(caller.outside(CHANGE).lines().count(), 6);
        devices_work(caller);
    });
}
