//! Git's settings, hooks and other traces that a session leaves behind (P1): they do not run when
//! git is used outside after it.

use stockade_world::{Laptop, Output, test};

use super::f_files::said;
use super::probe::Place;
use crate::support::standard;

/// A repository with a commit, a file that a driver could be called for, and a worktree.
pub(super) const REPOSITORY: &str = "cd; rm -rf project tree ran; mkdir project; cd project
    git init -q -b main; rm -rf .git/hooks
    git config user.name a; git config user.email a
    echo one > file.bin; git add .; git commit -q -m one; git worktree add -q ../tree";
pub(super) const EVIL: &str = "printf '#!/bin/sh\\ntouch ~/ran\\n' > evil; chmod +x evil
    EVIL=/home/dev/project/evil";

/// What a session does, and what a user does later that would run `evil`.
pub(super) struct Plant {
    what: &'static str,
    plant: &'static str,
    use_of: &'static str,
}

pub(super) const fn plant(what: &'static str, plant: &'static str, use_of: &'static str) -> Plant {
    Plant {
        what,
        plant,
        use_of,
    }
}

pub(super) fn ran(laptop: &Laptop) -> bool {
    !said(laptop, Place::Outside, "ls ~/ran 2>/dev/null; rm -f ~/ran").is_empty()
}

pub(super) fn session(laptop: &Laptop, script: &str) -> Output {
    let words = ["run", "--", "bash", "-c", script];
    laptop.stockade(words).run().expect("an end")
}

/// Each is tried outside first: it does run. Then in a session, after which it does not.
pub(super) fn none_runs(plants: &[Plant]) {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for Plant {
            what,
            plant,
            use_of,
        } in plants
        {
            let planted = format!("{EVIL}\n{plant}");
            said(laptop, Place::Outside, REPOSITORY);
            assert!(!ran(laptop));
            said(laptop, Place::Outside, &planted);
            said(laptop, Place::Outside, use_of);
            assert!(ran(laptop), "positive control: {what}");

            said(laptop, Place::Outside, REPOSITORY);
            let output = session(laptop, &planted);
            // Nothing has run yet, and nothing does.
            said(laptop, Place::Outside, use_of);
            assert!(!ran(laptop), "{what}: {output:?}");
            let stderr = output.stderr();
            assert!(stderr.contains("stockade: undone: "), "{what}: {stderr}");
            assert!(stderr.contains("stockade accept "), "{what}: {stderr}");
            assert!(!stderr.contains("NOT be undone"), "{what}: {stderr}");
            // The repository works as before.
            let works = "cd ~/project; git status -s >/dev/null && git log --format=%s main";
            assert_eq!(said(laptop, Place::Outside, works), "one\n", "{what}");
        }
    });
}

