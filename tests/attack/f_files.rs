//! What a program inside can get of the user's files, and what it can leave in them (F1 to F6).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use stockade_world::{DECOY, Laptop, Login, Shape, SocketName, World, test};

use super::probe::{INSIDE, Place};
use crate::support::standard;

/// What a line of shell prints, whatever its exit code.
pub(super) fn said(laptop: &Laptop, place: Place<'_>, line: &str) -> String {
    let shell = place.command(laptop, "bash").args(["-c", line]);
    shell.run().expect("the shell ends").stdout()
}

/// The secrets that occur in a text.
pub(super) fn secrets(text: &str) -> BTreeSet<String> {
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect();
    text.split(DECOY).skip(1).map(digits).collect()
}

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("directory");
    fs::write(path, text).expect("write");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("mode");
}

fn f01(world: &World) {
    let laptop = world.laptop();
    let paths: Vec<_> = laptop
        .decoys()
        .iter()
        .map(|decoy| format!("'{}'", decoy.path.display()))
        .collect();
    // By name, by searching, and by the ways around.
    let line = format!(
        "cat {} 2>/dev/null; grep -rIhs {DECOY} ~ /home /root /mnt /srv /tmp /var /run /etc
        cat ~/../alice/.ssh/id_rsa /proc/1/root/home/dev/.netrc /proc/self/root/home/dev/.netrc
        cat ../other-project/.env ../../dev/.ssh/id_ed25519; cd ..; cat .netrc; env",
        paths.join(" ")
    );
    let all = laptop.decoys().len() + laptop.decoy_variables().len();
    let outside = secrets(&said(laptop, Place::Outside, &line));
    assert!(
        outside.len() >= laptop.decoys().len(),
        "{} of {all}",
        outside.len()
    );
    assert_eq!(secrets(&said(laptop, INSIDE, &line)), BTreeSet::new());
    // Not with the whole disk in view either, as far as it is the user's.
    let home = format!(
        "cat {} 2>/dev/null; ls -A ~/.ssh ~/.config",
        paths[..36].join(" ")
    );
    let whole = laptop
        .stockade(["run", "--quiet", "--root", "all", "--", "bash", "-c", &home])
        .run()
        .expect("the shell ends");
    assert_eq!(secrets(&whole.stdout()), BTreeSet::new());
}

#[test]
fn f01_no_credential_can_be_read() {
    test(&standard(), |world| f01(world));
}

#[test]
fn f01_no_credential_can_be_read_in_a_container() {
    test(&standard().shape(Shape::Container), |world| f01(world));
}

/// Only root can mount in this world. What is shown is decided in the same way for others.
#[test]
fn f01_what_is_mounted_at_a_second_place_is_hidden_there_too() {
    const MOUNT: &str = "mkdir -p /mnt/{home,part,plain,other} /srv/plain data
        echo SEEN | tee /srv/plain/file data/file > .env
        mount --bind ~ /mnt/home && mount --bind ~/.ssh /mnt/part
        mount --bind ~ /usr/local/games && mount --bind /srv/plain /usr/local/src
        mount --bind /srv/plain /mnt/plain && mount --bind ~/project /mnt/other";
    const LOOK: &str = "cat {/mnt/home,/usr/local/games}/{.ssh/*,.netrc} /mnt/part/* 2>/dev/null
        for f in {/mnt/plain,/usr/local/src}/file /mnt/other/{.env,data/file} .env; do
            cat $f >/dev/null 2>&1 && echo $f
        done; true";
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        // In one mount namespace.
        let run = |options: &str| {
            let script = format!("{MOUNT}; stockade run --quiet {options} -- bash -c '{LOOK}'");
            let shell = laptop.command("bash").args(["-c", &script]);
            shell.run().expect("the shell ends")
        };
        let outside = format!("{MOUNT}; {LOOK}");
        let shell = laptop.command("bash").args(["-c", &outside]);
        let outside = shell.run().expect("the shell ends").stdout();
        // The detector works.
        assert!(!secrets(&outside).is_empty(), "{outside}");
        assert_eq!(outside.matches("/file").count(), 3, "{outside}");

        let all = run("--root all --hide .env").expect_success().stdout();
        assert_eq!(secrets(&all), BTreeSet::new());
        // Positive control: what is mounted twice and not to be hidden is there twice.
        assert_eq!(all, "/mnt/plain/file\n/usr/local/src/file\n");
        let system = run("--hide data").expect_success().stdout();
        assert_eq!(system, "/usr/local/src/file\n.env\n");
        // The home by another name, and what holds it, is not given by mistake.
        for options in [
            "--read /mnt",
            "--read /mnt/home",
            "--write /mnt",
            "-C /mnt/home",
        ] {
            let refused = run(options);
            assert_eq!(refused.code(), 125, "{options}: {refused:?}");
            let said = refused.stderr();
            assert!(said.contains("your home directory"), "{options}: {said}");
        }
        // What is hidden is so in what is given by another name.
        let given = run("--hide .env --read /mnt/other").expect_success();
        assert_eq!(
            given.stdout(),
            "/usr/local/src/file\n/mnt/other/data/file\n"
        );
    });
}

