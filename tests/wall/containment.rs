//! A hostile command tries to get at what is outside (F7 to F9).

use std::fs;

use stockade_world::{Login, is_real_root};

use super::{Caller, output, run, test, test_as};

/// Runs `inner` from a script that is the leader of its process group and tells of every
/// SIGUSR1 that reaches it.
fn listening(caller: &Caller<'_>, inner: &str) -> String {
    let script = format!("trap 'echo reached' USR1; {inner}; echo end");
    output(caller.command("bash").args(["-c", &script]))
}

#[test]
fn signals_to_the_own_process_group_stay_inside() {
    test(|caller| {
        let attack = "bash -c 'trap \"\" USR1; kill -USR1 0'";
        // Positive controls: the signal is heard without a sandbox; and a process namespace
        // alone does not stop it.
        assert_eq!(listening(caller, attack), "reached\nend\n");
        let bare = format!("bwrap --unshare-all --ro-bind / / --proc /proc {attack}");
        assert_eq!(listening(caller, &bare), "reached\nend\n");

        assert_eq!(
            listening(caller, &format!("stockade run -- {attack}")),
            "end\n"
        );
        // Nor does it reach the sandbox's keepers: it is the command that dies.
        let (code, ..) = run(caller.script("kill -KILL 0"));
        assert_eq!(code, 137);
    });
}

#[test]
fn outer_processes_can_neither_be_seen_nor_signalled() {
    test(|caller| {
        // So that its number is none that the command's few processes have inside.
        caller.outside("for i in {1..100}; do (:); done");
        let victim = caller.command("sleep").arg("1000").spawn().unwrap();
        let pid = victim.pid().as_raw_nonzero();
        let probe = format!("kill -0 {pid} || test -e /proc/{pid} && echo reached");
        // Positive control: outside, the same user can do both.
        assert_eq!(
            output(caller.command("bash").args(["-c", &probe])),
            "reached\n"
        );
        assert!(pid.get() > 100, "{pid}");
        assert_eq!(run(caller.script(&probe)).1, "");
    });
}

#[test]
fn the_keeper_inside_cannot_be_killed_or_looked_into() {
    test(|caller| {
        let probe = "kill -KILL 1; kill -STOP 1; kill -TERM 1
        for file in environ maps fd/0 root/etc exe mem; do
            head -c 1 /proc/1/$file >/dev/null 2>&1 && echo read $file
        done
        echo x 2>/dev/null > /proc/1/exe && echo wrote exe
        head -c 1 /proc/self/maps > /dev/null && echo control
        exit 4";
        let (code, stdout, _) = run(caller.script(probe));
        assert_eq!((code, stdout.as_str()), (4, "control\n"));
    });
}

#[test]
fn the_inner_stages_file_cannot_be_changed() {
    test(|caller| {
        let path = output(caller.command("sh").args(["-c", "command -v stockade"]));
        let before = fs::read(path.trim()).unwrap();
        let probe = "echo x >> /run/stockade/init; rm -f /run/stockade/init; \
                 mv /run/stockade/init /tmp; chmod 777 /run/stockade/init";
        run(caller.script(probe));
        assert!(fs::read(path.trim()).unwrap() == before);
        output(caller.stockade(&["true"]));
    });
}

#[test]
fn there_is_no_privilege_inside() {
    test(|caller| {
        let status = output(caller.stockade(&["cat", "/proc/self/status"]));
        for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert!(
                status.contains(&format!("{name}:\t0000000000000000\n")),
                "{status}"
            );
        }
        assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
        assert!(status.contains("Seccomp:\t2\n"), "{status}");
        let limits = output(caller.stockade(&["cat", "/proc/self/limits"]));
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core"))
            .unwrap();
        let values: Vec<_> = core.split_whitespace().skip(4).take(2).collect();
        // At 0, the kernel would still start a program that handles core dumps.
        assert_eq!(values, ["1", "1"]);
    });
}

