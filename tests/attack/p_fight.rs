//! Sessions that work against what is put back (P1): they fill the disk, hold locks, write in ways that
//! give no notice, or plant again at once.

use std::time::{Duration, Instant};

use stockade_world::{Laptop, Output, eventually, test};

use super::f_files::said;
use super::p_git::{EVIL, REPOSITORY, ran, session};
use super::probe::Place;
use crate::support::standard;

/// On a small disk: a repository whose settings take several pages, and what is done to it.
fn on_a_small_disk(laptop: &Laptop, attack: &str) -> Output {
    let script = format!(
        "cd; rm -f ran; mkdir -p project; mount -t tmpfs -o size=2m tmpfs ~/project; cd project
         git init -q -b main . && rm -rf .git/hooks && git config user.name a
         for i in $(seq 300); do echo \"# a line that makes the file long\"; done >> .git/config
         {attack}
         git status >/dev/null; ls ~/ran; wc -c < .git/config"
    );
    let words = "--user --map-current-user --keep-caps --mount bash -c";
    let command = laptop.command("unshare").args(words.split(' '));
    command.arg(&script).run().expect("the end")
}

const FILL: &str = "printf \"#!/bin/sh\\ntouch ~/ran\\n\" > evil; chmod +x evil
    printf \"[core]\\nfsmonitor = $PWD/evil\\n\" > .git/w
    cat /dev/zero > full 2>/dev/null; mv .git/w .git/config";

#[test]
fn p01_a_full_disk_does_not_keep_settings_from_being_put_back() {
    let attack = |command: &str| format!("{command} '{FILL}; cat /dev/zero > more 2>/dev/null'");
    test(&standard(), |world| {
        let laptop = world.laptop();
        // What the session replaced leaves room for a moment: a look that is quick enough puts it back.
        let mut was_removed = false;
        for _ in 0..20 {
            let output = on_a_small_disk(laptop, &attack("stockade run -- bash -c"));
            let (stdout, stderr) = (output.stdout(), output.stderr());
            assert!(!stdout.contains("/ran"), "{output:?}");
            // What is gone is not said to be back, and can be had.
            let is_back = stdout
                .trim()
                .parse()
                .is_ok_and(|length: usize| length > 9000);
            was_removed = stderr.contains("was REMOVED");
            assert!(was_removed || is_back, "{output:?}");
            assert!(is_back || !stderr.contains("undone: "), "{output:?}");
            if was_removed {
                assert!(stderr.contains("quarantine/"), "{output:?}");
                break;
            }
        }
        assert!(was_removed, "the disk was never full");
        let control = on_a_small_disk(laptop, &attack("bash -c"));
        assert!(
            control.stdout().contains("/ran"),
            "positive control: {control:?}"
        );
    });
}

/// It holds the lock of git's, and every name that could be guessed from a process number.
const HOLD: &str = "import os
open('.git/config.lock', 'w').close()
for number in range(2, 3000): os.makedirs(f'.git/config.lock.{number}.stockade', exist_ok=True)
open('.git/w', 'w').write('[core]\\nfsmonitor = /home/dev/project/evil\\n')
os.rename('.git/w', '.git/config')";

#[test]
fn p01_locks_that_a_session_holds_do_not_keep_settings_from_being_put_back() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let output = session(laptop, &format!("{EVIL}; python3 -c \"{HOLD}\""));
        said(laptop, Place::Outside, "rm -f .git/config.lock; git status");
        assert!(!ran(laptop), "{output:?}");
        assert!(output.stderr().contains("undone: "), "{output:?}");
        assert!(!output.stderr().contains("NOT be undone"), "{output:?}");
        said(
            laptop,
            Place::Outside,
            &format!("{EVIL}; python3 -c \"{HOLD}\"; git status"),
        );
        assert!(ran(laptop), "positive control");
    });
}

