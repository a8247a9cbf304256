//! Files of a merge, a rebase and the like that a session leaves unfinished (P1): git outside takes paths
//! and options from them when it goes on.

use stockade_world::{PATIENCE, eventually, test};

use super::f_files::said;
use super::p_git::{REPOSITORY, none_runs, plant, ran, session};
use super::probe::Place;
use crate::support::standard;

/// A rebase that stops at the first of two commits, and that has to merge the second one.
const REBASE: &str = "N=$(printf 'x\\ntouch ran\\n#'); git checkout -q -b side
    for i in a \"$N\"; do echo 1 > \"$i\"; git add \"$i\"; git commit -q -m side; done
    GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2; git commit -q --amend -m changed";

/// A patch that does not apply, and one after it.
const PATCHES: &str = "N=$(printf 'x\\ntouch ran\\n#'); git checkout -q -b side
    echo 1 > \"$N\"; git add \"$N\"; git commit -q -m a; echo 2 > \"$N\"; git commit -q -a -m b
    git format-patch -q -1 --full-index --stdout > two; git reset -q --hard HEAD^
    echo x > file.bin; git commit -q -a -m c; git format-patch -q -1 --stdout > one; git reset -q --hard HEAD^
    sed -i 's/^-one/-nothing/' one; git am -q one two; true";

/// A file of the user's has a line of the session's: it would run.
const HAS_LINE: &str = "grep -aqx 'touch ran' ~/rc && touch ~/ran";

const CONFLICTS: &str = "ID=2222222222222222222222222222222222222222; mkdir -p .git/rr-cache/$ID
    echo mine > .git/rr-cache/$ID/preimage; printf 'touch ran\\nmine\\n' > .git/rr-cache/$ID/postimage
    printf \"$ID.-1\\t../rc\\0\" >";

#[test]
fn p01_what_goes_on_outside_takes_no_programs_and_paths_of_a_session() {
    let leak = |text: String| -> &'static str { text.leak() };
    let rebase = |then: &str| leak(format!("{REBASE}\n{then}"));
    let use_of = |how: &str| leak(format!("echo mine > ~/rc; {how}; {HAS_LINE}; true"));
    none_runs(&[
        plant(
            "a strategy that can be read as settings",
            rebase(
                "mkdir \"$(printf 'git-merge-[options]\\nx=')\"
                 printf '[options]\\nx=/../evil' > .git/rebase-merge/strategy",
            ),
            "git rebase --continue; true",
        ),
        plant(
            "a number that the prompt of a shell shows",
            "mkdir -p .git/rebase-merge; echo refs/heads/main > .git/rebase-merge/head-name
             echo '$(touch ~/ran)' > .git/rebase-merge/msgnum; echo 1 > .git/rebase-merge/end",
            "for file in /usr/lib/git-core/git-sh-prompt /usr/share/git-core/contrib/completion/git-prompt.sh
             do [ -r $file ] && . $file; done; __git_ps1 a b; echo \"${PS1@P}\"",
        ),
        // VS Code reads it at every look at a repository.
        plant(
            "a commit that an editor shows, and that is an option of git's",
            "git checkout -q -b side; git commit -q --allow-empty -m x -m 'touch ran'; mkdir .git/rebase-merge
             echo --output=/home/dev/rc > .git/REBASE_HEAD",
            use_of("git show -s --format=%B \"$(cat .git/REBASE_HEAD)\" --"),
        ),
        // As the vcs_info of zsh does.
        plant(
            "commits that a prompt shows, and that are options of git's",
            "git checkout -q -b side; git commit -q --allow-empty -m x -m 'touch ran'; mkdir .git/rebase-apply
             echo --output=/home/dev/rc --format=%B > .git/rebase-apply/rewritten",
            use_of("git log -1 $(cat .git/rebase-apply/rewritten) --"),
        ),
        plant(
            "an option of patches that writes a file",
            leak(format!(
                "{PATCHES}\nprintf \"'--build-fake-ancestor=/home/dev/rc'\" > .git/rebase-apply/apply-opt"
            )),
            use_of("git am --skip"),
        ),
        plant(
            "an option of a strategy of git's own that writes a file",
            rebase(
                "echo resolve > .git/rebase-merge/strategy
                 echo index-output=/home/dev/rc > .git/rebase-merge/strategy_opts",
            ),
            use_of("git rebase --continue"),
        ),
        plant(
            "a list of conflicts that names a file of the user's",
            leak(format!("{CONFLICTS} .git/MERGE_RR")),
            use_of("git commit -q --allow-empty -m two; git reset -q --hard HEAD^"),
        ),
        plant(
            "the same in a worktree",
            leak(format!("{CONFLICTS} .git/worktrees/tree/MERGE_RR")),
            use_of("cd ../tree; git commit -q --allow-empty -m two"),
        ),
    ]);
}