#[test]
fn p01_settings_in_whatever_form_do_not_run_programs_outside() {
    none_runs(&[
        plant(
            "the watcher",
            "git config core.fsmonitor $EVIL",
            "git status",
        ),
        plant(
            "the watcher, in capitals, on the line of its section",
            "echo \"[CORE] FsMonitor = $EVIL\" >> .git/config",
            "git status",
        ),
        plant(
            "a filter whose name has a dot in the old form",
            "printf '[filter.a \"b\"]\\n\\tclean = %s\\n' $EVIL >> .git/config
             echo '*.bin filter=a.b' > .gitattributes",
            "echo two > file.bin; git add file.bin",
        ),
        plant(
            "a value over several lines",
            "printf '[core]\\n\\tfsmon\\\\\\n' >/dev/null
             printf '[core]\\n\\tfsmonitor = %s\\\\\\nevil\\n' /home/dev/project/ >> .git/config",
            "git status",
        ),
        plant(
            "after a byte order mark and Windows' ends of lines",
            "{ printf '\\357\\273\\277'; cat .git/config; printf '[core]\\r\\nfsmonitor=%s\\r\\n' $EVIL; } > c
             mv c .git/config",
            "git status",
        ),
        plant(
            "an alias that is no shell command",
            "git config alias.lol 'grep -O/home/dev/project/evil one'",
            "git lol",
        ),
        plant(
            "an alias with a configuration",
            "git config alias.lol \"-c core.fsmonitor=$EVIL status\"",
            "git lol",
        ),
        plant(
            "a helper for credentials",
            "git config credential.helper $EVIL",
            "printf 'protocol=https\\nhost=x\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill",
        ),
        plant(
            "included settings",
            "printf '[core]\\nfsmonitor = %s\\n' $EVIL > settings
             git config include.path ../settings",
            "git status",
        ),
        plant(
            "settings included under a condition",
            "printf '[core]\\nfsmonitor = %s\\n' $EVIL > settings
             git config includeIf.onbranch:main.path ../settings",
            "git status",
        ),
        plant(
            "settings of a worktree",
            "git config extensions.worktreeConfig true
             printf '[core]\\nfsmonitor = %s\\n' $EVIL > .git/worktrees/tree/config.worktree",
            "cd ../tree; git status",
        ),
        plant(
            "ssh",
            "git config core.sshCommand $EVIL",
            "git fetch ssh://a/b",
        ),
        plant(
            "a driver for differences in attributes that are no file of the project",
            "git config diff.x.textconv $EVIL; echo '*.bin diff=x' > .git/info/attributes",
            "echo two > file.bin; git --no-pager diff",
        ),
        plant(
            "a file of settings that is a link",
            "{ cat .git/config; printf '[core]\\nfsmonitor = %s\\n' $EVIL; } > settings
             ln -sf ../settings .git/config",
            "git status",
        ),
        plant(
            "a very long file of settings",
            "head -c 1100000 /dev/zero | tr '\\0' '\\n' >> .git/config
             printf '[core]\\nfsmonitor = %s\\n' $EVIL >> .git/config",
            "git status",
        ),
        plant(
            "another directory for all that is common",
            "cp -r .git x; rm -rf x/worktrees; printf '[core]\\nfsmonitor = %s\\n' $EVIL >> x/config
             echo ../x > .git/commondir",
            "git status",
        ),
        plant(
            "an encoding that makes the title of a commit two lines of a list of steps",
            "git checkout -q -b side; echo a > a; git add a
             printf 'x\\342\\227\\231exec touch ~/ran #\\n' > message; git commit -q -F message
             git config i18n.logOutputEncoding IBM922",
            "git rebase -f main; true",
        ),
        plant(
            "a mark of comments that makes one a step",
            "for i in 1 2; do
                git checkout -q -b side$i main; echo $i > $i; git add $i; git commit -q -m $i; done
             git merge -q --no-ff -m m side1; git branch -q -D side1
             git config core.commentString ' x touch ~/ran #'; git config rebase.rebaseMerges true",
            "git rebase -f main; true",
        ),
        plant(
            "a lock that nobody holds",
            "git config core.fsmonitor $EVIL; touch .git/config.lock",
            "git status",
        ),
    ]);
}

