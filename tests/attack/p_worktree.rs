//! Links that take git, outside, to a directory that no session was given (P1, P2): in the place of a
//! submodule, of its worktree, or of a directory that is left out of a sparse checkout.

use stockade_world::{Laptop, test};

use super::f_files::said;
use super::p_git::{ran, session};
use super::probe::Place;
use crate::support::standard;

/// A repository elsewhere whose settings run a program, as a session could have made one in any place
/// that it may write and that nobody looks at; and the user's project, with a submodule.
const HOME: &str = r"cd; rm -rf project lib elsewhere ran
    git config --global user.name a; git config --global user.email a
    git init -q -b main elsewhere/evil; git -C elsewhere/evil commit -q --allow-empty -m x
    printf '#!/bin/sh\ntouch ~/ran\nexit 1\n' > elsewhere/run; chmod +x elsewhere/run
    git -C elsewhere/evil config core.fsmonitor ~/elsewhere/run
    git init -q -b main lib; git -C lib commit -q --allow-empty -m lib
    git init -q -b main project; cd project
    git -c protocol.file.allow=always submodule --quiet add ~/lib lib
    git config submodule.lib.url https://example.com/lib; git commit -q -m one";

const EVIL: &str = "cd ~/project; S=$(git -C lib rev-parse HEAD)
    A=$(printf '%040d' 1)";

struct Case {
    what: &'static str,
    /// What each session does, one after the other.
    sessions: &'static [&'static str],
    /// What the user does then.
    after: &'static str,
    /// What has gone, by its path in the project.
    gone: &'static str,
}