/// Connects to each socket of the arguments, `@` for an abstract one; prints those that accept.
const CONNECT: &str = "
import socket, sys
for name in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect('\\0' + name[1:] if name.startswith('@') else name)
            print(name)
        except OSError:
            pass
";

#[test]
fn f02_no_socket_of_the_host_can_be_connected_to() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let named = |socket: &SocketName| match socket {
            SocketName::Path(path) => path.display().to_string(),
            SocketName::Abstract(name) => format!("@{name}"),
        };
        let names: Vec<_> = laptop.sockets().iter().map(|s| named(&s.name)).collect();
        let connect = |command: stockade_world::Command| {
            let python = command.args(["-IS", "-c", CONNECT]).args(&names);
            python
                .run()
                .expect("the probe ends")
                .expect_success()
                .stdout()
        };
        let outside = connect(laptop.command("/usr/bin/python3"));
        assert_eq!(outside.lines().count(), names.len());
        let modes = [
            &["--mode", "jail"][..],
            &["--root", "all"],
            &["--mode", "none"],
        ];
        for options in modes {
            let inside = laptop.stockade(["run", "--quiet"]).args(options);
            assert_eq!(
                connect(inside.args(["--", "/usr/bin/python3"])),
                "",
                "{options:?}"
            );
        }
        // With the host's network the abstract names are there, but out of scope.
        let host = laptop.stockade(["run", "--quiet", "--mode", "host"]);
        let host = connect(host.args(["--", "/usr/bin/python3"]));
        assert_eq!(host, "", "needs Linux 6.12");
    });
}

#[test]
fn f03_programs_that_are_shown_cannot_be_changed_by_who_outlives_the_command() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let names = ["uv", "uvx", "claude"];
        let path = |name: &str| laptop.home().join(".local/bin").join(name);
        let text = "#!/bin/sh\necho real\n";
        for name in names {
            program(&path(name), text);
        }
        // In the background, beyond the end of the command.
        let attack = "cd ~/.local/bin && for name in uv uvx claude; do
            (trap '' HUP TERM; while :; do cp /bin/false x$name; mv -f x$name $name
                echo evil > $name; ln -sf /bin/false $name; rm -f $name; done) 2>/dev/null &
            done; sleep 0.1; exit 0";
        for _ in 0..5 {
            let options = ["run", "--quiet", "--read", "~/.local/bin/claude", "--"];
            let session = laptop.stockade(options).args(["bash", "-c", attack]);
            session.run().expect("the end").expect_success();
        }
        for name in names {
            assert_eq!(
                fs::read_to_string(path(name)).expect("a file"),
                text,
                "{name}"
            );
        }
        // Where they can be written, the same attack succeeds.
        let bounded = attack.replace("while :;", "for i in 1 2 3;");
        said(laptop, Place::Outside, &format!("{bounded}; wait"));
        let changed = |name: &&str| fs::read_to_string(path(name)).ok().as_deref() != Some(text);
        assert!(names.iter().all(changed));
    });
}

#[test]
fn f04_a_workspace_that_undoes_the_wall_is_refused() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let link = laptop.workspace().join("link");
        symlink(laptop.home(), &link).expect("a link");
        let inside = laptop.home().join(".ssh");
        let refused = ["/", "/home", "/usr", "/tmp", "/etc"].map(Path::new);
        for directory in refused.into_iter().chain([laptop.home(), &link, &inside]) {
            let session = laptop
                .stockade(["run", "--", "echo", "ran"])
                .directory(directory);
            let output = session.run().expect("the end").expect_code(125);
            assert_eq!(output.stdout(), "", "{directory:?}");
            assert!(output.stderr().contains("workspace"), "{output:?}");
        }
        assert_eq!(said(laptop, INSIDE, "echo ran"), "ran\n");
    });
}