#[test]
fn p01_hooks_and_remotes_do_not_run_programs_outside() {
    none_runs(&[
        plant(
            "a hook",
            "mkdir -p .git/hooks; cp evil .git/hooks/pre-commit",
            "git commit --allow-empty -m two; git reset -q --hard HEAD^",
        ),
        plant(
            "a hook that is a link",
            "mkdir -p .git/hooks; ln -s $EVIL .git/hooks/post-checkout",
            "git checkout -q -b x; git checkout -q main",
        ),
        plant(
            "a hook in a directory that cannot be listed",
            "mkdir -p .git/hooks; cp evil .git/hooks/post-checkout; chmod 311 .git/hooks",
            "git checkout -q -b x; git checkout -q main; chmod -f 755 .git/hooks; true",
        ),
        plant(
            "a hook in a directory that cannot be written in",
            "mkdir -p .git/hooks; cp evil .git/hooks/post-checkout; chmod 555 .git/hooks",
            "git checkout -q -b x; git checkout -q main; chmod -f 755 .git/hooks; true",
        ),
        plant(
            "attributes in a directory that is a link",
            "git config diff.x.textconv $EVIL; rm -rf .git/info; mkdir i
             echo '*.bin diff=x' > i/attributes; ln -s ../i .git/info",
            "echo two > file.bin; git --no-pager diff",
        ),
        plant(
            "a directory of hooks that is a link",
            "mkdir h; cp evil h/post-checkout; ln -s ../h .git/hooks",
            "git checkout -q -b x; git checkout -q main",
        ),
        plant(
            "another directory of hooks",
            "mkdir h; cp evil h/post-checkout; git config core.hooksPath h",
            "git checkout -q -b x; git checkout -q main",
        ),
        plant(
            "a remote whose name is an option",
            "git checkout -q -b new; git config remote.local.url /usr; git config branch.new.remote local
             git config 'remote.--upload-pack=touch ~/ran;.url' https://www.example.com/",
            "git fetch --all; git checkout -q main",
        ),
        plant(
            "a remote in the workspace, whose hooks run",
            "git init -q --bare r; mkdir -p r/hooks; cp evil r/hooks/pre-receive
             git remote add other /home/dev/project/r",
            "git push -q other main:x",
        ),
        plant(
            "a second address of a remote",
            "git init -q --bare r; mkdir -p r/hooks; cp evil r/hooks/pre-receive
             git config remote.other.url https://127.0.0.1:1/x
             git config remote.other.pushurl ./r",
            "git push -q other main:x",
        ),
        plant(
            "a branch that follows a path",
            "git init -q --bare r; mkdir -p r/hooks; cp evil r/hooks/pre-receive
             git config branch.main.remote ./r; git config branch.main.merge refs/heads/main",
            "git push -q",
        ),
        plant(
            "a remote of the old form",
            "git init -q --bare r; mkdir -p r/hooks .git/remotes; cp evil r/hooks/pre-receive
             echo 'URL: /home/dev/project/r' > .git/remotes/other",
            "git push -q other main:x",
        ),
        plant(
            "a strategy of a rebase that is not finished",
            "git checkout -q -b side; echo a > a; git add a; git commit -q -m a
             GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD^
             git commit -q --allow-empty -m y; mkdir git-merge-x
             echo x/../evil > .git/rebase-merge/strategy",
            "git rebase --continue",
        ),
        plant(
            "a directory that is taken for a worktree until its file is gone",
            "mkdir -p worktrees; git init -q -b main sub
             git -C sub -c user.name=a -c user.email=a commit -q --allow-empty -m one
             git -c advice.addEmbeddedRepo=false add sub; mv sub/.git worktrees/x
             echo 'gitdir: ../worktrees/x' > sub/.git; echo . > worktrees/x/commondir
             git -C sub config core.fsmonitor $EVIL",
            "git status",
        ),
        plant(
            "a rebase that is not finished",
            "git checkout -q -b side; echo a > a; git add a; git commit -q -m a
             GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD^
             echo \"exec $EVIL </dev/null\" >> .git/rebase-merge/git-rebase-todo",
            "git rebase --continue",
        ),
    ]);
}

