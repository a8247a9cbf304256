//! Secrets and sockets in what is shown in bulk, `~/.cache` and `~/.local/share` (P9), and the masks
//! that keep them out of view (P12).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use stockade_wall::known_places;
use stockade_world::{Command, DECOY, Laptop, test};

use super::f_files::{said, secrets};
use super::probe::{INSIDE, Place};
use crate::support::standard;

const MASKS: &str = include_str!("masks.py");

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("directory");
    fs::write(path, text).expect("write");
}

/// The known places of secrets in the directories that are shown in bulk.
fn in_bulk(laptop: &Laptop) -> Vec<PathBuf> {
    let places = known_places().map(|(place, _)| place);
    places
        .filter(|place| place.starts_with(".cache/") || place.starts_with(".local/share/"))
        .map(|place| laptop.home().join(place))
        .collect()
}

/// What each attempt got at.
fn attacked(command: Command, paths: &[&Path]) -> String {
    let output = command.args(["-IS", "-c", MASKS]).args(paths).run();
    let stdout = output.expect("the end").expect_success().stdout();
    assert!(stdout.ends_with("done\n"), "{stdout}");
    stdout
}

fn python(laptop: &Laptop, options: &[&str]) -> Command {
    let session = laptop.stockade(["run", "--quiet"]).args(options);
    session.args(["--", "/usr/bin/python3"])
}

/// A sandbox that masks by mounts, as others do.
fn masked_by_mounts(laptop: &Laptop, paths: &[&Path]) -> Command {
    let mut command = laptop.command("bwrap").args(["--dev-bind", "/", "/"]);
    for path in paths {
        command = match path.is_dir() {
            true => command.arg("--tmpfs"),
            false => command.args(["--ro-bind", "/dev/null"]),
        }
        .arg(path);
    }
    command.args(["--tmpfs", "/tmp", "/usr/bin/python3"])
}

#[test]
fn p12_masks_of_caches_and_data_cannot_be_lifted() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let home = laptop.home();
        let [token, hidden] =
            [".cache/huggingface/token", ".cache/tool/private"].map(|path| home.join(path));
        write(&token, &format!("{DECOY}91\n"));
        write(&hidden.join("key"), &format!("{DECOY}92\n"));
        let keys = home.join(".local/share/keyrings");
        let paths = [&*keys, &*token, &*hidden];
        let hide = hidden.to_str().expect("a plain path");
        for nested in ["--nested=false", "--nested"] {
            let inside = attacked(python(laptop, &[nested, "--hide", hide]), &paths);
            assert_eq!(secrets(&inside).len(), 0, "{nested}: {inside}");
            // What can be done in such a place was done, and there is nothing after it.
            let mut ways = vec!["after_directory", "after_file", "after_rename"];
            if nested == "--nested" {
                ways.extend(["by_moving_it_in_another_namespace", "by_another_overlay"]);
            }
            for way in ways {
                let nothing = format!("{way}\t{}\tNo such file or directory", keys.display());
                assert!(inside.contains(&nothing), "{nested}: {inside}");
            }
        }
        // The detector works: where a mask is a mount, it is lifted.
        let outside = attacked(masked_by_mounts(laptop, &paths), &paths);
        let lifted = |line: &&str| line.starts_with("by_moving_it") && line.ends_with("\tok");
        assert_eq!(outside.lines().filter(lifted).count(), 3, "{outside}");
        assert_eq!(secrets(&outside).len(), 3, "{outside}");
        for path in paths {
            assert!(path.exists(), "{}", path.display());
        }
    });
}

