//! Nothing is left behind, however it ends (N18, and the promise of no litter).

use std::{fs, path::Path};

use stockade_world::{Running, Signal};

use super::{Caller, MARK, processes_with, run, test, wait_until};

/// A sandbox in which the command and a detached process of another session sleep. Both
/// carry the mark.
fn sleepers(caller: &Caller<'_>) -> Running {
    let script = "(trap '' HUP TERM INT; setsid -f bash -c 'sleep 1000 & wait' $0)
        trap '' HUP INT; sleep 1000 & wait";
    let session = caller.stockade(&["bash", "-c", script, MARK]);
    let session = session.spawn().unwrap();
    // Warden, bubblewrap, inner stage, command, detached process.
    wait_until("all processes are there", || {
        processes_with(MARK).len() >= 5
    });
    session
}

fn all_gone() {
    wait_until("all processes are gone", || processes_with(MARK).is_empty());
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
    test(|caller| {
        let mounts = fs::read("/proc/self/mounts").unwrap();
        let script = "setsid -f sleep 1000; (sleep 1000 &); exit 0";
        let (code, ..) = run(caller.stockade(&["bash", "-c", script, MARK]));
        assert_eq!(code, 0);
        // At once, not eventually: the warden waits for the namespace's end.
        assert_eq!(processes_with(MARK), [0; 0]);
        assert_eq!(fs::read("/proc/self/mounts").unwrap(), mounts);
        assert!(names(&caller.project()).is_empty());
        // But for the log.
        assert_eq!(names(&caller.home()), [".local"]);
    });
}

#[test]
fn after_the_wardens_violent_death_everything_inside_dies() {
    test(|caller| {
        let warden = sleepers(caller);
        warden.signal(Signal::KILL).unwrap();
        warden.wait().unwrap();
        all_gone();
    });
}

#[test]
fn after_a_signal_everything_inside_dies() {
    test(|caller| {
        let warden = sleepers(caller);
        warden.signal(Signal::TERM).unwrap();
        assert_eq!(warden.wait().unwrap().code(), 143);
        assert_eq!(processes_with(MARK), [0; 0]);
    });
}

#[test]
fn after_bubblewraps_violent_death_the_warden_says_so() {
    test(|caller| {
        let warden = sleepers(caller);
        let is_bubblewrap = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "bwrap\n")
        };
        let bubblewrap = processes_with(MARK)
            .into_iter()
            .find(is_bubblewrap)
            .unwrap();
        caller.outside(&format!("kill -KILL {bubblewrap}"));
        assert_eq!(warden.wait().unwrap().code(), 125);
        all_gone();
    });
}

#[test]
fn a_failed_start_is_125_and_leaves_nothing() {
    test(|caller| {
        // Where no user namespace may be made but the warden's, bubblewrap fails.
        let script = "echo 1 > /proc/sys/user/max_user_namespaces
        exec stockade run -- bash -c 'echo ran' \"$0\"";
        let command = caller
            .command("unshare")
            .args(["--user", "--map-root-user", "bash", "-c", script])
            .arg(MARK);
        let (code, stdout, messages) = run(command);
        assert_eq!((code, stdout.as_str()), (125, ""), "{messages}");
        assert!(
            messages.contains("bubblewrap could not build"),
            "{messages}"
        );
        assert_eq!(processes_with(MARK), [0; 0]);
    });
}

#[test]
fn killed_at_any_moment_of_the_start_the_warden_leaves_nothing() {
    test(|caller| {
        for milliseconds in 0..25 {
            let warden = caller.stockade(&["bash", "-c", "sleep 1000; exit", MARK]);
            let warden = warden.spawn().unwrap();
            // Not to wait for a state, but to hit another one each time.
            std::thread::sleep(std::time::Duration::from_millis(milliseconds));
            warden.signal(Signal::KILL).unwrap();
            warden.wait().unwrap();
            all_gone();
        }
    });
}