/// Each leaves something in place without the notice that a file was closed in a git directory.
/// Settings that are written by a process that lives on.
const MAPPING: &str = r#"python3 -c '
import mmap, os, time
file = os.open(".git/config", os.O_RDWR)
length = os.fstat(file).st_size
text = b"[core]\nfsmonitor = /home/dev/project/evil\n"
os.pwrite(file, b"\n" * len(text), length)
mapping = mmap.mmap(file, 0)
time.sleep(1)
mapping[length:] = text
open("mapped", "w")
time.sleep(20)' > /dev/null 2>&1 &
    until [ -e mapped ]; do sleep 0.1; done"#;

/// A submodule that runs a program, and very many others before it, which are not there.
const MANY: &str = r#"git init -q zz; git -C zz config core.fsmonitor $EVIL
    id=$(git -C zz -c user.name=a -c user.email=a commit-tree -m one $(git -C zz mktree < /dev/null))
    git -C zz update-ref HEAD $id
    { seq -f "160000 $id 0%%ta%.0f" 100000 160000 | sed 's/%t/\t/'; printf "160000 $id 0\tzz\n"; } |
        git update-index --index-info"#;

/// A sparse index: git itself would not leave a submodule out of it.
const SPARSE: &str = r#"git init -q /tmp/sub; cd /tmp/sub
    git -c user.name=a -c user.email=a commit -q --allow-empty -m one; cd - > /dev/null
    git sparse-checkout set --sparse-index in
    link=$(printf '160000 commit %s\tsub' $(git -C /tmp/sub rev-parse HEAD))
    python3 -c '
import hashlib, sys
old, new = (bytes.fromhex(name) for name in sys.argv[1:])
index = open(".git/index", "rb").read()[:-20]
assert old in index
index = index.replace(old, new)
open(".git/index", "wb").write(index + hashlib.sha1(index).digest())' \
        $(git rev-parse HEAD:dir) $( (git ls-tree HEAD:dir; echo "$link") | git mktree --missing)
    mkdir dir; mv /tmp/sub dir/sub; git -C dir/sub config core.fsmonitor $EVIL"#;