const ID: &str = "1111111111111111111111111111111111111111";

/// Git copies each file of the list to where the session reads it.
#[test]
fn p01_a_list_of_conflicts_brings_no_file_of_the_users_inside() {
    let copy = format!(".git/rr-cache/{ID}/postimage");
    let record = format!("mkdir -p .git/rr-cache/{ID}; echo x > .git/rr-cache/{ID}/preimage");
    let list = |path: &str| format!("{record}; printf '{ID}\\t{path}\\0' > .git/MERGE_RR");
    let link = format!("ln -s ~/secret notes; {}", list("notes"));
    let tell = ["run", "--git-settings", "tell", "--", "bash", "-c"];
    const COMMIT: &str = "git commit -q --allow-empty -m two";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |line: &str| said(laptop, Place::Outside, line);
        for plant in [&list("/home/dev/secret"), &list("../secret"), &link] {
            for is_told in [true, false] {
                outside(REPOSITORY);
                outside("echo secret > ~/secret");
                let output = match is_told {
                    true => laptop.stockade(tell).arg(plant).run().expect("an end"),
                    false => session(laptop, plant),
                };
                let said = output.stderr();
                assert!(said.contains("`git commit` copies"), "{plant}: {output:?}");
                outside(COMMIT);
                let read = session(laptop, &format!("cat {copy}")).stdout();
                assert_eq!(read.contains("secret"), is_told, "{plant}: {output:?}");
            }
        }

        // One of the user's own stays, unless the session puts a link in the place of a file that it names.
        const CONFLICT: &str = "git config rerere.enabled true
            for i in 1 2; do git checkout -q -b b$i main; echo $i > file.bin; git commit -q -a -m $i; done
            git merge -q b1";
        for (work, stays) in [
            ("echo 3 > file.bin", true),
            ("ln -sf ~/secret file.bin", false),
        ] {
            outside(REPOSITORY);
            outside(CONFLICT);
            let before = outside("cat .git/MERGE_RR");
            assert!(before.contains("file.bin"), "{before}");
            let output = session(laptop, work);
            let after = outside("cat .git/MERGE_RR 2>/dev/null");
            assert_eq!(after == before, stays, "{work}: {output:?}");
            assert_eq!(output.stderr().is_empty(), stays, "{work}: {output:?}");
            outside("git commit -q -a -m three");
            let copied = outside("cat .git/rr-cache/*/postimage 2>/dev/null");
            assert_eq!(copied.trim(), if stays { "3" } else { "" }, "{work}");
        }
        // Without Stockade, git does copy what the link leads to.
        outside(REPOSITORY);
        outside(CONFLICT);
        outside("ln -sf ~/secret file.bin; git commit -q -a -m three");
        let copied = outside("cat .git/rr-cache/*/postimage");
        assert_eq!(copied.trim(), "secret", "positive control");
    });
}

