//! Repositories that git outside comes to from elsewhere than the workspace (P2): those in the repository
//! of a linked worktree, and those that the index of a repository above the workspace leads to.

use std::time::Duration;

use stockade_world::{Laptop, Output, eventually, test};

use super::f_files::said;
use super::p_git::{ran, session};
use super::probe::Place;
use crate::support::standard;

/// `~/project` is a linked worktree of `~/main`.
const TREE: &str = "cd; rm -rf project main server ran; git init -q --bare server
    git config --global user.name a; git config --global user.email a
    git init -q -b main main; cd main; git commit -q --allow-empty -m one
    git remote add origin ~/server; git push -q -u origin main
    git worktree add -q ~/project -b agent";

/// A repository `$R/prep` whose settings run a program, and what makes it a submodule of a name.
const SUBMODULE: &str = r#"cd ~/project; R=$(git rev-parse --git-common-dir); G=$(git rev-parse --git-dir)
    git init -q made; git -C made commit -q --allow-empty -m x; id=$(git -C made rev-parse HEAD)
    for key in core.fsmonitor core.sshCommand; do git -C made config $key 'touch /home/dev/ran; false'; done
    git -C made config remote.origin.url git@example.com:x/y
    mv made/.git $R/prep; rm -r made
    named() {
        printf '[submodule "%s"]\n\tpath = lib\n\turl = https://example.com/x\n' $1 > .gitmodules
        git add .gitmodules; git update-index --add --cacheinfo 160000,$id,lib
        git commit -q -m work; git config submodule.active .
    }
    # What looks like a repository, and is none to git.
    around() { mkdir -p $1/objects $1/refs $(dirname $1/$2); echo junk > $1/HEAD; mv $R/prep $1/$2; }"#;

#[test]
fn p02_repositories_in_that_of_a_linked_worktree_run_nothing() {
    const USE: &str = "cd ~/project; git fetch --recurse-submodules; git -c submodule.recurse=true reset -q --hard";
    let cases = [
        "mkdir -p $G/modules; mv $R/prep $G/modules/lib; named lib",
        "around $G/modules/x refs/y; named x/refs/y",
        "around $G/modules/x objects/aa/y; named x/objects/aa/y",
        "around $G/modules/a/x logs/y; named a/x/logs/y",
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for case in cases {
            let plant = format!("{SUBMODULE}\n{case}");
            said(laptop, Place::Outside, TREE);
            said(laptop, Place::Outside, &plant);
            said(laptop, Place::Outside, USE);
            assert!(ran(laptop), "positive control: {case}");
            said(laptop, Place::Outside, TREE);
            let output = session(laptop, &plant);
            said(laptop, Place::Outside, USE);
            assert!(!ran(laptop), "{case}: {output:?}");
            let undone = "has a new setting \"core.fsmonitor";
            assert!(output.stderr().contains("undone"), "{output:?}");
            assert!(output.stderr().contains(undone), "{output:?}");
        }
    });
}

/// The branch `agent` has a repository among its files, and a submodule of a name. A file in the place of
/// that submodule's repository names the one that the branch brings.
const DECOY: &str = r#"cd ~/project; git checkout -q -b agent
    mkdir -p t/decoy/objects t/decoy/refs; touch t/decoy/objects/keep t/decoy/refs/keep
    echo 'ref: refs/heads/main' > t/decoy/HEAD
    printf '[core]\n\trepositoryformatversion = 0\n\tsshCommand = "touch /home/dev/ran; false"\n' > t/decoy/config
    printf '[remote "origin"]\n\turl = git@example.com:x/y\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n' >> t/decoy/config
    printf '[submodule "%s"]\n\tpath = lib\n\turl = https://example.com/x\n' $NAME >> .gitmodules
    git add -f t .gitmodules; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib
    git commit -q -m work; git config submodule.active .; mkdir -p .git/modules
    printf 'gitdir: %s/t/decoy\n' "$PWD" > .git/modules/$NAME
    git checkout -q -f main; rm -rf t lib"#;