/// Git outside writes to what is in the place of its own files, and reads from it.
#[test]
fn p01_links_among_gits_own_files_lead_nowhere() {
    const FILE: &str = "rm -f ~/rc; touch ~/rc";
    const BACK: &str = "git reset -q --hard HEAD^; sh ~/rc; true";
    let commit = |how: &str| -> &'static str { format!("{FILE}; {how}; {BACK}").leak() };
    none_runs(&[
        plant(
            "the log of HEAD",
            "git config user.name 'x;touch ~/ran;#'; mkdir -p .git/logs; ln -sf ~/rc .git/logs/HEAD",
            commit("git commit -q --allow-empty -m two"),
        ),
        plant(
            "the log of a branch",
            "git config user.name 'x;touch ~/ran;#'; mkdir -p .git/logs/refs/heads
             ln -sf ~/rc .git/logs/refs/heads/main",
            commit("git commit -q --allow-empty -m two"),
        ),
        plant(
            "a directory of logs",
            "git config user.name 'x;touch ~/ran;#'; rm -rf .git/logs; mkdir elsewhere
             ln -s ~/rc elsewhere/HEAD; ln -s ../elsewhere .git/logs",
            commit("git commit -q --allow-empty -m two"),
        ),
        plant(
            "the message of a commit",
            "echo 'touch ~/ran' > .git/MERGE_MSG; ln -sf ~/rc .git/COMMIT_EDITMSG",
            commit("GIT_EDITOR=true git commit -q --allow-empty"),
        ),
        plant(
            "a file that becomes the message of a commit",
            "ln -sf ~/secret .git/MERGE_MSG",
            "echo secret > ~/secret; GIT_EDITOR=true git commit -q --allow-empty
             git log -1 --format=%B | grep -q secret && touch ~/ran; git reset -q --hard HEAD^",
        ),
        plant(
            "what a merge records of a conflict",
            "git config rerere.enabled true
             for i in 1 2; do
                git checkout -q -b b$i main; printf 'touch ~/ran\\n%s\\n' $i > file.bin; git commit -q -a -m $i
             done
             git merge -q b1; printf 'touch ~/ran\\n3\\n' > file.bin; git rerere
             git reset -q --hard; git checkout -q main
             for record in .git/rr-cache/*; do ln -s ~/rc $record/thisimage; done",
            "rm -f ~/rc; echo mine > ~/rc; git checkout -q b2; git merge -q b1; git reset -q --hard
             git checkout -q main; sh ~/rc; true",
        ),
        plant(
            "the graph of commits",
            "ln -s ~/rc .git/objects/info/commit-graph",
            "rm -f ~/rc; echo mine > ~/rc; git commit-graph write --reachable
             grep -q mine ~/rc || touch ~/ran",
        ),
    ]);
}

/// What a user has set up, what a session does, and what would run then.
#[test]
fn p01_what_the_users_own_settings_rest_on_stays() {
    let cases = [
        (
            "settings that are gone",
            "mkdir .git/hooks; cp ../evil .git/hooks/post-checkout; git config core.hooksPath /dev/null",
            "rm .git/config",
        ),
        (
            "attributes that are gone",
            "git config --global diff.x.textconv ~/evil; echo '*.bin -diff' > .git/info/attributes
             echo '*.bin diff=x' > .gitattributes",
            "rm .git/info/attributes",
        ),
        (
            "hooks that settings of the user's name",
            "git config --global core.hooksPath .githooks",
            "mkdir .githooks; cp ../evil .githooks/post-checkout || printf '#!/bin/sh\\ntouch ~/ran\\n' > .githooks/post-checkout
             chmod +x .githooks/post-checkout",
        ),
        (
            "settings that those of the user include",
            "git config --global include.path ~/project/settings",
            "printf '[core]\\nfsmonitor = /home/dev/evil\\n' > settings",
        ),
        (
            "a file of the user's, by a name that is another file in the repository",
            "printf '[include]\\npath = .work\\n' > ~/.gitconfig; printf '[user]\\nemail = w\\n' > ~/.work",
            "git config include.path .work
             printf '[core]\\nfsmonitor = /home/dev/evil\\n' > .git/.work",
        ),
        (
            "attributes that settings of the user name",
            "git config --global diff.x.textconv ~/evil
             git config --global core.attributesFile ~/project/attributes",
            "echo '*.bin diff=x' > attributes",
        ),
    ];
    const USE: &str = "git status; git checkout -q -b x; git checkout -q main
        echo two > file.bin; git --no-pager diff; true";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (what, own, change) in cases {
            let fresh = || {
                said(laptop, Place::Outside, "rm -f ~/.gitconfig");
                said(laptop, Place::Outside, REPOSITORY);
                let evil =
                    "cd; printf '#!/bin/sh\\ntouch ~/ran\\n' > evil; chmod +x evil; cd project";
                said(laptop, Place::Outside, &format!("{evil}; {own}"));
            };
            fresh();
            said(laptop, Place::Outside, USE);
            assert!(!ran(laptop), "{what}");
            said(
                laptop,
                Place::Outside,
                "git checkout -q .; git branch -q -D x; true",
            );
            said(laptop, Place::Outside, change);
            said(laptop, Place::Outside, USE);
            assert!(ran(laptop), "positive control: {what}");

            fresh();
            let output = session(laptop, change);
            said(laptop, Place::Outside, USE);
            assert!(!ran(laptop), "{what}: {output:?}");
            let stderr = output.stderr();
            assert!(stderr.contains("stockade: undone: "), "{what}: {stderr}");
        }
        // What only describes comes back, too, if the whole file is gone.
        said(laptop, Place::Outside, REPOSITORY);
        let remote = "git remote add origin https://127.0.0.1:1/x";
        said(laptop, Place::Outside, remote);
        let output = session(laptop, "rm .git/config; git remote; echo $?");
        assert!(output.stderr().contains("it was removed"), "{output:?}");
        assert_eq!(said(laptop, Place::Outside, "git remote"), "origin\n");
        // Hooks that are there already are read-only inside.
        said(laptop, Place::Outside, REPOSITORY);
        let own = "rm ~/.gitconfig; git config --global core.hooksPath .githooks
            mkdir .githooks; touch .githooks/pre-push";
        said(laptop, Place::Outside, own);
        let write = "for name in .githooks/pre-push .githooks/new other; do
            echo x > $name && echo $name; done";
        assert_eq!(session(laptop, write).stdout(), "other\n");
        said(laptop, Place::Outside, "rm -f ~/.gitconfig ~/evil");
    });
}

/// What only describes is not touched, and neither is what was there before.
#[test]
fn p01_what_describes_stays_and_so_does_what_was_there() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        said(
            laptop,
            Place::Outside,
            "cd ~/project; git config alias.mine '!echo mine'; git config core.editor true
             git config --global filter.lfs.clean 'git-lfs clean -- %f'",
        );
        let before = said(laptop, Place::Outside, "cat .git/config");
        let daily = "git remote add origin https://example.com/a.git
            git checkout -q -b work; git config branch.work.remote origin
            git config branch.work.merge refs/heads/work; git config user.name ada
            git config filter.lfs.clean 'git-lfs clean -- %f'
            git init -q new; git -C new -c user.name=a -c user.email=a commit -q --allow-empty -m x";
        let output = session(laptop, daily);
        assert_eq!(output.stderr(), "", "{output:?}");
        let after = said(laptop, Place::Outside, "cat .git/config");
        assert!(
            after.contains("alias") && after.contains("branch \"work\""),
            "{after}"
        );
        // With something else between, that is taken out, and this stays.
        let mixed = format!("{EVIL}; git config core.fsmonitor $EVIL; git config branch.x.merge y");
        let output = session(laptop, &mixed);
        assert_eq!(output.stderr().matches("undone").count(), 2, "{output:?}");
        let left = said(laptop, Place::Outside, "git config --list --local");
        assert!(
            left.contains("branch.x.merge=y") && !left.contains("fsmonitor"),
            "{left}"
        );
        assert!(left.contains("alias.mine=!echo mine"), "{left}");
        assert!(before.contains("mine"));
    });
}

#[test]
fn p01_who_wants_to_be_told_only_is() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, REPOSITORY);
        let plant = format!("{EVIL}; git config core.fsmonitor $EVIL");
        let words = ["run", "--git-settings", "tell", "--", "bash", "-c", &plant];
        let output = laptop.stockade(words).run().expect("an end");
        let stderr = output.stderr();
        assert!(stderr.contains("new setting \"core.fsmonitor"), "{stderr}");
        assert!(!stderr.contains("undone"), "{stderr}");
        said(laptop, Place::Outside, "git status");
        assert!(ran(laptop));
    });
}

/// What puts files back is outside: where it replaces a file, the kernel takes its cover off.
#[test]
fn p01_no_cover_is_taken_off_for_what_a_session_makes_look_like_a_repository() {
    const FILES: &str = "mkdir -p deploy secrets/hooks secrets/remotes around/in
        for f in deploy/config secrets/config secrets/hooks/x secrets/remotes/r around/in/config
        do printf '[core]\nsshCommand = hidden\n' > $f; done";
    const COUNT: &str = "grep -rl hidden deploy secrets around | wc -l";
    const LEAD: &str = "mkdir -p one two
        echo 'gitdir: ../deploy' > one/.git; echo 'gitdir: ../secrets' > two/.git
        ID=1111111111111111111111111111111111111111
        git update-index --add --cacheinfo 160000,$ID,one --cacheinfo 160000,$ID,two \
            --cacheinfo 160000,$ID,around
        for i in $(seq 150); do cat deploy/config secrets/config around/.git/config; sleep 0.01
        done 2>/dev/null";
    // With the directory around it, a hidden file would come to another place.
    let renamed = format!("mv around/in around/.git; {LEAD}");
    test(&standard(), |world| {
        let laptop = world.laptop();
        for lead in [LEAD, &renamed] {
            said(laptop, Place::Outside, REPOSITORY);
            said(laptop, Place::Outside, FILES);
            assert_eq!(said(laptop, Place::Outside, COUNT), "5\n");
            // Once it looks like a repository, the file may be put back before it is read.
            let output = session(laptop, &format!("cat deploy/config; {lead}"));
            assert!(output.stdout().contains("hidden"), "positive control");
            assert!(output.stderr().contains("undone: "), "{output:?}");
            let left = said(laptop, Place::Outside, COUNT);
            assert_ne!(left, "5\n", "positive control: {output:?}");

            said(laptop, Place::Outside, REPOSITORY);
            said(laptop, Place::Outside, FILES);
            let hide = ["deploy/config", "secrets", "around/in/config"];
            let hide = hide.iter().flat_map(|path| ["--hide", path]);
            let words = ["run"].into_iter().chain(hide);
            let words = words.chain(["--", "bash", "-c", lead]);
            let output = laptop.stockade(words).run().expect("an end");
            let is_seen = output.stdout().contains("hidden");
            assert!(!is_seen, "a cover was taken off: {output:?}");
            assert_eq!(said(laptop, Place::Outside, COUNT), "5\n", "{output:?}");
            let stderr = output.stderr();
            // What leads there may go first.
            let is_left = stderr.contains("left as it is");
            let is_led = !stderr.contains("two/.git\" is new");
            assert!(is_left || !is_led, "{output:?}");
            assert!(!stderr.contains("= hidden"), "{output:?}");
        }
    });
}

/// A session that knows a commit of another repository could have the user check it out.
#[test]
fn p02_git_outside_takes_no_objects_from_a_repository_that_was_not_given() {
    const OTHER: &str = "rm -rf ~/other; git init -q ~/other; cd ~/other; echo secret > secret
        git add .; git -c user.name=a -c user.email=a commit -q -m one";
    const USE: &str = "git checkout -q planted; cat secret; git checkout -q main";
    const LIST: &str = ".git/objects/info/alternates";
    let plants = [
        format!("echo ~/other/.git/objects > {LIST}"),
        format!("echo ../../../other/.git/objects > {LIST}"),
        format!("ln -s ~/other/.git/objects link; echo ../../link > {LIST}"),
        format!(
            "mkdir -p x/info; echo ~/other/.git/objects > x/info/alternates; echo ../../x > {LIST}"
        ),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for plant in &plants {
            let outside = |line: &str| said(laptop, Place::Outside, line);
            outside(OTHER);
            let id = outside("git -C ~/other rev-parse HEAD");
            let plant = format!("{plant}; echo {} > .git/refs/heads/planted", id.trim());
            outside(REPOSITORY);
            outside(&plant);
            assert_eq!(outside(USE), "secret\n", "positive control: {plant}");
            outside(REPOSITORY);
            let told = session(laptop, &plant).stderr();
            assert!(told.contains("takes objects from"), "{plant}: {told}");
            assert_eq!(outside(USE), "", "{plant}");
        }
        // A repository that nothing leads to, in a directory of the workspace.
        const FILE: &str = "mkdir -p a/b; echo gitdir: ~/other/.git > a/b/.git";
        const IN_IT: &str = "cd a/b; git checkout -q .; cat secret";
        for is_inside in [false, true] {
            said(laptop, Place::Outside, REPOSITORY);
            let told = match is_inside {
                true => session(laptop, FILE).stderr(),
                false => said(laptop, Place::Outside, FILE),
            };
            let taken = said(laptop, Place::Outside, IN_IT).contains("secret");
            assert_eq!(taken, !is_inside, "{told}");
            assert_eq!(told.contains("a/b/.git\" is new"), is_inside, "{told}");
        }
        // What git itself does in the workspace stays.
        said(laptop, Place::Outside, REPOSITORY);
        let told = session(laptop, "git clone -q --shared . clone").stderr();
        assert!(!told.contains("takes objects from"), "{told}");
        let log = said(laptop, Place::Outside, "git -C clone log --format=%s");
        assert!(!log.is_empty());
    });
}