/// The capabilities of bubblewrap in a session that runs.
fn of_bubblewrap(caller: &Caller<'_>) -> String {
    // The warden, in its own user namespace, has every capability there.
    let script = "coproc stockade run -- sh -c 'echo up; read x'
        read -u ${COPROC[0]} up
        bwrap=$(cat /proc/$COPROC_PID/task/*/children)
        grep -E 'CapPrm|CapBnd' /proc/${bwrap% }/status
        echo >&${COPROC[1]}; wait";
    output(caller.command("bash").args(["-c", script]))
}

#[test]
fn bubblewrap_holds_no_capability() {
    test(|caller| {
        let capabilities = of_bubblewrap(caller);
        assert!(capabilities.starts_with("CapPrm:\t0000000000000000\n"));
    });
}

#[test]
fn bubblewrap_of_root_holds_at_most_the_capability_to_map_root() {
    test_as(Login::Root, |caller| {
        let capabilities = of_bubblewrap(caller);
        assert!(capabilities.starts_with("CapPrm:\t0000000000000000\n"));
        // Bubblewrap has given up what it had; what it can have had is in its bounding set.
        assert!(
            capabilities.ends_with("CapBnd:\t0000000080000000\n"),
            "{capabilities}"
        );
    });
}

const SETTINGS: &str = "test -w /proc/sys/kernel/core_pattern && echo writable; \
    test -w /proc/sysrq-trigger && echo writable; true";

#[test]
fn kernel_settings_cannot_be_written_to_even_by_root() {
    if !is_real_root() {
        return;
    }
    test_as(Login::Root, |caller| {
        // Positive control.
        let outside = caller.command("bash").args(["-c", SETTINGS]);
        assert!(output(outside).starts_with("writable"));
        assert_eq!(output(caller.script(SETTINGS)), "");
    });
}

#[test]
fn kernel_settings_cannot_be_written_to_from_nested_namespaces() {
    test_as(Login::Dev, |caller| {
        assert_eq!(output(caller.script(SETTINGS)), "");
        // Nor through a fresh /proc of a nested namespace, or by uncovering the old one.
        let nested = format!(
            "unshare --user --map-root-user --mount --pid --fork --mount-proc bash -c '{SETTINGS}'
         unshare --user --map-root-user --mount bash -c '
            umount /proc/sys; mount -o remount,rw,bind /proc; {SETTINGS}'"
        );
        let (_, stdout, _) = run(caller.script(&nested));
        assert_eq!(stdout, "");
        let (_, stdout, _) = run(caller.with(&["--nested"], &nested));
        assert_eq!(stdout, "");
    });
}

#[test]
fn read_only_places_stay_so_in_a_nested_namespace() {
    test_as(Login::Dev, |caller| {
        let nested = "unshare --user --map-root-user --mount bash -c '
        echo nested
        mount -o remount,rw,bind /usr && echo remounted
        umount /usr && echo unmounted
        umount \"$HOME\" && echo uncovered; true'";
        assert_eq!(run(caller.with(&["--nested"], nested)).1, "nested\n");
        assert_eq!(run(caller.script(nested)).1, "");
    });
}

/// Adds a key to the session keyring, then runs the rest of the line.
const WITH_KEY: &str = "my ($type, $name, $key) = qw(user stockade-decoy secret); \
     syscall(`uname -m` =~ /x86/ ? 248 : 217, $type, $name, $key, 6, -3) > 0 or die $!; \
     exec @ARGV";

/// Looks for that key. (10 is KEYCTL_SEARCH, -3 the session keyring.)
const FIND_KEY: &str = "my ($type, $name) = qw(user stockade-decoy); \
     print syscall(`uname -m` =~ /x86/ ? 250 : 219, 10, -3, $type, $name, 0) > 0 ? 1 : 0";

#[test]
fn keys_of_the_users_session_are_not_there() {
    test(|caller| {
        let find = |wall: &[&str]| {
            let command = caller
                .command("perl")
                .args(["-e", WITH_KEY, "--"])
                .args(wall)
                .args(["perl", "-e", FIND_KEY]);
            output(command)
        };
        assert_eq!(find(&[]), "1");
        assert_eq!(find(&["stockade", "run", "--"]), "0");
    });
}

/// What ioctl(2) on the standard input answers to a request, tried with perl.
const IOCTL: &str = "$! = 0; my $x = 'x'; syscall($^O eq 'linux' && `uname -m` =~ /x86/ ? 16 : 29, \
     0, 0 + $ARGV[0], $x); print 0 + $!, qq(\\n)";

/// Tells the error number of socket(2) for a family, or 0.
const SOCKET: &str = "socket(my $s, shift, 1, 0) ? print 0 : print $! + 0; print \"\\n\"";

#[test]
fn sockets_to_the_host_of_a_virtual_machine_are_refused() {
    test(|caller| {
        let (vsock, inet) = ("40", "2");
        let outside = |family| {
            let perl = caller.command("perl").args(["-e", SOCKET, family]);
            output(perl)
        };
        let inside = |family| output(caller.stockade(&["perl", "-e", SOCKET, family]));
        // Positive control: outside it works, or the kernel does not have it.
        assert_ne!(outside(vsock), "1\n");
        assert_eq!(inside(vsock), "97\n");
        assert_eq!(
            (outside(inet), inside(inet)),
            ("0\n".to_owned(), "0\n".to_owned())
        );
    });
}

#[test]
fn the_kernels_key_store_is_refused() {
    // keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING), add_key and request_key with no
    // arguments that mean anything.
    const PROBE: &str = "for my $call (250, 248, 249) {
        $! = 0; syscall($call, 0, -4, 0, 0, 0); print $! + 0, ' ' }";
    test(|caller| {
        let outside = caller.command("perl").args(["-e", PROBE]);
        // Positive control: outside none of them is forbidden.
        assert!(!output(outside).split(' ').any(|error| error == "1"));
        assert_eq!(output(caller.stockade(&["perl", "-e", PROBE])), "1 1 1 ");
    });
}

#[test]
fn io_uring_which_no_filter_sees_is_refused() {
    // io_uring_setup(1, NULL): EFAULT where it is permitted.
    const PROBE: &str = "syscall(425, 1, 0); print $! + 0; print \"\\n\"";
    test(|caller| {
        let outside = caller.command("perl").args(["-e", PROBE]);
        // Positive control: outside it is another error, that of the missing argument.
        assert_eq!(output(outside), "14\n");
        assert_eq!(output(caller.stockade(&["perl", "-e", PROBE])), "1\n");
    });
}

#[test]
fn faked_terminal_input_is_refused_whatever_the_high_bits() {
    test(|caller| {
        let tiocsti = 0x5412_u64;
        for request in [tiocsti, tiocsti | 1 << 32, 0x541c, 0x541c | 1 << 63] {
            // As a negative number, since that is what perl can pass.
            let request = request.cast_signed().to_string();
            let arguments = ["perl", "-e", IOCTL, "--", &request];
            let outside = caller.command("perl").args(&arguments[1..]);
            // Positive control: outside it is another error, for /dev/null is no terminal.
            assert_eq!(output(outside), "25\n");
            assert_eq!(output(caller.stockade(&arguments)), "1\n", "{request}");
        }
        // And other requests pass.
        let size = 0x5413_u32.to_string();
        assert_eq!(
            output(caller.stockade(&["perl", "-e", IOCTL, &size])),
            "25\n"
        );
    });
}
