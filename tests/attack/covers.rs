//! Covers cannot be lifted (P12): what is hidden or read-only in a writable place is a mount point,
//! and the kernel protects a mount point only in the mount namespace of the caller.

use std::fs;

use stockade_world::{Command, Laptop, Signal, test};

use super::f_files::said;
use super::probe::Place;
use crate::support::standard;

const COVERS: &str = include_str!("covers.py");

/// Each way to a mount namespace of one's own.
const WAYS: [&str; 6] = ["own", "together", "apart", "clone", "clone3", "setns"];
const ACTIONS: [&str; 6] = ["read", "rename", "unlink", "rmdir", "exchange", "over"];

/// A hidden file and directory, guards of all kinds, and directories on the way to one.
const COVERED: [&str; 7] = [
    ".env",
    "private",
    ".envrc",
    ".vscode",
    ".git/hooks",
    ".git",
    "deep/down/key",
];

const PREPARE: &str = "mkdir -p aside private .vscode .git/hooks deep/down; git init -q .
    for file in .env private/key .envrc .vscode/tasks.json deep/down/key; do
        echo covered > $file; done; echo plain > plain; echo plain > aside/plain";

/// All that the attack could change.
const STATE: &str = "find . -path ./.git/objects -prune -o -printf '%p %i\\n' | sort
    cat .env private/key .envrc .vscode/tasks.json deep/down/key plain";

const HIDE: [&str; 6] = [
    "--hide",
    ".env",
    "--hide",
    "private",
    "--hide",
    "deep/down/key",
];

fn inside(laptop: &Laptop, options: &[&str]) -> Command {
    let command = laptop.stockade(["run", "--quiet"]).args(HIDE);
    command.args(options).args(["--", "/usr/bin/python3"])
}

/// What the script tells of each path.
fn lifted(command: Command, way: &str, action: &str, paths: &[&str]) -> Vec<(String, String)> {
    let command = command.args(["-IS", "-c", COVERS, way, action]).args(paths);
    let output = command.run().expect("the end").expect_success();
    let results = output.stdout();
    let results = results.lines().filter_map(|line| line.split_once('\t'));
    let results: Vec<_> = results
        .map(|(path, outcome)| (path.to_owned(), outcome.to_owned()))
        .collect();
    assert_eq!(results.len(), paths.len(), "{output:?}");
    results
}

/// Plain bubblewrap, with a cover of each kind, as sandboxes use it.
fn plain_bubblewrap(laptop: &Laptop) -> Command {
    let workspace = laptop.workspace().display().to_string();
    let command = laptop.command("bwrap").args(["--dev-bind", "/", "/"]);
    command
        .args(["--ro-bind", "/dev/null", &format!("{workspace}/.env")])
        .args(["--ro-bind", &format!("{workspace}/.envrc")])
        .arg(format!("{workspace}/.envrc"))
        .args(["--tmpfs", "/tmp", "--chdir", &workspace])
        .arg("/usr/bin/python3")
}

/// Whether the kernel protects a mount point of the caller's own mount namespace with this error.
fn is_protected(outcome: &str) -> bool {
    matches!(outcome, "EBUSY" | "EROFS" | "ENOTDIR" | "EISDIR" | "EXDEV")
}

/// Tries every way and action on everything that is covered.
fn try_all(laptop: &Laptop, options: &[&str], is_refused: impl Fn(&str, &str) -> bool) {
    said(laptop, Place::Outside, PREPARE);
    let before = said(laptop, Place::Outside, STATE);
    for way in WAYS {
        for action in ACTIONS {
            for (path, outcome) in lifted(inside(laptop, options), way, action, &COVERED) {
                let refused = match way {
                    "own" => is_protected(&outcome),
                    _ => is_refused(way, &outcome),
                };
                assert!(refused, "{way} {action} {path}: {outcome}");
            }
        }
    }
    let clean = "rm -f other .git/other deep/down/other";
    said(laptop, Place::Outside, clean);
    assert_eq!(said(laptop, Place::Outside, STATE), before);
}

