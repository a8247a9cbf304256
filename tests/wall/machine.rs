//! What only the machine's own root can arrange: control groups of a user, and disks.
//!
//! A world has neither, so these tests run beside it, in sessions without a network.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{self, Command},
};

use stockade_world::is_real_root;
use tempfile::TempDir;

use super::wait_until;

/// An ordinary user of the machine.
const NOBODY: &str = "65534";

/// A home and a project, and the program where everybody can execute it.
struct Surroundings(TempDir);

impl Surroundings {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["home", "project"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        fs::copy(
            env!("CARGO_BIN_EXE_stockade"),
            directory.path().join("stockade"),
        )
        .unwrap();
        Self(directory)
    }

    /// Runs a script in the project, in which `$S` is `stockade run` without a network.
    fn script(&self, before: &str, script: &str) -> (String, String) {
        let path = |name: &str| self.0.path().join(name);
        let mut command = Command::new("bash");
        command.args(["-c", &format!("{before} \"$@\""), "before"]);
        command.args(["bash", "-c", script]);
        command
            .current_dir(path("project"))
            .env("HOME", path("home"));
        let stockade = format!("{} run --mode none", path("stockade").display());
        let output = command.env("S", stockade).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }
}

fn chown(path: &Path) {
    let mut chown = Command::new("chown");
    assert!(
        chown
            .args(["-R", NOBODY])
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
}

/// Not by a macro: libtest would keep the line to itself.
fn not_tested(why: &str) {
    let _ = io::stderr().write_all(format!("NOT TESTED: {why}\n").as_bytes());
}

/// A control group that belongs to an ordinary user, as those of a login session do.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let line = mounts.lines().find(|line| line.contains(" cgroup2 rw"))?;
        let root = Path::new(line.split(' ').nth(1)?);
        let group = root.join(format!("test-kill-{}", process::id()));
        fs::create_dir(&group).ok()?;
        chown(&group);
        Some(Self(group))
    }
}

impl Drop for Group {
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
    let Some(group) = Group::new() else {
        not_tested("the caller's control group: there are none of version 2 here");
        return;
    };
    let caller = Surroundings::new();
    chown(caller.0.path());
    let enter = format!(
        "echo $$ > {}/cgroup.procs && exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups",
        group.0.display()
    );
    let attack = "unshare --user --map-root-user --mount --cgroup bash -c \
        'mount -t cgroup2 none /tmp && echo 1 > /tmp/cgroup.kill'";
    // The shell that waits stands for the terminal. Positive control: without the wall it
    // is killed with the rest.
    let (bare, _) = caller.script(&enter, &format!("{attack}; echo alive"));
    assert_eq!(bare, "");
    // Killed, it takes no more than the sandbox with it.
    let walled = format!("$S --nested -- {attack}; echo alive $?");
    let (seen, messages) = caller.script(&enter, &walled);
    assert!(seen.starts_with("alive 1"), "{seen}{messages}");
    // And the sandbox's group goes with it.
    let left = fs::read_dir(&group.0).unwrap().flatten();
    let left = left.filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(b"stockade")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_disk_is_refused_as_a_stream() {
    // Others can open none, as a rule.
    if !is_real_root() {
        return;
    }
    let caller = Surroundings::new();
    let find = "for disk in /dev/*; do test -b $disk && head -c 1 $disk >/dev/null 2>&1 && echo $disk && break; done";
    let (disk, _) = caller.script("exec", find);
    let disk = disk.trim();
    if disk.is_empty() {
        not_tested("a disk as a stream: there is none here");
        return;
    }
    let (stdout, stderr) = caller.script(
        "exec",
        &format!("$S -- bash -c 'echo ran' < {disk}; echo $?"),
    );
    assert_eq!(stdout, "125\n");
    assert!(stderr.contains("standard input is a disk"), "{stderr}");
}

/// A directory in which capitals do not count, and the kernel does not know.
struct Folded(PathBuf);

impl Folded {
    fn new(source: &Path, place: PathBuf, known_by: &str) -> Option<Self> {
        fs::create_dir(&place).unwrap();
        let mut serve = Command::new("python3");
        serve.args(["-c", include_str!("fold.py")]);
        let served = serve.arg(source).arg(&place).arg(known_by).status();
        served.is_ok_and(|it| it.success()).then_some(Self(place))
    }
}

impl Drop for Folded {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn what_is_hidden_cannot_be_read_by_another_spelling() {
    // Others cannot use /dev/fuse everywhere.
    if !is_real_root() {
        return;
    }
    let caller = Surroundings::new();
    let top = caller.0.path();
    fs::create_dir(top.join("project/keys")).unwrap();
    for file in [".env", ".envrc", "keys/private"] {
        fs::write(top.join("project").join(file), "secret\n").unwrap();
    }
    chown(top);
    let user = format!("setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups");
    for known_by in ["disk", "path"] {
        let place = top.join(known_by);
        let Some(_folded) = Folded::new(&top.join("project"), place, known_by) else {
            not_tested("another spelling of what is hidden: there is no FUSE here");
            return;
        };
        let enter = format!("cd ../{known_by} && exec {user}");
        let run = |arguments: &str| caller.script(&enter, &format!("$S {arguments}; echo $?"));
        let is_refused = |(seen, messages): (String, String), file: &str| {
            assert_eq!(seen, "125\n", "{messages}");
            let named = format!("/{known_by}/{file}\" is to be hidden or read-only");
            let is_said = messages.contains(&named) && messages.contains("capitals");
            assert!(is_said, "{messages}");
        };
        // Positive control: the other spelling is one of the same file.
        let write = "--write .envrc";
        let (seen, messages) = run(&format!("{write} -- cat .ENV"));
        assert_eq!(seen, "secret\n0\n", "{messages}");
        // Of a file, whether it is hidden or read-only.
        is_refused(run(&format!("{write} --hide .env -- cat .ENV")), ".env");
        is_refused(run("-- cat .ENV"), ".envrc");
        // Of a file in what is shown read-only.
        let away = format!("cd ../project && exec {user}");
        let shown = format!("--read ../{known_by} --hide ../{known_by}/keys/private");
        let attempt = format!("$S {shown} -- cat ../{known_by}/keys/PRIVATE; echo $?");
        is_refused(caller.script(&away, &attempt), "keys/private");
        // To the kernel, a directory that it knows again has one place, by whatever spelling, and the cover
        // is there.
        for attempt in ["cat keys/PRIVATE", "cat KEYS/private"] {
            let output = run(&format!("{write} --hide keys -- {attempt}"));
            match known_by {
                "path" => is_refused(output, "keys"),
                _ => assert_eq!(output.0, "1\n", "{}", output.1),
            }
        }
    }
}