#[test]
fn p01_a_list_of_conflicts_goes_while_the_session_runs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |line: &str| said(laptop, Place::Outside, line);
        outside(REPOSITORY);
        let script = format!("printf '{ID}\\t../rc\\0' > .git/MERGE_RR; echo planted; read");
        let words = ["run", "--", "bash", "-c", &script];
        let mut running = laptop.stockade(words).spawn().expect("a session");
        running.expect("planted").expect("it is planted");
        let is_gone = || outside("ls .git/MERGE_RR 2>/dev/null").is_empty();
        eventually("it is gone", PATIENCE, is_gone).expect("gone");
        running.write("\n").expect("write");
        let output = running.wait().expect("an end");
        assert!(output.stderr().contains("undone"), "{output:?}");
    });
}

/// A rebase of the user's own waits at a conflict; the user continues it while a session runs.
#[test]
fn p01_a_rebase_that_waits_gets_no_commands_while_a_session_runs() {
    const CONFLICT: &str = "git checkout -q -b topic; echo 1 > file.bin; git commit -q -a -m topic
        git checkout -q main; echo 2 > file.bin; git commit -q -a -m two
        git checkout -q topic; git rebase -q main; echo 3 > file.bin; git add file.bin";
    const PLANT: &str = "echo 'exec touch ~/ran' >> .git/rebase-merge/git-rebase-todo";
    const CONTINUE: &str = "GIT_EDITOR=true git rebase --continue";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |line: &str| said(laptop, Place::Outside, line);
        let steps = || outside("cat .git/rebase-merge/git-rebase-todo");
        for is_told in [true, false] {
            outside(REPOSITORY);
            outside(CONFLICT);
            let script = format!("{PLANT}; echo planted; read");
            let how = if is_told { "tell" } else { "defuse" };
            let words = ["run", "--git-settings", how, "--", "bash", "-c", &script];
            let mut running = laptop.stockade(words).spawn().expect("a session");
            running.expect("planted").expect("it is planted");
            if is_told {
                assert!(steps().contains("exec"), "positive control");
            } else {
                let is_gone = || !steps().contains("exec");
                eventually("it is gone", PATIENCE, is_gone).expect("gone");
            }
            outside(CONTINUE);
            assert_eq!(ran(laptop), is_told);
            running.write("\n").expect("write");
            let output = running.wait().expect("an end");
            assert_eq!(output.stderr().contains("undone"), !is_told, "{output:?}");
            assert_eq!(outside("cat file.bin"), "3\n");
        }

        // One that applies patches has no steps, until a session puts one that has in its place.
        const PATCHES: &str = "cd .git; mkdir rebase-merge; cd rebase-merge
            cp ../rebase-apply/head-name ../rebase-apply/onto ../rebase-apply/orig-head .; rm -r ../rebase-apply
            touch interactive done; echo 1 > msgnum; echo 1 > end
            echo 'exec touch ~/ran' > git-rebase-todo";
        let by_patches = CONFLICT.replace("rebase -q", "rebase -q --apply");
        for is_told in [true, false] {
            outside(REPOSITORY);
            outside(&by_patches);
            let script = format!("({PATCHES}); git reset -q --hard; echo planted; read");
            let how = if is_told { "tell" } else { "defuse" };
            let words = ["run", "--git-settings", how, "--", "bash", "-c", &script];
            let mut running = laptop.stockade(words).spawn().expect("a session");
            running.expect("planted").expect("it is planted");
            let is_gone = || !steps().contains("exec");
            if !is_told {
                eventually("it is gone", PATIENCE, is_gone).expect("gone");
            }
            outside(CONTINUE);
            assert_eq!(ran(laptop), is_told);
            running.write("\n").expect("write");
            running.wait().expect("an end");
        }

        // A rebase that the session itself begins runs its commands.
        outside(REPOSITORY);
        let script = "git commit -q --allow-empty -m two; git commit -q --allow-empty -m three
            git rebase -q -f -x 'sleep 1; echo done >> ~/project/log' HEAD~2; cat log";
        let output = session(laptop, script);
        assert_eq!(output.stdout(), "done\ndone\n", "{output:?}");
    });
}
