//! What a program inside can do to what runs outside, and to the machine (F7 to F9, F13).

use stockade_world::{Login, Shape, World, test};

use super::f_files::said;
use super::probe::{INSIDE, Place};
use crate::support::standard;

fn f07(world: &World) {
    let laptop = world.laptop();
    // A process of the same user, with a secret in all that is to be seen of a process.
    let line = "cd ~/.ssh && SECRET=DECOY-SECRET-1 exec -a victim sleep 1000";
    let victim = laptop
        .command("bash")
        .args(["-c", line])
        .spawn()
        .expect("start");
    let pid = victim.pid().as_raw_nonzero();
    let probe = format!(
        "for process in {pid} $PPID 1; do
            for file in environ cwd/id_ed25519 root/home/dev/.netrc fd/0 mem maps exe; do
                timeout 2 head -c 1 /proc/$process/$file >/dev/null 2>&1 && echo read $file; done
            for link in cwd root exe ns/net; do readlink /proc/$process/$link >/dev/null && echo link; done
        done; cat /proc/{pid}/net/tcp6 >/dev/null 2>&1 && echo read net; kill -0 {pid} 2>/dev/null && echo signalled
        gdb -p {pid} -batch 2>/dev/null | grep -q libc && echo traced
        ls /proc/self/fd | grep -vx '[0-3]'; exec 9>&- 8<&-; true"
    );
    let outside = said(laptop, Place::Outside, &probe);
    for sign in ["read environ", "read cwd/id_ed25519", "link", "signalled"] {
        assert!(outside.contains(sign), "{sign}: {outside}");
    }
    // The caller holds a file and a directory open.
    let held = format!(
        "exec 8<~/.netrc 9<~/.ssh; stockade run --quiet -- bash -c '{}'",
        probe.replace('\'', "'\\''")
    );
    let inside = said(laptop, Place::Outside, &held);
    assert_eq!(inside, "");
}

#[test]
fn f07_processes_outside_show_nothing() {
    test(&standard(), |world| f07(world));
}

#[test]
fn f07_the_programs_own_file_cannot_be_overwritten() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let attack = "for file in /proc/self/exe /proc/1/exe /run/stockade/init /usr/bin/bash; do
            (echo x > $file) 2>/dev/null && echo wrote $file; done
            cp /bin/true own && ./own && echo x > own && echo control; ulimit -c unlimited 2>/dev/null
            ulimit -c; cat /proc/sys/kernel/core_pattern > /dev/null; sh -c 'kill -SEGV $$'; ls";
        let seen = said(laptop, INSIDE, attack);
        assert!(seen.starts_with("control\n0\n"), "{seen}");
        assert!(!seen.contains("core"), "{seen}");
    });
}

#[test]
fn f07_no_limit_has_the_host_handle_a_core_dump() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        // At a limit of 1, the kernel neither writes a file nor starts the program that
        // `core_pattern` may name; at 0, it does start that one. The call by its number has a
        // pointer whose low half is null.
        let attack = r#"python3 -c "import ctypes, mmap, resource as r
print(r.prlimit(0, r.RLIMIT_CORE)) if r.getrlimit(r.RLIMIT_CORE) == (1, 1) else print('other')
r.setrlimit(r.RLIMIT_CORE, (0, 0))
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(ctypes.c_void_p(1 << 32), ctypes.c_long(4096), 3, 0x100022, -1, ctypes.c_long(0))
libc.syscall(302, 0, 4, ctypes.c_void_p(at), None)
print(r.getrlimit(r.RLIMIT_CORE))"
            ssh-agent sh -c 'echo agent'"#;
        let control = said(laptop, Place::Outside, attack);
        assert_eq!(control, "other\n(0, 0)\nagent\n");
        assert_eq!(said(laptop, INSIDE, attack), "(1, 1)\n(1, 1)\nagent\n");
    });
}