#[test]
fn p02_a_file_in_the_place_of_a_submodules_repository_leads_nowhere() {
    const HOME: &str = "cd; rm -rf project server part ran; git init -q --bare server
        git config --global user.name a; git config --global user.email a
        git init -q -b main part; git -C part commit -q --allow-empty -m part
        git init -q -b main project; cd project
        git -c protocol.file.allow=always submodule --quiet add ~/part real; git commit -q -m one
        git remote add origin ~/server; git push -q -u origin main";
    const USE: &str = "cd ~/project; git checkout -q agent; git fetch --recurse-submodules";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for name in ["x", "real/description", "real/logs/y"] {
            let plant = format!("NAME={name}\n{DECOY}");
            said(laptop, Place::Outside, HOME);
            said(laptop, Place::Outside, &plant);
            said(laptop, Place::Outside, USE);
            assert!(ran(laptop), "positive control: {name}");
            said(laptop, Place::Outside, HOME);
            let output = session(laptop, &plant);
            said(laptop, Place::Outside, USE);
            assert!(!ran(laptop), "{name}: {output:?}");
            let stderr = output.stderr();
            assert!(stderr.contains(&format!("modules/{name}\"")), "{stderr}");
        }
    });
}

/// Git finds a submodule by a name that leads into the repository of another one.
#[test]
fn p02_repositories_among_the_files_of_another_go_while_the_session_runs() {
    const HOME: &str = "cd; rm -rf project; git init -q -b main project";
    const MAKE: &str =
        "evil sub; evil x; mkdir -p .git/modules; git -C x config --unset core.fsmonitor
        mv x/.git .git/modules/x; P=.git/modules/x/$WHERE; mkdir -p $(dirname $P); mv sub/.git $P";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for place in ["objects/y", "objects/ab/y", "lfs/y", "worktrees/k/y"] {
            said(laptop, Place::Outside, HOME);
            let plant = format!("{GOES}\nWHERE={place}\n{MAKE}\ngoes $P/config");
            let output = session(laptop, &plant);
            assert_eq!(output.stdout(), "planted\ngone\n", "{place}: {output:?}");
        }
    });
}

/// Those that git itself makes there.
#[test]
fn p02_submodules_of_a_linked_worktree_stay() {
    const HOME: &str = "cd; git init -q -b main part; git -C part commit -q --allow-empty -m part
        cd main; git -c protocol.file.allow=always -c url.$HOME/part.insteadOf=https://example.com/part \
            submodule --quiet add https://example.com/part lib/config
        git commit -q -m lib; cd ~/project; git reset -q --hard main";
    const UPDATE: &str = "git -c protocol.file.allow=always -c url.$HOME/part.insteadOf=https://example.com/part \
            submodule --quiet update --init && test -d $(git rev-parse --git-dir)/modules/lib/config &&
        cd lib/config && git checkout -q -b config && git commit -q --allow-empty -m new &&
        cd ../.. && git status >/dev/null && git commit -q -am part && sleep 1";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, &format!("{TREE}\n{HOME}"));
        let words = ["run", "--read", "~/part", "--", "bash", "-c", UPDATE];
        let output = laptop.stockade(words).run().expect("an end");
        let stderr = output.expect_success().stderr();
        assert!(!stderr.contains("undone"), "{stderr}");
        let works = "cd ~/project; git status -s; git -C lib/config log --format=%s; git -C lib/config branch";
        let works = said(laptop, Place::Outside, works);
        assert_eq!(works, "new\npart\n* config\n  main\n");
    });
}

/// Says from inside whether a setting goes while the session runs.
const GOES: &str = r"goes() {
        git config -f $1 core.fsmonitor >/dev/null && echo planted
        for _ in $(seq 100); do
            git config -f $1 core.fsmonitor >/dev/null || { echo gone; break; }
            sleep 0.1
        done
    }
    evil() {
        git init -q $1; git -C $1 -c user.name=a -c user.email=a commit -q --allow-empty -m x
        git -C $1 config core.fsmonitor 'touch /home/dev/ran; false'
    }";

struct Case {
    what: &'static str,
    home: &'static str,
    /// Where the sessions start.
    at: &'static str,
    sessions: &'static [&'static str],
    /// Where the user works then.
    above: &'static str,
}

