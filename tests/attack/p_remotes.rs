//! Remotes that a session leaves behind (P1): git outside neither talks to them unasked nor takes
//! what is the user's there.

use stockade_world::test;

use super::f_files::said;
use super::p_git::{ran, session};
use super::probe::Place;
use crate::support::standard;

/// A repository whose branch `main` belongs to a remote.
const TRACKED: &str = "cd; rm -rf project good.git evil.git ran
    git init -q --bare -b main good.git; git init -q --bare -b main evil.git
    mkdir project; cd project; git init -q -b main
    git config user.name a; git config user.email a; git remote add origin ~/good.git
    echo one > file; git add file; git commit -q -m one; git branch bare; git push -q -u origin main 2>&1";

/// Has git come to what is missing, while somebody listens at the host's loopback.
const STATUS: &str = "cd ~/project; exec 3< <(python3 -c '
import socket
listener = socket.create_server((\"127.0.0.1\", 18999))
listener.settimeout(4)
print(\"ready\", flush=True)
listener.accept()
open(\"/home/dev/ran\", \"w\")
')
    read -u 3; timeout 3 git status; cat <&3";

#[test]
fn p01_git_outside_does_not_dial_what_a_session_chose() {
    const LOSE: &str = "tree=$(git rev-parse 'HEAD^{tree}')
        rm -f .git/objects/${tree:0:2}/${tree:2}";
    let promise =
        "git config remote.x.url git://127.0.0.1:18999/x; git config remote.x.promisor true
        git config remote.x.partialCloneFilter blob:none";
    // A repository of its own that git comes to from the top, and the user's.
    let nested = format!(
        "git init -q sub; echo two > sub/file; git -C sub add file
        git -C sub -c user.name=a -c user.email=a commit -q -m one
        git -c advice.addEmbeddedRepo=false add sub; cd sub; {promise}; {LOSE}"
    );
    test(&standard(), |world| {
        let laptop = world.laptop();
        for plant in [format!("{promise}; {LOSE}"), nested] {
            said(laptop, Place::Outside, TRACKED);
            said(laptop, Place::Outside, &format!("cd ~/project; {plant}"));
            said(laptop, Place::Outside, STATUS);
            assert!(ran(laptop), "positive control: {plant}");
            said(laptop, Place::Outside, TRACKED);
            let output = session(laptop, &plant);
            said(laptop, Place::Outside, STATUS);
            assert!(!ran(laptop), "{plant}: {output:?}");
            let stderr = output.stderr();
            assert!(
                stderr.contains("has a new setting \"remote.x.promisor"),
                "{stderr}"
            );
        }

        // No more by a name than by an address; but what a session clones itself stays usable.
        let by_name = promise.replace("127.0.0.1:18999", "www.example.com");
        said(laptop, Place::Outside, TRACKED);
        let output = session(
            laptop,
            &format!("{by_name}; git init -q new; cd new; {by_name}"),
        );
        let promisor =
            "cd ~/project; git config remote.x.promisor; git -C new config remote.x.promisor";
        let left = said(laptop, Place::Outside, promisor);
        assert_eq!(left, "true\n", "{output:?}");
        let told =
            "new/.git/config\" has a new setting \"remote.x.promisor = true\": makes git fetch";
        assert!(output.stderr().contains(told), "{output:?}");
    });
}

#[test]
fn p01_branches_of_the_users_are_not_pushed_to_remotes_of_a_session() {
    let remote = "git remote add backup /home/dev/evil.git";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let push = "cd ~/project; git commit -q --allow-empty -m two; git push -q
            git -C ~/evil.git log --format=%s main";
        for plant in [
            "git config branch.main.remote backup",
            "git config branch.main.pushRemote backup",
            "git config branch.main.pushRemote /home/dev/evil.git",
            "git config remote.pushDefault backup",
            // Git pushes to all addresses of a remote, whichever file they are in.
            "git config extensions.worktreeConfig true
             git config --worktree remote.origin.url /home/dev/evil.git",
        ] {
            let plant = format!("{remote}; {plant}");
            said(laptop, Place::Outside, TRACKED);
            said(laptop, Place::Outside, &format!("cd ~/project; {plant}"));
            let pushed = said(laptop, Place::Outside, push);
            assert_eq!(pushed, "two\none\n", "positive control: {plant}");
            said(laptop, Place::Outside, TRACKED);
            let output = session(laptop, &plant);
            assert_eq!(said(laptop, Place::Outside, push), "", "{output:?}");
            let good = said(
                laptop,
                Place::Outside,
                "git -C ~/good.git log --format=%s main",
            );
            assert_eq!(good, "two\none\n", "{plant}: {output:?}");
        }

        // What one session may leave is no leave for the next.
        said(laptop, Place::Outside, TRACKED);
        session(laptop, remote);
        let output = session(laptop, "git config branch.main.pushRemote backup");
        assert_eq!(said(laptop, Place::Outside, push), "", "{output:?}");

        // A branch that has no remote yet is the user's as well; one that the session made is not.
        said(laptop, Place::Outside, TRACKED);
        let plant = format!(
            "{remote}; for branch in bare topic; do git config branch.$branch.remote backup
             git config branch.$branch.merge refs/heads/$branch; done; git branch topic"
        );
        let output = session(laptop, &plant);
        let left = "cd ~/project; git config --get-regexp 'branch.*remote|remote.*url'";
        assert_eq!(
            said(laptop, Place::Outside, left),
            "remote.origin.url /home/dev/good.git\nbranch.main.remote origin\n\
             remote.backup.url /home/dev/evil.git\nbranch.topic.remote backup\n",
            "{output:?}"
        );
    });
}
