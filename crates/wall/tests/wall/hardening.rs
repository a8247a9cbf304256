//! What the kernel keeps inside, by default and with strict hardening (F8, F9).

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use stockade_world::is_real_root;

use crate::support::{Caller, WALLED, is_root, output, run, wait_until};

/// A sandbox in the sandbox, as agents make them for their own commands.
const NESTED: &str = "bwrap --unshare-all --ro-bind / / --tmpfs /tmp --proc /proc --dev /dev \
    sh -c 'touch /tmp/x && echo nested'";

#[test]
fn nested_bubblewrap_works_where_it_is_asked_for_and_user_namespaces_not_under_strict() {
    let caller = Caller::ordinary();
    assert_eq!(output(caller.with(&["--nested"], NESTED)), "nested\n");
    for options in [&[][..], &["--strict"]] {
        assert_eq!(run(caller.with(options, NESTED)).1, "", "{options:?}");
    }
    let (code, _, messages) = run(caller.with(&["--nested", "--strict"], NESTED));
    assert_eq!(code, 125);
    assert!(messages.contains("hardening is \"strict\""), "{messages}");
    for attempt in [
        "unshare -U true && echo made",
        "unshare -Ur true && echo made",
        "perl -e 'print qq(made\\n) if syscall(56, 0x10000011, 0, 0, 0, 0) >= 0'",
    ] {
        assert_eq!(run(caller.with(&["--strict"], attempt)).1, "", "{attempt}");
        assert!(run(caller.script(attempt)).1.contains("made"), "{attempt}");
    }
}

#[test]
fn chromiums_own_sandbox_starts_by_default_and_not_under_strict() {
    if !Path::new("/usr/bin/chromium").exists() {
        eprintln!("skipped: there is no Chromium here");
        return;
    }
    let caller = Caller::ordinary();
    let page = "<p id=x></p><script>x.textContent = 'sum ' + (20 + 3)</script>";
    caller.write(&caller.project().join("page.html"), page);
    let script = "chromium --headless --disable-gpu --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --user-data-dir=/tmp/profile --dump-dom \
        file://$PWD/page.html 2>/dev/null";
    let (_, seen, _) = run(caller.with(&["--no-network"], script));
    assert!(seen.contains("sum 23"), "{seen}");
    let (_, seen, _) = run(caller.with(&["--no-network", "--strict"], script));
    assert!(!seen.contains("sum 23"), "{seen}");
}

#[test]
fn strict_lets_programs_of_daily_use_work() {
    let caller = Caller::new();
    let work = "set -e; git init -q .; echo x > a; mkdir d; mv a d/b; ln d/b c; rm d/b
        python3 -c 'import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()'
        echo > /dev/null; cat /proc/self/status > /tmp/s; mktemp > /dev/null; cp /bin/true ~/t; ~/t
        (sleep 0.01 & wait); perl -e 'fork && wait'; exec 3<>/tmp/f; ls -d d c";
    assert_eq!(output(caller.with(&["--strict"], work)), "1\nc\nd\n");
}

#[test]
fn strict_limits_files_by_a_second_layer() {
    let caller = Caller::new();
    let probe = "touch ok /tmp/ok ~/ok && echo ok; touch /usr/x /etc/x /x 2>/dev/null && echo wrote
        echo 2>/dev/null x > /run/stockade/gitconfig && echo wrote; true";
    assert_eq!(output(caller.with(&["--strict"], probe)), "ok\n");
}