const CASES: &[Case] = &[
    Case {
        what: "an entry of the index of the main worktree, around the linked one",
        home: "git init -q -b main main; cd main; echo .claude > .gitignore; git add .; git commit -q -m one
            git worktree add -q .claude/worktrees/tree",
        at: "/home/dev/main/.claude/worktrees/tree",
        sessions: &["R=$(git rev-parse --git-common-dir); evil q/evil; id=$(git -C q/evil rev-parse HEAD)
            GIT_INDEX_FILE=$R/index GIT_DIR=$R git update-index --add --cacheinfo \
                160000,$id,.claude/worktrees/tree/q/evil
            git -C q/evil config core.fsmonitor 'touch /home/dev/ran; false'; goes q/evil/.git/config"],
        above: "~/main",
    },
    Case {
        what: "another repository in the place of a submodule of the one above",
        home: MONO,
        at: "/home/dev/main/pkg",
        sessions: &["evil new; rm sub/.git; cp -r new/.git sub/.git; goes sub/.git/config"],
        above: "~/main",
    },
    Case {
        what: "the same, with a repository of its own in the workspace",
        home: MONO,
        at: "/home/dev/main/pkg",
        sessions: &["git init -q .; evil new; rm sub/.git; cp -r new/.git sub/.git; goes sub/.git/config"],
        above: "~/main",
    },
    Case {
        what: "one that an earlier session left as no repository",
        home: MONO,
        at: "/home/dev/main/pkg",
        sessions: &[
            "evil new; mkdir -p a/b/c; mv new/.git/HEAD new/.git/old; mv new/.git a/b/c/x; rm -r new",
            "rm sub/.git; mv a/b/c/x sub/.git; mv sub/.git/old sub/.git/HEAD; goes sub/.git/config",
        ],
        above: "~/main",
    },
];

const MONO: &str = "git init -q -b main lib; git -C lib commit -q --allow-empty -m lib
    git init -q -b main main; cd main; mkdir pkg; touch pkg/file
    git -c protocol.file.allow=always submodule --quiet add ~/lib pkg/sub; git add .; git commit -q -m one";

impl Case {
    fn prepare(&self, laptop: &Laptop) {
        let home = "cd; chmod -R u+w main lib 2>/dev/null; rm -rf main lib ran
            git config --global user.name a; git config --global user.email a";
        said(laptop, Place::Outside, &format!("{home}\n{}", self.home));
    }

    fn session(&self, laptop: &Laptop, script: &str) -> Output {
        let script = format!("{GOES}\n{script}");
        let words = ["-C", self.at, "run", "--", "bash", "-c", &script];
        laptop.stockade(words).run().expect("an end")
    }

    fn runs(&self, laptop: &Laptop) -> bool {
        said(
            laptop,
            Place::Outside,
            &format!("cd {}; git status", self.above),
        );
        ran(laptop)
    }
}

/// Also while the session runs: the user works above it.
#[test]
fn p02_a_repository_above_the_workspace_leads_git_to_nothing_that_runs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for case in CASES {
            let what = case.what;
            case.prepare(laptop);
            for script in case.sessions {
                // Nobody takes anything back there.
                let script = format!("cd {}; goes() {{ :; }}; {}", case.at, script);
                let script = GOES.replacen("goes() {", "unused() {", 1) + "\n" + &script;
                said(laptop, Place::Outside, &script);
            }
            assert!(case.runs(laptop), "positive control: {what}");
            case.prepare(laptop);
            let (mut told, mut said_inside) = (String::new(), String::new());
            for script in case.sessions {
                let output = case.session(laptop, script);
                told += &output.stderr();
                said_inside += &output.stdout();
            }
            assert!(!case.runs(laptop), "{what}: {told}");
            assert!(told.contains("undone: "), "{what}: {told}");
            assert!(
                said_inside.ends_with("gone\n"),
                "{what}: {said_inside} {told}"
            );
        }
    });
}

/// What git does for the user above, while a session runs, stays.
#[test]
fn p02_submodules_that_the_user_adds_above_stay() {
    const ADD: &str =
        "cd ~/main; git -c protocol.file.allow=always submodule --quiet add ~/lib pkg/new
        git commit -q -m new; touch ~/main/pkg/added";
    const WAIT: &str =
        "touch begun; for _ in $(seq 200); do test -e added && break; sleep 0.1; done
        test -e added; sleep 1; test -f new/.git && test -f sub/.git && echo kept";
    let case = CASES.iter().find(|case| case.home == MONO).expect("one");
    test(&standard(), |world| {
        let laptop = world.laptop();
        case.prepare(laptop);
        let words = ["-C", case.at, "run", "--", "bash", "-c", WAIT];
        let session = laptop.stockade(words).spawn().expect("a session");
        let begun = || !said(laptop, Place::Outside, "ls ~/main/pkg/begun 2>/dev/null").is_empty();
        eventually("it begins", Duration::from_secs(20), begun).expect("a beginning");
        said(laptop, Place::Outside, ADD);
        let output = session.wait().expect("an end");
        assert_eq!(output.stdout(), "kept\n", "{output:?}");
        let status =
            "cd ~/main; rm pkg/added pkg/begun; git status -s; git submodule status | wc -l";
        assert_eq!(said(laptop, Place::Outside, status), "2\n", "{output:?}");
    });
}