#[test]
fn f05_hooks_and_files_that_run_outside_cannot_be_changed() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let workspace = laptop.workspace();
        program(&workspace.join(".git/hooks/pre-commit"), "#!/bin/sh\n");
        fs::write(workspace.join(".envrc"), "use nix\n").expect("write");
        let seen = "cd ~/project; cat .git/hooks/pre-commit .envrc; ls -A .git/hooks";
        let before = said(laptop, Place::Outside, seen);
        let attack = "exec 2>/dev/null
            change() { for file in .git/hooks/pre-commit .envrc; do echo evil > $file; rm -f $file
                mv $file x; cp /bin/true y; mv -f y $file; ln $file z && echo evil > z; done
                mv .git/hooks h; mv .git g; mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit
                touch .git/hooks/post-checkout; }
            change; export -f change
            unshare --user --map-root-user --mount bash -c 'umount -l .git .envrc .git/hooks
                mount -o remount,bind,rw .git/hooks; mount --bind . /mnt; change'; true";
        said(laptop, INSIDE, attack);
        assert_eq!(said(laptop, Place::Outside, seen), before);
        // Outside, the same changes them.
        said(laptop, Place::Outside, attack);
        assert_ne!(said(laptop, Place::Outside, seen), before);
    });
}

#[test]
fn f05_what_appears_is_told_at_the_end() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let attack = "echo evil > .envrc; git config core.fsmonitor ./evil; echo x > harmless";
        let session = laptop.stockade(["run", "--", "bash", "-c", attack]);
        let told = session.run().expect("the end").stderr();
        assert!(told.contains(".envrc"), "{told}");
        assert!(told.contains("core.fsmonitor = ./evil"), "{told}");
        assert!(!told.contains("harmless"), "{told}");
        let harmless = laptop.stockade(["run", "--", "bash", "-c", "echo x > harmless"]);
        assert_eq!(harmless.run().expect("the end").stderr(), "");

        // Who wants to hear nothing finds it in the log.
        let attack = "mkdir .devcontainer; echo > .devcontainer/x";
        let quiet = laptop.stockade(["run", "--quiet", "--", "bash", "-c", attack]);
        assert_eq!(quiet.run().expect("the end").stderr(), "");
        let log = laptop.stockade(["log"]).run().expect("a log");
        let found = log.expect_success().stdout();
        assert!(
            found.contains("found") && found.contains(".devcontainer"),
            "{found}"
        );
    });
}

#[test]
fn f05_what_appears_is_told_when_the_session_is_lost() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let attack = "echo evil > .envrc; echo ready; exec sleep 60";
        let session = laptop.stockade(["run", "--", "bash", "-c", attack]);
        let session = session.spawn().expect("a session");
        session.expect("ready").expect("a session");
        // The only sandbox in this world.
        let kill = "kill -9 $(pgrep -x bwrap)";
        laptop.shell(kill).run().expect("run").expect_success();
        let lost = session.wait().expect("the end").expect_code(125);
        assert!(lost.stderr().contains("killed from outside"), "{lost:?}");
        assert!(lost.stderr().contains(".envrc"), "{lost:?}");
        let log = laptop.stockade(["log"]).run().expect("a log");
        let found = log.expect_success().stdout();
        assert!(
            found.contains("found") && found.contains("exit code 125"),
            "{found}"
        );
    });
}

#[test]
fn f05_links_and_git_files_of_an_earlier_session_open_nothing() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let look = "cat ~/.ssh/id_ed25519 .vscode/* .git/id_ed25519 .git/* 2>/dev/null";
        // A session plants them, and the next one looks.
        let plants = [
            "rm -rf .git; echo \"gitdir: $HOME/.ssh\" > .git",
            "rm -rf .git; ln -s ~/.ssh .git",
            "rm -rf .vscode; ln -s ~/.ssh .vscode; rm -rf .git; mkdir .git; ln -s ~/.ssh .git/hooks",
            "rm -rf .git; mkdir -p f/worktrees/x; echo gitdir: f/worktrees/x > .git
             echo ../../../.git > f/worktrees/x/gitdir; echo ~/.ssh > f/worktrees/x/commondir",
        ];
        // The laptop's own hooks would keep `.git` in its place.
        said(laptop, Place::Outside, "rm -rf .git/hooks");
        for plant in plants {
            said(laptop, INSIDE, plant);
            let session = INSIDE.command(laptop, "bash").args(["-c", look]);
            let output = session.run().expect("the end");
            assert_ne!(output.code(), 125, "{output:?}");
            assert_eq!(secrets(&output.stdout()), BTreeSet::new(), "{plant}");
            said(
                laptop,
                Place::Outside,
                "rm -rf .git .vscode f; git init -q .; rm -rf .git/hooks",
            );
        }
        // The detector works: what the links lead to is there.
        said(laptop, Place::Outside, plants[1]);
        assert_eq!(secrets(&said(laptop, Place::Outside, look)).len(), 3);
    });
}