/// A snapshot of Btrfs has the files without their covers. On other file systems the call comes as far
/// as to them.
const SNAPSHOT: &str = "import fcntl, os, struct
place = os.open('.', os.O_RDONLY)
for request, form in (0x50009401, 'q4088s'), (0x50009417, 'q48x4040s'):
    arguments = bytearray(struct.pack(form, place, b'snapshot'))
    try: fcntl.ioctl(place, request, arguments)
    except OSError as error: print(os.strerror(error.errno))
    else: print('made')";

#[test]
fn p12_no_snapshot_shows_what_is_covered() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, PREPARE);
        let script = ["-IS", "-c", SNAPSHOT];
        for options in [&[][..], &["--nested"]] {
            let tried = inside(laptop, options).args(script).run().expect("an end");
            let refused = "Operation not permitted\n".repeat(2);
            assert_eq!(tried.expect_success().stdout(), refused, "{options:?}");
        }
        let outside = laptop.command("/usr/bin/python3").args(script);
        let outside = outside.run().expect("an end").expect_success().stdout();
        let is_tried = !outside.is_empty() && !outside.contains("not permitted");
        assert!(is_tried, "positive control: {outside}");
    });
}

/// Where sandboxes work inside the sandbox, the broker keeps the covers.
#[test]
fn p12_no_cover_can_be_lifted_where_sandboxes_work_inside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let refused = |way: &str, outcome: &str| match way {
            "setns" => outcome == "no namespace: EPERM",
            _ => is_protected(outcome),
        };
        try_all(laptop, &["--nested"], refused);
        // What is not covered can be read, renamed and removed in such a namespace.
        for action in ["read", "exchange", "over", "rename", "rmdir"] {
            let result = lifted(
                inside(laptop, &["--nested"]),
                "together",
                action,
                &["plain"],
            );
            let expected = if action == "read" { "plain" } else { "ok" };
            assert_eq!(result[0].1, expected, "{action}");
        }
    });
}

#[test]
fn p12_no_cover_can_be_lifted_in_a_mount_namespace_of_ones_own() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let refused = |way: &str, outcome: &str| {
            let clone3 = way == "clone3" && outcome == "no namespace: ENOSYS";
            outcome == "no namespace: EPERM" || clone3
        };
        try_all(laptop, &[], refused);
        // Also where the kernel does not know this way yet.
        let empty = lifted(inside(laptop, &[]), "empty", "read", &[".env"]);
        assert_eq!(empty[0].1, "no namespace: EPERM");

        // What is not covered can be read, renamed and removed by the same script.
        for action in ["read", "exchange", "over", "rename", "rmdir"] {
            let result = lifted(inside(laptop, &[]), "own", action, &["plain"]);
            let expected = if action == "read" { "plain" } else { "ok" };
            assert_eq!(result[0].1, expected, "{action}");
        }
        // Covers of bubblewrap alone are lifted by every way but that into its own namespace.
        for way in ["together", "apart", "clone", "clone3"] {
            let read = lifted(plain_bubblewrap(laptop), way, "read", &[".env"]);
            assert_eq!(read[0].1, "covered", "{way}");
        }
        let own = lifted(plain_bubblewrap(laptop), "own", "read", &[".env"]);
        assert_eq!(own[0].1, "EBUSY");
        let rename = lifted(plain_bubblewrap(laptop), "together", "rename", &[".envrc"]);
        assert_eq!(rename[0].1, "ok");
        let moved = fs::read_to_string(laptop.workspace().join("lifted"));
        assert_eq!(moved.expect("the guarded file"), "covered\n");
    });
}

const OVERLAY: &str = include_str!("overlay.py");