#[test]
fn abstract_sockets_and_signals_do_not_reach_out() {
    let caller = Caller::new();
    // The wall alone shares the caller's network, with the abstract names in it.
    let name = format!("stockade-test-{}", std::process::id());
    let listen = "use Socket; $| = 1; socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
        bind($s, pack('Sxa*', AF_UNIX, shift)) or die; listen($s, 5); print qq(up\\n); \
        accept(my $c, $s) for 1..9";
    let mut listener = caller.command("perl");
    let mut listener = listener
        .args(["-e", listen, &name])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(listener.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let connect = "use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
        print connect($s, pack('Sxa*', AF_UNIX, shift)) ? 1 : 0";
    let mut outside = caller.command("perl");
    outside.args(["-e", connect, &name]);
    assert_eq!(output(outside), "1");
    let inside = output(caller.walled(&["perl", "-e", connect, &name]));
    listener.kill().unwrap();
    listener.wait().unwrap();
    let mut command = caller.command(WALLED);
    command.env("WALLED_LAYERS", "1").args(["--", "true"]);
    let (_, _, layers) = run(command);
    let scoped = layers.contains("(Landlock): active");
    assert_eq!(inside, if scoped { "0" } else { "1" }, "{layers}");
    // And within the sandbox they work.
    let own = "use Socket; $| = 1; socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
        bind($s, pack(q(Sxa*), AF_UNIX, q(own))); listen($s, 1); my $child = fork; if (!$child) { \
        socket(my $c, AF_UNIX, SOCK_STREAM, 0); connect($c, pack(q(Sxa*), AF_UNIX, q(own))) or die; \
        syswrite $c, 1; sleep 100 } accept(my $c, $s); sysread $c, my $x, 1; print $x, kill(9, $child), wait() == $child";
    assert_eq!(output(caller.walled(&["perl", "-e", own])), "111");
    // Process 1 is outside of the scope.
    let probe = "kill -0 1 2>/dev/null && echo reached; true";
    let reached = output(caller.script(probe));
    assert_eq!(reached, if scoped { "" } else { "reached\n" });
}

/// A control group that belongs to an ordinary user, as those of a login session do.
struct Session(std::path::PathBuf);

impl Session {
    const USER: &str = "65534";

    fn new(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let line = mounts.lines().find(|line| line.contains(" cgroup2 rw"))?;
        let root = Path::new(line.split(' ').nth(1)?);
        let group = root.join(format!("test-{name}-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let status = Command::new("chown")
            .args(["-R", Self::USER])
            .arg(&group)
            .status()
            .unwrap();
        assert!(status.success());
        Some(Self(group))
    }

    /// A script of that user's, in the group.
    fn script(&self, caller: &Caller, script: &str) -> Command {
        let mut command = caller.command("bash");
        let enter = format!(
            "echo $$ > {}/cgroup.procs && exec setpriv --reuid {1} --regid {1} --clear-groups \"$@\"",
            self.0.display(),
            Self::USER
        );
        command.args(["-c", &enter, "enter", "bash", "-c", script, WALLED]);
        command
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        wait_until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn the_callers_control_group_can_neither_be_killed_nor_frozen() {
    // Only root can make a control group that belongs to a user.
    if !is_real_root() {
        return;
    }
    let caller = Caller::new();
    let directory = caller.home().parent().unwrap().to_owned();
    let status = Command::new("chown")
        .args(["-R", Session::USER])
        .arg(&directory)
        .status();
    assert!(status.unwrap().success());
    let Some(session) = Session::new("kill") else {
        eprintln!("skipped: there are no control groups of version 2 here");
        return;
    };
    let attack = "unshare --user --map-root-user --mount --cgroup bash -c '
        mount -t cgroup2 none /tmp && echo 1 > /tmp/cgroup.kill'";
    // The shell that waits stands for the terminal. Positive control: without the wall it
    // is killed with the rest.
    let bare = session
        .script(&caller, &format!("{attack}; echo alive"))
        .output()
        .unwrap();
    assert_eq!(bare.stdout, b"");
    let walled = "\"$0\" --nested -- bash -c \"$ATTACK\"; echo alive $?";
    let mut command = session.script(&caller, walled);
    command.env("ATTACK", attack);
    // Killed, it takes no more than the sandbox with it.
    command.env("PATH", "/usr/bin:/bin");
    let seen = output(command);
    assert!(seen.starts_with("alive 1"), "{seen}");
    // And the sandbox's group goes with it.
    let left = fs::read_dir(&session.0).unwrap().flatten();
    let left = left.filter(|entry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(b"stockade")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn setuid_programs_and_file_capabilities_give_nothing() {
    let caller = Caller::new();
    let probe = "for program in su mount passwd chsh newgrp; do
            [ -u \"$(command -v $program)\" ] && echo found; done | sort -u
        cp /bin/cat ./cat && chmod u+s ./cat; ./cat /proc/self/status | grep -E '^(CapEff|NoNewPrivs)'";
    let seen = output(caller.script(probe));
    assert!(seen.ends_with("NoNewPrivs:\t1\n"), "{seen}");
    assert!(seen.contains("CapEff:\t0000000000000000\n"), "{seen}");
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
    // What other users leave belongs to them.
    if !is_real_root() {
        return;
    }
    for mode in ["4755", "2755", "6755"] {
        let caller = Caller::new();
        assert_eq!(
            output(caller.walled(&["perl", "-e", SET_ID, mode])),
            "",
            "{mode}"
        );
        // Positive control: outside each way works.
        let caller = Caller::new();
        let mut outside = caller.command("perl");
        outside.args(["-e", SET_ID, mode]);
        assert_eq!(
            output(outside),
            "chmod creat fchmod fchmodat fchmodat2 mknod mknodat open openat openat2 tmpfile ",
        );
    }
    // Other modes can be set.
    let caller = Caller::new();
    let modes = "umask 0; mkdir -m 1777 d; install -m 555 /bin/true f; stat -c %a d f";
    assert_eq!(output(caller.script(modes)), "1777\n555\n");
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
    let caller = Caller::new();
    let mut outside = caller.command("perl");
    outside.args(["-e", MOUNT]);
    // Positive control.
    assert!(output(outside).contains("mounted"));
    assert_eq!(output(caller.walled(&["perl", "-e", MOUNT])), "");
}

#[test]
fn devices_that_belong_to_root_cannot_be_changed_and_work() {
    let caller = Caller::new();
    let devices = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty";
    // What would change the machine's own, if it could: to what it is.
    let change = format!(
        "for d in {devices}; do chmod $(stat -c %a $d) $d 2>/dev/null && echo $d; done; true"
    );
    if is_root() {
        // Positive control.
        assert_eq!(caller.outside(&change).lines().count(), 6);
    }
    assert_eq!(output(caller.script(&change)), "");
    let work = "echo x > /dev/null && echo x >> /dev/null && head -c 1 /dev/urandom > /dev/zero
        dd if=/dev/zero bs=7 count=1 status=none of=/tmp/x; wc -c < /tmp/x
        python3 -c 'import os; os.open(\"/dev/null\", os.O_RDWR | os.O_CREAT | os.O_TRUNC)'
        echo x 2>&1 > /dev/full | grep -c 'No space'";
    assert_eq!(output(caller.script(work)), "7\n1\n");
}