const CASES: &[Case] = &[
    Case {
        what: "a link in the place of a submodule's worktree, and a second submodule of its repository",
        sessions: &["GIT_DIR=.git/modules/lib git update-index --add --cacheinfo 160000,$A,elsewhere/evil
            rm -rf lib; mkdir other; echo 'gitdir: ../.git/modules/lib' > other/.git
            git update-index --force-remove lib; git update-index --add --cacheinfo 160000,$S,other
            ln -s .. lib"],
        after: "git status",
        gone: "lib",
    },
    Case {
        what: "the same in two sessions, with a repository of the first one's",
        sessions: &[
            "git init -q /tmp/x; git -C /tmp/x commit -q --allow-empty -m x
             cp -r /tmp/x/.git .git/modules/x; rm -rf .git/modules/x/hooks
             git -C .git/modules/x config core.worktree ../../../a
             mkdir a other; echo 'gitdir: ../.git/modules/x' > other/.git
             git update-index --add --cacheinfo 160000,$S,other",
            "GIT_DIR=.git/modules/x git update-index --add --cacheinfo 160000,$A,elsewhere/evil
             rmdir a; ln -s .. a",
        ],
        after: "git status",
        gone: "other/.git",
    },
    Case {
        what: "a link that comes with a branch",
        sessions: &["git init -q /tmp/y; git -C /tmp/y commit -q --allow-empty -m x
            cp -r /tmp/y/.git .git/modules/y; rm -rf .git/modules/y/hooks
            git -C .git/modules/y config core.worktree ../../../a
            mkdir a other; GIT_DIR=.git/modules/y git update-index --add --cacheinfo 160000,$A,elsewhere/evil
            echo 'gitdir: ../.git/modules/y' > other/.git
            git update-index --add --cacheinfo 160000,$S,other
            touch a/f; git add a/f; git commit -q -m sub
            git checkout -q -b feature; git rm -r -q a; ln -s .. a; git add a
            git commit -q -m link; git checkout -q main"],
        after: "git checkout -q feature; git status",
        gone: "other/.git",
    },
    Case {
        what: "a repository of files that another branch has otherwise",
        sessions: &[
            "git init -q sub; git -C sub commit -q --allow-empty -m b; H=$(git -C sub rev-parse HEAD)
            rm -rf sub/.git/hooks sub/.git/info sub/.git/logs; mv sub/.git store; echo 'gitdir: ../store' > sub/.git
            echo store/index > .gitignore; git add .gitignore store
            git update-index --add --cacheinfo 160000,$H,sub; git commit -q -m store
            cp store/config /tmp/c; git config -f /tmp/c core.fsmonitor /home/dev/elsewhere/run
            export GIT_INDEX_FILE=/tmp/i; git read-tree HEAD
            git update-index --cacheinfo 100644,$(git hash-object -w /tmp/c),store/config
            git branch feature $(git commit-tree -p HEAD -m f $(git write-tree))",
        ],
        after: "git checkout -q -f feature; git status",
        gone: "sub/.git",
    },
    Case {
        what: "a submodule that is a link",
        sessions: &["git update-index --add --cacheinfo 160000,$S,vendor
            printf '[submodule \"vendor\"]\\n\\tpath = vendor\\n\\turl = https://example.com/v\\n' >> .gitmodules
            git add .gitmodules; ln -s ../elsewhere/evil vendor
            git config submodule.recurse true; git config submodule.active ."],
        after: "git grep nothing; git ls-files --recurse-submodules",
        gone: "vendor",
    },
    Case {
        what: "a link on the way to a submodule",
        sessions: &["git update-index --add --cacheinfo 160000,$S,vendor/evil
            printf '[submodule \"vendor\"]\\n\\tpath = vendor/evil\\n\\turl = https://example.com/v\\n' >> .gitmodules
            git add .gitmodules; ln -s ../elsewhere vendor
            git config submodule.recurse true; git config submodule.active ."],
        after: "git grep nothing; git ls-files --recurse-submodules",
        gone: "vendor",
    },
];

/// Whether the program runs. In a session, `evil` lies where nobody sees it.
fn runs(laptop: &Laptop, case: &Case) -> bool {
    said(
        laptop,
        Place::Outside,
        &format!("cd ~/project; {}", case.after),
    );
    ran(laptop)
}

#[test]
fn p02_no_link_has_git_outside_work_where_no_session_was_let_in() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for case in CASES {
            let what = case.what;
            said(laptop, Place::Outside, HOME);
            for script in case.sessions {
                said(laptop, Place::Outside, &format!("{EVIL}\n{script}"));
            }
            assert!(runs(laptop, case), "positive control: {what}");
            said(laptop, Place::Outside, HOME);
            let mut told = String::new();
            for script in case.sessions {
                told += &session(laptop, &format!("{EVIL}\n{script}")).stderr();
            }
            assert!(!runs(laptop, case), "{what}: {told}");
            let gone = format!("undone: \"/home/dev/project/{}\" is new", case.gone);
            // Whichever of the two the look comes to first: without one, the other leads nowhere.
            let setting = "has a new setting \"core.worktree = ";
            assert!(
                told.contains(&gone) || told.contains(setting),
                "{what}: {told}"
            );
        }
    });
}

/// What git makes itself in a session stays, while it runs and after.
/// The user's project, with a submodule or without, and a directory that git leaves out.
const ELSEWHERE: &str = r"cd; rm -rf project part planted; git config --global user.name a
    git config --global user.email a; git config --global protocol.file.allow always
    git init -q -b main part; echo one > part/one; git -C part add .; git -C part commit -q -m one
    git init -q -b main project; cd project; echo build/ > .gitignore; git add .; git commit -q -m top";
const WITH_SUBMODULE: &str = "git submodule --quiet add ~/part a; git commit -q -m sub";

/// Has a submodule be checked out into the home, by what its settings say of its worktree and by a branch
/// with a link there: what is in the project before, what a session does, and what the user does then.
const CHECKED_OUT: &[(&str, &str, &str, &str)] = &[
    (
        "settings of the worktree, with the true place",
        WITH_SUBMODULE,
        "cd a; echo x > planted; git add planted; git commit -q -m x; X=$(git rev-parse HEAD); git checkout -q HEAD~1
        git update-index --skip-worktree one; rm one; git config extensions.worktreeConfig true
        git config --worktree core.worktree ../../../a; cd ..
        export GIT_INDEX_FILE=/tmp/i; git read-tree HEAD; git rm -q --cached a
        git update-index --add --cacheinfo 120000,$(printf /home/dev | git hash-object -w --stdin),a
        git update-index --add --cacheinfo 160000,$X,c
        printf '[submodule \"a\"]\n\tpath = c\n\turl = /home/dev/part\n' > /tmp/m
        git update-index --add --cacheinfo 100644,$(git hash-object -w /tmp/m),.gitmodules
        git update-ref refs/heads/feature $(git commit-tree -p HEAD -m f $(git write-tree))",
        "git checkout feature; git submodule update --init",
    ),
    (
        "a submodule of the session's own",
        "true",
        "mkdir -p build .git/modules; git init -q --separate-git-dir .git/modules/a build/x; cd build/x
        echo x > planted; git add planted; git commit -q -m x; X=$(git rev-parse HEAD); git rm -q planted; git commit -q -m y
        git config extensions.worktreeConfig true; git config --worktree core.worktree ../../../build/x; cd ../..
        export GIT_INDEX_FILE=/tmp/i; git read-tree HEAD
        git update-index --add --cacheinfo 120000,$(printf /home/dev | git hash-object -w --stdin),build/x
        git update-index --add --cacheinfo 160000,$X,c
        printf '[submodule \"a\"]\n\tpath = c\n\turl = https://example.com/part\n' > /tmp/m
        git update-index --add --cacheinfo 100644,$(git hash-object -w /tmp/m),.gitmodules
        git update-ref refs/heads/feature $(git commit-tree -p HEAD -m f $(git write-tree))",
        "git checkout feature; git submodule update --init",
    ),
    (
        "a second place of the user's submodule",
        WITH_SUBMODULE,
        "cd a; echo x > planted; git add planted; git rm -q one; git commit -q -m x; X=$(git rev-parse HEAD)
        git branch work; git checkout -q HEAD~1; cd ..
        git checkout -q -b feature; mkdir build; ln -s /home/dev build/x; git add -f build/x
        git update-index --cacheinfo 160000,$X,a; git commit -q -m f; git checkout -q main
        rm -rf build; mkdir -p build/x; echo 'gitdir: ../../.git/modules/a' > build/x/.git
        git config -f .git/modules/a/config core.worktree ../../../build/x; cp a/one build/x/one",
        "git checkout feature; git submodule foreach 'git checkout work'",
    ),
];

#[test]
fn p02_no_setting_has_git_check_a_submodule_out_elsewhere() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (what, submodule, plant, after) in CHECKED_OUT {
            let home = format!("{ELSEWHERE}; {submodule}");
            let after = format!("cd ~/project; ({after}) >&2 || true; ls ~/planted || true");
            said(laptop, Place::Outside, &home);
            said(laptop, Place::Outside, &format!("cd ~/project; {plant}"));
            let planted = said(laptop, Place::Outside, &after);
            assert_eq!(planted, "/home/dev/planted\n", "positive control: {what}");
            said(laptop, Place::Outside, &home);
            let output = session(laptop, plant);
            assert_eq!(
                said(laptop, Place::Outside, &after),
                "",
                "{what}: {output:?}"
            );
            let stderr = output.expect_success().stderr();
            assert!(stderr.contains("core.worktree"), "{what}: {stderr}");
        }
    });
}