#[test]
fn f08_there_is_no_privilege_to_be_had() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        // Programs that are setuid on this machine, run inside, and what they have then.
        let probe = "for program in /usr/bin/* /bin/* /usr/sbin/*; do [ -u $program ] && echo setuid; done | sort -u
            grep -E '^(Uid|CapEff|CapPrm|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t' ' '
            cp /usr/bin/grep ./g; chmod 4755 g; ./g -E '^(CapEff|NoNewPrivs):' /proc/self/status | tr -s '\\t' ' '
            setcap cap_net_raw+ep ./g 2>/dev/null && echo capability";
        let seen = said(laptop, INSIDE, probe);
        let uid = laptop.uid();
        for line in [
            format!("Uid: {uid} {uid} {uid} {uid}"),
            "CapEff: 0000000000000000".to_owned(),
            "NoNewPrivs: 1".to_owned(),
            "Seccomp: 2".to_owned(),
        ] {
            assert!(seen.contains(&line), "{line}: {seen}");
        }
        assert!(!seen.contains("capability"), "{seen}");
    });
}

/// Tries calls that no namespace contains; prints the error of each.
const CALLS: &str = "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    ctypes.set_errno(0)
    libc.syscall(*arguments)
    print(name, ctypes.get_errno())
buffer = ctypes.create_string_buffer(256)
call('tiocsti', 16, 0, 0x5412, buffer)
call('tiocsti-high', 16, 0, 0x100005412, buffer)
call('tioclinux', 16, 0, 0x541c, buffer)
call('kdsetmode', 16, 0, 0x4b3a, 1)
call('kdskbmode', 16, 0, 0x4b45, 4)
call('vt_setmode', 16, 0, 0x5602, buffer)
call('keyctl', 250, 0, ctypes.c_long(-4), 0)
call('add_key', 248, buffer, buffer, buffer, 1, ctypes.c_long(-4))
call('io_uring', 425, 1, buffer)
call('bpf', 321, 0, buffer, 8)
call('perf', 298, None, 0, -1, -1, 0)
call('userfaultfd', 323, 1)
call('syslog', 103, 10, 0, 0)
call('x32', 0x40000000 + 39)
";

#[test]
fn f08_calls_that_no_namespace_contains_are_refused() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let calls = |place: Place<'_>| {
            let output = place.python(laptop, CALLS).run().expect("the end");
            output.expect_success().stdout()
        };
        let nested = INSIDE
            .command(laptop, "unshare")
            .args(["--user", "--map-root-user"]);
        let nested = nested.args(["/usr/bin/python3", "-IS", "-c", CALLS]).run();
        for inside in [
            calls(INSIDE),
            nested.expect("the end").expect_success().stdout(),
        ] {
            for line in inside.lines() {
                let expected = if line.starts_with("x32") { "38" } else { "1" };
                assert!(line.ends_with(&format!(" {expected}")), "{inside}");
            }
            assert_eq!(inside.lines().count(), 14);
        }
        let outside = calls(Place::Outside);
        let refused = |name: &str| outside.contains(&format!("{name} 1\n"));
        for name in [
            "tiocsti",
            "tioclinux",
            "kdsetmode",
            "kdskbmode",
            "vt_setmode",
            "io_uring",
            "perf",
            "userfaultfd",
        ] {
            assert!(!refused(name), "{name}: {outside}");
        }
    });
}

/// `place`: where programs have mount namespaces, if that can be had.
fn f09(world: &World, place: Place<'_>) {
    let laptop = world.laptop();
    let change = "exec 2>/dev/null
        for place in / /usr /etc /etc/passwd /run/stockade/init; do
            mount -o remount,bind,rw $place && echo remounted; umount -l $place && echo unmounted
            touch $place/x && echo wrote; done
        umount -l \"$HOME\" && echo uncovered; umount -l /tmp /run /dev && echo uncovered
        mkdir -p /tmp/a /tmp/b && mount --bind / /tmp/a && echo bound
        mount -t proc proc /tmp/b && ls /tmp/b/1/root/home/dev/.ssh && echo escaped
        pivot_root / / && echo pivoted; mount -t sysfs sysfs /tmp/b && echo x > /tmp/b/power/state && echo wrote
        for disk in /dev/vda /dev/sda /dev/dm-0; do mknod /tmp/d b 254 0 && cat /tmp/d | head -c 1 && echo disk; done
        grep -q . /etc/shadow && echo shadow; ls -A /mnt/backup /home/alice && echo seen; echo end";
    let nested = format!(
        "unshare --user --map-root-user --mount --pid --fork --net --ipc --uts bash -c '{}'",
        change.replace('\'', "'\\''")
    );
    assert_eq!(said(laptop, INSIDE, change), "end\n");
    let output = place.command(laptop, "bash").args(["-c", &nested]).run();
    let output = output.expect("the end");
    let expected = match place {
        Place::Nested => "end\n",
        _ => "",
    };
    assert_eq!(output.stdout(), expected, "{output:?}");
    // In namespaces of one's own, outside, some of it succeeds.
    let outside = said(laptop, Place::Outside, &nested);
    assert!(
        outside.contains("bound") || outside.contains("seen"),
        "{outside}"
    );
}

