//! Nothing is left behind, however it ends (N18, and the promise of no litter).

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
};

use crate::support::{Caller, kill, mark, processes_with, run, wait_until};

/// A sandbox in which the command and a detached process of another session sleep. Both
/// carry `mark`.
fn sleepers(caller: &Caller, mark: &str) -> Child {
    let script = "(trap '' HUP TERM INT; setsid -f bash -c 'sleep 1000 & wait' $0)
        trap '' HUP INT; sleep 1000 & wait";
    let child = caller
        .walled(&["bash", "-c", script, mark])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Warden, bubblewrap, inner stage, command, detached process.
    wait_until("all processes are there", || {
        processes_with(mark).len() >= 5
    });
    child
}

fn all_gone(mark: &str) {
    wait_until("all processes are gone", || processes_with(mark).is_empty());
}

/// Every name below a directory.
fn names(directory: &Path) -> Vec<std::ffi::OsString> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect()
}

#[test]
fn after_a_normal_end_no_process_mount_or_file_is_left() {
    let caller = Caller::new();
    let mark = mark("end");
    let mounts = fs::read("/proc/self/mounts").unwrap();
    let script = "setsid -f sleep 1000; (sleep 1000 &); exit 0";
    let (code, ..) = run(caller.walled(&["bash", "-c", script, &mark]));
    assert_eq!(code, 0);
    // At once, not eventually: the warden waits for the namespace's end.
    assert_eq!(processes_with(&mark), []);
    assert_eq!(fs::read("/proc/self/mounts").unwrap(), mounts);
    assert!(names(&caller.project()).is_empty());
    assert!(names(&caller.home()).is_empty());
}

#[test]
fn after_the_wardens_violent_death_everything_inside_dies() {
    let caller = Caller::new();
    let mark = mark("kill-warden");
    let mut warden = sleepers(&caller, &mark);
    warden.kill().unwrap();
    warden.wait().unwrap();
    all_gone(&mark);
}

#[test]
fn after_a_signal_everything_inside_dies() {
    let caller = Caller::new();
    let mark = mark("term");
    let mut warden = sleepers(&caller, &mark);
    kill("TERM", warden.id());
    assert_eq!(warden.wait().unwrap().code(), Some(143));
    assert_eq!(processes_with(&mark), []);
}

#[test]
fn after_bubblewraps_violent_death_the_warden_says_so() {
    let caller = Caller::new();
    let mark = mark("kill-bwrap");
    let mut warden = sleepers(&caller, &mark);
    let is_bubblewrap = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "bwrap\n")
    };
    let bubblewrap = processes_with(&mark)
        .into_iter()
        .find(is_bubblewrap)
        .unwrap();
    kill("KILL", bubblewrap);
    assert_eq!(warden.wait().unwrap().code(), Some(125));
    all_gone(&mark);
}

#[test]
fn a_failed_start_is_125_and_leaves_nothing() {
    let caller = Caller::new();
    let mark = mark("no-start");
    // A workspace that only its owner's capabilities could enter is refused by the kernel
    // or by bubblewrap; here, a limit keeps bubblewrap from making namespaces.
    let mut command = caller.command("unshare");
    let script = "echo 1 > /proc/sys/user/max_user_namespaces 2>/dev/null
        unshare --user true 2>/dev/null; exec \"$0\" -- bash -c 'echo ran' \"$1\"";
    command
        .args(["--user", "--map-root-user", "bash", "-c", script])
        .args([crate::support::WALLED, &mark]);
    // With one namespace allowed, bubblewrap's first succeeds where it needs only one:
    // so the limit is set to none.
    let script = script.replace("echo 1 >", "echo 0 >");
    let mut none = caller.command("unshare");
    none.args(["--user", "--map-root-user", "bash", "-c", &script])
        .args([crate::support::WALLED, &mark]);
    let (code, stdout, messages) = run(none);
    assert_eq!((code, stdout.as_str()), (125, ""), "{messages}");
    assert!(
        messages.contains("bubblewrap could not build"),
        "{messages}"
    );
    assert_eq!(processes_with(&mark), []);
}
