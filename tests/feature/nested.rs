//! Sandboxes inside the sandbox (`agent.nested`): they work, and programs in them find their names
//! renamed and removed as by the kernel, though process 1 does it for them.

use stockade_world::{Laptop, test};

use super::place::Place;
use crate::support::standard;

const NAMES: &str = include_str!("probes/names.py");

fn nested(laptop: &Laptop, script: &str) -> String {
    let session = laptop.stockade(["run", "--quiet", "--nested", "--", "bash", "-ec", script]);
    session.run().expect("the end").expect_success().stdout()
}

/// The errors that the broker gives are those of the kernel, over every form of a path.
#[test]
fn names_are_taken_away_as_by_the_kernel() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let script = "mkdir /dev/shm/other; unshare --user --map-root-user --mount \
            /usr/bin/python3 -IS -c \"$NAMES\" $PWD/names /dev/shm/other; rmdir /dev/shm/other";
        let told = |command: stockade_world::Command| {
            let output = command.args(["-c", script]).env("NAMES", NAMES).run();
            output.expect("the end").expect_success().stdout()
        };
        let outside = told(laptop.command("bash"));
        Place::Outside
            .shell(laptop, "rm -rf names")
            .run()
            .expect("removed");
        let session = laptop.stockade(["run", "--quiet", "--nested", "--pass-env", "NAMES", "--"]);
        let inside = told(session.arg("bash"));
        assert!(outside.lines().count() > 500, "{outside}");
        let differences: Vec<_> = outside
            .lines()
            .zip(inside.lines())
            .filter(|(a, b)| a != b)
            .collect();
        // A mount point is refused before its kind is compared with that of what is renamed to it.
        let is_known = |line: &str| line.contains(" rename to mount");
        let unknown: Vec<_> = differences
            .iter()
            .filter(|(outside, _)| !is_known(outside))
            .collect();
        assert!(unknown.is_empty(), "{unknown:#?}");
        assert_eq!(inside.lines().count(), outside.lines().count());
    });
}

#[test]
fn bubblewrap_works_inside_and_so_does_daily_work_in_it() {
    const WORK: &str = "set -e; git init -q repository; cd repository
        git config user.name a; git config user.email b@example.org
        for i in 1 2 3; do echo $i > file; git add file; git commit -qm $i; done
        git switch -qc other HEAD~1; git rebase -q master 2>/dev/null || git rebase -q main
        git gc -q; git log --format=%s; mkdir -p deep/er; touch deep/er/{a,b}; mv deep shallow
        rm -r shallow; cd ..; rm -rf repository; ls -d repository 2>/dev/null || echo gone";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let boxed = format!(
            "bwrap --unshare-all --dev-bind / / --proc /proc --tmpfs /tmp bash -c '{WORK}'"
        );
        let seen = nested(laptop, &boxed);
        assert_eq!(seen, "3\n2\n1\ngone\n");
        // By default it is refused, by itself and not by us.
        let plain = laptop.stockade(["run", "--quiet", "--", "bash", "-c", &boxed]);
        let plain = plain.run().expect("the end");
        assert!(plain.stderr().contains("bwrap"), "{plain:?}");
        assert_eq!(plain.stdout(), "");
    });
}

/// In an overlay, a copy is changed: what is renamed or removed is so in the upper directory alone.
#[test]
fn an_overlay_inside_is_changed_and_what_lies_below_is_not() {
    test(&standard(), |world| {
        let script = "mkdir lower upper work at; echo one > lower/one; echo two > lower/two
            mkdir lower/three; unshare --user --map-root-user --mount bash -ec '
                mount -t overlay none at -o lowerdir=lower,upperdir=upper,workdir=work,userxattr
                mv at/one at/renamed; rm at/two; rmdir at/three; echo four > at/four; mv at/four at/five
                ls at'; ls lower";
        assert_eq!(
            nested(world.laptop(), script),
            "five\nrenamed\none\nthree\ntwo\n"
        );
    });
}

/// A process that nobody may look into, as agents for keys are, is served all the same.
#[test]
fn who_is_not_dumpable_renames_and_removes() {
    test(&standard(), |world| {
        let hide = "import ctypes, os\nassert ctypes.CDLL(None).prctl(4, 0) == 0\n
open('a', 'w').close(); os.rename('a', 'b'); os.unlink('b'); print('done')";
        let script = format!(
            "python3 -c \"{hide}\"; unshare --user --map-root-user --mount python3 -c \"{hide}\""
        );
        assert_eq!(nested(world.laptop(), &script), "done\ndone\n");
    });
}

