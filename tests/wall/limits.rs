//! Limits hold, and the host stays usable (F13).

use stockade_world::Login;

use super::{Caller, output, run, test, test_as};

/// Forks children that sleep, until that fails or there are too many. Prints how many.
const FORKS: &str = "perl -e '$| = 1; $n = 0; while ($n < 400) { my $p = fork; last unless defined $p; \
    if (!$p) { sleep 100; exit } $n++ } print qq($n\\n); kill 9, -getpgrp'";

fn forks(caller: &Caller<'_>, options: &[&str], script: &str) -> u32 {
    let (_, seen, messages) = run(caller.with(options, script));
    seen.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{seen}{messages}"))
}

#[test]
fn processes_are_counted_in_the_sandbox_alone() {
    test_as(Login::Dev, |caller| {
        let script = format!("setsid {FORKS} & wait");
        assert_eq!(forks(caller, &[], &script), 400, "positive control");
        let made = forks(caller, &["--limit", "processes=50"], &script);
        assert!((30..50).contains(&made), "{made}");
        // Nested namespaces count, too, and the limit cannot be raised.
        let nested = format!("ulimit -u 300 2>/dev/null; setsid unshare -Ur {FORKS} & wait");
        let made = forks(caller, &["--limit", "processes=50"], &nested);
        assert!(made < 50, "{made}");
    });
}

#[test]
fn places_in_memory_share_one_limit() {
    test(|caller| {
        // 3 MiB to each of five places.
        let fill = "mkdir -p ~/.cache; for place in /tmp /var/tmp /dev/shm ~ /run; do
        head -c 3M /dev/zero > $place/fill 2>/dev/null; done
        cat /tmp/fill /var/tmp/fill /dev/shm/fill ~/fill /run/fill | wc -c; exit 0";
        assert_eq!(output(caller.script(fill)).trim(), (15 << 20).to_string());
        let held: u64 = output(caller.with(&["--limit", "tmpfs=8M"], fill))
            .trim()
            .parse()
            .unwrap();
        assert!((4 << 20..=8 << 20).contains(&held), "{held}");
        // And there is no other place to fill.
        let probe = "touch /x /dev/x /proc/x /run/stockade/x 2>/dev/null; ls /x /dev/x 2>/dev/null";
        assert_eq!(run(caller.script(probe)).1, "");
    });
}

#[test]
fn changes_that_are_not_kept_count_as_memory() {
    test(|caller| {
        for place in [".cache", ".local/share"] {
            caller.write(caller.home().join(place).join("file"), "x");
            let fill = format!(
                "head -c 32M /dev/zero > ~/{place}/fill 2>/dev/null; stat -c %s ~/{place}/fill"
            );
            let options = ["--limit", "tmpfs=8M", "--caches", "scratch"];
            let held: u64 = output(caller.with(&options, &fill)).trim().parse().unwrap();
            assert!(held <= 8 << 20, "{place}: {held}");
        }
    });
}

#[test]
fn memory_is_limited_and_reserved_addresses_are_not() {
    test(|caller| {
        let take = "perl -e '$x = qq(x) x (256 << 20); print length $x'";
        let limit = ["--limit", "memory=128M"];
        assert_eq!(output(caller.script(take)), (256 << 20).to_string());
        assert_ne!(run(caller.with(&limit, take)).0, 0);
        // 64 GiB of addresses without memory, as language runtimes take them.
        let reserve = "perl -e 'print syscall(9, 0, 64 << 30, 0, 0x22, -1, 0) != -1 ? 1 : 0'";
        assert_eq!(output(caller.with(&limit, reserve)), "1");
    });
}

#[test]
fn processor_time_and_open_files_are_limited() {
    test(|caller| {
        const SIGXCPU: i32 = 24;
        let (code, ..) = run(caller.with(&["--limit", "cpu_time=1s"], "while :; do :; done"));
        assert_eq!(code, 128 + SIGXCPU, "killed, and by what");
        let defiant = "trap '' XCPU; while :; do :; done";
        let (code, ..) = run(caller.with(&["--limit", "cpu_time=1s"], defiant));
        assert_eq!(code, 128 + 9, "killed all the same");
        let limits = "ulimit -n; ulimit -Hn";
        assert_eq!(
            output(caller.with(&["--limit", "open_files=64"], limits)),
            "64\n64\n"
        );
        // With too few, there is a reason.
        let (code, _, messages) = run(caller.with(&["--limit", "open_files=3"], "true"));
        assert_eq!(code, 125, "{messages}");
        assert!(messages.contains("16"), "{messages}");
        // What the caller has less of stays so.
        let script =
            "ulimit -n 128; exec stockade run --limit open_files=4096 -- bash -c 'ulimit -n'";
        let command = caller.command("bash").args(["-c", script]);
        assert_eq!(output(command), "128\n");
    });
}
