//! Set-up that fails, or is killed, at any step (N19): the command never runs in anything less
//! than the whole sandbox.
//!
//! `strace` makes the n-th call of a kind fail, in every process and thread of the launch. Most
//! launches are refused then. Some steps are for convenience only: then the command runs, and
//! what it finds around itself has to be what it finds without a failure.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use stockade_world::{Output, PATIENCE, Standard, World, test};

use crate::support::standard;

/// The calls that set-up is made of.
const CALLS: [&str; 31] = [
    "bind",
    "capset",
    "clone",
    "clone3",
    "close_range",
    "epoll_create1",
    "execve",
    "fsconfig",
    "fsmount",
    "fsopen",
    "landlock_restrict_self",
    "listen",
    "memfd_create",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "openat2",
    "pipe2",
    "pivot_root",
    "prctl",
    "recvfrom",
    "seccomp",
    "sendto",
    "setpgid",
    "setsockopt",
    "signalfd4",
    "socket",
    "socketpair",
    "umount2",
    "unshare",
];

/// Of a call that is made more often, only so many are tried, evenly spread.
const TRIED: usize = 20;

/// Told by built-in means of the shell alone, so that a failure that is meant for set-up does
/// not hit a program that looks: the filters and capabilities, the files, and the network.
const LOOK: &str = r#"{
    while read -r name value; do
        case $name in Seccomp*|NoNewPrivs:|Cap[^B]*) echo "$name $value" ;; esac
    done < /proc/self/status
    for file in /home/dev/.* /home/*/*; do [ -e "$file" ] && echo "$file"; done
    for target in 10.20.0.5 192.168.10.5 127.0.0.1; do
        exec 3<>/dev/tcp/$target/7 && echo "reached $target"
    done
} 2>/dev/null > "$1"; exit 0"#;

/// A launch under `strace`, with a command that looks around.
struct Launch<'a> {
    world: &'a World,
    name: String,
}

impl Launch<'_> {
    fn file(&self) -> PathBuf {
        self.world.laptop().workspace().join(&self.name)
    }

    fn run(&self, options: &[&str]) -> (Output, Option<String>) {
        let product = ["/run/world/bin/stockade", "run", "--quiet", "--"];
        let launch = self
            .world
            .laptop()
            .command("strace")
            .args(["-qq", "-f", "--seccomp-bpf", "-o"])
            .arg(self.file().with_extension("trace"))
            .args(options)
            .args(product)
            .args(["bash", "-c", LOOK, "look", &self.name]);
        let output = launch.run().expect("strace");
        (output, fs::read_to_string(self.file()).ok())
    }
}

/// What there is to be seen without a failure, and how often each call is made by the process
/// that makes it most.
fn undisturbed(world: &World) -> (String, BTreeMap<String, usize>) {
    let launch = Launch {
        world,
        name: "undisturbed".to_owned(),
    };
    let (output, seen) = launch.run(&["-e", &format!("trace={}", CALLS.join(","))]);
    output.expect_success();
    let trace = fs::read_to_string(launch.file().with_extension("trace")).expect("trace");
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    for line in trace.lines() {
        let mut words = line.splitn(2, ' ');
        let (Some(process), Some(call)) = (words.next(), words.next()) else {
            continue;
        };
        if let Some((call, _)) = call.trim_start().split_once('(') {
            *counts.entry((process, call)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((_, call), count) in counts {
        let known = most.entry(call.to_owned()).or_default();
        *known = count.max(*known);
    }
    (seen.expect("the command ran"), most)
}

/// Which calls to disturb: kind and number.
fn steps(counts: &BTreeMap<String, usize>, tried: usize) -> Vec<(String, usize)> {
    let numbers =
        |count: usize| (0..count.min(tried)).map(move |n| 1 + n * count / count.min(tried));
    counts
        .iter()
        .filter(|(call, _)| CALLS.contains(&call.as_str()))
        .flat_map(|(call, count)| numbers(*count).map(|number| (call.clone(), number)))
        .collect()
}

/// Disturbs each step, on both cores. Gives back how often the command ran.
#[track_caller]
fn disturb(world: &World, steps: Vec<(String, usize)>, how: &str, seen: &str) -> usize {
    let queue = Mutex::new(steps);
    let worker = || {
        let mut ran = 0;
        loop {
            let next = queue.lock().expect("queue").pop();
            let Some((call, number)) = next else {
                return ran;
            };
            let name = format!(
                "{call}-{number}-{}",
                how.split('=').next().unwrap_or_default()
            );
            let launch = Launch { world, name };
            let inject = format!("inject={call}:{how}:when={number}");
            let (output, found) = launch.run(&["-e", &format!("trace={call}"), "-e", &inject]);
            match found {
                Some(found) => {
                    assert_eq!(found, seen, "{inject}: {output:?}");
                    // Who ran the command does not say that it failed to.
                    assert_ne!(output.code(), 125, "{inject}: {output:?}");
                    ran += 1;
                }
                None => assert_ne!(output.code(), 0, "{inject}: {output:?}"),
            }
        }
    };
    thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        workers
            .map(|worker| worker.join().expect("worker"))
            .iter()
            .sum()
    })
}

#[test]
fn n19_the_command_runs_in_the_whole_sandbox_or_not_at_all() {
    // Some hundred launches.
    test(&standard().limit(Duration::from_secs(240)), |world| {
        let net = Standard::serve(world).expect("servers");
        let own = world.laptop().tcp_echo(7).expect("listen");
        let (seen, counts) = undisturbed(world);
        assert!(!seen.contains("reached"), "{seen}");
        // Each call was seen, so that a misspelt one shows.
        let unseen: Vec<_> = CALLS
            .iter()
            .filter(|call| !counts.contains_key(**call))
            .collect();
        assert!(unseen.is_empty(), "not made at all: {unseen:?}");

        let steps = steps(&counts, TRIED);
        let all = steps.len();
        let ran = disturb(world, steps, "error=EPERM", &seen);
        assert!(
            ran < all / 2,
            "most failures should prevent the launch, but {ran} of {all} ran"
        );
        assert_eq!(net.intranet_echo.connections().count(), 0);
        assert_eq!(own.connections().count(), 0);
    });
}

#[test]
fn n19_a_launch_that_is_killed_at_any_step_leaves_nothing_behind() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let (seen, counts) = undisturbed(world);
        let before = world.snapshot().expect("snapshot");
        let steps = steps(&counts, 2);
        let all = steps.len();
        let ran = disturb(world, steps, "signal=KILL", &seen);
        assert!(ran < all, "no kill prevented a launch");
        assert_eq!(net.intranet_echo.connections().count(), 0);
        world
            .wait_until_restored(&before, PATIENCE)
            .expect("nothing left");
    });
}