#[test]
fn f09_the_real_root_stays_out_of_reach() {
    test(&standard(), |world| f09(world, Place::Nested));
}

#[test]
fn f09_the_real_root_stays_out_of_reach_in_a_container() {
    test(&standard().shape(Shape::Container), |world| {
        f09(world, INSIDE);
        // Where /proc is the outer one, the broker could not tell the processes.
        let nested = Place::Nested.command(world.laptop(), "true").run();
        let refused = nested.expect("the end").expect_code(125).stderr();
        assert!(refused.contains("a part of /proc is masked"), "{refused}");
    });
}

#[test]
fn f09_root_inside_has_no_more_than_others() {
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        let probe = "touch /usr/x /etc/x /x 2>/dev/null && echo wrote; cat /etc/shadow 2>/dev/null
            mount -t tmpfs none /mnt 2>/dev/null && echo mounted
            echo 1 2>/dev/null > /proc/sys/kernel/sysrq && echo set; grep CapEff /proc/self/status";
        assert_eq!(said(laptop, INSIDE, probe), "CapEff:\t0000000000000000\n");
    });
}

/// Forks until that fails, or there are enough. Prints how many.
const FORKS: &str = "import os, time, signal
n = 0
try:
    while n < 200:
        if os.fork() == 0:
            time.sleep(100)
            os._exit(0)
        n += 1
except OSError:
    pass
print(n, flush=True)
os.killpg(0, signal.SIGKILL)";

#[test]
fn f13_a_fork_bomb_meets_the_limit() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let forks = |options: &[&str]| -> u32 {
            let session = laptop.stockade(["run", "--quiet"]).args(options);
            let session = session.args(["--", "/usr/bin/python3", "-IS", "-c", FORKS]);
            let output = session.run().expect("the end").stdout();
            output.trim().parse().expect("a number")
        };
        assert_eq!(forks(&[]), 200);
        let limited = forks(&["--limit", "processes=40"]);
        assert!((20..40).contains(&limited), "{limited}");
        // There is a limit without configuration, too; and the host is not under it.
        let limit = said(laptop, INSIDE, "ulimit -u; ulimit -Hu");
        assert_eq!(limit, "4096\n4096\n");
    });
}

#[test]
fn f13_files_in_memory_meet_the_limit() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let fill = "for place in /tmp /var/tmp /dev/shm ~ /run ~/.cache; do
            head -c 4M /dev/zero > $place/fill; done 2>/dev/null
            cat /tmp/fill /var/tmp/fill /dev/shm/fill ~/fill /run/fill ~/.cache/fill | wc -c";
        let filled = |options: &[&str]| -> u64 {
            // Caches that are kept are on disk.
            let session = laptop.stockade(["run", "--quiet", "--caches", "scratch"]);
            let session = session.args(options);
            let output = session
                .args(["--", "bash", "-c", fill])
                .run()
                .expect("the end");
            output.stdout().trim().parse().expect("a number")
        };
        assert_eq!(filled(&[]), 24 << 20);
        let limited = filled(&["--limit", "tmpfs=8M"]);
        assert!((4 << 20..=8 << 20).contains(&limited), "{limited}");
    });
}

#[test]
fn f13_memory_meets_the_limit() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let take = "print(len(bytearray(512 << 20)))";
        let session = |options: &[&str]| {
            let session = laptop.stockade(["run", "--quiet"]).args(options);
            session
                .args(["--", "/usr/bin/python3", "-IS", "-c", take])
                .run()
                .expect("the end")
        };
        assert_eq!(session(&[]).expect_success().stdout(), "536870912\n");
        assert!(!session(&["--limit", "memory=256M"]).succeeded());
    });
}