/// An overlay that is mounted inside clears its working directory by itself.
#[test]
fn p12_an_overlay_inside_removes_nothing_that_is_covered() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let hidden = laptop.workspace().join("o/w/work/.env");
        let prepare = "mkdir -p o/w/work; echo covered > o/w/work/.env";
        let attack = ["-IS", "-c", OVERLAY, "o"];
        said(laptop, Place::Outside, prepare);
        let session = laptop.stockade(["run", "--quiet", "--nested", "--hide", "o/w/work/.env"]);
        let session = session.args(["--", "/usr/bin/python3"]).args(attack);
        let tried = session.run().expect("the end").expect_success().stdout();
        assert_eq!(tried, "open_tree ENOSYS\nmount EINVAL\n");
        assert_eq!(fs::read_to_string(&hidden).expect("a file"), "covered\n");

        // Without a sandbox around it, and with plain bubblewrap, it is gone, where the kernel takes
        // such copies of mounts for an overlay (Linux 6.15).
        let path = hidden.display().to_string();
        let command = laptop.command("bwrap").args(["--dev-bind", "/", "/"]);
        let command = command.args(["--ro-bind", "/dev/null", &path]);
        let command = command.arg("/usr/bin/python3").args(attack);
        let tried = command.run().expect("the end").stdout();
        let is_gone = !hidden.exists();
        assert_eq!(is_gone, tried == "mounted\n", "{tried}");
        if !is_gone {
            eprintln!("this kernel lets nobody do so: {tried}");
        }
    });
}

/// The mount points that a sandbox inside makes hold as well, although process 1 does not know them.
#[test]
fn p12_covers_of_a_sandbox_inside_hold() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, PREPARE);
        let attack = "for path in .envrc private aside; do mv $path moved; rm -rf $path
            mv -T plain $path; done 2>/dev/null; echo new > fresh; mv fresh renamed; ls -A private";
        let inner = "exec bwrap --dev-bind / / --ro-bind .envrc $PWD/.envrc --tmpfs $PWD/private \
            --ro-bind aside $PWD/aside bash -c \"$0\"";
        let before = said(laptop, Place::Outside, "cat .envrc private/key aside/plain");
        let nested = Place::Nested
            .command(laptop, "bash")
            .args(["-c", inner, attack]);
        let output = nested.run().expect("the end");
        assert_eq!(output.stdout(), "", "{output:?}");
        let after = said(laptop, Place::Outside, "cat .envrc private/key aside/plain");
        assert_eq!(after, before);
        // What it does not cover can be renamed in it.
        assert_eq!(said(laptop, Place::Outside, "cat renamed"), "new\n");
    });
}

/// A cover that a program outside takes away ends the session at once, with the reason.
#[test]
fn p12_a_cover_that_vanishes_ends_the_session() {
    // Each way by which it does: another file in its place, and the file moved out of it.
    let ways = [
        (".env", "echo new > x; mv x .env"),
        (".env", "rm .env"),
        (".env", "mv .env moved; echo new > .env"),
        (
            "private",
            "mv private moved; mkdir private; echo new > private/key",
        ),
        (".envrc", "echo new > x; mv x .envrc"),
        (".git/hooks", "mv .git/hooks moved; mkdir .git/hooks"),
        (".git/hooks", "mv .git moved; cp -r moved .git"),
        ("deep/down/key", "mv deep moved; cp -r moved deep"),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        let watch =
            "echo up; while true; do sleep 0.1; grep -h new .env private/key; done 2>/dev/null";
        let session = || {
            let command = laptop.stockade(["run"]).args(HIDE);
            let session = command.args(["--", "bash", "-c", watch]).spawn();
            let session = session.expect("start");
            session.expect("up\n").expect("a session");
            session
        };
        for (path, change) in ways {
            said(
                laptop,
                Place::Outside,
                "rm -rf .env private .envrc .vscode .git deep moved",
            );
            said(laptop, Place::Outside, PREPARE);
            let session = session();
            said(laptop, Place::Outside, change);
            let output = session.wait().expect("the end").expect_code(125);
            let stderr = output.stderr();
            assert!(
                stderr.contains(path) && stderr.contains("was hidden or read-only"),
                "{stderr}"
            );
            assert_eq!(
                said(laptop, Place::Outside, "pgrep -fc 'grep -h new'"),
                "0\n"
            );
        }
        // What is changed in place, or is not covered, ends nothing.
        said(
            laptop,
            Place::Outside,
            "rm -rf .env private .envrc .vscode .git deep moved",
        );
        said(laptop, Place::Outside, PREPARE);
        let session = session();
        let harmless = "echo in place > .env; mv plain other; echo x > new; mv new plain; sleep 2";
        said(laptop, Place::Outside, harmless);
        session.signal(Signal::TERM).expect("running");
        session.wait().expect("the end").expect_code(143);
    });
}
