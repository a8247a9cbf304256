//! Nothing is left behind, however it ends (N18, and the promise of no litter).

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
};

use crate::support::{Caller, WALLED, kill, mark, processes_with, run, wait_until};

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
    // Where no user namespace may be made but the warden's, bubblewrap fails.
    let script = "echo 1 > /proc/sys/user/max_user_namespaces
        exec \"$0\" -- bash -c 'echo ran' \"$1\"";
    let mut command = caller.command("unshare");
    command
        .args(["--user", "--map-root-user", "bash", "-c", script])
        .args([WALLED, &mark]);
    let (code, stdout, messages) = run(command);
    assert_eq!((code, stdout.as_str()), (125, ""), "{messages}");
    assert!(
        messages.contains("bubblewrap could not build"),
        "{messages}"
    );
    assert_eq!(processes_with(&mark), []);
}

#[test]
fn killed_at_any_moment_of_the_start_the_warden_leaves_nothing() {
    let caller = Caller::new();
    let mark = mark("kill-start");
    for milliseconds in 0..25 {
        let mut warden = caller
            .walled(&["bash", "-c", "sleep 1000; exit", &mark])
            .spawn()
            .unwrap();
        // Not to wait for a state, but to hit another one each time.
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        warden.kill().unwrap();
        warden.wait().unwrap();
        all_gone(&mark);
    }
}