#[test]
fn p01_no_way_of_writing_escapes_the_look_while_the_session_runs() {
    let sub = "git init -q ../part; git -C ../part -c user.name=a -c user.email=a commit -q \
        --allow-empty -m one; git -c protocol.file.allow=always submodule --quiet add ../part sub
        git commit -q -m sub";
    let ways = [
        (
            "a file that stays open",
            "true",
            "exec 5>> .git/config; printf '[core]\\nfsmonitor = %s\\n' $EVIL >&5",
            "grep fsmonitor .git/config",
            "git status",
        ),
        (
            "a submodule's directory that is exchanged",
            sub,
            "git clone -q sub sub2 2>/dev/null; git -C sub2 config core.fsmonitor $EVIL; sleep 0.5
             mv sub old; mv sub2 sub",
            "grep fsmonitor sub/.git/config",
            "git status",
        ),
        (
            "a file that the repository's settings include",
            "echo '[core]' > included; git config include.path ../included",
            "printf '[core]\\nfsmonitor = %s\\n' $EVIL > included",
            "grep fsmonitor included",
            "git status",
        ),
        (
            "hooks where the user's own settings have them",
            "git config --global core.hooksPath .own",
            "mkdir .own; cp evil .own/pre-commit",
            "ls .own/pre-commit",
            "git commit -q --allow-empty -m two",
        ),
        (
            "a link among git's logs",
            "echo > ~/log",
            "ln -sf /home/dev/log .git/logs/HEAD",
            "readlink .git/logs/HEAD",
            "git commit -q --allow-empty -m two; grep -q two ~/log && touch ~/ran",
        ),
        (
            "what a hook that is a link leads to",
            "mkdir tools .git/hooks; echo '#!/bin/sh' > tools/hook; chmod +x tools/hook
             ln -s ../../tools/hook .git/hooks/pre-commit",
            "cp evil tools/hook",
            "grep ran tools/hook",
            "git commit -q --allow-empty -m two",
        ),
        (
            "a mapping, of which the kernel does not tell",
            "true",
            MAPPING,
            "grep fsmonitor .git/config",
            "git status",
        ),
        (
            "another name of the file, in a directory that nobody looks at",
            "true",
            "mkdir .git/x; ln .git/config .git/x/name; sleep 1
             printf '[core]\\nfsmonitor = %s\\n' $EVIL >> .git/x/name",
            "grep fsmonitor .git/config",
            "git status",
        ),
        (
            "a repository that the workspace becomes",
            "true",
            "printf '[core]\\nrepositoryformatversion = 0\\nworktree = %s\\n' /home/dev/project > config
             printf 'fsmonitor = %s\\n' $EVIL >> config; mkdir objects refs; sleep 1; cp .git/HEAD HEAD; rm .git/HEAD",
            "grep fsmonitor config",
            "git status",
        ),
        (
            "a pipe at which git waits",
            "true",
            "{ cat .git/config; printf '[core]\\nfsmonitor = %s\\n' $EVIL; } > .git/w
             rm .git/HEAD; mkfifo .git/HEAD
             while { mv .git/w .git/config 2>/dev/null; echo 'ref: refs/heads/main'; } > .git/HEAD; do :; done > /dev/null 2>&1 & true",
            "test -p .git/HEAD && echo pipe; grep fsmonitor .git/config",
            "git status",
        ),
        (
            "a submodule in a directory that the index has as a whole",
            "mkdir in dir; touch in/a dir/b; git add .; git commit -q -m two",
            SPARSE,
            "grep fsmonitor dir/sub/.git/config",
            "git status",
        ),
        (
            "a submodule behind very many others",
            "true",
            MANY,
            "git ls-files zz",
            "git status",
        ),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (what, prepare, plant, is_there, use_of) in ways {
            let outside = |script: &str| said(laptop, Place::Outside, script);
            let fresh = || {
                outside("rm -rf ~/part ~/.gitconfig ~/log");
                outside(REPOSITORY);
                outside(prepare);
            };
            fresh();
            outside(&format!("{EVIL}; {plant}; {use_of}"));
            assert!(ran(laptop), "positive control: {what}");

            fresh();
            let script = format!("{EVIL}; {plant}; echo planted; read");
            let words = ["run", "--", "bash", "-c", &script];
            let mut running = laptop.stockade(words).spawn().expect("a session");
            running.expect("planted").expect("it is planted");
            let gone = || outside(&format!("{is_there} 2>/dev/null")).is_empty();
            eventually(what, Duration::from_secs(40), gone).expect("undone");
            outside(use_of);
            assert!(!ran(laptop), "{what}");
            running.write("\n").expect("write");
            running.wait().expect("an end").expect_success();
        }
        said(laptop, Place::Outside, "rm -rf ~/.gitconfig");
    });
}

/// Has who opens a file wait until the settings are changed.
const LEASE: &str = r#"import fcntl, os, signal
text = open(".git/config").read() + "[core]\nfsmonitor = /home/dev/project/evil\n"
open(".git/w", "w").write(text)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
file = os.open(".git/HEAD", os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
signal.sigwait([signal.SIGIO])
os.rename(".git/w", ".git/config")
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)"#;

#[test]
fn p01_nobody_inside_holds_up_a_git_outside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        outside(&format!("{REPOSITORY}; {EVIL}"));
        let holder = laptop.command("python3").args(["-c", LEASE]);
        let holder = holder.spawn().expect("a program");
        holder.expect("held").expect("a lease");
        outside("git status");
        assert!(ran(laptop), "positive control");
        holder.wait().expect("an end").expect_success();

        outside(&format!("{REPOSITORY}; {EVIL}"));
        let words = ["run", "--", "python3", "-c", LEASE];
        let output = laptop.stockade(words).run().expect("an end");
        let stderr = output.stderr();
        assert!(stderr.contains("PermissionError"), "{output:?}");
        assert!(!output.stdout().contains("held"), "{output:?}");
    });
}