#[test]
fn p02_submodules_that_a_session_moves_stay() {
    const MOVE: &str = "cd ~/project; for n in 1 2 3 4 5 6 7 8; do
        git mv lib new && sleep 0.1 && git mv new lib || exit 1; done
        git mv lib moved && git commit -q -m moved && git -C moved worktree add -q ../tree";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, HOME);
        let output = session(laptop, MOVE).expect_success();
        assert_eq!(output.stderr(), "", "nothing was undone");
        let works =
            "cd ~/project; git submodule status | cut -d' ' -f3; git -C moved log --format=%s
            git -C tree log --format=%s; git status -s --ignore-submodules=none";
        assert_eq!(
            said(laptop, Place::Outside, works),
            "moved\nlib\nlib\n?? tree/\n"
        );
    });
}

/// Nor does anybody lose a worktree: of one of several clones, or one beside the workspace.
#[test]
fn p02_worktrees_that_a_session_adds_stay() {
    const CLONES: &str = "cd; rm -rf project worktrees; mkdir -p project worktrees; cd project
        git config --global user.name a; git config --global user.email a
        git init -q a; git -C a commit -q --allow-empty -m one";
    const ADD: &str = "git -C a worktree add -q ../feature";
    const BESIDE: &str = "git worktree add -q ~/worktrees/beside";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        outside(CLONES);
        assert_eq!(session(laptop, ADD).expect_success().stderr(), "");
        let log = "cd ~/project/feature; git log --format=%s";
        assert_eq!(outside(log), "one\n");
        outside(HOME);
        outside("mkdir ~/worktrees");
        let words = ["run", "--write", "~/worktrees", "--", "bash", "-c", BESIDE];
        let output = laptop.stockade(words).run().expect("an end");
        let stderr = output.expect_success().stderr();
        assert!(!stderr.contains("undone"), "{stderr}");
        let log = "cd ~/worktrees/beside; git log --format=%s";
        assert_eq!(outside(log), "one\n");
    });
}

