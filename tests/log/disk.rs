//! A log that cannot be written ends nothing, is said, and never lies.

use std::{
    ffi::CStr,
    fs::{self, File},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use rustix::mount::{MountFlags, mount};
use serde_json::Value;
use stockade_world::{Laptop, PATIENCE, eventually, test};

use super::{lines_in, logs, of};
use crate::support::standard;

/// Waits for a line of input, then is denied sixty times, and says so.
const ROUND: &str = "round() {
    read go
    for port in $(seq $1 $(($1 + 59))); do curl -s --max-time 20 http://10.20.0.5:$port/; done
    echo done $1
}
";

/// A small disk for the user's state.
pub(crate) fn small_disk(laptop: &Laptop) -> std::path::PathBuf {
    disk(laptop, c"size=128k,mode=0777")
}

pub(crate) fn disk(laptop: &Laptop, options: &CStr) -> std::path::PathBuf {
    let path = laptop.home().join("small");
    fs::create_dir(&path).expect("a directory");
    mount("small", &path, "tmpfs", MountFlags::empty(), options).expect("a small disk");
    path
}

/// Takes all that is left of the disk.
pub(crate) fn fill(disk: &Path) {
    let mut file = File::create(disk.join("filler")).expect("a file");
    let full = loop {
        if let Err(error) = file.write_all(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
}

/// Until the log's thread has come to as many: the program inside does not wait for it.
fn wait_for_denials(laptop: &Laptop, state: &Path, count: u64) {
    let is_there = || {
        let ps = laptop
            .stockade(["ps", "--json"])
            .env("XDG_STATE_HOME", state);
        let sessions: Value = serde_json::from_str(&ps.run().expect("run").stdout()).expect("JSON");
        sessions[0]["denied"] == count
    };
    eventually("denials", PATIENCE, is_there).expect("all denials");
}

fn ports(lines: &[Value], first: u16) -> usize {
    let here = (first..first + 60).map(|port| format!("tcp://10.20.0.5:{port}"));
    let mut here = here.filter(|what| of(lines, "deny").iter().any(|line| line["what"] == **what));
    here.by_ref().count()
}

#[test]
fn a_full_disk_ends_nothing_is_said_once_and_leaves_a_marked_gap() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let disk = small_disk(laptop);
        let script = format!("{ROUND} round 1000; round 2000; round 3000; exit 3");
        let mut session = laptop
            .stockade(["run", "--quiet", "--", "sh", "-c", &script])
            .env("XDG_STATE_HOME", &disk)
            .spawn()
            .expect("a session");
        let logs = disk.join("stockade/sessions");
        session.write("\n").expect("go");
        session.expect("done 1000").expect("the first round");
        wait_for_denials(laptop, &disk, 60);
        assert_eq!(ports(&lines_in(&logs), 1000), 60, "the control");

        fill(&disk);
        session.write("\n").expect("go");
        session.expect("done 2000").expect("the second round");
        wait_for_denials(laptop, &disk, 120);
        // Nothing is written in part, also while there is no room.
        let kept = ports(&lines_in(&logs), 2000);
        assert!(kept < 60, "{kept} of 60 were written to a full disk");

        fs::remove_file(disk.join("filler")).expect("room");
        session.write("\n").expect("go");
        session.expect("done 3000").expect("the third round");
        let output = session.wait().expect("an end").expect_code(3);

        let lines = lines_in(&logs);
        let [lost] = of(&lines, "lost")[..] else {
            panic!("{:?}", of(&lines, "lost"));
        };
        assert_eq!(lost["count"], 60 - kept);
        assert!(lost["why"].as_str().expect("why").contains("No space left"));
        assert_eq!(ports(&lines, 2000), kept);
        assert_eq!(ports(&lines, 3000), 60);
        assert_eq!(of(&lines, "end")[0]["denied"], 180);
        // In its place.
        let place = lines.iter().position(|line| line["event"] == "lost");
        let next = &lines[place.expect("a gap") + 1];
        assert_eq!(next["what"], "tcp://10.20.0.5:3000");
        let said = output.stderr();
        assert_eq!(said.matches("could not be logged").count(), 1, "{said}");
        assert!(said.contains(&format!("{} events", 60 - kept)), "{said}");

        let shown = laptop
            .stockade(["log", "--denied"])
            .env("XDG_STATE_HOME", &disk);
        let shown = shown.run().expect("run").expect_success();
        assert!(shown.stdout().contains("could not be written"), "{shown:?}");
    });
}

#[test]
fn a_session_that_begins_on_a_full_disk_says_what_it_is_when_there_is_room() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let disk = small_disk(laptop);
        let logs = disk.join("stockade/sessions");
        fs::create_dir_all(&logs).expect("a directory");
        for path in [logs.parent().expect("one above"), &logs] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("a mode");
        }
        fill(&disk);
        let script = format!("{ROUND} round 1000; round 2000");
        let mut session = laptop
            .stockade(["run", "--quiet", "--", "sh", "-c", &script])
            .env("XDG_STATE_HOME", &disk)
            .spawn()
            .expect("a session");
        session.write("\n").expect("go");
        session.expect("done 1000").expect("the first round");
        wait_for_denials(laptop, &disk, 60);
        assert_eq!(lines_in(&logs), [] as [Value; 0]);
        fs::remove_file(disk.join("filler")).expect("room");
        session.write("\n").expect("go");
        let output = session.wait().expect("an end").expect_success();
        let said = output.stderr();
        assert!(said.contains("before the log has room"), "{said}");
        let lines = lines_in(&logs);
        assert_eq!(lines[0]["event"], "start");
        assert_eq!(lines[1]["event"], "lost");
        assert_eq!(lines[1]["count"], 60);
        assert_eq!(ports(&lines, 2000), 60);
    });
}

#[test]
fn a_limit_of_the_size_of_files_does_not_kill_the_session() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let script = format!("{ROUND} round 1000; exit 3");
        // In units of 512 bytes. The signal that the kernel sends for it ends a program.
        let line = "ulimit -f 8 && exec stockade run --quiet -- sh -c \"$0\"";
        let limited = laptop.command("/bin/sh").args(["-c", line, &script]);
        let output = limited.input("\n").run().expect("run").expect_code(3);
        let said = output.stderr();
        assert_eq!(said.matches("File too large").count(), 1, "{said}");
        let lines = super::lines(laptop);
        let kept = ports(&lines, 1000);
        assert!((1..60).contains(&kept), "{kept}");
        let shown = laptop.stockade(["log"]).run().expect("run");
        let shown = shown.expect_success();
        // Whether the last line fits depends on the lengths of the others.
        let shown = shown.stdout();
        let is_marked =
            shown.contains("could not be written") || shown.contains("ended abnormally");
        assert!(is_marked, "{shown}");
    });
}

#[test]
fn a_launch_that_fails_leaves_no_log_and_says_what_has_run_out() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for limit in ["-n 20", "-n 30", "-n 48"] {
            let line = format!("ulimit {limit}; exec stockade run -- true");
            let failed = laptop.shell(&line).run().expect("run").expect_code(125);
            assert!(failed.stderr().contains("ulimit -n 1024"), "{failed:?}");
        }
        let count = || fs::read_dir(logs(laptop)).expect("a directory").count();
        assert_eq!(count(), 0);
        // Positive control.
        let line = "ulimit -n 1024; exec stockade run -- true";
        laptop.shell(line).run().expect("run").expect_success();
        assert_eq!(count(), 1);
    });
}