#[test]
fn p12_masks_hold_where_data_lies_on_another_disk() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let home = laptop.home();
        let disk = home.join("disk");
        fs::rename(home.join(".local/share"), &disk).expect("move");
        symlink(&disk, home.join(".local/share")).expect("a link");
        // A part of it is led elsewhere once more, into what is shown.
        let elsewhere = home.join(".cache/elsewhere");
        write(
            &elsewhere.join("credentials/token"),
            &format!("{DECOY}93\n"),
        );
        symlink(&elsewhere, disk.join("uv")).expect("a link");
        let paths = [
            home.join(".local/share/keyrings"),
            home.join(".local/share/uv/credentials"),
            elsewhere.join("credentials"),
        ];
        let paths = paths.each_ref().map(PathBuf::as_path);
        for nested in ["--nested=false", "--nested"] {
            let inside = attacked(python(laptop, &[nested]), &paths);
            assert_eq!(secrets(&inside).len(), 0, "{nested}: {inside}");
        }
        let outside = attacked(laptop.command("/usr/bin/python3"), &paths);
        assert_eq!(secrets(&outside).len(), 2, "{outside}");
    });
}

#[test]
fn p09_every_known_place_of_secrets_is_masked() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let places = in_bulk(laptop);
        assert!(places.len() > 150, "{}", places.len());
        for (place, number) in places.iter().zip(1000..) {
            if !place.exists() {
                write(place, &format!("{DECOY}{number}\n"));
            }
        }
        write(&laptop.home().join(".cache/plain"), "plain\n");
        let line = format!("grep -rhs '{DECOY}\\|plain' ~/.cache ~/.local/share");
        let outside = secrets(&said(laptop, Place::Outside, &line));
        assert!(outside.len() >= places.len(), "{}", outside.len());
        assert_eq!(said(laptop, INSIDE, &line), "plain\n");
    });
}

#[test]
fn p09_a_secret_that_appears_during_the_session_does_not_show() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let home = laptop.home();
        let places = in_bulk(laptop);
        let missing: Vec<_> = places.iter().filter(|place| !place.exists()).collect();
        // Some tools are there, and their logins are not.
        write(&home.join(".local/share/uv/python/x"), "plain\n");
        write(&home.join(".cache/huggingface/hub/x"), "plain\n");
        let hidden = home.join(".cache/tool/key");
        write(&hidden, &format!("{DECOY}998\n"));
        let line = format!(
            "ls ~/.local/share ~/.cache ~/.cache/huggingface ~/.local/share/uv >/dev/null
            echo ready; read -r _; grep -rhs '{DECOY}\\|plain' ~/.cache ~/.local/share"
        );
        let mut session = laptop
            .stockade(["run", "--quiet", "--hide"])
            .arg(&hidden)
            .args(["--", "bash", "-c", &line])
            .spawn()
            .expect("a session");
        session.expect("ready\n").expect("it runs");
        for (place, number) in missing.iter().zip(1000..) {
            write(place, &format!("{DECOY}{number}\n"));
        }
        // As editors save, which takes a mount away.
        write(&home.join("new-key"), &format!("{DECOY}999\n"));
        fs::rename(home.join("new-key"), &hidden).expect("rename");
        // The detector works: what is no secret shows when it appears, beside a secret, too.
        for path in [
            ".cache/new/x",
            ".local/share/new",
            ".cache/huggingface/hub/y",
        ] {
            write(&home.join(path), "plain\n");
        }
        session.write("go\n").expect("its input");
        let output = session.wait().expect("the end").expect_success().stdout();
        assert_eq!(output.replace("ready\n", ""), "plain\n".repeat(5));
        let line = format!("grep -rhs {DECOY} ~/.cache ~/.local/share");
        let outside = secrets(&said(laptop, Place::Outside, &line));
        assert!(outside.len() >= missing.len(), "{}", outside.len());
    });
}

/// Connects to a socket, and reads a file.
const CONNECT: &str = "
import os, socket, sys
for name in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(os.path.expanduser(name))
            print('connected')
        except OSError:
            print('refused')
try:
    print(open(os.path.expanduser('~/.cache/plain')).read())
except OSError:
    print('nothing there')
";

const SOCKETS: [&str; 2] = ["~/.cache/socket", "~/.local/share/tool/socket"];