#[test]
fn p02_a_link_in_the_place_of_a_sparse_directory_costs_nobody_files() {
    const SPARSE: &str = "cd; rm -rf project victim; mkdir victim; touch victim/important
        git config --global user.name a; git config --global user.email a
        git init -q -b main project; cd project; mkdir in dir; touch in/a dir/b; git add .
        git commit -q -m one; git sparse-checkout set --sparse-index in";
    const PLANT: &str = "cd ~/project; ln -s ../victim dir; echo '*' > .gitignore";
    const USE: &str = "cd ~/project; git sparse-checkout reapply >/dev/null 2>&1; ls ~/victim";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        outside(SPARSE);
        outside(PLANT);
        assert_eq!(outside(USE), "", "positive control");
        outside(SPARSE);
        let output = session(laptop, PLANT);
        assert_eq!(outside(USE), "important\n", "{output:?}");
    });
}

/// A session may write a repository into its caches, whose settings run programs. They are kept, and
/// where, everybody can tell.
#[test]
fn p02_no_path_leads_to_what_caches_keep() {
    const PLANT: &str = "cd; mkdir -p .cache/x; cd .cache/x; git init -q -b main evil; cd evil
        git config core.fsmonitor 'touch ~/ran; false'";
    const STATE: &str = "cd ~/.local/state/stockade/caches";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        outside("mkdir -p ~/.cache/x");
        session(laptop, PLANT).expect_success();
        let find = format!("chmod 700 ~/.local/state/stockade/caches; {STATE}; find ~+ -name evil");
        let path = outside(&find);
        let path = path.trim();
        let look = format!("git -C {path} status; ls {path} 2>/dev/null");
        outside(&look);
        assert!(ran(laptop), "positive control: {path:?}");
        // The next session closes it again, and has what was kept.
        let kept = session(laptop, "test -d ~/.cache/x/evil && touch ~/.cache/x/second");
        kept.expect_success();
        assert_eq!(outside(&look), "");
        assert!(!ran(laptop));
        for command in ["caches", "caches --clear"] {
            let words = command.split(' ');
            let output = laptop
                .stockade(words)
                .run()
                .expect("an end")
                .expect_success();
            assert!(output.stdout().contains("/home/dev/project"), "{output:?}");
            assert_eq!(outside("ls ~/.local/state/stockade/caches 2>/dev/null"), "");
        }
        session(laptop, "test ! -e ~/.cache/x/evil").expect_success();
    });
}

/// A session of the directory above put a link in the place of a worktree, or took its file away. The repository lies
/// elsewhere, and was given to neither session.
#[test]
fn p02_a_worktree_that_was_moved_gives_its_repository_to_no_other_session() {
    const MAKE: &str = "cd; rm -rf main code; mkdir -p code/foo
        git config --global user.name a; git config --global user.email a
        git init -q -b main main; git -C main commit -q --allow-empty -m x
        git -C main worktree add -q ~/code/wt
        git -C main config core.fsmonitor /usr/bin/true
        printf '#!/bin/sh\\n' > main/.git/hooks/pre-commit; chmod +x main/.git/hooks/pre-commit";
    const KEPT: &str = "cat ~/main/.git/config; ls ~/main/.git/hooks";
    const LOOK: &str = "ls ~/main/.git; touch ~/main/.git/written; true";
    const NAME: &str = "echo gitdir: ~/main/.git/worktrees/wt > .git; ls ~/main/.git";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |line: &str| said(laptop, Place::Outside, line);
        let run = |at: &str, line: &str| {
            outside(&format!(
                "cd ~/{at} && stockade run --quiet -- bash -c '{line}' 2>&1"
            ))
        };
        outside(MAKE);
        // Positive control: to the worktree itself it is given.
        assert!(run("code/wt", "ls ~/main/.git").contains("HEAD"));
        for (above, at, line) in [
            ("mv foo old; mv wt foo; ln -s foo wt", "code/foo", LOOK),
            ("rm -r wt; ln -s foo wt", "code/foo", NAME),
            ("rm wt/.git", "code/wt", NAME),
        ] {
            outside(MAKE);
            let before = outside(KEPT);
            assert!(
                before.contains("fsmonitor") && before.contains("pre-commit"),
                "{before}"
            );
            run("code", above);
            let seen = run(at, line);
            assert!(!seen.contains("HEAD"), "{above}: {seen}");
            assert_eq!(outside(KEPT), before, "{above}: {seen}");
            assert_eq!(outside("ls ~/main/.git/written"), "");
        }
    });
}