/// A signal does not have a rename made twice. (A handler that does not want calls to be restarted has
/// them interrupted, as it says.)
#[test]
fn signals_interrupt_no_rename_that_was_made() {
    test(&standard(), |world| {
        let script = "unshare --user --map-root-user --mount python3 -c \"
import os, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
open('a', 'w').close()
for _ in range(2000):
    os.rename('a', 'b'); os.rename('b', 'a')
signal.setitimer(signal.ITIMER_REAL, 0)
os.unlink('a')
print('done')\"";
        assert_eq!(nested(world.laptop(), script), "done\n");
    });
}

/// Many callers at a time are all served.
#[test]
fn many_rename_at_once() {
    test(&standard(), |world| {
        let script = "unshare --user --map-root-user --mount bash -c 'for i in $(seq 40); do
            (for j in $(seq 25); do : > f$i.$j; mv f$i.$j g$i.$j; rm g$i.$j; done) & done; wait
            ls | grep -c [fg][0-9]'";
        let session = world
            .laptop()
            .stockade(["run", "--quiet", "--nested", "--", "bash", "-c"]);
        let output = session.arg(script).run().expect("the end");
        assert_eq!(
            (output.stdout(), output.stderr()),
            ("0\n".to_owned(), String::new())
        );
    });
}

#[test]
fn it_is_on_for_agents_whose_own_sandbox_needs_it() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let said = |profile: &str, flags: &[&str]| {
            let plan = laptop
                .stockade(["config", "show", "--profile", profile])
                .args(flags);
            let shown = plan.run().expect("the end").expect_success().stdout();
            let line = shown.lines().find(|line| line.contains("nested"));
            line.map(str::to_owned).unwrap_or_default()
        };
        assert!(
            said("codex", &[]).contains("true"),
            "{}",
            said("codex", &[])
        );
        assert!(!said("claude", &[]).contains("true"));
        let settings = |path: &str, text: &str| {
            let line = format!("mkdir -p $(dirname {path}); echo '{text}' > {path}");
            Place::Outside.shell(laptop, &line).run().expect("written");
        };
        settings(
            "~/.claude/settings.json",
            r#"{"sandbox": {"enabled": true}}"#,
        );
        assert!(said("claude", &[]).contains("true"));
        // The project's own settings overrule the user's.
        settings(
            ".claude/settings.json",
            r#"{"sandbox": {"enabled": false}}"#,
        );
        assert!(!said("claude", &[]).contains("true"));
        settings(".claude/settings.json", r#"{"sandbox": {"enabled": true}}"#);
        assert!(said("claude", &[]).contains("true"));
        // The start says whose word it is.
        let started = |words: &[&str]| {
            let command = laptop.stockade(["run", "--profile", "claude"]).args(words);
            let output = command.args(["--", "true"]).run().expect("the end");
            output.expect_success().stderr()
        };
        let notice = "nested is on, because \"/home/dev/project/.claude/settings.json\" says so";
        assert!(started(&[]).contains(notice), "{}", started(&[]));
        for words in [&["--nested"], &["--nested=false"]] {
            assert!(!started(words).contains("nested is on"), "{words:?}");
        }
        // The local settings, which git does not track, only turn it off.
        for (project, local) in [("false", "true"), ("true", "false")] {
            let text = |is_on: &str| format!(r#"{{"sandbox": {{"enabled": {is_on}}}}}"#);
            settings(".claude/settings.json", &text(project));
            settings(".claude/settings.local.json", &text(local));
            assert!(!said("claude", &[]).contains("true"), "{project} {local}");
            let ignored = "/home/dev/project/.claude/settings.local.json turns it on, and any \
                           session could have written that file. If you want it, add --nested";
            let stderr = started(&[]);
            assert_eq!(stderr.contains(ignored), local == "true", "{stderr}");
        }

        // What the user says counts; what contradicts it is refused.
        let run = |words: &[&str]| {
            let command = laptop.stockade(["run"]).args(words).args(["--", "true"]);
            command.run().expect("the end")
        };
        let refused = run(&["--nested", "--hardening", "strict"])
            .expect_code(125)
            .stderr();
        assert!(
            refused.contains("agent.nested") && refused.contains("strict"),
            "{refused}"
        );
        let plan = laptop.stockade(["plan", "--nested", "--", "true"]).run();
        let plan = plan.expect("the end").stdout();
        assert!(
            plan.contains("no mount namespaces inside") && plan.contains("off"),
            "{plan}"
        );
    });
}