#[test]
fn p01_a_command_that_plants_again_and_again_is_ended() {
    let fight = "import time, os
end = time.time() + 20
while time.time() < end:
    if 'fsmonitor' not in open('.git/config').read():
        open('.git/w', 'w').write('[core]\\nfsmonitor = /home/dev/project/evil\\n')
        os.rename('.git/w', '.git/config')
    time.sleep(0.001)";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let begin = Instant::now();
        let output = session(laptop, &format!("{EVIL}; python3 -c \"{fight}\""));
        // A fraction of a second, unless others use the machine, too.
        assert!(begin.elapsed() < Duration::from_secs(10), "{output:?}");
        let output = output.expect_code(125);
        let stderr = output.stderr();
        assert!(
            stderr.contains("core.fsmonitor") && stderr.contains("again and again"),
            "{stderr}"
        );
        said(laptop, Place::Outside, "git status");
        assert!(!ran(laptop), "{stderr}");

        // A tool that sets its hooks at each of several installations is not.
        said(laptop, Place::Outside, REPOSITORY);
        let install = "mkdir -p .husky; git config core.hooksPath .husky; sleep 0.4";
        let honest = format!("for i in 1 2 3 4 5; do {install}; done; echo done");
        let output = session(laptop, &honest).expect_success();
        assert_eq!(output.stdout(), "done\n");
        assert!(output.stderr().contains("undone: "), "{output:?}");
    });
}

/// Submodules whose indexes take long to read, and one behind them that runs a program.
const LONG: &str = r#"git init -q a; blob=$(git -C a hash-object -w /dev/null)
    seq -f "100644 $blob 0%%tf%.0f" 100000 300000 | sed 's/%t/\t/' | git -C a update-index --index-info
    id=$(git -C a -c user.name=a -c user.email=a commit-tree -m one $(git -C a mktree < /dev/null))
    git -C a update-ref HEAD $id
    for i in $(seq 40); do cp -a --reflink=auto a z$i; done; git -C z9 config core.fsmonitor $EVIL
    for i in $(seq 40); do printf "160000 $id 0\tz$i\n"; done | git update-index --index-info"#;

/// A look in which others had the processors does not count, so it may take some.
fn flooded(laptop: &Laptop) -> Output {
    let script = format!("{EVIL}; {LONG}; sleep 290");
    let words = ["run", "--", "bash", "-c", &script];
    let session = laptop.stockade(words).limit(Duration::from_secs(300));
    session.run().expect("an end")
}

#[test]
fn p01_a_command_that_makes_more_repositories_than_can_be_looked_at_is_ended() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let output = flooded(laptop).expect_code(125);
        assert!(
            output.stderr().contains("has time to look at"),
            "{output:?}"
        );
        said(laptop, Place::Outside, "git status");
        assert!(!ran(laptop), "{output:?}");

        // Very many files among git's own, which an earlier session left, do not keep it from being ended.
        let many = "mkdir -p .git/lfs/1 .git/lfs/2; for i in 1 2; do
            (cd .git/lfs/$i; seq 60000 | xargs mkdir); done";
        said(laptop, Place::Outside, &format!("{REPOSITORY}; {many}"));
        let output = flooded(laptop).expect_code(125);
        said(laptop, Place::Outside, "git status");
        assert!(!ran(laptop), "{output:?}");
        // Nor are they a reason to end one that makes no repositories.
        let output = session(laptop, "sleep 8; echo done");
        assert_eq!(output.expect_success().stdout(), "done\n");

        said(laptop, Place::Outside, REPOSITORY);
        said(
            laptop,
            Place::Outside,
            &format!("{EVIL}; {LONG}; git status z9"),
        );
        assert!(ran(laptop), "positive control");
    });
}