/// A path that configuration shows may lie where the command writes.
#[test]
fn f05_a_link_in_place_of_a_configured_path_opens_nothing() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let run = |option: &str, script: &str| {
            let line = ["run", option, "shown", "--", "bash", "-c", script];
            laptop.stockade(line).run().expect("the end")
        };
        for option in ["--read", "--write"] {
            said(laptop, Place::Outside, "rm -rf shown; mkdir shown");
            // Positive control: the directory itself is no matter.
            run(option, "ls shown").expect_success();
            said(laptop, INSIDE, "rmdir shown; ln -s ../.ssh shown");
            let look = "cat shown/* ~/.ssh/*; echo planted > ~/.ssh/planted";
            let output = run(option, look).expect_code(125);
            assert!(output.stderr().contains("by a link"), "{output:?}");
            assert_eq!(secrets(&output.stdout()), BTreeSet::new());
            assert!(!laptop.home().join(".ssh/planted").exists());
            // The link of somebody outside is followed.
            said(
                laptop,
                Place::Outside,
                "rm shown; mkdir ../data; ln -s data ../led",
            );
            let led = ["run", option, "../led", "--", "ls", "../led"];
            laptop
                .stockade(led)
                .run()
                .expect("the end")
                .expect_success();
            said(laptop, Place::Outside, "rmdir ../data; rm ../led");
        }
    });
}

#[test]
fn f06_control_characters_are_characters_and_nothing_else() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let odd = "a\nb\u{1b}[2J\t--bind / /\"'$(id)`id`\\";
        let workspace = laptop.workspace().join(odd);
        fs::create_dir_all(&workspace).expect("a directory");
        let script =
            "printf '<%s>' \"$@\" \"$LANG\" \"$HOME\"; pwd; ls -A ~; cat ~/.netrc; echo x > made";
        let session = laptop
            .stockade(["run", "--quiet", "--", "bash", "-c", script, "name"])
            .args([odd, "", "--", "-x"])
            .env("LANG", odd)
            .directory(&workspace);
        let output = session.run().expect("the end");
        let home = laptop.home().display();
        let expected = format!("<{odd}><><--><-x><{odd}><{home}>{}\n", workspace.display());
        assert!(output.stdout().starts_with(&expected), "{output:?}");
        assert_eq!(secrets(&output.stdout()), BTreeSet::new());
        assert!(workspace.join("made").exists());
        // In a HOME of that name, too.
        let home = laptop.home().join(odd);
        fs::create_dir_all(home.join(".ssh")).expect("a directory");
        let session = laptop
            .stockade(["run", "--quiet", "--caches", "empty"])
            .args(["--", "bash", "-c", "cd && pwd; ls -A"])
            .env("HOME", &home);
        let output = session.run().expect("the end").expect_success();
        assert_eq!(output.stdout(), format!("{}\n", home.display()));
    });
}

/// Most machines pass new mounts on to all copies of their mount namespace. Such a mount would have
/// nothing of what makes a place read-only.
#[test]
fn f05_what_is_mounted_outside_during_a_session_does_not_appear_inside() {
    const MOUNT: &str = "import ctypes, os
disk = os.path.expanduser('~/shown/disk').encode()
assert ctypes.CDLL(None).mount(b'none', disk, b'tmpfs', 0, None) == 0";
    let inside = "touch ready; until [ -e go ]; do sleep 0.02; done
        ls ~/shown ~/shown/disk; echo x > ~/shown/disk/written";
    let outside = format!(
        "mkdir -p ~/shown/disk; setpriv --inh-caps=-all --ambient-caps=-all \
            stockade run --quiet --read ~/shown -- bash -c '{inside}' 2>/dev/null &
        until [ -e ready ]; do sleep 0.02; done
        python3 -c \"{MOUNT}\"; touch ~/shown/disk/appeared go; wait; ls ~/shown/disk"
    );
    test(&standard(), |world| {
        let user = ["--user", "--map-current-user", "--keep-caps"];
        let command = world.laptop().command("unshare").args(user);
        let command = command.args(["--mount", "--propagation=shared", "bash", "-c", &outside]);
        let output = command.run().expect("its end").expect_success();
        let home = world.laptop().home().display();
        let inside = format!("{home}/shown:\ndisk\n\n{home}/shown/disk:\n");
        assert_eq!(output.stdout(), format!("{inside}appeared\n"));
    });
}