#[test]
fn p09_sockets_in_caches_are_unreachable_with_and_without_overlay() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let home = laptop.home();
        write(&home.join(".cache/plain"), "plain");
        fs::create_dir_all(home.join(".local/share/tool")).expect("a directory");
        let listen = "
import os, socket, sys, time
for name in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    s.bind(os.path.expanduser(name))
    s.listen(50)
    globals().setdefault('kept', []).append(s)
print('ready', flush=True)
sys.stdin.read()
";
        let listener = laptop.command("/usr/bin/python3");
        let listener = listener.args(["-IS", "-c", listen]).args(SOCKETS);
        let listener = listener.spawn().expect("a listener");
        listener.expect("ready\n").expect("it listens");
        let connect = |command: Command| {
            let probe = command.args(["-IS", "-c", CONNECT]).args(SOCKETS);
            probe.run().expect("the end").expect_success()
        };
        let outside = connect(laptop.command("/usr/bin/python3"));
        assert_eq!(outside.stdout(), "connected\nconnected\nplain\n");
        // Through a read-only mount a socket can be connected to.
        let bound = laptop.command("bwrap").args(["--ro-bind", "/", "/"]);
        let bound = connect(bound.arg("/usr/bin/python3"));
        assert_eq!(bound.stdout(), "connected\nconnected\nplain\n");
        let inside = connect(python(laptop, &[]));
        assert_eq!(inside.stdout(), "refused\nrefused\nplain\n");
        // The kernel has no overlay (the first two are of the stage and of terminals), or makes no white-out.
        for failure in ["fsopen:error=ENODEV:when=3+", "mknodat:error=EPERM"] {
            let call = failure.split(':').next().unwrap_or_default();
            let strace = laptop
                .command("strace")
                .args(["-qq", "-f", "--seccomp-bpf", "-o", "/dev/null"])
                .args(["-e", &format!("trace={call}")])
                .args(["-e", &format!("inject={failure}")])
                .args(["/run/world/bin/stockade", "run", "--", "/usr/bin/python3"]);
            let inside = connect(strace);
            let expected = "refused\nrefused\nnothing there\n";
            assert_eq!(inside.stdout(), expected, "{failure}");
            let told = "~/.local/share is empty inside";
            assert!(inside.stderr().contains(told), "{inside:?}");
        }
        drop(listener);
    });
}

#[test]
fn p09_logins_in_settings_of_toolchains_are_not_shown() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let node = laptop.home().join(".nvm/versions/node");
        write(&node.join("v1/etc/npmrc"), "//r.test/:_authToken=SECRET\n");
        write(&node.join("v2/etc/npmrc"), "fund=false\n");
        let script = "cat ~/.nvm/versions/node/v*/etc/npmrc";
        let run = |words: &[&str]| {
            let output = laptop
                .stockade(words)
                .args(["--", "sh", "-c", script])
                .run();
            output.expect("the end").expect_success().stdout()
        };
        // Positive control: what holds no login is shown, and so is what is given.
        assert_eq!(run(&["run"]), "fund=false\n");
        let given = ["run", "--read", "~/.nvm/versions/node/v1/etc/npmrc"];
        assert!(run(&given).contains("SECRET"), "it is there");
    });
}

#[test]
fn p09_whatever_of_the_users_secrets_is_given_is_told() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let home = laptop.home();
        let told = |path: &Path| {
            let plan = laptop.stockade(["plan", "--read"]).arg(path).run();
            let text = plan.expect("the end").expect_success().stdout();
            text.contains("is given (")
        };
        let no_secret = ["Documents", "other-project", ".config/stockade"];
        for decoy in laptop.decoys() {
            let Ok(below) = decoy.path.strip_prefix(home) else {
                continue;
            };
            if !no_secret.iter().any(|place| below.starts_with(place)) {
                assert!(told(&decoy.path), "{}", decoy.path.display());
            }
        }
        assert!(!told(&home.join("Documents/taxes.txt")));
    });
}
